/**
 * A claim: a folder in the git folder that proves which locks of a repository are ours, during a
 * commit. Locks are git's: a file `NAME.lock` beside a file that is about to change.
 *
 * Each lock has a second hard link in the folder. A lock with the same inode is ours, whatever
 * happened since: as long as our link exists, the inode can't belong to another file. The folder
 * says who makes which commit, so that another session can tell whether that process is dead. It is
 * removed when the commit is done or abandoned. A killed program leaves it behind, with its locks.
 */

import { hash, randomUUID } from 'node:crypto';
import {
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { systemClock } from '../platform/clock.js';
import { entryStatus, errorCode, namesIn, readTextOrEmptySync } from '../platform/files.js';
import { identifyProcess, type ProcessIdentity } from '../platform/start-program.js';

/**
 * The branch `ref` (or HEAD, if it is detached) is to move from `before` (null: no commit yet) to
 * `commit`.
 */
export type CommitIntent = {
  readonly ref: string;
  readonly before: string | null;
  readonly commit: string;
};

type ClaimRecord = { readonly intent: CommitIntent; readonly owner: ProcessIdentity };

const PREFIX = 'pawl-commit-';
const NAME = /^pawl-commit-[0-9a-f-]{36}$/;
const RECORD = 'intent.json';
/** Says which process of git moves the branch. */
const MOVER = 'update-ref.json';
const BYTES_MAX = 16 * 1024;
/** A process that lives has written the record of its claim long before this age. */
const UNRECORDED_MS = 60_000;

export const newClaimName = (): string => `${PREFIX}${randomUUID()}`;

export class CommitClaim {
  readonly folder: string;
  readonly #gitFolder: string;

  /** `name`: from `newClaimName`. A resumed session has it from the journal. */
  constructor(gitFolder: string, name: string) {
    this.#gitFolder = gitFolder;
    // another name could lead out of the git folder
    this.folder = path.join(gitFolder, NAME.test(name) ? name : `${PREFIX}unknown`);
  }

  /** Makes the folder. Called before the first lock is taken. */
  make(intent: CommitIntent): void {
    mkdirSync(this.folder);
    const record: ClaimRecord = { intent, owner: identifyProcess() };
    writeFileSync(this.#at(RECORD), JSON.stringify(record));
  }

  /** The record; null if there is none. */
  read(): ClaimRecord | null {
    const value = readJson(this.#at(RECORD));
    return isRecord(value) ? value : null;
  }

  /** Takes a lock of git, which is then empty; false if another process holds it. */
  take(lock: string): boolean {
    const link = this.#linkPath(lock);
    try {
      closeSync(openSync(link, 'wx'));
      linkSync(link, lock);
      return true;
    } catch (error) {
      rmSync(link, { force: true });
      if (errorCode(error) === 'EEXIST') return false;
      if (!NO_LINKS.has(errorCode(error))) throw error;
      return takeWithoutLinks(lock);
    }
  }

  /** Notes a lock that git took for us and holds now. */
  note(lock: string): void {
    try {
      linkSync(lock, this.#linkPath(lock));
    } catch {
      // git needs no such lock, or there are no hard links; it can then be recognized by its
      // content only
    }
  }

  /** Removes a lock if it is ours. */
  release(lock: string): void {
    const inode = readInode(this.#linkPath(lock));
    if (inode !== null && inode === readInode(lock)) unlinkSync(lock);
  }

  /** Records the process that moves the branch. */
  noteMover(pid: number): void {
    writeFileSync(this.#at(MOVER), JSON.stringify(identifyProcess(pid)));
  }

  /** The process that moves the branch, or moved it; null: none was started. */
  mover(): ProcessIdentity | null {
    const value = readJson(this.#at(MOVER));
    return isIdentity(value) ? value : null;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /**
   * Removes a claim without a record whose process was killed before it took a lock. A claim that
   * holds links to locks, or was just made, stays.
   */
  removeUnrecorded(): void {
    const status = entryStatus(this.folder);
    if (status === null) return; // its commit has ended just now
    const hasLinks = namesIn(this.folder).some((name) => name !== RECORD);
    if (!hasLinks && systemClock.now() - status.mtimeMs > UNRECORDED_MS) this.remove();
  }

  #at(name: string): string {
    return path.join(this.folder, name);
  }

  #linkPath(lock: string): string {
    return this.#at(hash('sha256', path.relative(this.#gitFolder, lock)).slice(0, 16));
  }
}

/** The claims in a git folder: of commits in progress, or interrupted ones. */
export const listClaims = (gitFolder: string): readonly CommitClaim[] =>
  readdirSync(gitFolder)
    .filter((name) => NAME.test(name))
    .map((name) => new CommitClaim(gitFolder, name));

/** File systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK', 'EXDEV']);

const readInode = (file: string): string | null => {
  try {
    const { dev, ino } = lstatSync(file, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return null; // it does not exist
  }
};

const readJson = (file: string): unknown => {
  try {
    return JSON.parse(readTextOrEmptySync(file, BYTES_MAX));
  } catch {
    return null; // absent, or the process was killed while it wrote
  }
};

const HASH = /^([0-9a-f]{64}|[0-9a-f]{40})$/;
const REF = /^(HEAD|refs\/heads\/.+)$/;

/**
 * Checks each field, since whoever writes to the git folder can write such a file, and its words
 * become arguments of git.
 */
const isRecord = (value: unknown): value is ClaimRecord => {
  // each field is checked below
  const { intent, owner } = (value ?? {}) as { intent?: Partial<CommitIntent>; owner?: unknown };
  return (
    isIdentity(owner) &&
    REF.test(String(intent?.ref)) &&
    HASH.test(String(intent?.commit)) &&
    (intent?.before === null || HASH.test(String(intent?.before)))
  );
};

const isIdentity = (value: unknown): value is ProcessIdentity =>
  typeof value === 'object' && value !== null && 'pid' in value && 'started' in value;

/** Takes a lock on a file system without hard links. Nothing proves later that it is ours. */
const takeWithoutLinks = (lock: string): boolean => {
  try {
    closeSync(openSync(lock, 'wx'));
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
};
