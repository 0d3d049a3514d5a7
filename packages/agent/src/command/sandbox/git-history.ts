/**
 * Keeps the history of git folders that a command may change: afterwards every commit and stash
 * that existed before can be reached, and the index is readable.
 *
 * Before a command, loose objects, refs, reflogs, HEAD and index are copied to the session's
 * folder, which commands do not see. Only changed files are copied again. Packs are not copied:
 * they are mounted read-only. After the command, what is gone or damaged is put back. New commits,
 * refs and files of the command stay.
 *
 * When a command starts or ends while another one runs, what the other one has done so far is
 * checked, too. The copies stay until a command has been checked. So a later process can check a
 * command whose Pawl was killed.
 *
 * A git folder is `.git`, or a bare repository. A reflog lists the commits that a ref has named.
 *
 * From top to bottom: `GitHistory`, for all git folders of a session, and `finishHistory`, for
 * those of a killed process; the lines for the model about what was put back; reading git's files;
 * `GitCopies`, one git folder and its copies; `HistoryCheck`, the repair after a command; and
 * running git.
 */

import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { inflateSync } from 'node:zlib';
import * as v from 'valibot';
import {
  copyRegularSync,
  entriesIn,
  entryStatus,
  holdFolderSync,
  inFolder,
  isFolder,
  readBytes,
  readRegularSync,
  removeBelow,
  setAside,
} from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { askProgramSync } from '../../platform/start-program.js';
import { plural } from '../../platform/text.js';
import type { HistoryPurpose } from '../../policy/repository-access.js';
import { historyFolder } from './session-folders.js';

/**
 * Of a command whose words change no history on purpose. `takesStash`: it ends a stash, whose
 * changes are back in the files. `movesBorder`: it changes where a shallow clone's history ends.
 */
export const NO_PURPOSE: HistoryPurpose = { takesStash: false, movesBorder: false };

/** Finds git, where it is needed. Without git every commit without a name counts as lost. */
export type FindGit = () => ProgramPath | null;

export type HistoryOptions = {
  readonly workspace: string;
  readonly sessionFolder: string;
  readonly git: FindGit;
};

/** Pause before a folder that was damaged is checked again, in ms, and how often that is done. */
const QUIET_MS = 25;
const QUIET_CHECKS_MAX = 40;

/** Copies the git folders before the commands of a session, and checks them afterwards. */
export class GitHistory {
  readonly #top: string;
  readonly #options: HistoryOptions;
  readonly #copies = new Map<string, GitCopies>();
  /** How many running commands may change each git folder. */
  readonly #running = new Map<string, number>();
  #notes: string[] = [];

  constructor(options: HistoryOptions) {
    this.#top = historyFolder(options.sessionFolder);
    this.#options = options;
  }

