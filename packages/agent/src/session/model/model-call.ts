import type { JudgedCall } from '../../machine/call.js';
import type { AssistantPart, Message } from '../../machine/message.js';
import type { Settings } from '../../machine/settings.js';
import type { SessionData, State } from '../../machine/state.js';
import type { HookVerdicts } from '../../machine/values/hook-verdict.js';
import { requestMessages } from '../../machine/values/request-messages.js';
import type { Blobs } from '../../ports/journal.js';
import type { Model, ModelRequest, RawCall } from '../../ports/model.js';
import { attempt } from '../attempt.js';
import type { Equipment } from '../dependency-types.js';
import type { Post } from '../posted-event-types.js';
import { judgeCall } from '../tools/validate-raw-call.js';
import type { UserHookRuns } from '../user-hooks/user-hook-runs.js';
import { createJoiner } from './join-deltas.js';
import { priceUsage, UNKNOWN_USAGE } from './price-usage.js';
import { OpenRequests, type ReplyEnding, readStream, type Streamed, textOf } from './read-stream.js';
import { showsImages, withImages } from './request-images.js';

type Completed = Extract<ReplyEnding, { readonly type: 'completed' }>;
/** When the first piece of a reply came; empty if none came. */
type FirstPiece = { readonly firstPieceAt?: number };

const keyOf = (piece: Streamed): string =>
  piece.type === 'toolCall' ? `toolCall ${piece.tool}` : piece.type;

const postDelta = (post: Post, requestId: string, key: string, text: string): void => {
  if (key === 'text') post({ type: 'TextDelta', requestId, text });
  else if (key === 'reasoning') post({ type: 'ReasoningDelta', requestId, text });
  else post({ type: 'ToolCallDelta', requestId, tool: key.slice('toolCall '.length), text });
};

/** The part as it is stored; a call gets its parsed input from its judgement. */
const storePart = (
  part: Completed['parts'][number],
  judged: ReadonlyMap<RawCall, JudgedCall>,
): AssistantPart => {
  if (part.type !== 'call') return part;
  const { callId, tool, metadata } = part;
  const { input = {}, rawInput } = judged.get(part) ?? {};
  return {
    type: 'call',
    callId,
    tool,
    input,
    ...(rawInput === undefined ? {} : { rawInput }),
    ...(metadata === undefined ? {} : { metadata }),
  };
};

const isEmptyText = (part: Completed['parts'][number]): boolean =>
  part.type === 'text' && part.text === '' && part.metadata === undefined;

const storeParts = (reply: Completed, judged: ReadonlyMap<RawCall, JudgedCall>): readonly AssistantPart[] =>
  reply.parts.filter((part) => !isEmptyText(part)).map((part) => storePart(part, judged));

const effortOf = ({ effort = 'auto' }: Settings): Pick<ModelRequest, 'effort'> =>
  effort === 'auto' ? {} : { effort };

/** Performs SendLlmRequest and AbortLlmRequest. */
export class ModelCalls {
  readonly #equipment: Equipment;
  readonly #blobs: Blobs;
  readonly #post: Post;
  readonly #hooks: UserHookRuns | null;
  readonly #current: () => State;
  readonly #requests = new OpenRequests();
  /** Requests that wait for the user's stopping policy or for their pictures. */
  readonly #asking = new Set<string>();

  /** `current` is called on each use, because the state changes. */
  constructor(
    equipment: Equipment,
    blobs: Blobs,
    post: Post,
    hooks: UserHookRuns | null,
    current: () => State,
  ) {
    this.#equipment = equipment;
    this.#blobs = blobs;
    this.#post = post;
    this.#hooks = hooks;
    this.#current = current;
  }

