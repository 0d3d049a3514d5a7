/**
 * What a refusal teaches of a server: which field of a request it does not take, which one it
 * misses, how long an answer may be, and how much its window holds. A lesson changes the next
 * request; a refusal that teaches nothing new is final.
 */

import { OUTPUT_TOKENS_MIN } from '../machine/moves/request.js';
import { isObject, type Loose } from '../platform/untrusted-input.js';
import type { ModelFacts, ModelRequest } from '../ports/model.js';
import type { Refusal } from './errors.js';

/** What the refusals of a server have told. */
type Known = {
  /**
   * Fields that it refuses, by their path without places in lists (`messages.reasoning`), and the
   * name that it wants in their place; null: none.
   */
  readonly fields: ReadonlyMap<string, string | null>;
  /** A field that each reply of the conversation must have, if only an empty one; null: none. */
  readonly demanded: string | null;
  /** The longest answer; null: unknown. */
  readonly outputTokensMax: number | null;
  /** What prompt and answer may have together; null: unknown. */
  readonly window: { readonly tokens: number; readonly tokensPerCharacter: number } | null;
};

const NOTHING: Known = {
  fields: new Map(),
  demanded: null,
  outputTokensMax: null,
  window: null,
};

/** How a server takes requests. */
export type Terms = {
  readonly known: Known;
  /** `refused`: requests have no level of effort. */
  readonly effort: 'taken' | 'refused';
  /** The request, with an answer that is no longer than the server lets it be. */
  limit(request: ModelRequest): ModelRequest;
  /** The body as the server takes it, still with a bound of the answer that is paid for. */
  apply(body: object, request: ModelRequest): object;
};

// ---- A request and a body under the terms ----

/** Characters of the request without those of its pictures. */
const sizeOf = (request: ModelRequest): number =>
  JSON.stringify(request, (name, value: unknown) => (name === 'base64' ? undefined : value)).length;

/** This share of a window stays free: the size of a request is only estimated. */
const FREE_SHARE = 1 / 64;

const roomIn = (window: NonNullable<Known['window']>, request: ModelRequest): number =>
  Math.floor(window.tokens * (1 - FREE_SHARE) - sizeOf(request) * window.tokensPerCharacter);

/** The longest answer that the request asks for. */
const asksFor = (request: ModelRequest, facts: ModelFacts): number =>
  request.outputTokensMax ?? facts.outputTokensMax;

const limitAnswer = (
  request: ModelRequest,
  facts: ModelFacts,
  { outputTokensMax, window }: Known,
): ModelRequest => {
  const asked = asksFor(request, facts);
  const room = window === null ? asked : Math.max(OUTPUT_TOKENS_MIN, roomIn(window, request));
  const most = Math.min(asked, room, outputTokensMax ?? asked);
  return most === asked ? request : { ...request, outputTokensMax: most };
};

/** Fields whose objects a model or the author of a tool has written: no wire's own. */
const FOREIGN: ReadonlySet<string> = new Set(
  'args input input_schema parameters parametersJsonSchema'.split(' '),
);

/** Whether the fields of the value are the wire's own. */
const isOwn = (key: string, value: unknown): boolean => !FOREIGN.has(key) || Array.isArray(value);

const join = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

/** The value without the refused fields; undefined if nothing is left of it. */
const withoutRefused = (value: unknown, path: string, fields: Known['fields']): unknown => {
  if (Array.isArray(value)) return value.map((each) => withoutRefused(each, path, fields));
  if (!isObject(value)) return value;
  const entries = Object.entries(value).flatMap(([key, each]): [string, unknown][] => {
    const here = join(path, key);
    const instead = fields.get(here);
    // the name in its place may have been refused, too
    const other = typeof instead === 'string' ? fields.get(join(path, instead)) : undefined;
    const name = other === undefined ? instead : other;
    if (name !== undefined) return name === null ? [] : [[name, each]];
    return [[key, isOwn(key, each) ? withoutRefused(each, here, fields) : each]];
  });
  return entries.length === 0 && Object.keys(value).length > 0
    ? undefined
    : Object.fromEntries(entries);
};

/** Whether it is a reply of Chat Completions, whose thoughts stand beside its text. */
const isReply = (message: unknown): message is Loose =>
  isObject(message) && message.role === 'assistant' && !Array.isArray(message.content);

const lacks = (name: string) => (message: unknown) => isReply(message) && !(name in message);

