/**
 * OpenTelemetry spans of a session, made from its steps. A span is a piece of work with a
 * beginning, an end and attributes. From top to bottom: `SessionSpans`; its attributes; contents of
 * messages, only if the user enables them; and the names of the conventions.
 */

import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Event } from '@pawl/agent/machine/event';
import type { Message } from '@pawl/agent/machine/message';
import { sumUsage, type Usage, type UsageTotals, usageSince } from '@pawl/agent/machine/settings';
import { type State, turnRuns } from '@pawl/agent/machine/state';
import { VERSION } from '@pawl/agent/platform/environment';
import { cut } from '@pawl/agent/platform/text';
import type { Stepped } from '@pawl/agent/ports/session';
import { type Activity, findActivities } from './figures/session-figures.js';

export type SpanOptions = {
  readonly tracer: Tracer;
  readonly sessionId: string;
  /** The span or trace that the turns belong to. Default: each turn begins a new trace. */
  readonly parent?: Context;
  /**
   * Prompts, replies, arguments and results are part of the spans, with secrets replaced. Default:
   * none of them is.
   */
  readonly content?: Redact | null;
  /** The provider's server, if it is known. */
  readonly serverOf?: (model: string) => { readonly address: string; readonly port: number } | null;
};

/** The span of a call of the model, with its retries. `id`: of the last request. */
type OpenChat = {
  readonly span: Span;
  readonly id: string;
  sentAt: number;
  attempts: number;
  usage: Usage | null;
};
/** The span of a turn. `before`: the session's usage when it began. */
type OpenTurn = { readonly span: Span; readonly turnId: string; readonly before: UsageTotals };

/**
 * Makes the spans of one session from its steps: `invoke_agent` for a turn, in it `chat` for each
 * call of the model with its retries, and `execute_tool` for each call of a tool.
 *
 * 1. Only what happens while it watches has spans: a session that is opened again has none for its
 *    past.
 * 2. Open spans end when the session closes, as `interrupted`.
 * 3. Times are those of the events.
 */
export class SessionSpans {
  readonly #options: SpanOptions;
  readonly #tools = new Map<string, Span>();
  #turn: OpenTurn | null = null;
  #chat: OpenChat | null = null;
  #usage: UsageTotals | null = null;
  /** The latest time of an event. */
  #at = 0;

  constructor(options: SpanOptions) {
    this.#options = options;
  }

  /** Call after every step: ends spans of work that is over, then begins those of new work. */
  see(step: Stepped): void {
    const { event, state } = step;
    this.#at = Math.max(this.#at, event.at); // a clock may be set back
    if (step.seq === null) return;
    // A step may end a turn and begin the next one.
    const turnHasEnded =
      this.#turn !== null && (!turnRuns(state) || state.session.turn.turnId !== this.#turn.turnId);
    this.#recordReply(step);
    if (this.#chat !== null && this.#chatHasEnded(step, this.#chat)) this.#endChat(event);
    this.#endTools(step);
    if (turnHasEnded) this.#endTurn(state);
    if (this.#turn === null && turnRuns(state)) this.#beginTurn(state);
    // What goes on in the state: a request, calls of tools, a hook, a wait.
    for (const activity of findActivities(state)) this.#begin(activity, state);
    this.#usage = state.session.usage;
  }

  /** Ends everything that is open. */
  close(): void {
    for (const span of [this.#chat?.span, ...this.#tools.values(), this.#turn?.span]) {
      if (span === undefined) continue;
      fail(span, 'interrupted');
      span.end(this.#time());
    }
    this.#chat = null;
    this.#tools.clear();
    this.#turn = null;
  }

  #time(): Date {
    return new Date(this.#at);
  }

  /** The context of a new span: the open turn, or what encloses the session. */
  #within(): Context {
    const outer = this.#options.parent ?? ROOT_CONTEXT;
    return this.#turn === null ? outer : trace.setSpan(outer, this.#turn.span);
  }

  #start(name: string, kind: SpanKind, attributes: Attributes): Span {
    const { sessionId, tracer } = this.#options;
    const all = { [genAi.conversation]: sessionId, [genAi.agentName]: 'pawl', ...attributes };
    return tracer.startSpan(
      name,
      { kind, attributes: all, startTime: this.#time() },
      this.#within(),
    );
  }

  #beginTurn(state: State): void {
    const { provider, model } = splitModelId(state.session.settings.model);
    const { turnId } = state.session.turn;
    const span = this.#start(`${operations.agent} pawl`, SpanKind.INTERNAL, {
      [genAi.operation]: operations.agent,
      [genAi.provider]: provider,
      [genAi.requestModel]: model,
      [genAi.agentVersion]: VERSION,
      [pawlNames.turn]: turnId,
    });
    this.#turn = { span, turnId, before: this.#usage ?? state.session.usage };
  }

