import path from 'node:path';
import type { JudgedCall } from '../../agent/call.js';
import type { Settings } from '../../agent/settings.js';
import type { ProcessEnvironment } from '../../base/process-environment-type.js';
import { isWithin } from '../../files/is-within.js';
import type { BatchContext, HookContext, HookReport } from '../../ports/after-tool-hooks.js';
import { createAgentChanges } from '../agent-changes.js';
import { callChangesBetween, isFolder, namedFiles, namedFilesNow, noteCallChanges } from '../call-changes.js';
import { type GitPlace, useRepository } from '../git/git.js';
import { KnownRepository } from '../git/repository-cache.js';
import { isSameView, type RepositoryView, RepositoryViews, snapshotOf } from '../observe-repository.js';
import { ProgramFailure } from '../run-program.js';
import type { WorktreeSnapshot } from '../worktree-snapshot.js';
import { type CommitWatch, QUIET } from './commit-watch-type.js';
import { byCalls, describeCommit, type HeadMover, noteOf, warningOf } from './head-movement-notes.js';
import { RepositoryEvents, unborn } from './repository-events-since-report.js';

export type WatchNeeds = {
  /** Pawl's own environment. */
  readonly environment: ProcessEnvironment;
  /** Whether a formatter may apply to files that a command changes anywhere below the workspace. */
  isFormatted(place: GitPlace): Promise<boolean>;
  /** Time limit for the observation before a call. Default: BEFORE_MS. */
  readonly beforeMs?: number;
  /** The file system's time, in ms since 1970. */
  readonly now?: () => number;
};

const BEFORE_MS = 10_000;
/** After this many failures no more observations are made before calls. */
const BLIND_MAX = 3;

type Running = { readonly call: JudgedCall; readonly tree: boolean };
/** The last observation, and what has run since. */
type Last = { readonly view: RepositoryView; readonly since: Running | 'nothing' | 'unknown' };
type Seen = Extract<RepositoryView, { readonly kind: 'seen' }>;

const moverOf = (since: Last['since']): HeadMover =>
  since === 'nothing' ? 'others' : since === 'unknown' ? 'unknown' : 'calls';

/**
 * The phase CheckingGitCommits: determines what the agent's calls did to the repository. Also records what
 * AutoCommitting needs.
 *
 * 1. One watch per session observes the repository before each mutating call, after each batch, and after a call whose
 *    batch gets no report. So changes by the calls can be distinguished from changes between them.
 * 2. A call made all changes between the observation before it and the next one, however it ended.
 * 3. A call that names files changed those. A call that names a folder (a command) made all changes below it.
 * 4. A snapshot of the tree is taken only if needed: for auto-commit, or for a formatter of files that a command
 *    changed.
 * 5. No process is started without a repository, for a batch without calls, or if no ref has changed and no snapshot is
 *    needed.
 * 6. A failed observation is reported, and unobserved changes count as nobody's.
 */
