import type { State } from '@pawl/agent/machine/state';
import { turnRuns } from '@pawl/agent/machine/values/turn-running';
import type { Entry } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { attempt } from '@pawl/agent/session/attempt';
import type { NodeRuntime } from '../adapt-runtime-to-node.js';
import { type Approval, approvalsIn } from './pending-approvals.js';

/**
 * One open session as its readers see it: its new entries, read once for all of them, and what is not journaled.
 *
 * 1. A reader can't hold the session or another reader: it is offered everything and keeps nothing here.
 * 2. It ends with the session.
 */

/** One message of a stream as it is sent. `seq`: of a journaled entry; null for deltas and states. */
export type StreamMessage = { readonly seq: number | null; readonly text: string };

export type FeedReader = {
  offer(message: StreamMessage): void;
  /** The session has ended; `fault` is what stopped it. */
  end(fault: Error | null): void;
};

export type SessionStatus = {
  readonly seq: number;
  readonly state: State['name'];
  readonly approvals: readonly Approval[];
};

const messageText = (event: string, value: unknown): string =>
  `event: ${event}\ndata: ${JSON.stringify(value)}\n\n`;

export const entryMessage = (entry: Entry): StreamMessage => ({
  seq: entry.seq,
  text: `id: ${entry.seq}\n${messageText('entry', entry)}`,
});
export const otherMessage = (event: 'delta' | 'state' | 'end', value: unknown): StreamMessage => ({
  seq: null,
  text: messageText(event, value),
});

/** Whether the session works: a turn runs, and does not only wait for answers of a user. */
export const isBusyIn = (state: State, approvals: readonly Approval[]): boolean => {
  if (!turnRuns(state)) return false;
  if (state.name !== 'ExecutingTools' || approvals.length === 0) return true;
  return state.calls.some(({ status }) => status === 'starting' || status === 'running');
};

export class SessionFeed {
  readonly #readers = new Set<FeedReader>();
  readonly #see: (stepped: Stepped) => void;
  readonly #diffs = new Map<string, string>();
  #state: State;
  #seq: number;
  #approvals: readonly Approval[] = [];
  #unwatch = (): void => undefined;
  readonly #entries: AsyncIterator<Entry>;
  /** Resolves when the session has ended, with the error that stopped it. */
  readonly ended: Promise<Error | null>;

  /** `see`: called with every step. */
  constructor(
    runtime: NodeRuntime,
    sessionId: string,
    opened: { readonly seq: number; readonly state: State },
    see: (stepped: Stepped) => void,
  ) {
    this.#state = opened.state;
    this.#seq = opened.seq;
    this.#see = see;
    this.#approvals = approvalsIn(opened.state, this.#diffs);
    this.#unwatch = runtime.watch(sessionId, (stepped) => this.#watch(stepped));
    this.#entries = runtime.read(sessionId, opened.seq + 1)[Symbol.asyncIterator]();
    this.ended = this.#follow();
  }

  /** The last entry that was offered. */
  get seq(): number {
    return this.#seq;
  }

  get isBusy(): boolean {
    return isBusyIn(this.#state, this.#approvals);
  }

  get status(): SessionStatus {
    return { seq: this.#seq, state: this.#state.name, approvals: this.#approvals };
  }

  /** Nobody reads it, and nothing happens unless somebody asks for it. */
  get isQuiet(): boolean {
    return this.#readers.size === 0 && !turnRuns(this.#state);
  }

  /** Lets go of a session that goes on elsewhere. */
  leave(): void {
    this.#unwatch();
    void attempt(async () => this.#entries.return?.()); // its reader has no use for a fault any more
  }

  join(reader: FeedReader): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** Resolves when the session is no longer busy, or has ended. */
  async rest(): Promise<void> {
    if (!this.isBusy) return;
    let leave = (): void => undefined;
    await Promise.race([
      this.ended,
      new Promise<void>((resolve) => {
        leave = this.join({ offer: () => this.isBusy || resolve(), end: () => resolve() });
      }),
    ]);
    leave();
  }

  async #follow(): Promise<Error | null> {
    const entries = { [Symbol.asyncIterator]: () => this.#entries };
    const followed = await attempt(async () => {
      for await (const entry of entries) {
        this.#seq = entry.seq;
        this.#offer(entryMessage(entry));
      }
    });
    this.#unwatch();
    const fault = followed.kind === 'fault' ? followed.fault : null;
    for (const reader of this.#readers) reader.end(fault);
    this.#readers.clear();
    return fault;
  }

  #watch(stepped: Stepped): void {
    const { seq, event, state, actions } = stepped;
    const before = this.#state;
    this.#state = state;
    this.#see(stepped);
    if (seq === null && this.#readers.size > 0) this.#offer(otherMessage('delta', event));
    for (const action of actions)
      if (action.type === 'RequestApproval' && action.diff !== undefined)
        this.#diffs.set(`${action.batchId} ${action.call.callId}`, action.diff);
    if (state === before || (seq === null && state.name === before.name)) return;
    const approvals = approvalsIn(state, this.#diffs);
    if (approvals.length === 0) this.#diffs.clear();
    const isNew = state.name !== before.name || idsOf(approvals) !== idsOf(this.#approvals);
    this.#approvals = approvals;
    if (isNew) this.#offer(otherMessage('state', { ...this.status, seq: seq ?? this.#seq }));
  }

  #offer(message: StreamMessage): void {
    for (const reader of this.#readers) reader.offer(message);
  }
}

const idsOf = (approvals: readonly Approval[]): string =>
  approvals.map(({ batchId, callId }) => `${batchId} ${callId}`).join('\n');
