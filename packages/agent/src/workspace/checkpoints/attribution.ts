/**
 * Who changed a path: a function of when it changed, of when commands ran, and of what tools for
 * files wrote (`attribute`). It decides what a rewind takes back, and what auto-commit commits.
 */

import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CallBatch, CommandRun } from './batch.js';
import { foldersAround, lookAt, readState, whyUnknown } from './file-entries.js';
import type { Differences, KnownFiles, ReadBlobs } from './known-files.js';
import { type FileState, type PathChange, showName, UNOWNED } from './manifest.js';

/** The kernel's clock for files ticks this often, so a change may look older by as much. */
export const CLOCK_LAG_MS = 10;

/** What ran at some time: a command; perhaps something that one started; nothing since, or yet. */
export type Moment = 'command' | 'perhapsJob' | 'afterCommands' | 'beforeCommands';

const findMoment = (runs: readonly CommandRun[], atMs: number): Moment => {
  const isIn = (run: CommandRun, toMs: number) => atMs >= run.fromMs - CLOCK_LAG_MS && atMs <= toMs;
  if (runs.some((run) => isIn(run, run.toMs))) return 'command';
  if (runs.some((run) => isIn(run, run.jobsToMs))) return 'perhapsJob';
  // a command may have changed it before
  return runs.some(({ fromMs }) => atMs > fromMs) ? 'afterCommands' : 'beforeCommands';
};

/** What is known of a change. */
export type ChangeFacts = {
  readonly moment: Moment;
  /** A tool for files of the same batch has named the path. */
  readonly isNamed: boolean;
  /**
   * What a tool last wrote there: sha256; null: nothing is known of it; `any`: tools are not asked,
   * so that what they have named counts as theirs.
   */
  readonly written: string | null | 'any';
};

type Facts = Omit<ChangeFacts, 'written'> & {
  /** The bytes that a tool last wrote are known; the file has them now; it had them before. */
  readonly areBytesKnown: boolean;
  readonly hasBytes: boolean;
  readonly hadBytes: boolean;
  /** Bytes say nothing: tools are not asked, or it is a folder. */
  readonly isWithoutBytes: boolean;
};

type Rule = {
  readonly when: (facts: Facts) => boolean;
  /** Null: it is somebody else's. */
  readonly says: Pick<PathChange, 'origin' | 'unsure'> | null;
  /** The content after is somebody else's, so no rewind may take it. */
  readonly isReplaced?: true;
};

/** The first that fits decides: bytes that a tool wrote tell more than the time of a change. */
const RULES: readonly Rule[] = [
  {
    when: ({ isNamed, isWithoutBytes, hasBytes }) => isNamed && (isWithoutBytes || hasBytes),
    says: { origin: 'tool' },
  },
  // a formatter also writes what commands changed; a new mode alone is not its work
  {
    when: ({ hasBytes, hadBytes, moment }) => hasBytes && !hadBytes && moment !== 'command',
    says: { origin: 'tool' },
  },
  { when: ({ moment }) => moment === 'command', says: { origin: 'commands' } },
  { when: ({ moment }) => moment === 'perhapsJob', says: { origin: 'commands', unsure: true } },
  // no command ran, so another program replaced the bytes of the tool before they were seen
  {
    when: ({ isNamed, areBytesKnown, hadBytes }) => isNamed && areBytesKnown && !hadBytes,
    says: { origin: 'tool' },
    isReplaced: true,
  },
  { when: ({ moment }) => moment === 'afterCommands', says: { origin: UNOWNED } },
  { when: () => true, says: null },
];

/** What a tool wrote, where somebody else changed the file before a look. */
const NOT_SEEN: FileState = { kind: 'notKept', why: 'somebody else changed it at once' };

/** The change with who made it, as it is stored; null: it is somebody else's. */
export const attribute = (
  change: PathChange,
  { moment, isNamed, written }: ChangeFacts,
): PathChange | null => {
  const { before, after } = change;
  const hasBytes = (state: FileState): boolean => state.kind === 'file' && state.sha256 === written;
  const facts: Facts = {
    moment,
    isNamed,
    isWithoutBytes: written === 'any' || after.kind === 'folder',
    areBytesKnown: written !== null,
    hasBytes: hasBytes(after),
    hadBytes: hasBytes(before),
  };
  const rule = RULES.find(({ when }) => when(facts));
  if (rule === undefined || rule.says === null) return null;
  return { ...change, ...(rule.isReplaced ? { after: NOT_SEEN } : {}), ...rule.says };
};

