import { plural } from '@pawl/agent/platform/base/plural';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { formatWhen, oneLine } from '@pawl/terminal/paint-text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../exit-codes.js';
import { usageStop } from '../flags.js';
import { askLine } from './choose-session.js';
import { findInfo, storedJournals } from './stored-sessions.js';

/** `pawl sessions delete ID`: asks in a terminal, and needs `--yes` elsewhere. */

const confirm = async ({ sessionId, changedAt, workspace, title }: SessionInfo): Promise<void> => {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw usageStop(`Nobody can be asked here. To delete it: pawl sessions delete ${sessionId} --yes`);
  const folder = oneLine(workspace, Number.POSITIVE_INFINITY);
  writeOut(safe`${makeSafe(sessionId)}  ${formatWhen(changedAt)}  ${folder}  ${oneLine(title, 60)}\n`);
  const answer = await askLine(safe`Delete this session for good, with its tasks and pictures? (y/n) `);
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new Stop(exitCodes.usage, 'cancelled', 'Nothing was deleted.');
};

export const deleteFrom = async (given: string, { yes }: { readonly yes?: true }): Promise<number> => {
  const info = await findInfo(given);
  if (yes !== true) await confirm(info);
  const [sessionId = given, ...tasks] = await storedJournals().delete(info.sessionId);
  const also = tasks.length === 0 ? '' : ` and ${plural(tasks.length, 'task')}`;
  writeError(makeSafe(`Deleted: ${sessionId}${also}.\n`));
  return exitCodes.done;
};