const BOUNDS = /\b(?:max_(?:completion_|output_)?tokens|maxOutputTokens)$/;

/** The refused fields that may be left out of the request: no bound that is paid for. */
const fieldsWithout = (fields: Known['fields'], { isBoundPaid }: ModelRequest): Known['fields'] =>
  isBoundPaid === true
    ? new Map([...fields].filter(([path, instead]) => instead !== null || !BOUNDS.test(path)))
    : fields;

const applyTerms = (body: object, { fields, demanded }: Known): object => {
  const taken = fields.size === 0 ? body : (withoutRefused(body, '', fields) as object); // a body has fields
  const { messages } = taken as Loose; // of other wires, or none
  if (demanded === null || !Array.isArray(messages)) return taken;
  const empty = demanded.endsWith('details') ? [] : '';
  const isLacking = lacks(demanded);
  return {
    ...taken,
    messages: messages.map((each) => (isLacking(each) ? { ...each, [demanded]: empty } : each)),
  };
};

/** Fields of all wires that carry the effort. */
const EFFORT =
  /^(reasoning_effort|(reasoning|output_config)(\.effort)?|thinking(\.\w+)?|generationConfig\.thinkingConfig(\.thinking(Level|Budget))?)$/;

// ---- What a refusal teaches ----

/** A request that was refused. */
export type RefusedRequest = {
  readonly request: ModelRequest;
  /** As it was sent. */
  readonly body: object;
  readonly facts: ModelFacts;
};

/** The terms after the refusal; null if it teaches nothing that is new. */
export const learn = (
  refusal: Refusal,
  refused: RefusedRequest,
  { known }: Pick<Terms, 'known'> = { known: NOTHING },
): Terms | null => {
  const changes =
    learnLength(refusal, refused) ??
    learnDemand(refusal, refused) ??
    learnField(refusal, refused, known);
  if (changes === null) return null;
  const learned = { ...known, ...changes };
  // The same request would be refused again.
  const isNew =
    limitAnswer(refused.request, refused.facts, learned) !== refused.request ||
    learned.demanded !== known.demanded ||
    learned.fields !== known.fields;
  if (!isNew) return null;
  return {
    known: learned,
    effort: [...learned.fields].some(([path, other]) => other === null && EFFORT.test(path))
      ? 'refused'
      : 'taken',
    limit: (request) => limitAnswer(request, refused.facts, learned),
    apply: (body, request) =>
      applyTerms(body, { ...learned, fields: fieldsWithout(learned.fields, request) }),
  };
};

type Lesson = Partial<Known> | null;

/** Numbers that stand by themselves, not in a name such as `gpt-4-32768`. */
const NUMBERS = /(?<![\w./-])(\d{1,3}(?:,\d{3})+|\d{2,})(?![\w/-]|\.\d)/g;

