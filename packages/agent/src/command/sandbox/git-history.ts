/**
 * Keeps the history of git folders that a command may change: afterwards every commit and stash that existed before can
 * be reached, and the index is readable.
 *
 * 1. Before a command, loose objects, refs, reflogs, HEAD and index are copied to the session's folder, which commands
 *    do not see. Only changed files are copied again. Packs are not copied: they are mounted read-only.
 * 2. After it, what is gone or damaged is put back. The command's own new commits, refs and files stay.
 * 3. A branch, tag or reflog entry may go, as long as its commit can still be reached. Otherwise it gets its old name
 *    again, or an entry in the reflog of LOST.
 * 4. When a command starts or ends while another one runs, what the other one has done so far is checked, too.
 * 5. The copies stay until a command has been checked. So a later process can check a command whose Pawl was killed.
 */

import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  type Dirent,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { inflateSync } from 'node:zlib';
import * as v from 'valibot';
import { statusOf } from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { askProgramSync } from '../../platform/start-program.js';
import { plural } from '../../platform/text.js';
import type { HistoryPurpose } from '../../policy/repository-access.js';
import { setAside } from './protected-files.js';

const STASH = 'refs/stash';
export const NO_PURPOSE: HistoryPurpose = { takesStash: false, movesBorder: false };
/** The reflog that lists commits whose old name was taken. */
const LOST = 'refs/pawl/lost';

/** Loose objects beyond these limits are hard links: they survive deletion, but not being overwritten. */
const COPIES_MAX = 20_000;
const COPIES_BYTES_MAX = 256 * 1024 * 1024;
const COPY_BYTES_MAX = 64 * 1024 * 1024;
/** Resolution of file times, in ms. A file that was copied right after a change may change again with the same time. */
const TICK_MS = 25;
/** Commits about which git is asked one by one. Beyond them every commit without a name counts as lost. */
const QUESTIONS_MAX = 60;
/** Changed refs about which git is asked one by one. */
const REFS_MAX = 20;
/** New loose objects beyond this number or size are not checked. */
const NEW_MAX = 2_000;
const NEW_BYTES_MAX = 1024 * 1024;
/** New packs of more bytes are not verified. */
const VERIFIED_BYTES_MAX = 128 * 1024 * 1024;
const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const ZEROS = /^0+$/;

/** Finds git, where it is needed. Without git every commit without a name counts as lost. */
export type FindGit = () => ProgramPath | null;

/** Runs git on a git folder so that it starts no program that the repository names. */
const askGit = (findGit: FindGit, gitFolder: string, words: readonly string[]) => {
  const git = findGit();
  return git === null
    ? null
    : askProgramSync(
        git,
        [
          `--git-dir=${gitFolder}`,
          '--no-replace-objects',
          ...['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', '-c', 'core.commitGraph=false'],
          ...['-c', 'protocol.allow=never', '-c', 'safe.directory=*'],
          ...words,
        ],
        {
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
        },
      );
};

const entriesIn = (folder: string): readonly Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // it is not there
  }
};

const isFolder = (place: string): boolean => statusOf(place)?.isDirectory() === true;

/** A file or folder at one moment. Numbers, since thousands of them are compared. */
type Signature = Pick<Stats, 'ino' | 'size' | 'ctimeMs'>;

const signatureOf = ({ ino, size, ctimeMs }: Stats): Signature => ({ ino, size, ctimeMs });

const isUnchanged = (now: Signature, before: Signature | null | undefined): boolean =>
  before?.ino === now.ino && before.size === now.size && before.ctimeMs === now.ctimeMs;

const UNKNOWN: Signature = { ino: -1, size: -1, ctimeMs: -1 };

