/**
 * The checkpoints that an exported session takes along (`collectCarried`), and that an import
 * brings in (`keepCarried`). Between the two: the checks of what an import brings.
 *
 * 1. A content with a secret is left out and named: with other bytes it would be another file.
 * 2. Anybody may have written what an import brings (foreign-checkpoints.ts). So each checkpoint
 *    must name only places in the workspace, and none in a git folder, and change what the journal
 *    says of it.
 */

import type { CarriedFiles, CheckpointClaim } from '../../journal/transfer.js';
import type { ChangeSummary, FileLeft } from '../../machine/event.js';
import { hashBytes } from '../../platform/files.js';
import type { Redactor } from '../../secrets/redactor.js';
import { isSound } from './foreign-checkpoints.js';
import {
  encodeManifest,
  fileLeft,
  listContents,
  type Manifest,
  parseManifest,
  summarise,
} from './manifest.js';
import type { CheckpointStore } from './store.js';

/** An import reads its file as a whole. */
const CARRIED_BYTES_MAX = 1024 ** 3;
/** Changed paths of one checkpoint that an import takes, and of all: far more than usual ones. */
const CHANGES_MAX = 20_000;
const ALL_CHANGES_MAX = 100_000;

const countChanges = ({ changes, refs = [] }: Manifest): number => changes.length + refs.length;

/** Why a checkpoint is too large; null: it is not. `total`: the paths of it and those before. */
const whyTooLarge = (manifest: Manifest, total: number): string | null => {
  const count = countChanges(manifest);
  if (count > CHANGES_MAX)
    return `a checkpoint names ${count} paths, and an import takes at most ${CHANGES_MAX}`;
  return total > ALL_CHANGES_MAX
    ? `its checkpoints name ${total} paths, and an import takes at most ${ALL_CHANGES_MAX}`
    : null;
};

/**
 * The checkpoints of a session and the contents that they name. `left`: what stays behind; `.`
 * stands for a whole checkpoint.
 */
export const collectCarried = async (
  store: CheckpointStore,
  sessionId: string,
  redactor: Redactor,
): Promise<CarriedFiles & { readonly left: readonly FileLeft[] }> => {
  const checkpoints = new Map<string, Buffer>();
  const contents = new Map<string, Buffer>();
  const leftFiles = new Map<string, FileLeft>();
  let bytesLeft = CARRIED_BYTES_MAX;
  let total = 0;
  const refusal = (bytes: Buffer): string | null => {
    const { names } = redactor.redact(bytes.toString('utf8'));
    if (names.length > 0) return `it holds the value of $${names.join(', $')}`;
    return bytes.length > bytesLeft ? 'an export takes at most 1 GB of files along' : null;
  };
  const add = async (target: Map<string, Buffer>, sha256: string, name: string): Promise<void> => {
    if (target.has(sha256)) return;
    const bytes = await store.get(sha256);
    const why = bytes === null ? 'it is no longer in the store of checkpoints' : refusal(bytes);
    if (why !== null) leftFiles.set(`${name}\0${why}`, fileLeft(name, why));
    if (bytes === null || why !== null) return;
    bytesLeft -= bytes.length;
    target.set(sha256, bytes);
  };
  for (const sha256 of await store.listed(sessionId)) {
    await add(checkpoints, sha256, '.');
    const bytes = checkpoints.get(sha256);
    const manifest = bytes === undefined ? null : parseManifest(bytes);
    const count = manifest === null ? 0 : countChanges(manifest);
    const why = manifest === null ? null : whyTooLarge(manifest, total + count);
    if (why !== null) {
      checkpoints.delete(sha256);
      bytesLeft += bytes?.length ?? 0;
      leftFiles.set(sha256, fileLeft('.', why));
      continue;
    }
    total += count;
    for (const change of [...(manifest?.changes ?? []), ...(manifest?.refs ?? [])])
      for (const content of listContents(change)) await add(contents, content, change.path);
  }
  return {
    checkpoints: [...checkpoints.values()],
    contents: [...contents.values()],
    left: [...leftFiles.values()],
  };
};

// ---- The import ----

/** The names and kinds of changes. Numbers of lines need contents, which may be missing. */
const nameChanges = ({ files, ...counts }: ChangeSummary): string =>
  JSON.stringify([
    counts.created,
    counts.changed,
    counts.deleted,
    files.map(({ path, change }) => [path, change]),
  ]);

const NO_CONTENTS = { get: async (): Promise<null> => null };

/** Why checkpoints can't be imported; null: they can. */
const findFault = async (
  { checkpoints }: CarriedFiles,
  claims: readonly CheckpointClaim[],
): Promise<string | null> => {
  const manifests = new Map<string, Manifest>();
  let total = 0;
  for (const bytes of checkpoints) {
    const manifest = parseManifest(bytes);
    if (!isSound(manifest)) return 'one of its checkpoints names a place that none may name';
    total += countChanges(manifest);
    const why = whyTooLarge(manifest, total);
    if (why !== null) return why;
    manifests.set(hashBytes(encodeManifest(manifest)), manifest); // as it is going to be stored
  }
  for (const { checkpoint, by, changes } of claims) {
    const manifest = manifests.get(checkpoint);
    if (manifest === undefined) continue;
    const real = await summarise(NO_CONTENTS, manifest.changes);
    if (by !== manifest.by || nameChanges(real) !== nameChanges(changes))
      return 'its journal names other files than one of its checkpoints changes';
  }
  return null;
};

/**
 * Stores the checkpoints for a session. `claims`: what its journal says of them. Returns why they
 * can't be stored: then none is; null: they are.
 */
export const keepCarried = async (
  store: CheckpointStore,
  sessionId: string,
  carried: CarriedFiles,
  claims: readonly CheckpointClaim[],
): Promise<string | null> => {
  const fault = await findFault(carried, claims);
  if (fault !== null) return fault;
  await store.forget(sessionId); // a killed import may have begun a list
  for (const bytes of carried.contents) store.putMany(bytes);
  for (const bytes of carried.checkpoints) {
    const manifest = parseManifest(bytes);
    if (manifest !== null) await store.addManifest(sessionId, manifest);
  }
  return null;
};
