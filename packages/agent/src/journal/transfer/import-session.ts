import { constants, copyFile, link, lstat, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openRegular } from '../../platform/files/regular-file.js';
import type { Header } from '../../ports/journal.js';
import type { AgentTypes, MachineTypes } from '../../ports/machine-types.js';
import { fileBlobs } from '../blobs.js';
import { sourceOf } from '../format/read-lines.js';
import { cannotRead, cannotWrite, codeOf, JournalError } from '../journal-error.js';
import { kindOf } from '../journaled-machine.js';
import {
  FILE_MODE,
  importPath,
  isSessionId,
  journalPath,
  lockPath,
  makeFolder,
  sessionsFolder,
  syncFolder,
} from '../paths-and-durable-writes.js';
import { checkHeader, checkRecords } from '../read/check-shapes.js';
import { beginFold, foldOn } from '../read/fold.js';
import { agentMachine } from '../read/journaled-agent-machine.js';
import { JournalScan } from '../read/scan.js';
import { removeLeftovers } from '../removal/remove-leftovers.js';
import { acquireLock } from '../write/lock.js';
import { type Part, readManifest } from './export-format.js';
import { scanFile } from './find-first-fault.js';
import { sha256Of } from './named-blobs.js';

export type Imported = {
  readonly sessionId: string;
  readonly entries: number;
  readonly blobs: number;
  /** Blobs of the header that neither the file nor the state folder has: the session can be read, but not go on. */
  readonly missing: readonly string[];
};

const damaged = (path: string, why: string): JournalError =>
  new JournalError('damaged', path, `${path} can't be imported: ${why}. Nothing was changed.`);

/** What is in a file: an export, or a journal alone. */
export type Content = {
  readonly journal: Buffer;
  readonly blobs: readonly Buffer[];
  readonly sessionId: string | null;
};

/** Takes an exported file apart, and verifies each part; a journal is one part. */
export const takeApart = (path: string, bytes: Buffer): Content => {
  const end = bytes.indexOf(0x0a);
  const read = readManifest(bytes.toString('utf8', 0, end === -1 ? bytes.length : end));
  switch (read.kind) {
    case 'none':
      return { journal: bytes, blobs: [], sessionId: null };
    case 'bad':
      throw damaged(path, 'its first line is damaged');
    case 'newer':
      throw new JournalError(
        'newerVersion',
        path,
        `${path} has export version ${read.version}, which this Pawl can't read. Update Pawl to import it.`,
      );
    case 'manifest': {
      const { sessionId, journal, blobs } = read.manifest;
      let start = end + 1;
      const next = ({ bytes: length, sha256 }: Part): Buffer => {
        const part = bytes.subarray(start, start + length);
        if (part.length !== length || sha256Of(part) !== sha256)
          throw damaged(path, `the part at byte ${start} was cut or changed`);
        start += length;
        return part;
      };
      const content = { sessionId, journal: next(journal), blobs: blobs.map(next) };
      if (start !== bytes.length) throw damaged(path, `something was added at byte ${start}`);
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
    `The session ${sessionId} is here already (${path}), and an import replaces nothing. Move that file away first, or ` +
      `look at it: pawl show ${sessionId}`,
  );

/** Checks and folds the entries of an agent's journal: what does not fit the machine is refused here. */
const checkEntries = async (source: string, journal: Buffer): Promise<void> => {
  const begin = await JournalScan.begin(sourceOf(journal), source, journal.length);
  if (kindOf(begin.header) !== agentMachine.kind) return;
  const scan = await JournalScan.beginOf<AgentTypes>('agent', sourceOf(journal), source, journal.length);
  checkHeader(source, agentMachine, scan.header);
  const fold = beginFold(scan.header, agentMachine, source);
  for await (const records of scan.records()) {
    checkRecords(source, agentMachine, records);
    foldOn(fold, records, {});
  }
};

type Verified = { readonly header: Header<MachineTypes>; readonly entries: number };

/** Verifies the lines of a journal; throws unless all are good. */
const verify = async (source: string, { journal, sessionId }: Content): Promise<Verified> => {
  const { header, seq, fault } = await scanFile(sourceOf(journal), source, journal.length, null);
  if (fault !== null) throw damaged(source, `line ${fault.line} of the journal: ${fault.why}`);
  if (header === null || !isSessionId(header.sessionId)) throw damaged(source, 'its session has no valid id');
  if (sessionId !== null && header.sessionId !== sessionId)
    throw damaged(source, `it holds the session ${header.sessionId}, not ${sessionId}`);
  try {
    await checkEntries(source, journal);
  } catch (error) {
    if (error instanceof JournalError && error.kind === 'newerVersion') throw error;
    const why =
      error instanceof JournalError ? error.why : error instanceof Error ? error.message : String(error);
    throw damaged(source, why);
  }
  return { header, entries: seq };
};

/** The blobs without which a session can't go on, as far as they are missing. */
const missingOf = async (
  { instructions, tools }: Header<MachineTypes>,
  get: (sha256: string) => Promise<string | undefined>,
): Promise<readonly string[]> => {
  const missing: string[] = [];
  for (const sha256 of [instructions, tools]) if ((await get(sha256)) === undefined) missing.push(sha256);
  return missing;
};

const writeDraft = async (draft: string, journal: Buffer): Promise<void> => {
  await rm(draft, { force: true }); // of a killed import; it may be a second name of a journal, so it is not overwritten
  const handle = await open(draft, 'wx', FILE_MODE);
  try {
    await handle.appendFile(journal);
    if (journal.at(-1) !== 0x0a) await handle.appendFile('\n');
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Gives the draft its name, unless a file has it. Copies it on file systems without hard links. */
const placeNew = (draft: string, path: string): Promise<void> =>
  link(draft, path).catch((error: unknown) => {
    if (codeOf(error) === 'EEXIST') throw error;
    return copyFile(draft, path, constants.COPYFILE_EXCL);
  });

export const readSource = async (source: string): Promise<Buffer> => {
  try {
    const { file } = await openRegular(source);
    return await file.readFile().finally(() => file.close());
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

/** Writes blobs and journal while it holds the session's lock: so what a killed import leaves is known as such. */
const place = async (folder: string, sessionId: string, { journal, blobs }: Content): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const draft = importPath(folder, sessionId);
  const store = fileBlobs(folder);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await writeDraft(draft, journal);
    for (const bytes of blobs) await store.put(bytes.toString('utf8'));
    await placeNew(draft, path).catch((error: unknown) => {
      throw codeOf(error) === 'EEXIST' ? alreadyThere(path, sessionId) : error;
    });
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true }).finally(() => lock.release());
  }
};

/**
 * Stores a session from an exported file, or from a journal. Verifies everything first, replaces nothing, and performs
 * nothing. A session that is here already, even an unreadable one, stays as it is.
 */
export const importSession = async (folder: string, source: string): Promise<Imported> => {
  const content = takeApart(source, await readSource(source));
  const { header, entries } = await verify(source, content);
  const { sessionId } = header;
  const path = journalPath(folder, sessionId);
  const store = fileBlobs(folder);
  try {
    await makeFolder(sessionsFolder(folder));
    await removeLeftovers(folder); // those of a deleted session of this id
    await refuseExisting(path, sessionId);
    await place(folder, sessionId, content);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  const { length } = content.blobs;
  return {
    sessionId,
    entries,
    blobs: length,
    missing: await missingOf(header, (sha256) => store.get(sha256)),
  };
};
