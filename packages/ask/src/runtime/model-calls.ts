/**
 * The model calls of a tree of runs. Each call ends with exactly one event, also after an abort,
 * with its usage as far as it is known, so that no money is spent unseen.
 *
 * From top to bottom: what runs need besides their journal; `TreeCalls`; and the limit in dollars
 * of a call.
 */

import { requestMessages } from '@pawl/agent/machine/conversation';
import type { ModelErrorKind } from '@pawl/agent/machine/event';
import type { AssistantMessage, AssistantPart, Message } from '@pawl/agent/machine/message';
import {
  costsNothing,
  HIDDEN_TOKENS_MAX,
  worstCaseWithin,
} from '@pawl/agent/machine/moves/request';
import { noUsage } from '@pawl/agent/machine/settings';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import { type Clock, waitAtMost } from '@pawl/agent/platform/clock';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { Model, ModelRequest } from '@pawl/agent/ports/model';
import type { Redactor } from '@pawl/agent/secrets/redactor';
import type { Post } from '@pawl/agent/session/loop';
import {
  type FirstPiece,
  measureRequest,
  type OpenRequest,
  OpenRequests,
  type ReplyEnding,
  type Reported,
  readStream,
  reportedBy,
} from '@pawl/agent/session/model-call';
import type { AskSettings, AskTypes, EnvironmentKind } from '../ports.js';
import type { TreeAction } from '../run/action.js';
import type { Run } from '../run/state.js';
import type { StopFacts, StopVerdict } from '../run/stop-policies.js';

/** The user's policy, called before every model call: may the run continue? */
export type StopPolicy = (facts: StopFacts) => StopVerdict | Promise<StopVerdict>;

/** Dependencies of a tree of runs, besides its journal. */
export type AskEquipment = {
  /** The model with this id. Throws if there is none, which becomes a failed call. */
  model(modelId: string): Model;
  readonly environment: EnvironmentKind;
  /** Has the inputs that are no files: texts that came from memory. */
  readonly blobs: Pick<Blobs, 'get'>;
  /** System instructions for runs with an environment, fixed when the root began. */
  readonly instructions: string;
  /** Part of every request; empty: the model decides. */
  readonly effort: Pick<ModelRequest, 'effort'>;
  /** Replaces secrets in requests. The journal keeps the programs' texts unchanged. */
  readonly redactor: Redactor;
  /** Null if the user has none. */
  readonly policy: StopPolicy | null;
  readonly clock: Clock;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};

type CallAction = Extract<TreeAction, { readonly type: 'CallModel' }>;
type CompletedReply = Extract<ReplyEnding, { readonly type: 'completed' }>;
type BrokenEnding = Exclude<ReplyEnding, CompletedReply>;

const failure = (kind: ModelErrorKind, message: string) =>
  ({ kind, message, retryable: false, retryAfterMs: null }) as const;

const ABORTED = failure('unreachable', 'the call was ended');

/** The part of a reply to store: no tool calls, since code mode offers no tools. */
const toMessage = (reply: CompletedReply, model: string): AssistantMessage | null => {
  const parts = reply.parts.flatMap((part): readonly AssistantPart[] =>
    part.type === 'call' || (part.text === '' && part.metadata === undefined) ? [] : [part],
  );
  if (parts.length === 0) return null;
  const cut = reply.stopReason !== 'end' && reply.stopReason !== 'toolUse';
  return { role: 'assistant', model, cut, parts };
};

/** The message without secrets. Replies stay: only inputs and programs can contain secrets. */
const withoutSecrets = (message: Message, redactor: Redactor): Message =>
  message.role === 'assistant' || redactor.isIdle
    ? message
    : {
        ...message,
        parts: message.parts.map((part) => ({ ...part, text: redactor.clean(part.text) })),
      };

/**
 * Performs the model calls of a tree: CallModel and AbortModel.
 *
 * Each call posts exactly one ModelReplied or ModelFailed, also after an abort. The usage of a
 * failed call is null if nobody knows it.
 */
export class TreeCalls {
  readonly #equipment: AskEquipment;
  readonly #settings: AskSettings;
  readonly #post: Post<AskTypes>;
  readonly #requests = new OpenRequests();

  constructor(equipment: AskEquipment, settings: AskSettings, post: Post<AskTypes>) {
    this.#equipment = equipment;
    this.#settings = settings;
    this.#post = post;
  }

