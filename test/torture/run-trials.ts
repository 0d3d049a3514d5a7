import { availableParallelism } from 'node:os';
import type { TestScope } from '../temporary-folder.js';
import type { Finding } from './findings.js';
import type { Ending, KillPoint, Step } from './kill-points.js';
import { type Scenario, scenarios } from './scenarios.js';
import type { Trial } from './stage.js';
import { runTrial, type TrialEnd } from './trial.js';

/** Chooses trials and runs them, several at a time. */

export type Outcome = { readonly trial: Trial; readonly end: TrialEnd };

/** A scope that is not a test. */
const withScope = async <Result>(work: (scope: TestScope) => Promise<Result>): Promise<Result> => {
  const hooks: (() => Promise<void>)[] = [];
  try {
    return await work({ after: (hook) => void hooks.push(hook) });
  } finally {
    for (const hook of hooks) await hook();
  }
};

const faultOf = (error: unknown): TrialEnd => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const findings: readonly Finding[] = [{ kind: 'answer', text }];
  return { steps: [], reached: false, findings, figures: { finished: 0, lostResults: 0 } };
};

export const runOne = async (trial: Trial, library: string): Promise<Outcome> => ({
  trial,
  end: await withScope((scope) => runTrial(scope, trial, library)).catch(faultOf),
});

/** In order of their beginning, as many at once as there are cores and one more. */
export const runAll = async (
  trials: Iterable<Trial>,
  library: string,
  watch: (outcome: Outcome) => void,
): Promise<void> => {
  const waiting = trials[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next())
      watch(await runOne(next.value, library));
  };
  await Promise.all(Array.from({ length: availableParallelism() + 1 }, work));
};

/** Steps as they are taken without an interruption, by the name of the scenario. */
export const recordSteps = async (
  chosen: readonly Scenario[],
  library: string,
  watch: (outcome: Outcome) => void,
): Promise<ReadonlyMap<string, readonly Step[]>> => {
  const recorded = new Map<string, readonly Step[]>();
  const trials = chosen.map((scenario): Trial => ({ scenario, point: null, again: 'at once' }));
  await runAll(trials, library, (outcome) => {
    recorded.set(outcome.trial.scenario.name, outcome.end.steps);
    watch(outcome);
  });
  return recorded;
};

/** A generator of numbers below 1 from a seed. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

const pick = <Item>(items: readonly Item[], random: () => number): Item => {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('there is nothing to pick');
  return item;
};

const WHENS: readonly KillPoint['when'][] = ['before', 'after', 'half'];

/** A random point of a scenario. */
export const randomTrial = (
  steps: ReadonlyMap<string, readonly Step[]>,
  endings: readonly Ending[],
  random: () => number,
): Trial => {
  const scenario = pick(
    scenarios.filter(({ name }) => (steps.get(name) ?? []).length > 0),
    random,
  );
  const step = pick(steps.get(scenario.name) ?? [], random);
  const whens = step.name === 'write' ? WHENS : WHENS.slice(0, 2);
  const point = { ending: pick(endings, random), at: step.number, when: pick(whens, random) };
  return { scenario, point, again: pick(['at once', 'later'], random) };
};

/** Every step of every scenario, before and after it, and writes half done. */
export const everyTrial = function* (steps: ReadonlyMap<string, readonly Step[]>): Generator<Trial> {
  for (const scenario of scenarios)
    for (const { number, name } of steps.get(scenario.name) ?? [])
      for (const when of name === 'write' ? WHENS : WHENS.slice(0, 2))
        yield { scenario, point: { ending: 'kill', at: number, when }, again: 'at once' };
};

export const describeTrial = ({ scenario, point, again }: Trial): string =>
  point === null
    ? scenario.name
    : `${scenario.name} | ${point.ending} ${point.when} step ${point.at} | opened again ${again}`;
