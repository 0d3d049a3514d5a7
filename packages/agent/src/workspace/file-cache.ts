/** Values read from files, cached until one of the files changes, and fingerprints of files. */

import { type BigIntStats, statSync } from 'node:fs';
import { errorCode } from '../platform/files.js';

/** The status of a path; equal texts mean no change. `changedAt`: in ms since 1970. */
type Fingerprint = { readonly text: string; readonly changedAt: number };

type KnownValue<T> = {
  readonly paths: readonly string[];
  readonly fingerprint: Fingerprint;
  readonly value: T;
};

/**
 * Two changes within the time resolution of a file system look like one. This is longer than any
 * resolution.
 */
const STILL_MS = 2_000;

/**
 * Values read from files, each cached until one of its files changes. A value is cached only if its
 * last file change was STILL_MS before the reading: a later change then shows in the file's time.
 */
export class FileCache<T> {
  readonly #now: () => number;
  readonly #fingerprintPath: (path: string) => Fingerprint;
  readonly #known = new Map<string, KnownValue<T>>();

  /**
   * `now`: the file system's time, in ms since 1970. `listings`: the list of entries of a folder
   * counts too.
   */
  constructor(now: () => number, listings?: 'listings') {
    this.#now = now;
    this.#fingerprintPath = listings === undefined ? takeFingerprint : takeListingFingerprint;
  }

  /** The value, if none of its files has changed. */
  get(key: string): T | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    if (this.#fingerprint(known.paths).text === known.fingerprint.text) return known.value;
    this.#known.delete(key);
    return undefined;
  }

  /**
   * For a value whose files are known only once it is read. They are looked at after the reading,
   * so the removal of one in between is missed. `readAt`: the time before the reading.
   */
  set(key: string, value: T, paths: readonly string[], readAt: number): void {
    this.#setIfStill(key, { paths, fingerprint: this.#fingerprint(paths), value }, readAt);
  }

  /** The value of one file, loaded again after a change. */
  read(file: string, load: (file: string) => T): T {
    const known = this.get(file);
    if (known !== undefined) return known;
    const readAt = this.#now();
    const fingerprint = this.#fingerprint([file]); // before the reading, so no removal is missed
    const value = load(file);
    this.#setIfStill(file, { paths: [file], fingerprint, value }, readAt);
    return value;
  }

  #setIfStill(key: string, known: KnownValue<T>, readAt: number): void {
    if (known.fingerprint.changedAt < readAt - STILL_MS) this.#known.set(key, known);
  }

  #fingerprint(paths: readonly string[]): Fingerprint {
    const all = paths.map(this.#fingerprintPath);
    return {
      text: all.map(({ text }) => text).join('\n'),
      changedAt: Math.max(0, ...all.map(({ changedAt }) => changedAt)),
    };
  }
}

/** Fingerprint of a file. For a folder only identity and owner count, not its entries. */
export const takeFingerprint = (path: string): Fingerprint =>
  judgeStatus(path, (entry) => {
    const { dev, ino, mode, uid } = entry;
    return entry.isDirectory()
      ? { text: [dev, ino, mode, uid].join(' '), changedAt: 0 }
      : fullFingerprint(entry);
  });

/** Like `takeFingerprint`, but for a folder its list of entries counts too. */
const takeListingFingerprint = (path: string): Fingerprint => judgeStatus(path, fullFingerprint);

const ABSENT: Fingerprint = { text: 'absent', changedAt: 0 }; // its creation is a change

const judgeStatus = (path: string, judge: (entry: BigIntStats) => Fingerprint): Fingerprint => {
  try {
    const entry = statSync(path, { bigint: true, throwIfNoEntry: false });
    return entry === undefined ? ABSENT : judge(entry);
  } catch (error) {
    // Its folder is a file. Node 24 says so without an error.
    if (errorCode(error) === 'ENOTDIR') return ABSENT;
    return { text: 'unknown', changedAt: Number.POSITIVE_INFINITY }; // so it is never cached
  }
};

const fullFingerprint = ({
  dev,
  ino,
  mode,
  uid,
  size,
  mtimeNs,
  ctimeNs,
}: BigIntStats): Fingerprint => ({
  text: [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(' '),
  changedAt: Number(ctimeNs / 1_000_000n),
});
