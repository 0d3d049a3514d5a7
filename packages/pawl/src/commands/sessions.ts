/**
 * `pawl sessions`, from top to bottom: a session's standing (state and cost); the list; deleting.
 */

import { existsSync } from 'node:fs';
import { shellWord } from '@pawl/agent/command/sandbox/shell-text';
import { isLocked } from '@pawl/agent/journal/lock';
import { lockPath } from '@pawl/agent/journal/state-folder';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import { isBusy, knownCostUsd, type State } from '@pawl/agent/machine/state';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { formatSpent, formatWhen, oneLine } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { readRecord } from '../sessions/live-records.js';
import { allSessions, askLine, findInfo, storedJournals } from '../sessions/stored-sessions.js';
import { usageStop } from '../settings/flags.js';

export type SessionsFlags = {
  readonly json?: true;
  readonly stats?: true;
  readonly live?: true;
  readonly yes?: true;
};

type SessionListing = { readonly info: SessionInfo; readonly tasks: number };

/**
 * The lines of the list. A task is counted in the line of the session that started it; without that
 * session it has a separate line.
 */
const foldTasks = (all: readonly SessionInfo[]): readonly SessionListing[] => {
  const ids = new Set(all.map(({ sessionId }) => sessionId));
  const tasks = new Map<string, number>();
  const lines = all.filter(({ startedBy }) => {
    if (startedBy === undefined || !ids.has(startedBy.sessionId)) return true;
    tasks.set(startedBy.sessionId, (tasks.get(startedBy.sessionId) ?? 0) + 1);
    return false;
  });
  return lines.map((info) => ({ info, tasks: tasks.get(info.sessionId) ?? 0 }));
};

const tasksText = (tasks: number): readonly Safe[] => {
  if (tasks === 0) return [];
  return [makeSafe(tasks === 1 ? '(1 task)' : `(${tasks} tasks)`)];
};

type Waiting = Extract<State, { name: 'WaitingForUserInput' }>;
const ENDINGS: Partial<Record<Waiting['reason']['kind'], string>> = {
  cancelled: 'stopped',
  error: 'failed',
  budget: 'limit',
};

/** Entries at the end of a journal in which the end of the last turn is looked for. */
const LAST_ENTRIES = 64;

/** A session at rest that tells how its last turn ended, unlike one that was only opened again. */
const tellsEnd = (state: State): boolean => {
  if (state.name !== 'WaitingForUserInput') return state.name !== 'ShuttingDown';
  const { kind } = state.reason;
  return kind !== 'resumed' && kind !== 'compacted' && kind !== 'rewound';
};

/**
 * How a session stands. `last`: its last state that tells how a turn ended. `isOpen`: whether a
 * program has it open.
 */
const standingWord = (now: State, last: State | null, isOpen: boolean): string => {
  if (isBusy(now)) return isOpen ? 'in a turn' : 'cut off';
  if (last === null) return 'done';
  if (last.name === 'Ready') return 'new';
  // it was closed in the middle of a turn
  if (last.name !== 'WaitingForUserInput') return 'stopped';
  return ENDINGS[last.reason.kind] ?? 'done';
};

/** State and cost of a session, from the end of its journal. Only the first lines have them. */
const readStanding = async ({ sessionId, kind }: SessionInfo): Promise<readonly Safe[]> => {
  if (kind !== 'agent') return [safe`         `, safe`      `];
  try {
    let last: State | null = null;
    const visit = ({ state }: { readonly state: State }): void => {
      if (tellsEnd(state)) last = state;
    };
    const options = { visit, visitLast: LAST_ENTRIES };
    const { state, damage } = await storedJournals().replay(sessionId, options);
    if (damage !== null) throw damage;
    const isOpen = await isLocked(lockPath(stateFolder(process.env), sessionId));
    const usage = toldUsage(state);
    const cost = formatSpent(knownCostUsd(usage), usage);
    return [makeSafe(standingWord(state, last, isOpen)).padEnd(9), cost.padStart(6)];
  } catch {
    return [safe`unreadable`.padEnd(9), safe`      `]; // verify says why
  }
};

/** Lines of a list that have state and cost. */
const STANDINGS_MAX = 30;