const bytesOf = (file: string): Buffer | null => {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    return readFileSync(descriptor);
  } catch {
    return null; // gone, a symlink, or closed to us
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

const textOf = (file: string): string => bytesOf(file)?.toString('utf8') ?? '';
/** Names of people in a reflog have any encoding: each byte is one character, also when it is written again. */
const asBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');
const logOf = (file: string): string => bytesOf(file)?.toString('latin1') ?? '';

/** Regular files below a folder, relative to `top`. */
const filesBelow = (top: string, folder: string): readonly string[] =>
  entriesIn(path.join(top, folder)).flatMap((entry) => {
    const place = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(top, place);
    return entry.isFile() && !entry.name.endsWith('.lock') ? [place] : [];
  });

const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EROFS']);
/** Files that say where the history ends or goes on. */
const LIMITS: ReadonlySet<string> = new Set(['shallow', 'objects/info/alternates', 'info/grafts']);
const TOP_FILES = ['HEAD', 'packed-refs', 'index', ...LIMITS];
const WORKTREE_FILES = ['HEAD', 'index', 'commondir', 'gitdir'];

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

const isLog = (name: string): boolean => /^(?:worktrees\/[^/]+\/)?logs\//.test(name);
const isRef = (name: string): boolean => /^(?:worktrees\/[^/]+\/)?refs\//.test(name);
const isHead = (name: string): boolean => /^(?:worktrees\/[^/]+\/)?HEAD$/.test(name);
const isIndex = (name: string): boolean => /^(?:worktrees\/[^/]+\/)?index$/.test(name);

const isRefText = (text: string): boolean =>
  HASH.test(text.trim()) || /^ref: *refs\/[^ \n\r\t~^:?*[\\]+\s*$/.test(text);
const isPackedText = (text: string): boolean =>
  text.split('\n').every((line) => line === '' || /^(?:#.*|\^?[0-9a-f]{40,64}(?: [^ ]+)?)$/.test(line));

/** Whether git could read this index: signature, version, and a checksum that is right or, by a setting, zeros. */
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

/** Fields of a line of a reflog; null if it is none. */
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

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');

/** The refs that packed-refs names. */
const packedRefs = (text: string): ReadonlyMap<string, string> =>
  new Map(
    linesOf(text).flatMap((line) => {
      const [, oid = '', name = ''] = /^([0-9a-f]{40,64}) ([^ ]+)$/.exec(line) ?? [];
      return oid === '' ? [] : [[name, oid] as const];
    }),
  );

type Packs = readonly [packs: readonly string[], derived: readonly (readonly [string, string])[]];
const packsSchema: v.GenericSchema<unknown, Packs> = v.tuple([
  v.array(v.string()),
  v.array(v.tuple([v.string(), v.string()])),
]);

/** The packs that existed before a command of a killed process. None are known if it was killed while it wrote them. */
const readPacks = (file: string): Packs => {
  try {
    return v.parse(packsSchema, JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return [[], []];
  }
};

/** A hash that a file named before and does not name now. */
type Suspect = { readonly oid: string; readonly file: string; readonly ref: string | null };

type Known = { readonly signature: Signature; readonly mode: number; readonly copiedAtMs: number };

/** What was put back into one git folder. */
type PutBack = {
  objects: number;
  readonly files: Set<string>;
  readonly refs: Set<string>;
  lost: number;
  aside: string[];
};

/** One git folder and its copy. */
class KeptFolder {
  readonly gitFolder: string;
  readonly #store: string;
  readonly #git: FindGit;
  readonly #aside: string;
  #files = new Map<string, Known>();
  /** By folder of loose objects: when it was last read, and its objects. */
  readonly #fans = new Map<string, { signature: Signature; readAtMs: number; objects: Map<string, Known> }>();
  #packs = new Set<string>();
  #derived = new Map<string, string>();
  readonly #copyFolders = new Set<string>();
  #record = '';
  #bytes = 0;
  #count = 0;
  #asides = 0;
  #temporary = 0;

  constructor(gitFolder: string, store: string, git: FindGit, aside: string) {
    this.gitFolder = gitFolder;
    this.#store = store;
    this.#git = git;
    this.#aside = aside;
  }

  #at(name: string): string {
    return path.join(this.gitFolder, name);
  }

  #copy(name: string): string {
    return path.join(this.#store, 'copy', name);
  }

  /** Copies what has changed since the last call, and forgets what is gone. */
  keep(): void {
    mkdirSync(path.join(this.#store, 'copy'), { recursive: true, mode: 0o700 });
    if (this.#record === '') writeFileSync(path.join(this.#store, 'folder'), this.gitFolder, { mode: 0o600 });
    const files = new Map<string, Known>();
    for (const name of stateFiles(this.gitFolder)) {
      const known = this.#copyFile(name, this.#files.get(name));
      if (known !== null) files.set(name, known);
    }
    for (const name of this.#files.keys()) if (!files.has(name)) rmSync(this.#copy(name), { force: true });
    this.#files = files;
    const fans = entriesIn(this.#at('objects')).map(({ name }) => name);
    for (const name of new Set([...fans, ...this.#fans.keys()]))
      if (/^[0-9a-f]{2}$/.test(name)) this.#keepFan(name);
    this.#packs = new Set(this.#packNames());
    this.#derived = this.#readDerived();
    const record = JSON.stringify([[...this.#packs], [...this.#derived]]);
    if (record === this.#record) return;
    this.#record = record;
    writeFileSync(path.join(this.#store, 'packs'), record, { mode: 0o600 });
  }

  #keepFan(fan: string): void {
    const folder = `objects/${fan}`;
    const status = statusOf(this.#at(folder));
    const before = this.#fans.get(fan);
    const signature = status === null ? UNKNOWN : signatureOf(status);
    const isSettled = before !== undefined && before.readAtMs - (status?.ctimeMs ?? 0) > TICK_MS;
    if (isSettled && isUnchanged(signature, before.signature)) return;
    const readAtMs = Date.now();
    const objects = new Map<string, Known>();
    for (const { name } of status?.isDirectory() ? entriesIn(this.#at(folder)) : []) {
      if (!/^[0-9a-f]{38}(?:[0-9a-f]{24})?$/.test(name)) continue;
      const known = before?.objects.get(name) ?? this.#copyFile(`${folder}/${name}`, undefined);
      if (known !== null) objects.set(name, known);
    }
    for (const name of before?.objects.keys() ?? [])
      if (!objects.has(name)) rmSync(this.#copy(`${folder}/${name}`), { force: true });
    this.#fans.set(fan, { signature, readAtMs, objects });
  }

  /** Null if there is no such file. */
  #copyFile(name: string, before: Known | undefined): Known | null {
    const [from, to] = [this.#at(name), this.#copy(name)];
    const status = statusOf(from);
    if (!status?.isFile()) return null;
    const signature = signatureOf(status);
    const isSettled = before !== undefined && before.copiedAtMs - status.ctimeMs > TICK_MS;
    if (isSettled && isUnchanged(signature, before.signature)) return before;
    const known = { signature, mode: status.mode & 0o777, copiedAtMs: Date.now() };
    if (before !== undefined) rmSync(to, { force: true });
    else this.#makeCopyFolder(path.dirname(to));
    try {
      if (name.startsWith('objects/') && this.#isBeyond(status.size)) linkSync(from, to);
      else {
        copyFileSync(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        if (before !== undefined || !name.startsWith('objects/')) chmodSync(to, 0o600);
      }
      return known;
    } catch (error) {
      // Without copies the command is refused.
      if (error instanceof Error && 'code' in error && FULL.has(error.code)) throw error;
      return null; // gone meanwhile, closed to us, or a link to another file system: docs/security.md names this limit
    }
  }

  #makeCopyFolder(folder: string): void {
    if (this.#copyFolders.has(folder)) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#copyFolders.add(folder);
  }

  /** Counts an object that is copied. */
  #isBeyond(size: number): boolean {
    this.#count += 1;
    this.#bytes += size;
    return size > COPY_BYTES_MAX || this.#bytes > COPIES_BYTES_MAX || this.#count > COPIES_MAX;
  }

  #packNames(): readonly string[] {
    return entriesIn(this.#at('objects/pack')).flatMap(({ name }) => (name.endsWith('.pack') ? [name] : []));
  }

  /** Files that git derives from objects: wrong ones would hide history. */
  #readDerived(): Map<string, string> {
    const places = [
      'objects/pack/multi-pack-index',
      'objects/info/commit-graph',
      'objects/info/commit-graphs',
    ];
    return new Map(
      places.flatMap((name) => {
        const status = statusOf(this.#at(name));
        return status === null ? [] : [[name, JSON.stringify(signatureOf(status))] as const];
      }),
    );
  }

  /** Reads the copies of a process that was killed. Their signatures are unknown, so contents are compared. */
  load(): void {
    const unknown = { signature: UNKNOWN, mode: 0o644, copiedAtMs: 0 };
    const copies = path.join(this.#store, 'copy');
    for (const name of filesBelow(copies, '.').map((file) => file.slice(2))) {
      const [, fan = '', rest = ''] = /^objects\/([0-9a-f]{2})\/([0-9a-f]+)$/.exec(name) ?? [];
      if (fan === '') this.#files.set(name, unknown);
      else {
        const read = this.#fans.get(fan) ?? {
          signature: UNKNOWN,
          readAtMs: 0,
          objects: new Map<string, Known>(),
        };
        read.objects.set(rest, { ...unknown, mode: 0o444 });
        this.#fans.set(fan, read);
      }
    }
    const [packs, derived] = readPacks(path.join(this.#store, 'packs'));
    this.#packs = new Set(packs);
    this.#derived = new Map(derived);
  }

  /** Checks the git folder after a command. */
  putBack({ takesStash, movesBorder }: HistoryPurpose): PutBack {
    const done: PutBack = { objects: 0, files: new Set(), refs: new Set(), lost: 0, aside: [] };
    if (!isFolder(this.gitFolder)) return done;
    const isEmptied = ['refs', 'refs/heads'].some((name) => !isFolder(this.#at(name)));
    const hasNoLogs = !isFolder(this.#at('logs'));
    for (const name of ['objects', 'objects/info', 'objects/pack', 'refs', 'refs/heads', 'refs/tags'])
      this.#makeFolder(this.#at(name), done);
    this.#checkPacks(done);
    this.#checkNewObjects(done);
    this.#putObjects(done);
    this.#putFiles(done);
    this.#putLimits(movesBorder, done);
    if (isEmptied) this.#putAllRefs(done);
    if (hasNoLogs) this.#putLogs(done);
    this.#checkRefs(done);
    this.#putCurrentBranch(done);
    this.#putLost(done, takesStash);
    return done;
  }

  /** Makes a folder and those above it, in place of files and links. */
  #makeFolder(folder: string, done: PutBack): void {
    if (isFolder(folder) || folder === this.gitFolder) return;
    this.#makeFolder(path.dirname(folder), done);
    this.#moveAway(folder, done);
    this.#within(path.dirname(folder), (below) => {
      mkdirSync(`${below}/${path.basename(folder)}`);
      this.#own(`${below}/${path.basename(folder)}`);
    });
  }

  #moveAway(place: string, done: PutBack): void {
    if (statusOf(place) === null) return;
    this.#asides += 1;
    const moved = setAside(place, path.join(this.#aside, String(this.#asides)));
    if (moved !== null) done.aside.push(moved);
  }

  /** Works in a folder that is opened first, so that nobody can exchange it for a link. */
  #within(folder: string, work: (below: string) => void): boolean {
    let descriptor: number | null = null;
    try {
      descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
      const below = `/proc/self/fd/${descriptor}`;
      if (readlinkSync(below) !== folder) return false;
      work(below);
      return true;
    } catch {
      return false; // exchanged meanwhile, closed to us, or a full disk: it is not counted as put back
    } finally {
      if (descriptor !== null) closeSync(descriptor);
    }
  }

  /** Root gives files to the owner of the git folder. */
  #own(place: string): void {
    const status = statusOf(this.gitFolder);
    if (process.geteuid?.() === 0 && status !== null) chownSync(place, status.uid, status.gid);
  }

  #write(name: string, make: (temporary: string) => void, mode: number, done: PutBack): boolean {
    const place = this.#at(name);
    this.#makeFolder(path.dirname(place), done);
    if (isFolder(place)) this.#moveAway(place, done);
    return this.#within(path.dirname(place), (below) => {
      this.#temporary += 1;
      const temporary = `${below}/pawl-${process.pid}-${this.#temporary}`;
      make(temporary);
      chmodSync(temporary, mode);
      this.#own(temporary);
      renameSync(temporary, `${below}/${path.basename(place)}`);
    });
  }

  #putFile(name: string, done: PutBack): boolean {
    const from = this.#copy(name);
    const mode = this.#files.get(name)?.mode ?? 0o444;
    return this.#write(
      name,
      (temporary) => copyFileSync(from, temporary, constants.COPYFILE_EXCL),
      mode,
      done,
    );
  }

  #putText(name: string, text: string, done: PutBack): boolean {
    const encoding = isLog(name) ? 'latin1' : 'utf8';
    const mode = this.#files.get(name)?.mode ?? 0o644;
    return this.#write(
      name,
      (temporary) => writeFileSync(temporary, text, { flag: 'wx', encoding }),
      mode,
      done,
    );
  }

  /** A pack whose objects are not what their names say would be preferred to the right ones. */
  #checkPacks(done: PutBack): void {
    const fresh = this.#packNames().filter((name) => !this.#packs.has(name));
    for (const name of fresh) {
      const file = this.#at(`objects/pack/${name}`);
      if ((statusOf(file)?.size ?? 0) > VERIFIED_BYTES_MAX) continue;
      const answer = askGit(this.#git, this.gitFolder, ['verify-pack', file.replace(/\.pack$/, '.idx')]);
      if (answer?.code === 0) continue;
      for (const part of ['.idx', '.pack']) this.#moveAway(file.replace(/\.pack$/, part), done);
    }
    for (const [name, signature] of this.#readDerived()) {
      if (this.#derived.get(name) === signature) continue;
      const check = name.endsWith('multi-pack-index') ? 'multi-pack-index' : 'commit-graph';
      const words = ['-c', 'core.commitGraph=true', check, 'verify'];
      if (askGit(this.#git, this.gitFolder, words)?.code !== 0) this.#moveAway(this.#at(name), done);
    }
  }

  /** A damaged loose object makes git fail, even if the right one lies in a pack. */
  #checkNewObjects(done: PutBack): void {
    let count = 0;
    for (const { name: fan } of entriesIn(this.#at('objects'))) {
      const folder = this.#at(`objects/${fan}`);
      const status = statusOf(folder);
      const known = this.#fans.get(fan);
      if (!/^[0-9a-f]{2}$/.test(fan) || !status?.isDirectory() || isUnchanged(status, known?.signature))
        continue;
      for (const { name } of entriesIn(folder)) {
        if (known?.objects.has(name) || !HASH.test(fan + name)) continue;
        if ((statusOf(path.join(folder, name))?.size ?? 0) > NEW_BYTES_MAX) continue;
        count += 1;
        if (count > NEW_MAX) return;
        if (!this.#isObject(fan + name)) this.#moveAway(path.join(folder, name), done);
      }
    }
  }

  #putObjects(done: PutBack): void {
    const missing: string[] = [];
    for (const [fan, { objects }] of this.#fans) {
      for (const [rest, known] of objects) {
        const name = `objects/${fan}/${rest}`;
        const status = statusOf(this.#at(name));
        if (status === null) missing.push(name);
        else if (!isUnchanged(status, known.signature) && !this.#isSame(name)) {
          if (this.#putFile(name, done)) done.objects += 1;
        }
      }
    }
    const packed = missing.length === 0 ? new Set<string>() : this.#packedObjects();
    for (const name of missing) {
      if (packed.has(name.slice('objects/'.length).replace('/', ''))) continue;
      if (this.#putFile(name, done)) done.objects += 1;
    }
  }

  #isSame(name: string): boolean {
    const [now, before] = [bytesOf(this.#at(name)), bytesOf(this.#copy(name))];
    return now !== null && before !== null && now.equals(before);
  }

  /** Objects of packs that the command made and that were verified. */
  #packedObjects(): Set<string> {
    const objects = new Set<string>();
    for (const name of this.#packNames().filter((pack) => !this.#packs.has(pack))) {
      const index = this.#at(`objects/pack/${name.replace(/\.pack$/, '.idx')}`);
      const answer = askGit(this.#git, this.gitFolder, ['verify-pack', '-v', index]);
      for (const line of answer?.code === 0 ? linesOf(answer.output) : [])
        objects.add(line.split(' ')[0] ?? '');
    }
    return objects;
  }

  /** HEAD, index and the like, where they are gone or can't be read. Git itself never deletes them. */
  #putFiles(done: PutBack): void {
    for (const name of this.#files.keys()) {
      if (isLog(name) || isRef(name)) continue;
      if (!this.#belongs(name) || this.#isSound(name)) continue;
      if (this.#putFile(name, done)) done.files.add(name);
    }
  }

  /** Files that hide a part of the history, or show another one. */
  #putLimits(movesBorder: boolean, done: PutBack): void {
    for (const name of ['objects/info/alternates', 'info/grafts', ...(movesBorder ? [] : ['shallow'])]) {
      if (!this.#files.has(name)) this.#moveAway(this.#at(name), done);
      else if (!this.#isSame(name) && this.#putFile(name, done)) done.files.add(name);
    }
    if (!movesBorder || !this.#files.has('shallow') || this.#isSame('shallow')) return;
    const answer = askGit(this.#git, this.gitFolder, ['rev-list', '--all', '--count']);
    if (answer?.code !== 0 && this.#putFile('shallow', done)) done.files.add('shallow');
  }

  /** Whether a file should be there: those of a linked worktree only while the worktree is. */
  #belongs(name: string): boolean {
    const [, worktree] = /^(worktrees\/[^/]+)\//.exec(name) ?? [];
    if (worktree === undefined) return !LIMITS.has(name);
    const back = textOf(this.#copy(`${worktree}/gitdir`)).trim();
    return back !== '' && statusOf(path.resolve(this.#at(worktree), back)) !== null;
  }

  #isSound(name: string): boolean {
    const file = this.#at(name);
    const status = statusOf(file);
    if (status?.isFile() && isUnchanged(status, this.#files.get(name)?.signature)) return true;
    const [, shared] = /^sharedindex\.([0-9a-f]+)$/.exec(name) ?? [];
    // Git deletes the shared part of an index when no index names it any more.
    if (shared !== undefined && bytesOf(this.#at('index'))?.includes(shared, 0, 'hex') === false) return true;
    const bytes = bytesOf(file);
    if (bytes === null) return false;
    if (isHead(name)) return isRefText(bytes.toString('utf8'));
    if (isIndex(name)) return isReadableIndex(bytes);
    if (name === 'packed-refs') return isPackedText(bytes.toString('utf8'));
    return bytes.equals(bytesOf(this.#copy(name)) ?? Buffer.alloc(0));
  }

  #putAllRefs(done: PutBack): void {
    for (const name of this.#files.keys()) {
      if (!name.startsWith('refs/') || statusOf(this.#at(name)) !== null) continue;
      if (this.#putFile(name, done)) done.refs.add(name);
    }
  }

  /** The logs of HEAD and of refs that are there. */
  #putLogs(done: PutBack): void {
    for (const name of this.#files.keys()) {
      if (!name.startsWith('logs/') || statusOf(this.#at(name)) !== null) continue;
      const ref = name.slice('logs/'.length);
      if (ref !== 'HEAD' && this.#refNow(ref) === null) continue;
      if (this.#putFile(name, done)) done.files.add(name);
    }
  }

  /** The hash that a ref has now; null if there is no such ref. */
  #refNow(ref: string): string | null {
    const text = textOf(this.#at(ref)).trim();
    if (HASH.test(text)) return text;
    return packedRefs(textOf(this.#at('packed-refs'))).get(ref) ?? null;
  }

  #refBefore(ref: string): string | null {
    const text = this.#files.has(ref) ? textOf(this.#copy(ref)).trim() : '';
    if (HASH.test(text)) return text;
    return this.#files.has('packed-refs')
      ? (packedRefs(textOf(this.#copy('packed-refs'))).get(ref) ?? null)
      : null;
  }

  /** A ref with garbage, or with the hash of an object that is not there, makes git fail. */
  #checkRefs(done: PutBack): void {
    const changed = filesBelow(this.gitFolder, 'refs').filter((name) => {
      const status = statusOf(this.#at(name));
      return status !== null && !isUnchanged(status, this.#files.get(name)?.signature);
    });
    const isManyAndGood = changed.length > REFS_MAX && this.#allRefsLead();
    for (const name of ['HEAD', ...changed]) {
      const text = textOf(this.#at(name));
      const isGood =
        isRefText(text) && (!HASH.test(text.trim()) || isManyAndGood || this.#hasObject(text.trim()));
      if (isGood && !name.startsWith('refs/replace/')) continue;
      if (!this.#files.has(name)) this.#moveAway(this.#at(name), done);
      else if (!this.#isSame(name) && this.#putFile(name, done)) done.refs.add(name);
    }
    if (!this.#files.has('packed-refs') || this.#isSame('packed-refs') || this.#allRefsLead()) return;
    if (this.#putFile('packed-refs', done)) done.files.add('packed-refs');
  }

  /** Whether every ref leads to an object. */
  #allRefsLead(): boolean {
    const words = ['for-each-ref', '--format=%(objecttype)'];
    return askGit(this.#git, this.gitFolder, words)?.code === 0;
  }

  #hasObject(oid: string): boolean {
    if (this.#isObject(oid)) return true;
    const answer = askGit(this.#git, this.gitFolder, ['cat-file', '-t', oid]);
    return answer === null || answer.code === 0;
  }

  /** Whether there is a loose object with the right content. */
  #isObject(oid: string): boolean {
    const bytes = bytesOf(this.#at(`objects/${oid.slice(0, 2)}/${oid.slice(2)}`));
    if (bytes === null) return false;
    try {
      const content = inflateSync(bytes, { maxOutputLength: COPY_BYTES_MAX });
      return (
        createHash(oid.length === 40 ? 'sha1' : 'sha256')
          .update(content)
          .digest('hex') === oid
      );
    } catch {
      return false; // no object of git
    }
  }

  #putCurrentBranch(done: PutBack): void {
    const [, ref] = /^ref: *([^ \n\r\t]+)/.exec(textOf(this.#at('HEAD'))) ?? [];
    if (ref === undefined || this.#refNow(ref) !== null) return;
    const oid = this.#refBefore(ref);
    if (oid === null || !this.#putText(ref, `${oid}\n`, done)) return;
    done.refs.add(ref);
    this.#putLog(`logs/${ref}`, done);
  }

  /** Rule 3. */
  #putLost(done: PutBack, takesStash: boolean): void {
    const suspects = this.#suspects();
    if (suspects.length === 0) return;
    const unnamed: Suspect[] = [];
    const logs = new Map<string, Suspect[]>();
    for (const suspect of this.#lostAmong(suspects)) {
      const { ref, oid, file } = suspect;
      const isStash = ref === STASH || file === `logs/${STASH}`;
      const isPruned = ref?.startsWith('refs/remotes/') === true; // git fetch --prune stays done
      if (isPruned || (isStash && takesStash)) unnamed.push(suspect);
      else if (isStash) logs.set(`logs/${STASH}`, [...(logs.get(`logs/${STASH}`) ?? []), suspect]);
      else if (ref !== null && this.#isFree(ref) && this.#putText(ref, `${oid}\n`, done)) {
        done.refs.add(ref);
        this.#putLog(`logs/${ref}`, done);
      } else if (isLog(file)) logs.set(file, [...(logs.get(file) ?? []), suspect]);
      else unnamed.push(suspect);
    }
    for (const [file, entries] of logs) if (!this.#putEntries(file, done)) unnamed.push(...entries);
    this.#putUnnamed(unnamed, done);
    done.lost += unnamed.length;
  }

  /** Whether a ref of this name can be made. */
  #isFree(ref: string): boolean {
    if (this.#refNow(ref) !== null) return false;
    const parents = ref.split('/').map((_, index, parts) => parts.slice(0, index).join('/'));
    const isBlocked = parents.some((parent) => statusOf(this.#at(parent))?.isDirectory() === false);
    if (isBlocked || filesBelow(this.gitFolder, ref).length > 0) return false;
    rmSync(this.#at(ref), { recursive: true, force: true }); // empty folders that git left
    return true;
  }

  /** Puts entries back into a reflog. False if its ref is gone. */
  #putEntries(file: string, done: PutBack): boolean {
    const ref = file.slice('logs/'.length);
    if (file === `logs/${STASH}`) {
      if (!this.#putLog(file, done)) return false;
      const last = logLine(linesOf(logOf(this.#at(file))).at(-1) ?? '');
      return last !== null && this.#putText(STASH, `${last.oid}\n`, done);
    }
    const isThere = isRef(ref)
      ? this.#refNow(ref) !== null
      : isFolder(path.dirname(path.dirname(this.#at(file))));
    return isThere && this.#putLog(file, done);
  }

  /** Writes the entries of a log that were there before, and then those of the command. */
  #putLog(file: string, done: PutBack): boolean {
    if (!this.#files.has(file)) return false;
    const before = linesOf(logOf(this.#copy(file)));
    const known = new Set(before.map((line) => logLine(line)?.rest));
    const fresh = linesOf(logOf(this.#at(file))).filter((line) => !known.has(logLine(line)?.rest));
    if (!this.#putText(file, joinLog([...before, ...fresh]), done)) return false;
    done.files.add(file);
    return true;
  }

  /** Commits whose names are taken: one ref, whose reflog lists them all. */
  #putUnnamed(unnamed: readonly Suspect[], done: PutBack): void {
    if (unnamed.length === 0) return;
    const seconds = Math.floor(Date.now() / 1000);
    const lines = unnamed.map(
      ({ oid, file, ref }) =>
        `${oid} ${oid} Pawl <pawl@localhost> ${seconds} +0000\t${asBytes(ref ?? file.replace(/^logs\//, ''))} before a command`,
    );
    const text = joinLog([...linesOf(logOf(this.#at(`logs/${LOST}`))), ...lines]);
    this.#putText(`logs/${LOST}`, text, done);
    this.#putText(LOST, `${unnamed.at(-1)?.oid}\n`, done);
  }

  /** Hashes that files named before and do not name now. */
  #suspects(): readonly Suspect[] {
    const found = new Map<string, Suspect>();
    const add = (oid: string, file: string, ref: string | null): void => {
      const known = found.get(oid);
      if (!ZEROS.test(oid) && (known === undefined || (known.ref === null && ref !== null)))
        found.set(oid, { oid, file, ref });
    };
    for (const [file, { signature }] of this.#files) {
      const status = statusOf(this.#at(file));
      if (status !== null && isUnchanged(status, signature)) continue;
      if (!isLog(file) && !isRef(file) && !isHead(file) && file !== 'packed-refs') continue;
      const read = isLog(file) ? logOf : textOf;
      const [before, now] = [read(this.#copy(file)), read(this.#at(file))];
      if (isLog(file)) {
        if (now.startsWith(before)) continue;
        const first = /^([0-9a-f]{40,64}) /.exec(before)?.[1] ?? '';
        for (const oid of [first, ...linesOf(before).map((line) => logLine(line)?.oid ?? '')])
          if (HASH.test(oid) && !now.includes(oid)) add(oid, file, null);
      } else if (file === 'packed-refs') {
        const after = packedRefs(now);
        for (const [name, oid] of packedRefs(before)) if (after.get(name) !== oid) add(oid, file, name);
      } else if (HASH.test(before.trim()) && before.trim() !== now.trim()) {
        add(before.trim(), file, file.startsWith('refs/') ? file : null);
      }
    }
    return this.#withoutNamed([...found.values()]);
  }

  #withoutNamed(suspects: readonly Suspect[]): readonly Suspect[] {
    if (suspects.length === 0) return [];
    const log = textOf(this.#at('logs/HEAD'));
    const rest = suspects.filter(({ oid }) => !log.includes(oid));
    if (rest.length === 0) return [];
    const names = stateFiles(this.gitFolder).filter((name) => isLog(name) || isRef(name) || isHead(name));
    const text = ['packed-refs', ...names].map((name) => textOf(this.#at(name))).join('\n');
    return rest.filter(({ oid }) => !text.includes(oid));
  }

  /** Those of the suspects that no ref and no reflog leads to. */
  #lostAmong(suspects: readonly Suspect[]): readonly Suspect[] {
    return suspects.filter(({ oid }, index) => {
      if (index >= QUESTIONS_MAX) return true;
      const words = ['rev-list', '-n', '1', oid, '--not', '--all', '--reflog'];
      const answer = askGit(this.#git, this.gitFolder, words);
      if (answer?.code === 0) return answer.output.trim() !== '';
      // An old entry of a reflog may name an object that was gone before.
      return askGit(this.#git, this.gitFolder, ['cat-file', '-e', oid])?.code !== 1;
    });
  }
}

const shown = (names: Iterable<string>): string => {
  const all = [...names];
  return all.length > 5 ? `${all.slice(0, 4).join(', ')} and ${all.length - 4} more` : all.join(', ');
};

const linesFor = (folder: string, done: PutBack): readonly string[] => {
  const names = [...done.refs, ...done.files];
  const parts = [
    ...(done.objects > 0 ? [plural(done.objects, 'object')] : []),
    ...(names.length > 0 ? [shown(names)] : []),
  ];
  return [
    ...(parts.length === 0
      ? []
      : [
          `parts of the history in ${folder} were deleted or damaged while the command ran, and were put back: ${parts.join(', ')}. To delete history for good, use the git command for it, which the user is asked about`,
        ]),
    ...(done.lost === 0
      ? []
      : [
          `${plural(done.lost, 'commit')} of ${folder} that no branch, tag or stash names any more ${done.lost === 1 ? 'is' : 'are'} kept: git reflog ${LOST}`,
        ]),
    ...(done.aside.length === 0
      ? []
      : [`files that make git misread ${folder} were moved away: ${shown(done.aside)}`]),
  ];
};

export type GitHistory = {
  /** A command that may change these git folders starts. */
  begin(gitFolders: readonly string[]): void;
  /** It has ended. Returns lines for the model about what was put back. */
  end(gitFolders: readonly string[], purpose: HistoryPurpose): readonly string[];
  /** Accepts everything as it is: a command that the user approved has ended. */
  accept(): void;
  /** The session ends: checks what running commands have done. Their later ends change nothing. */
  close(): void;
};

/** Pause before a folder that was damaged is checked again, in ms, and how often that is done. */
const QUIET_MS = 25;
const QUIET_CHECKS_MAX = 40;

class SessionHistory implements GitHistory {
  readonly #top: string;
  readonly #options: HistoryOptions;
  readonly #folders = new Map<string, KeptFolder>();
  /** How many running commands may change each git folder. */
  readonly #running = new Map<string, number>();
  #notes: string[] = [];

  constructor(options: HistoryOptions) {
    this.#top = historyFolder(options.sessionFolder);
    this.#options = options;
  }

  begin(gitFolders: readonly string[]): void {
    for (const gitFolder of gitFolders) {
      const count = this.#running.get(gitFolder) ?? 0;
      if (count > 0) this.#check(gitFolder, NO_PURPOSE);
      this.#folderFor(gitFolder).keep();
      this.#running.set(gitFolder, count + 1);
    }
    if (gitFolders.length > 0) writeFileSync(runningFile(this.#top), '', { mode: 0o600 });
  }

  end(gitFolders: readonly string[], purpose: HistoryPurpose): readonly string[] {
    for (const gitFolder of gitFolders) {
      const count = this.#running.get(gitFolder);
      if (count === undefined) continue;
      if (this.#check(gitFolder, purpose) && count === 1) this.#checkUntilQuiet(gitFolder, purpose);
      if (count === 1) this.#running.delete(gitFolder);
      else {
        this.#folderFor(gitFolder).keep();
        this.#running.set(gitFolder, count - 1);
      }
    }
    if (gitFolders.length > 0 && this.#running.size === 0) rmSync(runningFile(this.#top), { force: true });
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  accept(): void {
    for (const gitFolder of this.#running.keys()) this.#folderFor(gitFolder).keep();
  }

  close(): void {
    for (const gitFolder of this.#running.keys()) this.#check(gitFolder, NO_PURPOSE);
    this.#running.clear();
    rmSync(runningFile(this.#top), { force: true });
  }

  /** Returns whether anything was put back. */
  #check(gitFolder: string, purpose: HistoryPurpose): boolean {
    const lines = linesFor(this.#shown(gitFolder), this.#folderFor(gitFolder).putBack(purpose));
    this.#notes.push(...lines);
    return lines.length > 0;
  }

  /**
   * What a command leaves behind is killed with its sandbox, but on a busy machine a moment after the command has ended,
   * and may delete until then. Blocks, since nothing else may use the folder meanwhile.
   */
  #checkUntilQuiet(gitFolder: string, purpose: HistoryPurpose): void {
    for (let count = 0; count < QUIET_CHECKS_MAX; count++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUIET_MS);
      if (linesFor(gitFolder, this.#folderFor(gitFolder).putBack(purpose)).length === 0) return;
    }
  }

  #shown(gitFolder: string): string {
    return path.relative(this.#options.workspace, gitFolder) || gitFolder;
  }

  #folderFor(gitFolder: string): KeptFolder {
    const known = this.#folders.get(gitFolder);
    if (known !== undefined) return known;
    const name = String(this.#folders.size + 1);
    const aside = path.join(this.#options.sessionFolder, 'set-aside', `git-${name}`);
    const folder = new KeptFolder(gitFolder, path.join(this.#top, name), this.#options.git, aside);
    this.#folders.set(gitFolder, folder);
    return folder;
  }
}

type HistoryOptions = {
  readonly workspace: string;
  readonly sessionFolder: string;
  readonly git: FindGit;
};

/** Folder of the copies, removed with the session. */
export const historyFolder = (sessionFolder: string): string => path.join(sessionFolder, 'history');
/** This file exists while a command that may change git folders runs. */
const runningFile = (top: string): string => path.join(top, 'running');

export const createGitHistory = (options: HistoryOptions): GitHistory => new SessionHistory(options);

/**
 * Checks the git folders of a killed process, after a command of it has ended. Returns lines for the model; none if no
 * command that may change git folders was running. `isOver`: none of its commands runs any more.
 */
export const finishHistory = (sessionFolder: string, git: FindGit, isOver: boolean): readonly string[] => {
  const top = historyFolder(sessionFolder);
  if (!existsSync(runningFile(top))) return [];
  const lines = entriesIn(top).flatMap(({ name }) => {
    const gitFolder = textOf(path.join(top, name, 'folder'));
    if (gitFolder === '') return [];
    const aside = path.join(sessionFolder, 'set-aside', `git-${name}`);
    const folder = new KeptFolder(gitFolder, path.join(top, name), git, aside);
    folder.load();
    return linesFor(gitFolder, folder.putBack(NO_PURPOSE));
  });
  if (isOver) rmSync(runningFile(top), { force: true });
  return lines;
};
