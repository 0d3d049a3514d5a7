/**
 * The checkpoints of a stored session: what changed files, when, and for which prompt. A checkpoint
 * has a manifest, which names the changed files with their contents before and after, by hash.
 */

import { readForeignUntil } from '@pawl/agent/journal/state-folder';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { ChangeSummary, FileLeft } from '@pawl/agent/machine/event';
import { stateFolder } from '@pawl/agent/platform/environment';
import { callTitle } from '@pawl/agent/policy/judged-call';
import { type FileStates, statesAfter } from '@pawl/agent/workspace/checkpoints/files-at';
import {
  readCheckpoints,
  refuseForeignPlace,
} from '@pawl/agent/workspace/checkpoints/foreign-checkpoints';
import { fileLeft, type Manifest, summarise } from '@pawl/agent/workspace/checkpoints/manifest';
import { CheckpointStore, storeFolder } from '@pawl/agent/workspace/checkpoints/store';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { usageStop } from '../settings/flags.js';
import { findInfo, foldStored, placeOfUser, storedJournals } from './stored-sessions.js';

export type FileStep = {
  /** The sha256 of its manifest. */
  readonly checkpoint: string;
  /** The entry with which the changes had ended: from there on they are in the files. */
  readonly seq: number;
  /** The entry before the changes began: to go back there takes them back. */
  readonly from: number;
  /** When it was taken, in ms since 1970. */
  readonly at: number;
  readonly by: 'agent' | 'user' | 'rewind';
  /** The calls, or what else it was. */
  readonly title: string;
  /** The user's words of the turn. */
  readonly prompt: string;
  readonly changes: ChangeSummary;
  /** It came with an import or a copy. */
  readonly isForeign: boolean;
};

export type FileHistory = {
  readonly sessionId: string;
  readonly workspace: string;
  /** The number of the last entry. */
  readonly seq: number;
  /** The oldest first. */
  readonly steps: readonly FileStep[];
  /** Sentences about files that can't be taken back. */
  readonly leftOut: readonly string[];
  /** Manifests of the steps, in their order; null: gone, or not sound. */
  readonly manifests: readonly (Manifest | null)[];
  readonly store: CheckpointStore;
  /** The last entry that came from elsewhere (`readForeignUntil`). */
  readonly foreignUntil: number;
};

/** Collects the steps that changed files while a journal is folded. */
class HistoryReader {
  readonly steps: FileStep[] = [];
  readonly leftOut: string[] = [];
  /** By batch: the entry before its calls began, and what is known when they have ended. */
  readonly #begins = new Map<string, number>();
  readonly #ends = new Map<string, Pick<FileStep, 'from' | 'seq' | 'title'>>();
  #prompt = '';
  readonly #foreignUntil: number;

  constructor(foreignUntil: number) {
    this.#foreignUntil = foreignUntil;
  }

