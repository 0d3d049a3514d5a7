/**
 * A turn as the stream that chat interfaces of the AI SDK read (`useChat` and the like), version 1
 * of its UI message stream: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol (2026-11-29).
 */

import type { PromptOptions, Session, Turn } from '@pawl/agent';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { isIgnored, type State, turnRuns } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import { clientCallId, findReplyBatch } from '@pawl/agent/session/client-call-ids';
import { reasonText } from '@pawl/agent/session/turn';

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

  constructor(push: (chunk: UiMessageChunk) => void) {
    this.#push = push;
  }

  /**
   * `state`: before the first step. `waits`: if a turn runs, the prompt waits for its end: a
   * `followUp` does, a `steer` joins the running turn.
   */
  begin(state: State, waits: boolean): void {
    if (waits && turnRuns(state)) this.#earlierTurnId = state.session.turn.turnId;
    else if (state.name === 'ExecutingTools') {
      this.#showCalls(
        state.batchId,
        state.calls.map(({ judged }) => judged),
      );
      for (const call of state.calls) {
        const toolCallId = clientCallId(state.batchId, call.judged.callId);
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
      // The step ends the earlier turn, too: of its actions only the request is our turn's.
      actions = actions.filter(({ type }) => type === 'SendLlmRequest');
    }
    if (event.type === 'ReasoningDelta') this.#add('reasoning', event.text);
    for (const action of actions) {
      if (action.type === 'SendLlmRequest') this.#startStep();
      if (action.type === 'DisplayText') this.#add('text', action.text);
      if (action.type === 'RetractPartial') this.#retract();
    }
    if (event.type === 'LlmCompleted') {
      this.#close();
      const batchId = findReplyBatch(stepped);
      if (batchId !== null) this.#showCalls(batchId, event.calls);
    }
    for (const action of actions) {
      if (action.type === 'RequestApproval')
        this.#askApproval(clientCallId(action.batchId, action.call.callId));
      if (action.type === 'DisplayToolResult')
        this.#showResult(clientCallId(action.batchId, action.callId), action.status, action.text);
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

  #showCalls(batchId: string, calls: readonly JudgedCall[]): void {
    for (const { callId, tool, input } of calls)
      this.#push({
        type: 'tool-input-available',
        toolCallId: clientCallId(batchId, callId),
        toolName: tool,
        input,
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

const userTexts = ({ parts }: Message): readonly string[] =>
  parts.flatMap((part) => ('origin' in part && part.origin === 'user' ? [part.text] : []));

/**
 * Whether the running turn is that of this prompt, sent before with the same `requestId`. The state
 * does not say which inputs began a turn, so the texts of the user's last message are compared.
 */
const isInTurn = ({ session }: State, text: string, requestId: string | undefined): boolean =>
  requestId !== undefined &&
  messagesOf(session.conversation)
    .map(userTexts)
    .findLast((texts) => texts.length > 0)
    ?.includes(text) === true;

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
        // `state` answers with the state at its call: the steps until it resolves come after it.
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
