/**
 * The file of an exported session, as bytes:
 *
 * 1. One line of JSON: the manifest, with the size and the sha256 of every part.
 * 2. The lines of the journal, as they are in its file.
 * 3. The blobs that the journal names, in the order of the manifest.
 */
const VERSION = 1;

export type Part = { readonly bytes: number; readonly sha256: string };

export type Manifest = {
  readonly pawlExport: number;
  readonly sessionId: string;
  readonly journal: Part;
  readonly blobs: readonly Part[];
};

export const manifestOf = (sessionId: string, journal: Part, blobs: readonly Part[]): Manifest => ({
  pawlExport: VERSION,
  sessionId,
  journal,
  blobs,
});

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const isPart = (value: unknown): value is Part =>
  isRecord(value) &&
  Number.isSafeInteger(value.bytes) &&
  Number(value.bytes) >= 0 &&
  typeof value.sha256 === 'string' &&
  /^[0-9a-f]{64}$/.test(value.sha256);

/** `none`: the file is no export. `newer`: a later Pawl made it. `bad`: the manifest is incomplete. */
export type ReadManifest =
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'none' | 'bad' }
  | { readonly kind: 'newer'; readonly version: number };

const parse = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // not JSON, so no manifest
  }
};

/** Reads the first line of a file. */
export const readManifest = (line: string): ReadManifest => {
  const value = parse(line);
  if (!isRecord(value) || typeof value.pawlExport !== 'number') return { kind: 'none' };
  if (value.pawlExport > VERSION) return { kind: 'newer', version: value.pawlExport };
  const { sessionId, journal, blobs } = value;
  if (typeof sessionId !== 'string' || !isPart(journal) || !Array.isArray(blobs) || !blobs.every(isPart))
    return { kind: 'bad' };
  return { kind: 'manifest', manifest: manifestOf(sessionId, journal, blobs) };
};
