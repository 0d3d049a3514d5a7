/**
 * What the calls of the agent did to HEAD. Known from looks at the repository before and after each
 * call, at little more than a few files of git.
 */

import path from 'node:path';
import type { Settings } from '../machine/settings.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isFolder, isWithin } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { BatchContext, HookContext, HookReport } from '../ports/hooks.js';
import { type GitPlace, KnownRepository, useRepository } from './git.js';
import {
  changeByCalls,
  describeChange,
  findHeadChange,
  findLocalFiles,
  type HeadMove,
  type HeadMover,
  noteMoves,
  warnOfMoves,
} from './head-changes.js';
import {
  isSameHead,
  RefFiles,
  type Refs,
  readRefs,
  readRefsNow,
  takeSnapshot,
} from './repository-snapshot.js';

/** The report if nothing happened. */
export const QUIET: HookReport = {
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true, // the turn goes on
};

const BEFORE_MS = 10_000;
/** After this many failures calls run without a look before them. */
const FAILURES_MAX = 3;

/** The last look, and what has run since. */
type LastLook = {
  /** Null: there is no repository. */
  readonly view: Refs | null;
  /** `unknown`: a later look failed. */
  readonly since: { readonly callId: string } | 'nothing' | 'unknown';
};

/** A move of HEAD that is not reported yet, and whose it is. */
type UnreportedMove = { readonly by: HeadMover; readonly from: Refs; readonly to: Refs };

/**
 * The phase CheckingGitCommits: determines what the agent's calls did to the repository. (Phases
 * are states of the machine after a batch, the tool calls of one reply.) One per session.
 *
 * The repository is looked at before each mutating call, after each batch and after a cancelled
 * call; with auto-commit after each call. All moves between the look before a call and the next
 * look belong to it. No process is started without a repository, for a batch without calls, or if
 * HEAD has not changed, but for auto-commit. A failed look is reported, and moves that nobody saw
 * count as nobody's.
 */
