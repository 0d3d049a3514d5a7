/**
 * Exports a session to one file, imports such a file, and verifies journals and exports.
 *
 * A blob is a long text that is stored once, by its hash. The mark is a small file beside a journal
 * that names its last acknowledged entry.
 *
 * From top to bottom: `exportSession`; `importSession`, which verifies everything before it writes
 * anything; `verifyStored`; the scan of a journal for its first fault; and the format of the
 * exported file.
 */

import { existsSync } from 'node:fs';
import { link, lstat, open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { ChangeSummary, On } from '../machine/event.js';
import { errorCode, hashBytes, withRegular } from '../platform/files.js';
import type { AgentTypes, Header, MachineTypes } from '../ports/journal.js';
import {
  type ByteSource,
  bufferSource,
  isRecord,
  parse,
  type Recorded,
  readLines,
  splitFirst,
} from './codec.js';
import { removeLeftovers } from './file-store.js';
import { blobDamaged, cannotRead, cannotWrite, JournalError } from './journal-error.js';
import { agentMachine, refuseNewerAgent } from './journaled-agent-machine.js';
import { acquireLock } from './lock.js';
import { checkHeader, checkRecords, JournalScan } from './reader.js';
import { beginFold, foldOn, machineKind } from './replay.js';
import {
  blobPath,
  FILE_MODE,
  fileBlobs,
  importPath,
  isSessionId,
  journalPath,
  lockPath,
  type Mark,
  makeFolder,
  readMark,
  sessionsFolder,
  syncFolder,
} from './state-folder.js';

/** Checkpoints in an export: their manifests, and the contents of files. */
export type CarriedFiles = {
  /** The oldest first. */
  readonly checkpoints: readonly Buffer[];
  readonly contents: readonly Buffer[];
};

type Exported = { readonly entries: number; readonly blobs: number; readonly bytes: number };

/**
 * Writes a session with its blobs to one new file. A journal that another process is writing to is
 * exported up to its last whole line. `files` null: the export has no checkpoints.
 */
export const exportSession = async (
  folder: string,
  sessionId: string,
  target: string,
  files: CarriedFiles | null = null,
): Promise<Exported> => {
  const { journal, entries } = await readIntact(journalPath(folder, sessionId));
  const blobs: NamedBlob[] = [];
  for await (const blob of namedBlobs(folder, journal)) {
    if (blob.kind === 'changed') throw blobDamaged(blob.path);
    blobs.push(blob);
  }
  const describePart = (bytes: Buffer) => ({ bytes: bytes.length, sha256: hashBytes(bytes) });
  const { checkpoints, contents } = files ?? NO_FILES;
  const manifest: Manifest = {
    pawlExport: files === null ? 1 : VERSION,
    sessionId,
    journal: describePart(journal),
    blobs: blobs.map(({ bytes }) => describePart(bytes)),
    ...(files === null
      ? {}
      : { checkpoints: checkpoints.map(describePart), contents: contents.map(describePart) }),
  };
  const head = Buffer.from(`${JSON.stringify(manifest)}\n`);
  const parts = [head, journal, ...blobs.map(({ bytes }) => bytes), ...checkpoints, ...contents];
  await writeNew(target, parts);
  return { entries, blobs: blobs.length, bytes: parts.reduce((sum, part) => sum + part.length, 0) };
};

/** The intact lines of a journal; throws if it is damaged before its end, or of a newer version. */
const readIntact = async (
  path: string,
): Promise<{ readonly journal: Buffer; readonly entries: number }> => {
  const mark = await readMark(path); // before the size: a writer may be at work
  return withRegular(path, async (file, status) => {
    const { seq, size, fault, isTorn } = await scanFile(
      file,
      path,
      status.size,
      mark,
      // a newer journal would make an export that can't be imported
      (header, records) => refuseNewerAgent(path, header, records),
    );
    if (fault !== null && !isTorn)
      throw new JournalError(
        'damaged',
        path,
        `The journal ${path} is damaged at line ${fault.line}: ${fault.why}. Nothing was ` +
          'exported.' +
          (fault.seq === 0
            ? ''
            : ` Export a fork of its good entries: pawl fork ID --at ${fault.seq}`),
        { line: fault.line, seq: fault.seq },
      );
    const journal = Buffer.alloc(size);
    const { bytesRead } = await file.read(journal, 0, size, 0);
    if (bytesRead < size) throw new Error('it was cut meanwhile');
    return { journal, entries: seq };
  }).catch((error: unknown) => {
    throw cannotRead(path, error);
  });
};

/** The advice in errors of this file. */
const AGAIN = 'try again';

const fileThere = (path: string): JournalError =>
  new JournalError(
    'cannotWrite',
    path,
    `${path} is there already and stays as it is. Name another file.`,
  );

/** Writes all parts to a new file; removes it if that fails. */
const writeNew = async (target: string, parts: readonly Buffer[]): Promise<void> => {
  const handle = await open(target, 'wx', FILE_MODE).catch((error: unknown) => {
    throw errorCode(error) === 'EEXIST' ? fileThere(target) : cannotWrite(target, error, AGAIN);
  });
  try {
    for (const part of parts) await handle.appendFile(part);
    await handle.sync();
  } catch (error) {
    await rm(target, { force: true });
    throw cannotWrite(target, error, AGAIN);
  } finally {
    await handle.close();
  }
};

type Imported = {
  readonly sessionId: string;
  readonly entries: number;
  readonly blobs: number;
  /**
   * Blobs of the header that are neither in the file nor in the state folder: the session can be
   * read, but not continued.
   */
  readonly missing: readonly string[];
  /** The session's workspace: real absolute path on the machine of the export. */
  readonly workspace: string;
  readonly checkpoints: number;
};

/** A checkpoint as an entry of the journal describes it. */
export type CheckpointClaim = {
  readonly checkpoint: string;
  readonly by: On<'CheckpointTaken'>['by'] | 'rewind';
  readonly changes: ChangeSummary;
};

/**
 * Stores the checkpoints of an import, before the session. Returns why that fails; null: it worked.
 */
type StoreFiles = (
  header: Header<MachineTypes>,
  files: CarriedFiles,
  claims: readonly CheckpointClaim[],
) => Promise<string | null>;

/**
 * Stores a session from an exported file, or from a journal. Verifies everything first, replaces
 * nothing, and performs nothing. An existing session, even an unreadable one, stays as it is.
 * `storeFiles` gets the checkpoints of an exported file; without it they are not imported.
 */
export const importSession = async (
  folder: string,
  source: string,
  storeFiles: StoreFiles | null = null,
): Promise<Imported> => {
  const content = splitExport(source, await readSource(source));
  const { header, entries, claims } = await verifyContent(source, content);
  const { sessionId, workspace } = header;
  const { checkpoints } = content.files;
  const path = journalPath(folder, sessionId);
  const store = fileBlobs(folder);
  try {
    await makeFolder(sessionsFolder(folder));
    await removeLeftovers(folder); // perhaps of a deleted session with this id
    await refuseExisting(path, sessionId);
    await placeSession(folder, sessionId, content, async () => {
      if (storeFiles === null || checkpoints.length === 0) return;
      const why = await storeFiles(header, content.files, claims);
      if (why !== null) throw cannotImport(source, why);
    });
  } catch (error) {
    throw cannotWrite(path, error, AGAIN);
  }
  const { length } = content.blobs;
  return {
    sessionId,
    entries,
    blobs: length,
    missing: await findMissing(header, (sha256) => store.get(sha256)),
    workspace,
    checkpoints: checkpoints.length,
  };
};

const NO_FILES: CarriedFiles = { checkpoints: [], contents: [] };

const cannotImport = (path: string, why: string): JournalError =>
  new JournalError('damaged', path, `${path} can't be imported: ${why}. Nothing was changed.`);

/** The content of a file: an export, or a journal alone. */
type Content = {
  readonly journal: Buffer;
  readonly blobs: readonly Buffer[];
  readonly files: CarriedFiles;
  /** As the export names it; null for a journal alone. */
  readonly sessionId: string | null;
};

/** Splits an exported file into its parts, and verifies each; a journal alone is one part. */
const splitExport = (path: string, bytes: Buffer): Content => {
  const end = bytes.indexOf(0x0a);
  const headBytes = end === -1 ? bytes.length : end;
  if (headBytes > HEAD_BYTES_MAX)
    throw cannotImport(path, 'its first line is too long: an import takes at most 32 MB');
  const read = readManifest(bytes.toString('utf8', 0, headBytes));
  switch (read.kind) {
    case 'none':
      return { journal: bytes, blobs: [], files: NO_FILES, sessionId: null };
    case 'bad':
      throw cannotImport(path, 'its first line is damaged');
    case 'newer':
      throw new JournalError(
        'newerVersion',
        path,
        `${path} has export version ${read.version}, which this Pawl can't read. Update Pawl ` +
          'to import it.',
      );
    case 'manifest': {
      const { sessionId, journal, blobs, checkpoints = [], contents = [] } = read.manifest;
      const parts = blobs.length + checkpoints.length + contents.length;
      if (parts > PARTS_MAX)
        throw cannotImport(path, `it has ${parts} parts, and an import takes at most ${PARTS_MAX}`);
      let start = end + 1;
      const next = ({ bytes: length, sha256 }: Part): Buffer => {
        const part = bytes.subarray(start, start + length);
        if (part.length !== length || hashBytes(part) !== sha256)
          throw cannotImport(path, `the part at byte ${start} was cut or changed`);
        start += length;
        return part;
      };
      const content = {
        sessionId,
        journal: next(journal),
        blobs: blobs.map(next),
        files: { checkpoints: checkpoints.map(next), contents: contents.map(next) },
      };
      if (start !== bytes.length) throw cannotImport(path, `something was added at byte ${start}`);
      return content;
    }
    default:
      return read satisfies never;
  }
};

const alreadyThere = (path: string, sessionId: string): JournalError =>
  new JournalError(
    'exists',
    path,
    `The session ${sessionId} is here already (${path}), and an import replaces nothing. ` +
      'Move that file away first, or ' +
      `look at it: pawl show ${sessionId}`,
  );

/**
 * Checks and folds the entries of an agent's journal. Throws for an entry that the machine refuses.
 * Returns the checkpoints in the entries.
 */
const checkEntries = async (
  source: string,
  journal: Buffer,
): Promise<readonly CheckpointClaim[]> => {
  const claims: CheckpointClaim[] = [];
  const scanOfAny = await JournalScan.begin(bufferSource(journal), source, journal.length);
  if (machineKind(scanOfAny.header) !== agentMachine.kind) return claims;
  const scan = await JournalScan.beginOf<AgentTypes>(
    'agent',
    bufferSource(journal),
    source,
    journal.length,
  );
  checkHeader(source, agentMachine, scan.header);
  const fold = beginFold(scan.header, agentMachine, source);
  for await (const records of scan.records()) {
    checkRecords(source, agentMachine, records);
    foldOn(fold, records, {});
    for (const { entry } of records) {
      const { event } = entry;
      if (event.type === 'CheckpointTaken') claims.push(event);
      if (event.type === 'Rewound' && event.checkpoint !== null)
        claims.push({ checkpoint: event.checkpoint, by: 'rewind', changes: event.changes });
    }
  }
  return claims;
};

type Verified = {
  readonly header: Header<MachineTypes>;
  readonly entries: number;
  readonly claims: readonly CheckpointClaim[];
};

/** Verifies the lines of a journal; throws unless all are good. */
const verifyContent = async (
  source: string,
  { journal, sessionId }: Content,
): Promise<Verified> => {
  const { header, seq, fault } = await scanFile(
    bufferSource(journal),
    source,
    journal.length,
    null,
  );
  if (fault !== null) throw cannotImport(source, `line ${fault.line} of the journal: ${fault.why}`);
  if (header === null || !isSessionId(header.sessionId))
    throw cannotImport(source, 'its session has no valid id');
  if (sessionId !== null && header.sessionId !== sessionId)
    throw cannotImport(source, `it holds the session ${header.sessionId}, not ${sessionId}`);
  try {
    return { header, entries: seq, claims: await checkEntries(source, journal) };
  } catch (error) {
    if (error instanceof JournalError && error.kind === 'newerVersion') throw error;
    const why =
      error instanceof JournalError
        ? error.why
        : error instanceof Error
          ? error.message
          : String(error);
    throw cannotImport(source, why);
  }
};

/** The missing ones of the blobs that a session needs to continue. */
const findMissing = async (
  { instructions, tools }: Header<MachineTypes>,
  get: (sha256: string) => Promise<string | undefined>,
): Promise<readonly string[]> => {
  const missing: string[] = [];
  // a damaged one is missing, too: the session is stored, and can be read
  for (const sha256 of [instructions, tools])
    if ((await get(sha256).catch(() => undefined)) === undefined) missing.push(sha256);
  return missing;
};

/** Writes the journal as the draft, durably. */
const writeDraft = async (draft: string, journal: Buffer): Promise<void> => {
  // left by a killed import; it may be a hard link to a journal, so it is not overwritten
  await rm(draft, { force: true });
  const handle = await open(draft, 'wx', FILE_MODE);
  try {
    await handle.appendFile(journal);
    if (journal.at(-1) !== 0x0a) await handle.appendFile('\n');
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Gives the draft its name, unless a file has it: a hard link where there can be one. */
const placeNew = (draft: string, path: string, sessionId: string): Promise<void> =>
  link(draft, path).catch((error: unknown) => {
    if (errorCode(error) === 'EEXIST' || existsSync(path)) throw alreadyThere(path, sessionId);
    return rename(draft, path);
  });

const readSource = async (source: string): Promise<Buffer> => {
  try {
    return await withRegular(source, (file) => file.readFile());
  } catch (error) {
    throw cannotRead(source, error);
  }
};

const refuseExisting = async (path: string, sessionId: string): Promise<void> => {
  const isThere = await lstat(path).then(
    () => true,
    () => false, // if it can't be read, it can't be written either
  );
  if (isThere) throw alreadyThere(path, sessionId);
};

/**
 * Writes files, blobs and journal while it holds the session's lock, by which leftovers of a killed
 * import are recognised.
 */
const placeSession = async (
  folder: string,
  sessionId: string,
  { journal, blobs }: Pick<Content, 'journal' | 'blobs'>,
  storeFiles: () => Promise<void>,
): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const draft = importPath(folder, sessionId);
  const store = fileBlobs(folder);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await storeFiles();
    await writeDraft(draft, journal);
    for (const bytes of blobs) await store.put(bytes.toString('utf8'));
    await placeNew(draft, path, sessionId);
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true }).finally(() => lock.release());
  }
};

