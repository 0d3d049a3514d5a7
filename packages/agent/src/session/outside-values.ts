/**
 * Validates the values that programs, tools and models give to the runtime.
 *
 * 1. Values are copied first, since the caller may change them later; each getter runs once.
 * 2. Invalid usage does not make the rest invalid: the usage counts as unknown. That of a tool is
 *    reported.
 * 3. What Pawl's models and tools make is not checked: their makers mark them (`markOwn`).
 * 4. A `Shape` says of which form a value must be. `faultIn` names the fault in a sentence, or is
 *    null; `trimmed` leaves out fields that the shape does not have.
 *
 * From top to bottom: events of users; usage; pieces of a model's reply; what tools return; models
 * and tools themselves; and the copy that all of them begin with.
 */

import {
  bool,
  count,
  countFromOne,
  type Fields,
  faultIn,
  finite,
  isRecord,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  trimmed,
  variant,
} from '@pawl/machine/kernel/shape';
import type { CallPreview } from '../machine/call.js';
import {
  inputShape,
  invalidFields,
  outcomeFields,
  settingsPatchShape,
  textPartFields,
  tokenFields,
} from '../machine/incoming-shapes.js';
import type { Settings } from '../machine/settings.js';
import {
  callFactsShape,
  callPreviewShape,
  callTraitsShape,
  jsonObjectShape,
  modelErrorShape,
  pricesShape,
  stopReasonShape,
} from '../machine/shapes.js';
import { attemptNow } from '../platform/attempt.js';
import { isOwn } from '../platform/untrusted-input.js';
import type { Model, ModelFacts, ModelPiece, RawCall, TokenUsage } from '../ports/model.js';
import type { Input } from '../ports/session.js';
import type { FileHashes, Judgement, Tool, ToolOutcome } from '../ports/tool.js';

const LIMITS: CopyLimits = { depthMax: 120, charactersMax: 400_000_000 };
/** Limits for an event, which is one line of a journal: JSON may write a character as six. */
const EVENT_LIMITS: CopyLimits = { ...LIMITS, charactersMax: 50_000_000 };

type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'bad'; readonly why: string };

const checkShape = <T>(shape: Shape<T>, value: unknown, whole: string): Checked<T> => {
  const why = faultIn(shape, value, whole);
  // the shape was checked above
  return why === null ? { kind: 'ok', value: value as T } : { kind: 'bad', why };
};

/** The value if it has the shape. Unknown fields are omitted. */
const takeCopy = <T>(shape: Shape<T>, plain: PlainCopy, whole: string): Checked<T> => {
  if (plain.kind === 'invalid') return { kind: 'bad', why: plain.why };
  return checkShape(shape, trimmed(shape, plain.value), whole);
};

/** Copies the value and checks its shape. */
const take = <T>(shape: Shape<T>, raw: unknown, whole: string): Checked<T> =>
  takeCopy(shape, copyPlain(raw, LIMITS), whole);

/**
 * Separates the usage from the other fields, so that invalid usage leaves the rest valid. Both are
 * copies.
 */
const splitUsage = (raw: unknown): { readonly rest: PlainCopy; readonly usage: PlainCopy } => {
  const whole = copyPlain(raw, LIMITS);
  if (whole.kind === 'ok') {
    const { usage = null, ...rest } = isRecord(whole.value) ? whole.value : {};
    return {
      rest: isRecord(whole.value) ? { kind: 'ok', value: rest } : whole,
      usage: { kind: 'ok', value: usage },
    };
  }
  // The whole can't be copied: either half may still be valid.
  const parted = attemptNow(() => {
    // any value is possible here
    const { usage, ...rest } = Object(raw) as { readonly usage?: unknown };
    return { rest: copyPlain(rest, LIMITS), usage: copyPlain(usage ?? null, LIMITS) };
  });
  return parted.kind === 'done' ? parted.value : { rest: whole, usage: whole };
};

// ---- Events ----

/** A copy of a user's event. Throws a TypeError that names the wrong field. */
export const checkInput = (raw: unknown): Input => {
  const plain = copyPlain(raw, EVENT_LIMITS);
  const refuse = (why: string): never => {
    throw new TypeError(`the event is refused, and nothing has changed: ${why}`);
  };
  if (plain.kind === 'invalid') return refuse(plain.why);
  const checked = checkShape(inputShape, dropTime(plain.value), 'the event');
  return checked.kind === 'ok' ? checked.value : refuse(checked.why);
};