  /** A command that may change these git folders starts. */
  begin(gitFolders: readonly string[]): void {
    for (const gitFolder of gitFolders) {
      const count = this.#running.get(gitFolder) ?? 0;
      if (count > 0) this.#check(gitFolder, NO_PURPOSE);
      this.#getCopies(gitFolder).update();
      this.#running.set(gitFolder, count + 1);
    }
    if (gitFolders.length > 0) writeFileSync(runningFile(this.#top), '', { mode: 0o600 });
  }

  /** It has ended. Returns lines for the model about what was put back. */
  end(gitFolders: readonly string[], purpose: HistoryPurpose): readonly string[] {
    for (const gitFolder of gitFolders) {
      const count = this.#running.get(gitFolder);
      if (count === undefined) continue;
      // A command that has deleted history may still be at it.
      if (this.#check(gitFolder, purpose) && count === 1) this.#checkUntilQuiet(gitFolder, purpose);
      if (count === 1) this.#running.delete(gitFolder);
      else {
        this.#getCopies(gitFolder).update();
        this.#running.set(gitFolder, count - 1);
      }
    }
    if (gitFolders.length > 0 && this.#running.size === 0)
      rmSync(runningFile(this.#top), { force: true });
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  /** Accepts everything as it is: a command that the user approved has ended. */
  accept(): void {
    for (const gitFolder of this.#running.keys()) this.#getCopies(gitFolder).update();
  }

  /** The session ends: checks what running commands have done. Their later ends change nothing. */
  close(): void {
    for (const gitFolder of this.#running.keys()) this.#check(gitFolder, NO_PURPOSE);
    this.#running.clear();
    rmSync(runningFile(this.#top), { force: true });
  }

  /** Returns whether anything was put back. */
  #check(gitFolder: string, purpose: HistoryPurpose): boolean {
    const shown = path.relative(this.#options.workspace, gitFolder) || gitFolder;
    const lines = linesFor(shown, checkHistory(this.#getCopies(gitFolder), purpose));
    this.#notes.push(...lines);
    return lines.length > 0;
  }

  /**
   * What a command leaves behind is killed with its sandbox, but on a busy machine a moment after
   * the command has ended, and may delete until then. Blocks, since nothing else may use the folder
   * meanwhile. What is put back here is not reported: the check before has said that history was
   * deleted.
   */
  #checkUntilQuiet(gitFolder: string, purpose: HistoryPurpose): void {
    for (let count = 0; count < QUIET_CHECKS_MAX; count++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUIET_MS);
      if (linesFor(gitFolder, checkHistory(this.#getCopies(gitFolder), purpose)).length === 0)
        return;
    }
  }

  #getCopies(gitFolder: string): GitCopies {
    const known = this.#copies.get(gitFolder);
    if (known !== undefined) return known;
    const { sessionFolder, git } = this.#options;
    const copies = openCopies(sessionFolder, String(this.#copies.size + 1), gitFolder, git);
    this.#copies.set(gitFolder, copies);
    return copies;
  }
}

/**
 * Checks the git folders of a killed process, after a command of it has ended. Returns lines for
 * the model; none if no command that may change git folders was running. `haveAllEnded`: none of
 * its commands runs any more, so this check is the last one.
 */
export const finishHistory = (
  sessionFolder: string,
  git: FindGit,
  haveAllEnded: boolean,
): readonly string[] => {
  const top = historyFolder(sessionFolder);
  if (!existsSync(runningFile(top))) return [];
  const lines = entriesIn(top).flatMap(({ name }) => {
    const gitFolder = readText(path.join(top, name, 'folder'), readBytes);
    if (gitFolder === '') return [];
    const copies = openCopies(sessionFolder, name, gitFolder, git);
    copies.load();
    return linesFor(gitFolder, checkHistory(copies, NO_PURPOSE));
  });
  if (haveAllEnded) rmSync(runningFile(top), { force: true });
  return lines;
};

/** This file exists while a command that may change git folders runs. */
const runningFile = (top: string): string => path.join(top, 'running');

/** The copies of a git folder. `name`: its number in its session. */
const openCopies = (
  sessionFolder: string,
  name: string,
  gitFolder: string,
  git: FindGit,
): GitCopies =>
  new GitCopies({
    gitFolder,
    store: path.join(historyFolder(sessionFolder), name),
    aside: path.join(sessionFolder, 'set-aside', `git-${name}`),
    git,
  });

// ---- The lines for the model about what was put back ----

/** What was put back into one git folder. */
type Repairs = {
  objects: number;
  readonly files: Set<string>;
  readonly refs: Set<string>;
  /** Commits that were added to the reflog of LOST. */
  lost: number;
  /** Files that were moved away. */
  readonly aside: string[];
};

const linesFor = (
  folder: string,
  { objects, files, refs, lost, aside }: Repairs,
): readonly string[] => {
  const names = [...refs, ...files];
  const parts = [
    ...(objects > 0 ? [plural(objects, 'object')] : []),
    ...(names.length > 0 ? [shorten(names)] : []),
  ];
  const lines: string[] = [];
  if (parts.length > 0)
    lines.push(
      `parts of the history in ${folder} were deleted or damaged while the command ran, and ` +
        `were put back: ${parts.join(', ')}. To delete history for good, use the git command ` +
        'for it, which the user is asked about',
    );
  if (lost > 0)
    lines.push(
      `${plural(lost, 'commit')} of ${folder} that no branch, tag or stash names any more ` +
        `${lost === 1 ? 'is' : 'are'} kept: git reflog ${LOST}`,
    );
  if (aside.length > 0)
    lines.push(`files that make git misread ${folder} were moved away: ${shorten(aside)}`);
  return lines;
};

const shorten = (names: readonly string[]): string =>
  names.length > 5
    ? `${names.slice(0, 4).join(', ')} and ${names.length - 4} more`
    : names.join(', ');

// ---- Reading git's files ----

const STASH = 'refs/stash';
/** The reflog that lists commits whose old name was taken. */
const LOST = 'refs/pawl/lost';

/** An object's name, also called oid: a hash by SHA-1 or SHA-256. */
const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** In place of a hash: there was no commit. */
const ZEROS = /^0+$/;
/** A folder of loose objects (objects/ab): the first two digits of their hashes. */
const FAN = /^[0-9a-f]{2}$/;

/** Files that say where the history ends or goes on. */
const LIMITS: ReadonlySet<string> = new Set(['shallow', 'objects/info/alternates', 'info/grafts']);
const TOP_FILES = ['HEAD', 'packed-refs', 'index', ...LIMITS];
const WORKTREE_FILES = ['HEAD', 'index', 'commondir', 'gitdir'];
/** Files that git derives from objects: wrong ones would hide history. */
const DERIVED = [
  'objects/pack/multi-pack-index',
  'objects/info/commit-graph',
  'objects/info/commit-graphs',
];

/** The files of a git folder that say what can be reached, without objects. */
const stateFiles = (gitFolder: string): readonly string[] => {
  const shared = entriesIn(gitFolder).filter(({ name }) => name.startsWith('sharedindex.'));
  const worktrees = entriesIn(path.join(gitFolder, 'worktrees')).flatMap(({ name }) => [
    ...WORKTREE_FILES.map((file) => `worktrees/${name}/${file}`),
    ...filesBelow(gitFolder, `worktrees/${name}/logs`),
    ...filesBelow(gitFolder, `worktrees/${name}/refs`),
  ]);
  return [
    ...TOP_FILES,
    ...shared.map(({ name }) => name),
    ...filesBelow(gitFolder, 'refs'),
    ...filesBelow(gitFolder, 'logs'),
    ...worktrees,
  ];
};

/** Regular files below a folder, relative to `top`. */
const filesBelow = (top: string, folder: string): readonly string[] =>
  entriesIn(path.join(top, folder)).flatMap((entry) => {
    const place = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(top, place);
    return entry.isFile() && !entry.name.endsWith('.lock') ? [place] : [];
  });

type FileKind = 'log' | 'ref' | 'head' | 'index' | 'packedRefs' | 'other';

/** The kind of a file in a git folder, or in that of a linked worktree. */
const fileKind = (name: string): FileKind => {
  if (name === 'packed-refs') return 'packedRefs';
  const suffix = name.replace(/^worktrees\/[^/]+\//, '');
  if (suffix.startsWith('logs/')) return 'log';
  if (suffix.startsWith('refs/')) return 'ref';
  if (suffix === 'HEAD') return 'head';
  return suffix === 'index' ? 'index' : 'other';
};

/** Makes a hard link to a regular file of a git folder. Throws if that fails. */
const linkFile = (from: string, to: string): void => {
  const held = holdFolderSync(path.dirname(from));
  try {
    linkSync(held.at(path.basename(from)), to);
  } finally {
    held.close();
  }
  // a command has put a symlink there: its target is no object
  if (!entryStatus(to)?.isFile()) rmSync(to, { force: true });
};

/** The content of a file of a git folder, which a command may exchange meanwhile; null: none. */
const readNow = (file: string): Buffer | null => {
  const loaded = readRegularSync(file, Number.POSITIVE_INFINITY, { follow: 'none' });
  return loaded.kind === 'file' ? loaded.bytes : null;
};

/** `read`: readBytes for a copy, which no command sees. */
const readText = (file: string, read = readNow): string => read(file)?.toString('utf8') ?? '';

/**
 * Names of people in a reflog have any encoding: each byte is one character, also when it is
 * written again.
 */
const readLog = (file: string, read = readNow): string => read(file)?.toString('latin1') ?? '';
const asLogText = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

const splitLines = (text: string): readonly string[] =>
  text.split('\n').filter((line) => line !== '');

/** Whether this may be the content of a ref: a hash, or the name of another ref. */
const isRefText = (text: string): boolean =>
  HASH.test(text.trim()) || /^ref: *refs\/[^ \n\r\t~^:?*[\\]+\s*$/.test(text);

const isPackedRefsText = (text: string): boolean =>
  text
    .split('\n')
    .every((line) => line === '' || /^(?:#.*|\^?[0-9a-f]{40,64}(?: [^ ]+)?)$/.test(line));

/** The refs that packed-refs names. */
const packedRefs = (text: string): ReadonlyMap<string, string> =>
  new Map(
    splitLines(text).flatMap((line) => {
      const [, oid = '', name = ''] = /^([0-9a-f]{40,64}) ([^ ]+)$/.exec(line) ?? [];
      return oid === '' ? [] : [[name, oid] as const];
    }),
  );

/**
 * Whether git could read this index: signature, version, and a checksum that is right or, by a
 * setting, zeros.
 */
const isReadableIndex = (bytes: Buffer): boolean => {
  if (bytes.length < 32 || bytes.toString('latin1', 0, 4) !== 'DIRC') return false;
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return false;
  return [20, 32].some((length) => {
    const sum = bytes.subarray(-length);
    const hash = createHash(length === 20 ? 'sha1' : 'sha256').update(bytes.subarray(0, -length));
    return sum.every((byte) => byte === 0) || hash.digest().equals(sum);
  });
};

/** The new hash of a line of a reflog, and what follows it; null if it is no such line. */
const logLine = (line: string): { readonly oid: string; readonly rest: string } | null => {
  const [, oid = '', rest = ''] = /^[0-9a-f]{40,64} ([0-9a-f]{40,64})( .*)$/.exec(line) ?? [];
  return oid === '' ? null : { oid, rest };
};

/** Lines as one reflog: each begins with the hash at which the one before ended. */
const joinLog = (lines: readonly string[]): string => {
  let before: string | null = null;
  return lines
    .flatMap((line) => {
      const parsed = logLine(line);
      if (parsed === null) return [];
      const from = before ?? '0'.repeat(parsed.oid.length);
      before = parsed.oid;
      return [`${from} ${parsed.oid}${parsed.rest}\n`];
    })
    .join('');
};

// ---- One git folder and its copies ----

/**
 * Copies of loose objects beyond these limits are hard links: they survive deletion, but not being
 * overwritten.
 */
const COPIES_MAX = 20_000;
const COPIES_BYTES_MAX = 256 * 1024 * 1024;
const COPY_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Resolution of file times, in ms. A file that was copied right after a change may change again
 * with the same time.
 */
const TICK_MS = 25;

/** A file or folder at one moment. Numbers, since thousands of them are compared. */
type Signature = Pick<Stats, 'ino' | 'size' | 'ctimeMs'>;

const UNKNOWN: Signature = { ino: -1, size: -1, ctimeMs: -1 };

const getSignature = ({ ino, size, ctimeMs }: Stats): Signature => ({ ino, size, ctimeMs });

const isUnchanged = (now: Signature, before: Signature | null | undefined): boolean =>
  before?.ino === now.ino && before.size === now.size && before.ctimeMs === now.ctimeMs;

/** A file that was copied. */
type CopiedFile = {
  readonly signature: Signature;
  readonly mode: number;
  readonly copiedAtMs: number;
};

/** A folder of loose objects: when it was last read, and its objects. */
type Fan = {
  readonly signature: Signature;
  readonly readAtMs: number;
  readonly objects: Map<string, CopiedFile>;
};

type CopyPlaces = {
  readonly gitFolder: string;
  /** Folder of the copies. */
  readonly store: string;
  /** Receives files that are moved out of the git folder. */
  readonly aside: string;
  readonly git: FindGit;
};

/** Errors of a full or read-only disk. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EROFS']);

/** One git folder and the copies of its files. */
class GitCopies {
  readonly gitFolder: string;
  /** Copied files that say what can be reached, by their name in the git folder. */
  files: ReadonlyMap<string, CopiedFile> = new Map();
  /** Copied loose objects, by the name of their folder. */
  readonly fans = new Map<string, Fan>();
  readonly #places: CopyPlaces;
  #packs: ReadonlySet<string> = new Set();
  /** Signatures of derived files, as text. */
  #derived: ReadonlyMap<string, string> = new Map();
  /** Folders of copies that exist. */
  readonly #folders = new Set<string>();
  /** Packs and derived files as they were written last, for a later process. */
  #record = '';
  /** Number and bytes of the objects that were copied so far. */
  #count = 0;
  #bytes = 0;
  /** Number of files that were moved out. */
  #asides = 0;

  constructor(places: CopyPlaces) {
    this.gitFolder = places.gitFolder;
    this.#places = places;
  }

  at(name: string): string {
    return path.join(this.gitFolder, name);
  }

  copy(name: string): string {
    return path.join(this.#places.store, 'copy', name);
  }

  git(words: readonly string[]): ReturnType<typeof askGit> {
    return askGit(this.#places.git, this.gitFolder, words);
  }

  /** Moves a file out of the git folder. Null if that failed. */
  setAside(place: string): string | null {
    this.#asides += 1;
    return setAside(place, path.join(this.#places.aside, String(this.#asides)));
  }

  /** Whether a file has the content of its copy. */
  isSame(name: string): boolean {
    const [now, before] = [readNow(this.at(name)), readBytes(this.copy(name))];
    return now !== null && before !== null && now.equals(before);
  }

  /** Packs that are newer than the copies. */
  newPacks(): readonly string[] {
    return this.#listPacks().filter((name) => !this.#packs.has(name));
  }

  /** Derived files that are new or have changed. */
  changedDerived(): readonly string[] {
    return [...this.#readDerived()].flatMap(([name, signature]) =>
      this.#derived.get(name) === signature ? [] : [name],
    );
  }

  /**
   * Copies what has changed since the last call, and forgets what is gone. Throws if there is no
   * room for copies.
   */
  update(): void {
    const { store } = this.#places;
    mkdirSync(path.join(store, 'copy'), { recursive: true, mode: 0o700 });
    if (this.#record === '')
      writeFileSync(path.join(store, 'folder'), this.gitFolder, { mode: 0o600 });
    const files = new Map<string, CopiedFile>();
    for (const name of stateFiles(this.gitFolder)) {
      const copied = this.#copyFile(name, this.files.get(name));
      if (copied !== null) files.set(name, copied);
    }
    for (const name of this.files.keys())
      if (!files.has(name)) rmSync(this.copy(name), { force: true });
    this.files = files;
    const names = entriesIn(this.at('objects')).map(({ name }) => name);
    for (const name of new Set([...names, ...this.fans.keys()]))
      if (FAN.test(name)) this.#updateFan(name);
    this.#packs = new Set(this.#listPacks());
    this.#derived = this.#readDerived();
    const record = JSON.stringify([[...this.#packs], [...this.#derived]]);
    if (record === this.#record) return;
    this.#record = record;
    writeFileSync(path.join(store, 'packs'), record, { mode: 0o600 });
  }

  #updateFan(name: string): void {
    const folder = `objects/${name}`;
    const status = entryStatus(this.at(folder));
    const before = this.fans.get(name);
    const signature = status === null ? UNKNOWN : getSignature(status);
    const isSettled = before !== undefined && before.readAtMs - (status?.ctimeMs ?? 0) > TICK_MS;
    if (isSettled && isUnchanged(signature, before.signature)) return;
    const readAtMs = Date.now();
    const objects = new Map<string, CopiedFile>();
    for (const { name: object } of status?.isDirectory() ? entriesIn(this.at(folder)) : []) {
      if (!HASH.test(name + object)) continue;
      const copied =
        before?.objects.get(object) ?? this.#copyFile(`${folder}/${object}`, undefined);
      if (copied !== null) objects.set(object, copied);
    }
    for (const object of before?.objects.keys() ?? [])
      if (!objects.has(object)) rmSync(this.copy(`${folder}/${object}`), { force: true });
    this.fans.set(name, { signature, readAtMs, objects });
  }

  /** Null if there is no such file. */
  #copyFile(name: string, before: CopiedFile | undefined): CopiedFile | null {
    const [from, to] = [this.at(name), this.copy(name)];
    const status = entryStatus(from);
    if (!status?.isFile()) return null;
    const signature = getSignature(status);
    const isSettled = before !== undefined && before.copiedAtMs - status.ctimeMs > TICK_MS;
    if (isSettled && isUnchanged(signature, before.signature)) return before;
    const copied = { signature, mode: status.mode & 0o777, copiedAtMs: Date.now() };
    const isObject = name.startsWith('objects/');
    if (before !== undefined) rmSync(to, { force: true });
    else this.#makeFolder(path.dirname(to));
    try {
      if (isObject && this.#countObject(status.size)) linkFile(from, to);
      else {
        copyRegularSync(from, to, { follow: 'none' });
        // Copies of objects are read-only for us, and that is enough: there are thousands.
        if (before !== undefined || !isObject) chmodSync(to, 0o600);
      }
      return copied;
    } catch (error) {
      // Without copies the command is refused.
      if (error instanceof Error && 'code' in error && FULL.has(error.code)) throw error;
      // gone meanwhile, closed to us, or a link to another file system: docs/proof/security.md
      // names this limit
      return null;
    }
  }

  #makeFolder(folder: string): void {
    if (this.#folders.has(folder)) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folders.add(folder);
  }

  /** Counts an object that is copied. Returns whether it is too many or too large for a copy. */
  #countObject(size: number): boolean {
    this.#count += 1;
    this.#bytes += size;
    return size > COPY_BYTES_MAX || this.#bytes > COPIES_BYTES_MAX || this.#count > COPIES_MAX;
  }

  #listPacks(): readonly string[] {
    return entriesIn(this.at('objects/pack')).flatMap(({ name }) =>
      name.endsWith('.pack') ? [name] : [],
    );
  }

  #readDerived(): ReadonlyMap<string, string> {
    return new Map(
      DERIVED.flatMap((name) => {
        const status = entryStatus(this.at(name));
        return status === null ? [] : [[name, JSON.stringify(getSignature(status))] as const];
      }),
    );
  }

  /**
   * Reads the copies of a process that was killed. Their signatures are unknown, so contents are
   * compared.
   */
  load(): void {
    const unknown = { signature: UNKNOWN, copiedAtMs: 0 };
    const { store } = this.#places;
    const files = new Map<string, CopiedFile>();
    for (const name of filesBelow(path.join(store, 'copy'), '.').map((file) => file.slice(2))) {
      const [, fan = '', object = ''] = /^objects\/([0-9a-f]{2})\/([0-9a-f]+)$/.exec(name) ?? [];
      if (fan === '') files.set(name, { ...unknown, mode: 0o644 });
      else {
        const read = this.fans.get(fan) ?? { signature: UNKNOWN, readAtMs: 0, objects: new Map() };
        read.objects.set(object, { ...unknown, mode: 0o444 });
        this.fans.set(fan, read);
      }
    }
    this.files = files;
    const [packs, derived] = readPacks(path.join(store, 'packs'));
    this.#packs = new Set(packs);
    this.#derived = new Map(derived);
  }
}

const packsSchema = v.tuple([v.array(v.string()), v.array(v.tuple([v.string(), v.string()]))]);

/**
 * The packs that existed before a command of a killed process. None are known if it was killed
 * while it wrote them.
 */
const readPacks = (file: string): v.InferOutput<typeof packsSchema> => {
  try {
    return v.parse(packsSchema, JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return [[], []];
  }
};

// ---- The repair after a command ----

/**
 * Number of commits about which git is asked one by one. Beyond them every commit without a name
 * counts as lost.
 */
const QUESTIONS_MAX = 60;
/** Number of changed refs about which git is asked one by one. */
const REFS_MAX = 20;
/** New loose objects beyond this number or size are not checked. */
const NEW_MAX = 2_000;
const NEW_BYTES_MAX = 1024 * 1024;
/** New packs of more bytes are not verified. */
const VERIFIED_BYTES_MAX = 128 * 1024 * 1024;

/** A commit that may be lost: a file (and perhaps a ref) named it before, and does not now. */
type Suspect = { readonly oid: string; readonly file: string; readonly ref: string | null };

/** Checks the git folder after a command, and repairs it. */
const checkHistory = (copies: GitCopies, purpose: HistoryPurpose): Repairs =>
  new HistoryCheck(copies, purpose).run();

/** One check. Objects come first, since refs and reflogs are judged by the objects they name. */
class HistoryCheck {
  readonly #copies: GitCopies;
  readonly #purpose: HistoryPurpose;
  readonly #repairs: Repairs = {
    objects: 0,
    files: new Set(),
    refs: new Set(),
    lost: 0,
    aside: [],
  };

  constructor(copies: GitCopies, purpose: HistoryPurpose) {
    this.#copies = copies;
    this.#purpose = purpose;
  }

  run(): Repairs {
    if (!isFolder(this.#copies.gitFolder)) return this.#repairs;
    // Asked before the folders are made again.
    const hasNoRefs = ['refs', 'refs/heads'].some((name) => !isFolder(this.#at(name)));
    const hasNoLogs = !isFolder(this.#at('logs'));
    for (const name of [
      'objects',
      'objects/info',
      'objects/pack',
      'refs',
      'refs/heads',
      'refs/tags',
    ])
      this.#makeFolder(this.#at(name));
    this.#checkPacks();
    this.#checkNewObjects();
    this.#restoreObjects();
    this.#restoreFiles();
    this.#restoreLimits();
    if (hasNoRefs) this.#restoreAllRefs();
    if (hasNoLogs) this.#restoreAllLogs();
    this.#checkRefs();
    this.#restoreCurrentBranch();
    this.#restoreLost();
    return this.#repairs;
  }

  // Packs and objects

  /** A pack whose objects are not what their names say would be preferred to the right ones. */
  #checkPacks(): void {
    for (const name of this.#copies.newPacks()) {
      const file = this.#at(`objects/pack/${name}`);
      if ((entryStatus(file)?.size ?? 0) > VERIFIED_BYTES_MAX) continue;
      if (this.#copies.git(['verify-pack', file.replace(/\.pack$/, '.idx')])?.code === 0) continue;
      for (const part of ['.idx', '.pack']) this.#moveAway(file.replace(/\.pack$/, part));
    }
    for (const name of this.#copies.changedDerived()) {
      const check = name.endsWith('multi-pack-index') ? 'multi-pack-index' : 'commit-graph';
      const words = ['-c', 'core.commitGraph=true', check, 'verify'];
      if (this.#copies.git(words)?.code !== 0) this.#moveAway(this.#at(name));
    }
  }

  /** A damaged loose object makes git fail, even if the right one lies in a pack. */
  #checkNewObjects(): void {
    let count = 0;
    for (const { name: fan } of entriesIn(this.#at('objects'))) {
      const folder = this.#at(`objects/${fan}`);
      const status = entryStatus(folder);
      const known = this.#copies.fans.get(fan);
      if (!FAN.test(fan) || !status?.isDirectory() || isUnchanged(status, known?.signature))
        continue;
      for (const { name } of entriesIn(folder)) {
        if (known?.objects.has(name) || !HASH.test(fan + name)) continue;
        if ((entryStatus(path.join(folder, name))?.size ?? 0) > NEW_BYTES_MAX) continue;
        count += 1;
        if (count > NEW_MAX) return;
        if (!this.#hasLooseObject(fan + name)) this.#moveAway(path.join(folder, name));
      }
    }
  }

  #restoreObjects(): void {
    const missing: string[] = [];
    for (const [fan, { objects }] of this.#copies.fans) {
      for (const [rest, { signature }] of objects) {
        const name = `objects/${fan}/${rest}`;
        const status = entryStatus(this.#at(name));
        if (status === null) missing.push(name);
        else if (!isUnchanged(status, signature) && !this.#copies.isSame(name)) {
          if (this.#restore(name)) this.#repairs.objects += 1;
        }
      }
    }
    const packed = missing.length === 0 ? new Set<string>() : this.#packedObjects();
    for (const name of missing) {
      if (packed.has(name.slice('objects/'.length).replace('/', ''))) continue;
      if (this.#restore(name)) this.#repairs.objects += 1;
    }
  }

  /** Verified objects of new packs of the command. */
  #packedObjects(): ReadonlySet<string> {
    const objects = new Set<string>();
    for (const name of this.#copies.newPacks()) {
      const index = this.#at(`objects/pack/${name.replace(/\.pack$/, '.idx')}`);
      const answer = this.#copies.git(['verify-pack', '-v', index]);
      for (const line of answer?.code === 0 ? splitLines(answer.output) : [])
        objects.add(line.split(' ')[0] ?? '');
    }
    return objects;
  }

  #hasObject(oid: string): boolean {
    if (this.#hasLooseObject(oid)) return true;
    const answer = this.#copies.git(['cat-file', '-t', oid]);
    return answer === null || answer.code === 0; // without git it counts as there
  }

  /** Whether there is a loose object with the right content. */
  #hasLooseObject(oid: string): boolean {
    const bytes = readNow(this.#at(`objects/${oid.slice(0, 2)}/${oid.slice(2)}`));
    if (bytes === null) return false;
    try {
      const content = inflateSync(bytes, { maxOutputLength: COPY_BYTES_MAX });
      const hash = createHash(oid.length === 40 ? 'sha1' : 'sha256').update(content);
      return hash.digest('hex') === oid;
    } catch {
      return false; // no object of git
    }
  }

  // HEAD, index and the like

  /** Restores files that are gone or can't be read. Git itself never deletes them. */
  #restoreFiles(): void {
    for (const name of this.#copies.files.keys()) {
      const kind = fileKind(name);
      if (kind === 'log' || kind === 'ref' || !this.#belongs(name) || this.#isSound(name, kind))
        continue;
      if (this.#restore(name)) this.#repairs.files.add(name);
    }
  }

  /** Whether a file should be there: those of a linked worktree only while the worktree is. */
  #belongs(name: string): boolean {
    const [, worktree] = /^(worktrees\/[^/]+)\//.exec(name) ?? [];
    if (worktree === undefined) return !LIMITS.has(name);
    const back = readText(this.#copies.copy(`${worktree}/gitdir`), readBytes).trim();
    return back !== '' && entryStatus(path.resolve(this.#at(worktree), back)) !== null;
  }

  /** Whether git can read this file as it is now. */
  #isSound(name: string, kind: FileKind): boolean {
    const file = this.#at(name);
    const status = entryStatus(file);
    if (status?.isFile() && this.#isUnchanged(name, status)) return true;
    const [, shared] = /^sharedindex\.([0-9a-f]+)$/.exec(name) ?? [];
    // Git deletes the shared part of an index when no index names it any more.
    if (shared !== undefined && readNow(this.#at('index'))?.includes(shared, 0, 'hex') === false)
      return true;
    const bytes = readNow(file);
    if (bytes === null) return false;
    if (kind === 'head') return isRefText(bytes.toString('utf8'));
    if (kind === 'index') return isReadableIndex(bytes);
    if (kind === 'packedRefs') return isPackedRefsText(bytes.toString('utf8'));
    return bytes.equals(readBytes(this.#copies.copy(name)) ?? Buffer.alloc(0));
  }

  /**
   * Files that hide a part of the history, or show another one. `shallow` may change if the words
   * of the command say so, as long as git can still read the whole history.
   */
  #restoreLimits(): void {
    const { movesBorder } = this.#purpose;
    const { files } = this.#copies;
    for (const name of [
      'objects/info/alternates',
      'info/grafts',
      ...(movesBorder ? [] : ['shallow']),
    ]) {
      if (!files.has(name)) this.#moveAway(this.#at(name));
      else if (!this.#copies.isSame(name) && this.#restore(name)) this.#repairs.files.add(name);
    }
    if (!movesBorder || !files.has('shallow') || this.#copies.isSame('shallow')) return;
    const answer = this.#copies.git(['rev-list', '--all', '--count']);
    if (answer?.code !== 0 && this.#restore('shallow')) this.#repairs.files.add('shallow');
  }

  // Refs

  /** The command has deleted whole folders of refs. */
  #restoreAllRefs(): void {
    for (const name of this.#copies.files.keys()) {
      if (!name.startsWith('refs/') || entryStatus(this.#at(name)) !== null) continue;
      if (this.#restore(name)) this.#repairs.refs.add(name);
    }
  }

  /** The logs of HEAD and of refs that are there. */
  #restoreAllLogs(): void {
    for (const name of this.#copies.files.keys()) {
      if (!name.startsWith('logs/') || entryStatus(this.#at(name)) !== null) continue;
      const ref = name.slice('logs/'.length);
      if (ref !== 'HEAD' && this.#refNow(ref) === null) continue;
      if (this.#restore(name)) this.#repairs.files.add(name);
    }
  }

  /** The hash that a ref names now; null if there is no such ref. */
  #refNow(ref: string): string | null {
    const text = readText(this.#at(ref)).trim();
    if (HASH.test(text)) return text;
    return packedRefs(readText(this.#at('packed-refs'))).get(ref) ?? null;
  }

  /** The hash that it named before the command. */
  #refBefore(ref: string): string | null {
    const { files } = this.#copies;
    const textBefore = (name: string): string =>
      files.has(name) ? readText(this.#copies.copy(name), readBytes) : '';
    const text = textBefore(ref).trim();
    return HASH.test(text) ? text : (packedRefs(textBefore('packed-refs')).get(ref) ?? null);
  }

  /** A ref with garbage, or with the hash of an object that is not there, makes git fail. */
  #checkRefs(): void {
    const { files } = this.#copies;
    const changed = filesBelow(this.#copies.gitFolder, 'refs').filter((name) => {
      const status = entryStatus(this.#at(name));
      return status !== null && !this.#isUnchanged(name, status);
    });
    const isManyAndGood = changed.length > REFS_MAX && this.#allRefsLead();
    for (const name of ['HEAD', ...changed]) {
      const text = readText(this.#at(name));
      const isGood =
        isRefText(text) &&
        (!HASH.test(text.trim()) || isManyAndGood || this.#hasObject(text.trim()));
      // Refs below `replace` make git show other objects than the named ones.
      if (isGood && !name.startsWith('refs/replace/')) continue;
      if (!files.has(name)) this.#moveAway(this.#at(name));
      else if (!this.#copies.isSame(name) && this.#restore(name)) this.#repairs.refs.add(name);
    }
    if (!files.has('packed-refs') || this.#copies.isSame('packed-refs') || this.#allRefsLead())
      return;
    if (this.#restore('packed-refs')) this.#repairs.files.add('packed-refs');
  }

  /** Whether every ref leads to an object. */
  #allRefsLead(): boolean {
    return this.#copies.git(['for-each-ref', '--format=%(objecttype)'])?.code === 0;
  }

  /** HEAD may name a branch that is gone: then git would see no history at all. */
  #restoreCurrentBranch(): void {
    const [, ref] = /^ref: *([^ \n\r\t]+)/.exec(readText(this.#at('HEAD'))) ?? [];
    if (ref === undefined || this.#refNow(ref) !== null) return;
    const oid = this.#refBefore(ref);
    if (oid !== null) this.#restoreRef(ref, oid);
  }

  /** Writes a ref, and its log. False if that failed. */
  #restoreRef(ref: string, oid: string): boolean {
    if (!this.#writeText(ref, `${oid}\n`)) return false;
    this.#repairs.refs.add(ref);
    this.#restoreLog(`logs/${ref}`);
    return true;
  }

  // Commits that no ref and no reflog leads to

  /**
   * A branch, tag or reflog entry may go, as long as its commit can still be reached. Otherwise it
   * gets its old name again, or an entry in the reflog of LOST.
   */
  #restoreLost(): void {
    // Commits that get an entry in the reflog of LOST.
    const unnamed: Suspect[] = [];
    // Reflogs of which entries are put back, with the commits of the entries.
    const logs = new Map<string, Suspect[]>();
    for (const suspect of this.#lostAmong(this.#suspects())) {
      const { ref, oid, file } = suspect;
      const isStash = ref === STASH || file === `logs/${STASH}`;
      const isPruned = ref?.startsWith('refs/remotes/') === true; // git fetch --prune stays done
      const log = isStash ? `logs/${STASH}` : file;
      if (isPruned || (isStash && this.#purpose.takesStash)) unnamed.push(suspect);
      else if (!isStash && ref !== null && this.#isFree(ref) && this.#restoreRef(ref, oid))
        continue;
      else if (isStash || fileKind(file) === 'log')
        logs.set(log, [...(logs.get(log) ?? []), suspect]);
      else unnamed.push(suspect);
    }
    for (const [file, entries] of logs) if (!this.#restoreEntries(file)) unnamed.push(...entries);
    this.#listUnnamed(unnamed);
    this.#repairs.lost += unnamed.length;
  }

  /** Whether a ref of this name is possible. */
  #isFree(ref: string): boolean {
    if (this.#refNow(ref) !== null) return false;
    const parents = ref.split('/').map((_, index, parts) => parts.slice(0, index).join('/'));
    const isBlocked = parents.some(
      (parent) => entryStatus(this.#at(parent))?.isDirectory() === false,
    );
    if (isBlocked || filesBelow(this.#copies.gitFolder, ref).length > 0) return false;
    removeBelow(this.#at(ref)); // empty folders of earlier refs
    return true;
  }

  /** Puts entries back into a reflog. False if its ref is gone. */
  #restoreEntries(file: string): boolean {
    const ref = file.slice('logs/'.length);
    if (ref === STASH && file === `logs/${STASH}`) {
      if (!this.#restoreLog(file)) return false;
      const last = logLine(splitLines(readLog(this.#at(file))).at(-1) ?? '');
      return last !== null && this.#writeText(STASH, `${last.oid}\n`);
    }
    // The log of HEAD, perhaps of a worktree, is there while the folder of HEAD is.
    const isThere =
      fileKind(ref) === 'ref'
        ? this.#refNow(ref) !== null
        : isFolder(path.dirname(path.dirname(this.#at(file))));
    return isThere && this.#restoreLog(file);
  }

  /** Writes the entries of a log that were there before, and then those of the command. */
  #restoreLog(file: string): boolean {
    if (!this.#copies.files.has(file)) return false;
    const before = splitLines(readLog(this.#copies.copy(file), readBytes));
    const known = new Set(before.map((line) => logLine(line)?.rest));
    const now = splitLines(readLog(this.#at(file)));
    const added = now.filter((line) => !known.has(logLine(line)?.rest));
    if (!this.#writeText(file, joinLog([...before, ...added]))) return false;
    this.#repairs.files.add(file);
    return true;
  }

  /** Commits whose names are taken: one ref, whose reflog lists them all. */
  #listUnnamed(unnamed: readonly Suspect[]): void {
    if (unnamed.length === 0) return;
    const seconds = Math.floor(Date.now() / 1000);
    const lines = unnamed.map(({ oid, file, ref }) => {
      const name = asLogText(ref ?? file.replace(/^logs\//, ''));
      return `${oid} ${oid} Pawl <pawl@localhost> ${seconds} +0000\t${name} before a command`;
    });
    const log = `logs/${LOST}`;
    this.#writeText(log, joinLog([...splitLines(readLog(this.#at(log))), ...lines]));
    this.#writeText(LOST, `${unnamed.at(-1)?.oid}\n`);
  }

  /** Hashes that files named before, and that no file names now. */
  #suspects(): readonly Suspect[] {
    const suspects = new Map<string, Suspect>();
    for (const [file, { signature }] of this.#copies.files) {
      const status = entryStatus(this.#at(file));
      if (status !== null && isUnchanged(status, signature)) continue;
      for (const [oid, ref] of this.#droppedHashes(file)) {
        const known = suspects.get(oid);
        if (!ZEROS.test(oid) && (known === undefined || (known.ref === null && ref !== null)))
          suspects.set(oid, { oid, file, ref });
      }
    }
    return this.#withoutNamed([...suspects.values()]);
  }

  /**
   * Hashes that a changed file named before and does not name now, with the ref that they belong
   * to.
   */
  #droppedHashes(file: string): readonly (readonly [oid: string, ref: string | null])[] {
    const kind = fileKind(file);
    if (kind === 'index' || kind === 'other') return [];
    const read = kind === 'log' ? readLog : readText;
    const [before, now] = [read(this.#copies.copy(file)), read(this.#at(file))];
    if (kind === 'log') {
      if (now.startsWith(before)) return [];
      const first = /^([0-9a-f]{40,64}) /.exec(before)?.[1] ?? '';
      return [first, ...splitLines(before).map((line) => logLine(line)?.oid ?? '')]
        .filter((oid) => HASH.test(oid) && !now.includes(oid))
        .map((oid) => [oid, null]);
    }
    if (kind === 'packedRefs') {
      const after = packedRefs(now);
      return [...packedRefs(before)].flatMap(([name, oid]) =>
        after.get(name) === oid ? [] : [[oid, name]],
      );
    }
    const oid = before.trim();
    if (!HASH.test(oid) || oid === now.trim()) return [];
    return [[oid, file.startsWith('refs/') ? file : null]];
  }

  /** Without those that any file of the git folder still names. The log of HEAD names most. */
  #withoutNamed(suspects: readonly Suspect[]): readonly Suspect[] {
    if (suspects.length === 0) return [];
    const log = readText(this.#at('logs/HEAD'));
    const rest = suspects.filter(({ oid }) => !log.includes(oid));
    if (rest.length === 0) return [];
    const kinds: readonly FileKind[] = ['log', 'ref', 'head'];
    const names = stateFiles(this.#copies.gitFolder).filter((name) =>
      kinds.includes(fileKind(name)),
    );
    const text = ['packed-refs', ...names].map((name) => readText(this.#at(name))).join('\n');
    return rest.filter(({ oid }) => !text.includes(oid));
  }

  /** Those of the suspects that no ref and no reflog leads to. */
  #lostAmong(suspects: readonly Suspect[]): readonly Suspect[] {
    return suspects.filter(({ oid }, index) => {
      if (index >= QUESTIONS_MAX) return true;
      const answer = this.#copies.git(['rev-list', '-n', '1', oid, '--not', '--all', '--reflog']);
      if (answer?.code === 0) return answer.output.trim() !== '';
      // An old entry of a reflog may name an object that was gone before.
      return this.#copies.git(['cat-file', '-e', oid])?.code !== 1; // 1: there is no such object
    });
  }

  // Changes of the git folder

  #at(name: string): string {
    return this.#copies.at(name);
  }

  #isUnchanged(name: string, status: Stats): boolean {
    return isUnchanged(status, this.#copies.files.get(name)?.signature);
  }

  /** Writes the copy of a file. False if that failed. */
  #restore(name: string): boolean {
    const from = this.#copies.copy(name);
    const mode = this.#copies.files.get(name)?.mode ?? 0o444;
    return this.#write(name, mode, (temporary) =>
      copyFileSync(from, temporary, constants.COPYFILE_EXCL),
    );
  }

  #writeText(name: string, text: string): boolean {
    const encoding = fileKind(name) === 'log' ? 'latin1' : 'utf8';
    const mode = this.#copies.files.get(name)?.mode ?? 0o644;
    return this.#write(name, mode, (temporary) =>
      writeFileSync(temporary, text, { flag: 'wx', encoding }),
    );
  }

  #write(name: string, mode: number, make: (temporary: string) => void): boolean {
    const place = this.#at(name);
    this.#makeFolder(path.dirname(place));
    if (isFolder(place)) this.#moveAway(place);
    // `below`: the opened folder, which stays the same even if a command exchanges its path.
    const isDone = inFolder(path.dirname(place), (below) => {
      temporaryCount += 1;
      const temporary = `${below}/pawl-${process.pid}-${temporaryCount}`;
      make(temporary);
      chmodSync(temporary, mode);
      this.#giveToOwner(temporary);
      renameSync(temporary, `${below}/${path.basename(place)}`);
      return true;
    });
    return isDone ?? false;
  }

  /** Makes a folder and those above it, in place of files and links. */
  #makeFolder(folder: string): void {
    if (isFolder(folder) || folder === this.#copies.gitFolder) return;
    this.#makeFolder(path.dirname(folder));
    this.#moveAway(folder);
    inFolder(path.dirname(folder), (below) => {
      mkdirSync(`${below}/${path.basename(folder)}`);
      this.#giveToOwner(`${below}/${path.basename(folder)}`);
    });
  }

  #moveAway(place: string): void {
    const moved = entryStatus(place) === null ? null : this.#copies.setAside(place);
    if (moved !== null) this.#repairs.aside.push(moved);
  }

  /** Root gives files to the owner of the git folder. */
  #giveToOwner(place: string): void {
    const status = entryStatus(this.#copies.gitFolder);
    if (process.geteuid?.() === 0 && status !== null) chownSync(place, status.uid, status.gid);
  }
}

/** Numbers the temporary files of this process. */
let temporaryCount = 0;

// ---- Running git ----

/** Runs git on a git folder so that it starts no program that the repository names. */
const askGit = (findGit: FindGit, gitFolder: string, words: readonly string[]) => {
  const git = findGit();
  if (git === null) return null;
  const all = [
    `--git-dir=${gitFolder}`,
    '--no-replace-objects',
    ...[
      '-c',
      'core.hooksPath=/dev/null',
      '-c',
      'core.fsmonitor=false',
      '-c',
      'core.commitGraph=false',
    ],
    ...['-c', 'protocol.allow=never', '-c', 'safe.directory=*'],
    ...words,
  ];
  return askProgramSync(git, all, {
    environment: {
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_WORK_TREE: gitFolder,
      GIT_NO_LAZY_FETCH: '1',
      GIT_TERMINAL_PROMPT: '0',
      LC_ALL: 'C',
    },
    searchPath: ['/usr/bin', '/bin'],
    folder: gitFolder,
  });
};
