/**
 * The checkpoints of one session: what its calls change in the workspace is stored, so that it can
 * be taken back.
 *
 * The model: of each path it is known how it was at the last look, and where its content is
 * (known-files.ts). A look finds the paths that differ (looks.ts); when each of them changed, and
 * what tools wrote, says whose change it is (attribution.ts). The calls since the last checkpoint
 * are a batch (batch.ts), which collects these changes. Once it has ended its changes are stored as
 * a manifest (manifest.ts, store.ts), the checkpoint. A sweep at the end of a turn finds changes
 * that no folder has reported, and stores them as a checkpoint of their own.
 *
 * The record is a file from which the next process makes a killed batch again, and ends it like any
 * other. It is written before and after each call, and names the checkpoint once that is taken. It
 * is removed if the batch changed nothing, or once the journal has the checkpoint (`recorded`).
 *
 * 1. Tools for files name them: only these are looked at, before and after the call. Before the
 *    first command the whole workspace is scanned. A hook of the user is a command, too.
 * 2. A clean file of git is read from there once it has changed. All others are copied at the first
 *    scan, within limits; files that were not copied are reported.
 * 3. Changes of somebody else are taken over as known, and are in no checkpoint.
 * 4. All work is done one after the other. What is to be stored is forgotten only once it is.
 */

import path from 'node:path';
import { isLockedAnywhere } from '../../journal/lock.js';
import { lockPath } from '../../journal/state-folder.js';
import type { FileLeft } from '../../machine/event.js';
import { attempt } from '../../platform/attempt.js';
import { isWithin } from '../../platform/files.js';
import { cut } from '../../platform/text.js';
import type { CommandLevel } from '../../policy/decide.js';
import { callTitle, type JudgedCall, namesItsFiles } from '../../policy/judged-call.js';
import { repositoryAccess } from '../../policy/repository-access.js';
import type {
  Checkpoints,
  DescribedCheckpoints,
  FileVersion,
  NamedCheckpoint,
  Restored,
  RestorePlan,
  RestoreRequest,
  TakenCheckpoint,
} from '../../ports/checkpoints.js';
import { KnownRepository } from '../git.js';
import { addChanges } from './attribution.js';
import { CallBatch, type CommandRun, endRuns, readRunning, writeRunning } from './batch.js';
import { CallFiles } from './call-files.js';
import { findClaims } from './claims.js';
import { readState, withFolders } from './file-entries.js';
import { scanFirst } from './first-scan.js';
import { describeRef, GitStates } from './git-state.js';
import { type Differences, KnownFiles, SavedScan } from './known-files.js';
import { WorkspaceLooks } from './looks.js';
import { describeLost, LostText } from './lost-text.js';
import { listContents, type Manifest, type PathChange, summarise, toName } from './manifest.js';
import { type Observation, OwnChanges, type WorkspaceObserver } from './own-changes.js';
import { type Plan, performPlan } from './restore.js';
import { type RewindPlace, RewindPlans } from './rewind-plans.js';
import { CheckpointStore, pruneStores, storeFolder } from './store.js';
import { type Listing, WorkspaceLister } from './workspace-lister.js';

export type CheckpointsPlace = RewindPlace & {
  /** The user has hooks, which run after calls: they count as commands. Default: none. */
  readonly hasHooks?: boolean;
  /** sha256 of what a tool last wrote to a file. Absent: only tools change what they name. */
  readonly written?: (file: string) => string | undefined;
  /** sha256 of what the model last saw of a file, by reading or writing it. */
  readonly seen?: (file: string) => string | undefined;
};

const TITLE_MAX = 60;

const INTERRUPTED =
  'The session was interrupted before it had looked at what its calls changed: changes of others ' +
  'until now count as theirs.';

const CLOSED =
  'A folder of the workspace is closed to Pawl: what was changed in it can’t be taken back, as long ' +
  'as it is.';

const unstored = ({ message }: Error): FileLeft => ({
  path: 'checkpoints',
  why: `what this rewind changed can’t be stored, so redo can’t bring it again: ${message}`,
});

type NewManifest = Omit<Manifest, 'version' | 'settled' | 'parent'> &
  Required<Pick<Manifest, 'ran'>>;

type KnownGitPlace = ConstructorParameters<typeof WorkspaceLister>[0];

