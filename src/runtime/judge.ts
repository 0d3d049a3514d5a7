import type { CallFacts, CallTraits, JudgedCall } from '../agent/call.js';
import type { JsonObject } from '../agent/message.js';
import type { Judgement, RawCall, Tool } from '../needs.js';
import { cutText } from './cut.js';
import { attempt, attemptNow } from './wall.js';

/** Judges calls before the reply enters the journal (R0d). Text that is no JSON object is never repaired. */

const QUOTED_BYTES = 400;
const NO_FACTS: CallFacts = { argv: [], paths: [], hosts: [], shape: '' };
/** Of a call that can never start. */
const NO_TRAITS: CallTraits = { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 0 };

/** The input as the object it should be, or null. */
const parseInput = (rawInput: string): JsonObject | null => {
  if (rawInput.trim() === '') return {};
  const parsed = attemptNow((): unknown => JSON.parse(rawInput));
  if (parsed.kind === 'fault') return null;
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return value as JsonObject; // JSON.parse made it, so it holds nothing but JSON
};

const quote = (rawInput: string): string => {
  const cut = cutText(rawInput, QUOTED_BYTES);
  return cut === null ? rawInput : `${cut.head} … ${cut.tail}`;
};

const judgeInput = async (tool: Tool, input: JsonObject, workspace: string): Promise<Judgement> => {
  const judged = await attempt(() => tool.judge(input, workspace));
  if (judged.kind === 'done') return judged.value;
  return { kind: 'invalid', field: 'input', why: `the tool could not judge it: ${judged.fault.message}` };
};

/** One call with everything the machine needs to decide about it. */
export const judgeCall = async (
  raw: RawCall,
  tools: ReadonlyMap<string, Tool>,
  workspace: string,
): Promise<JudgedCall> => {
  const named = { callId: raw.callId, tool: raw.tool };
  const tool = tools.get(raw.tool);
  const input = parseInput(raw.rawInput);
  const asWritten = input === null ? { input: {}, rawInput: raw.rawInput } : { input };
  if (tool === undefined) {
    const verdict = { kind: 'noSuchTool', known: [...tools.keys()] } as const;
    return { ...named, ...asWritten, verdict, traits: NO_TRAITS, facts: NO_FACTS };
  }
  if (input === null) {
    const why = `the arguments were not valid JSON: ${quote(raw.rawInput)}`;
    const verdict = { kind: 'invalid', field: 'input', why } as const;
    return { ...named, ...asWritten, verdict, traits: tool.traits, facts: NO_FACTS };
  }
  const judgement = await judgeInput(tool, input, workspace);
  if (judgement.kind === 'invalid') {
    return { ...named, input, verdict: judgement, traits: tool.traits, facts: NO_FACTS };
  }
  const { deadlineMs = tool.traits.deadlineMs, facts } = judgement;
  const traits = { ...tool.traits, deadlineMs };
  return { ...named, input: judgement.input, verdict: { kind: 'ok' }, traits, facts };
};