  send(action: CallAction, run: Run): void {
    const { node, requestId } = action;
    const calling = attempt(() => this.#call(action, run)).then((called) => {
      if (called.kind === 'done') return;
      // It may have been sent: what it cost is not known.
      const error = failure('malformed', `the call failed: ${called.fault.message}`);
      const jitter = this.#equipment.random();
      this.#post({ type: 'ModelFailed', node, requestId, error, usage: null, jitter });
    });
    this.#requests.track(calling); // stopAll waits for it
  }

  abort(requestId: string): void {
    this.#requests.abort(requestId);
  }

  /** Aborts all calls; resolves when the last has reported its usage. */
  stopAll(): Promise<void> {
    return this.#requests.stopAll();
  }

  /** The model and the request. Throws if there is no such model. */
  #prepare({ length, purpose }: CallAction, run: Run): Prepared {
    const { effort, instructions, redactor } = this.#equipment;
    const model = this.#equipment.model(run.model);
    const messages = requestMessages(run.conversation, length, model.id);
    const request = {
      instructions: purpose === 'plain' ? this.#settings.subcallInstructions : instructions,
      tools: [],
      messages: messages.map((message) => withoutSecrets(message, redactor)),
      ...effort,
    };
    return { model, request };
  }

  async #call(action: CallAction, run: Run): Promise<void> {
    const { requestId } = action;
    const settings = this.#settings;
    const { clock } = this.#equipment;
    const prepared = attemptNow(() => this.#prepare(action, run));
    if (prepared.kind === 'fault') {
      const why = `the request could not be made: ${prepared.fault.message}`;
      return this.#refuse(action, 'malformed', why);
    }
    const { model } = prepared.value;
    const admission = admit(action, prepared.value.request, model);
    if (admission.kind === 'refused') return this.#refuse(action, 'quotaExhausted', admission.why);
    const { request, outputUsd } = admission;
    // usage that is reported after the end of the call
    const late: { reported: Reported | null } = { reported: null };
    let firstPiece: FirstPiece = {};
    const reading = readStream({
      model,
      request,
      clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: () => {
        firstPiece = { firstPieceAt: firstPiece.firstPieceAt ?? clock.now() };
      },
      // with a limit in tokens a broken reply counts too, also if the server reports no usage
      estimates: run.purse.left.tokens !== null,
      onLateUsage: (usage, coverage) => {
        late.reported = { usage, coverage };
      },
    });
    // from now on `abort` reaches the call by its id
    const ending = await this.#requests.follow(requestId, reading);
    if (ending.type === 'completed') this.#reply(action, ending, model.id);
    else {
      const reported = await this.#awaitUsage(ending, reading, late);
      this.#fail(action, ending, reported, { ...firstPiece, ...outputUsd });
    }
  }

  /** Nothing was sent, so nothing was spent. */
  #refuse({ node, requestId }: CallAction, kind: ModelErrorKind, why: string): void {
    const error = { ...failure(kind, why), sent: 'no' } as const;
    const jitter = this.#equipment.random();
    this.#post({ type: 'ModelFailed', node, requestId, error, usage: null, jitter });
  }

  /** The usage of a broken call, which is known only when its stream has ended, if at all. */
  async #awaitUsage(
    ending: BrokenEnding,
    reading: OpenRequest,
    late: { readonly reported: Reported | null },
  ): Promise<Reported> {
    const reported = reportedBy(ending);
    if (reported.usage !== null || reported.coverage === 'whole') return reported;
    // `silent`: nothing more can arrive
    await waitAtMost(this.#equipment.clock, GRACE_MS, reading.silent);
    return late.reported ?? reported;
  }

  #reply({ node, requestId }: CallAction, reply: CompletedReply, modelId: string): void {
    const { stopReason, usage } = reply;
    const message = toMessage(reply, modelId);
    this.#post({ type: 'ModelReplied', node, requestId, message, stopReason, usage });
  }

  #fail(
    { node, requestId }: CallAction,
    ending: BrokenEnding,
    { usage, coverage }: Reported,
    measured: FirstPiece & OutputCost,
  ): void {
    const error = ending.type === 'failed' ? ending.error : ABORTED;
    // that a refusal cost nothing is seen by its error
    const isKnown = coverage === 'whole' && !costsNothing({ error, ...measured });
    this.#post({
      type: 'ModelFailed',
      node,
      requestId,
      error,
      usage: usage ?? (isKnown ? noUsage : null),
      ...measured,
      ...(isKnown ? { outputUsd: 0 } : {}),
      jitter: this.#equipment.random(),
    });
  }
}

type Prepared = { readonly model: Model; readonly request: ModelRequest };
/** The most that the reply could cost; absent without a cap. */
type OutputCost = { readonly outputUsd?: number };
type Admission =
  | { readonly kind: 'sent'; readonly request: ModelRequest; readonly outputUsd: OutputCost }
  | { readonly kind: 'refused'; readonly why: string };

/**
 * The request with the longest reply that its cap pays for. The tokens of its input are an upper
 * bound: at most one for each byte.
 */
const admit = ({ capUsd }: CallAction, request: ModelRequest, { id, facts }: Model): Admission => {
  if (capUsd === undefined) return { kind: 'sent', request, outputUsd: {} };
  const { prices, outputTokensMax } = facts;
  if (prices === null) {
    const why = `the price of ${id} is not known, so a limit in dollars can't be kept`;
    return { kind: 'refused', why };
  }
  const inputTokens = measureRequest(request).bytes + HIDDEN_TOKENS_MAX;
  const offer = worstCaseWithin(capUsd, { inputTokens, prices, outputTokensMax });
  const { outputTokens, outputUsd, inputUsd, fits } = offer;
  if (fits)
    return {
      kind: 'sent',
      request: { ...request, outputTokensMax: outputTokens, isBoundPaid: true },
      outputUsd: { outputUsd },
    };
  const why =
    `not sent: a request of up to ${inputTokens} tokens and a reply of ${outputTokens} could ` +
    `cost $${(inputUsd + outputUsd).toFixed(4)}, and the limit in dollars leaves ` +
    `$${capUsd.toFixed(4)}: raise it (--max-usd)`;
  return { kind: 'refused', why };
};

/** Grace period in ms for an aborted call to report its usage. */
const GRACE_MS = 5_000;
