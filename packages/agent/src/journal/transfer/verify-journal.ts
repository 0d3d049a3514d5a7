import { existsSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { openRegular } from '../../platform/files/regular-file.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import { type Mark, readMark } from '../format/acknowledged-mark.js';
import { readLines, sourceOf, splitFirst } from '../format/read-lines.js';
import { cannotRead } from '../journal-error.js';
import { kindOf } from '../journaled-machine.js';
import { blobPath } from '../paths-and-durable-writes.js';
import { readManifest } from './export-format.js';
import { type JournalFault, type ScannedFile, scanFile } from './find-first-fault.js';
import { type Content, readSource, takeApart } from './import-session.js';
import { namedBlobs } from './named-blobs.js';

/**
 * What proves that no entries are missing at the end. `mark`: the last acknowledged entry is there. `export`: the parts
 * have the size and the sha256 of the export. `nothing`: there is no good mark beside the journal, so a cut at the end of a
 * line can't be seen.
 */
export type EndProof = 'mark' | 'export' | 'nothing';

/** What verifying a file has found. The first fault is null if all is good. */
export type Verification = {
  readonly path: string;
  readonly sessionId: string | null;
  readonly kind: MachineTypes['kind'];
  readonly entries: number;
  readonly blobs: number;
  readonly end: EndProof;
  readonly fault: (JournalFault & { readonly path: string }) | null;
};

/** The state folder of a journal in its usual place; null for any other file. */
const stateFolderOf = (path: string): string | null =>
  basename(dirname(path)) === 'sessions' ? dirname(dirname(path)) : null;

const blobFault = (path: string, why: string, seq: number): Verification['fault'] => ({
  path,
  line: 1,
  byte: 0,
  why,
  seq,
});

const BLOCK_BYTES = 1 << 20;

/** Scans a journal where it is, since a power loss can leave gigabytes of zeros at its end; null for an exported session. */
const scanJournal = async (path: string, mark: Mark | null): Promise<ScannedFile | null> => {
  const { file, status } = await openRegular(path).catch((error: unknown) => {
    throw cannotRead(path, error);
  });
  try {
    const { value: lines } = await readLines(file, status.size, BLOCK_BYTES).next();
    const first = lines === undefined ? '' : splitFirst(lines).first.toString();
    return readManifest(first).kind === 'none' ? await scanFile(file, path, status.size, mark) : null;
  } finally {
    await file.close();
  }
};

type Scanned = Omit<Content, 'journal'> & {
  readonly scanned: ScannedFile;
  /** All bytes of the journal, once it has proved good. */
  readonly load: () => Promise<Buffer>;
};

const scanStored = async (path: string, mark: Mark | null): Promise<Scanned> => {
  const scanned = await scanJournal(path, mark);
  if (scanned !== null) return { scanned, blobs: [], sessionId: null, load: () => readSource(path) };
  const { journal, ...content } = takeApart(path, await readSource(path));
  return {
    ...content,
    scanned: await scanFile(sourceOf(journal), path, journal.length, mark),
    load: async () => journal,
  };
};

/** Verifies each line of a journal, or each part of an exported session, and the blobs that are there. Changes nothing. */
export const verifyStored = async (path: string): Promise<Verification> => {
  const mark = await readMark(path); // before the content: a writer may be at work
  const { scanned, blobs, sessionId, load } = await scanStored(path, mark);
  const { header, seq, fault } = scanned;
  const proof = mark === null ? 'nothing' : 'mark';
  const found = {
    path,
    sessionId: header?.sessionId ?? null,
    kind: header === null ? 'agent' : kindOf(header),
    entries: seq,
    end: sessionId === null ? proof : 'export',
  } as const;
  const folder = stateFolderOf(path);
  if (fault !== null) return { ...found, blobs: blobs.length, fault: { ...fault, path } };
  if (folder === null || header === null) return { ...found, blobs: blobs.length, fault: null };
  const missing = [header.instructions, header.tools]
    .map((sha256) => blobPath(folder, sha256))
    .find((blob) => !existsSync(blob));
  if (missing !== undefined)
    return { ...found, blobs: 0, fault: blobFault(missing, 'this blob of the header is missing', seq) };
  let count = 0;
  for await (const blob of namedBlobs(folder, await load())) {
    if (blob.kind === 'changed')
      return {
        ...found,
        blobs: count,
        fault: blobFault(blob.path, 'the content of this blob does not fit its name', seq),
      };
    count += 1;
  }
  return { ...found, blobs: count, fault: null };
};
