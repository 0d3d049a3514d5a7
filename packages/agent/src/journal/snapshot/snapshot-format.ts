import { crc32 } from 'node:zlib';
import { VERSION } from '../../platform/base/version.js';
import { parse } from '../format/line-codec.js';
import { NEWLINE } from '../format/read-lines.js';

/**
 * The file of a session's snapshots: states that were folded before, so that a session opens without folding its whole
 * journal again.
 *
 * 1. Each line is a snapshot. It holds the messages that were closed since the line before, and all else of the state.
 * 2. Long texts are not stored twice: a snapshot refers to the bytes of the journal that hold them.
 * 3. Each line ends in a checksum that is seeded with that of the line before, as lines of journals do. It is the CRC-32 of
 *    zlib, which costs less than a journal's.
 * 4. A snapshot counts only for the journal, the machine and the version of Pawl that it names. It is never needed.
 */
export type SnapshotLine = {
  readonly version: 1;
  /** Version of Pawl, and fingerprint and version of the machine. */
  readonly pawl: string;
  readonly machine: string;
  readonly machineVersion: number;
  readonly session: string;
  /** The last entry that the state contains, the checksum of its line, and the state check that it recorded. */
  readonly seq: number;
  readonly line: number;
  readonly check: string;
  /** Size of the journal up to that entry, and the checksum of all its bytes. */
  readonly size: number;
  readonly sum: number;
  /** Closed messages in the lines before (0: those lines are not needed), and the chain of hashes of all closed messages (see hash-state.ts). */
  readonly from: number;
  readonly chain: string;
  /** Offset in the journal of the texts of later messages. */
  readonly next: number;
  /** A SnapshotBody with references in place of long texts (see text-references.ts). */
  readonly body: unknown;
};

/** What a snapshot adds to those before it. */
export type SnapshotBody = {
  readonly messages: readonly unknown[];
  readonly rest: unknown;
  readonly past: {
    readonly hashes: readonly (readonly [string, { readonly before: string; readonly after?: string }])[];
    readonly batchId: string | null;
    readonly seen: readonly (readonly [string, string])[];
  };
};

/** The journal and the program that a snapshot must be of. */
export type SnapshotOwner = {
  readonly session: string;
  readonly machine: string;
  readonly machineVersion: number;
};

export const snapshotPath = (journal: string): string => journal.replace(/\.jsonl$/, '.snapshot');

export type SnapshotContent = Omit<SnapshotLine, 'version' | 'pawl' | keyof SnapshotOwner>;

const trailerOf = (crc: number): string => `,"crc":"${crc.toString(16).padStart(8, '0')}"}`;
const TRAILER_BYTES = trailerOf(0).length;

const seal = (json: string, seed: number): { readonly bytes: Buffer; readonly crc: number } => {
  const text = json.slice(0, -1);
  const crc = crc32(text, seed);
  return { bytes: Buffer.from(`${text}${trailerOf(crc)}\n`), crc };
};

/** The checksum of a line if its trailer holds it; null otherwise. */
const verify = (line: Buffer, seed: number): number | null => {
  const at = line.length - TRAILER_BYTES;
  if (at <= 0) return null;
  const crc = crc32(line.subarray(0, at), seed);
  return line.toString('latin1', at) === trailerOf(crc) ? crc : null;
};

export const encodeSnapshot = (
  { session, machine, machineVersion }: SnapshotOwner,
  content: SnapshotContent,
  seed: number,
): { readonly bytes: Buffer; readonly crc: number } =>
  seal(JSON.stringify({ version: 1, pawl: VERSION, machine, machineVersion, session, ...content }), seed);

/** The good snapshots of a file from its beginning, with the end and the checksum of the last one. */
export type DecodedSnapshots = {
  readonly lines: readonly SnapshotLine[];
  readonly size: number;
  readonly crc: number;
};

const isOf = (line: SnapshotLine, { session, machine, machineVersion }: SnapshotOwner): boolean =>
  line.version === 1 &&
  line.pawl === VERSION &&
  line.session === session &&
  line.machine === machine &&
  line.machineVersion === machineVersion;

/** Decodes the snapshots up to the first bad line, or the first one of another owner. */
export const decodeSnapshots = (bytes: Buffer, owner: SnapshotOwner): DecodedSnapshots => {
  const lines: SnapshotLine[] = [];
  let [size, crc] = [0, 0];
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, size)) {
    const text = bytes.subarray(size, end);
    const sum = verify(text, crc);
    if (sum === null) break;
    // Safe: the checksum proves that encodeSnapshot wrote these bytes.
    const line = parse(text.toString()) as SnapshotLine;
    if (!isOf(line, owner)) break;
    lines.push(line);
    [size, crc] = [end + 1, sum];
  }
  return { lines, size, crc };
};