/**
 * The proof that no entries are missing at the end. `mark`: the last acknowledged entry is there.
 * `export`: the parts have the size and the sha256 of the export. `nothing`: the journal has no
 * valid mark, so a cut at the end of a line can't be detected.
 */
export type EndProof = 'mark' | 'export' | 'nothing';

/** The result of verifying a file. `fault`: the first fault; null: none. */
export type Verification = {
  readonly path: string;
  readonly sessionId: string | null;
  readonly kind: MachineTypes['kind'];
  readonly entries: number;
  readonly blobs: number;
  readonly end: EndProof;
  readonly fault: (JournalFault & { readonly path: string }) | null;
};

/**
 * Verifies each line of a journal, or each part of an export, and the existing blobs. Changes
 * nothing.
 */
export const verifyStored = async (path: string): Promise<Verification> => {
  const mark = await readMark(path); // before the content: a writer may be at work
  const { scanned, blobs, sessionId, load } = await scanStored(path, mark);
  const { header, seq, fault } = scanned;
  const proof = mark === null ? 'nothing' : 'mark';
  const verification = {
    path,
    sessionId: header?.sessionId ?? null,
    kind: header === null ? 'agent' : machineKind(header),
    entries: seq,
    end: sessionId === null ? proof : 'export',
  } as const;
  const folder = sessionId === null ? findStateFolder(path) : null;
  if (fault !== null) return { ...verification, blobs: blobs.length, fault: { ...fault, path } };
  if (folder === null || header === null)
    return { ...verification, blobs: blobs.length, fault: null };
  const missingBlob = [header.instructions, header.tools]
    .map((sha256) => blobPath(folder, sha256))
    .find((blob) => !existsSync(blob));
  if (missingBlob !== undefined)
    return {
      ...verification,
      blobs: 0,
      fault: blobFault(missingBlob, 'this blob of the header is missing', seq),
    };
  let count = 0;
  for await (const blob of namedBlobs(folder, await load())) {
    if (blob.kind === 'changed')
      return {
        ...verification,
        blobs: count,
        fault: blobFault(blob.path, 'the content of this blob does not fit its name', seq),
      };
    count += 1;
  }
  return { ...verification, blobs: count, fault: null };
};