export class CommitWatch {
  readonly #environment: ProcessEnvironment;
  readonly #known: KnownRepository;
  readonly #refFiles = new RefFiles();
  #last: LastLook | null = null;
  #moves: readonly UnreportedMove[] = [];
  /** Failures of git that are reported already. */
  readonly #warned = new Set<string>();
  /** Failures of looks before calls that are not reported yet. */
  #failures: string[] = [];
  /** Failed looks before calls, without a successful one between them. */
  #failuresInRow = 0;
  /** The text of the last call of `unlessRepeated`. */
  #lastText = '';
  /** Settles when all tasks so far have ended. */
  #queue: Promise<unknown> = Promise.resolve();
  /** Number of tasks in the queue. */
  #waiting = 0;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(environment: ProcessEnvironment, now?: () => number) {
    this.#environment = environment;
    this.#known = new KnownRepository(environment, now);
  }

  /** The watched repository. */
  place(workspace: string, signal: AbortSignal): GitPlace {
    return { workspace, environment: this.#environment, signal, known: this.#known };
  }

  /**
   * Looks at the repository before a call, after the tasks so far, for at most BEFORE_MS. Never
   * rejects.
   */
  before({ callId }: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#failuresInRow >= FAILURES_MAX) return this.#loseTrack();
      await this.#tryLook(settings, { callId });
    });
  }

  /**
   * Looks at the repository after a call: the runtime knows that the call caused the changes since
   * the look before it. Never rejects.
   */
  after({ callId }: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(async () => {
      const since = this.#last?.since;
      if (typeof since !== 'object' || since.callId !== callId) return;
      await this.#tryLook(settings, 'nothing');
    });
  }

  /**
   * Runs the phase. `recent`: real absolute paths of files that the calls changed. Without a
   * repository only those count that the calls name. A git failure is reported once.
   */
  check(context: HookContext, recent: readonly string[]): Promise<HookReport> {
    return this.#inTurn(async () => {
      const { calls, workspace, signal } = context;
      if (calls.length === 0 && recent.length === 0) return QUIET;
      try {
        const place = this.place(workspace, signal);
        const view = await this.#look(place, 'nothing');
        if (view !== null) return await this.#report(place, view, context, recent);
      } catch (error) {
        this.#loseTrack();
        this.#moves = [];
        if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
        if (!this.#warned.has(error.message)) {
          this.#warned.add(error.message);
          throw error;
        }
      }
      return { ...QUIET, changedFiles: namedFiles(calls), warning: this.#takeWarnings() };
    });
  }

  /**
   * The report, if it is possible synchronously because nothing happened except that calls named
   * files; null: use `check`.
   */
  checkNow({ calls, workspace }: BatchContext): HookReport | null {
    const last = this.#last;
    const isPlain = this.#waiting + this.#failures.length + this.#moves.length === 0;
    if (!isPlain || last === null || last.since === 'unknown' || calls.length === 0) return null;
    const view = readRefsNow(workspace, this.#known, this.#refFiles);
    if (view === 'unknown' || !isSameView(last.view, view)) return null;
    this.#last = { view, since: 'nothing' };
    return { ...QUIET, changedFiles: namedFiles(calls, view) };
  }

  /** Announces our commit, which is not reported as new. */
  expectCommit(hash: string): void {
    const last = this.#last;
    if (last === null || last.view === null) return;
    const { head, tips } = last.view;
    const view = { ...last.view, head: { ...head, hash }, tips: [...tips, hash] };
    this.#last = { ...last, view };
  }

  /** The text; empty if it equals the last one, so no warning comes twice in a row. */
  unlessRepeated(text: string): string {
    const isRepeated = text === this.#lastText;
    this.#lastText = text;
    return isRepeated ? '' : text;
  }

  // ---- Looks ----

  /** Runs one task at a time, in order. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#queue.then(work);
    const done = (): void => {
      this.#waiting -= 1;
    };
    this.#queue = result.then(done, done); // the caller gets the failure
    return result;
  }

  /** Looks within a time limit. A failure is reported with the next report. */
  async #tryLook({ workspace }: Settings, next: LastLook['since']): Promise<void> {
    const signal = AbortSignal.timeout(BEFORE_MS);
    try {
      await this.#look(this.place(workspace, signal), next);
      this.#failuresInRow = 0;
    } catch (error) {
      this.#loseTrack();
      this.#failuresInRow += 1;
      const message = error instanceof Error ? error.message : String(error);
      const why = signal.aborted ? `it took longer than ${BEFORE_MS / 1000} s` : message;
      const more =
        this.#failuresInRow === FAILURES_MAX
          ? '. It is not read before calls any more in this session'
          : '';
      this.#failures.push(`${why}${more}`);
    }
  }

  /** Looks, and notes how HEAD has moved since the last time. `next`: what runs from now on. */
  async #look(place: GitPlace, next: LastLook['since']): Promise<Refs | null> {
    const view = await readRefs(place, this.#refFiles);
    const last = this.#last;
    if (view === null || (last?.view != null && last.view.top !== view.top)) this.#moves = [];
    else if (last !== null) this.#addMove(last, view);
    this.#last = { view, since: next };
    return view;
  }

  /** Records a move of HEAD. Successive moves by the same mover become one. */
  #addMove({ view: before, since }: LastLook, to: Refs): void {
    // another program has made the repository
    if (before === null && since === 'nothing') return;
    const by = since === 'nothing' ? 'others' : since === 'unknown' ? 'unknown' : 'calls';
    // without a repository before, the calls made it, with all its commits
    const from = before ?? unborn(to);
    if (isSameHead(from.head, to.head)) return;
    const last = this.#moves.at(-1);
    this.#moves =
      last?.by === by
        ? [...this.#moves.slice(0, -1), { ...last, to }]
        : [...this.#moves, { by, from, to }];
  }

  /** A look failed: who moves HEAD until the next one is unknown. */
  #loseTrack(): void {
    if (this.#last !== null) this.#last = { ...this.#last, since: 'unknown' };
  }

  // ---- The report ----

  async #report(
    place: GitPlace,
    view: Refs,
    { calls, settings }: HookContext,
    recent: readonly string[],
  ): Promise<HookReport> {
    const moves: HeadMove[] = [];
    for (const { by, from, to } of this.#moves) {
      const change = await useRepository(place, (repository) =>
        findHeadChange(repository, from, to.head),
      );
      if (change !== null) moves.push({ by, change });
    }
    const byCalls = changeByCalls(moves);
    const first = this.#moves.find(({ by }) => by === 'calls')?.from;
    this.#moves = [];
    const isNeeded = settings.autoCommit === 'on' || (first !== undefined && recent.length > 0);
    const changed = isNeeded
      ? ((await useRepository(place, (one) => takeSnapshot(one, view)))?.changed ?? null)
      : null;
    let changedFiles = recent;
    if (first !== undefined && recent.length > 0) {
      // contents that a switch, a merge or a fetch brought are not the calls'
      const local = await useRepository(place, (one) =>
        findLocalFiles(one, first, view, byCalls.commits),
      );
      const names = new Set([...(changed?.keys() ?? []), ...(local ?? [])]);
      changedFiles = recent.filter((file) => names.has(path.relative(view.top, file)));
    }
    return {
      commits: byCalls.commits.map((commit) => ({
        hash: commit.hash,
        subject: describeChange(commit.subject, commit),
      })),
      changedFiles: [...new Set([...changedFiles, ...namedFiles(calls, view)])],
      dirty: changed !== null && changed.size > 0,
      note: noteMoves(moves, view, changed?.size ?? null),
      warning: [warnOfMoves(byCalls), this.#takeWarnings()]
        .filter((text) => text !== '')
        .join('\n'),
      proceed: true,
    };
  }

  /** Warnings of failed looks before calls, without repetitions. */
  #takeWarnings(): string {
    const news = [...new Set(this.#failures)].filter((text) => !this.#warned.has(text));
    this.#failures = [];
    for (const text of news) this.#warned.add(text);
    return news
      .map(
        (text) =>
          `The repository could not be read before a call: ${text}. Who makes commits meanwhile ` +
          'is not known.',
      )
      .join('\n');
  }
}

/** Whether HEAD is the same in both views. */
const isSameView = (one: Refs | null, other: Refs | null): boolean =>
  one === null || other === null
    ? one === other
    : one.top === other.top && isSameHead(one.head, other.head);

/** The refs of a repository before its first commit. */
const unborn = ({ top, gitFolder, head }: Refs): Refs => ({
  top,
  gitFolder,
  head: { ...head, hash: null },
  tips: [],
  remoteTips: [],
  stash: null,
});

/** The files, not folders, that calls name, without those of git. */
const namedFiles = (calls: readonly JudgedCall[], view: Refs | null = null): readonly string[] =>
  [...new Set(calls.flatMap(({ facts }) => facts.paths))].filter(
    (file) => !isFolder(file) && (view === null || !isWithin(file, view.gitFolder)),
  );