/** Removes the time, which the runtime sets. An event from a journal has one. */
const dropTime = (value: unknown): unknown => {
  if (!isRecord(value)) return value;
  const { at: _, ...untimed } = value;
  return untimed;
};

// ---- Usage ----

export const uncountableText = (whose: string, why: string): string =>
  `${whose} reported usage that can't be counted (${why}): what this call used is unknown, ` +
  'and no limit counts it';

const usageShape: Shape<TokenUsage> = object<TokenUsage>(tokenFields);

// ---- What models say ----

const rawCallFields: Fields<Omit<RawCall, 'type'>> = {
  callId: text,
  tool: text,
  rawInput: text,
  metadata: optional(jsonObjectShape),
};
type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;
type Part = Completed['parts'][number];
const partShape: Shape<Part> = variant<Part, 'type'>('type', {
  text: textPartFields,
  reasoning: textPartFields,
  call: rawCallFields,
});
type WithoutUsage<P> = P extends unknown ? Omit<P, 'usage'> : never;
/** The shape of a piece without its usage. */
const pieceShape: Shape<WithoutUsage<ModelPiece>> = variant<WithoutUsage<ModelPiece>, 'type'>(
  'type',
  {
    text: { text },
    reasoning: { text },
    toolCall: { tool: text, text },
    completed: {
      parts: list(partShape),
      stopReason: stopReasonShape,
      effort: optional(oneOf({ refused: 1 })),
    },
    failed: { error: modelErrorShape },
  },
);

type PieceCheck =
  | { readonly kind: 'piece'; readonly piece: ModelPiece }
  /** `usage`: from the invalid piece, if it can be counted. */
  | { readonly kind: 'bad'; readonly why: string; readonly usage: TokenUsage | null };

/** Whether a piece of a model of ours holds nothing of its server's but texts and usage. */
const isPlain = (piece: ModelPiece): boolean =>
  piece.type === 'completed'
    ? piece.parts.every(({ metadata }) => metadata === undefined)
    : piece.type !== 'failed';

/**
 * Checks one piece of a reply. The model may yield any value. Usage is null if it is missing, or
 * can't be counted. Of models of ours, what their servers have sent is checked: usage, metadata and
 * errors.
 */
export const checkPiece = (model: Model, raw: unknown): PieceCheck => {
  const trusted = isOwn(model) ? (raw as ModelPiece) : null; // by its type
  if (trusted !== null && isPlain(trusted)) {
    if (trusted.type !== 'completed') return { kind: 'piece', piece: trusted };
    const fault = faultIn(nullable(usageShape), trusted.usage, 'the usage');
    return { kind: 'piece', piece: fault === null ? trusted : { ...trusted, usage: null } };
  }
  const { rest, usage } = splitUsage(raw);
  const checked = takeCopy(pieceShape, rest, 'the piece');
  if (
    checked.kind === 'ok' &&
    checked.value.type !== 'completed' &&
    checked.value.type !== 'failed'
  )
    return { kind: 'piece', piece: checked.value };
  const used = takeCopy(nullable(usageShape), usage, 'the usage');
  const counted = used.kind === 'ok' ? used.value : null;
  if (checked.kind === 'bad') return { kind: 'bad', why: checked.why, usage: counted };
  // both types only lacked the usage
  return { kind: 'piece', piece: { ...checked.value, usage: counted } as ModelPiece };
};

// ---- What tools say ----

type OutcomeWithoutUsage = Omit<ToolOutcome, 'usage'>;
const { usage: outcomeUsage, ...otherFields } = outcomeFields;
const callOutcomeShape: Shape<OutcomeWithoutUsage> = object<OutcomeWithoutUsage>({
  ...otherFields,
  droppedBytes: optional(count),
  isLog: optional(bool),
  endedWell: optional(bool),
  cutBytes: optional(count),
});

type OutcomeCheck = { readonly outcome: ToolOutcome; readonly usageFault: string | null };

