import type { EditEvent } from './edit-event-lines.js';

/**
 * A side channel between one request and its connection. The package in between hands its `fetch` nothing of ours but
 * the abort signal, so the signal identifies the request.
 */
export type Exchange = {
  /** A comment or another line that is no event came: the server is alive. */
  readonly onAlive: () => void;
  /** `[DONE]` came. */
  readonly onDone: () => void;
  /** A line `error: …` came, which is no event either. */
  readonly onError: (text: string) => void;
  /** Rewrites the body of the request, JSON text. */
  readonly editBody?: (body: string) => string;
  /** Edits each event of the answer before the package reads it. */
  readonly editEvent?: EditEvent;
};

const exchanges = new WeakMap<AbortSignal, Exchange>();

/** Binds the exchange to the request with this signal. A signal stands for one request. */
export const bindExchange = (signal: AbortSignal, exchange: Exchange): void => {
  exchanges.set(signal, exchange);
};

export const exchangeOf = (signal: AbortSignal | null | undefined): Exchange | undefined =>
  signal ? exchanges.get(signal) : undefined;