/** `stands`: state and cost; empty for none. */
const sessionLine = ({ info, tasks }: SessionListing, stands: readonly Safe[]): Safe => {
  const { sessionId, kind, changedAt, workspace, title, parent, startedBy } = info;
  const askNote = kind === 'ask' ? [safe`(pawl ask)`] : [];
  const fork = parent === null ? [] : [makeSafe(`(fork of ${parent.sessionId} at ${parent.seq})`)];
  const about = [
    makeSafe(sessionId),
    formatWhen(changedAt),
    ...stands,
    oneLine(workspace, Number.POSITIVE_INFINITY),
    oneLine(title, 60),
  ];
  const ofSession = startedBy === undefined ? [] : [makeSafe(`(task of ${startedBy.sessionId})`)];
  return joinSafe([...about, ...askNote, ...fork, ...ofSession, ...tasksText(tasks)], safe`  `);
};

/**
 * `pawl sessions`: one line a session, newest first. Only `--json` has a line for each task. State
 * and cost are for people: completion reads the list too, and must not wait.
 */
const listSessions = async (flags: SessionsFlags): Promise<number> => {
  const all = await allSessions();
  if (flags.json) for (const info of all) writeJson(info);
  else
    for (const [index, listed] of foldTasks(all).entries()) {
      const isRead = process.stdout.isTTY && index < STANDINGS_MAX;
      const stands = isRead ? await readStanding(listed.info) : [];
      writeOut(safe`${sessionLine(listed, stands)}\n`);
    }
  if (all.length === 0) writeError(safe`No sessions yet. pawl demo creates one.\n`);
  return 0;
};

/** `pawl sessions`, `pawl sessions list` and `pawl sessions delete ID`. */
export const runSessions = async (
  what: string | undefined,
  id: string | undefined,
  flags: SessionsFlags,
): Promise<number> => {
  if (what === 'delete') {
    if (id === undefined)
      throw usageStop('It is written as: pawl sessions delete ID. pawl sessions lists them.');
    return deleteSession(id, flags);
  }
  if (what !== undefined && what !== 'list')
    throw usageStop(
      `pawl sessions has list and delete, not '${what}'. To look at one: pawl show ID`,
    );
  if (id !== undefined)
    throw usageStop(`pawl sessions list takes no id. To look at one: pawl show ${id}`);
  if (flags.live) return (await import('./detached.js')).listDetached(flags.json === true);
  if (flags.stats) return (await import('./figures.js')).showStats(flags.json === true);
  return listSessions(flags);
};

/** `pawl sessions delete ID` asks in a terminal, and needs `--yes` elsewhere. */
const confirm = async ({ sessionId, changedAt, workspace, title }: SessionInfo): Promise<void> => {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw usageStop(
      `Nobody can be asked here. To delete it: pawl sessions delete ${sessionId} --yes`,
    );
  const folder = oneLine(workspace, Number.POSITIVE_INFINITY);
  writeOut(
    safe`${makeSafe(sessionId)}  ${formatWhen(changedAt)}  ${folder}  ${oneLine(title, 60)}\n`,
  );
  const answer = await askLine(
    safe`Delete this session for good, with its tasks and pictures? (y/n) `,
  );
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new Stop(exitCodes.usage, 'cancelled', 'Nothing was deleted.');
};

const deleteSession = async (id: string, { yes }: { readonly yes?: true }): Promise<number> => {
  const info = await findInfo(id);
  if (yes !== true) await confirm(info);
  const { worktree } = (await readRecord(info.sessionId)) ?? {};
  // the ids of what was deleted
  const [sessionId = id, ...tasks] = await storedJournals().delete(info.sessionId);
  const also = tasks.length === 0 ? '' : ` and ${plural(tasks.length, 'task')}`;
  writeError(makeSafe(`Deleted: ${sessionId}${also}.\n`));
  if (worktree !== undefined && existsSync(worktree.path))
    writeError(
      makeSafe(
        `Its git worktree is kept. To remove it: git -C ${shellWord(worktree.repository)} worktree ` +
          `remove ${shellWord(worktree.path)}\n`,
      ),
    );
  return exitCodes.done;
};
