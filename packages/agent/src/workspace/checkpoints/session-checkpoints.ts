/**
 * The checkpoints of one session: what its calls change in the workspace is kept, and taken back.
 *
 * 1. Tools for files name them: only these are read, before and after the call. For a command the
 *    workspace is scanned, the first time before it starts.
 * 2. A clean file of git is read from there once it has changed. All others are copied before the
 *    first command, within limits; the user hears which are not.
 * 3. What a tool for files wrote is known by its bytes. What else changed while a command ran is
 *    recorded as such: anybody may have changed it (`ChangeOrigin`). Other changes are noted.
 * 4. All work is done one after the other.
 *
 * Words: a checkpoint is what a batch of calls, a command of the user or a rewind changed; a rewind
 * takes checkpoints back. A name is a path in the workspace, with each byte as one character
 * (manifest.ts). A look compares files with what is known of them: their state at the last look,
 * and where their content is. To note a name is to take over its present state as known, as
 * somebody else's change. A listing has all names that git knows or could add. A manifest is a
 * checkpoint as it is stored: states before and after.
 *
 * From top to bottom: before and after calls; looks; the copies of contents; going back; the files
 * for the next process of the session.
 */

import { appendFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isLockedAnywhere } from '../../journal/lock.js';
import { hashBytes, lockPath } from '../../journal/state-folder.js';
import type { FileLeft } from '../../machine/event.js';
import { attempt } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { isWithin } from '../../platform/files.js';
import { cut, plural } from '../../platform/text.js';
import { callTitle, type JudgedCall, namesItsFiles } from '../../policy/judged-call.js';
import { namedFiles } from '../../policy/shell/unrecoverable-files.js';
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
import { Claims, type RunningCalls, readClaims, readRunning } from './claims.js';
import {
  NOT_HERE,
  type ReadCheckpoints,
  readCheckpoints,
  refuseForeignPlace,
} from './foreign-checkpoints.js';
import { describeRef, type GitState, GitStates, isSameRef } from './git-state.js';
import { type Known, KnownFiles } from './known-files.js';
import { type Differences, WorkspaceLooks } from './looks.js';
import {
  ABSENT,
  type ChangeOrigin,
  composeChanges,
  type FileState,
  fileLeft,
  isAfter,
  isSameState,
  listContents,
  type Manifest,
  type PathChange,
  type RefChange,
  showName,
  statesIn,
  summarise,
  toName,
} from './manifest.js';
import { type Observation, OwnChanges, type WorkspaceObserver } from './own-changes.js';
import {
  CHANGED_SINCE,
  FILE_BYTES_MAX,
  type Plan,
  performPlan,
  readState,
  TOO_LARGE,
} from './restore.js';
import {
  type FileEntry,
  foldersAround,
  type KnownContent,
  type Listing,
  lookAt,
  lookAtAll,
  stateName,
  unlistedAt,
  WorkspaceLister,
  whyUnknown,
} from './scan.js';
import { CheckpointStore, pruneStores, storeFolder } from './store.js';

export type CheckpointsPlace = {
  /** Real absolute path. */
  readonly workspace: string;
  /** Where the user stands: real absolute path. Absent: in the workspace. */
  readonly standsIn?: string;
  readonly sessionId: string;
  /** The session whose task this one is: the two don't count as others. */
  readonly parent?: string | undefined;
  readonly stateFolder: string;
  readonly environment: ProcessEnvironment;
  /** The user has hooks, which run after calls: they count as commands. Default: none. */
  readonly hasHooks?: boolean;
  /** sha256 of what a tool last wrote to a file. Absent: only tools change what they name. */
  readonly written?: (file: string) => string | undefined;
  /** sha256 of what the model last saw of a file, by reading or writing it. */
  readonly seen?: (file: string) => string | undefined;
};

/** Limits of what the first scan copies. */
const COPIES_MAX = 20_000;
const COPIES_BYTES_MAX = 200 * 1024 * 1024;
/** A scan of more files is not saved for the next process. */
const SAVED_FILES_MAX = 20_000;
/** The kernel's clock for files ticks this often, so a change may look older by as much. */
const TICK_MS = 10;

/** The first line of a file with a scan; each further one is a name and what is known of it. */
const SCAN_HEAD = '{"version":3}';
/** A name; what is known of it, null: absent; missing: a tool has named it. */
type ScanLine = readonly [name: string, known?: Known | null];

/** Contents are synced one by one, unless there are more at once. */
const SYNCED_MAX = 16;
/** After so many files other work gets a turn. */
const SLICE = 16;

/**
 * When a command ran, or something that it started; that has no end while it runs still.
 * `endedAtMs`: when itself ended, if that is less. 0: nobody knows.
 */
type CommandTime = {
  readonly fromMs: number;
  readonly toMs: number;
  readonly endedAtMs?: number;
};

/** `perhaps`: it counts as a command's, but none is known to have run. */
type Whose = ChangeOrigin | 'perhaps' | 'others';

/** Who may have changed something at that time. */
const whoseAt = (times: readonly CommandTime[], atMs: number): Whose => {
  const running = times.filter(({ fromMs, toMs }) => atMs >= fromMs - TICK_MS && atMs <= toMs);
  if (running.some(({ toMs, endedAtMs = toMs }) => atMs <= endedAtMs)) return 'commands';
  if (running.length > 0) return 'perhaps';
  // a command may have changed it before
  return times.some(({ fromMs }) => atMs > fromMs) ? 'after' : 'others';
};

/** What a tool wrote, where somebody else changed the file before a look. */
const NOT_SEEN: FileState = { kind: 'notKept', why: 'somebody else changed it at once' };

const DURING_COMMANDS = 'it changed while a command ran';
const UNRECORDED = 'an earlier version did not record what changed it';
const REMOVED_AFTER =
  'it was removed between calls or when they had just ended, nobody knows by whom';

const INTERRUPTED =
  'The session was interrupted before it had looked at what its calls changed: changes of others ' +
  'until now count as theirs.';

const CLOSED =
  'A folder of the workspace is closed to Pawl: what was changed in it can’t be taken back, as long ' +
  'as it is.';

/** The names and the folders that they are in, which a call may make or remove. */
const withFolders = (names: readonly string[]): readonly string[] => [
  ...foldersAround(names),
  ...names,
];

const TITLE_MAX = 60;

const cutTitle = (title: string): string => cut(title, TITLE_MAX);

/** Why a file can't be as a checkpoint has it; null: it can. */
const whyNotBack = (version: FileState | undefined, now: FileState): string | null => {
  if (version === undefined) return 'the checkpoint does not have it';
  if (version.kind === 'notKept') return version.why;
  if (now.kind === 'notKept') return now.why;
  return now.kind === 'folder' ? 'a folder is there now' : null;
};

