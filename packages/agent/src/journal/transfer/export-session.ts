import { open, rm } from 'node:fs/promises';
import { openRegular } from '../../platform/files/regular-file.js';
import { readMark } from '../format/acknowledged-mark.js';
import { blobDamaged, cannotRead, cannotWrite, codeOf, JournalError } from '../journal-error.js';
import { FILE_MODE, journalPath } from '../paths-and-durable-writes.js';
import { manifestOf } from './export-format.js';
import { scanFile } from './find-first-fault.js';
import { type NamedBlob, namedBlobs, sha256Of } from './named-blobs.js';

export type Exported = { readonly entries: number; readonly blobs: number; readonly bytes: number };

/** The good lines of a stored journal; throws if it is damaged before its end. */
const readGood = async (path: string): Promise<{ readonly journal: Buffer; readonly entries: number }> => {
  const mark = await readMark(path); // before the size: a writer may be at work
  const { file, status } = await openRegular(path).catch((error: unknown) => {
    throw cannotRead(path, error);
  });
  try {
    const { seq, size, fault, isTorn } = await scanFile(file, path, status.size, mark);
    if (fault !== null && !isTorn)
      throw new JournalError(
        'damaged',
        path,
        `The journal ${path} is damaged at line ${fault.line}: ${fault.why}. Nothing was exported.` +
          (fault.seq === 0 ? '' : ` Export a fork of its good entries: pawl fork ID --at ${fault.seq}`),
        { line: fault.line, seq: fault.seq },
      );
    const journal = Buffer.alloc(size);
    await file.read(journal, 0, size, 0);
    return { journal, entries: seq };
  } finally {
    await file.close();
  }
};

const fileThere = (path: string): JournalError =>
  new JournalError('cannotWrite', path, `${path} is there already and stays as it is. Name another file.`);

/** Writes all parts to a new file; removes it if that fails. */
const writeNew = async (target: string, parts: readonly Buffer[]): Promise<void> => {
  const handle = await open(target, 'wx', FILE_MODE).catch((error: unknown) => {
    throw codeOf(error) === 'EEXIST' ? fileThere(target) : cannotWrite(target, error);
  });
  try {
    for (const part of parts) await handle.appendFile(part);
    await handle.sync();
  } catch (error) {
    await rm(target, { force: true });
    throw cannotWrite(target, error);
  } finally {
    await handle.close();
  }
};

/**
 * Writes a session with its blobs to one new file. A journal that another process is writing to is exported up to its
 * last whole line.
 */
export const exportSession = async (folder: string, sessionId: string, target: string): Promise<Exported> => {
  const { journal, entries } = await readGood(journalPath(folder, sessionId));
  const blobs: NamedBlob[] = [];
  for await (const blob of namedBlobs(folder, journal)) {
    if (blob.kind === 'changed') throw blobDamaged(blob.path);
    blobs.push(blob);
  }
  const partOf = (bytes: Buffer) => ({ bytes: bytes.length, sha256: sha256Of(bytes) });
  const manifest = manifestOf(
    sessionId,
    partOf(journal),
    blobs.map(({ bytes }) => partOf(bytes)),
  );
  const head = Buffer.from(`${JSON.stringify(manifest)}\n`);
  const parts = [head, journal, ...blobs.map(({ bytes }) => bytes)];
  await writeNew(target, parts);
  return { entries, blobs: blobs.length, bytes: parts.reduce((sum, part) => sum + part.length, 0) };
};
