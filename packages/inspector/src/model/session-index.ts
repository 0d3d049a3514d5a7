/**
 * What the page looks up by message, call and turn; `seq` is the number of an entry, a line of the
 * journal. `SessionIndex` collects it from the steps, each of which it reads once: a session
 * of n entries costs O(n). Before it stand the types of its records.
 */

import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Action } from '@pawl/agent/machine/action';
import type { ChangeSummary } from '@pawl/agent/machine/event';
import type { Message } from '@pawl/agent/machine/message';
import { type State, turnRuns } from '@pawl/agent/machine/state';
import { callTitle, type JudgedCall } from '@pawl/agent/policy/judged-call';
import { SessionClock } from '../figures/session-figures.js';

export type CallEnd = {
  readonly seq: number;
  readonly at: number;
  readonly status: string;
  /** A unified diff; null for a call that reported none. */
  readonly diff: string | null;
};

/** The life of one call of a tool. */
export type CallLife = {
  readonly batchId: string;
  readonly callId: string;
  readonly tool: string;
  /** In a few words for people; may be empty. */
  readonly title: string;
  readonly effect: JudgedCall['traits']['effect'];
  /** Entries of its `ToolStarted`: more than one if it was started again after an interruption. */
  readonly starts: { readonly seq: number; readonly at: number }[];
  /** When the user was asked. */
  askedAt: number | null;
  end: CallEnd | null;
};

/** Where a message came into the conversation. `batchId`: of its calls or results, or null. */
export type MessageRecord = {
  readonly seq: number;
  readonly at: number;
  readonly batchId: string | null;
};

export type TurnRecord = {
  readonly seq: number;
  readonly at: number;
  /** The user's words; empty for a turn that a hook or a retry began. */
  readonly prompt: string;
  /** The entry at which it returned to the user; null while it runs. */
  endSeq: number | null;
};

/** A call in a few words: the tool and its title. */
export const callName = ({ tool, title }: Pick<CallLife, 'tool' | 'title'>): string =>
  title === '' ? tool : `${tool} ${title}`;

/** `from`, `to`: the entries between which the files changed. */
export type BatchChanges = ChangeSummary & { readonly from: number; readonly to: number };

/** Call `addStep` for every step, from the first on. */
export class SessionIndex {
  readonly turns: TurnRecord[] = [];
  readonly messages = new WeakMap<Message, MessageRecord>();
  /** By `batch/call`. */
  readonly calls = new Map<string, CallLife>();
  /** What batches changed in files, by their ids. */
  readonly changes = new Map<string, BatchChanges>();
  readonly #clock = new SessionClock();
  /** The time on the session's axis after each entry. */
  readonly #elapsed: number[] = [0];
  /** The calls of the last reply are a batch: its id, and the entry with which it began. */
  #batchId: string | null = null;
  #batchSeq = 0;

  addStep(step: JournalStep): void {
    this.#clock.advance(step.event.at);
    this.#elapsed.push(this.#clock.elapsed);
    this.#noteBatch(step);
    this.#noteEvent(step);
    for (const action of step.actions) this.#noteAction(action, step);
    this.#noteMessages(step);
    this.#noteTurn(step);
  }

  /** The place of an entry on the axis of the session, in milliseconds since its first event. */
  msAt(seq: number): number {
    return this.#elapsed[Math.min(seq, this.#elapsed.length - 1)] ?? 0;
  }

  call(batchId: string, callId: string): CallLife | undefined {
    return this.calls.get(`${batchId}/${callId}`);
  }

  #noteBatch({ seq, state }: JournalStep): void {
    if (state.name !== 'ExecutingTools' || state.batchId === this.#batchId) return;
    const { batchId, session } = state;
    this.#batchId = batchId;
    this.#batchSeq = seq;
    for (const { judged } of state.calls) {
      const { callId, tool, traits } = judged;
      const title = callTitle(judged, session.settings.workspace);
      const about = { tool, title, effect: traits.effect };
      this.calls.set(`${batchId}/${callId}`, newRecord(batchId, callId, about));
    }
  }

  #noteEvent({ event, seq }: JournalStep): void {
    const { at } = event;
    if (event.type === 'ToolStarted')
      this.call(event.batchId, event.callId)?.starts.push({ seq, at });
    if (event.type === 'CheckpointTaken' && event.by === 'agent' && event.batchId !== null)
      this.changes.set(event.batchId, { ...event.changes, from: this.#batchSeq, to: seq });
  }

  #noteAction(action: Action, { seq, event: { at } }: JournalStep): void {
    if (action.type === 'RequestApproval') {
      const call = this.call(action.batchId, action.call.callId);
      if (call !== undefined) call.askedAt ??= at;
    }
    if (action.type !== 'DisplayToolResult') return;
    const { batchId, callId, tool, status, title = '', diff } = action;
    // Calls that all end at once (denied, invalid) are a batch that no state shows.
    this.#batchId = batchId;
    const key = `${batchId}/${callId}`;
    const call = this.calls.get(key) ?? newRecord(batchId, callId, { tool, title, effect: 'pure' });
    this.calls.set(key, call);
    call.end ??= { seq, at, status, diff };
  }

  #noteMessages({ event, seq, before, state }: JournalStep): void {
    const [old, now] = [before.session.conversation, state.session.conversation];
    if (old === now) return;
    const batchId = this.#batchId;
    const { open } = now;
    if (event.type === 'LlmCompleted') {
      const reply = now.closed.at(now.closed.length - 1);
      const calls = reply?.parts.some(({ type }) => type === 'call') === true;
      if (reply !== undefined && !this.messages.has(reply))
        this.messages.set(reply, { seq, at: event.at, batchId: calls ? batchId : null });
    }
    if (open === null || open === old.open) return;
    const results = open.parts[0]?.type === 'result';
    this.messages.set(open, { seq, at: event.at, batchId: results ? batchId : null });
  }

  #noteTurn({ event, seq, before, state }: JournalStep): void {
    const last = this.turns.at(-1);
    if (state.session.counters.turn > before.session.counters.turn) {
      if (last !== undefined) last.endSeq ??= seq - 1;
      const endSeq = turnRuns(state) ? null : seq; // it may end in the step in which it began
      this.turns.push({ seq, at: event.at, prompt: userTexts(state), endSeq });
    } else if (last !== undefined && turnRuns(before) && !turnRuns(state)) last.endSeq = seq;
  }
}

const userTexts = ({ session }: State): string =>
  (session.conversation.open?.parts ?? [])
    .flatMap((part) => (part.type === 'text' && part.origin === 'user' ? [part.text] : []))
    .join('\n');

const newRecord = (
  batchId: string,
  callId: string,
  about: Pick<CallLife, 'tool' | 'title' | 'effect'>,
): CallLife => ({
  batchId,
  callId,
  ...about,
  starts: [],
  askedAt: null,
  end: null,
});