  /** Takes the next step. The calls of one reply are a batch, and change files together. */
  read({ seq, event, before, state }: JournalStep): void {
    const { conversation, counters } = state.session;
    if (counters.turn > before.session.counters.turn)
      this.#prompt = (conversation.open?.parts ?? [])
        .flatMap((part) => (part.type === 'text' && part.origin === 'user' ? [part.text] : []))
        .join('\n');
    if (state.name === 'ExecutingTools' && !this.#begins.has(state.batchId))
      this.#begins.set(state.batchId, seq - 1);
    if (before.name === 'ExecutingTools' && state.name !== 'ExecutingTools') {
      const { workspace } = before.session.settings;
      const titles = before.calls.map(
        ({ judged }) => `${judged.tool} ${callTitle(judged, workspace)}`,
      );
      const from = this.#begins.get(before.batchId) ?? seq - 1;
      this.#ends.set(before.batchId, { from, seq, title: titles.join('; ') });
    }
    if (event.type === 'CheckpointTaken') {
      const { batchId, checkpoint, by, changes, leftOut } = event;
      this.leftOut.push(...leftOut);
      const end = batchId === null ? undefined : this.#ends.get(batchId);
      const title = by === 'user' ? 'a command of yours' : 'calls of the agent';
      // a command of the user belongs to no batch
      const place = end ?? { from: seq - 1, seq, title };
      const isForeign = seq <= this.#foreignUntil;
      // empty: no content was stored, since all files were left out
      if (checkpoint !== '')
        this.#add({ checkpoint, at: event.at, by, changes, isForeign, ...place });
    }
    if (event.type === 'Rewound' && event.checkpoint !== null && before.name === 'Rewinding') {
      const { checkpoint, changes } = event;
      const isForeign = seq <= this.#foreignUntil;
      const place = { title: 'a rewind', from: seq - 1, seq };
      this.#add({ checkpoint, at: event.at, by: 'rewind', changes, isForeign, ...place });
    }
  }

  #add(step: Omit<FileStep, 'prompt'>): void {
    this.steps.push({ ...step, prompt: this.#prompt });
  }
}

/** Throws a `Stop` if there is no such session of the agent. */
export const readFileHistory = async (prefix: string): Promise<FileHistory> => {
  const { sessionId, kind } = await findInfo(prefix);
  if (kind !== 'agent')
    throw usageStop(
      `${sessionId} is a run of pawl ask: it has no files. pawl sessions lists others.`,
    );
  const folder = stateFolder(process.env);
  const { header } = await storedJournals().replay(sessionId, { at: 0 });
  const foreignUntil = await readForeignUntil(folder, header);
  const reader = new HistoryReader(foreignUntil);
  const { state, seq } = await foldStored(sessionId, undefined, (step) => reader.read(step));
  const { workspace } = state.session.settings;
  const store = new CheckpointStore(storeFolder(folder, workspace));
  const manifests: (Manifest | null)[] = [];
  const steps: FileStep[] = [];
  for (const step of reader.steps) {
    const { manifest, changes } = await readStep(store, workspace, step);
    manifests.push(manifest);
    steps.push({ ...step, changes });
  }
  const leftOut = [...new Set(reader.leftOut)];
  return { sessionId, workspace, seq, steps, leftOut, manifests, store, foreignUntil };
};

/** The manifest of a step. The changes of a foreign one are those of the manifest. */
const readStep = async (
  store: CheckpointStore,
  workspace: string,
  { checkpoint, isForeign, changes }: FileStep,
): Promise<{ readonly manifest: Manifest | null; readonly changes: ChangeSummary }> => {
  const { named } = await readCheckpoints({ store, workspace, environment: process.env }, [
    { id: checkpoint, isForeign },
  ]);
  const [manifest = null] = named;
  // An event of this computer is trusted, one from elsewhere only if no manifest says better.
  const usesRecorded = manifest === null || !isForeign;
  return {
    manifest,
    changes: usesRecorded ? changes : await summarise(store, manifest.changes, 'all'),
  };
};

/**
 * A session from elsewhere names its folder itself. Its files may be used only if that is the
 * folder where the user stands, and not the home. Throws a `Stop` otherwise.
 */
export const refuseForeign = (foreignUntil: number, workspace: string): void => {
  if (foreignUntil === 0) return;
  const standsIn = placeOfUser(foreignUntil, workspace);
  const why = refuseForeignPlace({ workspace, standsIn, environment: process.env });
  if (why !== null) throw new Stop(exitCodes.usage, 'usage', why);
};

/** The files at a checkpoint, for a copy. */
export type HistoryCopies = {
  /** How the files were after so many checkpoints. */
  after(count: number): FileStates;
  /** Files that are copied as they are now: what a checkpoint from elsewhere has is refused. */
  readonly untouched: readonly FileLeft[];
};

/** Throws a `Stop` if the session's folder may not be copied, or a checkpoint was removed. */
export const openCopies = async (history: FileHistory): Promise<HistoryCopies> => {
  const { workspace, steps, store, foreignUntil } = history;
  refuseForeign(foreignUntil, workspace);
  refusePruned(history);
  const named = steps.map(({ checkpoint: id, isForeign }) => ({ id, isForeign }));
  // `history.manifests` are for showing; these lack what may not be written to a copy
  const { manifests: usable, untouched } = await readCheckpoints(
    { store, workspace, environment: process.env },
    named,
  );
  return {
    after: (count) => statesAfter(usable, count),
    untouched: [...untouched].map(([name, why]) => fileLeft(name, why)),
  };
};

/** How many checkpoints are in the files at an entry. */
export const stepsUntil = ({ steps }: FileHistory, seq: number): number =>
  steps.filter((step) => step.seq <= seq).length;

/** Throws a `Stop` if a content that a comparison or a copy needs was removed. */
export const refusePruned = ({ sessionId, manifests }: FileHistory): void => {
  const missing = manifests.filter((manifest) => manifest === null).length;
  if (missing === 0) return;
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    `${missing} of ${manifests.length} checkpoints of ${sessionId} are no longer stored: they were ` +
      'removed to save room, or the session comes from elsewhere. pawl checkpoints lists what is kept.',
  );
};