/** The state folder of a journal in its usual place; null for one elsewhere. */
const findStateFolder = (path: string): string | null =>
  basename(dirname(path)) === 'sessions' ? dirname(dirname(path)) : null;

/** A blob has no lines: its fault counts as one of the first. */
const blobFault = (path: string, why: string, seq: number): Verification['fault'] => ({
  path,
  line: 1,
  byte: 0,
  why,
  seq,
});

type Scanned = Pick<Content, 'blobs' | 'sessionId'> & {
  readonly scanned: ScannedFile;
  /** Loads all bytes of the journal, for one without a fault. */
  readonly load: () => Promise<Buffer>;
};

const scanStored = async (path: string, mark: Mark | null): Promise<Scanned> => {
  const scanned = await scanJournal(path, mark);
  if (scanned !== null)
    return { scanned, blobs: [], sessionId: null, load: () => readSource(path) };
  const { journal, blobs, sessionId } = splitExport(path, await readSource(path));
  return {
    blobs,
    sessionId,
    scanned: await scanFile(bufferSource(journal), path, journal.length, mark),
    load: async () => journal,
  };
};

const BLOCK_BYTES = 1 << 20;

/**
 * Scans a journal without loading it, since a power loss can leave gigabytes of zeros at its end;
 * null for an exported session.
 */
