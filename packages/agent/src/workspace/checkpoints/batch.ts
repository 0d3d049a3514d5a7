/**
 * The calls since the last checkpoint: when they ran, which files they named, and what looks have
 * found that they changed. What has to survive a kill is also in a record beside the store
 * (`RunningCalls`), from which the next process makes the batch again.
 */

import {
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { attemptNow } from '../../platform/attempt.js';
import type { GitState } from './git-state.js';
import type { Known } from './known-files.js';
import type { PathChange, RefState } from './manifest.js';
import type { CheckpointStore } from './store.js';

/**
 * When commands ran: certainly a command until `toMs`, and perhaps something until `jobsToMs`, such
 * as its jobs. Infinity: until now. `toMs` 0: no command, only something that may run (`mayRun`).
 */
export type CommandRun = {
  readonly fromMs: number;
  readonly toMs: number;
  readonly jobsToMs: number;
};

/** Something may run, such as a hook, or what a killed process has started. */
const mayRun = (fromMs: number): CommandRun => ({
  fromMs,
  toMs: 0,
  jobsToMs: Number.POSITIVE_INFINITY,
});

/** Like those runs, where nothing counts that happens later. */
export const endRuns = (runs: readonly CommandRun[], atMs: number): readonly CommandRun[] =>
  runs.map(({ fromMs, toMs, jobsToMs }) => ({
    fromMs,
    toMs: Math.min(toMs, atMs),
    jobsToMs: Math.min(jobsToMs, atMs),
  }));

/** The calls whose checkpoint is not in the journal yet. */
export type RunningCalls = {
  readonly ranFromMs: number;
  /** When the first command among them started; missing: there is none. */
  readonly commandsFromMs?: number;
  /** How the files were that calls have named; null: absent. */
  readonly known: readonly (readonly [string, Known | null])[];
  /** The commands among them: when each started and ended; null: it has not. */
  readonly commands?: readonly (readonly [callId: string, fromMs: number, toMs: number | null])[];
  /** HEAD, branches and index before; missing: none are known. */
  readonly git?: readonly (readonly [string, RefState])[];
  /** The session whose task this one is. */
  readonly parent?: string;
  /** Their checkpoint; null: none yet. */
  readonly taken: string | null;
};

export class CallBatch {
  readonly fromMs: number;
  /** HEAD, branches and index before the first call; null: none are known. */
  readonly git: GitState | null;
  /** When its commands ran, by the ids of their calls. */
  readonly #runsOfCalls = new Map<string, CommandRun>();
  /** When a command of the user, a job or something of a killed process may have run. */
  readonly #otherRuns: CommandRun[] = [];
  /** What looks have found so far, one after the other: a path may have several. */
  readonly changes: PathChange[] = [];
  /** How paths were before the first call that changed or named them; null: absent. */
  readonly before = new Map<string, Known | null>();
  /** Paths that tools for files have named, by the ids of their calls. */
  readonly #namedBy = new Map<string, readonly string[]>();
  /** Paths in the record: those, and files that commands have named and no scan lists. */
  readonly #recorded = new Set<string>();
  /** Its commands, as in the record; null: it has not ended. */
  readonly #commands = new Map<string, { readonly fromMs: number; readonly toMs: number | null }>();
  #commandsFromMs: number | undefined;
  /** The process that made the calls was killed. */
  readonly isKilled: boolean;
  #readsGit = true;

  constructor(git: GitState | null, fromMs = Date.now(), isKilled = false) {
    this.git = git;
    this.fromMs = fromMs;
    this.isKilled = isKilled;
  }

  /** The batch of a killed process: at any time since its beginning something may have run. */
  static fromRecord(record: RunningCalls): CallBatch {
    const git = record.git === undefined ? null : new Map(record.git);
    const batch = new CallBatch(git, record.ranFromMs, true);
    batch.#commandsFromMs = record.commandsFromMs;
    batch.addRun(mayRun(batch.fromMs));
    for (const [callId, fromMs, toMs] of record.commands ?? []) {
      batch.#commands.set(callId, { fromMs, toMs });
      if (toMs !== null) batch.#runsOfCalls.set(callId, { fromMs, toMs, jobsToMs: toMs });
    }
    for (const [name, known] of record.known) batch.before.set(name, known); // the last is the oldest
    batch.name([...batch.before.keys()], '');
    return batch;
  }

  /** Whether none of its calls may change git folders. What a killed process did is not known. */
  get readsGit(): boolean {
    return this.#readsGit && !this.isKilled;
  }

  /** A call that may change git folders begins. */
  noteGitWriter(): void {
    this.#readsGit = false;
  }

  /** When commands ran, or may have run. */
  get runs(): readonly CommandRun[] {
    return [...this.#runsOfCalls.values(), ...this.#otherRuns];
  }

  addRun(run: CommandRun): void {
    this.#otherRuns.push(run);
  }

  /** Whether a command has begun of which no end is known. */
  get hasOpenCommand(): boolean {
    return [...this.#commands.values()].some(({ toMs }) => toMs === null);
  }

  /** Notes how a path was, unless an earlier state is known. */
  noteBefore(name: string, known: Known | null): void {
    if (!this.before.has(name)) this.before.set(name, known);
  }

  /** Paths that tools for files have named: all that can change while no command runs. */
  get named(): ReadonlySet<string> {
    return new Set([...this.#namedBy.values()].flat());
  }

  /** A call names files, after `noteBefore`. `callId`: of a tool for files; null: a command. */
  name(names: readonly string[], callId: string | null): void {
    for (const name of names) this.#recorded.add(name);
    if (callId !== null)
      this.#namedBy.set(callId, [...(this.#namedBy.get(callId) ?? []), ...names]);
  }

  /** A command begins; null: one of the user, of which a record needs to know nothing. */
  begin(callId: string | null): void {
    const fromMs = Date.now();
    this.#commandsFromMs ??= fromMs;
    const run = { ...mayRun(fromMs), toMs: Number.POSITIVE_INFINITY };
    if (callId === null) this.addRun(run);
    else {
      this.#runsOfCalls.set(callId, run);
      this.#commands.set(callId, { fromMs, toMs: null });
    }
  }

  /** A call of a tool for files begins: hooks of the user may follow, which are commands. */
  expectHooks(callId: string): void {
    const fromMs = Date.now();
    this.#commandsFromMs ??= fromMs;
    this.#runsOfCalls.set(callId, mayRun(fromMs));
  }

  /** A command has ended. `mayGoOn`: something that it has started may run on. */
  end(callId: string, toMs: number, mayGoOn: boolean): void {
    const command = this.#commands.get(callId);
    if (command === undefined) return;
    const { fromMs } = command;
    this.#commands.set(callId, { fromMs, toMs });
    this.#runsOfCalls.set(callId, {
      fromMs,
      toMs,
      jobsToMs: mayGoOn ? Number.POSITIVE_INFINITY : toMs,
    });
  }

  /** A call that has begun does not run. */
  withdraw(callId: string): void {
    this.#namedBy.delete(callId);
    this.#commands.delete(callId);
    this.#runsOfCalls.delete(callId);
  }

  toRecord(parent: string | undefined): RunningCalls {
    const commandsFromMs = this.runs.length === 0 ? undefined : this.#commandsFromMs;
    return {
      ranFromMs: this.fromMs,
      ...(commandsFromMs === undefined ? {} : { commandsFromMs }),
      commands: [...this.#commands].map(([id, { fromMs, toMs }]) => [id, fromMs, toMs] as const),
      known: [...this.#recorded].flatMap((name) => {
        const known = this.before.get(name);
        return known === undefined ? [] : [[name, known] as const];
      }),
      ...(this.git === null ? {} : { git: [...this.git] }),
      ...(parent === undefined ? {} : { parent }),
      taken: null,
    };
  }
}

/*
 * The record of a session's running calls. It is written at the start of its file in one piece, so
 * a kill leaves the old or the new one, and no round waits for a rename and a removal. A line break
 * ends it; behind that may stand the rest of a longer one. The file is empty while nothing runs.
 */

/** The record; null: no call runs, or none had changed anything yet. */
export const readRunning = async (
  store: CheckpointStore,
  sessionId: string,
): Promise<RunningCalls | null> => {
  try {
    const [record = ''] = (await readFile(store.callsFile(sessionId), 'utf8')).split('\n');
    const running: RunningCalls = JSON.parse(record);
    return running;
  } catch {
    return null; // there is none; where it is damaged, nobody knows what the calls changed
  }
};

/**
 * Replaces the record; null: there is none. One that can't be written is removed: what it said
 * before does not hold any more.
 */
export const writeRunning = (
  store: CheckpointStore,
  sessionId: string,
  running: RunningCalls | null,
): void => {
  const record = Buffer.from(running === null ? '' : `${JSON.stringify(running)}\n`);
  const file = store.callsFile(sessionId);
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const handle = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600);
    try {
      if (writeSync(handle, record, 0, record.length, 0) < record.length)
        throw new Error('the disk is full');
      ftruncateSync(handle, record.length);
    } finally {
      closeSync(handle);
    }
  } catch {
    attemptNow(() => rmSync(file, { force: true }));
  }
};
