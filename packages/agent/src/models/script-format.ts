/** Checks scripts from files. A file of its own, so that a script made in code loads no schema. */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import { isAnswer, type Script, scriptedCallId } from './scripted-model.js';

export type ParsedScript =
  | { readonly kind: 'ok'; readonly script: Script }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const name = v.pipe(v.string(), v.nonEmpty('must not be empty'));
const texts = v.union([v.string(), v.array(v.string())], 'must be a text or a list of texts');

const isRegExp = (source: string): boolean => {
  try {
    return Boolean(new RegExp(source, 'u'));
  } catch {
    return false; // the schema says where
  }
};

const textExpectation = {
  contains: v.optional(texts),
  matches: v.optional(v.pipe(v.string(), v.check(isRegExp, 'is no regular expression'))),
  lacks: v.optional(texts),
};

const expectation = v.strictObject({
  messages: v.optional(count),
  last: v.optional(v.strictObject(textExpectation)),
  instructions: v.optional(v.strictObject(textExpectation)),
  results: v.optional(
    v.array(v.strictObject({ ...textExpectation, callId: name, failed: v.optional(v.boolean()) })),
  ),
  tools: v.optional(v.array(name)),
});

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const call = v.pipe(
  v.strictObject({
    tool: name,
    callId: v.optional(
      v.pipe(v.string(), v.regex(/^[\w-]+$/, 'may hold letters, digits, _ and - only')),
    ),
    input: v.optional(v.custom<JsonObject>(isJsonObject, 'must be an object')),
    rawInput: v.optional(v.string()),
  }),
  v.check(
    ({ input, rawInput }) => input === undefined || rawInput === undefined,
    'has both input and rawInput',
  ),
);

const failure = v.strictObject({
  kind: v.picklist([
    'rateLimited',
    'overloaded',
    'unreachable',
    'timeout',
    'contextOverflow',
    'auth',
    'badRequest',
    'quotaExhausted',
    'refused',
    'malformed',
  ]),
  message: v.optional(name),
  retryAfterMs: v.optional(count),
});

const answer = {
  reasoning: v.optional(v.string()),
  text: v.optional(v.string()),
  stopReason: v.optional(
    v.picklist(['end', 'toolUse', 'maxTokens', 'refusal', 'contentFilter', 'other']),
  ),
  usage: v.optional(
    v.strictObject({
      inputTokens: v.optional(count),
      outputTokens: v.optional(count),
      cacheReadTokens: v.optional(count),
      cacheWriteTokens: v.optional(count),
    }),
  ),
  delayMs: v.optional(count),
  fail: v.optional(failure),
  stall: v.optional(v.boolean()),
  cut: v.optional(v.boolean()),
};

type Ends = Partial<Record<'fail' | 'stall' | 'cut' | 'calls' | 'stopReason' | 'usage', unknown>>;
const endings = ({ fail, stall, cut }: Ends): number =>
  [fail !== undefined, stall, cut].filter(Boolean).length;

const endsOnce = (one: Ends): boolean => endings(one) <= 1;
const ENDS_TWICE = 'has more than one of fail, stall and cut';
const endsWhole = (one: Ends): boolean =>
  endings(one) === 0 || (one.calls ?? one.stopReason ?? one.usage) === undefined;
const NO_END = 'does not come to its end, so it can have no calls, stopReason or usage';

const rule = v.pipe(
  v.strictObject({ when: v.pipe(name, v.check(isRegExp, 'is no regular expression')), ...answer }),
  v.check((one) => endsOnce(one), ENDS_TWICE),
  v.check((one) => endsWhole(one), NO_END),
);

const reply = v.pipe(
  v.strictObject({ expect: v.optional(expectation), calls: v.optional(v.array(call)), ...answer }),
  v.check((one) => endsOnce(one), ENDS_TWICE),
  v.check((one) => endsWhole(one), NO_END),
);

const price = v.pipe(v.number(), v.minValue(0));
const schema = v.strictObject({
  replies: v.array(reply),
  rules: v.optional(v.array(rule)),
  facts: v.optional(
    v.strictObject({
      windowTokens: v.optional(count),
      outputTokensMax: v.optional(count),
      prices: v.optional(
        v.nullable(
          v.strictObject({ input: price, output: price, cacheRead: price, cacheWrite: price }),
        ),
      ),
    }),
  ),
});

/** Two calls of one id could not be told apart, neither in results nor when a session goes on. */
const findDoubleId = ({ replies }: Script): ParsedScript | null => {
  const seen = new Set<string>();
  for (const [index, entry] of replies.entries()) {
    for (const [position, scripted] of (entry.calls ?? []).entries()) {
      const callId = scriptedCallId(scripted, index + 1, position);
      const field = `replies.${index}.calls.${position}.callId`;
      if (seen.has(callId)) return { kind: 'invalid', field, why: `${callId} was used before` };
      if (isAnswer(entry)) seen.add(callId);
    }
  }
  return null;
};

const issuePath = (issue: v.BaseIssue<unknown>): string =>
  (issue.path ?? []).map(({ key }) => String(key)).join('.') || 'the script';

/** A script from its parsed JSON, or the first field that is wrong. */
export const parseScript = (json: unknown): ParsedScript => {
  const parsed = v.safeParse(schema, json);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    // This is how valibot reports a field that the schema does not name.
    const unknownKey = issue.type === 'strict_object' && issue.expected === 'never';
    const why = unknownKey ? 'is no field of a script' : issue.message;
    return { kind: 'invalid', field: issuePath(issue), why };
  }
  // valibot types optional fields as possibly undefined; JSON has no undefined, so they are absent
  // instead.
  const script = parsed.output as Script;
  return findDoubleId(script) ?? { kind: 'ok', script };
};
