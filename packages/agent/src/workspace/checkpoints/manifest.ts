/**
 * A manifest: a checkpoint as it is stored. It has each path that a batch of calls, the user or a
 * rewind changed since the checkpoint before, how it was before the change, and how it was after.
 *
 * Names: paths in the workspace and link targets are bytes, each as one character (latin1), since
 * they may be no UTF-8.
 */

import { diffArrays } from 'diff';
import type { ChangedPath, ChangeSummary, FileLeft } from '../../machine/event.js';
import type { ChangedBy } from '../../ports/checkpoints.js';

export type FileState =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'file';
      readonly sha256: string;
      readonly bytes: number;
      readonly mode: number;
    }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'folder'; readonly mode: number }
  /** Something was there whose content is not kept. */
  | { readonly kind: 'notKept'; readonly why: string };

/** The stored word for a change that nobody is known to own: it was seen after the calls. */
export const UNOWNED = 'after';

/**
 * Who may have changed a path. `tool`: a tool for files of the session, or a rewind. `commands`: a
 * command of the session or anybody else, while it ran. UNOWNED: somebody changed it between calls
 * or when they had just ended, perhaps after a command did: no rewind takes it back.
 */
export type ChangeOrigin = 'tool' | 'commands' | typeof UNOWNED;

/** `path`: relative to the workspace. */
export type PathChange = {
  readonly path: string;
  readonly before: FileState;
  readonly after: FileState;
  /** Missing: an earlier version did not record it, or the user changed it. */
  readonly origin?: ChangeOrigin;
  /** It counts as a call's, but no call is known to have run at that time. */
  readonly unsure?: true;
};

/**
 * `value`: a commit, or `ref: ` and a branch. `sha256`: the hash of the index file. `listed`: the
 * hash of what the index lists, which stays while only times of files change; empty: not known.
 */
export type RefState =
  | { readonly kind: 'absent' }
  | { readonly kind: 'ref'; readonly value: string }
  | { readonly kind: 'index'; readonly sha256: string; readonly listed: string };

/** `path`: `HEAD`, `index` or the full name of a branch. */
export type RefChange = {
  readonly path: string;
  readonly before: RefState;
  readonly after: RefState;
};

/** A checkpoint, as it is stored. */
export type Manifest = {
  readonly version: 1;
  readonly by: ChangedBy;
  /** One after the other: a path may have several. */
  readonly changes: readonly PathChange[];
  /** Missing: none changed. */
  readonly refs?: readonly RefChange[];
  /** When the changes were made, in ms since 1970. Missing: an earlier version stored it. */
  readonly ran?: { readonly fromMs: number; readonly toMs: number };
  /** The session whose task this one is. Missing: none. */
  readonly parent?: string;
  /**
   * HEAD went to another branch, or to a commit that does not follow the one before, or the stash
   * changed: contents may come from there, so auto-commit leaves what commands changed alone.
   */
  readonly mixed?: true;
  /** None of its calls may change git folders, so what was staged meanwhile is somebody else's. */
  readonly readsGit?: true;
  /**
   * Its calls are those of a killed process. True: a command ran when it was killed; false: none
   * did.
   */
  readonly killed?: boolean;
  /**
   * Paths that were committed, or went back to an earlier content, since the checkpoint before:
   * their changes up to this checkpoint no longer count as the session's (own-changes.ts).
   */
  readonly settled?: readonly string[];
};

/** A store of contents, by sha256. */
type Contents = { get(sha256: string): Promise<Buffer | null> };

export const ABSENT = { kind: 'absent' } as const;

/** A name as people read it. */
export const showName = (name: string): string => Buffer.from(name, 'latin1').toString('utf8');

/** The name of a path of Node. */
export const toName = (text: string): string => Buffer.from(text).toString('latin1');

/** Whether two states are certainly the same; each is made with its fields in the same order. */
export const isSameState = (one: FileState, other: FileState): boolean =>
  one.kind !== 'notKept' && JSON.stringify(one) === JSON.stringify(other);

/** The bytes that are stored; their sha256 is the name of the checkpoint. */
export const encodeManifest = (manifest: Manifest): Buffer => Buffer.from(JSON.stringify(manifest));

/** Null if it is no manifest. */
export const parseManifest = (bytes: Buffer): Manifest | null => {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof value !== 'object' || value === null || !('changes' in value)) return null;
    // the store gives only bytes that fit their hash; those of an import were checked
    return value as Manifest;
  } catch {
    return null; // the caller says that it is missing
  }
};

/** The contents that a change needs. */
export const listContents = ({ before, after }: PathChange | RefChange): readonly string[] =>
  [before, after].flatMap((state) =>
    state.kind === 'file' || state.kind === 'index' ? [state.sha256] : [],
  );

/** The contents that a manifest needs. */
export const keptObjects = ({ changes, refs = [] }: Manifest): readonly string[] =>
  [...changes, ...refs].flatMap(listContents);

/** Whether nobody knows whose it is, so that no rewind takes it back. */
export const isUnowned = ({ origin }: PathChange): boolean => origin === UNOWNED;

/** How a path was before and after each of its changes. */
export const statesIn = (manifest: Manifest | null | undefined, name: string): FileState[] =>
  (manifest?.changes ?? [])
    .filter(({ path }) => path === name)
    .flatMap(({ before, after }) => [before, after]);

// ---- Several checkpoints together ----

/** What is to be undone of one path. `left`: why it does not go back all the way; null: it does. */
type Target<State> = Change<State> & { readonly left: string | null };
type Change<State> = {
  readonly path: string;
  readonly before: State;
  readonly after: State;
  readonly origin?: ChangeOrigin;
};
type Changes<State> = { readonly by: ChangedBy; readonly changes: readonly Change<State>[] };