class Watch implements CommitWatch {
  readonly agentChanges = createAgentChanges();
  readonly #needs: WatchNeeds;
  readonly #known: KnownRepository;
  readonly #views = new RepositoryViews();
  #last: Last | null = null;
  readonly #happened = new RepositoryEvents();
  /** From the last report: snapshots before the change of each file, and before the batch. */
  #before: {
    readonly files: ReadonlyMap<string, WorktreeSnapshot>;
    readonly began: WorktreeSnapshot | null;
  } | null = null;
  readonly #told = new Set<string>();
  #unsaid: string[] = [];
  #blind = 0;
  #lastNews = '';
  #queue: Promise<unknown> = Promise.resolve();
  /** Number of tasks in the queue. */
  #waiting = 0;

  constructor(needs: WatchNeeds) {
    this.#needs = needs;
    this.#known = new KnownRepository(needs.environment, needs.now);
  }

  place(workspace: string, signal: AbortSignal): GitPlace {
    return { workspace, environment: this.#needs.environment, signal, known: this.#known };
  }

  before(call: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#blind >= BLIND_MAX) return this.#lose();
      await this.#tryLook(settings, async (place) => {
        const tree = await this.#needsTree(call, settings, place);
        const view = await this.#look(place, settings, tree);
        this.#last = { view, since: { call, tree } };
        this.#happened.begin(snapshotOf(view));
      });
    });
  }

  after(call: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(async () => {
      const since = this.#last?.since;
      if (typeof since !== 'object' || since.call.callId !== call.callId) return;
      this.#happened.end(call);
      await this.#tryLook(settings, async (place) => {
        const view = await this.#look(place, settings, false);
        if (settings.autoCommit === 'off' || view.kind === 'none' || view.tree === null) return;
        await noteCallChanges(call, this.#happened.changesOf(call), view.refs, this.agentChanges);
        this.agentChanges.settle(view.tree);
      });
    });
  }

  check(context: HookContext): Promise<HookReport> {
    return this.#inTurn(async () => {
      this.#before = null;
      if (context.calls.length === 0 && !this.#happened.isOwing()) return QUIET;
      const { workspace, settings, signal } = context;
      try {
        const place = this.place(workspace, signal);
        const view = await this.#look(place, settings, settings.autoCommit === 'on');
        if (view.kind === 'seen') return await this.#report(place, view, context);
        this.#forget();
      } catch (error) {
        this.#lose();
        this.#happened.clear();
        if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
        if (!this.#told.has(error.message)) {
          this.#told.add(error.message);
          throw error;
        }
      }
      return { ...QUIET, changedFiles: await namedFiles(context.calls), warning: this.#missed() };
    });
  }

  checkNow({ calls, settings, workspace }: BatchContext): HookReport | null {
    const last = this.#last;
    const isPlain = this.#waiting === 0 && this.#unsaid.length === 0 && this.#happened.isEmpty();
    if (!isPlain || last === null || calls.length === 0 || settings.autoCommit === 'on') return null;
    if (last.since === 'unknown' || (typeof last.since === 'object' && last.since.tree)) return null;
    const view = this.#views.lookNow(workspace, this.#known);
    if (view === null || !isSameView(last.view, view)) return null;
    this.agentChanges.forget();
    this.#last = { view, since: 'nothing' };
    this.#before = view.kind === 'seen' ? { files: new Map(), began: null } : null;
    const outside = (file: string): boolean => view.kind === 'none' || !isWithin(file, view.refs.gitFolder);
    return { ...QUIET, changedFiles: namedFilesNow(calls).filter(outside) };
  }

  snapshotBefore(file: string): WorktreeSnapshot | null {
    return this.#before?.files.get(file) ?? this.#before?.began ?? null;
  }

  expectCommit(hash: string): void {
    if (this.#last?.view.kind !== 'seen') return;
    const { refs, tree } = this.#last.view;
    const moved = { ...refs, head: { ...refs.head, hash }, tips: [...refs.tips, hash] };
    this.#last = { ...this.#last, view: { kind: 'seen', refs: moved, tree } };
  }

  unlessRepeated(text: string): string {
    const known = text === this.#lastNews;
    this.#lastNews = text;
    return known ? '' : text;
  }

  /** Runs one task at a time, in order. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const done = this.#queue.then(work);
    const over = (): void => {
      this.#waiting -= 1;
    };
    this.#queue = done.then(over, over); // the caller gets the failure
    return done;
  }

  /** Observes within a time limit. A failure is reported with the next report. */
  async #tryLook({ workspace }: Settings, look: (place: GitPlace) => Promise<unknown>): Promise<void> {
    const { beforeMs = BEFORE_MS } = this.#needs;
    const signal = AbortSignal.timeout(beforeMs);
    try {
      await look(this.place(workspace, signal));
      this.#blind = 0;
    } catch (error) {
      this.#lose();
      this.#blind += 1;
      const why = signal.aborted
        ? `it took longer than ${beforeMs / 1000} s`
        : error instanceof Error
          ? error.message
          : String(error);
      const more = this.#blind === BLIND_MAX ? ' It is not read before calls any more in this session.' : '';
      this.#unsaid.push(`${why}.${more}`);
    }
  }

  /** Warnings about failed observations before calls, without repetitions. */
  #missed(): string {
    const news = [...new Set(this.#unsaid)].filter((text) => !this.#told.has(text.replace(/\.$/, '')));
    this.#unsaid = [];
    for (const text of news) this.#told.add(text.replace(/\.$/, ''));
    return news
      .map(
        (text) =>
          `The repository could not be read before a call: ${text} Changes made meanwhile can't be distinguished from your own, so they are neither formatted nor committed.`,
      )
      .join('\n');
  }

  /** Rule 4. */
  async #needsTree(call: JudgedCall, settings: Settings, place: GitPlace): Promise<boolean> {
    if (settings.autoCommit === 'on') return true;
    if (settings.formatter === 'off') return false;
    const folders = await Promise.all(call.facts.paths.map(isFolder));
    return folders.includes(true) && (await this.#needs.isFormatted(place));
  }

  /**
   * Observes the repository and records the changes since the last time. Includes the tree if it is needed now or for
   * the last call.
   */
  async #look(place: GitPlace, settings: Settings, withTree: boolean): Promise<RepositoryView> {
    const last = this.#last;
    const awaited = typeof last?.since === 'object' && last.since.tree;
    const view = await this.#views.look(place, withTree || awaited);
    if (settings.autoCommit === 'off') this.agentChanges.forget();
    if (last !== null) await this.#compare(last, view, place, settings);
    else if (settings.autoCommit === 'on') this.#notice(view);
    this.#last = { view, since: 'nothing' };
    return view;
  }

  #notice(view: RepositoryView, unseen?: 'unseen'): void {
    const snapshot = snapshotOf(view);
    if (snapshot !== null) this.agentChanges.notice(snapshot.changed, unseen);
  }

  async #compare(
    { view, since }: Last,
    now: RepositoryView,
    place: GitPlace,
    settings: Settings,
  ): Promise<void> {
    const [before, after] = [snapshotOf(view), snapshotOf(now)];
    if (now.kind === 'none') return this.#forget();
    const isOther = view.kind === 'seen' && view.refs.top !== now.refs.top;
    if (isOther) this.#forget();
    else if (view.kind === 'seen') this.#happened.move(moverOf(since), view.refs, now.refs);
    else if (since !== 'nothing') this.#happened.move(moverOf(since), unborn(now.refs), now.refs);
    if (typeof since === 'object') {
      if (before === null || after === null || isOther) return;
      const ask = <T>(work: Parameters<typeof useRepository<T>>[1]) => useRepository(place, work);
      this.#happened.add(await callChangesBetween(since.call, before, after, ask));
    } else if (settings.autoCommit === 'on') this.#notice(now, since === 'unknown' ? 'unseen' : undefined);
  }

  /** Forgets everything, since the repository is gone or another one. */
  #forget(): void {
    this.agentChanges.forget();
    this.#happened.clear();
  }

  /** An observation failed: the author of changes until the next one is unknown. */
  #lose(): void {
    if (this.#last !== null) this.#last = { ...this.#last, since: 'unknown' };
  }

  async #report(place: GitPlace, { refs, tree }: Seen, context: HookContext): Promise<HookReport> {
    const { calls, settings } = context;
    const now = tree === null ? null : { ...refs, changed: tree };
    const moved = await this.#happened.moved(place);
    const within = byCalls(moved);
    const made = await this.#happened.made(place, now, within);
    const changed = new Set(made.map((name) => path.join(refs.top, name)));
    const agentChanges = settings.autoCommit === 'on' ? this.agentChanges : null;
    const files = new Map<string, WorktreeSnapshot>();
    for (const { call, before, noted } of this.#happened.toNote(calls)) {
      const changes = this.#happened.changesOf(call);
      for (const file of await noteCallChanges(call, changes, refs, noted ? null : agentChanges)) {
        changed.add(file);
        if (before !== null && !files.has(file)) files.set(file, before);
      }
    }
    if (now !== null) agentChanges?.settle(now.changed);
    this.#before = { files, began: this.#happened.began };
    this.#happened.clear();
    return {
      commits: within.commits.map(describeCommit),
      changedFiles: [...changed],
      dirty: tree !== null && tree.size > 0,
      note: noteOf(moved, refs, tree?.size ?? null),
      warning: [warningOf(within), this.#missed()].filter((text) => text !== '').join('\n'),
      proceed: true,
    };
  }
}

/** The watch of one session. */
export const createCommitWatch = (needs: WatchNeeds): CommitWatch => new Watch(needs);
