/** The phase CheckingGitCommits: determines what the agent's calls did to the repository. */

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JudgedCall } from '../machine/call.js';
import type { Settings } from '../machine/settings.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, readTextOrEmptySync } from '../platform/files.js';
import { repositoryFolders } from '../platform/repository-folders.js';
import { ProgramFailure } from '../platform/run-program.js';
import type { BatchContext, HookContext, HookReport } from '../ports/hooks.js';
import {
  type AgentChanges,
  callChangesBetween,
  createAgentChanges,
  filesOfCall,
  isFolder,
  namedFiles,
  namedFilesNow,
  noteCallChanges,
  noteCutCall,
  noteUnseenCall,
  type SavedChanges,
  UNRECORDED,
  UNSEEN,
} from './agent-changes.js';
import { listClaims } from './commit-claim.js';
import { type GitPlace, locateRepository, useRepository, workWith } from './git.js';
import {
  byCalls,
  describeCommit,
  type HeadMover,
  isSameHead,
  noteOf,
  RepositoryEvents,
  unborn,
  warningOf,
} from './head-changes.js';
import { settleAbandoned } from './make-commit.js';
import { KnownRepository } from './repository-location.js';
import {
  askRefs,
  type ChangedFile,
  type ChangedFiles,
  RefFiles,
  type Refs,
  takeSnapshot,
  type WorktreeSnapshot,
} from './repository-snapshot.js';

type WatchNeeds = {
  /** Pawl's own environment. */
  readonly environment: ProcessEnvironment;
  /** Whether a formatter may apply to files that a command changes anywhere below the workspace. */
  isFormatted(place: GitPlace): Promise<boolean>;
  /** Time limit for the observation before a call. Default: BEFORE_MS. */
  readonly beforeMs?: number;
  /** The file system's time, in ms since 1970. */
  readonly now?: () => number;
  /** Where what a killed session knew is recorded (watch-record.ts). Without it nothing is recorded. */
  readonly recordFile?: string;
};

const BEFORE_MS = 10_000;
/** After this many failures no more observations are made before calls. */
const BLIND_MAX = 3;

/** `cut`: the call was running when an earlier process of the session ended, and the view is the one before it. */
type Running = { readonly call: JudgedCall; readonly tree: boolean; readonly cut?: true };
/** The last observation, and what has run since. */
type Last = { readonly view: RepositoryView; readonly since: Running | 'nothing' | 'unknown' };
type Seen = Extract<RepositoryView, { readonly kind: 'seen' }>;

const moverOf = (since: Last['since']): HeadMover =>
  since === 'nothing' ? 'others' : since === 'unknown' ? 'unknown' : 'calls';

