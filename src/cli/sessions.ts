import type { SessionInfo } from '../needs.js';
import { formatWhen, oneLine, writeWhole } from '../terminal/print.js';
import { allSessions } from './stored.js';

const lineOf = ({ sessionId, kind, changedAt, workspace, title, parent }: SessionInfo): string => {
  const asked = kind === 'ask' ? ['(pawl ask)'] : [];
  const fork = parent === null ? [] : [`(fork of ${parent.sessionId} at ${parent.seq})`];
  return [sessionId, formatWhen(changedAt), workspace, oneLine(title, 60), ...asked, ...fork].join('  ');
};

/** `pawl sessions`: one line a session, newest first. */
export const listSessions = async (flags: { readonly json?: true }): Promise<number> => {
  const found = await allSessions();
  for (const info of found) {
    writeWhole(1, `${flags.json ? JSON.stringify(info) : lineOf(info)}\n`);
  }
  if (found.length === 0) process.stderr.write('No sessions yet. pawl demo makes one.\n');
  return 0;
};
