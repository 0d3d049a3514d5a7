/**
 * A turn as the stream that chat interfaces of the AI SDK read (`useChat` and the like), version 1
 * of its UI message stream: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol (2026-11-29).
 */

import type { PromptOptions, Session, Turn } from '@pawl/agent';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message, UserText } from '@pawl/agent/machine/message';
import { type In, isIgnored, type State, turnRuns } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Stepped } from '@pawl/agent/ports/session';
import { reasonText } from '@pawl/agent/session/session';

/** One part of the stream; each is sent as JSON in an event of its own. */
export type UiMessageChunk =
  | { readonly type: 'start' | 'start-step' | 'finish-step' }
  | { readonly type: 'text-start' | 'text-end'; readonly id: string }
  | { readonly type: 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  /** The text of this part is no part of the answer: the request is sent again. */
  | { readonly type: 'data-retracted'; readonly data: { readonly id: string } }
  | {
      readonly type: 'tool-input-available';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly dynamic: true;
    }
  | {
      readonly type: 'tool-approval-request';
      readonly approvalId: string;
      readonly toolCallId: string;
    }
  | { readonly type: 'tool-output-available'; readonly toolCallId: string; readonly output: string }
  | { readonly type: 'tool-output-error'; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'abort'; readonly reason: string }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'finish'; readonly messageMetadata?: unknown };

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
  'x-vercel-ai-ui-message-stream': 'v1',
};

const encoder = new TextEncoder();
const encodeEvent = (text: string): Uint8Array => encoder.encode(`data: ${text}\n\n`);

/** Turns the steps of the turn of a prompt into chunks. */
class TurnChunks {
  readonly #push: (chunk: UiMessageChunk) => void;
  /** A turn that ends before that of the prompt begins; null if none does. */
  #earlierTurnId: string | null = null;
  /** The part of text or reasoning that is open. */
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | null = null;
  #parts = 0;
  /** The parts of text of the last request. */
  #texts: string[] = [];
  #inStep = false;
  #hasText = false;
  /** The calls of this batch were shown. */
  #batchId: string | null = null;

  constructor(push: (chunk: UiMessageChunk) => void) {
    this.#push = push;
  }

  /** `state`: before the first step. `waits`: the prompt waits for the end of a running turn. */
  begin(state: State, waits: boolean): void {
    if (waits && turnRuns(state)) this.#earlierTurnId = state.session.turn.turnId;
    else if (state.name === 'ExecutingTools') {
      this.#showBatch(state);
      for (const call of state.calls) {
        const toolCallId = uiCallId(state.batchId, call.judged.callId);
        if (call.status === 'awaitingApproval') this.#askApproval(toolCallId);
        else if ('outcome' in call) this.#showResult(toolCallId, call.status, call.outcome.text);
      }
    }
  }

  see(stepped: Stepped): void {
    if (isIgnored(stepped)) return;
    const { event, state } = stepped;
    let { actions } = stepped;
    if (this.#earlierTurnId !== null) {
      if (state.session.turn.turnId === this.#earlierTurnId) return;
      this.#earlierTurnId = null;
      // this step ends the earlier turn, too
      actions = actions.filter(({ type }) => type === 'SendLlmRequest');
    }
    if (event.type === 'ReasoningDelta') this.#add('reasoning', event.text);
    for (const action of actions) {
      if (action.type === 'SendLlmRequest') this.#startStep();
      if (action.type === 'DisplayText') this.#add('text', action.text);
      if (action.type === 'RetractPartial') this.#retract();
    }
    if (event.type === 'LlmCompleted') this.#close();
    if (state.name === 'ExecutingTools') this.#showBatch(state);
    for (const action of actions) {
      if (action.type === 'RequestApproval')
        this.#askApproval(uiCallId(action.batchId, action.call.callId));
      if (action.type === 'DisplayToolResult')
        this.#showResult(uiCallId(action.batchId, action.callId), action.status, action.text);
    }
  }

  /**
   * `turn`: null if it is not known how it ended. `fault`: why not, or why the session could not be
   * closed; null if all went well.
   */
  end(turn: Turn | null, fault: string | null): void {
    // no text: a repeated `requestId` whose turn had ended before shows its answer as a whole
    if (turn !== null && turn.text !== '' && !this.#hasText) this.#add('text', turn.text);
    this.#endStep();
    if (turn !== null && !turn.ok) {
      const text = reasonText(turn.reason);
      if (turn.reason.kind === 'cancelled') this.#push({ type: 'abort', reason: text });
      else this.#push({ type: 'error', errorText: text });
    }
    if (fault !== null) this.#push({ type: 'error', errorText: fault });
    this.#push({
      type: 'finish',
      ...(turn === null ? {} : { messageMetadata: { usage: turn.usage } }),
    });
  }

