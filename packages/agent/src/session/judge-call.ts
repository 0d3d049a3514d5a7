/** A tool call before it runs: its tool judges the input, and shows what the call would change. */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { CallPreview } from '../machine/call.js';
import { attempt } from '../platform/attempt.js';
import { systemClock, waitAtMost } from '../platform/clock.js';
import { type JsonLimits, parseBounded } from '../platform/untrusted-input.js';
import { levelOfCall, type PolicySettings } from '../policy/decide.js';
import {
  type CallFacts,
  type CallTraits,
  type JudgedCall,
  shortTitle,
} from '../policy/judged-call.js';
import { markSensitivePaths, type UserPlaces } from '../policy/paths.js';
import type { RawCall } from '../ports/model.js';
import type { Judgement, PreviewContext, Tool } from '../ports/tool.js';
import type { Redactor } from '../secrets/redactor.js';
import { readUserPlaces } from '../secrets/user-places.js';
import { type Equipment, type RunningSession, recordingMemory } from './equipment.js';
import { takeJudgement, takePreview } from './outside-values.js';
import {
  cutText,
  NO_REDACTOR,
  redactJudgement,
  redactPreview,
  refusePlaceholder,
} from './result-text.js';

/**
 * One call of a reply with everything that the machine needs to decide about it, as `LlmCompleted`
 * carries it: what it touches, or why it can't be made. It is judged before the reply is journaled
 * (rules.md#judged-calls). No text is an empty object; other text that is not a JSON object is
 * never repaired. Exported for other runtimes, too.
 *
 * - `tools`: by their names. `workspace`: a real absolute path.
 * - `userPlaces`: credentials and files that Pawl obeys, marked also outside the workspace.
 * - `sandbox`: that of the session; without one a call that reads only in a sandbox (`fenced`)
 *   counts as changing.
 */
export const judgeCall = async (
  raw: RawCall,
  tools: ReadonlyMap<string, Tool>,
  workspace: string,
  redactor: Redactor = NO_REDACTOR,
  userPlaces: UserPlaces = readUserPlaces(process.env),
  sandbox?: PolicySettings['sandbox'],
): Promise<JudgedCall> => {
  const tool = findTool(raw.tool, tools);
  const named = { callId: raw.callId, tool: tool?.name ?? raw.tool };
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
  const { deadlineMs = tool.traits.deadlineMs, facts, title, reads } = judgement;
  const previews = tool.preview === undefined ? {} : ({ previews: 'yes' } as const);
  // `fenced`: it only reads if its command runs in the sandbox
  const isReader =
    reads === 'always' || (reads === 'fenced' && levelOfCall(sandbox, facts.needs) !== 'off');
  const mutating = tool.traits.mutating && !isReader;
  const traits = { ...tool.traits, mutating, deadlineMs, ...previews };
  // adds which paths hold credentials, or files that Pawl or other programs obey
  const markedFacts = markSensitivePaths(facts, workspace, userPlaces);
  const titled = title === undefined ? {} : { title: shortTitle(title) };
  return {
    ...named,
    input: judgement.input,
    verdict: { kind: 'ok' },
    traits,
    facts: markedFacts,
    ...titled,
  };
};

/** What models put before the names of tools, as other agents' prompts have taught them. */
const NAMESPACE = /^((functions?|tools?|api)[.:/]+|default_api[.:/_]+)/i;
/** A mark of a model's template, the number of a call, or `()`, which servers put behind the name. */
const BEHIND = /(<\|.*|:\d+|\(\))$/s;

const plainName = (name: string): string =>
  name
    .trim()
    .replace(BEHIND, '')
    .replace(NAMESPACE, '')
    .replace(/[\s_-]+/g, '')
    .toLowerCase();

/** The tool that is meant: `functions.bash`, `default_api:bash` and `Bash` are spellings of `bash`. */
const findTool = (name: string, tools: ReadonlyMap<string, Tool>): Tool | undefined => {
  const exact = tools.get(name);
  if (exact !== undefined) return exact;
  const plain = plainName(name);
  const [tool, ...others] = [...tools.values()].filter((one) => plainName(one.name) === plain);
  return others.length === 0 ? tool : undefined;
};