  #endTurn(state: State): void {
    if (this.#turn === null) return;
    const { span, before } = this.#turn;
    const used = usageSince(before, state.session.usage);
    span.setAttributes({
      ...tokenAttributes(used),
      ...costAttributes(used.unpriced > 0 ? null : used.costUsd),
    });
    const error = turnError(state);
    if (error !== null) fail(span, error);
    span.end(this.#time());
    this.#turn = null;
  }

  #begin(activity: Activity, state: State): void {
    if (activity.kind === 'request' || activity.kind === 'compaction')
      this.#beginChat(activity, state);
    if (activity.kind === 'tool' && !this.#tools.has(activity.id)) this.#beginTool(activity, state);
  }

  #beginChat({ kind, id, name }: Activity, state: State): void {
    if (this.#chat?.id === id) return;
    // a retry belongs to the open span
    if (this.#chat !== null && kind === 'request') {
      this.#chat = Object.assign(this.#chat, {
        id,
        sentAt: this.#at,
        attempts: this.#chat.attempts + 1,
      });
      return;
    }
    const { provider, model } = splitModelId(name);
    const { effort = 'auto' } = state.session.settings;
    const { content, serverOf } = this.#options;
    const server = serverOf?.(name) ?? null;
    const span = this.#start(`${operations.chat} ${model}`, SpanKind.CLIENT, {
      [genAi.operation]: operations.chat,
      [genAi.provider]: provider,
      [genAi.requestModel]: model,
      [genAi.requestStream]: true,
      ...(effort === 'auto' ? {} : { [pawlNames.effort]: effort }),
      ...(server === null ? {} : { 'server.address': server.address, 'server.port': server.port }),
      ...(isCompacted(state) ? { [pawlNames.compacted]: true } : {}),
      ...(kind === 'compaction' ? { [pawlNames.summary]: true } : {}),
      ...(content ? { [genAi.inputMessages]: messagesText(newMessages(state), content) } : {}),
    });
    this.#chat = { span, id, sentAt: this.#at, attempts: 1, usage: null };
  }

  /** Records the event in the span of the open model call. */
  #recordReply({ event }: Stepped): void {
    const chat = this.#chat;
    if (chat === null || getRequestId(event) !== chat.id) return;
    if ('usage' in event && event.usage !== null) chat.usage = sumUsage(chat.usage, event.usage);
    if ('firstPieceAt' in event && event.firstPieceAt !== undefined) {
      const seconds = Math.max(0, event.firstPieceAt - chat.sentAt) / 1_000;
      chat.span.setAttribute(genAi.timeToFirstChunk, seconds);
    }
    if (event.type === 'LlmFailed')
      chat.span.addEvent(
        pawlNames.attemptFailed,
        { [genAi.errorType]: event.error.kind },
        this.#time(),
      );
    if (event.type !== 'LlmCompleted') return;
    const { message, stopReason } = event;
    chat.span.setAttribute(genAi.finishReasons, [finishReasons[stopReason] ?? stopReason]);
    if (message === null) return;
    chat.span.setAttribute(genAi.responseModel, splitModelId(message.model).model);
    const { content } = this.#options;
    if (content) chat.span.setAttribute(genAi.outputMessages, messagesText([message], content));
  }

  /** A call of the model includes its retries: it ends when the machine leaves them. */
  #chatHasEnded({ state, path, event }: Stepped, { id }: OpenChat): boolean {
    if (state.name === 'Compacting') return state.compactionId !== id;
    if (event.type === 'Resumed') return false; // the request, or the wait, goes on
    // Another model that takes over has a span with its name.
    const hasMovedOn = path.some(
      ({ kind, to, as }) =>
        as === 'fallback' || (kind === 'go' && to !== 'CallingLlm' && to !== 'Error'),
    );
    return hasMovedOn || (state.name !== 'CallingLlm' && state.name !== 'Error');
  }

  #endChat(event: Event): void {
    if (this.#chat === null) return;
    const { span, id, attempts, usage } = this.#chat;
    this.#chat = null;
    span.setAttribute(pawlNames.attempts, attempts);
    if (usage !== null)
      span.setAttributes({ ...tokenAttributes(usage), ...costAttributes(usage.costUsd) });
    const answers = getRequestId(event) === id;
    if (event.type === 'LlmFailed' && answers) fail(span, event.error.kind);
    else if (event.type === 'CompactionFailed' && answers) fail(span, 'compaction');
    else if (!answers) fail(span, 'cancelled');
    span.end(this.#time());
  }

  #beginTool({ id, name }: Activity, state: State): void {
    const call =
      state.name === 'ExecutingTools'
        ? state.calls.find(({ judged }) => id.endsWith(`/${judged.callId}`))
        : undefined;
    const { content } = this.#options;
    const span = this.#start(`${operations.tool} ${name}`, SpanKind.INTERNAL, {
      [genAi.operation]: operations.tool,
      [genAi.toolName]: name,
      [genAi.toolCall]: call?.judged.callId ?? '',
      [genAi.toolType]: 'function',
      ...(content && call
        ? { [genAi.toolArguments]: shownText(JSON.stringify(call.judged.input), content) }
        : {}),
    });
    this.#tools.set(id, span);
  }

  /** Ends the spans of calls that have a result, or that no longer run. */
  #endTools({ state, actions }: Stepped): void {
    const { content } = this.#options;
    for (const action of actions) {
      if (action.type !== 'DisplayToolResult') continue;
      const id = `${action.batchId}/${action.callId}`;
      const span = this.#tools.get(id);
      if (span === undefined) continue;
      span.setAttribute(pawlNames.toolStatus, action.status);
      if (action.status !== 'ok') fail(span, action.status);
      if (content) span.setAttribute(genAi.toolResult, shownText(action.text, content));
      span.end(this.#time());
      this.#tools.delete(id);
    }
    const running = new Set(findActivities(state).map(({ id }) => id));
    for (const [id, span] of this.#tools) {
      if (running.has(id)) continue;
      fail(span, 'interrupted');
      span.end(this.#time());
      this.#tools.delete(id);
    }
  }
}

