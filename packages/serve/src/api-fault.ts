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

/** A node that ends, or an engine that is away, may be back after this time. */
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
  if (error.name !== 'JournalError' || !('kind' in error)) return engineFault(error);
  if (error.kind === 'outOfRange' && 'why' in error)
    return new ApiFault('badRequest', String(error.why));
  const known = journalFaults.get(error.kind);
  return known === undefined ? null : new ApiFault(...known);
};

type FaultText = readonly [ApiFaultCode, string];

const NOT_FOUND: FaultText = [
  'notFound',
  'There is no such session. GET /v1/sessions lists yours.',
];
const IN_USE: FaultText = [
  'conflict',
  'Another program of the node has this session open. Try again later, or tell the operator.',
];
const UNREADABLE: FaultText = [
  'unreadable',
  "The node can't read this session; its log says why. Tell the operator.",
];

/**
 * Faults by the kinds of errors of journals. Compared by name: the store is not loaded for it. The
 * texts are not those of the errors, which name files and processes of the node.
 */
const journalFaults: ReadonlyMap<unknown, FaultText> = new Map<unknown, FaultText>([
  ['notFound', NOT_FOUND],
  ['otherMachine', NOT_FOUND],
  ['locked', IN_USE],
  ['takenOver', IN_USE],
  ['foreignChange', IN_USE],
  ['damaged', UNREADABLE],
  ['newerVersion', UNREADABLE],
  ['cannotRead', UNREADABLE],
]);

/** Faults by the HTTP status of an engine's answer. */
const engineFaults: ReadonlyMap<unknown, ApiFaultCode> = new Map([
  [400, 'badRequest'],
  [404, 'notFound'],
  [409, 'conflict'],
  [413, 'tooLarge'],
]);

/** `message` is sent only where it is for clients. */
const answeredFault = (code: ApiFaultCode, message: string): ApiFault => {
  if (code === 'notFound') return new ApiFault(...NOT_FOUND);
  if (code === 'tooLarge')
    return new ApiFault(
      code,
      'The input is larger than the engine of this node takes. Put the text into a file.',
    );
  return new ApiFault(code, message);
};

const engineFault = (error: Error): ApiFault | null => {
  if (error.name === 'OtherMachineError')
    return new ApiFault('unavailable', `${error.message}, or ask another node.`, RETRY_SECONDS);
  if (error.name !== 'EngineError' || !('status' in error)) return null;
  const code = engineFaults.get(error.status);
  if (code !== undefined) return answeredFault(code, error.message);
  return new ApiFault(
    'unavailable',
    'The engine, or the node of this session, does not answer this node now. Look into the events, ' +
      'then send the request again.',
    RETRY_SECONDS,
  );
};
