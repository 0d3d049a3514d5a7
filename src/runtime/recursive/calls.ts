import type { AssistantMessage, AssistantPart } from '../../agent/message.js';
import { requestMessages } from '../../agent/request.js';
import type { Clock, Model, TokenUsage } from '../../needs.js';
import type { AskSettings, AskTypes } from '../../needs-recursive.js';
import type { TreeAction } from '../../recursive/action.js';
import type { Run } from '../../recursive/state.js';
import { Hearing } from '../hearing.js';
import { type Ending, type Listening, listen } from '../listen.js';
import type { Post } from '../posted.js';
import { priceUsage } from '../price.js';
import { attempt } from '../wall.js';
import { type AskEquipment, GRACE_MS } from './equipment.js';

export type CallAction = Extract<TreeAction, { readonly type: 'CallModel' }>;
type Completed = Extract<Ending, { readonly type: 'completed' }>;
type Broken = Exclude<Ending, Completed>;

const ABORTED = {
  kind: 'unreachable',
  message: 'the call was ended',
  retryable: false,
  retryAfterMs: null,
} as const;

/** What is stored of a reply. There are no tools in code mode: calls of a model that made some up are left out. */
const messageOf = (reply: Completed, model: string): AssistantMessage | null => {
  const parts = reply.parts.filter(
    (part): part is AssistantPart & typeof part =>
      part.type !== 'call' && (part.text !== '' || part.metadata !== undefined),
  );
  if (parts.length === 0) return null;
  const cut = reply.stopReason !== 'end' && reply.stopReason !== 'toolUse';
  return { role: 'assistant', model, cut, parts };
};

const waitAtMost = async (clock: Clock, limitMs: number, work: Promise<void>): Promise<void> => {
  let cancel = (): void => undefined;
  const timeIsUp = new Promise<void>((resolve) => {
    cancel = clock.after(limitMs, resolve);
  });
  await Promise.race([work, timeIsUp]);
  cancel();
};

/**
 * Model calls of a tree: performs CallModel and AbortModel.
 *
 * Each call has exactly one last word, ModelReplied or ModelFailed, also after it was aborted; what it cost is in it.
 */
export class TreeCalls {
  readonly #equipment: AskEquipment;
  readonly #settings: AskSettings;
  readonly #post: Post<AskTypes>;
  readonly #hearing = new Hearing();

  constructor(equipment: AskEquipment, settings: AskSettings, post: Post<AskTypes>) {
    this.#equipment = equipment;
    this.#settings = settings;
    this.#post = post;
  }

  send(action: CallAction, run: Run): void {
    const { node, requestId } = action;
    const calling = attempt(() => this.#call(action, run)).then((called) => {
      if (called.kind === 'done') return;
      const message = `the request could not be made: ${called.fault.message}`;
      const error = { kind: 'malformed', message, retryable: false, retryAfterMs: null } as const;
      this.#post({
        type: 'ModelFailed',
        node,
        requestId,
        error,
        usage: null,
        jitter: this.#equipment.random(),
      });
    });
    this.#hearing.hold(calling);
  }

  abort(requestId: string): void {
    this.#hearing.abort(requestId);
  }

  /** Aborts every call; resolves when the last has said what it cost. */
  stopAll(): Promise<void> {
    return this.#hearing.stopAll();
  }

  async #call(action: CallAction, run: Run): Promise<void> {
    const { requestId, length, purpose, depth } = action;
    const settings = this.#settings;
    const model = this.#equipment.model(depth === 0 ? settings.model : settings.subModel);
    const late: { usage: TokenUsage | null } = { usage: null };
    const listening = listen({
      model,
      request: {
        instructions: purpose === 'plain' ? settings.subcallInstructions : this.#equipment.instructions,
        tools: [],
        messages: requestMessages(run.conversation, length, model.id),
      },
      clock: this.#equipment.clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: () => undefined,
      onLateUsage: (usage) => {
        late.usage = usage;
      },
    });
    const ending = await this.#hearing.follow(requestId, listening);
    if (ending.type === 'completed') this.#reply(action, ending, model);
    else this.#fail(action, ending, model, await this.#lastWord(ending, listening, late));
  }

  /** What a call without an end has cost: known only when its stream is over, if at all. */
  async #lastWord(
    ending: Broken,
    listening: Listening,
    late: { readonly usage: TokenUsage | null },
  ): Promise<TokenUsage | null> {
    if (ending.type === 'failed' && ending.usage !== null) return ending.usage;
    await waitAtMost(this.#equipment.clock, GRACE_MS, listening.silent);
    return late.usage;
  }

  #reply({ node, requestId }: CallAction, reply: Completed, model: Model): void {
    const { stopReason } = reply;
    const message = messageOf(reply, model.id);
    const usage = priceUsage(reply.usage, model.facts.prices);
    this.#post({ type: 'ModelReplied', node, requestId, message, stopReason, usage });
  }

  #fail({ node, requestId }: CallAction, ending: Broken, model: Model, tokens: TokenUsage | null): void {
    const error = ending.type === 'failed' ? ending.error : ABORTED;
    const usage = tokens === null ? null : priceUsage(tokens, model.facts.prices);
    this.#post({ type: 'ModelFailed', node, requestId, error, usage, jitter: this.#equipment.random() });
  }
}
