/**
 * Plans what a rewind does with files and refs: it composes the changes of the checkpoints that are
 * to be taken back, and leaves what somebody else has changed. A plan is stored, so that it can be
 * performed again after a kill. Planning changes no file.
 */

import type { FileLeft } from '../../machine/event.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import type {
  DescribedCheckpoints,
  FileVersion,
  NamedCheckpoint,
  RestorePlan,
  RestoreRequest,
} from '../../ports/checkpoints.js';
import { findClaims } from './claims.js';
import { lookAt, readState } from './file-entries.js';
import {
  NOT_HERE,
  type ReadCheckpoints,
  readCheckpoints,
  refuseForeignPlace,
} from './foreign-checkpoints.js';
import { describeRef, type GitStates, isSameRef } from './git-state.js';
import {
  composeChanges,
  type FileState,
  fileLeft,
  isSameState,
  isUnowned,
  type Manifest,
  type PathChange,
  showName,
  statesIn,
  summarise,
  toName,
} from './manifest.js';
import { CHANGED_SINCE, type Plan } from './restore.js';
import type { CheckpointStore } from './store.js';

const DURING_COMMANDS = 'it changed while a command ran';
const UNRECORDED = 'an earlier version did not record what changed it';
const REMOVED_AFTER =
  'it was removed between calls or when they had just ended, nobody knows by whom';

/** Why a file can't be as a checkpoint has it; null: it can. */
const whyNotBack = (version: FileState | undefined, now: FileState): string | null => {
  if (version === undefined) return 'the checkpoint does not have it';
  if (version.kind === 'notKept') return version.why;
  if (now.kind === 'notKept') return now.why;
  return now.kind === 'folder' ? 'a folder is there now' : null;
};

export type RewindPlace = {
  /** Real absolute path. */
  readonly workspace: string;
  /** Where the user stands: real absolute path. Absent: in the workspace. */
  readonly standsIn?: string;
  readonly sessionId: string;
  /** The session whose task this one is: the two don't count as others. */
  readonly parent?: string | undefined;
  readonly stateFolder: string;
  readonly environment: ProcessEnvironment;
};

type Target = ReturnType<typeof composeChanges<FileState>>[number];

/** Why a path stays as it is; null: it goes back. `claimed`: the session that changed it too. */
const whyStays = (
  { before, after, origin }: Target,
  now: FileState,
  claimed: string | null,
  { force, editsOnly = false }: RestoreRequest,
): string | null => {
  if (before.kind === 'notKept') return before.why;
  if (now.kind === 'notKept') return now.why;
  if (claimed !== null) return `the session ${claimed} changed it too`;
  if (editsOnly && origin !== 'tool') return origin === 'commands' ? DURING_COMMANDS : UNRECORDED;
  return force || isSameState(now, after) ? null : CHANGED_SINCE;
};

export class RewindPlans {
  readonly #place: RewindPlace;
  readonly #store: CheckpointStore;
  readonly #gitStates: GitStates;

  constructor(place: RewindPlace, store: CheckpointStore, gitStates: GitStates) {
    this.#place = place;
    this.#store = store;
    this.#gitStates = gitStates;
  }

