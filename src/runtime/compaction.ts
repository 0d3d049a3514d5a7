import type { Message, UserMessage } from '../agent/message.js';
import { requestMessages } from '../agent/request.js';
import type { Session } from '../agent/state.js';
import type { ModelPiece } from '../needs.js';
import type { Equipment } from './equipment.js';
import { type Listening, listen } from './listen.js';
import type { Post } from './posted.js';
import { priceUsage } from './price.js';
import { attempt } from './wall.js';

export type Compactions = {
  /** Asks for a summary of the first `length` messages. */
  start(compactionId: string, length: number, session: Session): void;
  abort(compactionId: string): void;
  abortAll(): void;
};

const ASK = {
  type: 'text',
  origin: 'note',
  text: 'Stop here. Do not go on with the task: write the summary that your instructions describe, and nothing else.',
} as const;

/** The messages with the request for the summary at the end, roles still alternating. */
const askForSummary = (messages: readonly Message[]): readonly Message[] => {
  const last = messages.at(-1);
  const asking: UserMessage = { role: 'user', parts: last?.role === 'user' ? [...last.parts, ASK] : [ASK] };
  return [...(last?.role === 'user' ? messages.slice(0, -1) : messages), asking];
};

type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

const summaryOf = (reply: Completed): string =>
  reply.parts
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
    .trim();

/** A summary that was cut by the output limit is still one; a refusal is not. */
const isSummary = (reply: Completed): boolean =>
  summaryOf(reply) !== '' && (reply.stopReason === 'end' || reply.stopReason === 'maxTokens');

/** Performs StartCompaction and AbortCompaction: one model call without tools. */
export const createCompactions = (equipment: Equipment, post: Post): Compactions => {
  const open = new Map<string, Listening>();

  const summarise = async (compactionId: string, length: number, session: Session): Promise<void> => {
    const { settings, conversation } = session;
    const model = equipment.model(settings.model);
    const { prices } = model.facts;
    const listening = listen({
      model,
      request: {
        instructions: equipment.compactionInstructions,
        tools: [],
        messages: askForSummary(requestMessages(conversation, length, model.id)),
      },
      clock: equipment.clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: () => undefined,
      onLateUsage: (tokens) =>
        post({ type: 'UsageReported', usageId: compactionId, usage: priceUsage(tokens, prices) }),
    });
    open.set(compactionId, listening);
    const ending = await listening.ended;
    if (open.get(compactionId) === listening) open.delete(compactionId);
    if (ending.type === 'aborted') return;
    const usage = ending.usage === null ? null : priceUsage(ending.usage, prices);
    if (ending.type === 'failed') {
      post({ type: 'CompactionFailed', compactionId, message: ending.error.message, usage });
    } else if (isSummary(ending)) {
      const summary = summaryOf(ending);
      post({ type: 'CompactionCompleted', compactionId, summary, usage: priceUsage(ending.usage, prices) });
    } else {
      const message = `${model.id} wrote no summary (it stopped with "${ending.stopReason}")`;
      post({ type: 'CompactionFailed', compactionId, message, usage });
    }
  };

  return {
    start(compactionId, length, session) {
      void attempt(() => summarise(compactionId, length, session)).then((done) => {
        if (done.kind === 'done') return;
        const message = `the summary could not be asked for: ${done.fault.message}`;
        post({ type: 'CompactionFailed', compactionId, message, usage: null });
      });
    },
    abort: (compactionId) => open.get(compactionId)?.abort(),
    abortAll() {
      for (const listening of open.values()) listening.abort();
    },
  };
};
