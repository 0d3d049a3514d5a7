import type { ModelError } from '../../machine/event.js';
import type { Clock } from '../../ports/clock.js';
import type { Model, ModelPiece, ModelRequest, TokenUsage } from '../../ports/model.js';
import { attempt } from '../attempt.js';
import { type CheckedPiece, checkPiece, uncountable } from '../check-outside-values.js';

/**
 * Reads one model call to its end.
 *
 * 1. There is exactly one ending, whatever the model does; no piece is shown after it.
 * 2. Usage that arrives after the ending is still reported, since it was paid for.
 * 3. Pieces are validated: an invalid piece ends the call, invalid usage counts as unknown.
 * 4. A reply without an end is cut off at REPLY_MAX characters.
 */

/** `usage` is null if it can't be counted, or if a failure reports none. */
export type ReplyEnding =
  | Extract<CheckedPiece, { readonly type: 'completed' | 'failed' }>
  | { readonly type: 'aborted' };
export type Streamed = Extract<ModelPiece, { readonly type: 'text' | 'reasoning' | 'toolCall' }>;

export type OpenRequest = {
  readonly ended: Promise<ReplyEnding>;
  /** Resolves when nothing more can arrive, even after an abort: all paid usage has been reported. */
  readonly silent: Promise<void>;
  /** Ends the reply with `aborted`, unless it has ended already. */
  abort(): void;
};

export type StreamParts = {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly clock: Clock;
  /** Deadlines; 0 means none. */
  readonly firstByteMs: number;
  readonly silenceMs: number;
  readonly onPiece: (piece: Streamed) => void;
  readonly onLateUsage: (usage: TokenUsage) => void;
  /** Called with a sentence before the ending. */
  readonly onBadUsage: (why: string) => void;
};

/** Many times what any model writes in one reply. */
const REPLY_MAX = 32 * 1024 * 1024;

/** The text of a reply. */
export const textOf = (reply: Extract<ReplyEnding, { readonly type: 'completed' }>): string =>
  reply.parts
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
    .trim();

const failure = (kind: ModelError['kind'], retryable: boolean, message: string): ReplyEnding => ({
  type: 'failed',
  error: { kind, message, retryable, retryAfterMs: null },
  usage: null,
});

type Silence = { heard(): void; stop(): void };

/** Calls `fall` after too long a silence. Uses one timer for any number of pieces. */
const watchSilence = (call: StreamParts, fall: (message: string) => void): Silence => {
  const { clock, model } = call;
  let limitMs = call.firstByteMs;
  let what = 'sent nothing';
  let lastAt = clock.now();
  let cancel: (() => void) | null = null;
  const check = (): void => {
    const leftMs = lastAt + limitMs - clock.now();
    if (leftMs > 0) cancel = clock.after(leftMs, check);
    else fall(`${model.id} ${what} for ${limitMs / 1000} s; the request was ended`);
  };
  const arm = (): void => {
    cancel?.();
    cancel = limitMs > 0 ? clock.after(limitMs, check) : null;
  };
  arm();
  let first = true;
  return {
    heard() {
      lastAt = clock.now();
      if (!first) return;
      first = false;
      limitMs = call.silenceMs;
      what = 'fell silent in the middle of a reply';
      arm();
    },
    stop() {
      cancel?.();
    },
  };
};

/** Starts the call. Deadlines, faults of the model and a missing ending become `failed`. */
export const readStream = (call: StreamParts): OpenRequest => {
  const abortion = new AbortController();
  let over = false;
  let resolveEnded: (ending: ReplyEnding) => void;
  const ended = new Promise<ReplyEnding>((resolve) => {
    resolveEnded = resolve;
  });
  const end = (ending: ReplyEnding): void => {
    if (over) return;
    over = true;
    silence.stop();
    resolveEnded(ending);
    if (ending.type !== 'completed') abortion.abort();
  };
  const silence = watchSilence(call, (message) => end(failure('timeout', true, message)));
  const hear = (piece: CheckedPiece): void => {
    const isEnding = piece.type === 'completed' || piece.type === 'failed';
    if (over) {
      if (isEnding && piece.usage !== null) call.onLateUsage(piece.usage);
      return;
    }
    silence.heard();
    if (isEnding) end(piece);
    else call.onPiece(piece);
  };
  let characters = 0;
  /** Applies rule 4. */
  const isTooLong = (piece: CheckedPiece): boolean => {
    if (piece.type !== 'completed' && piece.type !== 'failed') characters += piece.text.length;
    return characters > REPLY_MAX;
  };
  /** Applies rule 3. Returns whether to continue reading. */
  const take = (given: unknown): boolean => {
    const heard = checkPiece(given);
    if (heard.kind === 'bad') {
      const message = `${call.model.id} sent what is no piece of a reply: ${heard.why}`;
      const error = { kind: 'malformed', message, retryable: false, retryAfterMs: null } as const;
      hear({ type: 'failed', error, usage: heard.usage });
      return false;
    }
    if (isTooLong(heard.piece)) {
      const why = `sent more than ${REPLY_MAX / 1024 / 1024} million characters in one reply; the request was ended`;
      end(failure('malformed', false, `${call.model.id} ${why}`));
      return false;
    }
    if (heard.usageFault !== null) call.onBadUsage(uncountable(call.model.id, heard.usageFault));
    hear(heard.piece);
    return true;
  };
  const hearAll = async (): Promise<void> => {
    for await (const given of call.model.stream(call.request, abortion.signal)) if (!take(given)) return;
  };
  const silent = attempt(hearAll).then((heard) => {
    if (heard.kind === 'done') end(failure('unreachable', true, `the reply of ${call.model.id} broke off`));
    else
      end(failure('malformed', false, `the connection to ${call.model.id} failed: ${heard.fault.message}`));
  });
  return { ended, silent, abort: () => end({ type: 'aborted' }) };
};

/** The open model calls of one session, by the ids under which they are reported. */
export class OpenRequests {
  readonly #open = new Map<string, OpenRequest>();
  readonly #held = new Set<Promise<void>>();

  /** Resolves with the ending of the call, whose id is then free again. */
  async follow(id: string, reading: OpenRequest): Promise<ReplyEnding> {
    this.hold(reading.silent);
    this.#open.set(id, reading);
    const ending = await reading.ended;
    if (this.#open.get(id) === reading) this.#open.delete(id);
    return ending;
  }

  /** Makes `stopAll` wait for work that never rejects. */
  hold(work: Promise<void>): void {
    const held: Promise<void> = work.then(() => void this.#held.delete(held));
    this.#held.add(held);
  }

  abort(id: string): void {
    this.#open.get(id)?.abort();
  }

  /** Aborts every call. Resolves when the last one has reported its usage and all of it is posted. */
  async stopAll(): Promise<void> {
    for (const reading of this.#open.values()) reading.abort();
    await Promise.all(this.#held);
  }
}