/** A tool's return value as an outcome. An invalid one counts as failed. */
export const takeOutcome = (tool: Tool, raw: unknown): OutcomeCheck => {
  if (isOwn(tool)) return { outcome: raw as ToolOutcome, usageFault: null }; // by its type
  const { rest, usage: reported } = splitUsage(raw);
  const checked = takeCopy(callOutcomeShape, rest, 'what it returned');
  const used = takeCopy(nullable(outcomeUsage.shape), reported, 'the usage');
  const usage = used.kind === 'ok' && used.value !== null ? { usage: used.value } : {};
  const usageFault = used.kind === 'bad' ? used.why : null;
  if (checked.kind === 'ok') return { outcome: { ...checked.value, ...usage }, usageFault };
  const failure = `the tool itself failed: ${checked.why}. It may have run`;
  return { outcome: { status: 'failed', text: failure, ...usage }, usageFault };
};

const NO_PREVIEW: CallPreview = { kind: 'none' };

/** A tool's preview of a call; nothing if it is invalid. */
export const takePreview = (tool: Tool, raw: unknown): CallPreview => {
  if (isOwn(tool)) return raw as CallPreview; // by its type
  const checked = take(callPreviewShape, raw, 'the preview');
  return checked.kind === 'ok' ? checked.value : NO_PREVIEW;
};

const hashesShape: Shape<FileHashes> = object<FileHashes>({ before: text, after: optional(text) });

/** Hashes of a file before and after a call; unknown if they are invalid. */
export const takeHashes = (tool: Tool, raw: unknown): FileHashes | undefined => {
  if (isOwn(tool)) return raw as FileHashes; // by its type
  const checked = take(hashesShape, raw, 'the hashes');
  return checked.kind === 'ok' ? checked.value : undefined;
};

const judgementShape: Shape<Judgement> = variant<Judgement, 'kind'>('kind', {
  ok: {
    ...{
      input: jsonObjectShape,
      facts: callFactsShape,
      deadlineMs: optional(finite),
      title: optional(text),
    },
    reads: optional(oneOf({ always: 1, fenced: 1 })),
  },
  invalid: invalidFields,
});

/** A tool's judgement of a call's input. Without a valid judgement the input counts as invalid. */
export const takeJudgement = (tool: Tool, raw: unknown): Judgement => {
  if (isOwn(tool)) return raw as Judgement; // by its type
  const checked = take(judgementShape, raw, 'its judgement');
  if (checked.kind === 'ok') return checked.value;
  return { kind: 'invalid', field: 'input', why: `the tool could not judge it: ${checked.why}` };
};

// ---- Models and tools themselves ----

// `oneOf` takes the permitted texts as keys, so that the compiler sees if one is missing.
const modelFactsShape: Shape<ModelFacts> = object<ModelFacts>({
  windowTokens: countFromOne,
  outputTokensMax: countFromOne,
  thinking: oneOf({ yes: 1, no: 1 }),
  effort: optional(oneOf({ levels: 1, budget: 1, none: 1 })),
  effortLevels: optional(list(oneOf({ low: 1, medium: 1, high: 1, xhigh: 1, max: 1 }))),
  tools: oneOf({ yes: 1, no: 1 }),
  images: optional(oneOf({ yes: 1, no: 1 })),
  prices: nullable(pricesShape),
  cacheLifetimeMs: optional(countFromOne),
  source: nullable(text),
});
type StaticModel = Pick<Model, 'id' | 'facts' | 'canAbort'>;
const modelShape: Shape<StaticModel> = object<StaticModel>({
  id: text,
  facts: modelFactsShape,
  canAbort: oneOf({ yes: 1, no: 1 }),
});
type StaticTool = Pick<Tool, 'name' | 'description' | 'inputSchema' | 'traits'>;
const toolShape: Shape<StaticTool> = object<StaticTool>({
  name: text,
  description: text,
  inputSchema: jsonObjectShape,
  traits: callTraitsShape,
});

/** The fault in an object that also has functions; null if there is none. */
const objectFault = <T>(shape: Shape<T>, raw: unknown): string | null => {
  const read = attemptNow(() => trimmed(shape, raw));
  return read.kind === 'done' ? faultIn(shape, read.value, 'it') : "it can't be read";
};

const refuse = (whose: string, why: string | null): void => {
  if (why !== null) throw new TypeError(`${whose} can't be used: ${why}`);
};

const missingFunction = (raw: object, names: readonly string[]): string | null => {
  const missing = names.find((name) => typeof Reflect.get(raw, name) !== 'function');
  return missing === undefined ? null : `it has no function ${missing}`;
};

/** Throws a TypeError that names the invalid setting. */
export const checkSettings = (settings: Partial<Settings>): void =>
  refuse('the settings', faultIn(settingsPatchShape, settings, 'they'));

