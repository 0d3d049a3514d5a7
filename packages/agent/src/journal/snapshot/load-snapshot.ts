import type { FileHandle } from 'node:fs/promises';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { PastFiles } from '../../machine/file-hashes-from-events.js';
import type { Message } from '../../machine/message.js';
import { readRegular } from '../../platform/files/regular-file.js';
import type { Header } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import { decodeHeader, parse } from '../format/line-codec.js';
import { type JournaledMachine, kindOf, type StateParts } from '../journaled-machine.js';
import { continueFold, type Fold } from '../read/fold.js';
import type { ScanPoint } from '../read/scan.js';
import { JournalBytes, sumOf } from './journal-bytes.js';
import { decodeSnapshots, type SnapshotBody, type SnapshotLine, snapshotPath } from './snapshot-format.js';
import { resolveReferences } from './text-references.js';

/** The last good snapshot of a file, to which the next one is appended. */
export type WrittenSnapshots = Pick<SnapshotLine, 'seq' | 'size' | 'sum' | 'next'> & {
  /** Size of the file of snapshots up to it, and its checksum. */
  readonly fileSize: number;
  readonly crc: number;
  readonly messages: AppendList<Message>;
  readonly seen: ReadonlyMap<string, string>;
};

export type LoadedSnapshot<M extends MachineTypes> = {
  /** A state, and where the journal goes on after it; null if no snapshot leaves enough to fold. */
  readonly start: {
    readonly point: ScanPoint<M>;
    readonly fold: Fold<M>;
    readonly past: PastFiles;
  } | null;
  /** `messages` are known once the fold has reached its `seq`. */
  readonly written: Omit<WrittenSnapshots, 'messages'>;
};

export type WantedSnapshot<M extends MachineTypes> = {
  readonly handle: FileHandle;
  /** The journal. */
  readonly path: string;
  readonly sessionId: string;
  readonly machine: JournaledMachine<M>;
  /** So many entries are to be folded at least. */
  readonly foldLast: number;
};

/** Larger journals are folded instead. */
export const JOURNAL_BYTES_MAX = 512 * 1024 * 1024;
const FILE_BYTES_MAX = JOURNAL_BYTES_MAX;

/** The header, if the journal is one of this session and machine. */
const headerIn = <M extends MachineTypes>(
  journal: JournalBytes,
  { sessionId, machine }: WantedSnapshot<M>,
): Header<M> | null => {
  const decoded = decodeHeader<M>(journal.firstLine());
  if (decoded.kind !== 'header') return null;
  const { header } = decoded;
  return header.sessionId === sessionId && kindOf(header) === machine.kind ? header : null;
};

/** Whether the journal's line that ends at the snapshot records the same seq and state check. */
const isRecorded = (journal: JournalBytes, { seq, check, size }: SnapshotLine): boolean => {
  const line = parse(journal.lineBefore(size).toString());
  if (typeof line !== 'object' || line === null) return false;
  return Reflect.get(line, 'seq') === seq && Reflect.get(line, 'check') === check;
};

/** The last snapshot that leaves enough to fold. */
const choose = (lines: readonly SnapshotLine[], foldLast: number): number => {
  const last = lines.at(-1)?.seq ?? 0;
  return lines.findLastIndex(({ seq }) => foldLast === 0 || seq <= last - foldLast);
};

const readBodies = (
  lines: readonly SnapshotLine[],
  journal: JournalBytes,
): { readonly messages: Message[]; readonly rest: unknown; readonly past: PastFiles } | null => {
  const messages: Message[] = [];
  const seen = new Map<string, string>();
  let body: SnapshotBody | undefined;
  const first = lines.findLastIndex(({ from }) => from === 0);
  for (const line of lines.slice(first)) {
    if (line.from !== messages.length) return null;
    // Safe: the checksums of the line and of the journal's bytes prove that this is what was written; its lock is held.
    body = resolveReferences(line.body, journal) as SnapshotBody;
    for (const message of body.messages) messages.push(message as Message); // safe for the same reason
    for (const [path, sha256] of body.past.seen) seen.set(path, sha256);
  }
  if (body === undefined) return null;
  const { hashes, batchId } = body.past;
  return { messages, rest: body.rest, past: { lastAt: null, hashes: new Map(hashes), batchId, seen } };
};

const load = async <M extends MachineTypes>(
  wanted: WantedSnapshot<M>,
  parts: StateParts<M>,
): Promise<LoadedSnapshot<M> | null> => {
  const { handle, path, machine, sessionId, foldLast } = wanted;
  const file = await readRegular(snapshotPath(path), FILE_BYTES_MAX);
  if (file.kind !== 'file') return null;
  const { lines, ...end } = decodeSnapshots(file.bytes, {
    session: sessionId,
    machine: machine.fingerprint,
    machineVersion: machine.version,
  });
  const index = choose(lines, foldLast);
  const [chosen, last] = [lines[index], lines.at(-1)];
  if (last === undefined || last.size > JOURNAL_BYTES_MAX) return null;
  if ((await sumOf(handle, last.size)) !== last.sum) return null;
  const journal = new JournalBytes(handle, last.size);
  const header = headerIn(journal, wanted);
  if (header === null) return null;
  const { seq, size, sum, next } = last;
  const written = { seq, size, sum, next, fileSize: end.size, crc: end.crc, seen: new Map() };
  // The next snapshot names all files again.
  if (chosen === undefined) return { start: null, written };
  if (!isRecorded(journal, chosen)) return null;
  const bodies = readBodies(lines.slice(0, index + 1), journal);
  if (bodies === null) return null;
  const messages = AppendList.from(bodies.messages);
  const state = parts.join(bodies.rest, messages);
  const fold = continueFold(machine, { state, seq: chosen.seq, path }, { messages, chain: chosen.chain });
  if (fold.check(state) !== chosen.check) return null;
  return {
    start: {
      point: { header, seq: chosen.seq, crc: chosen.line, size: chosen.size, sum: chosen.sum },
      fold,
      past: bodies.past,
    },
    written: chosen === last ? { ...written, seen: bodies.past.seen } : written,
  };
};

/**
 * Loads the state of a session from its snapshots. Null if there is none that fits the journal exactly: then the journal
 * is folded.
 */
export const loadSnapshot = async <M extends MachineTypes>(
  wanted: WantedSnapshot<M>,
): Promise<LoadedSnapshot<M> | null> => {
  const { snapshots } = wanted.machine;
  if (snapshots === undefined) return null;
  try {
    return await load(wanted, snapshots);
  } catch {
    return null; // nothing is lost: the journal holds everything
  }
};
