/** Keeps what calls change: tells the checkpoints of the workspace when calls begin and end. */

import type { RewindEvent } from '../machine/event.js';
import { attempt } from '../platform/attempt.js';
import { plural } from '../platform/text.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { Checkpoints, Restored } from '../ports/checkpoints.js';
import type { Post } from './loop.js';

/** Calls that may have changed files since the last checkpoint. `batchId`: null: the user's. */
type Ended = { readonly batchId: string | null; readonly calls: JudgedCall[] };

const NOTHING_CHANGED = { created: 0, changed: 0, deleted: 0, files: [] } as const;

type Taken = Extract<RewindEvent, { readonly type: 'CheckpointTaken' }>;

const LISTED_MAX = 10;

const list = (texts: readonly string[], total: number): string => {
  const more = total - Math.min(texts.length, LISTED_MAX);
  const shown = texts.slice(0, LISTED_MAX).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
};

/** What the model has to know about its files; null: they are as its conversation says. */
const noteOf = ({ changes, left }: Restored, keepsConversation: boolean): string | null => {
  const { created, changed, deleted, files } = changes;
  const total = created + changed + deleted;
  const paths = files.map(({ path }) => path);
  const back =
    keepsConversation && total > 0
      ? [
          `The user took back changes of ${plural(total, 'file')}: ${list(paths, total)}. Read ` +
            'them again before you edit.',
        ]
      : [];
  const reasons = left.map(({ path, why }) => `${path} (${why})`);
  const stay =
    left.length === 0
      ? []
      : [`The user took back earlier work; as it was stays: ${list(reasons, left.length)}.`];
  const texts = [...back, ...stay];
  return texts.length === 0 ? null : texts.join(' ');
};

const lostText = ({ message }: Error): string =>
  `What these calls changed can’t be taken back, or not all of it: ${message}`;

const whenAborted = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) resolve();
    signal?.addEventListener('abort', () => resolve(), { once: true });
  });

export class CheckpointRuns {
  readonly #checkpoints: Checkpoints | null;
  readonly #post: Post;
  readonly #hasJobs: () => boolean;
  #ended: Ended | null = null;
  #since: 'lastCheckpoint' | 'crash' | undefined;
  /** Why files could not be kept before the last calls. */
  #unkept: Error | null = null;
  /** Ends when all checkpoints are taken, and their events are applied. */
  #settled: Promise<void> = Promise.resolve();

  /** `hasJobs`: whether commands run in the background. */
  constructor(checkpoints: Checkpoints | null, post: Post, hasJobs: () => boolean) {
    this.#checkpoints = checkpoints;
    this.#post = post;
    this.#hasJobs = hasJobs;
  }

  get checkpoints(): Checkpoints | null {
    return this.#checkpoints;
  }

  /** Before a call takes effect; `batchId` is null for a command of the user. A cancel ends it. */
  async before(
    batchId: string | null,
    call: JudgedCall | null,
    signal?: AbortSignal,
  ): Promise<void> {
    const checkpoints = this.#checkpoints;
    if (checkpoints === null || (call !== null && !call.traits.mutating)) return;
    // of a killed process, or of another batch
    const isOther = this.#since === 'crash' || this.#ended?.batchId !== batchId;
    if (isOther) await Promise.race([this.settle(), whenAborted(signal)]);
    this.#ended ??= { batchId, calls: [] };
    if (call !== null) this.#ended.calls.push(call);
    const looked = attempt(() => checkpoints.before(call)).then((before) => {
      if (before.kind === 'fault') this.#unkept = before.fault;
    });
    await Promise.race([looked, whenAborted(signal)]);
  }

  /** Calls of an earlier process may have changed files. `batchId`: of its last batch. */
  expect(batchId: string): void {
    if (this.#checkpoints === null) return;
    this.#ended ??= { batchId, calls: [] };
    this.#since = 'crash';
  }

  /** Takes the checkpoint of calls that have ended. Resolves when it is in the journal. */
  settle(): Promise<void> {
    const [ended, checkpoints] = [this.#ended, this.#checkpoints];
    if (ended === null || checkpoints === null) return this.#settled;
    this.#ended = null;
    const since = this.#since;
    this.#since = this.#hasJobs() ? 'lastCheckpoint' : undefined;
    const taking = this.#take(checkpoints, ended, since);
    this.#settled = Promise.all([this.#settled, taking]).then(() => undefined);
    return this.#settled;
  }

  async #take(
    checkpoints: Checkpoints,
    { batchId, calls }: Ended,
    since: 'lastCheckpoint' | 'crash' | undefined,
  ): Promise<void> {
    const by = batchId === null ? 'user' : 'agent';
    const taken = await attempt(() =>
      checkpoints.take({ by, calls, ...(since === undefined ? {} : { since }) }),
    );
    if (taken.kind === 'fault')
      return this.#tell({
        checkpoint: '',
        by,
        batchId,
        changes: NOTHING_CHANGED,
        leftOut: [lostText(taken.fault)],
      });
    const unkept = this.#unkept;
    this.#unkept = null;
    if (taken.value === null && unkept === null) return;
    const value = taken.value ?? { checkpoint: '', changes: NOTHING_CHANGED, leftOut: [] };
    const leftOut = unkept === null ? value.leftOut : [...value.leftOut, lostText(unkept)];
    await this.#tell({ ...value, leftOut, by, batchId });
    await attempt(() => checkpoints.recorded()); // told once more after a kill
  }

  /** Resolves when the event is applied, or the session has ended. */
  #tell(taken: Omit<Taken, 'type' | 'at'>): Promise<void> {
    return new Promise((resolve) => {
      this.#post({ type: 'CheckpointTaken', ...taken }, () => resolve());
      setTimeout(resolve, 1_000).unref(); // a session that is over takes no event
    });
  }

  /** Performs RestoreFiles. Never rejects; always posts its end. */
  async restore(rewindId: string, plan: string, keepsConversation: boolean): Promise<void> {
    const restored = await attempt(async () => {
      if (this.#checkpoints === null) throw new Error('this session keeps no checkpoints');
      return this.#checkpoints.restore(plan);
    });
    const outcome =
      restored.kind === 'done'
        ? restored.value
        : {
            checkpoint: null,
            changes: NOTHING_CHANGED,
            left: [{ path: '.', why: restored.fault.message }],
          };
    const note = noteOf(outcome, keepsConversation);
    this.#post({ type: 'Rewound', rewindId, ...outcome, note });
  }

  async close(): Promise<void> {
    await attempt(() => this.#checkpoints?.close());
  }
}