  /** Sends the first `length` messages of the conversation. Results are posted under `requestId`. */
  send(requestId: string, length: number, before: State): void {
    const conversing = attempt(async () => {
      this.#asking.add(requestId);
      const { state, why } = await this.#mayCall(requestId, before);
      const { session } = state;
      const model = this.#equipment.model(session.settings.model);
      const plain = requestMessages(session.conversation, length, model.id);
      const messages = showsImages(plain) ? await withImages(plain, model, this.#blobs) : plain;
      // An abort has deleted the id, so nobody waits for this call.
      if (!this.#asking.delete(requestId)) return;
      if (why === null) await this.#converse(requestId, model, messages, session);
      else this.#post({ type: 'PolicyStopped', requestId, why });
    }).then((sent) => {
      if (sent.kind === 'done') return;
      this.#asking.delete(requestId);
      const message = `the request could not be made: ${sent.fault.message}`;
      const error = { kind: 'malformed', message, retryable: false, retryAfterMs: null } as const;
      this.#post({ type: 'LlmFailed', requestId, error, usage: null, jitter: this.#equipment.random() });
    });
    this.#requests.hold(conversing);
  }

  /** The state with what hooks add to it, and why the call is held back, or null. */
  async #mayCall(
    requestId: string,
    state: State,
  ): Promise<{ readonly state: State; readonly why: string | null }> {
    const why = await this.#askPolicy(state);
    if (why !== null || this.#hooks === null) return { state, why };
    return this.#hooks.beforeRequest(requestId, state);
  }

  /** Why the user's stopping policy holds the call back, or null. A policy that fails holds it back too. */
  async #askPolicy(state: State): Promise<string | null> {
    if (state.session.settings.userPolicy === 'none') return null;
    const { stoppingPolicy } = this.#equipment;
    if (stoppingPolicy === null)
      return 'the stopping policy of this session is not connected: open it with one';
    const asked = await attempt(() => stoppingPolicy(state));
    if (asked.kind === 'fault') return `the stopping policy failed: ${asked.fault.message}`;
    const why: unknown = asked.value; // the user's function may return any value
    if (why === null || typeof why === 'string') return why;
    return 'the stopping policy failed: it answered neither null nor a sentence';
  }

  abort(requestId: string): void {
    this.#asking.delete(requestId);
    this.#hooks?.abort(requestId);
    this.#requests.abort(requestId);
  }

  /** Aborts every request. Resolves when the last one has reported its usage. */
  stopAll(): Promise<void> {
    this.#asking.clear();
    return this.#requests.stopAll();
  }

  async #converse(
    requestId: string,
    model: Model,
    messages: readonly Message[],
    session: SessionData,
  ): Promise<void> {
    const { settings } = session;
    let begun: FirstPiece = {};
    const joiner = createJoiner(this.#equipment.clock, (key, text) =>
      postDelta(this.#post, requestId, key, text),
    );
    const reading = readStream({
      model,
      request: {
        instructions: this.#equipment.instructions,
        tools: this.#equipment.declarations,
        ...(session.turn.finishing === 'no' ? {} : { toolChoice: 'none' as const }),
        ...effortOf(settings),
        messages,
      },
      clock: this.#equipment.clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: (piece) => {
        begun = { firstPieceAt: begun.firstPieceAt ?? this.#equipment.clock.now() };
        joiner.add(keyOf(piece), piece.text);
      },
      onLateUsage: (tokens) =>
        this.#post({
          type: 'UsageReported',
          usageId: requestId,
          usage: priceUsage(tokens, model.facts.prices),
        }),
      onBadUsage: (fault) =>
        this.#post({ type: 'UsageReported', usageId: requestId, usage: UNKNOWN_USAGE, fault }),
    });
    const ending = await this.#requests.follow(requestId, reading);
    if (ending.type === 'aborted') return joiner.drop();
    joiner.flush();
    if (ending.type === 'failed') this.#fail({ requestId, ...begun }, ending, model);
    else await this.#complete({ requestId, ...begun }, ending, model, settings.workspace);
  }

  #fail(
    request: FirstPiece & { readonly requestId: string },
    ending: Extract<ReplyEnding, { readonly type: 'failed' }>,
    model: Model,
  ): void {
    const usage = ending.usage === null ? null : priceUsage(ending.usage, model.facts.prices);
    const jitter = this.#equipment.random();
    this.#post({ type: 'LlmFailed', ...request, error: ending.error, usage, jitter });
  }

  async #complete(
    request: FirstPiece & { readonly requestId: string },
    reply: Completed,
    model: Model,
    workspace: string,
  ): Promise<void> {
    const { tools, redactor } = this.#equipment;
    const judged = new Map<RawCall, JudgedCall>();
    for (const part of reply.parts) {
      if (part.type !== 'call') continue;
      const call = await judgeCall(part, tools, workspace, redactor);
      judged.set(part, this.#hooks === null ? call : await this.#hooks.beforeTool(request.requestId, call));
    }
    const { stopReason } = reply;
    const cut = stopReason !== 'end' && stopReason !== 'toolUse';
    const message = { role: 'assistant', model: model.id, cut, parts: storeParts(reply, judged) } as const;
    const usage = reply.usage === null ? UNKNOWN_USAGE : priceUsage(reply.usage, model.facts.prices);
    const calls = [...judged.values()];
    const hooks = calls.length === 0 ? await this.#judgeEnd(request.requestId, reply) : {};
    this.#post({ type: 'LlmCompleted', ...request, message, calls, stopReason, usage, ...hooks });
  }

  /** What hooks say about the end of the turn. A reply that was cut or cancelled ends it in any case. */
  async #judgeEnd(requestId: string, reply: Completed): Promise<{ readonly hooks?: HookVerdicts }> {
    const state = this.#current();
    const isOpen = state.name === 'CallingLlm' && state.requestId === requestId && state.call.mode === 'open';
    const text = textOf(reply);
    const isAnswer = text !== '' && (reply.stopReason === 'end' || reply.stopReason === 'toolUse');
    if (this.#hooks === null || !isOpen || !isAnswer) return {};
    const hooks = await this.#hooks.turnEnd(requestId, state, text);
    return hooks.length === 0 ? {} : { hooks };
  }
}
