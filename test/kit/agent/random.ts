import type { TestContext } from 'node:test';
import fc from 'fast-check';
import type { Event } from '../../../packages/agent/src/machine/event.js';
import { initialState } from '../../../packages/agent/src/machine/machine.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import { countCases, SEED, TIER } from '../../tier.js';
import * as g from './given.js';
import { labels } from './pairs.js';
import { type SettingsPatch, settingsOf } from './settings.js';
import { type EndedWalk, walk } from './walker.js';

/** Random walks: reproducible by PAWL_SEED, shrunk to few events when they fail. */

/** A mutant is to be caught, not explained: fewer walks, and no shrinking. */
const isQuick = TIER === 'quick';

/** Labels that answer a state are this much likelier than misplaced ones. */
const FITTING = 8;
const FITS: Readonly<Record<State['name'], RegExp>> = {
  Ready: /^(Start|UserInput)/,
  WaitingForUserInput: /^(UserInput|RetryLast|CompactRequested|ApproveBudget)/,
  CallingLlm: /^(LlmCompleted|LlmFailed|TextDelta)/,
  Error: /^(TimerFired|RetryNow)/,
  ExecutingTools: /^(Tool|ApprovalAnswered|TimerFired|CancelTool)/,
  PostToolsHook: /^Hook/,
  Compacting: /^Compaction/,
  Rewinding: /^Rewound/,
  ShuttingDown: /^Resumed/,
  ProcessingLlmResponse: /^$/,
  EndOfTurn: /^$/,
  ToolUseRequested: /^$/,
  CheckingForCancellation: /^$/,
  CheckingBudget: /^$/,
  GatheringAdditionalMessages: /^$/,
  Cancelled: /^$/,
  BudgetExceeded: /^$/,
  Failed: /^$/,
};

/** The label that a roll (0 to 1) means in a state. */
const choose = (state: State, roll: number): g.Given => {
  const weighed = labels.map((one) => ({
    ...one,
    weight: FITS[state.name].test(one.name) ? one.weight * FITTING : one.weight,
  }));
  let left = roll * weighed.reduce((sum, { weight }) => sum + weight, 0);
  for (const { weight, given } of weighed) {
    left -= weight;
    if (left < 0) return given;
  }
  return g.begin;
};

const VARIANTS: readonly SettingsPatch[] = [
  {},
  { rules: presetRules.careful, maxParallel: 2, queueOnCancel: 'send' },
  {
    cancelMode: 'drain',
    emptyRetries: 1,
    queueOnCancel: 'restore',
    autoRearm: 'off',
    limits: { usd: 5 },
  },
  { windowTokens: 10_000, limits: { timeMs: 60_000, rounds: 3 }, hooks: 'always' },
  { onAsk: 'stop', rules: presetRules.careful, hooks: 'never', maxRetries: 0 },
  {
    onAsk: 'deny',
    rules: presetRules.plan,
    windowTokens: 10_000,
    limits: { usd: 2, tokens: 60_000, timeMs: 1 },
  },
  {
    atLimit: 'finish',
    userPolicy: 'ask',
    limits: { rounds: 2, repeats: 2, errors: 1, sameResults: 2 },
  },
];

/** Unique texts and costs, so that each can be told apart in the end. */
const mark = (event: Event, index: number): Event => {
  if (event.type === 'UserInput' && event.text.trim() !== '')
    return { ...event, text: `text-${index}.` };
  return { ...event, at: g.NOW + index * 10 };
};

type Walked = { readonly settings: SettingsPatch; readonly rolls: readonly number[] };
export const walks: fc.Arbitrary<Walked> = fc.record({
  settings: fc.constantFrom(...VARIANTS),
  rolls: fc.array(
    fc.noBias(fc.integer({ min: 0, max: 99_999 })).map((roll) => roll / 100_000),
    { minLength: 5, maxLength: 90, size: 'max' },
  ),
});

export const begun = (settings: SettingsPatch): State => initialState(settingsOf(settings));

const roamOnce = ({ settings, rolls }: Walked): EndedWalk => {
  const walker = walk(begun(settings));
  rolls.forEach((roll, index) => {
    const event = g.eventOf(choose(walker.state(), roll), walker.state());
    walker.send(mark(event, index + 1));
  });
  return walker;
};

const ended = new Map<string, EndedWalk>();

/**
 * Walks as rolled; every step is checked on the way. Promises that share a seed share their walks too, so each is walked
 * once in a process. Mutation testing needs to know which test reaches what: there each test walks by itself.
 */
export const roam = (walked: Walked): EndedWalk => {
  if (isQuick) return roamOnce(walked);
  const key = JSON.stringify(walked);
  const known = ended.get(key);
  if (known !== undefined) return known;
  const fresh = roamOnce(walked);
  ended.set(key, fresh);
  return fresh;
};

/** Holds a promise against many walks; against the same ones every time if a seed is given. */
export const forAll = (
  t: TestContext,
  numRuns: number,
  promise: (walked: Walked) => void,
  seed: number = SEED,
): void => {
  t.diagnostic(`PAWL_SEED=${seed}`);
  fc.assert(fc.property(walks, promise), {
    seed,
    numRuns: countCases(numRuns),
    endOnFailure: isQuick,
  });
};
