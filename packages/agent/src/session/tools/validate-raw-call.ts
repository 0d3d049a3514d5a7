import { homedir } from 'node:os';
import type { CallFacts, CallTraits, JudgedCall } from '../../machine/call.js';
import type { JsonObject } from '../../machine/message.js';
import { shortTitle } from '../../machine/values/call-title.js';
import { type JsonLimits, parseBounded } from '../../platform/base/parse-bounded-json.js';
import type { Redactor } from '../../platform/secrets/redactor.js';
import { markSensitivePaths } from '../../policy/paths/mark-sensitive-paths.js';
import type { RawCall } from '../../ports/model.js';
import type { Judgement, Tool } from '../../ports/tool.js';
import { attempt } from '../attempt.js';
import { takeJudgement } from '../check-outside-values.js';
import { NO_REDACTOR, redactJudgement, refusePlaceholder } from './redaction.js';
import { cutText } from './truncate-output.js';

/**
 * Judges calls before the reply is journaled (docs/rules.md#judged-calls). Text that is not a JSON object is never
 * repaired.
 */

const QUOTED_BYTES = 400;
const NO_FACTS: CallFacts = { argv: [], paths: [], hosts: [], shape: '' };
/** Traits of a call that can never start. */
const NO_TRAITS: CallTraits = { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 0 };

/** More than any tool needs. Code that hashes and writes states recurses through the input of a call. */
const INPUT_LIMITS: JsonLimits = { depthMax: 100, charactersMax: 8_000_000 };

type Input =
  | { readonly kind: 'object'; readonly input: JsonObject }
  | { readonly kind: 'invalid'; readonly rawInput: string; readonly why: string };

const quote = (rawInput: string): string => {
  const cut = cutText(rawInput, QUOTED_BYTES);
  return cut === null ? rawInput : `${cut.head} … ${cut.tail}`;
};

/** Parses the input, which must be an object. Text that is too long is dropped. */
const parseInput = (rawInput: string): Input => {
  if (rawInput.trim() === '') return { kind: 'object', input: {} };
  const parsed = parseBounded(rawInput, INPUT_LIMITS);
  const invalid = (fault: string, kept = rawInput): Input => ({
    kind: 'invalid',
    rawInput: kept,
    why: `the arguments ${fault}: ${quote(rawInput)}`,
  });
  if (parsed.kind === 'ok') {
    const { value } = parsed;
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return invalid('must be a JSON object, not');
    return { kind: 'object', input: value as JsonObject }; // the value comes from JSON.parse
  }
  const { depthMax, charactersMax } = INPUT_LIMITS;
  if (parsed.why === 'tooDeep') return invalid(`were nested deeper than ${depthMax} levels`);
  if (parsed.why === 'tooLong')
    return invalid(`were longer than ${charactersMax} characters`, quote(rawInput));
  return invalid('were not valid JSON');
};

const judgeInput = async (
  tool: Tool,
  input: JsonObject,
  workspace: string,
  redactor: Redactor,
): Promise<Judgement> => {
  const refused = refusePlaceholder(redactor, input);
  if (refused !== null) return refused;
  const judged = await attempt(() => tool.judge(input, workspace));
  if (judged.kind === 'done') return redactJudgement(redactor, takeJudgement(judged.value));
  return { kind: 'invalid', field: 'input', why: `the tool could not judge it: ${judged.fault.message}` };
};

/**
 * One call of a reply with everything that the machine needs to decide about it, as `LlmCompleted` carries it: what it
 * touches, or why it can't be made. `tools` by their names; `workspace` is a real absolute path. For a runtime of your own.
 */
export const judgeCall = async (
  raw: RawCall,
  tools: ReadonlyMap<string, Tool>,
  workspace: string,
  redactor: Redactor = NO_REDACTOR,
): Promise<JudgedCall> => {
  const named = { callId: raw.callId, tool: raw.tool };
  const tool = tools.get(raw.tool);
  const parsed = parseInput(raw.rawInput);
  const asWritten =
    parsed.kind === 'invalid' ? { input: {}, rawInput: parsed.rawInput } : { input: parsed.input };
  if (tool === undefined) {
    const verdict = { kind: 'noSuchTool', known: [...tools.keys()] } as const;
    return { ...named, ...asWritten, verdict, traits: NO_TRAITS, facts: NO_FACTS };
  }
  if (parsed.kind === 'invalid') {
    const verdict = { kind: 'invalid', field: 'input', why: parsed.why } as const;
    return { ...named, ...asWritten, verdict, traits: tool.traits, facts: NO_FACTS };
  }
  const { input } = parsed;
  const judgement = await judgeInput(tool, input, workspace, redactor);
  if (judgement.kind === 'invalid') {
    return { ...named, input, verdict: judgement, traits: tool.traits, facts: NO_FACTS };
  }
  const { deadlineMs = tool.traits.deadlineMs, facts, title } = judgement;
  const previews = tool.preview === undefined ? {} : ({ previews: 'yes' } as const);
  const traits = { ...tool.traits, deadlineMs, ...previews };
  const placed = markSensitivePaths(facts, workspace, homedir());
  const titled = title === undefined ? {} : { title: shortTitle(title) };
  return { ...named, input: judgement.input, verdict: { kind: 'ok' }, traits, facts: placed, ...titled };
};
