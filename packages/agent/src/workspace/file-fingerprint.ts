import { type BigIntStats, statSync } from 'node:fs';

/** Detects changes of files by their status. */

/** Longer than the time resolution of any file system. */
const STILL_MS = 2_000;

/** The status of a path; equal texts mean no change. `changedAt`: in ms since 1970. */
export type Fingerprint = { readonly text: string; readonly changedAt: number };

const ABSENT: Fingerprint = { text: 'absent', changedAt: 0 }; // its creation is a change

const fingerprint = (place: string, judge: (entry: BigIntStats) => Fingerprint): Fingerprint => {
  try {
    const entry = statSync(place, { bigint: true, throwIfNoEntry: false });
    return entry === undefined ? ABSENT : judge(entry);
  } catch (error) {
    // Its folder is a file. Node 24 says so without an error.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return ABSENT;
    return { text: 'unknown', changedAt: Number.POSITIVE_INFINITY }; // never settled, so never cached
  }
};

const whole = ({ dev, ino, mode, uid, size, mtimeNs, ctimeNs }: BigIntStats): Fingerprint => ({
  text: [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(' '),
  changedAt: Number(ctimeNs / 1_000_000n),
});

/** Fingerprint of a file. For a folder only identity and owner count, not its entries. */
export const fingerprintOf = (place: string): Fingerprint =>
  fingerprint(place, (entry) => {
    const { dev, ino, mode, uid } = entry;
    return entry.isDirectory() ? { text: [dev, ino, mode, uid].join(' '), changedAt: 0 } : whole(entry);
  });

/** Like `fingerprintOf`, but for a folder its list of entries counts too. */
export const listingFingerprintOf = (place: string): Fingerprint => fingerprint(place, whole);

export const joinFingerprints = (fingerprints: readonly Fingerprint[]): Fingerprint => ({
  text: fingerprints.map(({ text }) => text).join('\n'),
  changedAt: Math.max(0, ...fingerprints.map(({ changedAt }) => changedAt)),
});

/**
 * Whether content read from `at` on may be cached with this fingerprint. The file must have been unchanged for a while
 * before, so that no change during the read is missed. `at`: the file system's time, in ms since 1970.
 */
export const isSettled = ({ changedAt }: Fingerprint, at: number): boolean => changedAt < at - STILL_MS;
