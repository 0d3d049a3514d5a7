import path from 'node:path';
import type { JudgedCall } from '../agent/call.js';
import type { HookContext, HookReport } from '../needs-hooks.js';
import { describeCommit, noteOf, warningOf } from './commit-words.js';
import { type Effect, effectBetween, namedFiles, noteEffect } from './effects.js';
import { type GitPlace, type Repository, useRepository } from './git.js';
import type { Environment } from './git-config.js';
import { KnownRepository } from './known-repository.js';
import { type Head, type Look, lookAt } from './look.js';
import { filesMade, type Movement, movementOf, STILL } from './movement.js';
import { ProgramFailure } from './program.js';
import { createTouched, type Touched } from './touched.js';

/**
 * What the agent's calls did to the repository (CheckingGitCommits), and the memory that AutoCommitting needs.
 *
 * 1. One watch per session. It looks before each mutating call and after each batch, so that what happened between
 *    the calls is told apart from what the calls did.
 * 2. A call that did not end ok is not held for the author of anything: what changed during it is nobody's.
 * 3. A call that names files changed those; one that names a folder (a command) changed what changed below it.
 * 4. Where there is no repository, nothing is said and no process is started; neither for a batch without calls.
 */
export type CommitWatch = {
  /** Looks at the repository before a call takes effect. Never rejects, and holds the call up BEFORE_MS at most. */
  before(call: JudgedCall, workspace: string): Promise<void>;
  /**
   * The phase. `changedFiles` are real absolute paths of files that the calls changed; one may be gone by now. Where
   * there is no repository, they are those that the calls name. A fault of git is told once, then kept quiet.
   */
  check(context: HookContext): Promise<HookReport>;
  /** What the batch that was checked last began with; null where that is not known. */
  began(): Look | null;
  readonly touched: Touched;
  /** The repository that it watches, as the workspace of this session sees it. */
  place(workspace: string, signal: AbortSignal): GitPlace;
  /** A commit of our own, which is no news. */
  expect(hash: string): void;
  /** The text, or nothing if it is what was said the last time. */
  news(text: string): string;
};

const BEFORE_MS = 5_000;
/** After so many failed looks before a call none are made any more: they cost time and lead nowhere. */
const BLIND_MAX = 3;

export const QUIET: HookReport = {
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
};

/** What was there: a repository, none, or it is not known. */
type Sight = { readonly kind: 'look'; readonly look: Look } | { readonly kind: 'none' | 'unknown' };

const EMPTY: Omit<Look, 'top' | 'head'> = {
  tips: [],
  remoteTips: [],
  stash: null,
  changed: new Map(),
};

class Watch implements CommitWatch {
  readonly touched = createTouched();
  readonly #environment: Environment;
  readonly #known: KnownRepository;
  /** At the end of the last batch. */
  #seen: Sight = { kind: 'unknown' };
  /** Before the first call since then. */
  #start: Sight | null = null;
  #began: Look | null = null;
  #last: { readonly callId: string; readonly look: Look } | null = null;
  #effects = new Map<string, Effect>();
  #told = new Set<string>();
  #blind = 0;
  #news = '';
  #queue: Promise<unknown> = Promise.resolve();

  constructor(environment: Environment) {
    this.#environment = environment;
    this.#known = new KnownRepository(environment);
  }

  place(workspace: string, signal: AbortSignal): GitPlace {
    return { workspace, environment: this.#environment, signal, known: this.#known };
  }

  before(call: JudgedCall, workspace: string): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#blind >= BLIND_MAX) return;
      const place = this.place(workspace, AbortSignal.timeout(BEFORE_MS));
      try {
        const look = await useRepository(place, async (repository) => {
          const now = await lookAt(repository);
          await this.#close(repository, now);
          return now;
        });
        if (this.#start === null && look !== null) this.touched.notice(look);
        this.#start ??= look === null ? { kind: 'none' } : { kind: 'look', look };
        this.#last = look === null ? null : { callId: call.callId, look };
        this.#blind = 0;
      } catch {
        // the phase after the call meets the same fault and tells it
        this.#start ??= { kind: 'unknown' };
        this.#last = null;
        this.#blind += 1;
      }
    });
  }

  check(context: HookContext): Promise<HookReport> {
    return this.#inTurn(async () => {
      this.#began = this.#start?.kind === 'look' ? this.#start.look : null;
      if (context.calls.length === 0) return QUIET;
      try {
        const place = this.place(context.workspace, context.signal);
        const report = await useRepository(place, (repository) => this.#report(repository, context));
        if (report !== null) return report;
        this.#forget({ kind: 'none' });
        return { ...QUIET, changedFiles: await namedFiles(context.calls) };
      } catch (error) {
        this.#forget(this.#seen);
        if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
        if (!this.#told.has(error.message)) {
          this.#told.add(error.message);
          throw error;
        }
        return { ...QUIET, changedFiles: await namedFiles(context.calls) };
      }
    });
  }

  began(): Look | null {
    return this.#began;
  }

  expect(hash: string): void {
    if (this.#seen.kind !== 'look') return;
    const { look } = this.#seen;
    this.#seen = {
      kind: 'look',
      look: { ...look, head: { ...look.head, hash }, tips: [...look.tips, hash] },
    };
  }

  news(text: string): string {
    const known = text === this.#news;
    this.#news = text;
    return known ? '' : text;
  }

  /** One thing at a time, in the order they were asked for. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.then(
      () => undefined,
      () => undefined, // whoever asked for it hears of it
    );
    return done;
  }

  #forget(seen: Sight): void {
    this.#seen = seen;
    this.#start = null;
    this.#last = null;
    this.#effects.clear();
  }

  /** Notes what changed since the look before the last call. */
  async #close(repository: Repository, now: Look): Promise<void> {
    const last = this.#last;
    this.#last = null;
    if (last === null || last.look.top !== now.top) return;
    this.#effects.set(last.callId, await effectBetween(repository, last.look, now));
  }

  async #report(repository: Repository, { calls }: HookContext): Promise<HookReport> {
    const now = await lookAt(repository);
    await this.#close(repository, now);
    const start = this.#startOf(now);
    const between = await this.#between(repository, start.head);
    const within = await movementOf(repository, start, now.head);
    const made = await filesMade(repository, start, now, within);
    const changed = new Set(made.map((name) => path.join(now.top, name)));
    for (const call of calls) {
      const files = await noteEffect(call, this.#effects.get(call.callId), repository, this.touched);
      for (const file of files) changed.add(file);
    }
    this.touched.settle(now);
    this.#forget({ kind: 'look', look: now });
    return {
      commits: within.commits.map(describeCommit),
      changedFiles: [...changed],
      dirty: now.changed.size > 0,
      note: noteOf(between, within, now),
      warning: warningOf(within),
      proceed: true,
    };
  }

  /** What the batch began with. Where that is not known, it is taken to be as it is now: nothing is made up. */
  #startOf(now: Look): Look {
    const start = this.#start ?? this.#seen;
    if (start.kind === 'none') return { ...EMPTY, top: now.top, head: { ...now.head, hash: null } };
    if (start.kind === 'look' && start.look.top === now.top) return start.look;
    this.touched.forget();
    return now;
  }

  async #between(repository: Repository, start: Head): Promise<Movement> {
    const seen = this.#seen;
    if (seen.kind !== 'look' || seen.look.top !== repository.top) return STILL;
    return movementOf(repository, seen.look, start);
  }
}

/** The watch of one session; `environment` is the program's own. */
export const createCommitWatch = ({ environment }: { readonly environment: Environment }): CommitWatch =>
  new Watch(environment);