/**
 * The phase CheckingGitCommits: determines what the agent's calls did to the repository. Also records what
 * AutoCommitting needs.
 *
 * 1. One watch per session observes the repository before each mutating call, after each batch and after a cancelled
 *    call; with auto-commit after each call. So changes by the calls can be distinguished from changes between them.
 * 2. A call made all changes between the observation before it and the next one, however it ended. They are recorded
 *    as the agent's at once, since a batch whose turn is cancelled gets no report.
 * 3. A call that names files changed those. A call that names a folder (a command) made all changes below it.
 * 4. A snapshot of the tree is taken only if needed: for auto-commit, or for a formatter of files that a command
 *    changed.
 * 5. No process is started without a repository, for a batch without calls, or if no ref has changed and no snapshot is
 *    needed.
 * 6. A failed observation is reported, and unobserved changes count as nobody's.
 * 7. With auto-commit what is known is recorded. If Pawl ended while a call ran, and the call changed files, nobody knows
 *    who changed what until the next observation: then all files are left alone, so that no part is committed.
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
  /** Calls that this process observed before they ran, and calls since the last report whose changes are recorded. */
  readonly #begun = new Set<string>();
  readonly #noted = new Set<string>();
  #hasRecord = false;
  readonly #told = new Set<string>();
  #unsaid: string[] = [];
  /** What became of commits of killed sessions; null until somebody looked. */
  #settled: readonly string[] | null = null;
  #blind = 0;
  #lastNews = '';
  #queue: Promise<unknown> = Promise.resolve();
  /** Number of tasks in the queue. */
  #waiting = 0;

  constructor(needs: WatchNeeds) {
    this.#needs = needs;
    this.#known = new KnownRepository(needs.environment, needs.now);
    this.#restore();
  }

  place(workspace: string, signal: AbortSignal): GitPlace {
    return { workspace, environment: this.#needs.environment, signal, known: this.#known };
  }

  before(call: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(settings, async () => {
      this.#begun.add(call.callId);
      if (this.#blind >= BLIND_MAX) return this.#lose();
      if (this.#cutCall()?.callId === call.callId) this.#last = null; // it had no effect: it runs only now
      await this.#tryLook(settings, async (place) => {
        const tree = await this.#needsTree(call, settings, place);
        const view = await this.#look(place, settings, tree);
        this.#last = { view, since: { call, tree } };
        this.#happened.begin(snapshotOf(view));
        this.#settled ??= await this.#settle(place, view);
      });
    });
  }

  after(call: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(settings, async () => {
      const last = this.#last;
      if (typeof last?.since !== 'object' || last.since.call.callId !== call.callId) return;
      // the runtime knows what became of the call: it ran until now, or its file is as it leaves it
      this.#last = { ...last, since: { call: last.since.call, tree: last.since.tree } };
      await this.#tryLook(settings, (place) => this.#look(place, settings, false));
    });
  }

  check(context: HookContext): Promise<HookReport> {
    return this.#inTurn(context.settings, async () => {
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
    const isPlain =
      this.#waiting === 0 &&
      this.#unsaid.length + (this.#settled?.length ?? 0) === 0 &&
      this.#happened.isEmpty();
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

  save({ autoCommit }: Settings): void {
    const { recordFile } = this.#needs;
    if (recordFile === undefined) return;
    const since = this.#last?.since;
    const before = snapshotOf(this.#last?.view);
    const running = typeof since === 'object' && before !== null ? { call: since.call, before } : null;
    const changes = this.agentChanges.save();
    const record = { version: 1, changes, noted: [...this.#noted], running } as const;
    if (autoCommit === 'on') writeRecord(recordFile, record);
    else if (this.#hasRecord) writeRecord(recordFile, null);
    this.#hasRecord = autoCommit === 'on';
  }

  /** Rule 7. */
  #restore(): void {
    const { recordFile } = this.#needs;
    const record = recordFile === undefined ? null : readRecord(recordFile);
    if (record === null) return;
    this.#hasRecord = true;
    this.agentChanges.restore(record.changes);
    for (const callId of record.noted) this.#noted.add(callId);
    if (record.running === null) return;
    const { call, before } = record.running;
    const { changed: tree, ...refs } = before;
    this.#last = { view: { kind: 'seen', refs, tree }, since: { call, tree: true, cut: true } };
  }

  #cutCall(): JudgedCall | null {
    const since = this.#last?.since;
    return typeof since === 'object' && since.cut === true ? since.call : null;
  }

  /** Runs one task at a time, in order, and records what is known afterwards. */
  #inTurn<T>(settings: Settings, work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const done = this.#queue.then(work).finally(() => this.save(settings));
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

  /** Warnings: commits of killed sessions, and failed observations before calls, without repetitions. */
  #missed(): string {
    const news = [...new Set(this.#unsaid)].filter((text) => !this.#told.has(text.replace(/\.$/, '')));
    this.#unsaid = [];
    for (const text of news) this.#told.add(text.replace(/\.$/, ''));
    const settled = this.#settled ?? [];
    this.#settled = [];
    const missed = news.map(
      (text) =>
        `The repository could not be read before a call: ${text} Changes made meanwhile can't be distinguished from your own, so they are neither formatted nor committed.`,
    );
    return [...settled, ...missed].join('\n');
  }

  /** Settles the commits of killed sessions, whose locks would stop every git command here. */
  async #settle(place: GitPlace, view: RepositoryView): Promise<readonly string[]> {
    if (view.kind === 'none' || listClaims(view.refs.gitFolder).length === 0) return [];
    return (await useRepository(place, settleAbandoned)) ?? [];
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
    const isCut = typeof since === 'object' && since.cut === true;
    if (isOther) this.#forget();
    else if (isCut)
      this.#happened.clear(); // who moved HEAD meanwhile is not known
    else if (view.kind === 'seen') this.#happened.move(moverOf(since), view.refs, now.refs);
    else if (since !== 'nothing') this.#happened.move(moverOf(since), unborn(now.refs), now.refs);
    const isOn = settings.autoCommit === 'on';
    if (typeof since === 'object' && before !== null && after !== null && !isOther) {
      const ask = <T>(work: Parameters<typeof useRepository<T>>[1]) => useRepository(place, work);
      const changes = await callChangesBetween(since.call, before, after, ask);
      if (isCut) await noteCutCall(changes, now.refs, this.agentChanges);
      else {
        this.#happened.add(changes);
        if (isOn) await noteCallChanges(changes, after, this.agentChanges);
      }
      this.#noted.add(since.call.callId);
    }
    if (isOn) this.#notice(now, since === 'unknown' ? 'unseen' : undefined);
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

  /** Calls of a batch that nobody observed: a look failed, or Pawl was killed and there is no record. */
  async #noteUnseen(calls: readonly JudgedCall[], { refs, tree }: Seen): Promise<void> {
    for (const call of calls) {
      if (this.#noted.has(call.callId)) continue;
      const isOfEarlier = !this.#begun.has(call.callId);
      if (isOfEarlier) this.agentChanges.leaveAll(UNRECORDED);
      const changed = isOfEarlier ? [...(tree?.keys() ?? [])] : [];
      const why = isOfEarlier ? UNRECORDED : UNSEEN;
      await noteUnseenCall(call, refs, this.agentChanges, { why, changed });
    }
  }

  async #report(place: GitPlace, { refs, tree }: Seen, context: HookContext): Promise<HookReport> {
    const { calls, settings } = context;
    const now = tree === null ? null : { ...refs, changed: tree };
    const moved = await this.#happened.moved(place);
    const within = byCalls(moved);
    const made = await this.#happened.made(place, now, within);
    const changed = new Set(made.map((name) => path.join(refs.top, name)));
    const files = new Map<string, WorktreeSnapshot>();
    for (const call of this.#happened.toReport(calls)) {
      const changes = this.#happened.changesOf(call);
      for (const file of await filesOfCall(call, changes, refs)) {
        changed.add(file);
        if (changes !== undefined && !files.has(file)) files.set(file, changes.before);
      }
    }
    if (settings.autoCommit === 'on') await this.#noteUnseen(calls, { kind: 'seen', refs, tree });
    this.#noted.clear();
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

/** Observes what the agent's calls do to the repository; one per session (create-commit-watch.ts). */
export type CommitWatch = {
  /** Observes the repository before a call. Never rejects, and delays the call by at most BEFORE_MS. */
  before(call: JudgedCall, settings: Settings): Promise<void>;
  /**
   * Observes the repository after a call: the runtime knows that the call made the changes since the observation before
   * it. Never rejects.
   */
  after(call: JudgedCall, settings: Settings): Promise<void>;
  /**
   * Runs the phase. `changedFiles` are real absolute paths of files that the calls changed, some possibly deleted
   * since. Without a snapshot of the tree they are the files that the calls name. A git failure is reported once.
   */
  check(context: HookContext): Promise<HookReport>;
  /**
   * The report, if it can be given synchronously because nothing happened except that calls named files; null: use
   * `check`.
   */
  checkNow(context: BatchContext): HookReport | null;
  /** The snapshot before the agent changed a file, in the last checked batch; null if there is none. */
  snapshotBefore(file: string): WorktreeSnapshot | null;
  readonly agentChanges: AgentChanges;
  /** Records what is known, for a later process of the session. */
  save(settings: Settings): void;
  /** The observed repository. */
  place(workspace: string, signal: AbortSignal): GitPlace;
  /** Announces our own commit, which is not reported as new. */
  expectCommit(hash: string): void;
  /** The text; empty if it equals the previous one. */
  unlessRepeated(text: string): string;
};

/** The report if nothing happened. */
export const QUIET: HookReport = {
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
};

/** One observation of a repository: its refs and, if requested, its uncommitted changes. */
type RepositoryView =
  | { readonly kind: 'none' }
  | { readonly kind: 'seen'; readonly refs: Refs; readonly tree: ChangedFiles | null };

/** The snapshot of a view; null if it has none. */
const snapshotOf = (view: RepositoryView | undefined): WorktreeSnapshot | null =>
  view?.kind === 'seen' && view.tree !== null ? { ...view.refs, changed: view.tree } : null;

/** Whether HEAD is the same in both views. */
const isSameView = (one: RepositoryView, other: RepositoryView): boolean =>
  one.kind === 'none' || other.kind === 'none'
    ? one.kind === other.kind
    : one.refs.top === other.refs.top && isSameHead(one.refs.head, other.refs.head);

/** Observes the repository of one session, with a cache of unchanged files. */
class RepositoryViews {
  readonly #files = new RefFiles();

  /** A synchronous view without the tree; null if git has to be asked. */
  lookNow(workspace: string, known: KnownRepository): RepositoryView | null {
    const marked = repositoryFolders(workspace).top;
    if (marked === null) return { kind: 'none' };
    const located = known.kept(marked);
    const refs = located === null ? null : this.#files.read(located);
    return refs === null ? null : { kind: 'seen', refs, tree: null };
  }

  /**
   * Observes the repository. Starts no process without the tree if the refs are plain files. Rejects like
   * `useRepository`.
   */
  async look(place: GitPlace, withTree: boolean): Promise<RepositoryView> {
    const located = await locateRepository(place);
    if (located === null) return { kind: 'none' };
    const read = this.#files.read(located);
    if (withTree) {
      const { changed, ...refs } = await workWith(place, located, (repository) =>
        takeSnapshot(repository, read),
      );
      return { kind: 'seen', refs, tree: changed };
    }
    return { kind: 'seen', refs: read ?? (await workWith(place, located, askRefs)), tree: null };
  }
}

/**
 * The record beside the journal, with which a session that was killed still knows whose the changes are
 * (docs/hooks.md). It is written before and after each mutating call, if auto-commit is on.
 *
 * 1. It is only a memory: without it, or with an old one, files are left alone that could have been committed. So it is
 *    not synced, and a damaged one counts as none.
 * 2. Above CHANGED_MAX changed files none is written.
 */

type WatchRecord = {
  readonly version: 1;
  readonly changes: SavedChanges;
  /** Calls since the last report whose changes are in `changes`. */
  readonly noted: readonly string[];
  /** The call that runs, and the snapshot before it; null between calls. */
  readonly running: { readonly call: JudgedCall; readonly before: WorktreeSnapshot } | null;
};

const BYTES_MAX = 16 * 1024 * 1024;
const CHANGED_MAX = 5_000;

type SavedSnapshot = Omit<WorktreeSnapshot, 'changed'> & {
  readonly changed: readonly (readonly [string, ChangedFile])[];
};

/** Replaces the record; null removes it. */
const writeRecord = (file: string, record: WatchRecord | null): void => {
  const draft = `${file}.new`;
  try {
    if (record === null || (record.running?.before.changed.size ?? 0) > CHANGED_MAX) {
      rmSync(file, { force: true });
      return;
    }
    const { running } = record;
    const saved = running && {
      call: { ...running.call, input: {} },
      before: { ...running.before, changed: [...running.before.changed] } satisfies SavedSnapshot,
    };
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(draft, JSON.stringify({ ...record, running: saved }), { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    // Nothing is lost by it but what rule 1 says: an old record names older stamps, so its files are left alone.
    rmSync(draft, { force: true });
  }
};

/** The record that an earlier process of the session has left; null without one. */
const readRecord = (file: string): WatchRecord | null => {
  try {
    const record = JSON.parse(readTextOrEmptySync(file, BYTES_MAX));
    if (record.version !== 1) return null;
    const { running } = record;
    return {
      ...record,
      running: running && {
        ...running,
        before: { ...running.before, changed: new Map(running.before.changed) },
      },
    };
  } catch {
    return null; // rule 1
  }
};
