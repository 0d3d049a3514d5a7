import { pageWords } from '../http/error-page-text.js';
import { asText, isObject, type Loose, listIn, objectIn } from '../untyped-json.js';

/** Reads the facts off an error that a provider sends or its client throws, in any of their classes and shapes. */

export type ErrorSigns = {
  /** Status of the answer, or the one that its body names; null for an error in a stream or of a connection. */
  readonly status: number | null;
  /** The provider's names for the kind of error, the most exact first. */
  readonly labels: readonly string[];
  /** The provider's sentence; the first words of a page if the answer is no JSON. */
  readonly sentence: string;
  /** The connection's error code, e.g. `ECONNRESET`. */
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Delay before a retry as the body names it: `12s` or `12.5s`. */
  readonly retryDelay: string | null;
};

type Detail = Pick<ErrorSigns, 'labels' | 'retryDelay'> & {
  readonly message: string | null;
  readonly status: number | null;
};

const NOTHING: Detail = { labels: [], message: null, status: null, retryDelay: null };

/** Characters of a provider's sentence that are read. */
const SENTENCE_MAX = 2_000;

const isErrorStatus = (value: unknown): value is number =>
  typeof value === 'number' && value >= 400 && value < 600;

/** Google's list of details: a reason, the exhausted quota, the delay before a retry. */
const readDetails = (details: readonly Loose[]): Pick<Detail, 'labels' | 'retryDelay'> => {
  const violations = details.flatMap(({ violations: found }) => listIn(found));
  const isDaily = violations.some(({ quotaId }) => /PerDay/.test(asText(quotaId) ?? ''));
  const reasons = details.flatMap(({ reason }) => asText(reason) ?? []);
  return {
    labels: [...(isDaily ? ['QUOTA_OF_THE_DAY'] : []), ...reasons],
    retryDelay: details.map(({ retryDelay }) => asText(retryDelay)).find((delay) => delay !== null) ?? null,
  };
};

const asLabel = (value: unknown): string | null =>
  typeof value === 'number' && !isErrorStatus(value) ? String(value) : asText(value);

/** FastAPI lists the faults of a request; each entry has its sentence under this key. */
const LISTED_SENTENCE = 'msg';

const listedMessage = (detail: unknown): string | null =>
  asText(
    listIn(detail)
      .flatMap((entry) => asText(entry[LISTED_SENTENCE]) ?? [])
      .join('; '),
  );

const readObject = (found: Loose): Detail => {
  const failed = objectIn(found, 'response').error;
  const inner = isObject(found.error) ? found.error : isObject(failed) ? failed : found;
  // A gateway only says that the provider behind it failed: that provider's words count.
  const behind = readDetail(objectIn(inner, 'metadata').raw, 'words');
  const { labels, retryDelay } = readDetails(listIn(inner.details));
  const own = [inner.code, inner.status, inner.type].flatMap((label) => asLabel(label) ?? []);
  return {
    labels: [...behind.labels, ...labels, ...own],
    message:
      behind.message ??
      asText(inner.message) ??
      asText(found.error) ??
      asText(found.detail) ??
      listedMessage(found.detail),
    status: isErrorStatus(inner.code) ? inner.code : behind.status,
    retryDelay: behind.retryDelay ?? retryDelay,
  };
};

const readPage = (text: string): Detail => ({ ...NOTHING, message: asText(pageWords(text)) });

/**
 * `{error: {type, code, message}}`, `{error: text}` or `{type, message}`, as an object or as JSON text. Text that is no
 * JSON is a gateway's page.
 */
function readDetail(value: unknown, otherwise: 'words' | 'nothing'): Detail {
  if (typeof value !== 'string') return isObject(value) ? readObject(value) : NOTHING;
  try {
    const json: unknown = JSON.parse(value);
    return isObject(json) ? readObject(Array.isArray(json) ? objectIn(json, 0) : json) : NOTHING;
  } catch {
    return otherwise === 'words' ? readPage(value) : NOTHING; // no JSON: status or code must do
  }
}

const readCode = (error: unknown): string | null => {
  let current = error;
  for (let depth = 0; depth < 8 && isObject(current); depth++) {
    const code = asText(current.code);
    if (code !== null) return code;
    current = current.cause;
  }
  return null;
};

const isStrings = (value: unknown): value is Readonly<Record<string, string>> =>
  isObject(value) && Object.values(value).every((entry) => typeof entry === 'string');

/** The error in an event that the package did not understand and hands on as `value`. */
const readUnknownEvent = ({ value }: Loose): Detail =>
  isObject(value) && value.error !== undefined ? readDetail(value, 'nothing') : NOTHING;

/** The unexpected body of an answer with status 200, which packages wrap into a cause. */
const readCause = ({ cause }: Loose): Detail => {
  if (!isObject(cause)) return NOTHING;
  if (cause.responseBody !== undefined) return readDetail(cause.responseBody, 'words');
  return typeof cause.type === 'string' ? readDetail(cause, 'nothing') : NOTHING;
};

/** True for a fault in a package's code: its message tells a user nothing. */
const isFaultOfCode = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;

/** A piece of a reply that is no JSON: the connection has damaged it. */
const isCutFrame = (error: unknown): boolean => error instanceof Error && error.name === 'AI_JSONParseError';

export const readSigns = (error: unknown): ErrorSigns => {
  const loose: Loose = isObject(error) ? error : { message: String(error) };
  const given = typeof loose.statusCode === 'number' ? loose.statusCode : null;
  // Events that carry an error are read like the body of an answer.
  const sources = [
    readDetail(loose.responseBody, 'words'),
    readDetail(loose.data, 'nothing'),
    readUnknownEvent(loose),
    readCause(loose),
    given === null ? readDetail(loose, 'nothing') : NOTHING,
  ];
  const said = sources.find(({ message }) => message !== null) ?? NOTHING;
  const code = readCode(error);
  const isFault = (isFaultOfCode(error) || isFaultOfCode(loose.cause)) && code === null;
  return {
    status: given ?? said.status,
    labels: [...sources.flatMap(({ labels }) => labels), ...(isCutFrame(error) ? ['damaged_frame'] : [])],
    sentence: (isFault
      ? 'a part of its reply could not be read'
      : (said.message ?? asText(loose.message) ?? '')
    ).slice(0, SENTENCE_MAX),
    code,
    headers: isStrings(loose.responseHeaders) ? loose.responseHeaders : {},
    retryDelay: said.retryDelay,
  };
};
