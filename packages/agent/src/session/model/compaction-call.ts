import type { Action } from '../../machine/action.js';
import { estimateTokens, messagesOf } from '../../machine/conversation.js';
import type { Message, UserMessage } from '../../machine/message.js';
import type { State } from '../../machine/state.js';
import { type HookVerdicts, hookNotes } from '../../machine/values/hook-verdict.js';
import { requestMessages } from '../../machine/values/request-messages.js';
import type { Model } from '../../ports/model.js';
import { attempt } from '../attempt.js';
import type { Equipment } from '../dependency-types.js';
import type { Post } from '../posted-event-types.js';
import { denialIn, type UserHookRuns } from '../user-hooks/user-hook-runs.js';
import { type KeepingNeeds, withKept } from './preserved-context.js';
import { priceUsage, UNKNOWN_USAGE } from './price-usage.js';
import { OpenRequests, type ReplyEnding, readStream, textOf } from './read-stream.js';
import { withoutImages } from './request-images.js';
import { fitMessages } from './shorten-for-summary.js';

type Start = Extract<Action, { readonly type: 'StartCompaction' }>;

export type Compactions = {
  /** Asks for a summary of the first `length` messages. */
  start(task: Start, state: State): void;
  abort(compactionId: string): void;
  /** Aborts every call. Resolves when the last one has reported its usage. */
  stopAll(): Promise<void>;
};

/** What hooks say, for the event that ends a compaction. */
type Told = { readonly hooks?: HookVerdicts };

type Summaries = Omit<Compactions, 'start'> & { start(task: Start, state: State, told: Told): void };

/** The messages followed by the request for the summary. Roles still alternate. */
const askForSummary = (messages: readonly Message[], text: string): readonly Message[] => {
  const last = messages.at(-1);
  const ask = { type: 'text', origin: 'note', text } as const;
  const asking: UserMessage = { role: 'user', parts: last?.role === 'user' ? [...last.parts, ask] : [ask] };
  return [...(last?.role === 'user' ? messages.slice(0, -1) : messages), asking];
};

type Completed = Extract<ReplyEnding, { readonly type: 'completed' }>;

/** Why a reply can't be used as a summary, or null. Tool calls in it are not run. */
const findLack = (reply: Completed): string | null => {
  const { stopReason } = reply;
  if (stopReason !== 'end' && stopReason !== 'toolUse')
    return `it stopped with "${stopReason}" before its end`;
  return textOf(reply) === '' ? 'its reply holds no text' : null;
};

const CHARACTERS_PER_TOKEN = 4;
/** Largest share of the context window for a summary. */
const SUMMARY_SHARE = 1 / 8;
/** Limit for the user's words that are kept verbatim. */
const KEPT_BYTES_MAX = 8_192;
/** Smallest context window to assume for any model. */
const WINDOW_TOKENS_MIN = 4_000;
/** Upper bound for measured tokens per estimated token. A larger ratio does not come from text. */
const TOKENS_PER_ESTIMATED_MAX = 2;

/**
 * How many estimated tokens the messages of the request may have. The estimate is corrected by the measured size of the
 * conversation. If the provider has just refused the request as too large, half the window is assumed.
 */
const roomFor = (state: State, model: Model, besides: string): number => {
  const { settings, conversation, contextTokens } = state.session;
  const refused =
    state.name === 'Compacting' && state.mode.kind === 'overflow' && contextTokens < settings.windowTokens;
  const windowTokens = refused ? Math.max(WINDOW_TOKENS_MIN, contextTokens / 2) : settings.windowTokens;
  const besidesTokens = besides.length / CHARACTERS_PER_TOKEN;
  const estimated = estimateTokens(messagesOf(conversation)) + besidesTokens;
  const tokensPerEstimated = Math.min(TOKENS_PER_ESTIMATED_MAX, Math.max(1, contextTokens / estimated));
  const summaryTokens = Math.min(model.facts.outputTokensMax, windowTokens * SUMMARY_SHARE);
  return (windowTokens - summaryTokens) / tokensPerEstimated - besidesTokens;
};

const keepingNeeds = (state: State, { tools }: Equipment): KeepingNeeds => {
  const windowBytes = state.session.settings.windowTokens * CHARACTERS_PER_TOKEN;
  return {
    tools: tools.values(),
    turn: state.name === 'Compacting' && state.mode.kind !== 'idle' ? 'running' : 'over',
    limitBytes: Math.min(KEPT_BYTES_MAX, windowBytes * SUMMARY_SHARE),
  };
};