/** What looks at the whole workspace. */
type WholeWorkspaceParts = {
  readonly lister: WorkspaceLister;
  readonly looks: WorkspaceLooks;
  readonly lostText: LostText;
  readonly callFiles: CallFiles;
};

class SessionCheckpoints implements Checkpoints, WorkspaceObserver {
  readonly #place: CheckpointsPlace;
  readonly #store: CheckpointStore;
  readonly #gitPlace: KnownGitPlace;
  readonly #gitStates: GitStates;
  readonly #scan: SavedScan;
  readonly #known: KnownFiles;
  #parts: WholeWorkspaceParts | null = null;
  /** Aborted when the session ends. */
  readonly #ended = new AbortController();
  /** The names of the last scan; null: only named files are known. */
  #listing: Listing | null = null;
  /** Files that calls have named, also such that git ignores. */
  readonly #named = new Set<string>();
  /** The calls since the last checkpoint; null: there were none. */
  #batch: CallBatch | null = null;
  /** The record of the batch, or of the last checkpoint, is on disk. */
  #hasRecord = false;
  /** When commands ran since the last sweep. */
  #runs: CommandRun[] = [];
  /** When the last checkpoint was taken. */
  #takenAtMs = 0;
  /** Sentences about files that can't be taken back: all so far, and those of no checkpoint yet. */
  readonly #notices = new Set<string>();
  readonly #newNotices = new Set<string>();
  /** What earlier checkpoints changed and nobody has committed; null: they are not read yet. */
  #own: OwnChanges | null = null;
  /** Paths whose changes were committed since the last checkpoint. */
  readonly #settled = new Set<string>();
  /** Changes of calls that began then or later are recent. */
  #recentFromMs = Date.now();
  #isLoaded = false;
  #pruning: Promise<void> | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(place: CheckpointsPlace) {
    this.#place = place;
    const { stateFolder, workspace, environment, sessionId } = place;
    const store = new CheckpointStore(storeFolder(stateFolder, workspace));
    const { signal } = this.#ended;
    this.#gitPlace = { workspace, environment, signal, known: new KnownRepository(environment) };
    this.#store = store;
    this.#known = new KnownFiles(workspace, store);
    this.#gitStates = new GitStates(this.#gitPlace, store);
    this.#scan = new SavedScan(store.scanFile(sessionId), this.#known, this.#named);
  }

  /** Made by the first command: tools for files need no look at the whole workspace. */
  get #commandParts(): WholeWorkspaceParts {
    this.#parts ??= this.#makeParts();
    return this.#parts;
  }

  #makeParts(): WholeWorkspaceParts {
    const known = this.#known;
    const store = this.#store;
    const named = this.#named;
    const { workspace, stateFolder, sessionId } = this.#place;
    const lister = new WorkspaceLister(this.#gitPlace);
    const marks = store.marksFolder(sessionId);
    return {
      lister,
      looks: new WorkspaceLooks(workspace, marks, { known, named, lister }),
      lostText: new LostText({ workspace, known, store, lister }),
      callFiles: new CallFiles({ workspace, stateFolder, known, named, lister }),
    };
  }

  get #plans(): RewindPlans {
    return new RewindPlans(this.#place, this.#store, this.#gitStates);
  }

  /** Runs one task at a time. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined); // whoever waits for `result` gets the error
    return result;
  }

  /** Takes over the scan of an earlier process, once. */
  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    this.#isLoaded = true;
    if (await this.#scan.load()) this.#noteListing(await this.#commandParts.lister.list(false));
  }

  // ---- Around calls ----

  before(call: JudgedCall | null, level: CommandLevel = 'off'): Promise<void> {
    return this.#inTurn(async () => {
      await this.#load();
      const isTool = call !== null && namesItsFiles(call);
      const hasCommand = !isTool || this.#place.hasHooks === true;
      // 1. before the first command all files are known
      if (hasCommand && this.#listing === null) {
        await this.#scanFirst();
        await this.#gather([...(this.#batch?.named ?? [])]);
      }
      // 2. what changed before the call is not the call's
      const isAfterCommand = (this.#batch?.runs.length ?? 0) > 0;
      if (this.#isQuick && (hasCommand || isAfterCommand)) await this.#gather(null);
      // 3. files that the call names can be taken back
      const names = call === null ? [] : this.#namesIn(call);
      await this.#noteNames(names);
      // 4. the call is one of the batch
      this.#batch ??= new CallBatch(await this.#gitStates.read());
      const batch = this.#batch;
      for (const name of names) batch.noteBefore(name, this.#known.get(name) ?? null);
      batch.name(names, isTool ? call.callId : null);
      if (this.#mayStage(call, level)) batch.noteGitWriter();
      if (!isTool) batch.begin(call?.callId ?? null);
      else if (this.#place.hasHooks) batch.expectHooks(call.callId);
      // 5. the next process knows of it; a command of the user needs no record
      if (call !== null) this.#writeRecord(batch);
    });
  }

  /**
   * Whether a call may change git folders. The sandbox keeps them from a command whose words only
   * read them; without one nobody knows. Null: a command of the user.
   */
  #mayStage(call: JudgedCall | null, level: CommandLevel): boolean {
    if (call === null || this.#place.hasHooks === true) return true;
    const { shell, needs } = call.facts;
    if (namesItsFiles(call)) return false;
    if (level === 'off') return true;
    return shell === undefined || needs !== undefined || repositoryAccess(shell, needs) !== 'read';
  }

  get #isQuick(): boolean {
    return this.#listing !== null && this.#commandParts.looks.isQuick(this.#listing);
  }

  /** Looks at names as they are before a call. Of those that no look has seen the state is noted. */
  async #noteNames(names: readonly string[]): Promise<void> {
    const seen: string[] = [];
    for (const name of names) {
      const isSeen = this.#known.has(name) || this.#named.has(name);
      // a command may have made it: git would list it
      const isMade = async () =>
        this.#listing !== null && (await this.#commandParts.lister.list(false)).names.has(name);
      const hasRun = (this.#batch?.runs.length ?? 0) > 0;
      if (isSeen || (hasRun && (await isMade()))) seen.push(name);
      else await this.#known.note(name);
    }
    await this.#gather(seen);
    for (const name of names) this.#named.add(name);
  }

  after(call: JudgedCall, hasEnded = true): Promise<string> {
    const endedAtMs = Date.now();
    return this.#inTurn(async () => {
      if (namesItsFiles(call)) return '';
      const batch = this.#batch ?? (await this.#resumeKilled());
      const mayGoOn = this.#place.hasHooks === true || call.facts.background === 'yes';
      if (batch !== null && hasEnded) {
        batch.end(call.callId, endedAtMs, mayGoOn);
        void this.#inTurn(async () => this.#writeRecord(batch)); // nobody waits for the disk
      }
      // without a scan nothing is known of the user's text
      if (this.#listing === null) return '';
      const names = await this.#commandParts.lostText.find(
        (await this.#commandParts.looks.reported()) ?? this.#known.names(),
      );
      if (names.length === 0) return '';
      const { workspace, sessionId } = this.#place;
      const text = describeLost(names, cut(callTitle(call, workspace), TITLE_MAX), sessionId);
      this.#notice(`${text}.`); // on the screen, with the next checkpoint
      return `${text}, for the user to run. Tell them.`;
    });
  }

  withdraw({ callId }: JudgedCall): Promise<void> {
    return this.#inTurn(async () => {
      this.#batch?.withdraw(callId);
      if (this.#batch !== null) this.#writeRecord(this.#batch);
    });
  }

  lookBefore(call: JudgedCall): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#batch === null || this.#listing === null || namesItsFiles(call)) return;
      if (!this.#isQuick) await this.#gather(null); // otherwise `before` looks
    });
  }

  /** Writes what a kill would lose of a batch, unless its checkpoint is taken. */
  #writeRecord(batch: CallBatch): void {
    if (batch !== this.#batch) return;
    const { sessionId, parent } = this.#place;
    writeRunning(this.#store, sessionId, batch.toRecord(parent));
    this.#hasRecord = true;
  }

  /** The calls of a killed process become the batch; null: their checkpoint is taken, or none ran. */
  async #resumeKilled(): Promise<CallBatch | null> {
    await this.#load();
    const record = await readRunning(this.#store, this.#place.sessionId);
    if (record === null || record.taken !== null) return null;
    for (const [name, known] of record.known) {
      this.#named.add(name);
      this.#known.set(name, known);
    }
    this.#hasRecord = true;
    this.#batch = CallBatch.fromRecord(record);
    return this.#batch;
  }

  // ---- Checkpoints ----

  take({ by, alsoRan }: Parameters<Checkpoints['take']>[0]): Promise<TakenCheckpoint | null> {
    const toMs = Date.now();
    return this.#inTurn(async () => {
      await this.#load();
      // 1. which calls it is of
      const isKilled = alsoRan === 'killedCalls';
      if (isKilled && this.#batch === null && (await this.#resumeKilled()) === null)
        return this.#readTaken();
      this.#batch ??= new CallBatch(null, toMs);
      const batch = this.#batch;
      const areNamed = this.#areNamed(batch);
      if (alsoRan === 'jobs') batch.addRun({ fromMs: 0, toMs: 0, jobsToMs: toMs });
      const runs = endRuns(batch.runs, toMs);
      // 2. how HEAD, branches and the index changed
      const refs = await this.#gitStates.since(batch.git);
      // 3. which files changed: those that tools named, or any
      if (!areNamed && this.#listing === null) await this.#scanFirst();
      const changed = areNamed
        ? this.#known.differences(batch.named)
        : await this.#lookAround(false);
      await this.#addChanges(batch, changed, runs);
      if (!areNamed && !batch.isKilled) this.#runs.push(...runs);
      // 4. the checkpoint
      const hasChanges = batch.changes.length > 0 || refs.changes.length > 0;
      if (batch.isKilled && hasChanges) this.#notice(INTERRUPTED);
      const taken = await this.#storeManifest(batch, {
        by,
        changes: batch.changes,
        refs: refs.changes,
        ran: { fromMs: alsoRan === 'jobs' ? this.#takenAtMs : batch.fromMs, toMs },
        ...(refs.isMixed ? { mixed: true } : {}),
        ...(batch.readsGit ? { readsGit: true } : {}),
        ...(batch.isKilled ? { killed: batch.hasOpenCommand } : {}),
      });
      this.#batch = null;
      return taken;
    });
  }

  /** Whether tools have named all files that its calls may have changed, or no others are known. */
  #areNamed({ runs, isKilled }: CallBatch): boolean {
    return runs.length === 0 || (isKilled && this.#listing === null);
  }

  /** The checkpoint of a killed process that its journal may not have; null: there is none. */
  async #readTaken(): Promise<TakenCheckpoint | null> {
    const { taken = null } = (await readRunning(this.#store, this.#place.sessionId)) ?? {};
    const manifest = taken === null ? null : await this.#store.manifest(taken);
    if (taken === null || manifest === null) return null;
    this.#hasRecord = true;
    const changes = await summarise(this.#store, manifest.changes);
    return { checkpoint: taken, changes, leftOut: [] };
  }

  sweep(by: 'agent' | 'user'): Promise<TakenCheckpoint | null> {
    return this.#inTurn(async () => {
      const runs = this.#runs;
      if (this.#listing === null || runs.length === 0 || !this.#commandParts.looks.isWatching) {
        this.#runs = [];
        return null;
      }
      await this.#gather(null); // what was reported since the last checkpoint is somebody else's
      const changed = await this.#lookAround(true);
      // the removal of a file has no time, so it is nobody's and only noted
      const present = new Map([...changed].filter(([, entry]) => entry !== null));
      const batch = new CallBatch(null, Math.min(...runs.map(({ fromMs }) => fromMs)));
      this.#batch ??= batch; // it stays, if it can't be stored
      await this.#addChanges(batch, present, runs);
      for (const [name, entry] of changed) if (entry === null) await this.#known.note(name);
      const ran = { fromMs: batch.fromMs, toMs: Date.now() };
      const taken = await this.#storeManifest(null, { by, changes: batch.changes, ran });
      this.#runs = [];
      if (this.#batch === batch) this.#batch = null;
      return taken;
    });
  }

  recorded(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#batch === null) this.#forgetRecord();
    });
  }

  /** The journal has all checkpoints. */
  #forgetRecord(): void {
    if (!this.#hasRecord) return;
    writeRunning(this.#store, this.#place.sessionId, null);
    this.#hasRecord = false;
  }

  /**
   * Stores a checkpoint; null if it says nothing. `recorded`: the batch that it ends; null: it is
   * of a sweep or a rewind, which have no record.
   */
  async #storeManifest(
    recorded: CallBatch | null,
    { changes, refs = [], ...about }: NewManifest,
  ): Promise<TakenCheckpoint | null> {
    const leftOut = [...this.#newNotices];
    const settled = [...this.#settled];
    this.#takenAtMs = about.ran.toMs;
    if (changes.length === 0 && refs.length === 0 && leftOut.length === 0) {
      this.#settled.clear(); // there is no change of the batch among them
      if (recorded !== null) this.#forgetRecord();
      return null;
    }
    const { sessionId, parent } = this.#place;
    const checkpoint = await this.#store.addManifest(sessionId, {
      version: 1,
      ...about,
      changes,
      ...(refs.length === 0 ? {} : { refs }),
      ...(parent === undefined ? {} : { parent }),
      ...(settled.length === 0 ? {} : { settled }),
    });
    for (const notice of leftOut) this.#newNotices.delete(notice);
    for (const name of settled) this.#settled.delete(name);
    if (recorded !== null && this.#hasRecord) {
      const record = recorded.toRecord(parent);
      writeRunning(this.#store, sessionId, { ...record, taken: checkpoint });
    }
    if (this.#listing !== null) await this.#scan.save();
    this.#pruning ??= this.#prune();
    return { checkpoint, changes: await summarise(this.#store, changes), leftOut };
  }

  /** Makes room once in a process, beside everything else. */
  async #prune(): Promise<void> {
    const { stateFolder, sessionId } = this.#place;
    const keep = (): readonly string[] => [
      ...this.#known.stored(),
      ...this.#gitStates.kept(),
      ...(this.#batch?.changes.flatMap(listContents) ?? []),
    ];
    try {
      await pruneStores(stateFolder, {
        // a process that has a session open holds its lock
        isOpen: (id) => isLockedAnywhere(lockPath(stateFolder, id)),
        own: { sessionId, keep },
      });
    } catch {
      // what could not be removed stays; pawl checkpoints shows it
    }
  }

  /** Tells the user once, with the next checkpoint. */
  #notice(text: string): void {
    if (!this.#notices.has(text)) this.#newNotices.add(text);
    this.#notices.add(text);
  }

  // ---- Looks ----

  /** Adds to the batch what changed since the last look. `names`: only of these; null: of all. */
  async #gather(names: readonly string[] | null): Promise<void> {
    const changed = names === null ? await this.#lookAround(false) : this.#known.differences(names);
    const runs = this.#batch?.runs ?? [];
    // before the first call all changes are somebody else's
    await this.#addChanges(this.#batch ?? new CallBatch(null), changed, runs);
  }

  /** Looks at the workspace. `isWhole`: also at files of which no change was reported. */
  async #lookAround(isWhole: boolean): Promise<Differences> {
    const { listing, changed } = await this.#commandParts.looks.look(isWhole);
    this.#noteListing(listing);
    return changed;
  }

  #noteListing(listing: Listing): void {
    if (listing.limit !== null) this.#notice(listing.limit);
    this.#listing = listing;
  }

  /** Adds what the calls changed. */
  async #addChanges(
    batch: CallBatch,
    changed: Differences,
    runs: readonly CommandRun[],
  ): Promise<void> {
    const sources = {
      ...this.#place,
      known: this.#known,
      readBlobs: (blobs: readonly string[]) => this.#commandParts.lister.readBlobs(blobs),
    };
    const isClosed = await addChanges(sources, batch, changed, runs);
    if (isClosed) this.#notice(CLOSED);
  }

  /** Before the first command. */
  async #scanFirst(): Promise<void> {
    const { lister, looks } = this.#commandParts;
    const sources = { known: this.#known, lister, looks };
    const except = this.#batch?.named ?? new Set<string>();
    const { listing, notices } = await scanFirst(sources, except);
    this.#noteListing(listing);
    for (const notice of notices) this.#notice(notice);
    await this.#scan.save();
  }

  #toName(file: string): string {
    return toName(path.relative(this.#place.workspace, file));
  }

  /** Files that a call names: of a command those that git ignores, which no scan lists. */
  #namesIn(call: JudgedCall): readonly string[] {
    const isTool = namesItsFiles(call);
    return isTool ? this.#toolNames(call) : this.#commandParts.callFiles.ignoredNames(call);
  }

  /** The files of a tool's call in the workspace, without those of the git folder. */
  #toolNames({ facts }: JudgedCall): readonly string[] {
    const { workspace } = this.#place;
    const names = facts.paths
      .filter((file) => file !== workspace && isWithin(file, workspace))
      .map((file) => this.#toName(file));
    return withFolders(names.filter((name) => name !== '.git' && !name.startsWith('.git/')));
  }

  unkept(paths: readonly string[]): Promise<readonly string[]> {
    return this.#inTurn(async () => {
      await this.#load();
      return this.#commandParts.callFiles.findUnkept(paths, this.#listing);
    });
  }

  // ---- For formatters and auto-commit ----

  observe(): Promise<Observation> {
    return this.#inTurn(async () => {
      await this.#load();
      const { workspace, stateFolder, sessionId } = this.#place;
      const own = this.#own ?? new OwnChanges(workspace);
      const batch = await this.#batchSoFar();
      const checkpoints = (await this.#store.listed(sessionId)).slice(own.count);
      const manifests = await Promise.all(checkpoints.map((id) => this.#store.manifest(id)));
      const found = manifests.filter((manifest) => manifest !== null);
      const news = batch === null ? found : [...found, batch];
      const findClaim = await findClaims(this.#store, stateFolder, this.#place, news);
      const claimedBy = (change: PathChange): string | null =>
        change.origin === 'commands' ? findClaim(change) : null;
      for (const manifest of manifests) own.add(manifest, claimedBy);
      this.#own = own;
      const changes = new OwnChanges(workspace, own);
      if (batch !== null) changes.add(batch, claimedBy);
      return {
        changes,
        recent: changes.since(this.#recentFromMs),
        readNow: (file) => readState(workspace, this.#toName(file)),
        content: (sha256) => this.#store.get(sha256),
      };
    });
  }

  /** What the calls of the batch have changed until now, as a checkpoint; null: there are none. */
  async #batchSoFar(): Promise<Manifest | null> {
    const batch = this.#batch;
    if (batch === null) return null;
    await this.#gather(this.#areNamed(batch) ? [...batch.named] : null);
    const { isMixed } = await this.#gitStates.since(batch.git);
    return {
      version: 1,
      by: 'agent',
      changes: batch.changes,
      ran: { fromMs: batch.fromMs, toMs: Date.now() },
      ...(isMixed ? { mixed: true } : {}),
      ...(batch.readsGit ? { readsGit: true } : {}),
      settled: [...this.#settled],
    };
  }

  reported(): void {
    this.#recentFromMs = Date.now();
  }

  settle(files: readonly string[]): Promise<void> {
    return this.#inTurn(async () => {
      const names = files.map((file) => this.#toName(file));
      this.#own?.settle(names);
      for (const name of names) this.#settled.add(name);
    });
  }

  // ---- Going back ----

  plan(request: RestoreRequest): Promise<RestorePlan> {
    return this.#inTurn(() => this.#plans.plan(request));
  }

  planFile(version: FileVersion): Promise<RestorePlan> {
    return this.#inTurn(() => this.#plans.planFile(version));
  }

  describe(checkpoints: readonly NamedCheckpoint[]): Promise<DescribedCheckpoints | null> {
    return this.#inTurn(() => this.#plans.describe(checkpoints));
  }

  restore(planId: string): Promise<Restored> {
    return this.#inTurn(async () => {
      await this.#load();
      const bytes = await this.#store.get(planId);
      const plan: Plan | null = bytes === null ? null : JSON.parse(bytes.toString('utf8'));
      if (plan === null || plan.workspace !== this.#place.workspace)
        throw new Error('the plan of this rewind is not in the store of checkpoints');
      const fromMs = Date.now();
      const { done, left: leftFiles } = await performPlan(this.#store, planId, plan);
      for (const { path: name, after } of done) this.#known.learn(name, after);
      const refs = await this.#gitStates.perform(plan.refs ?? [], planId);
      const changes = done.map((change): PathChange => ({ ...change, origin: 'tool' }));
      const ran = { fromMs, toMs: Date.now() };
      const manifest = { by: 'rewind', changes, refs: refs.done, ran } as const;
      const stored = await attempt(() => this.#storeManifest(null, manifest));
      const taken = stored.kind === 'done' ? stored.value : null;
      return {
        checkpoint: taken?.checkpoint ?? null,
        changes: await summarise(this.#store, done),
        left: [
          ...leftFiles,
          ...refs.left,
          ...(stored.kind === 'done' ? [] : [unstored(stored.fault)]),
        ],
        refs: refs.done.map(describeRef),
      };
    });
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#queue;
    await this.#pruning;
    this.#parts?.looks.close();
  }
}

export const createCheckpoints = (place: CheckpointsPlace): Checkpoints & WorkspaceObserver =>
  new SessionCheckpoints(place);
