/**
 * Checkpoints that came from elsewhere: with an import, or in a copied state folder. Anybody may
 * have written them, and the journal that names them.
 *
 * 1. Every reader gets them by `readCheckpoints`. One that is not sound counts as missing. Files
 *    that other programs obey, links that lead out, HEAD, branches and the index stay as they are.
 * 2. The journal names a folder, but only the user says where files are written: where they stand,
 *    and never in a home (`refuseForeignPlace`).
 */

import path from 'node:path';
import type { FileLeft } from '../../machine/event.js';
import { dataFolder, type ProcessEnvironment } from '../../platform/environment.js';
import { isWithin } from '../../platform/files.js';
import {
  findProtection,
  mayBeProtected,
  protectionInWorkspace,
  type UserPlaces,
} from '../../policy/paths.js';
import type { NamedCheckpoint } from '../../ports/checkpoints.js';
import { readUserPlaces } from '../../secrets/user-places.js';
import {
  type ChangeOrigin,
  type FileState,
  fileLeft,
  type Manifest,
  type PathChange,
  type RefChange,
  type RefState,
  showName,
  UNOWNED,
} from './manifest.js';
import type { CheckpointStore } from './store.js';

const NO_MANIFEST =
  'a checkpoint is not here: it was removed to save room, or an export left it out: pawl checkpoints';
const UNSOUND = 'a checkpoint from elsewhere is refused: it names what none may name';
const OBEYED = 'other programs obey it, and this change comes from elsewhere';
const LEADS_OUT =
  'the link leads out of the workspace or to a protected place, and comes from elsewhere';
const REF_STAYS = 'git obeys it, and this change comes from elsewhere';
/** Why a file stays in a folder that `refuseForeignPlace` refuses. */
export const NOT_HERE = 'the session comes from elsewhere, and is not taken back in this folder';

/** Checkpoints as they may be used: the oldest first, without those that are missing. */
export type ReadCheckpoints = {
  /** With all that they name. */
  readonly named: readonly Manifest[];
  /** Without the paths that stay. */
  readonly manifests: readonly Manifest[];
  /** Paths that no rewind and no copy touches, and why; `.`: a whole checkpoint. */
  readonly untouched: ReadonlyMap<string, string>;
  /** Those of git, which count only where refs are asked for. */
  readonly untouchedRefs: readonly FileLeft[];
};

/** A session's folder, a real absolute path, and where its checkpoints are. */
type CheckpointPlace = {
  readonly store: CheckpointStore;
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
};

/** Reads checkpoints of a session. */
export const readCheckpoints = async (
  { store, workspace, environment }: CheckpointPlace,
  checkpoints: readonly NamedCheckpoint[],
): Promise<ReadCheckpoints> => {
  const userPlaces = checkpoints.some((one) => one.isForeign) ? readUserPlaces(environment) : null;
  const named: Manifest[] = [];
  const untouched = new Map<string, string>();
  let hasForeign = false;
  for (const { id, isForeign } of checkpoints) {
    const manifest = await store.manifest(id);
    const isUsable = manifest !== null && (!isForeign || isSound(manifest));
    if (!isUsable) {
      untouched.set('.', manifest === null ? NO_MANIFEST : UNSOUND);
      continue;
    }
    named.push(manifest);
    if (!isForeign || userPlaces === null) continue;
    hasForeign = true;
    for (const change of manifest.changes) {
      const why = whyLeft(workspace, change, userPlaces);
      if (why !== null) untouched.set(change.path, why);
    }
  }
  // also in later checkpoints from here: before their changes stands what came from elsewhere
  const manifests = named.map(
    ({ changes, refs, ...manifest }): Manifest => ({
      ...manifest,
      changes:
        untouched.size === 0 ? changes : changes.filter((change) => !untouched.has(change.path)),
      ...(refs === undefined || hasForeign ? {} : { refs }),
    }),
  );
  const refs = new Set(
    hasForeign ? named.flatMap((one) => one.refs ?? []).map((one) => one.path) : [],
  );
  const untouchedRefs = [...refs].map((ref) => fileLeft(ref, REF_STAYS));
  return { named, manifests, untouched, untouchedRefs };
};

/** Why a change that came from elsewhere is refused; null: it may happen. */
const whyLeft = (
  workspace: string,
  { path: place, before, after }: PathChange,
  userPlaces: UserPlaces,
): string | null => {
  const name = showName(place);
  const isObeyed = (inside: string): boolean =>
    protectionInWorkspace(workspace, path.join(workspace, inside), userPlaces) !== null;
  if (isObeyed(name)) return OBEYED;
  for (const state of [before, after]) {
    if (state.kind !== 'link') continue;
    // a link that becomes the first folder of a protected path
    if (name.split('/').some(mayBeProtected)) return OBEYED;
    const target = innerTarget(name, showName(state.target));
    if (target === null || isObeyed(target)) return LEADS_OUT;
  }
  return null;
};

