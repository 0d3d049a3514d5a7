import type { Message, UserMessage } from '../agent/message.js';
import { requestMessages } from '../agent/request.js';
import type { Session } from '../agent/state.js';
import type { ModelPiece } from '../needs.js';
import type { Equipment } from './equipment.js';
import { Hearing } from './hearing.js';
import { listen, textOf } from './listen.js';
import type { Post } from './posted.js';
import { priceUsage } from './price.js';
import { attempt } from './wall.js';

export type Compactions = {
  /** Asks for a summary of the first `length` messages. */
  start(compactionId: string, length: number, session: Session): void;
  abort(compactionId: string): void;
  /** Aborts every call; resolves when the last has said what it cost. */
  stopAll(): Promise<void>;
};

/** The messages with the request for the summary at the end, roles still alternating. */
const askForSummary = (messages: readonly Message[], text: string): readonly Message[] => {
  const last = messages.at(-1);
  const ask = { type: 'text', origin: 'note', text } as const;
  const asking: UserMessage = { role: 'user', parts: last?.role === 'user' ? [...last.parts, ask] : [ask] };
  return [...(last?.role === 'user' ? messages.slice(0, -1) : messages), asking];
};

type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

/** What a reply lacks to be a summary, or null. Calls in it are not made. */
const findLack = (reply: Completed): string | null => {
  const { stopReason } = reply;
  if (stopReason !== 'end' && stopReason !== 'toolUse')
    return `it stopped with "${stopReason}" before its end`;
  return textOf(reply) === '' ? 'its reply holds no text' : null;
};

/**
 * Performs StartCompaction and AbortCompaction: one model call. Instructions and tools are those of every request:
 * providers refuse calls and results without the tools that they belong to, and what both begin with is read from the
 * provider's cache.
 */
export const createCompactions = (equipment: Equipment, post: Post): Compactions => {
  const hearing = new Hearing();

  const summarise = async (compactionId: string, length: number, session: Session): Promise<void> => {
    const { settings, conversation } = session;
    const model = equipment.model(settings.model);
    const { prices } = model.facts;
    const listening = listen({
      model,
      request: {
        instructions: equipment.instructions,
        tools: equipment.declarations,
        toolChoice: 'none',
        messages: askForSummary(
          requestMessages(conversation, length, model.id),
          equipment.compactionInstructions,
        ),
      },
      clock: equipment.clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: () => undefined,
      onLateUsage: (tokens) =>
        post({ type: 'UsageReported', usageId: compactionId, usage: priceUsage(tokens, prices) }),
    });
    const ending = await hearing.follow(compactionId, listening);
    if (ending.type === 'aborted') return;
    const usage = ending.usage === null ? null : priceUsage(ending.usage, prices);
    if (ending.type === 'failed') {
      post({ type: 'CompactionFailed', compactionId, message: ending.error.message, usage });
      return;
    }
    const lack = findLack(ending);
    if (lack !== null) {
      const message = `${model.id} wrote no summary: ${lack}`;
      post({ type: 'CompactionFailed', compactionId, message, usage });
    } else {
      const summary = textOf(ending);
      post({ type: 'CompactionCompleted', compactionId, summary, usage: priceUsage(ending.usage, prices) });
    }
  };

  return {
    start(compactionId, length, session) {
      const summarising = attempt(() => summarise(compactionId, length, session)).then((done) => {
        if (done.kind === 'done') return;
        const message = `the summary could not be asked for: ${done.fault.message}`;
        post({ type: 'CompactionFailed', compactionId, message, usage: null });
      });
      hearing.hold(summarising);
    },
    abort: (compactionId) => hearing.abort(compactionId),
    stopAll: () => hearing.stopAll(),
  };
};
