/**
 * Which changes of a repository are the agent's: its tool calls' and not the user's. Known from
 * looks at the repository before and after each call. A look reads where HEAD and the branches are;
 * with the tree, it also lists the files with uncommitted changes.
 *
 * From top to bottom: `CommitWatch`, which looks and reports; its record beside the journal, for
 * the next process; `AgentChanges`, the files that auto-commit may commit; and the functions that
 * turn two looks into changes of a call. The facts of a call name the files and folders that it may
 * change (`facts.paths`).
 */

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Settings } from '../machine/settings.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isFolder, isWithin, readTextOrEmptySync } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import { type JudgedCall, namesItsFiles } from '../policy/judged-call.js';
import type { BatchContext, HookContext, HookReport } from '../ports/hooks.js';
import { loadFile } from '../tools/files.js';
import {
  findFolderWithGit,
  type GitPlace,
  isAncestor,
  KnownRepository,
  type Repository,
  useRepository,
} from './git.js';
import {
  changeByCalls,
  describeChange,
  findCommittedFiles,
  findHeadChange,
  type HeadMove,
  type HeadMover,
  noteMoves,
  warnOfMoves,
} from './head-changes.js';
import {
  type ChangedFile,
  type ChangedFiles,
  changedBetween,
  fileTime,
  hasTree,
  isChangedAfter,
  isSameHead,
  RefFiles,
  type Refs,
  type RepositoryView,
  type Stamp,
  viewRepository,
  viewRepositoryNow,
  type WorktreeSnapshot,
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

export type WatchOptions = {
  /** Pawl's environment. */
  readonly environment: ProcessEnvironment;
  /** Whether a formatter may apply to files that a command changes anywhere below the workspace. */
  isFormatted(place: GitPlace): Promise<boolean>;
  /** Time limit for the look before a call. Default: BEFORE_MS. */
  readonly beforeMs?: number;
  /** The file system's time, in ms since 1970. */
  readonly now?: () => number;
  /** Who may have changed a file. Absent: nobody but the calls. */
  readonly others?: OtherWriters;
  /**
   * Where the knowledge of a session is recorded, for the case that it is killed. Without it
   * nothing is recorded.
   */
  readonly recordFile?: string;
};

/** What is known of changes that are not a call's, though it ran meanwhile. */
export type OtherWriters = {
  /** sha256 of what a tool for files last wrote to a file. Undefined: none wrote it. */
  written(file: string): string | undefined;
  /** Which of these files another session claims that changed in that time: its id. */
  claims(
    files: readonly string[],
    ran: { readonly fromMs: number; readonly toMs: number },
  ): Promise<ReadonlyMap<string, string>>;
};

const BEFORE_MS = 10_000;
/** After this many failures calls run without a look before them. */
const FAILURES_MAX = 3;
/** The phase uses the tree of the last look again, if it is younger and nothing has run since. */
const FRESH_MS = 200;

/**
 * `tree`: the look after the call must list the changed files, too. `cut`: the call was running
 * when an earlier process of the session ended, and the look is the one before it.
 */
type RunningCall = {
  readonly call: JudgedCall;
  readonly tree: boolean;
  readonly cut?: true;
  readonly startedAtMs: number;
  /** When it ended; absent: it has not, or nobody knows. */
  readonly endedAtMs?: number;
};

/** The last look, and what has run since. */
type LastLook = {
  /** Null: there is no repository. */
  readonly view: RepositoryView | null;
  /** `unknown`: a later look failed. */
  readonly since: RunningCall | 'nothing' | 'unknown';
  /** In ms, as `#now` counts. */
  readonly at: number;
};

/** A move of HEAD that is not reported yet, and whose it is. */
type UnreportedMove = { readonly by: HeadMover; readonly from: Refs; readonly to: Refs };

/**
 * The phase CheckingGitCommits: determines what the agent's calls did to the repository. Also
 * records what the phase AutoCommitting needs. (Phases are states of the machine after a batch, the
 * tool calls of one reply.) One per session.
 *
 * The repository is looked at before each mutating call, after each batch and after a cancelled
 * call; with auto-commit after each call. All changes between the look before a call and the next
 * look belong to it, however it ended: a call that names files changed those, a call that names a
 * folder (a command) all below it. They are recorded as the agent's at once, since a batch whose
 * turn is cancelled gets no report.
 *
 * The tree is looked at only for auto-commit, or for a formatter of files that a command changed.
 * No process is started without a repository, for a batch without calls, or if no ref has changed
 * and no tree is needed. A failed look is reported, and changes that nobody saw count as nobody's.
 */
export class CommitWatch {
  readonly agentChanges = new AgentChanges();
  readonly #options: WatchOptions;
  /** For the age of a look, in ms. */
  readonly #now: () => number;
  readonly #known: KnownRepository;
  readonly #refFiles = new RefFiles();
  #last: LastLook | null = null;

  /** Not reported yet: moves of HEAD, changes of calls, and the first snapshot before a call. */
  #moves: readonly UnreportedMove[] = [];
  #callChanges: readonly CallChanges[] = [];
  #began: WorktreeSnapshot | null = null;
  /** Of the last report: snapshots before the change of each file, and before the batch. */
  #before = new Map<string, WorktreeSnapshot>();
  #beforeBatch: WorktreeSnapshot | null = null;
  /** Ids of calls that this process saw before they ran. */
  readonly #started = new Set<string>();
  /** Ids of calls since the last report whose changes are in `agentChanges`. */
  readonly #recorded = new Set<string>();

  /** Whether there is a record on disk. */
  #hasRecord = false;
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

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#known = new KnownRepository(options.environment, options.now);
    this.#restore();
  }

  /** The watched repository. */
  place(workspace: string, signal: AbortSignal): GitPlace {
    return { workspace, environment: this.#options.environment, signal, known: this.#known };
  }

  /**
   * Looks at the repository before a call. Never rejects, and delays the call by at most BEFORE_MS.
   */
  before(call: JudgedCall, settings: Settings): Promise<void> {
    return this.#inTurn(settings, async () => {
      this.#started.add(call.callId);
      if (this.#failuresInRow >= FAILURES_MAX) return this.#loseTrack();
      const since = this.#last?.since;
      // this call was recorded as running, but had not begun: it runs only now
      if (typeof since === 'object' && since.cut && since.call.callId === call.callId)
        this.#last = null;
      await this.#tryLook(settings, async (place) => {
        const tree = await this.#needsTree(call, settings, place);
        const view = await this.#look(place, settings, tree);
        this.#last = { view, since: { call, tree, startedAtMs: fileTime() }, at: this.#now() };
        if (hasTree(view)) this.#began ??= view;
      });
    });
  }

  /**
   * Looks at the repository after a call: the runtime knows that the call caused the changes since
   * the look before it. Never rejects.
   */
  after(call: JudgedCall, settings: Settings): Promise<void> {
    const endedAtMs = fileTime(); // the look comes later, and the user may work until then
    return this.#inTurn(settings, async () => {
      const last = this.#last;
      if (typeof last?.since !== 'object' || last.since.call.callId !== call.callId) return;
      // without `cut`: the runtime knows what became of the call, so its changes are its own
      const { cut: _, ...since } = last.since;
      this.#last = { ...last, since: { ...since, endedAtMs } };
      await this.#tryLook(settings, (place) => this.#look(place, settings, false));
    });
  }

  /**
   * Runs the phase. `changedFiles` are real absolute paths of files that the calls changed, some
   * possibly deleted since. Without a snapshot of the tree they are the files that the calls name.
   * A git failure is reported once.
   */
  check(context: HookContext): Promise<HookReport> {
    return this.#inTurn(context.settings, async () => {
      const { calls, workspace, settings, signal } = context;
      this.#before.clear();
      this.#beforeBatch = null;
      if (calls.length === 0 && this.#callChanges.length === 0) return QUIET;
      try {
        const place = this.place(workspace, signal);
        const view = await this.#look(place, settings, settings.autoCommit === 'on', 'phase');
        if (view !== null) return await this.#report(place, view, context);
        this.#forget();
      } catch (error) {
        this.#loseTrack();
        this.#clearEvents();
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
  checkNow({ calls, settings, workspace }: BatchContext): HookReport | null {
    const last = this.#last;
    const isPlain =
      this.#waiting + this.#failures.length === 0 &&
      this.#moves.length + this.#callChanges.length === 0 &&
      this.#began === null;
    if (!isPlain || last === null || calls.length === 0 || settings.autoCommit === 'on')
      return null;
    if (last.since === 'unknown' || (typeof last.since === 'object' && last.since.tree))
      return null;
    const view = viewRepositoryNow(workspace, this.#known, this.#refFiles);
    if (view === 'unknown' || !isSameView(last.view, view)) return null;
    this.agentChanges.forget();
    this.#last = { view, since: 'nothing', at: this.#now() };
    this.#before.clear();
    this.#beforeBatch = null;
    const isOutside = (file: string): boolean => view === null || !isWithin(file, view.gitFolder);
    return { ...QUIET, changedFiles: namedFiles(calls).filter(isOutside) };
  }

  /**
   * The snapshot before the agent changed a file, in the last checked batch; null if there is none.
   */
  snapshotBefore(file: string): WorktreeSnapshot | null {
    return this.#before.get(file) ?? this.#beforeBatch;
  }

  /** Announces our commit, which is not reported as new. */
  expectCommit(hash: string): void {
    const last = this.#last;
    if (last === null || last.view === null) return;
    const { head, tips } = last.view;
    const view = { ...last.view, head: { ...head, hash }, tips: [...tips, hash] };
    // its tree is the one before the commit, so it must not be used again
    this.#last = { ...last, view, at: Number.NEGATIVE_INFINITY };
  }

  /** The text; empty if it equals the last one, so no warning comes twice in a row. */
  unlessRepeated(text: string): string {
    const isRepeated = text === this.#lastText;
    this.#lastText = text;
    return isRepeated ? '' : text;
  }

  // ---- Looks ----

  /** Runs one task at a time, in order, and records what is known afterwards. */
  #inTurn<T>(settings: Settings, work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#queue.then(work).finally(() => this.save(settings));
    const done = (): void => {
      this.#waiting -= 1;
    };
    this.#queue = result.then(done, done); // the caller gets the failure
    return result;
  }

  /** Looks within a time limit. A failure is reported with the next report. */
  async #tryLook(
    { workspace }: Settings,
    look: (place: GitPlace) => Promise<unknown>,
  ): Promise<void> {
    const { beforeMs = BEFORE_MS } = this.#options;
    const signal = AbortSignal.timeout(beforeMs);
    try {
      await look(this.place(workspace, signal));
      this.#failuresInRow = 0;
    } catch (error) {
      this.#loseTrack();
      this.#failuresInRow += 1;
      const message = error instanceof Error ? error.message : String(error);
      const why = signal.aborted ? `it took longer than ${beforeMs / 1000} s` : message;
      const more =
        this.#failuresInRow === FAILURES_MAX
          ? ' It is not read before calls any more in this session.'
          : '';
      this.#failures.push(`${why}.${more}`);
    }
  }

  /** Whether the tree must be looked at before a call. */
  async #needsTree(call: JudgedCall, settings: Settings, place: GitPlace): Promise<boolean> {
    if (settings.autoCommit === 'on') return true;
    if (settings.formatter === 'off') return false;
    return call.facts.paths.some(isFolder) && (await this.#options.isFormatted(place));
  }

  /**
   * Looks at the repository and records the changes since the last time. Includes the tree if it is
   * needed now or for the last call. `why: 'phase'`: a look of a moment ago may be used again.
   */
  async #look(
    place: GitPlace,
    settings: Settings,
    withTree: boolean,
    why?: 'phase',
  ): Promise<RepositoryView | null> {
    const last = this.#last;
    const isAwaited = typeof last?.since === 'object' && last.since.tree;
    const view =
      (why === 'phase' && withTree ? await this.#reuseLook(place) : null) ??
      (await viewRepository(place, this.#refFiles, withTree || isAwaited));
    if (settings.autoCommit === 'off') this.agentChanges.forget();
    if (last !== null) await this.#compare(last, view, place, settings);
    else if (settings.autoCommit === 'on' && hasTree(view)) this.agentChanges.notice(view.changed);
    this.#last = { view, since: 'nothing', at: this.#now() };
    return view;
  }

  /** The tree of a look a moment ago, after which nothing has run, if HEAD is where it was. */
  async #reuseLook(place: GitPlace): Promise<RepositoryView | null> {
    const last = this.#last;
    if (last?.since !== 'nothing' || !hasTree(last.view) || this.#now() - last.at > FRESH_MS)
      return null;
    const view = await viewRepository(place, this.#refFiles, false);
    return view !== null && isSameView(last.view, view)
      ? { ...view, changed: last.view.changed }
      : null;
  }

  async #compare(
    { view: before, since }: LastLook,
    now: RepositoryView | null,
    place: GitPlace,
    settings: Settings,
  ): Promise<void> {
    if (now === null) return this.#forget();
    const isOn = settings.autoCommit === 'on';
    const isOtherRepository = before !== null && before.top !== now.top;
    const isCut = typeof since === 'object' && since.cut === true;
    if (isOtherRepository) this.#forget();
    else if (isCut)
      this.#clearEvents(); // who moved HEAD meanwhile is not known
    else this.#addMove(since, before, now);
    // a call has run between the two looks
    if (typeof since === 'object' && hasTree(before) && hasTree(now) && !isOtherRepository) {
      const others = isCut ? undefined : this.#options.others;
      const ask: Ask = (work) => useRepository(place, work);
      const changes = await callChangesBetween(since, before, now, { ask, others });
      if (isCut) noteCutCall(changes, this.agentChanges);
      else {
        this.#callChanges = [...this.#callChanges, changes];
        if (isOn) noteCallChanges(changes, now, this.agentChanges);
      }
      this.#recorded.add(since.call.callId);
    }
    if (isOn && hasTree(now))
      this.agentChanges.notice(now.changed, since === 'unknown' ? 'unseen' : undefined);
  }

  /** Records a move of HEAD. Successive moves by the same mover become one. */
  #addMove(since: LastLook['since'], before: RepositoryView | null, to: RepositoryView): void {
    // somebody else has made the repository
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

  /** Forgets everything, since the repository is gone or another one. */
  #forget(): void {
    this.agentChanges.forget();
    this.#clearEvents();
  }

  #clearEvents(): void {
    this.#moves = [];
    this.#callChanges = [];
    this.#began = null;
  }

  /** A look failed: the author of changes until the next one is unknown. */
  #loseTrack(): void {
    if (this.#last !== null) this.#last = { ...this.#last, since: 'unknown' };
  }

  // ---- The report ----

  async #report(place: GitPlace, view: RepositoryView, context: HookContext): Promise<HookReport> {
    const { calls, settings } = context;
    const moves: HeadMove[] = [];
    for (const { by, from, to } of this.#moves) {
      const change = await useRepository(place, (repository) =>
        findHeadChange(repository, from, to.head),
      );
      if (change !== null) moves.push({ by, change });
    }
    const byCalls = changeByCalls(moves);
    const changed = new Set(await this.#committedFiles(place, view, byCalls.commits));
    const ownIds = new Set(calls.map(({ callId }) => callId));
    // calls of cancelled batches, which got no report of their own
    const earlier = this.#callChanges
      .map(({ call }) => call)
      .filter(({ callId }) => !ownIds.has(callId));
    for (const call of [...earlier, ...calls]) {
      const changes = this.#callChanges.find((one) => one.call.callId === call.callId);
      for (const file of filesOfCall(call, changes, view)) {
        changed.add(file);
        if (changes !== undefined && !this.#before.has(file))
          this.#before.set(file, changes.before);
      }
    }
    if (settings.autoCommit === 'on') this.#noteUnseen(calls, view);
    this.#recorded.clear();
    this.#beforeBatch = this.#began;
    this.#clearEvents();
    return {
      commits: byCalls.commits.map((commit) => ({
        hash: commit.hash,
        subject: describeChange(commit.subject, commit),
      })),
      changedFiles: [...changed],
      dirty: hasTree(view) && view.changed.size > 0,
      note: noteMoves(moves, view, view.changed?.size ?? null),
      warning: [warnOfMoves(byCalls), this.#takeWarnings()]
        .filter((text) => text !== '')
        .join('\n'),
      proceed: true,
    };
  }

  /** Files that commits of the calls changed, as absolute paths; empty without snapshots. */
  async #committedFiles(
    place: GitPlace,
    now: RepositoryView,
    commits: Parameters<typeof findCommittedFiles>[3],
  ): Promise<readonly string[]> {
    const began = this.#began;
    if (began === null || !hasTree(now) || commits.length === 0) return [];
    const names = await useRepository(place, (repository) =>
      findCommittedFiles(repository, began, now, commits),
    );
    return (names ?? []).map((name) => path.join(now.top, name));
  }

  /** Calls of a batch that nobody saw: a look failed, or Pawl was killed and there is no record. */
  #noteUnseen(calls: readonly JudgedCall[], view: RepositoryView): void {
    for (const call of calls) {
      if (this.#recorded.has(call.callId)) continue;
      if (this.#started.has(call.callId)) noteUnseenCall(call, view, this.agentChanges);
      else noteUnrecordedCall(call, view, [...(view.changed?.keys() ?? [])], this.agentChanges);
    }
  }

  /** Warnings: failed looks before calls, without repetitions. */
  #takeWarnings(): string {
    const news = [...new Set(this.#failures)].filter(
      (text) => !this.#warned.has(text.replace(/\.$/, '')),
    );
    this.#failures = [];
    for (const text of news) this.#warned.add(text.replace(/\.$/, ''));
    return news
      .map(
        (text) =>
          `The repository could not be read before a call: ${text} Changes made meanwhile ` +
          `can't be distinguished from your own, so they are neither formatted nor committed.`,
      )
      .join('\n');
  }

  // ---- The record ----

  /**
   * Records what is known, for a later process of the session. If Pawl ends while a call runs, and
   * the call changes files, nobody knows who changed what until the next look: then no file is
   * committed, not even in part.
   */
  save({ autoCommit }: Settings): void {
    const { recordFile } = this.#options;
    if (recordFile === undefined) return;
    const [since, before] = [this.#last?.since, this.#last?.view];
    const running =
      typeof since === 'object' && hasTree(before)
        ? { call: since.call, startedAtMs: since.startedAtMs, before }
        : null;
    const changes = this.agentChanges.save();
    if (autoCommit === 'on')
      writeRecord(recordFile, { changes, noted: [...this.#recorded], running });
    else if (this.#hasRecord) writeRecord(recordFile, null);
    this.#hasRecord = autoCommit === 'on';
  }

  #restore(): void {
    const { recordFile } = this.#options;
    const record = recordFile === undefined ? null : readRecord(recordFile);
    if (record === null) return;
    this.#hasRecord = true;
    this.agentChanges.restore(record.changes);
    for (const callId of record.noted) this.#recorded.add(callId);
    if (record.running === null) return;
    const { call, before, startedAtMs = fileTime() } = record.running;
    this.#last = { view: before, since: { call, tree: true, cut: true, startedAtMs }, at: 0 };
  }
}

/** Whether HEAD is the same in both views. */
const isSameView = (one: RepositoryView | null, other: RepositoryView | null): boolean =>
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

// ---- The file of the record ----

/**
 * The record beside the journal, written before and after each mutating call if auto-commit is on.
 */
type WatchRecord = {
  readonly changes: SavedChanges;
  /** Calls since the last report whose changes are in `changes`. */
  readonly noted: readonly string[];
  /** The call that runs, and the snapshot before it; null between calls. */
  readonly running: {
    readonly call: JudgedCall;
    readonly before: WorktreeSnapshot;
    /** Missing: an earlier version wrote the record. */
    readonly startedAtMs?: number;
  } | null;
};

const RECORD_VERSION = 1;
const RECORD_BYTES_MAX = 16 * 1024 * 1024;
/** With more changed files none is written. */
const RECORDED_FILES_MAX = 5_000;

/**
 * Replaces the record; null removes it. It is only a memory: without it, or with an old one, files
 * stay uncommitted that could have been committed. So it is not synced, and a damaged one counts as
 * none.
 */
const writeRecord = (file: string, record: WatchRecord | null): void => {
  const draft = `${file}.new`;
  try {
    if (record === null || (record.running?.before.changed.size ?? 0) > RECORDED_FILES_MAX) {
      rmSync(file, { force: true });
      return;
    }
    const { running } = record;
    const saved = running && {
      ...running,
      call: { ...running.call, input: {} }, // only the facts are needed, and input may be large
      before: { ...running.before, changed: [...running.before.changed] },
    };
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ version: RECORD_VERSION, ...record, running: saved });
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    // nothing more is lost than above: files with older stamps stay uncommitted
    rmSync(draft, { force: true });
  }
};

/** The record of an earlier process of the session; null without one. */
const readRecord = (file: string): WatchRecord | null => {
  try {
    const { version, ...record } = JSON.parse(readTextOrEmptySync(file, RECORD_BYTES_MAX));
    if (version !== RECORD_VERSION) return null;
    const { running } = record;
    const changed = (): Map<string, ChangedFile> => new Map(running.before.changed);
    return {
      ...record,
      running: running && { ...running, before: { ...running.before, changed: changed() } },
    };
  } catch {
    return null; // as above
  }
};

// ---- The files that auto-commit may commit ----

export type FileLeftAlone = { readonly name: string; readonly why: string };
/** `reported`: to the user and the model. */
type Reason = { readonly why: string; readonly reported: boolean };
/** `AgentChanges` as JSON; its fields are explained there. */
export type SavedChanges = {
  readonly ours: readonly (readonly [string, Stamp | null])[];
  readonly left: readonly (readonly [string, Reason])[];
  readonly excluded: readonly (readonly [string, Reason])[];
  readonly first: readonly string[] | null;
  /** Missing: an earlier version wrote the record. */
  readonly duringCommands?: readonly string[];
};

const BEFORE_ALL = 'it had uncommitted changes when auto-commit first looked at it in this session';
const BETWEEN = 'it was changed between the calls of the agent';
const SOMEBODY_ELSE = 'somebody else changed it too';
const AFTER_CALL = 'it changed when the call had just ended, nobody knows by whom';
const WHILE_UNREADABLE = 'it was changed while the repository could not be read';

/**
 * Which uncommitted changes are the agent's. Paths are relative to the top of the repository.
 *
 * A file is the agent's if it had no uncommitted changes (or did not exist) when a call first
 * changed it. It stops being the agent's when its changes are committed or undone, or when somebody
 * else changes it. Other files that the agent changed too are not touched, which is reported once.
 * In doubt a file does not count as the agent's.
 */
class AgentChanges {
  /** The agent's files, with the stamp that they had after its last change; null: no file. */
  readonly #ours = new Map<string, Stamp | null>();
  /** Files that the agent changed, but not alone. */
  readonly #leftAlone = new Map<string, Reason>();
  /** Files that a call changed and that can't be committed to this repository. */
  readonly #excluded = new Map<string, Reason>();
  /** Those of the agent's files that changed while a command ran: others may have changed them. */
  readonly #duringCommands = new Set<string>();
  /** Files that had uncommitted changes in the first snapshot. */
  #first: ReadonlySet<string> | null = null;

  /** A call changed the file; `before` is the last snapshot before the call. */
  touch(name: string, before: ChangedFiles): void {
    if (this.#ours.has(name) || this.#leftAlone.has(name)) return;
    if (!before.has(name)) this.#ours.set(name, null);
    else this.leave(name, this.#first?.has(name) === true ? BEFORE_ALL : BETWEEN);
  }

  /** The file is as after a call or a formatter; `now` is a snapshot taken afterwards. */
  accept(name: string, now: ChangedFiles): void {
    if (!this.#leftAlone.has(name)) this.#ours.set(name, now.get(name)?.stamp ?? null);
  }

  /** The file is not committed, until its changes are committed or undone. */
  leave(name: string, why: string): void {
    this.#ours.delete(name);
    if (!this.#leftAlone.has(name)) this.#leftAlone.set(name, { why, reported: false });
  }

  /** A call may have changed the file, but it is unclear whose the change is. */
  doubt(name: string, why: string): void {
    if (!this.#ours.has(name)) this.leave(name, why);
  }

  exclude(name: string, why: string): void {
    if (!this.#excluded.has(name)) this.#excluded.set(name, { why, reported: false });
  }

  /**
   * Compares with a snapshot: a file of the agent that is not as it was accepted was changed by
   * somebody else. `unseen`: a call may have run, but there was no snapshot before it.
   */
  notice(now: ChangedFiles, unseen?: 'unseen'): void {
    this.#first ??= new Set(now.keys());
    for (const files of [this.#ours, this.#leftAlone])
      for (const name of files.keys()) if (!now.has(name)) files.delete(name);
    for (const [name, stamp] of this.#ours)
      if (stamp !== now.get(name)?.stamp)
        this.leave(name, unseen === undefined ? SOMEBODY_ELSE : WHILE_UNREADABLE);
  }

  /**
   * Leaves all files of the agent alone, so that no part of a batch is committed without the rest.
   */
  leaveAll(why: string): void {
    for (const name of [...this.#ours.keys()]) this.leave(name, why);
  }

  /** The agent's files. */
  ours(): readonly string[] {
    return [...this.#ours.keys()];
  }

  /** Files that are not committed, and that no report has named yet. They count as reported. */
  takeUnreported(): readonly FileLeftAlone[] {
    return [this.#leftAlone, this.#excluded].flatMap((files) =>
      [...files].flatMap(([name, { why, reported }]) => {
        files.set(name, { why, reported: true });
        return reported ? [] : [{ name, why }];
      }),
    );
  }

  /** A command ran while the file changed. */
  noteCommand(name: string): void {
    this.#duringCommands.add(name);
  }

  /** These files are committed. Returns those that changed while a command ran. */
  commit(names: readonly string[]): readonly string[] {
    for (const name of names) this.#ours.delete(name);
    return names.filter((name) => this.#duringCommands.delete(name));
  }

  forget(): void {
    this.#first = null;
    for (const files of [this.#ours, this.#leftAlone, this.#excluded, this.#duringCommands])
      files.clear();
  }

  save(): SavedChanges {
    return {
      ours: [...this.#ours],
      left: [...this.#leftAlone],
      excluded: [...this.#excluded],
      first: this.#first && [...this.#first],
      duringCommands: [...this.#duringCommands],
    };
  }

  restore({ ours, left, excluded, first, duringCommands = [] }: SavedChanges): void {
    this.forget();
    for (const [name, stamp] of ours) this.#ours.set(name, stamp);
    for (const [name, reason] of left) this.#leftAlone.set(name, reason);
    for (const [name, reason] of excluded) this.#excluded.set(name, reason);
    this.#first = first && new Set(first);
    for (const name of duringCommands) this.#duringCommands.add(name);
  }
}

// ---- What one call changed ----

/** Files that changed while a call ran, relative to the top. */
export type CallChanges = {
  readonly call: JudgedCall;
  readonly before: WorktreeSnapshot;
  /** Those that count as the call's. */
  readonly changed: readonly string[];
  /** The others that it may have changed, with the reason why they don't. */
  readonly foreign: ReadonlyMap<string, string>;
  /** HEAD or the stash moved too, so the content may come from there instead of the call. */
  readonly mixed: boolean;
};

/** Opens the repository, which is needed only if HEAD moved. */
type Ask = <T>(work: (repository: Repository) => Promise<T>) => Promise<T | null>;

const callChangesBetween = async (
  running: RunningCall,
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
  { ask, others }: { readonly ask: Ask; readonly others: OtherWriters | undefined },
): Promise<CallChanges> => {
  const { call } = running;
  const all = reachedBy(call, changedBetween(before, after), after);
  const foreign = await findOthers(running, all, after, others);
  const changed = all.filter((name) => !foreign.has(name));
  return { call, before, changed, foreign, mixed: await isMixed(before, after, ask) };
};

/**
 * Which of the files that changed while a call ran are not, or not for certain, the call's, and
 * why. What a tool for files wrote is known by its bytes, what a command changed only by its time.
 */
const findOthers = async (
  { call, startedAtMs, endedAtMs = Number.POSITIVE_INFINITY }: RunningCall,
  names: readonly string[],
  { top }: Refs,
  others: OtherWriters | undefined,
): Promise<ReadonlyMap<string, string>> => {
  const foreign = new Map<string, string>();
  if (namesItsFiles(call)) {
    for (const name of names)
      if (!(await isAsWritten(path.join(top, name), others))) foreign.set(name, SOMEBODY_ELSE);
    return foreign;
  }
  for (const name of names)
    if (isChangedAfter(path.join(top, name), endedAtMs)) foreign.set(name, AFTER_CALL);
  const files = names.filter((name) => !foreign.has(name)).map((name) => path.join(top, name));
  if (others === undefined || files.length === 0) return foreign;
  const ran = { fromMs: startedAtMs, toMs: Math.min(endedAtMs, fileTime()) };
  for (const [file, sessionId] of await others.claims(files, ran))
    foreign.set(path.relative(top, file), `the session ${sessionId} changed it too`);
  return foreign;
};

/** Whether a file holds what a tool of the session wrote last. */
const isAsWritten = async (
  file: string,
  others: Pick<OtherWriters, 'written'> | undefined,
): Promise<boolean> => {
  if (others === undefined) return true;
  const loaded = await loadFile(file);
  return loaded.kind === 'file' && loaded.sha256 === others.written(file);
};

const isMixed = async (
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
  ask: Ask,
): Promise<boolean> => {
  if (before.stash !== after.stash || before.head.branch !== after.head.branch) return true;
  const [from, to] = [before.head.hash, after.head.hash];
  if (from === to || from === null) return false;
  if (to === null) return true;
  return (await ask((repository) => isAncestor(repository, from, to))) !== true;
};

/** The files, not folders, that calls name. */
const namedFiles = (calls: readonly JudgedCall[]): readonly string[] =>
  [...new Set(calls.flatMap(({ facts }) => facts.paths))].filter((file) => !isFolder(file));

/**
 * The files that a call changed, as absolute paths: those that it names, and all changes below a
 * folder that it names. Without `changes`, only the former are known.
 */
const filesOfCall = (
  { facts }: JudgedCall,
  changes: CallChanges | undefined,
  { top, gitFolder }: Refs,
): readonly string[] => {
  const changed = (changes?.changed ?? []).map((name) => path.join(top, name));
  return facts.paths
    .filter((place) => !isWithin(place, gitFolder))
    .flatMap((place) =>
      isFolder(place) ? changed.filter((file) => isWithin(file, place)) : [place],
    )
    .filter((file) => changes?.foreign.has(path.relative(top, file)) !== true);
};

const INSIDE = 'it belongs to a repository inside this one';
const MIXED = 'it came with a switch of branches, a stash or an undone commit';
const CUT =
  'Pawl was killed or closed while a call of the agent ran, so nobody knows who changed ' +
  'what. Commit it yourself: auto-commit leaves it alone from now on';
const UNSEEN = 'the repository could not be read before the agent changed it';
/** The record of an earlier process is missing. */
const UNRECORDED =
  'Pawl was killed between the calls of the agent, and how the files were before is not ' +
  'recorded. Commit it yourself: auto-commit leaves it alone from now on';

/** The files of this repository that a call names. Files of inner repositories are excluded. */
const namedIn = (
  { facts }: JudgedCall,
  { top, gitFolder }: Refs,
  agent: AgentChanges,
): readonly string[] =>
  facts.paths.flatMap((place) => {
    if (isWithin(place, gitFolder) || !isWithin(place, top) || isFolder(place)) return [];
    const name = path.relative(top, place);
    if (findFolderWithGit(path.dirname(place)) === top) return [name];
    agent.exclude(name, INSIDE);
    return [];
  });

/** Those of the changed files that a call names, or that lie below a folder that it names. */
const reachedBy = (
  { facts }: JudgedCall,
  changed: readonly string[],
  { top }: Refs,
): readonly string[] =>
  changed.filter((name) => facts.paths.some((place) => isWithin(path.join(top, name), place)));

/** Records the changes of a call between two snapshots as the agent's. */
const noteCallChanges = (
  { call, before, changed, foreign, mixed }: CallChanges,
  after: WorktreeSnapshot,
  agent: AgentChanges,
): void => {
  const named = namedIn(call, after, agent).filter((name) => !foreign.has(name));
  for (const [name, why] of foreign) agent.leave(name, why);
  for (const name of named) agent.touch(name, before.changed);
  for (const name of changed) {
    if (mixed) agent.doubt(name, MIXED);
    else agent.touch(name, before.changed);
    if (!named.includes(name)) agent.noteCommand(name);
    agent.accept(name, after.changed);
  }
  for (const name of named) agent.accept(name, after.changed);
};

/** Records that a call may have changed the files that it names, although no look preceded it. */
const noteUnseenCall = (call: JudgedCall, refs: Refs, agent: AgentChanges): void => {
  for (const name of namedIn(call, refs, agent)) agent.doubt(name, UNSEEN);
};

/**
 * Records that a call of a process that was killed may have changed any of these files, and nobody
 * knows which.
 */
const noteUnrecordedCall = (
  call: JudgedCall,
  refs: Refs,
  changed: readonly string[],
  agent: AgentChanges,
): void => {
  agent.leaveAll(UNRECORDED);
  for (const name of namedIn(call, refs, agent)) agent.doubt(name, UNRECORDED);
  for (const name of reachedBy(call, changed, refs)) agent.doubt(name, UNRECORDED);
};

/** Records that nobody knows who changed the files of a call: Pawl ended while it ran. */
const noteCutCall = ({ changed }: CallChanges, agent: AgentChanges): void => {
  if (changed.length === 0) return;
  agent.leaveAll(CUT);
  for (const name of changed) agent.doubt(name, CUT);
};