/**
 * Where a link leads, from the workspace on; null if it may lead out. `..` counts only at its
 * beginning: after a name, which may be a link itself, it leads anywhere.
 */
const innerTarget = (name: string, target: string): string | null => {
  if (path.isAbsolute(target) || target.includes('\\')) return null;
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const inner = parts.findIndex((part) => !DOTS.test(part));
  const isMixed = inner >= 0 && parts.slice(inner).some((part) => DOTS.test(part));
  const joined = path.join(path.dirname(name), target);
  return isMixed || joined.split('/').some((part) => DOTS.test(part) && part !== '.')
    ? null
    : joined;
};

// ---- The place ----

/** Whether the workspace is a home, holds one, or holds files that Pawl obeys. */
const isHome = (workspace: string, environment: ProcessEnvironment): boolean => {
  const { home, obeyed } = readUserPlaces(environment);
  // a folder such as ~/.config or ~/.local/bin is a part of the home: programs obey it
  const [first = ''] = path.relative(home, workspace).split(path.sep);
  if (isWithin(workspace, home) && first.startsWith('.')) return true;
  return [home, dataFolder(environment), ...obeyed].some((place) => isWithin(place, workspace));
};

/** Where files of a session from elsewhere are to be written. */
export type ForeignPlace = {
  /** The session's folder: real absolute path. */
  readonly workspace: string;
  /** Where the user stands, or the folder that the user has named: real absolute path. */
  readonly standsIn: string;
  readonly environment: ProcessEnvironment;
};

/** Why files of a session from elsewhere stay as they are there, and what to do instead. */
export const refuseForeignPlace = ({
  workspace,
  standsIn,
  environment,
}: ForeignPlace): string | null => {
  if (isHome(workspace, environment))
    return (
      `The session comes from elsewhere, and ${workspace} is your home, or holds files that your ` +
      'programs obey. Its files are not taken back, copied or tried there. pawl diff ID --at 0.. ' +
      'shows its changes: make those that you want yourself.'
    );
  if (workspace === standsIn) return null;
  return (
    `The session comes from elsewhere, and its journal names the folder ${workspace}, not yours. ` +
    'Its files are taken back, copied and tried only in the folder where you stand. If that one ' +
    'is yours, go there and try again.'
  );
};

// ---- The form of a manifest ----

const isHash = (value: unknown): boolean =>
  typeof value === 'string' && /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(value);

/** `.` and `..`, also where a file system ignores blanks, dots or invisible characters. */
const DOTS = /^[\s.\p{Default_Ignorable_Code_Point}]*$/u;

/** Whether a name stays in the workspace and out of git folders, in every spelling of them. */
const isInnerPlace = (name: unknown): boolean =>
  typeof name === 'string' &&
  // a character is a byte: of a larger one only the last byte would count
  /^[\x01-\xff]+$/.test(name) &&
  !name.includes('\\') &&
  showName(name)
    .split('/')
    .every((part) => !DOTS.test(part) && findProtection(part)?.path !== '.git');

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

const ORIGINS: readonly (ChangeOrigin | undefined)[] = ['tool', 'commands', UNOWNED, undefined];

const isPathChange = ({ path, before, after, origin }: PathChange): boolean =>
  isInnerPlace(path) && isFileState(before) && isFileState(after) && ORIGINS.includes(origin);

const isTime = ({ fromMs, toMs }: NonNullable<Manifest['ran']>): boolean =>
  Number.isFinite(fromMs) && Number.isFinite(toMs);

const isRefChange = ({ path, before, after }: RefChange): boolean =>
  (path === 'HEAD' || path === 'index' || BRANCH.test(path)) &&
  isRefState(before) &&
  isRefState(after);

/** Whether a manifest of unknown origin has the form of ours, and stays in its workspace. */
export const isSound = (manifest: Manifest | null): manifest is Manifest => {
  try {
    return (
      manifest?.version === 1 &&
      ['agent', 'user', 'rewind'].includes(manifest.by) &&
      manifest.changes.every(isPathChange) &&
      (manifest.ran === undefined || isTime(manifest.ran)) &&
      (manifest.refs ?? []).every(isRefChange)
    );
  } catch {
    return false; // something that is no object, or no list
  }
};
