/**
 * Changes that other sessions in the same workspace claim. Two sessions in one folder look at the
 * same files: what a tool of one wrote while a command of the other ran is in both checkpoints.
 *
 * 1. All changes of another session to a path count as one. One that leads to the state before our
 *    change came earlier, and a rewind keeps it.
 * 2. What our tool wrote is ours, also where another session saw it change during its command.
 * 3. While a call of another session runs, the files that it names are claimed; while a command
 *    runs, everything that may have changed with it.
 */

import { isLockedAnywhere } from '../../journal/lock.js';
import { lockPath } from '../../journal/state-folder.js';
import { CLOCK_LAG_MS } from './attribution.js';
import { readRunning } from './batch.js';
import {
  type FileState,
  isSameState,
  type Manifest,
  type PathChange,
  UNOWNED,
} from './manifest.js';
import { type CheckpointStore, listNames, sessionsIn } from './store.js';

/** What one session did to a path: how it was before, and how it is; null: not known yet. */
type Claim = {
  readonly before: FileState | null;
  readonly after: FileState | null;
  readonly isByTool: boolean;
};

/** Changes of the session that asks, to one path. */
type AskedChange = OwnChange & {
  /** How the path was before and after each of the changes. */
  readonly states: readonly FileState[];
  /** When the last of them was over at the latest; infinite if that is not known. */
  readonly toMs: number;
};

type OwnChange = Pick<PathChange, 'path' | 'before' | 'origin'>;

/** The session that asks, and the one whose task it is. */
type Asking = { readonly sessionId: string; readonly parent?: string | undefined };

class Claims {
  readonly #bySession = new Map<string, Map<string, Claim>>();
  /** Sessions of which a command runs, and since when. */
  readonly #running = new Map<string, number>();

  /** The session that claims a change; null: none does. */
  find(change: AskedChange): string | null {
    for (const [sessionId, claims] of this.#bySession) {
      const claim = claims.get(change.path);
      if (claim !== undefined && isInTheWay(claim, change)) return sessionId;
    }
    if (change.origin === 'tool') return null;
    for (const [sessionId, fromMs] of this.#running) if (change.toMs >= fromMs) return sessionId;
    return null;
  }

  /** Adds an earlier change of a session. */
  add(sessionId: string, path: string, { before, after, isByTool }: Claim): void {
    const claims = this.#bySession.get(sessionId) ?? new Map<string, Claim>();
    this.#bySession.set(sessionId, claims);
    const later = claims.get(path);
    claims.set(path, {
      before,
      after: later === undefined ? after : later.after,
      isByTool: isByTool || later?.isByTool === true,
    });
  }

  addRunning(sessionId: string, fromMs: number): void {
    this.#running.set(sessionId, fromMs);
  }
}

const isInTheWay = ({ before, after, isByTool }: Claim, change: AskedChange): boolean => {
  if (after === null) return true;
  // the other session took its change back, or our change came later
  if (before !== null && isSameState(before, after)) return false;
  if (isSameState(after, change.before)) return false;
  // by rule 2 it is no claim that their command saw what our tool wrote
  const isOurs = change.states.some((state) => isSameState(state, after));
  return isByTool || change.origin !== 'tool' || !isOurs;
};

/** Reads what other sessions changed since that time, and what their calls may be changing. */
const readClaims = async (
  store: CheckpointStore,
  stateFolder: string,
  asking: Asking,
  sinceMs: number,
): Promise<Claims> => {
  const claims = new Claims();
  const family = asking.parent ?? asking.sessionId;
  const isOther = (sessionId: string, parent = sessionId): boolean =>
    sessionId !== asking.sessionId && parent !== family && sessionId !== family;
  // what runs first: what ends meanwhile is then in a checkpoint
  for (const name of await listNames(`${store.folder}/sessions`)) {
    const [, sessionId] = /^(.+)\.calls$/.exec(name) ?? [];
    const running = sessionId === undefined ? null : await readRunning(store, sessionId);
    // of what is `taken` the manifest tells
    if (sessionId === undefined || running === null || running.taken !== null) continue;
    if (!isOther(sessionId, running.parent)) continue;
    for (const [path] of running.known)
      claims.add(sessionId, path, { before: null, after: null, isByTool: true });
    const { commandsFromMs } = running;
    if (commandsFromMs !== undefined && (await isLockedAnywhere(lockPath(stateFolder, sessionId))))
      claims.addRunning(sessionId, commandsFromMs);
  }
  for (const { sessionId, usedAtMs } of await sessionsIn(store.folder))
    if (usedAtMs >= sinceMs && isOther(sessionId))
      for await (const { by, changes, parent } of manifestsSince(store, sessionId, sinceMs))
        for (const { path, before, after, origin } of changes.toReversed())
          if (
            isOther(sessionId, parent) &&
            after.kind !== 'folder' &&
            before.kind !== 'folder' &&
            origin !== UNOWNED
          )
            claims.add(sessionId, path, {
              before,
              after,
              isByTool: origin === 'tool' && by !== 'user',
            });
  return claims;
};

/** The manifests of a session that were taken since then, the last first. */
async function* manifestsSince(
  store: CheckpointStore,
  sessionId: string,
  sinceMs: number,
): AsyncGenerator<Manifest> {
  for (const sha256 of (await store.listed(sessionId)).toReversed()) {
    const manifest = await store.manifest(sha256);
    if (manifest?.ran === undefined) continue; // an earlier version stored it: it names no time
    if (manifest.ran.toMs < sinceMs) return;
    yield manifest;
  }
}

/** Finds the session that claims a change of these checkpoints; null: none does. */
export const findClaims = async (
  store: CheckpointStore,
  stateFolder: string,
  asking: Asking,
  manifests: readonly Manifest[],
): Promise<(change: OwnChange) => string | null> => {
  if (manifests.length === 0) return () => null;
  const sinceMs = Math.min(...manifests.map(({ ran }) => ran?.fromMs ?? 0)) - CLOCK_LAG_MS;
  const claims = await readClaims(store, stateFolder, asking, sinceMs);
  const own = new Map<string, { readonly states: FileState[]; toMs: number }>();
  for (const { changes, ran } of manifests)
    for (const { path, before, after } of changes) {
      const { states } = own.get(path) ?? { states: [] };
      own.set(path, {
        states: [...states, before, after],
        toMs: ran?.toMs ?? Number.POSITIVE_INFINITY,
      });
    }
  return (change) =>
    claims.find({ ...change, ...(own.get(change.path) ?? { states: [], toMs: 0 }) });
};