const QUOTED_BYTES = 400;
const NO_FACTS: CallFacts = { argv: [], paths: [], hosts: [], shape: '' };
/** Traits of a call that can never start. */
const NO_TRAITS: CallTraits = {
  effect: 'pure',
  parallelSafe: true,
  mutating: false,
  deadlineMs: 0,
};

/**
 * More than any tool needs. Code that hashes and writes states recurses through the input of a
 * call.
 */
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
  const invalid = (fault: string, raw = rawInput): Input => ({
    kind: 'invalid',
    rawInput: raw,
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

/** Time limit for a judgement: until it is there, nothing else of the session goes on. */
const JUDGE_MS_MAX = 60_000;

const judgeInput = async (
  tool: Tool,
  input: JsonObject,
  workspace: string,
  redactor: Redactor,
): Promise<Judgement> => {
  const refused = refusePlaceholder(redactor, input);
  if (refused !== null) return refused;
  const judging = attempt(() => tool.judge(input, workspace));
  const judged = await waitAtMost(systemClock, JUDGE_MS_MAX, judging);
  if (judged === null)
    return { kind: 'invalid', field: 'input', why: 'the tool could not judge it in time' };
  if (judged.kind === 'done') return redactJudgement(redactor, takeJudgement(tool, judged.value));
  return {
    kind: 'invalid',
    field: 'input',
    why: `the tool could not judge it: ${judged.fault.message}`,
  };
};

/** Time limit for a preview. After that the user is asked without one. */
const PREVIEW_MS_MAX = 10_000;

const NONE: CallPreview = { kind: 'none' };

/**
 * Performs PreviewCall: asks the tool for a preview of the call and posts one CallPreviewed,
 * unless it is no longer needed.
 *
 * If the tool fails or takes too long, the question shows the call's input instead.
 */
export class Previews {
  readonly #equipment: Equipment;
  readonly #session: RunningSession;
  readonly #remember: () => Promise<void>;
  readonly #running = new Map<string, AbortController>();

  /**
   * `remember` resolves when the session knows again which files were read before it was resumed.
   */
  constructor(equipment: Equipment, session: RunningSession, remember: () => Promise<void>) {
    this.#equipment = equipment;
    this.#session = session;
    this.#remember = remember;
  }

  start(batchId: string, call: JudgedCall): void {
    void this.#run(batchId, call);
  }

  /** The answer is no longer needed. */
  drop(batchId: string, callId: string): void {
    this.#running.get(`${batchId} ${callId}`)?.abort();
  }

  /** Waits for none: a preview changes nothing. A promise, as of other performers. */
  stopAll(): Promise<void> {
    for (const stop of this.#running.values()) stop.abort();
    return Promise.resolve();
  }

  async #run(batchId: string, call: JudgedCall): Promise<void> {
    const { callId } = call;
    const key = `${batchId} ${callId}`;
    const stop = new AbortController();
    this.#running.set(key, stop);
    const preview = await this.#askTool(call, stop.signal);
    if (this.#running.get(key) === stop) this.#running.delete(key);
    if (!stop.signal.aborted)
      this.#session.post({ type: 'CallPreviewed', batchId, callId, preview });
  }

  async #askTool(call: JudgedCall, signal: AbortSignal): Promise<CallPreview> {
    const tool = this.#equipment.tools.get(call.tool);
    if (tool?.preview === undefined) return NONE;
    let stopWaiting = (): void => undefined;
    const tooLate = new Promise<CallPreview>((resolve) => {
      stopWaiting = this.#equipment.clock.after(PREVIEW_MS_MAX, () => resolve(NONE));
      signal.addEventListener('abort', () => resolve(NONE), { once: true });
    });
    const asked = attempt(() => this.#requestPreview(tool, call, signal));
    const answered = asked.then((result) => (result.kind === 'done' ? result.value : NONE));
    const preview = await Promise.race([answered, tooLate]);
    stopWaiting();
    return preview;
  }

  async #requestPreview(
    tool: Tool,
    { callId, input, facts }: JudgedCall,
    signal: AbortSignal,
  ): Promise<CallPreview> {
    await this.#remember();
    const state = () => this.#session.state();
    const files = recordingMemory(this.#equipment.files, new Map(), callId, state);
    const { workspace } = this.#session.state().session.settings;
    const context: PreviewContext = { workspace, paths: facts.paths, files, signal };
    const preview = takePreview(tool, await tool.preview?.(input, context));
    return redactPreview(this.#equipment.redactor, preview);
  }
}
