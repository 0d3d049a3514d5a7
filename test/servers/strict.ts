/** What the strict servers share: a fault is thrown where it is found, and is what the request is rejected with. */

export type Loose = { readonly [key: string]: unknown };

class Fault extends Error {}

export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const demand: (holds: boolean, fault: string) => asserts holds = (holds, fault) => {
  if (!holds) throw new Fault(fault);
};

export const demandObject: (value: unknown, at: string) => asserts value is Loose = (value, at) =>
  demand(isObject(value), `${at}: should be an object`);

export const demandText: (value: unknown, at: string) => asserts value is string = (value, at) =>
  demand(
    typeof value === 'string' && value.trim() !== '',
    `${at}: should be a text that is not empty`,
  );

/** No field that the wire does not know. */
export const demandFields = (value: Loose, known: readonly string[], at: string): void => {
  const extra = Object.keys(value).find((key) => !known.includes(key));
  demand(extra === undefined, `${at}.${extra}: unknown field`);
};

export const demandList: (value: unknown, at: string) => asserts value is readonly Loose[] = (
  value,
  at,
) => {
  demand(Array.isArray(value) && value.length > 0, `${at}: should be a list that is not empty`);
  demand(value.every(isObject), `${at}: should hold objects`);
};

/** The arguments of a call, as JSON text of an object. */
export const demandArguments = (value: unknown, at: string): void => {
  demand(typeof value === 'string', `${at}: should be a text`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    parsed = null; // no JSON: said below
  }
  demand(isObject(parsed), `${at}: should be JSON of an object`);
};

// ---- Habits: what only some servers refuse, on each wire ----

export type Habits = {
  /** Fields that it does not take, by their paths without places in lists. */
  readonly refuses?: readonly string[];
  /** Prompt and answer together must fit. */
  readonly windowTokens?: number;
};

const hasPath = (value: unknown, [key, ...rest]: readonly string[]): boolean => {
  if (Array.isArray(value)) return value.some((each) => hasPath(each, [key ?? '', ...rest]));
  const inner = isObject(value) ? value[key ?? ''] : undefined;
  return rest.length === 0 ? inner !== undefined : hasPath(inner, rest);
};

/** The tokens of a request, as the server counts them. */
export const promptTokens = ({ messages, input, tools }: Loose): number =>
  Math.ceil(JSON.stringify([messages ?? input, tools]).length / 4);

/** Refuses a field as gateways do, and a sum of prompt and answer as vLLM does it and says it. */
export const checkHabits = (body: Loose, { refuses = [], windowTokens }: Habits): void => {
  const refused = refuses.find((path) => hasPath(body, path.split('.')));
  const instead = refused === 'max_tokens' ? " Use 'max_completion_tokens' instead." : '';
  demand(refused === undefined, `Unsupported parameter: '${refused}' is not supported.${instead}`);
  if (windowTokens === undefined) return;
  const most = body.max_tokens ?? body.max_completion_tokens ?? body.max_output_tokens;
  const prompt = promptTokens(body);
  const all = prompt + Number(most);
  demand(
    all <= windowTokens,
    `This model's maximum context length is ${windowTokens} tokens. However, you requested ${all} tokens ` +
      `(${prompt} in the messages, ${most} in the completion). Please reduce the length.`,
  );
};

/** What `check` finds wrong, or null. */
export const faultOf = (check: () => void): string | null => {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
};