/** What a checkpoint is to say. */
type Taken = Pick<Manifest, 'by' | 'changes' | 'refs' | 'mixed' | 'killed'> &
  Required<Pick<Manifest, 'ran'>>;

type RefsSince = {
  readonly refs: readonly RefChange[];
  readonly mixed: Pick<Manifest, 'mixed'>;
};

class SessionCheckpoints implements Checkpoints, WorkspaceObserver {
  readonly #place: CheckpointsPlace;
  readonly #store: CheckpointStore;
  readonly #lister: WorkspaceLister;
  readonly #looks: WorkspaceLooks;
  readonly #gitStates: GitStates;
  /** HEAD, branches and index at the last look; null: none are known. */
  #git: GitState | null = null;
  /** Aborted when the session ends. */
  readonly #ended = new AbortController();
  /** How each name was at the last look; a name that is not in it was absent. */
  readonly #known = new KnownFiles();
  /** What the file with the scan holds; null: it has to be written as a whole. */
  #saved: { lines: number; named: number } | null = null;
  /** The names of the last scan; null: only named files are known. */
  #listing: Listing | null = null;
  /** Files that tools have named, also such that git ignores. */
  readonly #named = new Set<string>();
  /** Sentences about files that can't be taken back: all so far, and those not yet reported. */
  readonly #reported = new Set<string>();
  #unreported: string[] = [];
  /** Whether git knows the workspace, so that a text can be uncommitted. */
  #hasCommits = false;
  /** Texts of the user that are reported as replaced, by name and hash. */
  readonly #lost = new Set<string>();
  /** When the first call began since the last checkpoint; null: none. */
  #ranFromMs: number | null = null;
  /** When commands have run since the last checkpoint, by their calls. */
  readonly #commands = new Map<JudgedCall | null, CommandTime>();
  /** When commands have ended of which no look has been taken yet. */
  readonly #endedAtMs = new Map<JudgedCall, number>();
  /** What earlier calls of the batch changed, one after the other: a path may have several. */
  #changes: PathChange[] = [];
  /** How these were before the batch; null: absent. */
  readonly #beforeBatch = new Map<string, Known | null>();
  /** What tools have named since the last checkpoint. */
  readonly #ofBatch = new Set<string>();
  /** When commands ran since the last sweep. */
  #runs: NonNullable<Manifest['ran']>[] = [];
  /** When the last checkpoint was taken. */
  #takenAtMs = 0;
  /** What earlier checkpoints changed and nobody has committed; null: they are not read yet. */
  #own: OwnChanges | null = null;
  /** Checkpoints that are not in it yet. */
  #unseen: Manifest[] = [];
  /** What this batch settles. */
  #settled: string[] = [];
  /** When changes were last reported. */
  #reportedAtMs = Date.now();
  /** What the first scan has copied. */
  #copies = { files: 0, bytes: 0 };
  /** What the file of running calls says; null: there is none. */
  #running: RunningCalls | null = null;
  #isLoaded = false;
  #pruning: Promise<void> | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(place: CheckpointsPlace) {
    this.#place = place;
    const { stateFolder, workspace, environment } = place;
    this.#store = new CheckpointStore(storeFolder(stateFolder, workspace));
    const { signal } = this.#ended;
    const gitPlace = { workspace, environment, signal, known: new KnownRepository(environment) };
    this.#lister = new WorkspaceLister(gitPlace);
    this.#looks = new WorkspaceLooks(workspace, this.#store.marksFolder(place.sessionId), {
      known: this.#known,
      named: this.#named,
      lister: this.#lister,
    });
    this.#gitStates = new GitStates(gitPlace, this.#store);
  }

  /** The session whose task this one is, as the store names it. */
  get #parent(): { readonly parent?: string } {
    const { parent } = this.#place;
    return parent === undefined ? {} : { parent };
  }

  /** Runs one task at a time. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined); // whoever waits for `result` gets the error
    return result;
  }

  before(call: JudgedCall | null): Promise<void> {
    return this.#inTurn(async () => {
      await this.#load();
      const changesNamed = call !== null && namesItsFiles(call);
      if (this.#ranFromMs === null) this.#forgetBatch();
      if (!changesNamed && this.#listing === null) {
        await this.#scanFirst();
        await this.#gather([...this.#ofBatch]);
      }
      const isQuick = this.#listing !== null && this.#looks.isQuick(this.#listing);
      if (isQuick && (!changesNamed || this.#endedAtMs.size > 0)) {
        this.#endCommands();
        await this.#gather(null);
      }
      const named =
        call === null ? [] : changesNamed ? withFolders(this.#names(call)) : this.#unlisted(call);
      await this.#gather(await this.#seenOf(named));
      for (const name of named) {
        this.#named.add(name);
        if (changesNamed) this.#ofBatch.add(name);
      }
      const isFirst = this.#ranFromMs === null;
      const isCommand = !changesNamed || this.#place.hasHooks === true;
      if (isFirst) this.#git = await this.#gitStates.read();
      this.#ranFromMs ??= Date.now();
      const fromMs = Date.now();
      if (isCommand)
        this.#commands.set(call, {
          fromMs,
          toMs: Number.POSITIVE_INFINITY,
          ...(changesNamed ? { endedAtMs: 0 } : {}), // only hooks of the user may change more
        });
      // a killed command of the user needs no record: its changes are not taken back anyway
      if (call === null) return;
      const before = isFirst ? [] : (this.#running?.known ?? []);
      const [first] = this.#commands.values();
      await this.#writeRunning({
        ranFromMs: this.#ranFromMs,
        ...(first === undefined ? {} : { commandsFromMs: first.fromMs }),
        commands: [
          ...(isFirst ? [] : (this.#running?.commands ?? [])),
          ...(changesNamed ? [] : [[call.callId, fromMs, null] as const]),
        ],
        // the first look at a file is the oldest
        known: [...named.map((name) => [name, this.#knownBefore(name)] as const), ...before],
        ...(this.#git === null ? {} : { git: [...this.#git] }),
        ...this.#parent,
        taken: null,
      });
    });
  }

  /** Before a look: commands that have ended change nothing any more. */
  #endCommands(): void {
    for (const [call, toMs] of this.#endedAtMs) {
      this.#commands.set(call, { fromMs: this.#commands.get(call)?.fromMs ?? toMs, toMs });
    }
    this.#endedAtMs.clear();
  }

  /** How a name was before the batch; null: absent. */
  #knownBefore(name: string): Known | null {
    const before = this.#beforeBatch.get(name);
    return before === undefined ? (this.#known.get(name) ?? null) : before;
  }

  /** Those whose state was known before the call. Of the others the present one is noted. */
  async #seenOf(names: readonly string[]): Promise<readonly string[]> {
    const seen: string[] = [];
    for (const name of names) {
      const isSeen = this.#known.has(name) || this.#named.has(name);
      if (isSeen || (this.#commands.size > 0 && (await this.#isListed(name)))) seen.push(name);
      else await this.#note(name);
    }
    return seen;
  }

  /** Keeps what changed since the last look. `named`: the only names to look at; null: all. */
  async #gather(named: readonly string[] | null): Promise<void> {
    const changes = await this.#changesSince(named, [...this.#commands.values()]);
    // before the first call nothing is the calls'
    if (this.#ranFromMs !== null) this.#changes.push(...changes);
  }

  after(call: JudgedCall, hasEnded = true): Promise<string> {
    const endedAtMs = Date.now();
    return this.#inTurn(async () => {
      const mayGoOn = this.#place.hasHooks === true || call.facts.background === 'yes';
      const time = this.#commands.get(call);
      if (time !== undefined && !mayGoOn) this.#endedAtMs.set(call, endedAtMs);
      if (namesItsFiles(call)) return '';
      if (time !== undefined && mayGoOn) this.#commands.set(call, { ...time, endedAtMs });
      // nobody waits for the disk
      if (hasEnded) void this.#inTurn(() => this.#noteEnd(call, endedAtMs));
      if (!this.#hasCommits) return '';
      const names = await this.#lostNames();
      if (names.length === 0) return '';
      const [first = ''] = names;
      const shown = names.slice(0, 5).map(showName).join(', ');
      const text =
        `Uncommitted text of the user in ${shown}${names.length > 5 ? ', …' : ''} was replaced or ` +
        `removed while \`${cutTitle(callTitle(call, this.#place.workspace))}\` ran. It is stored: ` +
        `pawl checkpoints ` +
        `${this.#place.sessionId} --restore ${showName(first)} brings it back`;
      this.#report(`${text}.`); // on the screen, with the next checkpoint
      return `${text}, for the user to run. Tell them.`;
    });
  }

  /** For the next process: a command has ended. It may be one of the process before. */
  async #noteEnd({ callId }: JudgedCall, endedAtMs: number): Promise<void> {
    const running = this.#running ?? (await readRunning(this.#store, this.#place.sessionId));
    if (running === null || running.taken !== null) return;
    const commands = running.commands?.map(
      ([id, fromMs, toMs]) => [id, fromMs, id === callId ? endedAtMs : toMs] as const,
    );
    await this.#writeRunning({ ...running, ...(commands === undefined ? {} : { commands }) });
  }

  /** Files with uncommitted text of the user that is gone since the last look. */
  async #lostNames(): Promise<readonly string[]> {
    const reported = (await this.#looks.reported()) ?? this.#known.names();
    const names = reported.filter((name) => this.#known.get(name)?.isUsers === true);
    const gone = new Map<string, readonly string[]>();
    for (const name of this.#lookAtNames(new Set(names)).keys()) {
      const lines = await this.#goneLines(name);
      if (lines.length > 0) gone.set(name, lines);
    }
    if (gone.size === 0) return [];
    const committed = await this.#lister.readCommitted([...gone.keys()]);
    if (committed === null) return []; // there is no commit to compare with
    const lost: string[] = [];
    for (const [name, lines] of gone) {
      const kept = new Set(committed.get(name)?.toString('latin1').split('\n'));
      if (lines.every((line) => kept.has(line))) continue;
      const before = this.#stateBefore(name);
      if (before.kind === 'file') this.#lost.add(`${name} ${before.sha256}`);
      lost.push(name);
    }
    return lost;
  }

  /** Lines that the file held and that are gone since the last look, if not said before. */
  async #goneLines(name: string): Promise<readonly string[]> {
    const before = this.#stateBefore(name);
    if (before.kind !== 'file' || this.#lost.has(`${name} ${before.sha256}`)) return [];
    let now = '';
    const state = await readState(this.#place.workspace, name, (bytes) => {
      now = bytes.toString('latin1');
      return hashBytes(bytes);
    });
    if (isSameState(state, before) || state.kind === 'notKept') return [];
    const text = (await this.#store.get(before.sha256))?.toString('latin1') ?? '';
    const present = new Set(now.split('\n'));
    return text.split('\n').filter((line) => line.trim() !== '' && !present.has(line));
  }

  take({ by, calls, since }: Parameters<Checkpoints['take']>[0]): Promise<TakenCheckpoint | null> {
    const ranToMs = Date.now();
    return this.#inTurn(async () => {
      await this.#load();
      if (since === 'crash') return this.#takeOfKilled(ranToMs);
      const ranFromMs = this.#ranFromMs ?? ranToMs;
      const areAllNamed = calls.length > 0 && calls.every(namesItsFiles);
      // all changes since the last checkpoint are those of commands in the background
      if (since !== undefined) this.#commands.set(null, { fromMs: 0, toMs: ranToMs, endedAtMs: 0 });
      const commands = [...this.#commands].map(([call, time]) => {
        const endedAtMs = (call && this.#endedAtMs.get(call)) ?? time.endedAtMs;
        const toMs = Math.min(time.toMs, ranToMs);
        return { ...time, toMs, ...(endedAtMs === undefined ? {} : { endedAtMs }) };
      });
      const { refs, mixed } = await this.#refsSince(this.#git);
      if (!areAllNamed && this.#listing === null) await this.#scanFirst();
      const named = areAllNamed ? withFolders(calls.flatMap((call) => this.#names(call))) : null;
      if (named === null) this.#runs.push(...commands);
      const last = await this.#changesSince(named, commands);
      const changes = [...this.#changes, ...last];
      this.#forgetBatch();
      const ran = { fromMs: since === undefined ? ranFromMs : this.#takenAtMs, toMs: ranToMs };
      return this.#storeTaken({ by, changes, refs, ran, ...mixed });
    });
  }

  #forgetBatch(): void {
    this.#ranFromMs = null;
    this.#changes = [];
    for (const one of [this.#commands, this.#endedAtMs, this.#beforeBatch, this.#ofBatch])
      one.clear();
  }

  /** How HEAD, branches and the index changed. Notes how they are. */
  async #refsSince(before: GitState | null): Promise<RefsSince> {
    if (before === null) return { refs: [], mixed: {} };
    const now = await this.#gitStates.read();
    this.#git = now;
    if (now === null) return { refs: [], mixed: {} };
    const isMixed = await this.#gitStates.isMixed(before, now);
    const refs = await this.#gitStates.changesBetween(before, now);
    return { refs, mixed: isMixed ? { mixed: true } : {} };
  }

  /** What calls changed. `named`: the only names to look at; null: all. */
  async #changesSince(
    named: readonly string[] | null,
    commands: readonly CommandTime[],
  ): Promise<readonly PathChange[]> {
    const changed =
      named === null ? await this.#lookAround(false) : this.#lookAtNames(new Set(named));
    return this.#changesByCalls(changed, commands);
  }

  /** Which of these names differ. */
  #lookAtNames(names: ReadonlySet<string>): Differences {
    const changed = new Map<string, FileEntry | null>();
    for (const name of names) {
      const entry = lookAt(this.#place.workspace, name);
      if (this.#known.differs(name, entry)) changed.set(name, entry);
    }
    return changed;
  }

  /** Looks at the workspace. `isWhole`: also at files of which no change was reported. */
  async #lookAround(isWhole: boolean): Promise<Differences> {
    const { listing, changed } = await this.#looks.look(isWhole);
    this.#noteListing(listing);
    return changed;
  }

  #noteListing(listing: Listing): void {
    if (listing.limit !== null) this.#report(listing.limit);
    this.#listing = listing;
  }

  /** Takes the checkpoint for the calls of a process that was killed before it was journaled. */
  async #takeOfKilled(ranToMs: number): Promise<TakenCheckpoint | null> {
    const running = await readRunning(this.#store, this.#place.sessionId);
    if (running === null) return null;
    this.#running = running;
    if (running.taken !== null) {
      const manifest = await this.#store.manifest(running.taken);
      if (manifest === null) return null;
      const changes = await summarise(this.#store, manifest.changes);
      return { checkpoint: running.taken, changes, leftOut: [] };
    }
    for (const [name, known] of running.known) {
      this.#named.add(name);
      this.#ofBatch.add(name);
      if (known === null) this.#known.delete(name);
      else this.#known.set(name, known);
    }
    const named = this.#listing === null ? running.known.map(([name]) => name) : null;
    const { ranFromMs: fromMs, commands = [] } = running;
    const ended = commands.flatMap(([, fromMs, toMs]) => (toMs === null ? [] : [{ fromMs, toMs }]));
    const ran = { fromMs, toMs: ranToMs };
    const changes = await this.#changesSince(named, [{ ...ran, endedAtMs: 0 }, ...ended]);
    const git = running.git === undefined ? null : new Map(running.git);
    const { refs, mixed } = await this.#refsSince(git);
    this.#forgetBatch();
    if (changes.length > 0 || refs.length > 0) this.#report(INTERRUPTED);
    const killed = ended.length < commands.length;
    return this.#storeTaken({ by: 'agent', changes, refs, ran, killed, ...mixed });
  }

  sweep(by: 'agent' | 'user'): Promise<TakenCheckpoint | null> {
    return this.#inTurn(async () => {
      const runs = this.#runs.splice(0);
      if (this.#listing === null || runs.length === 0 || !this.#looks.isWatching) return null;
      await this.#gather(null); // what was reported since the last checkpoint is somebody else's
      const changed = await this.#lookAround(true);
      // the removal of a file has no time, so it is nobody's and only noted
      const present = new Map([...changed].filter(([, entry]) => entry !== null));
      const changes = await this.#changesByCalls(present, runs);
      for (const [name, entry] of changed) if (entry === null) await this.#note(name);
      const fromMs = Math.min(...runs.map((run) => run.fromMs));
      return this.#storeTaken({ by, changes, ran: { fromMs, toMs: Date.now() } });
    });
  }

  recorded(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#running !== null && this.#running.taken !== null) await this.#writeRunning(null);
    });
  }

  /** Stores a checkpoint of these changes; null if there are none and nothing to report. */
  async #storeTaken(taken: Taken): Promise<TakenCheckpoint | null> {
    const { changes, refs = [], ...about } = taken;
    this.#takenAtMs = taken.ran.toMs;
    const leftOut = this.#unreported.splice(0);
    const settled = this.#settled.splice(0);
    if (changes.length === 0 && refs.length === 0 && leftOut.length === 0) {
      if (this.#running !== null) await this.#writeRunning(null);
      return null;
    }
    const manifest: Manifest = {
      version: 1,
      ...about,
      changes,
      ...(refs.length === 0 ? {} : { refs }),
      ...this.#parent,
      ...(settled.length === 0 ? {} : { settled }),
    };
    if (this.#own !== null) this.#unseen.push(manifest);
    const checkpoint = await this.#store.addManifest(this.#place.sessionId, manifest);
    if (this.#running !== null) await this.#writeRunning({ ...this.#running, taken: checkpoint });
    await this.#save();
    this.#pruning ??= this.#prune();
    return { checkpoint, changes: await summarise(this.#store, changes), leftOut };
  }

  /** Makes room once in a process, beside everything else. */
  async #prune(): Promise<void> {
    const { stateFolder, sessionId } = this.#place;
    const keep = (): readonly string[] => [
      ...this.#known.stored(),
      ...this.#changes.flatMap(listContents),
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

  // ---- Looks ----

  /** The names of a call's files in the workspace, without those of the git folder. */
  #names({ facts }: JudgedCall): readonly string[] {
    const { workspace } = this.#place;
    return facts.paths
      .filter((file) => file !== workspace && isWithin(file, workspace))
      .map((file) => toName(path.relative(workspace, file)))
      .filter((name) => name !== '.git' && !name.startsWith('.git/'));
  }

  /** The files that a command names and no scan knows, since git ignores them. */
  #unlisted({ facts: { shell, argv } }: JudgedCall): readonly string[] {
    if (shell === undefined) return [];
    const { workspace } = this.#place;
    const names = namedFiles(shell, argv.join(' '), workspace)
      .map((file) => toName(path.relative(workspace, file)))
      .flatMap((name) => this.#unlistedAt(name).names);
    return withFolders([...new Set(names)]).filter((name) => !this.#isOfScan(name));
  }

  #unlistedAt(name: string): ReturnType<typeof unlistedAt> {
    const state = stateName(this.#place.workspace, this.#place.stateFolder);
    const isListed = (one: string): boolean => this.#isOfScan(one) || one.startsWith(`${state}/`);
    return unlistedAt(this.#place.workspace, name, { isListed, bytesMax: FILE_BYTES_MAX });
  }

  /** Whether a scan knows it: git does not ignore it. */
  #isOfScan(name: string): boolean {
    return this.#known.has(name) && !this.#named.has(name);
  }

  async #list(): Promise<Listing> {
    const listing = await this.#lister.list(false);
    if (listing.limit !== null) this.#report(listing.limit);
    return listing;
  }

  /** Tells the user once, with the next checkpoint. */
  #report(text: string): void {
    if (this.#reported.has(text)) return;
    this.#reported.add(text);
    this.#unreported.push(text);
  }

  /** The first scan of the workspace: copies all files that git does not hold. */
  async #scanFirst(): Promise<void> {
    const listedAtMs = Date.now() - TICK_MS;
    const listing = await this.#lister.list(true); // also which files equal git's blobs
    this.#noteListing(listing);
    this.#hasCommits = listing.clean !== null;
    const entries = await this.#looks.scan(listing);
    const tooLarge: string[] = [];
    let tooMany = 0;
    let copied = 0;
    for (const [name, entry] of entries) {
      if (this.#known.has(name) || this.#ofBatch.has(name)) continue;
      // a file that changed since git looked may differ from git's blob
      const blob = entry.changedAtMs < listedAtMs ? listing.clean?.get(name) : undefined;
      if (blob !== undefined || entry.kind !== 'file') {
        this.#known.set(name, { entry, content: { kind: 'git', blob: blob ?? '' } });
        continue;
      }
      if (++copied % SLICE === 0) await nextTurn();
      const content = await this.#copyFirst(name, entry);
      if (content.kind === 'notKept' && content.why === TOO_LARGE) tooLarge.push(showName(name));
      else if (content.kind === 'notKept') tooMany += 1;
      this.#known.set(name, { entry, content, isUsers: true });
    }
    if (tooLarge.length > 0)
      this.#report(
        `${plural(tooLarge.length, 'file')} of more than 20 MB can’t be taken back: ` +
          `${tooLarge.slice(0, 5).join(', ')}${tooLarge.length > 5 ? ', …' : ''}`,
      );
    if (tooMany > 0)
      this.#report(
        `${plural(tooMany, 'file')} that git does not hold can’t be taken back: at most ` +
          '20,000 files and 200 MB are copied.',
      );
    await this.#save();
  }

  /** Copies a file at the first scan, as long as there is room. */
  async #copyFirst(name: string, entry: FileEntry): Promise<KnownContent> {
    const copies = this.#copies;
    if (entry.bytes <= FILE_BYTES_MAX) {
      if (copies.files >= COPIES_MAX || copies.bytes + entry.bytes > COPIES_BYTES_MAX)
        return { kind: 'notKept', why: 'too much was to be copied' };
      copies.files += 1;
      copies.bytes += entry.bytes;
    }
    return this.#copy(name, entry, (bytes) => this.#store.putMany(bytes));
  }

  /** Copies the present content of a file into the store. */
  async #copy(
    name: string,
    entry: FileEntry,
    put: (bytes: Buffer) => Promise<string> | string = (bytes) => this.#store.put(bytes),
  ): Promise<KnownContent> {
    if (entry.bytes > FILE_BYTES_MAX) return { kind: 'notKept', why: TOO_LARGE };
    const state = await readState(this.#place.workspace, name, put);
    if (state.kind === 'file') return { kind: 'stored', sha256: state.sha256 };
    return { kind: 'notKept', why: state.kind === 'notKept' ? state.why : 'it was changed' };
  }

  /** Notes the present state of a file that somebody else may have changed. */
  async #note(name: string): Promise<void> {
    const entry = lookAt(this.#place.workspace, name);
    const known = this.#known.get(name);
    if (entry === null) {
      if (whyUnknown(this.#place.workspace, name) === null) this.#known.delete(name);
    } else if (known === undefined || entry.stamp === '' || entry.stamp !== known.entry.stamp)
      this.#known.set(name, {
        entry,
        // a link or folder has no content to copy
        content: entry.kind === 'file' ? await this.#copy(name, entry) : { kind: 'git', blob: '' },
        ...(entry.kind === 'file' ? { isUsers: true as const } : {}),
      });
  }

  /** When a name that is not there was removed at the latest: then its folder changed last. */
  #removedAtMs(name: string): number {
    const around = ['', ...foldersAround([name])];
    for (const folder of around.toReversed()) {
      const entry = lookAt(this.#place.workspace, folder);
      if (entry !== null) return entry.changedAtMs;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Whether it would be known if it had been there at the last scan: git may ignore it. */
  async #isListed(name: string): Promise<boolean> {
    return this.#listing !== null && (await this.#list()).names.has(name);
  }

  /**
   * What the calls changed of these names since the last look. `commands`: when commands ran.
   * Changes by somebody else are only noted.
   */
  async #changesByCalls(
    changed: Differences,
    commands: readonly CommandTime[],
  ): Promise<readonly PathChange[]> {
    const { workspace } = this.#place;
    const moved = this.#movedFolders(changed, commands);
    const origins = new Map<string, Whose>();
    for (const [name, entry] of changed) {
      const movedAtMs = foldersAround([name]).flatMap((folder) => moved.get(folder) ?? [])[0];
      origins.set(
        name,
        entry === null
          ? this.#whoRemoved(name, commands)
          : whoseAt(commands, movedAtMs ?? entry.changedAtMs),
      );
    }
    const byCalls = [...origins.keys()].filter(
      (name) => origins.get(name) !== 'others' || this.#ofBatch.has(name),
    );
    await this.#fetchBlobs(byCalls);
    for (const name of origins.keys())
      if (origins.get(name) === 'others' && !this.#ofBatch.has(name)) await this.#note(name);
    const changes: PathChange[] = [];
    const put = this.#putter(byCalls.length);
    for (const [at, name] of byCalls.entries()) {
      if (at % SLICE === SLICE - 1) await nextTurn();
      if (whyUnknown(workspace, name) !== null) {
        this.#report(CLOSED);
        continue;
      }
      const before = this.#stateBefore(name);
      if (!this.#beforeBatch.has(name)) this.#beforeBatch.set(name, this.#known.get(name) ?? null);
      const after = await readState(workspace, name, put);
      this.#setKnown(name, after);
      const change = this.#attribute({ path: name, before, after }, origins.get(name) ?? 'others');
      // not `isSameState`: two states that are not kept for the same reason are no change either
      if (change !== null && JSON.stringify(before) !== JSON.stringify(change.after))
        changes.push(change);
    }
    return changes;
  }

  /** Who removed a file: its folder says when, at the latest. */
  #whoRemoved(name: string, commands: readonly CommandTime[]): Whose {
    // closed folders are reported later
    if (whyUnknown(this.#place.workspace, name) !== null) return 'commands';
    return whoseAt(commands, this.#removedAtMs(name));
  }

  /** The change as it is stored; null: it is somebody else's. `seen`: by its time. */
  #attribute(change: PathChange, seen: Whose): PathChange | null {
    const { path: name, before, after } = change;
    const isOfBatch = this.#ofBatch.has(name);
    const { written } = this.#place;
    if (isOfBatch && (written === undefined || after.kind === 'folder'))
      return { ...change, origin: 'tool' };
    const file = path.join(this.#place.workspace, showName(name));
    const isKilled = this.#running !== null && this.#ranFromMs === null;
    // what tools of a killed process wrote is known only as what the model saw
    const sha256 = written?.(file) ?? (isKilled ? this.#place.seen?.(file) : undefined);
    const isWritten = (state: FileState): boolean =>
      state.kind === 'file' && state.sha256 === sha256;
    // a formatter also writes what commands changed; a new mode alone is not its work
    if (isWritten(after) && (isOfBatch || (seen !== 'commands' && !isWritten(before))))
      return { ...change, origin: 'tool' };
    if (seen === 'commands') return { ...change, origin: seen };
    if (seen === 'perhaps') return { ...change, origin: 'commands', unsure: true };
    // somebody else changed what the tool wrote
    if (isOfBatch && sha256 !== undefined && !isWritten(before))
      return { path: name, before, after: NOT_SEEN, origin: 'tool' };
    return seen === 'others' ? null : { ...change, origin: seen };
  }

  /** Folders that calls created or moved, and when. Files that came with them keep their times. */
  #movedFolders(
    changed: Differences,
    commands: readonly CommandTime[],
  ): ReadonlyMap<string, number> {
    const moved = new Map<string, number>();
    for (const [name, entry] of changed) {
      if (entry?.kind !== 'folder' || this.#known.get(name)?.entry.inode === entry.inode) continue;
      const { changedAtMs } = entry;
      if (['commands', 'perhaps'].includes(whoseAt(commands, changedAtMs)))
        moved.set(name, changedAtMs);
    }
    return moved;
  }

  /** How to store one of so many contents: many are not synced each, which would take minutes. */
  #putter(contents: number): (bytes: Buffer) => Promise<string> | string {
    return (bytes) => (contents > SYNCED_MAX ? this.#store.putMany(bytes) : this.#store.put(bytes));
  }

  /** Takes over a state that is in the store. */
  #setKnown(name: string, state: FileState): void {
    const entry = lookAt(this.#place.workspace, name);
    const isUsers = this.#known.get(name)?.isUsers === true ? { isUsers: true as const } : {};
    if (entry === null || state.kind === 'absent') this.#known.delete(name);
    else if (state.kind === 'file')
      this.#known.set(name, {
        entry,
        content: { kind: 'stored', sha256: state.sha256 },
        ...isUsers,
      });
    else if (state.kind === 'notKept')
      this.#known.set(name, { entry, content: { kind: 'notKept', why: state.why } });
    else this.#known.set(name, { entry, content: { kind: 'git', blob: '' } });
  }

  /** The state of a name at the last look. */
  #stateBefore(name: string): FileState {
    const known = this.#known.get(name);
    if (known === undefined) return ABSENT;
    const { entry, content } = known;
    if (entry.kind === 'link') return { kind: 'link', target: entry.target ?? '' };
    if (entry.kind === 'folder') return { kind: 'folder', mode: entry.mode };
    if (content.kind === 'stored')
      return { kind: 'file', sha256: content.sha256, bytes: entry.bytes, mode: entry.mode };
    const why = content.kind === 'git' ? 'git has lost its content' : content.why;
    return { kind: 'notKept', why };
  }

  /** Copies the earlier contents of changed files from git into the store. */
  async #fetchBlobs(names: readonly string[]): Promise<void> {
    const blobs = new Map<string, string>();
    for (const name of names) {
      const content = this.#known.get(name)?.content;
      if (content?.kind === 'git' && content.blob !== '') blobs.set(name, content.blob);
    }
    const contents = await this.#lister.readBlobs([...blobs.values()]);
    const put = this.#putter(blobs.size);
    for (const [name, blob] of blobs) {
      const [bytes, known] = [contents.get(blob), this.#known.get(name)];
      if (bytes === undefined || known === undefined || bytes.length !== known.entry.bytes)
        continue;
      const sha256 = await put(bytes);
      this.#known.set(name, { ...known, content: { kind: 'stored', sha256 } });
    }
  }

  // ---- Between calls ----

  lookBefore(call: JudgedCall): Promise<void> {
    return this.#inTurn(async () => {
      // where looks are quick, `before` looks anyway
      if (this.#ranFromMs === null || this.#listing === null || namesItsFiles(call)) return;
      if (this.#looks.isQuick(this.#listing)) return;
      this.#endCommands();
      await this.#gather(null);
    });
  }

  observe(): Promise<Observation> {
    return this.#inTurn(async () => {
      await this.#load();
      const seen = this.#own ?? (await this.#readOwn());
      const batch = await this.#batchSoFar();
      const unseen = this.#unseen.splice(0);
      const claims = await this.#claimsOn([...unseen, ...(batch === null ? [] : [batch])]);
      const claimed = ({ path: name, before, origin }: PathChange): string | null =>
        origin === 'commands' ? claims(name, before, origin) : null;
      for (const manifest of unseen) seen.add(manifest, claimed);
      this.#own = seen;
      const changes = new OwnChanges(this.#place.workspace, seen);
      if (batch !== null) changes.add(batch, claimed);
      const { workspace } = this.#place;
      return {
        changes,
        recent: changes.since(this.#reportedAtMs),
        readNow: (file) => readState(workspace, toName(path.relative(workspace, file))),
        content: (sha256) => this.#store.get(sha256),
      };
    });
  }

  /** The checkpoints of the session so far are all unseen. */
  async #readOwn(): Promise<OwnChanges> {
    const manifests: Manifest[] = [];
    for (const sha256 of await this.#store.listed(this.#place.sessionId)) {
      const manifest = await this.#store.manifest(sha256);
      if (manifest !== null) manifests.push(manifest);
    }
    this.#unseen = manifests;
    return new OwnChanges(this.#place.workspace);
  }

  /** What the calls of the batch have changed until now, as a checkpoint; null: there are none. */
  async #batchSoFar(): Promise<Manifest | null> {
    if (this.#ranFromMs === null) return null;
    this.#endCommands();
    await this.#gather(this.#commands.size === 0 ? [...this.#ofBatch] : null);
    const now = this.#git === null ? null : await this.#gitStates.read();
    const isMixed = now !== null && (await this.#gitStates.isMixed(this.#git ?? now, now));
    return {
      version: 1,
      by: 'agent',
      changes: this.#changes,
      ran: { fromMs: this.#ranFromMs, toMs: Date.now() },
      ...(isMixed ? { mixed: true } : {}),
      settled: this.#settled,
    };
  }

  reported(): void {
    this.#reportedAtMs = Date.now();
  }

  settle(files: readonly string[]): Promise<void> {
    return this.#inTurn(async () => {
      const names = files.map((file) => toName(path.relative(this.#place.workspace, file)));
      this.#own?.settle(names);
      this.#settled.push(...names);
    });
  }

  unkept(paths: readonly string[]): Promise<readonly string[]> {
    return this.#inTurn(async () => {
      await this.#load();
      const listing = this.#listing ?? (await this.#lister.list(true));
      if (listing.limit !== null) return paths;
      const copied = [...listing.names].filter((name) => !listing.clean?.has(name));
      const hasRoom = this.#listing !== null || (await this.#hasRoomFor(copied));
      const { workspace } = this.#place;
      return paths.filter((file) => {
        const name = toName(path.relative(workspace, file));
        const names = [...listing.names].filter(
          (one) => one === name || name === '' || one.startsWith(`${name}/`),
        );
        // a file that git ignores is copied before a command that names it
        if (names.length === 0) return !this.#unlistedAt(name).areAll;
        return !names.every((one) => this.#isKept(one, listing, hasRoom));
      });
    });
  }

  /** Whether the content of a file is in the store or in git, or would be copied. */
  #isKept(name: string, { clean }: Listing, hasRoom: boolean): boolean {
    const known = this.#known.get(name);
    if (known !== undefined) return known.content.kind !== 'notKept';
    if (clean?.has(name)) return true;
    const entry = lookAt(this.#place.workspace, name);
    return hasRoom && (entry === null || entry.bytes <= FILE_BYTES_MAX);
  }

  /** Whether the first scan could copy them all. */
  async #hasRoomFor(names: readonly string[]): Promise<boolean> {
    if (names.length > COPIES_MAX) return false;
    const entries = await lookAtAll(this.#place.workspace, names);
    let bytes = 0;
    for (const entry of entries.values())
      if (entry.kind === 'file' && entry.bytes <= FILE_BYTES_MAX) bytes += entry.bytes;
    return bytes <= COPIES_BYTES_MAX;
  }

  // ---- Going back ----

  plan(request: RestoreRequest): Promise<RestorePlan> {
    return this.#inTurn(() => this.#plan(request));
  }

  planFile({ checkpoint, path: shown, at }: FileVersion): Promise<RestorePlan> {
    return this.#inTurn(async () => {
      const { manifests, untouched } = await this.#read([checkpoint]);
      const name = toName(shown);
      const version = statesIn(manifests[0], name)[at];
      const now = await readState(this.#place.workspace, name, (bytes) => this.#store.put(bytes));
      const why = untouched.get(name) ?? whyNotBack(version, now);
      const isSame = version !== undefined && isSameState(version, now);
      if (version === undefined || why !== null || isSame) {
        const changes = await summarise(this.#store, []);
        const unchanged = why === null ? [] : [fileLeft(name, why)];
        return { plan: null, refusal: null, changes, left: unchanged, refs: [] };
      }
      const changes: readonly PathChange[] = [{ path: name, before: now, after: version }];
      const plan = await this.#storePlan({ changes, left: [] });
      const summary = await summarise(this.#store, changes, 'all');
      return { plan, refusal: null, changes: summary, left: [], refs: [] };
    });
  }

  #storePlan(plan: Omit<Plan, 'version' | 'workspace'>): Promise<string> {
    const { workspace } = this.#place;
    const whole: Plan = { version: 1, workspace, ...plan };
    return this.#store.put(Buffer.from(JSON.stringify(whole)));
  }

  describe(checkpoints: readonly NamedCheckpoint[]): Promise<DescribedCheckpoints | null> {
    return this.#inTurn(async () => {
      const { named, manifests, untouched } = await this.#read(checkpoints);
      if (manifests.length === 0) return null;
      const changes = await summarise(this.#store, composeChanges(named, isSameState), 'all');
      return { changes, untouched: [...untouched].map(([name, why]) => fileLeft(name, why)) };
    });
  }

  #read(checkpoints: readonly NamedCheckpoint[]): Promise<ReadCheckpoints> {
    const { workspace, environment } = this.#place;
    return readCheckpoints({ store: this.#store, workspace, environment }, checkpoints);
  }

  async #plan(request: RestoreRequest): Promise<RestorePlan> {
    const { takeBack, refs: wantsRefs } = request;
    const { manifests, untouched, untouchedRefs } = await this.#read(takeBack);
    /** Files that stay as they are. */
    const leftFiles: FileLeft[] = [...untouched].map(([name, why]) => fileLeft(name, why));
    const isForeign = takeBack.some((checkpoint) => checkpoint.isForeign);
    const { workspace } = this.#place;
    const place = { standsIn: workspace, ...this.#place };
    const refusal = isForeign ? refuseForeignPlace(place) : null;
    const targets = composeChanges(manifests, isSameState).filter(
      ({ path: name }) => !untouched.has(name),
    );
    if (refusal !== null) {
      for (const { path: name } of targets) leftFiles.push(fileLeft(name, NOT_HERE));
      const changes = await summarise(this.#store, []);
      return { plan: null, refusal, changes, left: leftFiles, refs: [] };
    }
    const planned = await this.#planFiles(targets, manifests, request);
    const { changes } = planned;
    leftFiles.push(...planned.stay);
    const summary = await summarise(this.#store, changes, 'all');
    const refs = wantsRefs ? await this.#planRefs(manifests) : { changes: [], left: [] };
    leftFiles.push(...refs.left, ...(wantsRefs ? untouchedRefs : []));
    const movedRefs = refs.changes.map(describeRef);
    if (changes.length === 0 && refs.changes.length === 0)
      return { plan: null, refusal, changes: summary, left: leftFiles, refs: movedRefs };
    const movedBack = refs.changes.length === 0 ? {} : { refs: refs.changes };
    const plan = await this.#storePlan({ changes, ...movedBack, left: leftFiles });
    return { plan, refusal, changes: summary, left: leftFiles, refs: movedRefs };
  }

  /** Which files go back, and which stay. */
  async #planFiles(
    targets: ReturnType<typeof composeChanges<FileState>>,
    manifests: readonly Manifest[],
    { force, editsOnly = false }: RestoreRequest,
  ): Promise<{ readonly changes: readonly PathChange[]; readonly stay: readonly FileLeft[] }> {
    const stay: FileLeft[] = [];
    const changes: PathChange[] = [];
    const claims = await this.#claimsOn(manifests);
    // stores what is replaced, also what somebody else wrote
    const keep = (bytes: Buffer): Promise<string> => this.#store.put(bytes);
    // `why`: the reason why a path does not go back all the way
    for (const { path: name, before, after, origin, left: why } of targets) {
      const now = await readState(this.#place.workspace, name, keep);
      if (isSameState(now, before)) continue;
      const claimed = claims(name, before, origin);
      const isFile = before.kind !== 'folder' && now.kind !== 'folder';
      if (before.kind === 'notKept') stay.push(fileLeft(name, before.why));
      else if (now.kind === 'notKept') stay.push(fileLeft(name, now.why));
      else if (claimed !== null) stay.push(fileLeft(name, `the session ${claimed} changed it too`));
      else if (editsOnly && origin !== 'tool') {
        if (isFile) stay.push(fileLeft(name, origin === 'commands' ? DURING_COMMANDS : UNRECORDED));
      } else if (!isSameState(now, after) && !force) stay.push(fileLeft(name, CHANGED_SINCE));
      else {
        const known = origin === undefined ? {} : { origin };
        changes.push({ path: name, before: now, after: before, ...known });
      }
      if (why !== null) stay.push(fileLeft(name, why));
    }
    const after = manifests.flatMap(({ changes }) => changes.filter(isAfter));
    for (const name of new Set(after.map((change) => change.path)))
      if (lookAt(this.#place.workspace, name) === null) stay.push(fileLeft(name, REMOVED_AFTER));
    return { changes, stay };
  }

  /** Finds the session that claims a path of these checkpoints. */
  async #claimsOn(manifests: readonly Manifest[]) {
    const { stateFolder } = this.#place;
    const ranFromMs = manifests.map(({ ran }) => ran?.fromMs ?? 0);
    const sinceMs = Math.min(...ranFromMs) - TICK_MS;
    const claims =
      manifests.length === 0
        ? new Claims()
        : await readClaims(this.#store, stateFolder, this.#place, sinceMs);
    const states = new Map<string, FileState[]>();
    const ended = new Map<string, number>();
    for (const { changes, ran } of manifests)
      for (const { path: name, before, after } of changes) {
        states.set(name, [...(states.get(name) ?? []), before, after]);
        ended.set(name, ran?.toMs ?? 0);
      }
    return (name: string, before: FileState, origin: ChangeOrigin | undefined): string | null =>
      claims.find({
        path: name,
        before,
        ...(origin === undefined ? {} : { origin }),
        states: states.get(name) ?? [],
        toMs: ended.get(name) ?? 0,
      });
  }

  #planRefs(manifests: readonly Manifest[]): ReturnType<GitStates['plan']> {
    // the last change of a list counts first, and HEAD goes back before the index
    const lists = manifests.map(({ by, refs = [] }) => ({ by, changes: refs.toReversed() }));
    return this.#gitStates.plan(composeChanges(lists, isSameRef));
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
      for (const { path: name, after } of done) this.#setKnown(name, after);
      const refs = await this.#gitStates.perform(plan.refs ?? [], planId);
      const changes = done.map((change): PathChange => ({ ...change, origin: 'tool' }));
      const ran = { fromMs, toMs: Date.now() };
      const taken = await this.#storeTaken({ by: 'rewind', changes, refs: refs.done, ran });
      return {
        checkpoint: taken?.checkpoint ?? null,
        changes: await summarise(this.#store, done),
        left: [...leftFiles, ...refs.left],
        refs: refs.done.map(describeRef),
      };
    });
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#queue;
    await this.#pruning;
    this.#looks.close();
  }

  // ---- For the next process of the session ----

  /**
   * Saves the scan: adds what changed since the last time. When too many lines are out of date, the
   * file is written as a whole.
   */
  async #save(): Promise<void> {
    if (this.#listing === null || this.#known.size > SAVED_FILES_MAX) return;
    const file = this.#store.scanFile(this.#place.sessionId);
    const saved = this.#saved;
    const changed = saved === null ? this.#known.names() : [...this.#known.unsaved];
    const named = [...this.#named].slice(saved?.named ?? 0);
    const lines: ScanLine[] = changed.map((name) => [name, this.#known.get(name) ?? null]);
    for (const name of named) lines.push([name]);
    const total = (saved?.lines ?? 0) + lines.length;
    if (saved !== null && total > 2 * (this.#known.size + this.#named.size) + 1_000) {
      this.#saved = null;
      return this.#save();
    }
    this.#known.unsaved.clear();
    this.#saved = { lines: total, named: this.#named.size };
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    if (saved === null) await this.#write(file, `${SCAN_HEAD}\n${text}`);
    else await attempt(() => appendFile(file, text)); // on a full disk the next process scans anew
  }

  /** Replaces the file of running calls; null removes it. */
  async #writeRunning(running: RunningCalls | null): Promise<void> {
    this.#running = running;
    const file = this.#store.callsFile(this.#place.sessionId);
    if (running === null) await rm(file, { force: true });
    else await this.#write(file, JSON.stringify(running));
  }

  /** Writes a file as a whole. One that can't be written costs only what a kill would lose. */
  async #write(file: string, text: string): Promise<void> {
    const draft = `${file}.draft`;
    try {
      await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(draft, text, { mode: 0o600 });
      await rename(draft, file);
    } catch {
      await rm(draft, { force: true }); // the next process scans anew
    }
  }

  /** Reads the scan of an earlier process, once. */
  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    this.#isLoaded = true;
    try {
      const text = await readFile(this.#store.scanFile(this.#place.sessionId), 'utf8');
      const [head, ...lines] = text.split('\n');
      if (head !== SCAN_HEAD || lines.pop() !== '') return; // cut off, so what it says is out of date
      for (const text of lines) {
        const [name, known]: ScanLine = JSON.parse(text);
        if (known === undefined) this.#named.add(name);
        else if (known === null) this.#known.delete(name);
        else this.#known.set(name, known);
      }
      this.#known.unsaved.clear();
      this.#saved = { lines: lines.length, named: this.#named.size };
      this.#listing = await this.#list();
      this.#hasCommits = true; // of no commit no text is asked
    } catch {
      // there is no scan: the first command makes one
    }
  }
}

export const createCheckpoints = (place: CheckpointsPlace): Checkpoints & WorkspaceObserver =>
  new SessionCheckpoints(place);