// ---- Attributes ----

const tokenAttributes = (usage: Omit<Usage, 'costUsd'>): Attributes => ({
  [genAi.inputTokens]: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
  [genAi.outputTokens]: usage.outputTokens,
  [genAi.cacheRead]: usage.cacheReadTokens,
  [genAi.cacheWrite]: usage.cacheWriteTokens,
});

const costAttributes = (costUsd: number | null): Attributes =>
  costUsd === null ? {} : { [pawlNames.cost]: costUsd };

/** Why a turn did not end with an answer, in one word; null if it did. */
const turnError = (state: State): string | null => {
  if (state.name !== 'WaitingForUserInput') return 'interrupted';
  const { reason } = state;
  if (reason.kind === 'error') return reason.error;
  if (reason.kind === 'budget') return `${reason.dimension}Limit`;
  if (reason.kind === 'cancelled') return `cancelled:${reason.cause}`;
  return reason.kind === 'endOfTurn' && reason.cause !== 'answer' ? reason.cause : null;
};

const fail = (span: Span, errorType: string): void => {
  span.setAttribute(genAi.errorType, errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
};

/** The id of the request or compaction that an event answers. */
const getRequestId = (event: Event): string | null => {
  if (event.type === 'LlmCompleted' || event.type === 'LlmFailed') return event.requestId;
  if (event.type === 'CompactionCompleted' || event.type === 'CompactionFailed')
    return event.compactionId;
  return null;
};

// ---- Contents of messages, if the user enables them ----

const CHARACTERS_MAX = 32_768;

/** Replaces secrets in a text. */
type Redact = (text: string) => string;

/**
 * The beginning of a long text: collectors refuse large attributes. Redacted first, so that no cut
 * divides a secret.
 */
const shownText = (text: string, redact: Redact): string => {
  const clean = redact(text);
  return cut(clean, CHARACTERS_MAX);
};

const toSpanPart = (part: Message['parts'][number]): object => {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: part.text };
    case 'reasoning':
      return { type: 'reasoning', content: part.text };
    case 'call':
      return { type: 'tool_call', id: part.callId, name: part.tool, arguments: part.input };
    case 'result':
      return { type: 'tool_call_response', id: part.callId, response: part.text };
    default:
      return part satisfies never;
  }
};

