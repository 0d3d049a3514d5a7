import type { ModelError } from '../agent/event.js';
import type { Clock, Model, ModelPiece, ModelRequest, TokenUsage } from '../needs.js';
import { attempt } from './wall.js';

/**
 * One call of a model, heard to its end.
 *
 * 1. There is exactly one ending, whatever the model does; after it no piece is shown.
 * 2. Usage that arrives after the ending is still reported: it was paid for.
 */

export type Ending =
  | Extract<ModelPiece, { readonly type: 'completed' | 'failed' }>
  | { readonly type: 'aborted' };
export type Streamed = Extract<ModelPiece, { readonly type: 'text' | 'reasoning' | 'toolCall' }>;

export type Listening = {
  readonly ended: Promise<Ending>;
  /** Resolves when nothing more can come, after an abort too: all that was paid for has been reported. */
  readonly silent: Promise<void>;
  /** Ends with `aborted`, unless it has ended. */
  abort(): void;
};

export type Listen = {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly clock: Clock;
  /** Deadlines; 0 means none. */
  readonly firstByteMs: number;
  readonly silenceMs: number;
  readonly onPiece: (piece: Streamed) => void;
  readonly onLateUsage: (usage: TokenUsage) => void;
};

/** The words of a reply. */
export const textOf = (reply: Extract<ModelPiece, { readonly type: 'completed' }>): string =>
  reply.parts
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
    .trim();

const failure = (kind: ModelError['kind'], retryable: boolean, message: string): Ending => ({
  type: 'failed',
  error: { kind, message, retryable, retryAfterMs: null },
  usage: null,
});

type Silence = { heard(): void; stop(): void };

/** Calls `fall` when nothing was heard for too long; one timer however many pieces come. */
const watchSilence = (call: Listen, fall: (message: string) => void): Silence => {
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

/** Starts the call. Deadlines, faults of the model and endings without an end become a `failed`. */
export const listen = (call: Listen): Listening => {
  const abortion = new AbortController();
  let over = false;
  let resolveEnded: (ending: Ending) => void;
  const ended = new Promise<Ending>((resolve) => {
    resolveEnded = resolve;
  });
  const end = (ending: Ending): void => {
    if (over) return;
    over = true;
    silence.stop();
    resolveEnded(ending);
    if (ending.type !== 'completed') abortion.abort();
  };
  const silence = watchSilence(call, (message) => end(failure('timeout', true, message)));
  const hear = (piece: ModelPiece): void => {
    const isEnding = piece.type === 'completed' || piece.type === 'failed';
    if (over) {
      if (isEnding && piece.usage !== null) call.onLateUsage(piece.usage);
      return;
    }
    silence.heard();
    if (isEnding) end(piece);
    else call.onPiece(piece);
  };
  const hearAll = async (): Promise<void> => {
    for await (const piece of call.model.stream(call.request, abortion.signal)) hear(piece);
  };
  const silent = attempt(hearAll).then((heard) => {
    if (heard.kind === 'done') end(failure('unreachable', true, `the reply of ${call.model.id} broke off`));
    else
      end(failure('malformed', false, `the connection to ${call.model.id} failed: ${heard.fault.message}`));
  });
  return { ended, silent, abort: () => end({ type: 'aborted' }) };
};