/** The messages of the request, and those that the summary replaces. */
const requestOf = (
  { length, instructions }: Start,
  state: State,
  model: Model,
  equipment: Equipment,
  told: Told,
): { readonly messages: readonly Message[]; readonly replaced: readonly Message[] } => {
  const kept = [instructions ?? '', ...hookNotes(told.hooks ?? [])].filter((text) => text !== '').join('\n');
  const ask = equipment.compactionInstructions(kept === '' ? null : kept);
  const replaced = withoutImages(requestMessages(state.session.conversation, length, model.id));
  const besides = `${equipment.instructions}${JSON.stringify(equipment.declarations)}${ask}`;
  const messages = fitMessages(replaced, roomFor(state, model, besides));
  return { messages: askForSummary(messages, ask), replaced };
};

/**
 * Asks for a summary with one model call. It has the same instructions and tools as every
 * request: providers refuse calls and results without their tools, and read the common start from their cache.
 */
const createSummaries = (equipment: Equipment, post: Post): Summaries => {
  const requests = new OpenRequests();

  const summarise = async (task: Start, state: State, told: Told): Promise<void> => {
    const { compactionId } = task;
    const { settings } = state.session;
    const model = equipment.model(settings.model);
    const { prices } = model.facts;
    const { messages, replaced } = requestOf(task, state, model, equipment, told);
    const reading = readStream({
      model,
      request: {
        instructions: equipment.instructions,
        tools: equipment.declarations,
        toolChoice: 'none',
        messages,
      },
      clock: equipment.clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: () => undefined,
      onLateUsage: (tokens) =>
        post({ type: 'UsageReported', usageId: compactionId, usage: priceUsage(tokens, prices) }),
      onBadUsage: (fault) =>
        post({ type: 'UsageReported', usageId: compactionId, usage: UNKNOWN_USAGE, fault }),
    });
    const ending = await requests.follow(compactionId, reading);
    if (ending.type === 'aborted') return;
    const usage = ending.usage === null ? null : priceUsage(ending.usage, prices);
    if (ending.type === 'failed') {
      post({ type: 'CompactionFailed', compactionId, message: ending.error.message, usage, ...told });
      return;
    }
    const lack = findLack(ending);
    if (lack !== null) {
      const message = `${model.id} wrote no summary: ${lack}`;
      post({ type: 'CompactionFailed', compactionId, message, usage, ...told });
    } else {
      const summary = withKept(textOf(ending), replaced, keepingNeeds(state, equipment));
      post({ type: 'CompactionCompleted', compactionId, summary, usage: usage ?? UNKNOWN_USAGE, ...told });
    }
  };

  return {
    start(task, state, told) {
      const { compactionId } = task;
      const summarising = attempt(() => summarise(task, state, told)).then((done) => {
        if (done.kind === 'done') return;
        const message = `the summary could not be asked for: ${done.fault.message}`;
        post({ type: 'CompactionFailed', compactionId, message, usage: null });
      });
      requests.hold(summarising);
    },
    abort: (compactionId) => requests.abort(compactionId),
    stopAll: () => requests.stopAll(),
  };
};

/** Performs StartCompaction and AbortCompaction. Hooks of the user are asked first. */
export const createCompactions = (
  equipment: Equipment,
  post: Post,
  userHooks: UserHookRuns | null,
): Compactions => {
  const summaries = createSummaries(equipment, post);
  if (userHooks === null) return { ...summaries, start: (task, state) => summaries.start(task, state, {}) };
  /** Compactions that wait for hooks. */
  const asking = new Set<string>();
  const start = async (task: Start, state: State): Promise<void> => {
    const { compactionId } = task;
    asking.add(compactionId);
    const hooks = await userHooks.beforeCompaction(state, task);
    if (!asking.delete(compactionId)) return; // it was aborted meanwhile
    const told = hooks.length === 0 ? {} : { hooks };
    const denial = denialIn(hooks);
    if (denial === null) summaries.start(task, state, told);
    else post({ type: 'CompactionFailed', compactionId, message: denial, usage: null, ...told });
  };
  return {
    start: (task, state) => void start(task, state),
    abort(compactionId) {
      asking.delete(compactionId);
      userHooks.abort(compactionId);
      summaries.abort(compactionId);
    },
    stopAll() {
      asking.clear();
      return summaries.stopAll();
    },
  };
};
