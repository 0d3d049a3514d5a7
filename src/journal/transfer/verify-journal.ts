import { existsSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { MachineTypes } from '../../ports/machine-types.js';
import { readMark } from '../format/acknowledged-mark.js';
import { sourceOf } from '../format/read-lines.js';
import { kindOf } from '../journaled-machine.js';
import { blobPath } from '../paths-and-durable-writes.js';
import { type JournalFault, scanFile } from './find-first-fault.js';
import { readSource, takeApart } from './import-session.js';
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

/** Verifies each line of a journal, or each part of an exported session, and the blobs that are there. Changes nothing. */
export const verifyStored = async (path: string): Promise<Verification> => {
  const mark = await readMark(path); // before the content: a writer may be at work
  const { journal, blobs, sessionId } = takeApart(path, await readSource(path));
  const proof = mark === null ? 'nothing' : 'mark';
  const { header, seq, fault } = await scanFile(sourceOf(journal), path, journal.length, mark);
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
  for await (const blob of namedBlobs(folder, journal)) {
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
