/**
 * The checkpoints that an exported session takes along (`collectCarried`), and that an import
 * brings in (`keepCarried`). Between the two: the checks of what an import brings.
 *
 * 1. A content with a secret is left out and named: with other bytes it would be another file.
 * 2. Anybody may have written what an import brings. So each checkpoint must name only places in
 *    the workspace, and none in a git folder.
 */

import type { CarriedFiles } from '../../journal/transfer.js';
import type { FileLeft } from '../../machine/event.js';
import type { Redactor } from '../../secrets/redactor.js';
import {
  type FileState,
  fileLeft,
  listContents,
  type Manifest,
  type PathChange,
  parseManifest,
  type RefChange,
  type RefState,
} from './manifest.js';
import type { CheckpointStore } from './store.js';

/** An import reads its file as a whole. */
const CARRIED_BYTES_MAX = 1024 ** 3;

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
    for (const change of [...(manifest?.changes ?? []), ...(manifest?.refs ?? [])])
      for (const content of listContents(change)) await add(contents, content, change.path);
  }
  return {
    checkpoints: [...checkpoints.values()],
    contents: [...contents.values()],
    left: [...leftFiles.values()],
  };
};

// ---- Checks of a manifest that anybody may have written ----

const isHash = (value: unknown): boolean =>
  typeof value === 'string' && /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(value);

/** Git folders have other names on file systems that ignore case or certain characters. */
const GIT_FOLDER = /^(\.git|git~\d+)[\s.:]*$/i;

/** Whether a name stays in the workspace and out of git folders. */
const isInnerPlace = (name: unknown): boolean =>
  typeof name === 'string' &&
  !/[\0\\]/.test(name) &&
  name.split('/').every((part) => !['', '.', '..'].includes(part) && !GIT_FOLDER.test(part));

const isMode = (mode: number, max: number): boolean =>
  Number.isInteger(mode) && mode >= 0 && mode <= max;

const isFileState = (state: FileState): boolean => {
  if (state.kind === 'file')
    // no setuid or setgid bit
    return isHash(state.sha256) && isMode(state.mode, 0o1777) && Number.isSafeInteger(state.bytes);
  if (state.kind === 'folder') return isMode(state.mode, 0o7777);
  if (state.kind === 'link') return typeof state.target === 'string';
  return state.kind === 'absent' || (state.kind === 'notKept' && typeof state.why === 'string');
};

const BRANCH = /^refs\/heads\/(?!-)[^\s~^:?*[\\\p{Cc}]+$/u;

const isRefState = (state: RefState): boolean => {
  if (state.kind === 'index')
    return isHash(state.sha256) && (state.listed === '' || isHash(state.listed));
  if (state.kind === 'absent') return true;
  const { kind, value } = state;
  return kind === 'ref' && (isHash(value) || (/^ref: /.test(value) && BRANCH.test(value.slice(5))));
};

const isPathChange = ({ path, before, after }: PathChange): boolean =>
  isInnerPlace(path) && isFileState(before) && isFileState(after);

const isRefChange = ({ path, before, after }: RefChange): boolean =>
  (path === 'HEAD' || path === 'index' || BRANCH.test(path)) &&
  isRefState(before) &&
  isRefState(after);

/** Whether a manifest of unknown origin has the form of ours, and stays in its workspace. */
const isSound = (manifest: Manifest | null): manifest is Manifest => {
  try {
    return (
      manifest?.version === 1 &&
      ['agent', 'user', 'rewind'].includes(manifest.by) &&
      manifest.changes.every(isPathChange) &&
      (manifest.refs ?? []).every(isRefChange)
    );
  } catch {
    return false; // something that is no object, or no list
  }
};

// ---- The import ----

/** Stores the checkpoints for a session. False if one is not sound: then none is stored. */
export const keepCarried = async (
  store: CheckpointStore,
  sessionId: string,
  { checkpoints, contents }: CarriedFiles,
): Promise<boolean> => {
  const manifests = checkpoints.map(parseManifest);
  if (!manifests.every(isSound)) return false;
  await store.forget(sessionId); // a killed import may have begun a list
  for (const bytes of contents) store.putMany(bytes);
  for (const manifest of manifests) await store.addManifest(sessionId, manifest);
  return true;
};
