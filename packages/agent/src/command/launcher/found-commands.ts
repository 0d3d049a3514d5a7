import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { openSpool, type ProcessView } from './command-files.js';
import { type CommandRecord, readOrder } from './command-recovery-record.js';
import {
  type CommandStatus,
  type CommandVerdict,
  type LaunchedProcess,
  verdictOf,
} from './command-verdict.js';
import { attachCommand, type LaunchedEnd } from './follow-command.js';
import { createSpoolReader, type OutputReceiver } from './spool-reader.js';

/** Commands that a process which was killed has started, found by their files. */

export type FoundCommand = {
  readonly record: CommandRecord;
  /** When it must end, in ms since boot; null without a deadline. */
  readonly due: number | null;
  /** Whether its process numbers mean anything here. */
  readonly view: ProcessView;
  /**
   * How it stands now. `direct`: it was started without the launcher, so nothing is known of its end. `unseen`: it began
   * in another pid namespace, and nothing shows from here whether it still runs.
   */
  verdict(): CommandVerdict | { readonly kind: 'direct' | 'unseen' };
  /** Prevents that it begins. False if it has begun. */
  claim(): boolean;
  /** Follows a command that has begun, from the beginning of its output. */
  follow(to: OutputReceiver): FollowedCommand;
  /**
   * What its files say, for a command of another machine or of an earlier start of this one: process numbers mean
   * nothing then, so none is looked up. Changes no file.
   */
  readLeft(): Pick<CommandStatus, 'exitCode' | 'endedAt'> & { readonly hasBegun: boolean };
  /** Reads the output that such a command has left. Changes no file. */
  readOutput(to: OutputReceiver): void;
};

export type FollowedCommand = {
  /** Its process, if it runs and can be seen from here. */
  readonly process: LaunchedProcess | null;
  readonly ended: Promise<LaunchedEnd>;
  /** Records that it will be killed because it was cancelled. The guard of its launcher reads that, too. */
  cancelled(): void;
};

/** In ms: what writes the rest of an output may still run, or was killed with everything else. */
const DRAINING_MS = 2_000;

const verdictIn = (
  folder: string,
  view: ProcessView,
  { isFenced }: CommandRecord,
): ReturnType<FoundCommand['verdict']> => {
  const spool = openSpool(folder, view);
  try {
    const isAlive = spool.isAlive();
    const status = spool.status();
    const verdict = verdictOf({ isClaimed: spool.isClaimed(), status, isAlive, why: spool.why() });
    // Without a fence only the runner holds the pipe, and may have been killed alone.
    const isUnseen = view === 'foreign' && (status.alivePipe === null || !isFenced);
    return verdict.kind === 'killed' && verdict.why === 'lost' && isUnseen ? { kind: 'unseen' } : verdict;
  } finally {
    spool.close();
  }
};

const readLeftIn = (folder: string): ReturnType<FoundCommand['readLeft']> => {
  const spool = openSpool(folder, 'foreign');
  try {
    const { exitCode, endedAt } = spool.status();
    return { exitCode, endedAt, hasBegun: spool.isClaimed() };
  } finally {
    spool.close();
  }
};

const readOutputIn = (folder: string, to: OutputReceiver): void => {
  const reader = createSpoolReader(folder, { hasGaps: true, keepsPieces: true });
  try {
    reader.read(Number.POSITIVE_INFINITY, to);
  } finally {
    reader.close();
  }
};

const foundIn = (folder: string, view: ProcessView): FoundCommand | null => {
  const order = readOrder(folder);
  if (order === null) return null;
  const isDirect = !existsSync(path.join(folder, 'status'));
  return {
    ...order,
    view,
    verdict() {
      if (isDirect) return { kind: view === 'own' ? 'direct' : 'unseen' };
      return verdictIn(folder, view, order.record);
    },
    claim() {
      const spool = openSpool(folder, view);
      spool.close();
      return spool.claim();
    },
    readLeft: () => (isDirect ? { exitCode: null, endedAt: null, hasBegun: true } : readLeftIn(folder)),
    readOutput: (to) => readOutputIn(folder, to),
    follow(to) {
      const spool = openSpool(folder, view);
      const { process } = spool.status();
      const isAlive = view === 'own' && spool.isAlive();
      if (view === 'own') spool.attach();
      const command = attachCommand(spool, to, { drainingMs: DRAINING_MS });
      return {
        process: isAlive ? process : null,
        ended: command.ended,
        cancelled: () => command.cancelled(),
      };
    },
  };
};

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return []; // no command was started
  }
};

/** The launcher's commands have numbers. A direct start may be the second attempt of one of them, so it comes later. */
const rankOf = (name: string): number => (/^\d+$/.test(name) ? Number(name) : Number.MAX_SAFE_INTEGER);

/** The commands that were ordered, the oldest first. */
export const findCommands = (folder: string, view: ProcessView): readonly FoundCommand[] =>
  namesIn(folder)
    .toSorted((one, other) => rankOf(one) - rankOf(other))
    .map((name) => foundIn(path.join(folder, name), view))
    .filter((found) => found !== null);

export const isCommandAlive = (found: FoundCommand): boolean => {
  const { kind } = found.verdict();
  return kind === 'running' || kind === 'draining';
};
