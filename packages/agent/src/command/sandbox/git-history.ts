/**
 * Protects the history of git folders that a command may change: afterwards every commit and stash
 * that existed before can be reached, and the index is readable.
 *
 * 1. Before a command, loose objects, refs, reflogs, HEAD and index are copied to the session's
 *    folder, which commands do not see. Only new and changed files are copied again. Packs are not
 *    copied: they are mounted read-only.
 * 2. After it, missing and damaged parts are restored: first files without which git finds no
 *    repository, then objects, then refs and reflogs. New commits, refs and files stay. Git reports
 *    missing objects and lost commits, many in one call.
 * 3. When a command starts or ends while another one runs, the changes of the other one so far are
 *    checked, too. A check spares what one of them does on purpose. The copies stay until a command
 *    has been checked, so that a later process can check a command whose Pawl was killed.
 *
 * Repairs work in opened folders (`inFolder`), so without /proc nothing is restored.
 *
 * A git folder is `.git`, or a bare repository. A reflog lists the former commits of a ref. A
 * commit is lost if no ref and no reflog leads to it. The border of a history is where it ends
 * (`shallow`) or goes on in another repository.
 *
 * From top to bottom: `GitHistory`, for all git folders of a session, and `finishHistory`, for
 * those of a killed process; `GitFolder`, which copies, checks and repairs one of them; the lines
 * for the model; and reading git's files.
 */