  #read(checkpoints: readonly NamedCheckpoint[]): Promise<ReadCheckpoints> {
    const { workspace, environment } = this.#place;
    return readCheckpoints({ store: this.#store, workspace, environment }, checkpoints);
  }

  /** Why no file goes back in this folder; null: files may. */
  #refuse(checkpoints: readonly NamedCheckpoint[]): string | null {
    const isForeign = checkpoints.some((checkpoint) => checkpoint.isForeign);
    const standsIn = this.#place.workspace;
    return isForeign ? refuseForeignPlace({ standsIn, ...this.#place }) : null;
  }

  /** How a path is now. Its content is stored, since it is going to be replaced. */
  #readNow(name: string): Promise<FileState> {
    return readState(this.#place.workspace, name, (bytes) => this.#store.put(bytes));
  }

  /** Stores a plan, unless it changes nothing. */
  async #finish({
    changes,
    refs = [],
    left,
  }: Omit<Plan, 'version' | 'workspace'>): Promise<RestorePlan> {
    const { workspace } = this.#place;
    const movedRefs = refs.length === 0 ? {} : { refs };
    const plan: Plan = { version: 1, workspace, changes, ...movedRefs, left };
    const isEmpty = changes.length === 0 && refs.length === 0;
    return {
      plan: isEmpty ? null : await this.#store.put(Buffer.from(JSON.stringify(plan))),
      refusal: null,
      changes: await summarise(this.#store, changes, 'all'),
      left,
      refs: refs.map(describeRef),
    };
  }

  async describe(checkpoints: readonly NamedCheckpoint[]): Promise<DescribedCheckpoints | null> {
    const { named, manifests, untouched } = await this.#read(checkpoints);
    if (manifests.length === 0) return null;
    const changes = await summarise(this.#store, composeChanges(named, isSameState), 'all');
    return { changes, untouched: [...untouched].map(([name, why]) => fileLeft(name, why)) };
  }

  async planFile({ checkpoint, path: shown, at }: FileVersion): Promise<RestorePlan> {
    const { manifests, untouched } = await this.#read([checkpoint]);
    const name = toName(shown);
    const version = statesIn(manifests[0], name)[at];
    const now = await this.#readNow(name);
    const refusal = this.#refuse([checkpoint]);
    const why = refusal === null ? (untouched.get(name) ?? whyNotBack(version, now)) : NOT_HERE;
    if (why !== null)
      return { ...(await this.#finish({ changes: [], left: [fileLeft(name, why)] })), refusal };
    const isSame = version === undefined || isSameState(version, now);
    const changes = isSame ? [] : [{ path: name, before: now, after: version }];
    return this.#finish({ changes, left: [] });
  }

  async plan(request: RestoreRequest): Promise<RestorePlan> {
    const { takeBack, refs: wantsRefs } = request;
    const { manifests, untouched, untouchedRefs } = await this.#read(takeBack);
    const stay: FileLeft[] = [...untouched].map(([name, why]) => fileLeft(name, why));
    const targets = composeChanges(manifests, isSameState).filter(
      ({ path: name }) => !untouched.has(name),
    );
    const refusal = this.#refuse(takeBack);
    if (refusal !== null) {
      stay.push(...targets.map(({ path: name }) => fileLeft(name, NOT_HERE)));
      return { ...(await this.#finish({ changes: [], left: stay })), refusal };
    }
    const changes = await this.#planFiles(targets, manifests, request, stay);
    if (!wantsRefs) return this.#finish({ changes, left: stay });
    // the last change of a list counts first, and HEAD goes back before the index
    const lists = manifests.map(({ by, refs = [] }) => ({ by, changes: refs.toReversed() }));
    const refs = await this.#gitStates.plan(composeChanges(lists, isSameRef));
    stay.push(...refs.left, ...untouchedRefs);
    return this.#finish({ changes, refs: refs.changes, left: stay });
  }

  /** Which files go back. The others are added to `stay`. */
  async #planFiles(
    targets: readonly Target[],
    manifests: readonly Manifest[],
    request: RestoreRequest,
    stay: FileLeft[],
  ): Promise<readonly PathChange[]> {
    const { workspace, stateFolder } = this.#place;
    const findClaim = await findClaims(this.#store, stateFolder, this.#place, manifests);
    const changes: PathChange[] = [];
    for (const target of targets) {
      const { path: name, before, origin, left: whyNotAll } = target;
      const now = await this.#readNow(name);
      if (isSameState(now, before)) continue;
      const why = whyStays(target, now, findClaim(target), request);
      const isFolder = before.kind === 'folder' || now.kind === 'folder';
      if (why === null)
        changes.push({ ...(origin && { origin }), path: name, before: now, after: before });
      // a folder that stays because of `editsOnly` is not named: the files in it are
      else if (!isFolder || (why !== DURING_COMMANDS && why !== UNRECORDED))
        stay.push(fileLeft(name, why));
      if (whyNotAll !== null) stay.push(fileLeft(name, whyNotAll));
    }
    const unowned = manifests.flatMap((manifest) => manifest.changes.filter(isUnowned));
    const told = new Set([
      ...changes.map((one) => showName(one.path)),
      ...stay.map((one) => one.path),
    ]);
    for (const name of new Set(unowned.map((change) => change.path)))
      if (!told.has(showName(name)) && lookAt(workspace, name) === null)
        stay.push(fileLeft(name, REMOVED_AFTER));
    return changes;
  }
}
