import type { SessionInfo } from '../../ports/journal.js';
import { formatWhen, oneLine } from '../../terminal/print.js';
import { joinSafe, makeSafe, type Safe, safe } from '../../terminal/safe-text.js';
import { writeError, writeJson, writeOut } from '../../terminal/write.js';
import { allSessions } from './stored-sessions.js';

const lineOf = ({ sessionId, kind, changedAt, workspace, title, parent }: SessionInfo): Safe => {
  const asked = kind === 'ask' ? [safe`(pawl ask)`] : [];
  const fork = parent === null ? [] : [makeSafe(`(fork of ${parent.sessionId} at ${parent.seq})`)];
  const about = [
    makeSafe(sessionId),
    formatWhen(changedAt),
    oneLine(workspace, Number.POSITIVE_INFINITY),
    oneLine(title, 60),
  ];
  return joinSafe([...about, ...asked, ...fork], safe`  `);
};

/** `pawl sessions`: one line a session, newest first. */
export const listSessions = async (flags: { readonly json?: true }): Promise<number> => {
  const found = await allSessions();
  for (const info of found) {
    if (flags.json) writeJson(info);
    else writeOut(safe`${lineOf(info)}\n`);
  }
  if (found.length === 0) writeError(safe`No sessions yet. pawl demo creates one.\n`);
  return 0;
};