const scanJournal = (path: string, mark: Mark | null): Promise<ScannedFile | null> =>
  withRegular(path, async (file, status) => {
    const { value: lines } = await readLines(file, status.size, BLOCK_BYTES).next();
    const first = lines === undefined ? '' : splitFirst(lines).first.toString();
    return readManifest(first).kind === 'none'
      ? await scanFile(file, path, status.size, mark)
      : null;
  }).catch((error: unknown) => {
    throw cannotRead(path, error);
  });

/** The first fault of a journal: its line, and the byte at which that line begins. */
type JournalFault = {
  readonly line: number;
  readonly byte: number;
  readonly why: string;
  /** Last entry before it. */
  readonly seq: number;
};

type ScannedFile = {
  /** null if the header is not readable. */
  readonly header: Header<MachineTypes> | null;
  readonly seq: number;
  /** Bytes of the good lines. */
  readonly size: number;
  readonly fault: JournalFault | null;
  /** The fault is a torn end: no acknowledged entry is missing. */
  readonly isTorn: boolean;
};

const endFault = ({ ending, line, size, seq }: JournalScan<MachineTypes>): JournalFault | null => {
  const at = { line: line + 1, byte: size, seq };
  if (ending.kind === 'damaged') return { ...at, why: ending.error.why };
  if (ending.kind === 'torn')
    return {
      ...at,
      why: `it is incomplete: the last ${ending.bytes} bytes were never acknowledged`,
    };
  return null;
};

