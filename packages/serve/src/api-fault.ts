/**
 * Faults of the HTTP API. Each is one JSON shape, `{ "error": { "code", "message" } }`: the code is
 * for programs, the message says what happened and what to do. `toApiFault` makes one of an error
 * of a journal, or of an engine (a service that runs sessions for several nodes).
 */

/** The HTTP status of each code. */
export const statuses = {
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
  quotaExhausted: 429,
  internal: 500,
  unreadable: 500,
  draining: 503,
  unavailable: 503,
} as const;

type ApiFaultCode = keyof typeof statuses;

/** A node that ends or waits may be back then. */
export const RETRY_SECONDS = 5;

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

/** The fault that an error means for the client; null if it is a fault of the node itself. */
export const toApiFault = (error: unknown): ApiFault | null => {
  if (error instanceof ApiFault) return error;
  if (!(error instanceof Error)) return null;
  const code = journalFaults[journalKind(error)];
  if (code === undefined) return engineFault(error);
  // the reason alone: the message names files of the node
  const isUnreadable = code === 'unreadable' && 'why' in error;
  return createFault(code, isUnreadable ? String(error.why) : error.message);
};

/**
 * Kinds of errors of journals that a client can cause or repair. Compared by name: the store is not
 * loaded for it.
 */
const journalFaults: Readonly<Record<string, ApiFaultCode>> = {
  notFound: 'notFound',
  outOfRange: 'badRequest',
  otherMachine: 'notFound',
  locked: 'conflict',
  takenOver: 'conflict',
  foreignChange: 'conflict',
  damaged: 'unreadable',
  newerVersion: 'unreadable',
  cannotRead: 'unreadable',
};

const journalKind = (error: Error): string =>
  error.name === 'JournalError' && 'kind' in error && typeof error.kind === 'string'
    ? error.kind
    : '';

/** The same for errors of an engine: by the HTTP status of its answer. */
const engineFaults: ReadonlyMap<unknown, ApiFaultCode> = new Map([
  [400, 'badRequest'],
  [404, 'notFound'],
  [409, 'conflict'],
  [413, 'tooLarge'],
]);

const createFault = (code: ApiFaultCode, message: string): ApiFault => {
  if (code === 'notFound')
    return new ApiFault(code, 'There is no such session. GET /v1/sessions lists yours.');
  if (code === 'tooLarge')
    return new ApiFault(
      code,
      'The input is larger than the engine of this node takes. Put the text into a file.',
    );
  if (code === 'unreadable') return new ApiFault(code, `${message} Tell the operator of the node.`);
  return new ApiFault(code, message);
};

const engineFault = (error: Error): ApiFault | null => {
  if (error.name === 'OtherMachineError')
    return new ApiFault('unavailable', `${error.message}, or ask another node.`, RETRY_SECONDS);
  if (error.name !== 'EngineError' || !('status' in error)) return null;
  const code = engineFaults.get(error.status);
  if (code !== undefined) return createFault(code, error.message);
  return new ApiFault(
    'unavailable',
    'The engine, or the node of this session, does not answer this node now. Look into the events, ' +
      'then send the request again.',
    RETRY_SECONDS,
  );
};