// ---- When a path changed ----

/** At which moment each of these paths changed. `known`: as they were before. */
const findMoments = (
  workspace: string,
  known: KnownFiles,
  changed: Differences,
  runs: readonly CommandRun[],
): ReadonlyMap<string, Moment> => {
  /** Folders that commands made or moved, and when: files that came with them keep their times. */
  const moved = new Map<string, number>();
  for (const [name, entry] of changed) {
    if (entry?.kind !== 'folder' || known.get(name)?.entry.inode === entry.inode) continue;
    const moment = findMoment(runs, entry.changedAtMs);
    if (moment === 'command' || moment === 'perhapsJob') moved.set(name, entry.changedAtMs);
  }
  const moments = new Map<string, Moment>();
  for (const [name, entry] of changed) {
    const movedAtMs = foldersAround([name]).flatMap((folder) => moved.get(folder) ?? [])[0];
    const changedAtMs = movedAtMs ?? entry?.changedAtMs ?? findRemoval(workspace, name);
    // a command closed a folder around it, which is reported later
    const isClosed = entry === null && whyUnknown(workspace, name) !== null;
    moments.set(name, isClosed ? 'command' : findMoment(runs, changedAtMs));
  }
  return moments;
};

/** When a path that is not there was removed at the latest: then its folder changed last. */
const findRemoval = (workspace: string, name: string): number => {
  for (const folder of ['', ...foldersAround([name])].toReversed()) {
    const entry = lookAt(workspace, folder);
    if (entry !== null) return entry.changedAtMs;
  }
  return Number.POSITIVE_INFINITY;
};

// ---- The changes of a batch ----

type ChangeSources = {
  readonly workspace: string;
  readonly known: KnownFiles;
  readonly readBlobs: ReadBlobs;
  /** sha256 of what a tool last wrote to a file. Absent: only tools change what they name. */
  readonly written?: (file: string) => string | undefined;
  /** sha256 of what the model last saw of a file. */
  readonly seen?: (file: string) => string | undefined;
};

/** After so many files other work gets a turn. */
const SLICE = 16;

/**
 * Adds to a batch what its calls changed, of paths that differ from what is known. All of them are
 * known as they are now after it. `runs`: when commands ran. Returns whether a folder is closed, so
 * that nobody knows what is in it.
 */
export const addChanges = async (
  sources: ChangeSources,
  batch: CallBatch,
  changed: Differences,
  runs: readonly CommandRun[],
): Promise<boolean> => {
  const { workspace, known, readBlobs } = sources;
  const { named } = batch;
  const moments = findMoments(workspace, known, changed, runs);
  const isOfCalls = (name: string): boolean =>
    moments.get(name) !== 'beforeCommands' || named.has(name);
  const byCalls = [...moments].filter(([name]) => isOfCalls(name));
  await known.fetchBlobs(new Map(byCalls).keys(), readBlobs);
  for (const name of moments.keys()) if (!isOfCalls(name)) await known.note(name);
  const put = known.putter(byCalls.length);
  let isClosed = false;
  for (const [at, [name, moment]] of byCalls.entries()) {
    if (at % SLICE === SLICE - 1) await nextTurn();
    if (whyUnknown(workspace, name) !== null) {
      isClosed = true;
      continue;
    }
    const before = known.state(name);
    batch.noteBefore(name, known.get(name) ?? null);
    const after = await readState(workspace, name, put);
    known.learn(name, after);
    const isNamed = named.has(name);
    const written = findWritten(sources, name, batch);
    const change = attribute({ path: name, before, after }, { moment, isNamed, written });
    // not `isSameState`: two states that are not kept for the same reason are no change either
    if (change !== null && JSON.stringify(before) !== JSON.stringify(change.after))
      batch.changes.push(change);
  }
  return isClosed;
};

/** What tools wrote to a file; of a killed process it is known only as what the model saw. */
const findWritten = (
  { workspace, written, seen }: ChangeSources,
  name: string,
  { isKilled }: CallBatch,
): string | null | 'any' => {
  const file = path.join(workspace, showName(name));
  const sha256 = written?.(file) ?? (isKilled ? seen?.(file) : undefined);
  return sha256 ?? (written === undefined ? 'any' : null);
};