const BETWEEN = 'somebody else changed it in between, so it goes back only to that';

/**
 * The origin of two changes as one: a command's if one of them is, a tool's only if both are, and
 * otherwise not recorded.
 */
const joinOrigins = (
  one: ChangeOrigin | undefined,
  other: ChangeOrigin | undefined,
): ChangeOrigin | undefined => (one === 'tool' || other === 'commands' ? other : one);

/**
 * The checkpoints' changes as one: how each path is expected to be now (`after`), and how it was
 * before the first of them.
 */
export const composeChanges = <State>(
  manifests: readonly Changes<State>[],
  isSame: (one: State, other: State) => boolean,
): readonly Target<State>[] => {
  const targets = new Map<string, Target<State>>();
  /** Paths that go back no further, from the newest change to the oldest. */
  const broken = new Set<string>();
  for (const { by, changes } of manifests.toReversed())
    for (const { path, before, after, origin } of changes.toReversed()) {
      const later = targets.get(path);
      // the changes of rewinds count like the agent's
      if (by === 'user' || origin === UNOWNED) {
        // the user's change stays, and what the agent did before it can't be separated from it
        if (later !== undefined) broken.add(path);
        continue;
      }
      const known = origin === undefined ? {} : { origin };
      if (later === undefined) targets.set(path, { path, before, after, ...known, left: null });
      else if (broken.has(path) || !isSame(after, later.before)) {
        broken.add(path);
        targets.set(path, { ...later, left: BETWEEN });
      } else {
        const joined = joinOrigins(later.origin, origin);
        const { origin: _, ...rest } = later;
        targets.set(path, { ...rest, before, ...(joined === undefined ? {} : { origin: joined }) });
      }
    }
  return [...targets.values()];
};

// ---- For people ----

const LISTED_MAX = 20;
const TEXT_BYTES_MAX = 200_000;

const readLines = async (store: Contents, state: FileState): Promise<readonly string[] | null> => {
  if (state.kind === 'absent') return [];
  if (state.kind !== 'file' || state.bytes > TEXT_BYTES_MAX) return null;
  const bytes = await store.get(state.sha256);
  if (bytes === null || bytes.includes(0)) return null;
  return bytes
    .toString('utf8')
    .split('\n')
    .filter((line, index, lines) => index < lines.length - 1 || line !== '');
};

/** How many lines were added and removed; none for files that are no text, or too different. */
const lineCounts = async (
  store: Contents,
  { before, after }: PathChange,
): Promise<Pick<ChangedPath, 'added' | 'removed'>> => {
  const [old, now] = [await readLines(store, before), await readLines(store, after)];
  if (old === null || now === null) return {};
  const parts = diffArrays([...old], [...now], { maxEditLength: 5_000 });
  if (parts === undefined) return {};
  const sum = (kind: 'added' | 'removed'): number =>
    parts.reduce((total, part) => total + (part[kind] ? part.value.length : 0), 0);
  return { added: sum('added'), removed: sum('removed') };
};

const changeKind = ({ before, after }: PathChange): ChangedPath['change'] => {
  if (before.kind === 'absent') return 'created';
  return after.kind === 'absent' ? 'deleted' : 'changed';
};

/** Whether a command ran meanwhile, so that somebody else may have changed the path. */
export const isDuringCommands = ({ origin }: PathChange): boolean => origin === 'commands';

/** The changes of the calls, one a path. */
const joinPaths = (changes: readonly PathChange[]): readonly PathChange[] => {
  const joined = new Map<string, PathChange>();
  for (const change of changes) {
    if (isUnowned(change)) continue;
    const { origin: earlier, before } = joined.get(change.path) ?? change;
    const origin = joinOrigins(earlier, change.origin);
    const { path, after } = change;
    joined.set(path, { path, before, after, ...(origin === undefined ? {} : { origin }) });
  }
  return [...joined.values()].filter(({ before, after }) => !isSameState(before, after));
};

/**
 * Counts the changed files. Lists the first of them, or all; the first ones have the numbers of
 * their lines. Neither counts folders, since people look for their files, nor what changed after
 * the calls, since nobody knows whose it is.
 */
export const summarise = async (
  store: Contents,
  changes: readonly PathChange[],
  names: 'first' | 'all' = 'first',
): Promise<ChangeSummary> => {
  const files = joinPaths(changes).filter(
    ({ before, after }) => before.kind !== 'folder' && after.kind !== 'folder',
  );
  const number = (kind: ChangedPath['change']): number =>
    files.filter((change) => changeKind(change) === kind).length;
  const during = files.filter(isDuringCommands).length;
  const sorted = [...files].sort((one, other) => (one.path < other.path ? -1 : 1));
  const listed: ChangedPath[] = [];
  for (const [index, change] of sorted.entries()) {
    if (index >= LISTED_MAX && names === 'first') break;
    listed.push({
      path: showName(change.path),
      change: changeKind(change),
      ...(isDuringCommands(change) ? { duringCommands: 'yes' as const } : {}),
      ...(index < LISTED_MAX ? await lineCounts(store, change) : {}),
    });
  }
  return {
    created: number('created'),
    changed: number('changed'),
    deleted: number('deleted'),
    ...(during === 0 ? {} : { duringCommands: during }),
    files: listed,
  };
};

/** A file that stays as it is, with the reason. */
export const fileLeft = (path: string, why: string): FileLeft => ({ path: showName(path), why });