/** What stands for a model by mistake, and how to make a model of it; null for other values. */
const modelAdvice = (raw: unknown): string | null => {
  if (typeof raw === 'string') return 'it is a text. chooseModel finds the model of a name';
  if (!isRecord(raw)) return null;
  const { doStream, kind, model, message } = raw;
  if (typeof doStream === 'function')
    return 'it is a model of the AI SDK. aiSdkModel makes a model of it';
  if (kind === 'ok' && isRecord(model))
    return 'it is what chooseModel returned. Its field model is the model';
  return typeof kind === 'string' && typeof message === 'string'
    ? `it is what chooseModel returned: ${message}`
    : null;
};

/** Throws a TypeError that describes the fault of a model. */
export const checkModel = (model: Model): void => {
  const advice = attemptNow(() => modelAdvice(model));
  refuse('the model', advice.kind === 'done' ? advice.value : null);
  refuse('the model', objectFault(modelShape, model));
  refuse(`the model ${model.id}`, missingFunction(model, ['stream']));
};

/** Throws a TypeError that describes the fault of a tool. */
export const checkTool = (tool: Tool): void => {
  refuse('a tool', objectFault(toolShape, tool));
  refuse(`the tool ${tool.name}`, missingFunction(tool, ['judge', 'run']));
};

// ---- Copies of untrusted values as plain data, which their makers can't change later ----

type CopyLimits = {
  /** Maximum nesting of lists and objects. */
  readonly depthMax: number;
  /** Maximum length of all texts and field names together. */
  readonly charactersMax: number;
};

type PlainCopy =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly why: string };

/** Maximum number of fields and items: copying more costs too much. */
const VALUES_MAX = 500_000;

class NotPlain extends Error {}

const copyWithin = (root: unknown, { depthMax, charactersMax }: CopyLimits): unknown => {
  let characters = 0;
  let values = 0;
  const spend = (more: number): void => {
    characters += more;
    values += 1;
    if (characters > charactersMax)
      throw new NotPlain(`it is larger than ${charactersMax} characters`);
    if (values > VALUES_MAX) throw new NotPlain(`it holds more than ${VALUES_MAX} values`);
  };
  const copyObject = (value: object, depth: number): object => {
    const plain = {};
    for (const key of Object.keys(value)) {
      const held = copy((value as Readonly<Record<string, unknown>>)[key], depth); // a key of it
      spend(key.length);
      if (held === undefined) continue;
      // An assignment to __proto__ would set the prototype.
      if (key === '__proto__')
        Object.defineProperty(plain, key, {
          value: held,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      else (plain as Record<string, unknown>)[key] = held; // created here
    }
    return plain;
  };
  const copyList = (value: readonly unknown[], depth: number): readonly unknown[] => {
    const { length } = value; // once: a proxy can give another one each time
    if (length > VALUES_MAX) throw new NotPlain(`it holds more than ${VALUES_MAX} values`);
    const plain: unknown[] = [];
    for (let index = 0; index < length; index++) plain.push(copy(value[index], depth));
    return plain;
  };
  const copy = (value: unknown, depth: number): unknown => {
    switch (typeof value) {
      case 'string':
        spend(value.length);
        return value;
      case 'number':
        spend(0);
        return value === 0 ? 0 : value; // JSON has no -0
      case 'boolean':
      case 'undefined':
        spend(0);
        return value;
      case 'object':
        spend(0);
        if (value === null) return null;
        if (depth === depthMax) throw new NotPlain(`it is nested deeper than ${depthMax} levels`);
        return Array.isArray(value) ? copyList(value, depth + 1) : copyObject(value, depth + 1);
      default:
        throw new NotPlain(`it holds a ${typeof value}`);
    }
  };
  return copy(root, 0);
};

/**
 * A copy that shares nothing with the value. Undefined fields are omitted; numbers stay what they
 * are.
 */
const copyPlain = (value: unknown, limits: CopyLimits): PlainCopy => {
  try {
    return { kind: 'ok', value: copyWithin(value, limits) };
  } catch (thrown) {
    // Nothing is lost: the caller refuses the value, with the reason.
    if (thrown instanceof NotPlain) return { kind: 'invalid', why: thrown.message };
    return { kind: 'invalid', why: "it can't be read: looking at one of its fields throws" };
  }
};
