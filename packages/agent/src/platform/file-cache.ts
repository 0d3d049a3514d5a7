/** Values read from files, cached until a file changes. */

import { type BigIntStats, statSync } from 'node:fs';
import { errorCode } from './files.js';

/** The status of a path; equal texts mean no change. `changedAt`: in ms since 1970. */
type Fingerprint = { readonly text: string; readonly changedAt: number };

/** Longer than the time resolution of any file system, within which two changes look like one. */
const STILL_MS = 2_000;

/**
 * Values read from files, each cached until one of its files changes. A value is cached only if its
 * last file change was STILL_MS before the reading: a later change then shows in the file's time.
 */
export class FileCache<T> {
  readonly #now: () => number;
  readonly #fingerprintPath: (place: string) => Fingerprint;
  readonly #known = new Map<string, { places: readonly string[]; fingerprint: string; value: T }>();

  /**
   * `now`: the file system's time, in ms since 1970. `listings`: the list of entries of a folder
   * counts too.
   */
  constructor(now: () => number = Date.now, listings?: 'listings') {
    this.#now = now;
    this.#fingerprintPath = listings === undefined ? takeFingerprint : takeListingFingerprint;
  }

  /** The value, if none of its files has changed. */
  get(key: string): T | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    if (this.#fingerprint(known.places).text === known.fingerprint) return known.value;
    this.#known.delete(key);
    return undefined;
  }

  /**
   * For a value whose files are known only once it is read. A file that was removed in between
   * counts as absent. `readAt`: the time before the reading.
   */
  set(key: string, value: T, places: readonly string[], readAt: number): void {
    this.#setIfStill(key, value, { places, readAt, ...this.#fingerprint(places) });
  }

  #setIfStill(
    key: string,
    value: T,
    {
      places,
      readAt,
      text,
      changedAt,
    }: Fingerprint & { places: readonly string[]; readAt: number },
  ): void {
    if (changedAt < readAt - STILL_MS) this.#known.set(key, { places, fingerprint: text, value });
  }

  /** The value of one file, loaded again after a change. */
  read(file: string, load: (file: string) => T): T {
    const known = this.get(file);
    if (known !== undefined) return known;
    const readAt = this.#now();
    // Taken before the reading. Taken after it, a file that was removed in between would count as
    // absent, and the old value would stay.
    const before = this.#fingerprint([file]);
    const value = load(file);
    this.#setIfStill(file, value, { places: [file], readAt, ...before });
    return value;
  }

  #fingerprint(places: readonly string[]): Fingerprint {
    const all = places.map(this.#fingerprintPath);
    return {
      text: all.map(({ text }) => text).join('\n'),
      changedAt: Math.max(0, ...all.map(({ changedAt }) => changedAt)),
    };
  }
}

/** Fingerprint of a file. For a folder only identity and owner count, not its entries. */
export const takeFingerprint = (place: string): Fingerprint =>
  fingerprint(place, (entry) => {
    const { dev, ino, mode, uid } = entry;
    return entry.isDirectory()
      ? { text: [dev, ino, mode, uid].join(' '), changedAt: 0 }
      : fullFingerprint(entry);
  });

/** Like `takeFingerprint`, but for a folder its list of entries counts too. */
const takeListingFingerprint = (place: string): Fingerprint => fingerprint(place, fullFingerprint);

const ABSENT: Fingerprint = { text: 'absent', changedAt: 0 }; // its creation is a change

const fingerprint = (place: string, judge: (entry: BigIntStats) => Fingerprint): Fingerprint => {
  try {
    const entry = statSync(place, { bigint: true, throwIfNoEntry: false });
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