  #showBatch({ batchId, calls }: In<'ExecutingTools'>): void {
    if (batchId === this.#batchId) return;
    this.#batchId = batchId;
    for (const { judged } of calls)
      this.#push({
        type: 'tool-input-available',
        toolCallId: uiCallId(batchId, judged.callId),
        toolName: judged.tool,
        input: judged.input,
        dynamic: true,
      });
  }

  #askApproval(toolCallId: string): void {
    this.#push({ type: 'tool-approval-request', approvalId: toolCallId, toolCallId });
  }

  #showResult(toolCallId: string, status: string, text: string): void {
    if (status === 'ok') this.#push({ type: 'tool-output-available', toolCallId, output: text });
    else if (status === 'denied') this.#push({ type: 'tool-output-denied', toolCallId });
    else this.#push({ type: 'tool-output-error', toolCallId, errorText: text });
  }

  #startStep(): void {
    this.#endStep();
    this.#inStep = true;
    this.#texts = [];
    this.#push({ type: 'start-step' });
  }

  #endStep(): void {
    this.#close();
    if (this.#inStep) this.#push({ type: 'finish-step' });
    this.#inStep = false;
  }

  #add(kind: 'text' | 'reasoning', delta: string): void {
    if (this.#open?.kind !== kind) {
      this.#close();
      this.#open = { kind, id: `part-${++this.#parts}` };
      this.#push({ type: `${kind}-start`, id: this.#open.id });
      if (kind === 'text') this.#texts.push(this.#open.id);
    }
    if (kind === 'text') this.#hasText = true;
    this.#push({ type: `${kind}-delta`, id: this.#open.id, delta });
  }

  #close(): void {
    if (this.#open !== null) this.#push({ type: `${this.#open.kind}-end`, id: this.#open.id });
    this.#open = null;
  }

  #retract(): void {
    this.#close();
    for (const id of this.#texts) this.#push({ type: 'data-retracted', data: { id } });
    this.#texts = [];
  }
}

/** Whether the turn that runs is that of a prompt which was sent before. */
const isInTurn = ({ session }: State, text: string, requestId: string | undefined): boolean =>
  requestId !== undefined &&
  messagesOf(session.conversation)
    .flatMap<Message['parts'][number]>(({ parts }) => parts)

    .findLast((part): part is UserText => 'origin' in part && part.origin === 'user')?.text ===
    text;

/** Models may use the id of a call again in a later reply. */
const uiCallId = (batchId: string, callId: string): string => `${batchId}.${callId}`;

export type UiMessageOptions = PromptOptions & {
  /** Closes the session after the turn. Default: no. */
  readonly close?: boolean;
};

/**
 * Sends a prompt and streams its turn, with the headers that the AI SDK expects. What a reader of
 * the stream misses is not lost: the turn goes on without readers, unless `signal` cancels it, and
 * a repeated `requestId` streams what is left of it, or its answer. `finish` is always the last
 * chunk; the one before it says why a turn has no answer, or that the session could not be closed.
 */
export const uiMessageResponse = (
  session: Session,
  text: string,
  { close = false, ...options }: UiMessageOptions = {},
): Response => {
  let hasReader = true;
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const push = (chunk: UiMessageChunk): void => {
        if (hasReader) controller.enqueue(encodeEvent(JSON.stringify(chunk)));
      };
      const chunks = new TurnChunks(push);
      push({ type: 'start' });
      let turn: Turn | null = null;
      let unwatch = (): void => undefined;
      const played = await attempt(async () => {
        const early: Stepped[] = [];
        let see = (step: Stepped): void => void early.push(step);
        unwatch = session.watch((step) => see(step));
        const state = await session.state();
        const { mode, requestId } = options;
        chunks.begin(state, mode === 'followUp' && !isInTurn(state, text, requestId));
        see = (step) => chunks.see(step);
        for (const step of early) see(step);
        turn = await session.prompt(text, options);
        if (close) await session.close();
      });
      unwatch();
      chunks.end(turn, played.kind === 'fault' ? played.fault.message : null);
      if (!hasReader) return;
      controller.enqueue(encodeEvent('[DONE]'));
      controller.close();
    },
    cancel() {
      hasReader = false;
    },
  });
  return new Response(body, { headers: HEADERS });
};