import { createHash } from 'node:crypto';
import {
  chownSync,
  constants,
  copyFileSync,
  type Dirent,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { inflateSync } from 'node:zlib';
import { attemptNow } from '../../platform/attempt.js';
import {
  copyRegularSync,
  entriesIn,
  entryStatus,
  errorCode,
  followStatus,
  holdFolderSync,
  isFolder,
  namesIn,
  readBytes,
  readRegularSync,
  readSmall,
  writePrivateSync,
} from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { inFolder, removeBelow, replaceEntry, setAside } from '../../platform/replaceable-files.js';
import { plural } from '../../platform/text.js';
import type { HistoryPurpose } from '../../policy/repository-access.js';
import { askGit, readSetting } from './git-folders.js';
import { historyFolder } from './session-folders.js';

/** The purpose of a command that deletes no history intentionally. */
export const NO_PURPOSE: HistoryPurpose = { takesStash: false, movesBorder: false };
/** The purpose of a command that the user allowed to delete history. */
export const ANY_PURPOSE: HistoryPurpose = { takesStash: true, movesBorder: true, deletes: 'any' };

/** A command that runs, and the git folders that are checked after it. */
export type RunningCommand = {
  readonly gitFolders: readonly string[];
  readonly purpose: HistoryPurpose;
};

/** What any of the commands does on purpose: a check can't tell whose a change is. */
const runningPurpose = (commands: readonly RunningCommand[]): HistoryPurpose => ({
  takesStash: commands.some(({ purpose }) => purpose.takesStash),
  movesBorder: commands.some(({ purpose }) => purpose.movesBorder),
  ...(commands.some(({ purpose }) => purpose.deletes === 'any') ? { deletes: 'any' } : {}),
});

/** Finds git when it is needed. Without git every commit without a ref counts as lost. */
export type FindGit = () => ProgramPath | null;

export type HistoryOptions = {
  readonly workspace: string;
  readonly sessionFolder: string;
  readonly git: FindGit;
  /** For one call of git. */
  readonly gitTimeoutMs?: number;
};

/**
 * Git that needs longer counts as missing. It may wait forever for a pipe of a command, and
 * all of Pawl waits for it.
 */
const GIT_TIMEOUT_MS = 60_000;

/** Pause before a damaged folder is checked again, in ms, and the most such checks. */
const QUIET_MS = 25;
const QUIET_CHECKS_MAX = 40;

/** Copies the git folders before the commands of a session, and checks them afterwards. */
export class GitHistory {
  /** The folder with the copies of all git folders. */
  readonly #top: string;
  readonly #options: HistoryOptions;
  readonly #folders = new Map<string, GitFolder>();
  #running: readonly RunningCommand[] = [];
  #notes: string[] = [];

  constructor(options: HistoryOptions) {
    this.#top = historyFolder(options.sessionFolder);
    this.#options = options;
  }

  /** Call it before a command that may change these git folders, and `end` with its result. */
  begin(gitFolders: readonly string[], purpose: HistoryPurpose): RunningCommand {
    for (const gitFolder of gitFolders) {
      if (this.#runningFolders().has(gitFolder)) this.#check(gitFolder);
      this.#open(gitFolder).updateCopies();
    }
    const command = { gitFolders, purpose };
    const running = [...this.#running, command];
    this.#recordPurpose(running);
    // Last: a full disk refuses the command, which then has no `end`.
    this.#running = running;
    return command;
  }

  /**
   * Call it after the command. Returns lines for the model about restored parts, also those of
   * checks since the last `end`.
   */
  end(command: RunningCommand): readonly string[] {
    const purpose = runningPurpose(this.#running);
    const isRunning = this.#running.includes(command);
    this.#running = this.#running.filter((one) => one !== command);
    const others = this.#runningFolders();
    for (const gitFolder of isRunning ? command.gitFolders : []) {
      const isLast = !others.has(gitFolder);
      // processes of a command that has deleted history may still delete
      if (this.#check(gitFolder, purpose) && isLast) this.#checkUntilQuiet(gitFolder, purpose);
      if (!isLast) this.#takeOver(gitFolder);
    }
    if (others.size === 0) rmSync(runningFile(this.#top), { force: true });
    // on a full disk the earlier record stays
    else attemptNow(() => this.#recordPurpose(this.#running));
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  /**
   * Call it when an approved command has ended. Accepts all changes, also those of commands that
   * ran beside it.
   */
  accept(): void {
    for (const gitFolder of this.#runningFolders()) this.#takeOver(gitFolder);
  }

  /**
   * Checks the changes of running commands at the end of the session. A later `end` of these
   * commands checks nothing; it only returns the lines of this check.
   */
  close(): void {
    for (const gitFolder of this.#runningFolders()) this.#check(gitFolder);
    this.#running = [];
    rmSync(runningFile(this.#top), { force: true });
  }

  #recordPurpose(running: readonly RunningCommand[]): void {
    if (running.some(({ gitFolders }) => gitFolders.length > 0))
      writePrivateSync(runningFile(this.#top), JSON.stringify(runningPurpose(running)));
  }

  #runningFolders(): ReadonlySet<string> {
    return new Set(this.#running.flatMap(({ gitFolders }) => gitFolders));
  }

  /** Accepts what was changed so far, while commands run: copies it. */
  #takeOver(gitFolder: string): void {
    try {
      this.#open(gitFolder).updateCopies();
    } catch {
      // Copies of before stay where the disk is full, so a check may restore more than is needed.
    }
  }

  /** Returns whether anything was restored. */
  #check(gitFolder: string, purpose = runningPurpose(this.#running)): boolean {
    const shown = path.relative(this.#options.workspace, gitFolder) || gitFolder;
    const lines = linesFor(shown, this.#open(gitFolder).check(purpose));
    this.#notes.push(...lines);
    return lines.length > 0;
  }

  /**
   * Repeats the check until it restores nothing. Processes that a command leaves behind are killed
   * with its sandbox, on a busy machine a moment later, and may delete until then. Blocks the whole
   * process, for a second and the time of the checks, since no other command may use the folder
   * meanwhile. Reports nothing: the check before has reported that history was deleted.
   */
  #checkUntilQuiet(gitFolder: string, purpose: HistoryPurpose): void {
    for (let count = 0; count < QUIET_CHECKS_MAX; count++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUIET_MS);
      if (linesFor(gitFolder, this.#open(gitFolder).check(purpose)).length === 0) return;
    }
  }

  #open(gitFolder: string): GitFolder {
    const cached = this.#folders.get(gitFolder);
    if (cached !== undefined) return cached;
    const name = String(this.#folders.size + 1);
    const folder = new GitFolder(this.#options, name, gitFolder);
    this.#folders.set(gitFolder, folder);
    return folder;
  }
}

/**
 * Checks the git folders of a killed process, after one of its commands has ended. Returns lines
 * for the model; none if no command that may change git folders was running. `isLast`: all its
 * commands have ended, so no further check follows.
 */
export const finishHistory = (
  sessionFolder: string,
  git: FindGit,
  { isLast }: { readonly isLast: boolean },
): readonly string[] => {
  const top = historyFolder(sessionFolder);
  if (!existsSync(runningFile(top))) return [];
  const recorded = readSmall(runningFile(top)) || '{}'; // empty: of an earlier version
  const purpose: HistoryPurpose = { ...NO_PURPOSE, ...JSON.parse(recorded) };
  const lines = namesIn(top).flatMap((name) => {
    const gitFolder = readBytes(path.join(top, name, 'folder'), TEXT_MAX)?.toString('utf8') ?? '';
    if (gitFolder === '') return [];
    const folder = new GitFolder({ sessionFolder, git }, name, gitFolder);
    folder.load();
    return linesFor(gitFolder, folder.check(purpose));
  });
  if (isLast) rmSync(runningFile(top), { force: true });
  return lines;
};

/**
 * This file exists while a command that may change git folders runs. It holds what the running
 * commands do on purpose.
 */
const runningFile = (top: string): string => path.join(top, 'running');

// ---- One git folder ----

/**
 * Loose objects beyond this number of bytes are hard links: they survive deletion, but not being
 * overwritten.
 */
const COPIES_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Resolution of file times, in ms. A file that was copied right after a change may change again
 * with the same time.
 */
const TICK_MS = 25;
/** New loose objects beyond this number or these sizes are not checked. */
const NEW_MAX = 2_000;
const NEW_BYTES_MAX = 1024 * 1024;
const NEW_CONTENT_MAX = 64 * 1024 * 1024;
/** New packs of more bytes are not verified. */
const VERIFIED_BYTES_MAX = 128 * 1024 * 1024;

/**
 * Larger files count as unreadable: texts, and other files. Commands write them, so they may have
 * any size.
 */
const TEXT_MAX = 256 * 1024 * 1024;
const CONTENT_MAX = 1024 * 1024 * 1024;

/** Copied files with their stamps. Empty stamp: the file is compared by its content. */
type CopiedFiles = Map<string, string>;

/** Commits by their hashes, each with a ref or reflog that named it. */
type NamedCommits = ReadonlyMap<string, string>;

/** Errors of a full or read-only disk. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EROFS']);

/** A git folder, with copies of its files. The name of a file is its path in the git folder. */
class GitFolder {
  readonly #gitFolder: string;
  readonly #findGit: FindGit;
  readonly #gitTimeoutMs: number;
  /** The session's folder for this git folder, with the copies. */
  readonly #store: string;
  /** The copies, laid out like the git folder. */
  readonly #copyTop: string;
  /** The folder for bad files that are moved out of the git folder. */
  readonly #aside: string;
  #asideCount = 0;
  /** Copied files without objects. */
  readonly #files: CopiedFiles = new Map();
  /** Copied loose objects. */
  readonly #objects: CopiedFiles = new Map();
  /** Folders of loose objects, as last read. */
  readonly #objectFolders = new Map<
    string,
    { readonly stamp: string; readonly objects: readonly string[] }
  >();
  /** Packs and files derived from objects, which are not copied: their stamps and names. */
  #packed: ReadonlySet<string> = new Set();
  /** Bytes of all objects that this process has copied, those of removed ones too. */
  #bytes = 0;
  /** The purpose and the repairs of the present check. */
  #purpose = NO_PURPOSE;
  #repairs = new Repairs();
  /** Whether git has answered every question of the present check. */
  #isGitUsable = true;

  /** `name`: the number of the git folder in its session. */
  constructor(
    { sessionFolder, git, gitTimeoutMs = GIT_TIMEOUT_MS }: Omit<HistoryOptions, 'workspace'>,
    name: string,
    gitFolder: string,
  ) {
    this.#gitFolder = gitFolder;
    this.#findGit = git;
    this.#gitTimeoutMs = gitTimeoutMs;
    this.#store = path.join(historyFolder(sessionFolder), name);
    this.#copyTop = path.join(this.#store, 'copy');
    this.#aside = path.join(sessionFolder, 'set-aside', `git-${name}`);
  }

  // The copies

  /**
   * Copies files that have changed since the last call, and removes copies of deleted ones. Throws
   * if the disk is full.
   */
  updateCopies(): void {
    this.#copyFiles(stateFiles(this.#gitFolder), this.#files);
    this.#copyFiles(this.#looseObjects({ movesIntruders: false }), this.#objects);
    this.#packed = new Set(this.#packedFiles().values());
    writePrivateSync(path.join(this.#store, 'packs'), [...this.#packed].join('\n'));
    writePrivateSync(path.join(this.#store, 'folder'), this.#gitFolder);
  }

  #copyFiles(names: readonly string[], copied: CopiedFiles): void {
    // first: a branch `a` may have become `a/b`
    const existing = new Set(names);
    for (const name of copied.keys()) {
      if (existing.has(name)) continue;
      this.#removeCopy(name);
      copied.delete(name);
    }
    let folder = '';
    for (const name of names) {
      const before = copied.get(name);
      if (before !== undefined && isLoose(name)) continue; // git never changes an object
      if (before === undefined && folder !== path.dirname(name)) {
        folder = path.dirname(name);
        mkdirSync(this.#copyPath(folder), { recursive: true, mode: 0o700 });
      }
      const stamp = this.#copyFile(name, before);
      if (stamp === null) copied.delete(name);
      else copied.set(name, stamp);
    }
  }

  /** Removes a copy, or the empty folders of earlier ones: a branch `a/b` may have become `a`. */
  #removeCopy(name: string): void {
    rmSync(this.#copyPath(name), { recursive: true, force: true });
  }

  /** Copies a file and returns its stamp; null: there is no copy. */
  #copyFile(name: string, before: string | undefined): string | null {
    const from = this.#path(name);
    const to = this.#copyPath(name);
    const draft = path.join(this.#store, 'draft'); // a crash leaves the old copy or the new one
    const status = entryStatus(from);
    if (status?.isFile() && before === statusStamp(status)) return before;
    if (!status?.isFile() || (!isLoose(name) && status.size > bytesMax(name))) {
      this.#removeCopy(name);
      return null;
    }
    const isLinked = isLoose(name) && this.#bytes + status.size > COPIES_BYTES_MAX;
    rmSync(draft, { force: true }); // of a killed process
    try {
      if (isLinked) linkRegular(from, draft);
      else copyRegularSync(from, draft, { follow: 'none' });
      if (isFolder(to)) this.#removeCopy(name);
      renameSync(draft, to);
    } catch (error) {
      rmSync(draft, { force: true });
      // The command is refused. The old copy stays.
      if (FULL.has(errorCode(error))) throw error;
      this.#removeCopy(name);
      // deleted meanwhile, unreadable for us, or a link on another file system: a limit that
      // docs/proof/security.md names
      return null;
    }
    if (isLoose(name) && !isLinked) this.#bytes += status.size;
    // Making a link changes the ctime of its file.
    const copied = isLinked ? entryStatus(to) : status;
    if (!copied?.isFile()) return null;
    // git never changes an object
    return isLoose(name) ? statusStamp(copied) : stableStamp(copied);
  }

  /**
   * The names of loose objects. An unchanged folder is not read again. `movesIntruders`: an entry
   * in the place of such a folder is moved away.
   */
  #looseObjects({ movesIntruders }: { readonly movesIntruders: boolean }): readonly string[] {
    const folders = namesIn(this.#path('objects')).map((name) => `objects/${name}`);
    return folders
      .filter((folder) => isLoose(`${folder}/`))
      .flatMap((folder) => {
        const cached = this.#objectFolders.get(folder);
        const status = entryStatus(this.#path(folder));
        const stamp = status === null ? '' : stableStamp(status);
        if (cached !== undefined && stamp !== '' && cached.stamp === stamp) return cached.objects;
        const isThere = status?.isDirectory() === true;
        if (movesIntruders && !isThere) this.#moveAway(folder);
        const names = isThere ? namesIn(this.#path(folder)) : [];
        const objects = names
          .map((name) => `${folder}/${name}`)
          .filter((one) => HASH.test(objectHash(one)));
        this.#objectFolders.set(folder, { stamp, objects });
        return objects;
      });
  }

  /**
   * Packs and files derived from objects, each with its stamp and name as one text. Git writes the
   * index of a pack last, and uses no pack without one.
   */
  #packedFiles(): ReadonlyMap<string, string> {
    const all = ['objects/pack', 'objects/info'].flatMap((one) => filesBelow(this.#gitFolder, one));
    const names = all.filter((name) => PACKED.test(name) && all.includes(indexName(name)));
    return new Map(
      names.flatMap((name) => {
        const status = entryStatus(this.#path(name));
        return status === null ? [] : [[name, `${statusStamp(status)} ${name}`]];
      }),
    );
  }

  /**
   * Loads the copies of a killed process. Their stamps are unknown, so contents are compared.
   */
  load(): void {
    for (const name of filesBelow(this.#copyTop, '.').map((one) => one.slice(2)))
      (isLoose(name) ? this.#objects : this.#files).set(name, '');
    const packed = readBytes(path.join(this.#store, 'packs'), TEXT_MAX)?.toString('utf8') ?? '';
    this.#packed = new Set(packed.split('\n'));
  }

  /** Whether a file is certainly as it was copied. */
  #isUnchanged(name: string): boolean {
    const status = entryStatus(this.#path(name));
    const before = this.#files.get(name) ?? this.#objects.get(name);
    return status?.isFile() === true && statusStamp(status) === before;
  }

  /** Whether a file has the content of its copy. */
  #isSame(name: string): boolean {
    const content = this.#content(name);
    const copy = this.#copied(name);
    return content !== null && copy !== null && content.equals(copy);
  }

  // The check after a command: files without which git finds no repository

  /** Checks the git folder after a command, and repairs it. */
  check(purpose: HistoryPurpose): Repairs {
    this.#purpose = purpose;
    this.#repairs = new Repairs();
    this.#isGitUsable = true;
    if (!isFolder(this.#gitFolder)) return this.#repairs;
    for (const name of specialFiles(this.#gitFolder)) this.#moveAway(name);
    this.#restoreFiles();
    this.#checkPacks();
    this.#checkObjects();
    this.#checkRefs();
    this.#restoreLost();
    return this.#repairs;
  }

  /**
   * Restores files of three kinds. Those about the border get their former content. Refs and their
   * logs may be deleted, but not whole folders of them. The others must exist and be readable: git
   * itself never deletes them.
   */
  #restoreFiles(): void {
    const hasReftable = this.#files.has(HEADS); // as it was before the command
    // before the next lines make the folders
    const hasNoRefs = ['refs', HEADS].some((name) => !isFolder(this.#path(name)));
    const hasNoLogs = !isFolder(this.#path('logs'));
    for (const name of ['objects/info', 'objects/pack']) this.#makeFolder(name);
    for (const name of hasReftable ? [] : [HEADS, 'refs/tags']) this.#makeFolder(name);
    for (const name of BORDER_FILES)
      if (!(name === SHALLOW && this.#purpose.movesBorder)) this.#putBack(name);
    const mustExist = (name: string): boolean => {
      if (name.startsWith('refs/')) return hasNoRefs || hasReftable;
      return name.startsWith('logs/') ? hasNoLogs : this.#shouldExist(name);
    };
    for (const name of ['index', 'packed-refs', ...this.#files.keys()])
      if (mustExist(name) && !this.#isReadable(name)) this.#putBack(name);
  }

  /**
   * Whether a file other than refs and their logs must exist. Files of a linked worktree must exist
   * while the worktree does.
   */
  #shouldExist(name: string): boolean {
    const kind = fileKind(name);
    if (kind === 'log' || kind === 'ref' || BORDER_FILES.has(name)) return false;
    const [, shared] = /^sharedindex\.([0-9a-f]+)$/.exec(name) ?? [];
    // Git deletes the shared part of an index when no index names it any more.
    if (shared !== undefined) return this.#content('index')?.includes(shared, 0, 'hex') !== false;
    const [, worktree] = /^(worktrees\/[^/]+)\//.exec(name) ?? [];
    if (worktree === undefined) return true;
    const dotGit = decodeName(this.#copiedText(`${worktree}/gitdir`)).trim();
    return dotGit !== '' && entryStatus(path.resolve(this.#path(worktree), dotGit)) !== null;
  }

  /** Whether git can read the present file. */
  #isReadable(name: string): boolean {
    if (this.#isUnchanged(name)) return true;
    const bytes = this.#content(name);
    const kind = fileKind(name);
    if (bytes === null || kind === 'log' || kind === 'ref') return bytes !== null;
    if (kind === 'head') return isRefText(bytes.toString('latin1'));
    if (kind === 'index') return isReadableIndex(bytes);
    if (kind === 'packedRefs') return isPackedRefsText(bytes.toString('latin1'));
    return this.#isSame(name);
  }

  // Packs and objects

  /**
   * Verifies packs and derived files that are new, and moves bad ones away: git would prefer a pack
   * with wrong objects to the right ones, and wrong derived files would hide history. Without an
   * answer of git they stay.
   */
  #checkPacks(): void {
    const verified = new Set<string>();
    for (const [name, stamped] of this.#packedFiles()) {
      // the files of a chain of commit-graphs are one
      const unit = name.replace(/(\/commit-graphs)\/.*$/, '$1');
      const size = entryStatus(this.#path(name))?.size ?? 0;
      if (this.#packed.has(stamped) || verified.has(unit) || size > VERIFIED_BYTES_MAX) continue;
      verified.add(unit);
      const index = indexName(name);
      const answer = this.#git(this.#verifyWords(name, index));
      if (answer === null || answer.code === 0) continue;
      if (index !== name) this.#moveAway(index);
      this.#moveAway(unit);
    }
  }

  /** The words for git that verify a pack or a derived file. */
  #verifyWords(name: string, index: string): readonly string[] {
    if (index !== name) return ['verify-pack', this.#path(index)];
    if (name.endsWith('multi-pack-index')) return ['multi-pack-index', 'verify'];
    return ['-c', 'core.commitGraph=true', 'commit-graph', 'verify'];
  }

  /**
   * Restores damaged and missing loose objects. A damaged one makes git fail, even if a pack has
   * the right one. A removed one may have been packed.
   */
  #checkObjects(): void {
    const existing = new Set(this.#looseObjects({ movesIntruders: true }));
    const removed = [...this.#objects.keys()].filter((name) => !existing.has(name));
    const missing = this.#findMissing(removed.map(objectHash));
    const damaged = removed.filter((name) => missing?.has(objectHash(name)) !== false);
    let verified = 0;
    for (const name of existing) {
      if (this.#objects.has(name)) {
        if (!this.#isUnchanged(name) && !this.#isSame(name)) damaged.push(name);
      } else if (
        verified < NEW_MAX &&
        (entryStatus(this.#path(name))?.size ?? 0) <= NEW_BYTES_MAX
      ) {
        verified += 1;
        if (this.#isObject(name) === false) this.#moveAway(name);
      }
    }
    for (const name of damaged) this.#restore(name);
  }

  /** Whether a file is a loose object with the right content. Null: too large to be checked. */
  #isObject(name: string): boolean | null {
    const bytes = this.#content(name);
    const oid = objectHash(name);
    if (bytes === null) return false;
    try {
      const content = inflateSync(bytes, { maxOutputLength: NEW_CONTENT_MAX });
      const hash = createHash(oid.length === 40 ? 'sha1' : 'sha256').update(content);
      return hash.digest('hex') === oid;
    } catch (error) {
      return errorCode(error) === 'ERR_BUFFER_TOO_LARGE' ? null : false; // no object of git
    }
  }

  /** The missing ones of the objects. Null: git fails. */
  #findMissing(hashes: readonly string[]): ReadonlySet<string> | null {
    const asked = hashes.filter(
      (oid) => !this.#isObject(`objects/${oid.slice(0, 2)}/${oid.slice(2)}`),
    );
    if (asked.length === 0) return new Set();
    const answer = this.#git(['cat-file', '--batch-check=%(objectname)'], asked);
    return answer?.code === 0 ? new Set(answer.output.match(/^\S+(?= missing$)/gm)) : null;
  }

  // Refs

  /**
   * Restores changed refs with garbage or with the hash of a missing object: they make git fail.
   */
  #checkRefs(): void {
    const { movesBorder } = this.#purpose;
    // A border may move as long as git can still read the whole history.
    if (movesBorder && this.#files.has(SHALLOW) && !this.#isSame(SHALLOW))
      if (this.#git(['rev-list', '--all', '--count'])?.code !== 0) this.#restore(SHALLOW);
    const names = ['HEAD', 'packed-refs', ...filesBelow(this.#gitFolder, 'refs')];
    const changed = names
      .filter((name) => entryStatus(this.#path(name)) !== null && !this.#isUnchanged(name))
      .map((name) => {
        const before = new Set(hashesIn(this.#copiedText(name)));
        const text = this.#text(name);
        return { name, text, added: hashesIn(text).filter((oid) => !before.has(oid)) };
      });
    const missing = this.#findMissing(changed.flatMap(({ added }) => added));
    for (const { name, text, added } of changed) {
      const isText = name === 'packed-refs' || isRefText(text);
      const isGood = isText && !added.some((oid) => missing?.has(oid));
      // Refs below `replace` make git show other objects than the named ones.
      if (!isGood || name.startsWith('refs/replace/')) this.#putBack(name);
    }
  }

  // Lost commits

  /**
   * A branch, tag or reflog entry may be deleted, as long as its commit can still be reached.
   * Otherwise the commit gets its old ref again, or an entry in the reflog of LOST. The branch of
   * HEAD must exist: without it git would show no history at all. After each step git is asked anew
   * what is still lost.
   */
  #restoreLost(): void {
    const [, current = ''] = /^ref: *([^ \n\r\t]+)/.exec(decodeName(this.#text('HEAD'))) ?? [];
    const refs = new Set([
      ...packedRefs(this.#text('packed-refs')).keys(),
      ...filesBelow(this.#gitFolder, 'refs'),
    ]);
    const isAllowed = this.#purpose.deletes === 'any';
    const lost = isAllowed ? new Map() : this.#lostAmong(this.#droppedHashes(refs));
    if (lost.size === 0 && (current === '' || refs.has(current))) return;
    // First the refs with their old names, and the branch of HEAD.
    const formerRefs = new Map(packedRefs(this.#copiedText('packed-refs')));
    for (const name of this.#files.keys())
      if (name.startsWith('refs/')) formerRefs.set(name, this.#copiedText(name).trim());
    for (const [ref, oid] of formerRefs)
      if (
        (ref === current || lost.has(oid)) &&
        !this.#isIntended(ref) &&
        this.#isNamePossible(ref, refs)
      )
        if (this.#restoreRef(ref, oid)) refs.add(ref);
    // Then the reflogs with what no restored ref leads to.
    const unnamed = this.#lostAmong(lost);
    for (const name of unnamed.size === 0 ? [] : this.#files.keys()) {
      if (fileKind(name) !== 'log' || !this.#hasOwner(name, refs)) continue;
      if (hashesIn(this.#copiedText(name)).some((oid) => unnamed.has(oid))) this.#restoreLog(name);
    }
    // The rest is only listed in the reflog of LOST.
    this.#listUnnamed(this.#lostAmong(unnamed), formerRefs);
  }

  /** Whether the deletion of a ref was intended: by `git fetch --prune`, or of an applied stash. */
  #isIntended(ref: string): boolean {
    return ref.startsWith('refs/remotes/') || (ref === STASH && this.#purpose.takesStash);
  }

  /** Whether a ref of this name is possible beside the others: `a/b` excludes `a`. */
  #isNamePossible(ref: string, refs: ReadonlySet<string>): boolean {
    const outer = ref.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
    return !outer.some((one) => refs.has(one)) && filesBelow(this.#gitFolder, ref).length === 0;
  }

  /** Whether the ref of a log exists, so that its entries may be restored. */
  #hasOwner(log: string, refs: ReadonlySet<string>): boolean {
    const ref = log.replace(/^logs\//, '');
    if (ref.startsWith('refs/')) return !this.#isIntended(ref) && (ref === STASH || refs.has(ref));
    return isFolder(path.dirname(path.dirname(this.#path(log)))); // the git folder of `logs/HEAD`
  }

  /** Writes a ref, and its log. False if that failed. */
  #restoreRef(ref: string, oid: string): boolean {
    removeBelow(this.#path(ref)); // empty folders of earlier refs
    if (!this.#writeText(ref, `${oid}\n`)) return false;
    this.#repairs.files.add(ref);
    this.#restoreLog(`logs/${ref}`);
    return true;
  }

  /**
   * Writes the earlier entries of a log, and then those of the command. Two entries are the same if
   * they differ only in their old hash.
   */
  #restoreLog(name: string): void {
    const before = this.#copiedText(name).match(LOG_LINES);
    if (before === null) return;
    const withoutOld = (line: string): string => line.slice(line.indexOf(' '));
    const cached = new Set(before.map(withoutOld));
    const now = this.#text(name).match(LOG_LINES) ?? [];
    const lines = [...before, ...now.filter((line) => !cached.has(withoutOld(line)))];
    if (!this.#writeText(name, lines.join(''))) return;
    this.#repairs.files.add(name);
    if (name === `logs/${STASH}`) this.#writeText(STASH, `${lines.at(-1)?.split(' ')[1]}\n`);
  }

  /** Lists commits whose old refs are not possible any more, in the reflog of one ref. */
  #listUnnamed(unnamed: NamedCommits, formerRefs: ReadonlyMap<string, string>): void {
    if (unnamed.size === 0) return;
    const by = `Pawl <pawl@localhost> ${Math.floor(Date.now() / 1000)} +0000`;
    const lines = [...unnamed].map(([oid, name]) => {
      const former = [...formerRefs].find(([, one]) => one === oid);
      const [ref = name.replace(/^logs\//, '')] = former ?? [];
      return `${oid} ${oid} ${by}\t${encodeName(ref)} before a command\n`;
    });
    this.#writeText(`logs/${LOST}`, this.#text(`logs/${LOST}`) + lines.join(''));
    this.#writeText(LOST, `${[...unnamed.keys()].at(-1)}\n`);
    this.#repairs.lost += unnamed.size;
  }

  /** Commits that are in the copies of changed files, but not in the files. */
  #droppedHashes(refs: ReadonlySet<string>): NamedCommits {
    const dropped = new Map<string, string>();
    const named = new Set<string>();
    for (const name of this.#files.keys()) {
      const kind = fileKind(name);
      if (kind === 'index' || kind === 'other' || this.#isUnchanged(name)) continue;
      for (const oid of hashesIn(this.#copiedText(name))) dropped.set(oid, name);
      // Old versions of git do not follow the log of a deleted ref.
      if (kind === 'log' && !this.#hasOwner(name, refs)) continue;
      for (const oid of hashesIn(this.#text(name))) named.add(oid);
    }
    for (const oid of named) dropped.delete(oid);
    return dropped;
  }

  /** The lost ones of the commits; all, if git fails. */
  #lostAmong(named: NamedCommits): NamedCommits {
    if (named.size === 0) return named;
    const hashes = [...named.keys()];
    // resolves tags to commits
    const words = ['cat-file', '--batch-check=%(objectname)'];
    const answer = this.#git(
      words,
      hashes.map((oid) => `${oid}^{commit}`),
    );
    if (answer?.code !== 0) return named;
    const commits = answer.output.split('\n');
    // an old entry of a reflog may name an object that was missing before
    const commitIds = commits.filter((line) => HASH.test(line));
    const questions = ['rev-list', '--ignore-missing', '--stdin', '--not', '--all', '--reflog'];
    const walked = commitIds.length === 0 ? null : this.#git(questions, commitIds);
    const lost = new Set(walked?.code === 0 ? walked.output.split('\n') : commitIds);
    return new Map([...named].filter((_, index) => lost.has(commits[index] ?? '')));
  }

  // Files of the git folder

  #path(name: string): string {
    return path.join(this.#gitFolder, name);
  }

  #copyPath(name: string): string {
    return path.join(this.#copyTop, name);
  }

  /** The content of a regular file; null: there is none, or it is too large to be read. */
  #content(name: string): Buffer | null {
    const loaded = readRegularSync(this.#path(name), bytesMax(name), { follow: 'none' });
    return loaded.kind === 'file' ? loaded.bytes : null;
  }

  /** Texts may have any encoding, so each byte is one character, here and in `#writeText`. */
  #text(name: string): string {
    return this.#content(name)?.toString('latin1') ?? '';
  }

  #copied(name: string): Buffer | null {
    return readBytes(this.#copyPath(name), bytesMax(name));
  }

  #copiedText(name: string): string {
    return this.#copied(name)?.toString('latin1') ?? '';
  }

  /** Null: there is no answer of git, and none to later questions of this check. */
  #git(words: readonly string[], lines: readonly string[] = []): ReturnType<typeof askGit> {
    if (!this.#isGitUsable) return null;
    const options = { input: lines.join('\n'), timeoutMs: this.#gitTimeoutMs };
    const answer = askGit(this.#findGit, this.#gitFolder, words, options);
    this.#isGitUsable = answer !== null;
    return answer;
  }

  /** Restores a file, or moves it away if it did not exist before. */
  #putBack(name: string): void {
    if (!this.#files.has(name)) this.#moveAway(name);
    else if (!this.#isSame(name)) this.#restore(name);
  }

  /** Writes the copy of a file, and records the repair. */
  #restore(name: string): void {
    const from = this.#copyPath(name);
    const isDone = this.#write(name, (temporary) =>
      copyFileSync(from, temporary, constants.COPYFILE_EXCL),
    );
    if (!isDone) return;
    if (isLoose(name)) this.#repairs.objects += 1;
    else this.#repairs.files.add(name);
  }

  #writeText(name: string, text: string): boolean {
    return this.#write(name, (temporary) =>
      writeFileSync(temporary, text, { flag: 'wx', encoding: 'latin1' }),
    );
  }

  /** Writes a file by `make` and a rename. False if that failed. */
  #write(name: string, make: (temporary: string) => void): boolean {
    const place = this.#path(name);
    this.#makeFolder(path.dirname(name));
    if (isFolder(place)) this.#moveAway(name);
    // `below`: the opened folder, which stays the same even if a command replaces its path.
    const isDone = inFolder(path.dirname(place), (below) => {
      const mode = entryStatus(this.#copyPath(name))?.mode ?? 0o644;
      replaceEntry(below, path.basename(place), { ...lstatSync(this.#gitFolder), mode }, make);
      return true;
    });
    return isDone ?? false;
  }

  /** Makes a folder and those above it, in place of files and links. */
  #makeFolder(name: string): void {
    const place = this.#path(name);
    if (name === '.' || isFolder(place)) return;
    this.#makeFolder(path.dirname(name));
    this.#moveAway(name);
    inFolder(path.dirname(place), (below) => {
      mkdirSync(`${below}/${path.basename(place)}`);
      this.#giveToOwner(`${below}/${path.basename(place)}`);
    });
  }

  #moveAway(name: string): void {
    if (entryStatus(this.#path(name)) === null) return;
    let folder: string;
    // An earlier process may have moved files there.
    do {
      folder = path.join(this.#aside, String(++this.#asideCount));
    } while (existsSync(folder));
    const moved = setAside(this.#path(name), folder);
    if (moved !== null) this.#repairs.aside.push(moved);
  }

  /** Root gives files to the owner of the git folder. */
  #giveToOwner(place: string): void {
    const status = entryStatus(this.#gitFolder);
    if (process.geteuid?.() === 0 && status !== null) chownSync(place, status.uid, status.gid);
  }
}

/** Makes a hard link to a file, whose folder it opens first. Throws if that fails. */
const linkRegular = (from: string, to: string): void => {
  const folder = holdFolderSync(path.dirname(from));
  try {
    linkSync(folder.at(path.basename(from)), to);
  } finally {
    folder.close();
  }
};

// ---- The lines for the model about repairs ----

/** The restored parts of one git folder. */
class Repairs {
  objects = 0;
  /** Files, and refs by their names. */
  readonly files = new Set<string>();
  /** Commits that were added to the reflog of LOST. */
  lost = 0;
  /** Files that were moved away. */
  readonly aside: string[] = [];
}

const linesFor = (folder: string, { objects, files, lost, aside }: Repairs): readonly string[] => {
  // refs first
  const names = [...files].toSorted(
    (one, other) => Number(other.startsWith('refs/')) - Number(one.startsWith('refs/')),
  );
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
/** The ref whose reflog lists lost commits without a possible ref. */
const LOST = 'refs/pawl/lost';

/** An object's name, also called oid: a hash by SHA-1 or SHA-256. */
const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** Packs, and files that git derives from objects. */
const PACKED = /^objects\/(?:pack\/(?:.*\.pack|multi-pack-index)|info\/commit-graph.*)$/;
/** Entries of a reflog. */
const LOG_LINES = /^[0-9a-f]{40,64} [0-9a-f]{40,64} .*\n/gm;

/** Files about where the history ends, or continues in another repository. */
const SHALLOW = 'shallow';
const BORDER_FILES: ReadonlySet<string> = new Set([
  SHALLOW,
  'objects/info/alternates',
  'info/grafts',
]);
const TOP_FILES = ['HEAD', 'packed-refs', 'index', ...BORDER_FILES];
const WORKTREE_FILES = ['HEAD', 'index', 'commondir', 'gitdir'];

/** The folder of branches. With a reftable git keeps a file in its place. */
const HEADS = 'refs/heads';

/** Whether git keeps its refs in a reftable. No command can write the configuration. */
const usesReftable = (gitFolder: string): boolean =>
  /^reftable\b/.test(readSetting(gitFolder, 'extensions.refstorage') ?? '');

/** The files of a git folder that decide which commits can be reached. */
const stateFiles = (gitFolder: string): readonly string[] => [
  ...TOP_FILES,
  ...namesIn(gitFolder).filter((name) => name.startsWith('sharedindex.')),
  // a file in the place of a folder is damage
  ...filesBelow(gitFolder, 'refs').filter((name) => name !== HEADS || usesReftable(gitFolder)),
  ...filesBelow(gitFolder, 'logs'),
  ...namesIn(path.join(gitFolder, 'worktrees')).flatMap((name) => [
    ...WORKTREE_FILES.map((file) => `worktrees/${name}/${file}`),
    ...filesBelow(gitFolder, `worktrees/${name}/logs`),
    ...filesBelow(gitFolder, `worktrees/${name}/refs`),
  ]),
];

/** A loose object is in a folder named by the first two digits of its hash: `objects/3f/…`. */
const isLoose = (name: string): boolean => /^objects\/[0-9a-f]{2}\//.test(name);

/** The index of a pack; the file itself if it is no pack. */
const indexName = (name: string): string => name.replace(/\.pack$/, '.idx');

/** The hash of a loose object. */
const objectHash = (object: string): string => object.slice(8, 10) + object.slice(11);

/** Regular files below a folder, relative to `top`, without git's lock files. */
const filesBelow = (top: string, folder: string): readonly string[] =>
  entriesBelow(top, folder)
    .filter(({ entry }) => entry.isFile() && !entry.name.endsWith('.lock'))
    .map(({ place }) => place);

/** What is below a folder, but no folders. `place`: relative to `top`. */
const entriesBelow = (top: string, folder: string): readonly EntryBelow[] => {
  if (!isFolder(path.join(top, folder))) return [];
  return entriesIn(path.join(top, folder)).flatMap((entry) => {
    const place = `${folder}/${entry.name}`;
    return entry.isDirectory() ? entriesBelow(top, place) : [{ place, entry }];
  });
};

type EntryBelow = { readonly place: string; readonly entry: Dirent };

/** Pipes, sockets and devices, and links to them, in the place of files that git reads. */
const specialFiles = (gitFolder: string): readonly string[] => {
  const below = ['refs', 'logs', 'objects/info', 'objects/pack', 'worktrees']
    .flatMap((folder) => entriesBelow(gitFolder, folder))
    .filter(({ entry }) => !entry.isFile());
  return [...TOP_FILES, ...below.map(({ place }) => place)].filter((name) => {
    const status = followStatus(path.join(gitFolder, name));
    return status !== null && !status.isFile() && !status.isDirectory();
  });
};

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

/** How many bytes are read of a file in a git folder. */
const bytesMax = (name: string): number => {
  const kind = fileKind(name);
  return kind === 'index' || kind === 'other' ? CONTENT_MAX : TEXT_MAX;
};

/** The version of a file or folder: it differs after each change. */
const statusStamp = ({ ino, size, ctimeMs }: Stats): string => `${ino} ${size} ${ctimeMs}`;

/** Empty if the file was changed just now, so that a later change might not show. */
const stableStamp = (status: Stats): string =>
  Date.now() - status.ctimeMs > TICK_MS ? statusStamp(status) : '';

/** Names of refs are UTF-8 in paths, and bytes (latin1) in texts. */
const decodeName = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');
const encodeName = (name: string): string => Buffer.from(name, 'utf8').toString('latin1');

/** Whether this may be the content of a ref: a hash, or the name of another ref. */
const isRefText = (text: string): boolean =>
  HASH.test(text.trim()) || /^ref: *refs\/[^ \n\r\t~^:?*[\\]+\s*$/.test(text);

/** Every line is empty, a comment, or a hash, which a name may follow. */
const isPackedRefsText = (text: string): boolean =>
  !/(?:^|\n)(?!(?:#.*|\^?[0-9a-f]{40,64}(?: [^ \n]+)?)?(?:\n|$))/.test(text);

/** The refs that packed-refs names. */
const packedRefs = (text: string): ReadonlyMap<string, string> =>
  new Map(
    [...text.matchAll(/^([0-9a-f]{40,64}) ([^ \n]+)$/gm)].map(
      ([, oid = '', name = '']) => [decodeName(name), oid] as const,
    ),
  );

/** The hashes that a ref, a reflog or packed-refs names. A hash of zeros: there was no commit. */
const hashesIn = (text: string): readonly string[] =>
  text.match(/(?<=^|^[0-9a-f]+ )(?!0+\s)[0-9a-f]{40,64}(?=\s|$)/gm) ?? [];

/**
 * Whether git can read this index: signature, version, and a checksum that is right, or zeros (a
 * setting of git).
 */
const isReadableIndex = (bytes: Buffer): boolean => {
  if (bytes.length < 32 || bytes.toString('latin1', 0, 4) !== 'DIRC') return false;
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return false;
  return ['sha1', 'sha256'].some((algorithm) => {
    const length = algorithm === 'sha1' ? 20 : 32;
    const sum = bytes.subarray(-length);
    const hash = createHash(algorithm).update(bytes.subarray(0, -length));
    return sum.every((byte) => byte === 0) || hash.digest().equals(sum);
  });
};
