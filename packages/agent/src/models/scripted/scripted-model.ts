import type { ModelError } from '../../machine/event.js';
import type { AssistantText, ReasoningPart } from '../../machine/message.js';
import type { Clock } from '../../ports/clock.js';
import type { Model, ModelFacts, ModelPiece, ModelRequest, RawCall } from '../../ports/model.js';
import { createCursor } from './choose-reply.js';
import { callIdOf, isAnswer, rawInputOf, type Script, type ScriptedReply } from './script.js';
import { findUnmet } from './script-expectations.js';
import { createRules } from './script-rules.js';

/**
 * A model that answers from a script: docs/scripted-model.md.
 *
 * 1. Nothing is random, and only `delayMs` takes time.
 * 2. A request that the script does not foresee gets a failed reply that says so, never an invented answer.
 */

const NO_TOKENS = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const PIECE_LENGTH = 24;

const facts: ModelFacts = {
  windowTokens: 128_000,
  outputTokensMax: 8_192,
  thinking: 'no',
  tools: 'yes',
  prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  source: 'the scripted model costs nothing',
};

export type ScriptedOptions = {
  /** Default `scripted/script`. */
  readonly id?: string;
  /** Clock for `delayMs`; default the system's. */
  readonly clock?: Pick<Clock, 'after'>;
};

const systemClock: Pick<Clock, 'after'> = {
  after(delayMs, ring) {
    const timer = setTimeout(ring, delayMs);
    return () => clearTimeout(timer);
  },
};

const cutUp = (text: string): readonly string[] =>
  text.match(new RegExp(`[\\s\\S]{1,${PIECE_LENGTH}}`, 'gu')) ?? [];

/** Resolves after the delay, or when the signal is aborted; a null delay waits for the abort. */
const wait = (clock: Pick<Clock, 'after'>, delayMs: number | null, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const cancel = delayMs === null ? () => undefined : clock.after(delayMs, end);
    signal.addEventListener('abort', end, { once: true });
    function end(): void {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    }
  });

const failed = (message: string, error: Partial<ModelError> = {}): ModelPiece => ({
  type: 'failed',
  error: { kind: 'badRequest', message, retryable: false, retryAfterMs: null, ...error },
  usage: null,
});

const RETRYABLE: ReadonlySet<ModelError['kind']> = new Set([
  'rateLimited',
  'overloaded',
  'unreachable',
  'timeout',
]);

const failAsTold = ({ fail, cut }: ScriptedReply): ModelPiece | null => {
  if (cut) return failed('the script cuts this reply off', { kind: 'unreachable', retryable: true });
  if (fail === undefined) return null;
  const { kind, message = `the script fails with ${kind}`, retryAfterMs = null } = fail;
  return failed(message, { kind, retryable: RETRYABLE.has(kind), retryAfterMs });
};

const complete = (reply: ScriptedReply, number: number): ModelPiece => {
  const parts: (AssistantText | ReasoningPart | RawCall)[] = [];
  if (reply.reasoning) parts.push({ type: 'reasoning', text: reply.reasoning });
  if (reply.text) parts.push({ type: 'text', text: reply.text });
  const calls = reply.calls ?? [];
  for (const [index, call] of calls.entries()) {
    parts.push({
      type: 'call',
      callId: callIdOf(call, number, index),
      tool: call.tool,
      rawInput: rawInputOf(call),
    });
  }
  const stopReason = reply.stopReason ?? (calls.length > 0 ? 'toolUse' : 'end');
  return { type: 'completed', parts, stopReason, usage: { ...NO_TOKENS, ...reply.usage } };
};

function* streamed(reply: ScriptedReply): Generator<ModelPiece> {
  for (const text of cutUp(reply.reasoning ?? '')) yield { type: 'reasoning', text };
  for (const text of cutUp(reply.text ?? '')) yield { type: 'text', text };
  if (!isAnswer(reply)) return;
  for (const call of reply.calls ?? []) {
    for (const text of cutUp(rawInputOf(call))) yield { type: 'toolCall', tool: call.tool, text };
  }
}

/** A model that gives one reply of a script per request. Keep one model for a whole session. */
export const scriptedModel = (script: Script, options: ScriptedOptions = {}): Model => {
  const { id = 'scripted/script', clock = systemClock } = options;
  const next = createCursor(script.replies);
  const ruled = createRules(script.rules);

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPiece> {
    const rule = ruled(request.messages);
    if (rule !== undefined) return yield* give(rule, 0, signal);
    const found = next(request.messages);
    if (found.kind === 'exhausted') {
      return yield failed(
        `${id}: the script is at its end: it has ${script.replies.length} replies, and one more was asked for`,
      );
    }
    const { reply, number } = found;
    const unmet = findUnmet(reply.expect, request);
    if (unmet !== null) return yield failed(`${id}, reply ${number}: ${unmet}`);
    yield* give(reply, number, signal);
  }

  async function* give(
    reply: ScriptedReply,
    number: number,
    signal: AbortSignal,
  ): AsyncGenerator<ModelPiece> {
    for (const piece of streamed(reply)) {
      if (reply.delayMs !== undefined) await wait(clock, reply.delayMs, signal);
      if (signal.aborted) return;
      yield piece;
    }
    if (reply.stall) return wait(clock, null, signal);
    yield failAsTold(reply) ?? complete(reply, number);
  }

  return { id, facts: { ...facts, ...script.facts }, canAbort: 'yes', stream };
};
