import { formatWhen, oneLine, writeWhole } from './print.js';
import { allSessions } from './stored.js';

/** `pawl sessions`: one line a session, newest first. */
export const listSessions = async (flags: { readonly json?: true }): Promise<number> => {
  const found = await allSessions();
  for (const info of found) {
    const line = flags.json
      ? JSON.stringify(info)
      : `${info.sessionId}  ${formatWhen(info.changedAt)}  ${info.workspace}  ${oneLine(info.title, 60)}`;
    writeWhole(1, `${line}\n`);
  }
  if (found.length === 0) process.stderr.write('No sessions yet. pawl demo makes one.\n');
  return 0;
};
