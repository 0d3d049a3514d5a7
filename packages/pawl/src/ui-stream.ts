/**
 * A turn as the stream that chat interfaces of the AI SDK read (`useChat` and the like), version 1
 * of its UI message stream: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol (2026-11-29).
 */

import type { PromptOptions, Session, Turn } from '@pawl/agent';
import type { Call } from '@pawl/agent/machine/call';
import { isIgnored } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session';
import { reasonText } from '@pawl/agent/session/session';

/** One part of the stream; each is sent as JSON in an event of its own. */
export type UiMessageChunk =
  | { readonly type: 'start'; readonly messageId?: string }
  | { readonly type: 'start-step' | 'finish-step' }
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

/** Turns the steps of one turn into chunks. */
class TurnChunks {
  readonly #push: (chunk: UiMessageChunk) => void;
  /** The part of text or reasoning that is open. */
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | null = null;
  #parts = 0;
  #inStep = false;
  #hasText = false;
  /** The calls of this batch were shown. */
  #batchId: string | null = null;

  constructor(push: (chunk: UiMessageChunk) => void) {
    this.#push = push;
  }

  see(stepped: Stepped): void {
    if (isIgnored(stepped)) return;
    const { event, actions, state } = stepped;
    if (event.type === 'ReasoningDelta') this.#add('reasoning', event.text);
    for (const action of actions) {
      if (action.type === 'SendLlmRequest') this.#startStep();
      if (action.type === 'DisplayText') this.#add('text', action.text);
      if (action.type === 'RetractPartial') this.#retract();
    }
    if (event.type === 'LlmCompleted') this.#close();
    if (state.name === 'ExecutingTools' && state.batchId !== this.#batchId) {
      this.#batchId = state.batchId;
      for (const call of state.calls) this.#showCall(state.batchId, call);
    }
    for (const action of actions) {
      if (action.type === 'RequestApproval') {
        const toolCallId = uiCallId(action.batchId, action.call.callId);
        this.#push({ type: 'tool-approval-request', approvalId: toolCallId, toolCallId });
      }
      if (action.type !== 'DisplayToolResult') continue;
      const toolCallId = uiCallId(action.batchId, action.callId);
      const { status, text } = action;
      if (status === 'ok') this.#push({ type: 'tool-output-available', toolCallId, output: text });
      else if (status === 'denied') this.#push({ type: 'tool-output-denied', toolCallId });
      else this.#push({ type: 'tool-output-error', toolCallId, errorText: text });
    }
  }

  /** `turn`: the text of a turn that had ended before is shown as a whole. */
  end(turn: Turn): void {
    if (!this.#hasText && turn.text !== '') this.#add('text', turn.text);
    this.#endStep();
    const { kind } = turn.reason;
    const text = reasonText(turn.reason);
    if (kind === 'cancelled') this.#push({ type: 'abort', reason: text });
    else if (!turn.ok) this.#push({ type: 'error', errorText: text });
    this.#push({ type: 'finish', messageMetadata: { usage: turn.usage } });
  }

  #showCall(batchId: string, { judged }: Call): void {
    this.#push({
      type: 'tool-input-available',
      toolCallId: uiCallId(batchId, judged.callId),
      toolName: judged.tool,
      input: judged.input,
      dynamic: true,
    });
  }

  #startStep(): void {
    this.#endStep();
    this.#inStep = true;
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
    }
    if (kind === 'text') this.#hasText = true;
    this.#push({ type: `${kind}-delta`, id: this.#open.id, delta });
  }

  #close(): void {
    if (this.#open !== null) this.#push({ type: `${this.#open.kind}-end`, id: this.#open.id });
    this.#open = null;
  }

  #retract(): void {
    const open = this.#open;
    this.#close();
    if (open?.kind === 'text') this.#push({ type: 'data-retracted', data: { id: open.id } });
  }
}

/** Models may use the id of a call again in a later reply. */
const uiCallId = (batchId: string, callId: string): string => `${batchId}.${callId}`;

export type UiMessageOptions = PromptOptions & {
  /** Closes the session after the turn. Default: no. */
  readonly close?: boolean;
};

/**
 * Sends a prompt and streams its turn, with the headers that the AI SDK expects. What a reader of
 * the stream misses is not lost: the turn goes on without readers, unless `signal` cancels it, and
 * a repeated `requestId` streams what is left of it, or its answer. The last chunk before `finish`
 * says why a turn has no answer.
 */
export const uiMessageResponse = (
  session: Session,
  text: string,
  { close = false, ...options }: UiMessageOptions = {},
): Response => {
  let isRead = true;
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const push = (chunk: UiMessageChunk): void => {
        if (isRead) controller.enqueue(encodeEvent(JSON.stringify(chunk)));
      };
      const chunks = new TurnChunks(push);
      push({ type: 'start' });
      const unwatch = session.watch((step) => chunks.see(step));
      try {
        const turn = await session.prompt(text, options);
        if (close) await session.close();
        chunks.end(turn);
      } catch (error) {
        push({ type: 'error', errorText: error instanceof Error ? error.message : String(error) });
      }
      unwatch();
      if (!isRead) return;
      controller.enqueue(encodeEvent('[DONE]'));
      controller.close();
    },
    cancel() {
      isRead = false;
    },
  });
  return new Response(body, { headers: HEADERS });
};