/**
 * Reads and verifies all lines of a journal of any machine, and compares its end with the mark.
 * Rejects with `newerVersion`, and with what `see` throws: it gets the header, then all entries.
 */
const scanFile = async (
  source: ByteSource,
  path: string,
  end: number,
  mark: Mark | null,
  see: (header: Header<MachineTypes>, records: readonly Recorded<MachineTypes>[]) => void = () =>
    undefined,
): Promise<ScannedFile> => {
  try {
    const scan = await JournalScan.begin(source, path, end);
    see(scan.header, []);
    for await (const records of scan.records()) see(scan.header, records);
    scan.compare(mark);
    const { header, seq, size, ending } = scan;
    return { header, seq, size, fault: endFault(scan), isTorn: ending.kind === 'torn' };
  } catch (error) {
    if (!(error instanceof JournalError) || error.kind !== 'damaged') throw error;
    const fault = { line: 1, byte: 0, why: error.why, seq: 0 };
    return { header: null, seq: 0, size: 0, fault, isTorn: false };
  }
};

/**
 * The format of an exported session, as bytes:
 *
 * 1. One line of JSON: the manifest, with the size and the sha256 of every part.
 * 2. The lines of the journal, as they are in its file.
 * 3. The blobs of the journal, in the order of the manifest.
 * 4. In version 2: manifests of checkpoints, then contents of files, both in that order.
 *
 * An export without files has version 1, which an older Pawl reads.
 */