const messagesText = (messages: readonly Message[], redact: Redact): string =>
  shownText(
    JSON.stringify(messages.map(({ role, parts }) => ({ role, parts: parts.map(toSpanPart) }))),
    redact,
  );

/** The message that a request adds to those before it. */
const newMessages = ({ session }: State): readonly Message[] => {
  const { open } = session.conversation;
  return open === null ? [] : [open];
};

/** Whether a summary replaced the beginning of the conversation. */
const isCompacted = ({ session: { conversation } }: State): boolean => {
  const first = conversation.closed.at(0) ?? conversation.open;
  return (
    first?.role === 'user' &&
    first.parts.some((part) => 'origin' in part && part.origin === 'summary')
  );
};

// ---- Names ----

/**
 * Names of OpenTelemetry's conventions for generative AI, as @opentelemetry/semantic-conventions
 * 1.45.0 publishes them: backends know these. They are in development and may change; this file is
 * the only place that knows them.
 */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentVersion: 'gen_ai.agent.version',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheRead: 'gen_ai.usage.cache_read.input_tokens',
  cacheWrite: 'gen_ai.usage.cache_creation.input_tokens',
  toolName: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  errorType: 'error.type',
} as const;

/** Values of `gen_ai.operation.name`. */
const operations = { agent: 'invoke_agent', chat: 'chat', tool: 'execute_tool' } as const;

/** Our names where the conventions have none. */
const pawlNames = {
  cost: 'pawl.cost_usd',
  turn: 'pawl.turn.id',
  attempts: 'pawl.request.attempts',
  attemptFailed: 'pawl.attempt_failed',
  summary: 'pawl.request.summary',
  effort: 'pawl.request.effort',
  compacted: 'pawl.conversation.compacted',
  toolStatus: 'pawl.tool.status',
} as const;

const providerNames: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  vertex: 'gcp.vertex_ai',
  bedrock: 'aws.bedrock',
  azure: 'azure.ai.openai',
  mistral: 'mistral_ai',
  moonshot: 'moonshot_ai',
  xai: 'x_ai',
};

/** `anthropic/claude-…` as the names of the provider and of its model. */
const splitModelId = (id: string): { readonly provider: string; readonly model: string } => {
  const slash = id.indexOf('/');
  const provider = id.slice(0, Math.max(0, slash));
  return { provider: providerNames[provider] ?? provider, model: id.slice(slash + 1) };
};

/** Our stop reasons in the words of the conventions. */
const finishReasons: Readonly<Record<string, string>> = {
  end: 'stop',
  toolUse: 'tool_calls',
  maxTokens: 'length',
  refusal: 'content_filter',
  contentFilter: 'content_filter',
};