/** The status of the refusal, as gateways put it before the sentence: `Error code: 400 - ...`. */
const STATUS = /\b(?:code|status|error|http)\b[:= ]*\(?[45]\d\d\b/gi;

/** Tokens of a text of which nothing was counted. */
const TOKENS_PER_CHARACTER = 1 / 3;

/**
 * The numbers of a refusal: the window, what was asked for, and what that comes to. Servers name
 * them in any order and in many words, so their sums tell which is which.
 */
const learnLength = (refusal: Refusal, { request, facts }: RefusedRequest): Lesson => {
  const sentence = refusal.sentence.replace(STATUS, '');
  const asked = asksFor(request, facts);
  const all = [...sentence.matchAll(NUMBERS)].map(([text]) => Number(text.replaceAll(',', '')));
  const isAboutAnswers = all.includes(asked) || /max_\w*tokens|completion|output/i.test(sentence);
  if (!isAboutAnswers || !/token|context/i.test(sentence)) return null;
  const [first, second, ...rest] = [...new Set(all)]
    .filter((number) => number !== asked)
    .sort((one, other) => other - one);
  if (first === undefined) return null;
  // asked for 8192: `max_tokens: 8192 > 4096`
  if (second === undefined && first < asked) return { outputTokensMax: first };
  const size = sizeOf(request);
  const windowOf = (tokens: number, prompt: number): Lesson => {
    const window = { tokens, tokensPerCharacter: prompt / size };
    return roomIn(window, request) < OUTPUT_TOKENS_MIN ? null : { window };
  };
  // `max_tokens 8192 exceeds the context length of 16384`
  if (second === undefined) return windowOf(first, size * TOKENS_PER_CHARACTER);
  const parts = rest.reduce((sum, number) => sum + number, 0);
  // `maximum 16384 tokens, you requested 18192 (10000 in the messages, 8192 in the completion)`
  if (first - asked === parts) return windowOf(second, parts);
  // `maximum 8192 tokens, you requested 9582 (658 of text, 732 of tools, 8192 in the output)`
  if (first - asked === second + parts) return windowOf(asked, second + parts);
  // `10000 + 8192 > 16384`
  return second + asked > first ? windowOf(first, second) : null;
};

const THOUGHTS = /\b\w*(?:reason|think|thought)\w*\b/gi;
const MISSES =
  /\b(missing|required?s?|must (be (passed|provided|included|sent|set)|have|contain|include))\b/i;

/** The server wants thoughts with each reply, also with those that have none. */
const learnDemand = ({ sentence }: Refusal, { body }: RefusedRequest): Lesson => {
  const words = sentence.replace(/https?:\S+/g, '');
  const names = MISSES.test(words) ? (words.match(THOUGHTS) ?? []) : [];
  const name = names.find((each) => each.includes('_')) ?? names[0];
  const { messages } = body as Loose; // of other wires, or none
  return name === undefined ||
    name in body ||
    !Array.isArray(messages) ||
    !messages.some(lacks(name))
    ? null
    : { demanded: name };
};

/** Without these it would be another request. */
const ESSENTIAL: ReadonlySet<string> = new Set([
  ...'arguments call_id content contents data function functionCall functionDeclarations'.split(
    ' ',
  ),
  ...'functionResponse id image_url input messages model name output parts role source'.split(' '),
  ...'stream system systemInstruction text tool_call_id tool_calls tool_use_id tools'.split(' '),
  ...['type', 'url', ...FOREIGN],
]);

/** The paths of all fields of the wire, without places in lists. */
const addPaths = (value: unknown, path: string, paths: Set<string>): Set<string> => {
  if (Array.isArray(value)) for (const each of value) addPaths(each, path, paths);
  else if (isObject(value))
    for (const [key, each] of Object.entries(value)) {
      paths.add(join(path, key));
      if (isOwn(key, each)) addPaths(each, join(path, key), paths);
    }
  return paths;
};

const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

/** Whether a name that a server gives, with words of its own between, is that of the path. */
const isNamed = (path: string, name: string): boolean => {
  const words = name.split(/[.[\]]+/).filter((word) => word !== '' && !/^\d+$/.test(word));
  const keys = path.split('.');
  if (words.at(-1) !== keys.at(-1)) return false;
  // A bare name may stand anywhere.
  return words.length === 1 || keys.every((key) => words.includes(key));
};

const REFUSES =
  /\b(un(supported|known|recogni[sz]ed|expected|available)|not (be )?(support|permit|allow|recogni[sz]|accept|valid|available)\w*|extra|additional|invalid (parameter|argument|field)|cannot find|no such|(does not|doesn't|only) (support|accept|allow)s?)\b/i;
const INSTEAD = /\buse [`'"]?([a-z_]+)[`'"]? instead/i;
const WORDS = /[A-Za-z_]\w*(?:[.[\]]+\w+)*/g;

/** The server names a field that it does not take. */
const learnField = (
  { sentence, named }: Refusal,
  { request, body }: RefusedRequest,
  { fields, demanded }: Known,
): Lesson => {
  const paths = [...addPaths(body, '', new Set())].filter((path) => !ESSENTIAL.has(lastOf(path)));
  const words = REFUSES.test(sentence) ? (sentence.match(WORDS) ?? []) : [];
  const [refused = []] = [...named, ...words]
    .map((name) => paths.filter((path) => isNamed(path, name)))
    .filter((found) => found.length > 0);
  if (refused.length === 0) return null;
  const instead = INSTEAD.exec(sentence)?.[1] ?? null;
  const known = instead !== null && paths.some((path) => lastOf(path) === instead);
  const learned = new Map(refused.map((path) => [path, known ? null : instead]));
  if (fieldsWithout(learned, request).size === 0) return null;
  return {
    fields: new Map([...fields, ...learned]),
    demanded: refused.some((path) => lastOf(path) === demanded) ? null : demanded,
  };
};
