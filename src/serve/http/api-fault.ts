/**
 * Faults of the HTTP API. Each is one JSON shape, `{ "error": { "code", "message" } }`: the code is for programs, the
 * message says what happened and what to do.
 */

const statuses = {
  badRequest: 400,
  wrongToken: 401,
  notAllowed: 403,
  notFound: 404,
  wrongMethod: 405,
  conflict: 409,
  workspaceGone: 409,
  tooLarge: 413,
  wrongType: 415,
  tooManyRequests: 429,
  tooManySessions: 429,
  tooManyStreams: 429,
  internal: 500,
  draining: 503,
  unavailable: 503,
} as const;

export type ApiFaultCode = keyof typeof statuses;

export class ApiFault extends Error {
  override readonly name = 'ApiFault';
  readonly code: ApiFaultCode;
  /** Seconds after which the request may succeed; null if waiting does not help. */
  readonly retryAfter: number | null;

  constructor(code: ApiFaultCode, message: string, retryAfter: number | null = null) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }

  get status(): number {
    return statuses[this.code];
  }
}

const NO_SESSION = 'There is no such session. GET /v1/sessions lists yours.';

/** Kinds of errors of journals that a client can cause or repair. Compared by name: the store is not loaded for it. */
const journalFaults: Readonly<Record<string, ApiFaultCode>> = {
  notFound: 'notFound',
  outOfRange: 'badRequest',
  otherMachine: 'notFound',
  locked: 'conflict',
  takenOver: 'conflict',
  foreignChange: 'conflict',
};

const journalKind = (error: Error): string =>
  error.name === 'JournalError' && 'kind' in error && typeof error.kind === 'string' ? error.kind : '';

const ENGINE_RETRY_SECONDS = 5;

/** The same for a runtime on an engine, whose errors have the status of the engine's answer; null for other errors. */
const engineFaultOf = (error: Error): ApiFault | null => {
  if (error.name !== 'EngineError' || !('status' in error)) return null;
  switch (error.status) {
    case 404:
      return new ApiFault('notFound', NO_SESSION);
    case 400:
      return new ApiFault('badRequest', error.message);
    case 409:
      return new ApiFault('conflict', error.message);
    default: {
      const why = 'The engine that keeps the sessions does not answer this node. Look into the events, then';
      return new ApiFault('unavailable', `${why} send the request again.`, ENGINE_RETRY_SECONDS);
    }
  }
};

/** The fault that an error of a runtime means for the client; null if it is one of the node's own. */
export const apiFaultOf = (error: unknown): ApiFault | null => {
  if (error instanceof ApiFault) return error;
  if (!(error instanceof Error)) return null;
  const code = journalFaults[journalKind(error)];
  if (code === 'notFound') return new ApiFault('notFound', NO_SESSION);
  if (code !== undefined) return new ApiFault(code, error.message);
  return engineFaultOf(error);
};