const VERSION = 2;

type Part = { readonly bytes: number; readonly sha256: string };

type Manifest = {
  readonly pawlExport: number;
  readonly sessionId: string;
  readonly journal: Part;
  readonly blobs: readonly Part[];
  readonly checkpoints?: readonly Part[];
  readonly contents?: readonly Part[];
};

const isPart = (value: unknown): value is Part =>
  isRecord(value) &&
  Number.isSafeInteger(value.bytes) &&
  Number(value.bytes) >= 0 &&
  typeof value.sha256 === 'string' &&
  /^[0-9a-f]{64}$/.test(value.sha256);

const areParts = (value: unknown): value is readonly Part[] =>
  Array.isArray(value) && value.every(isPart);

/** Blobs, checkpoints and contents that an import takes: far more than a real session has. */
const PARTS_MAX = 250_000;
const HEAD_BYTES_MAX = 32 * 1024 * 1024;

/**
 * `none`: the file is no export. `newer`: a later Pawl made it. `bad`: the manifest is incomplete.
 */
type ReadManifest =
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'none' | 'bad' }
  | { readonly kind: 'newer'; readonly version: number };

/** Reads the first line of a file. */
const readManifest = (line: string): ReadManifest => {
  const value = parse(line);
  if (!isRecord(value) || typeof value.pawlExport !== 'number') return { kind: 'none' };
  if (value.pawlExport > VERSION) return { kind: 'newer', version: value.pawlExport };
  const { pawlExport, sessionId, journal, blobs, checkpoints = [], contents = [] } = value;
  if (typeof sessionId !== 'string' || !isPart(journal) || !areParts(blobs)) return { kind: 'bad' };
  if (!areParts(checkpoints) || !areParts(contents)) return { kind: 'bad' };
  const manifest = { pawlExport, sessionId, journal, blobs, checkpoints, contents };
  return { kind: 'manifest', manifest };
};

/** A blob that a journal names, as it is on disk. */
type NamedBlob = {
  readonly sha256: string;
  readonly path: string;
  readonly bytes: Buffer;
  /** `changed`: the content does not fit the name. */
  readonly kind: 'good' | 'changed';
};

const HASH = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/**
 * Hashes in the text of a journal. Not all of them name blobs: state checks and file contents have
 * hashes, too.
 */
const hashesIn = (journal: Buffer): ReadonlySet<string> =>
  new Set(journal.toString('latin1').match(HASH) ?? []);

const readBlob = async (folder: string, sha256: string): Promise<NamedBlob | null> => {
  const path = blobPath(folder, sha256);
  try {
    const bytes = await readFile(path);
    return { sha256, path, bytes, kind: hashBytes(bytes) === sha256 ? 'good' : 'changed' };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
};

/** The blobs that exist among those that a journal may name. */
async function* namedBlobs(folder: string, journal: Buffer): AsyncGenerator<NamedBlob, undefined> {
  for (const sha256 of [...hashesIn(journal)].sort()) {
    const blob = await readBlob(folder, sha256);
    if (blob !== null) yield blob;
  }
}
