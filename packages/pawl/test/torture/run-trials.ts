import { availableParallelism } from 'node:os';
import { withScope } from '../../../../test/temporary-folder.js';
import type { Finding } from './findings.js';
import type { Ending, KillPoint, Step } from './kill-points.js';
import { type Scenario, scenarios } from './scenarios.js';
import { PLAIN, type Trial } from './stage.js';
import { runTrial, type TrialEnd } from './trial.js';

/** Chooses trials and runs them, several at a time. */

export type Outcome = { readonly trial: Trial; readonly end: TrialEnd };

const faultOf = (error: unknown): TrialEnd => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const findings: readonly Finding[] = [{ kind: 'answer', text }];
  return {
    steps: [],
    reached: false,
    kills: 0,
    findings,
    figures: { finished: 0, lostResults: 0 },
  };
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
  const trials = chosen.map(
    (scenario): Trial => ({ ...PLAIN, scenario, point: null, again: 'at once' }),
  );
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

/** A later life takes at least this many steps. */
const LATER_STEPS = 150;

/** What else happens in a trial. Some trials are plain kills. */
const randomVariant = (
  { where, life, commits }: Scenario,
  random: () => number,
): Partial<Trial> => {
  if (where !== 'headless' || life === 'torn' || life === 'fork' || commits || random() < 0.3)
    return {};
  const again = (): KillPoint => ({
    ending: 'kill',
    at: 1 + Math.floor(random() * LATER_STEPS),
    when: pick(['before', 'after'], random),
  });
  const more = pick([0, 0, 1, 2], random);
  const kills = { more: Array.from({ length: more }, again) };
  const variant = pick(
    ['companion', 'resumed inside', 'began inside', 'launcher', 'fence', 'copied', 'none'] as const,
    random,
  );
  switch (variant) {
    case 'companion':
      return { ...kills, companion: true };
    case 'resumed inside':
    case 'began inside':
      return { ...kills, space: variant, companion: random() < 0.3 };
    case 'launcher':
    case 'fence':
      return { ...kills, also: variant };
    case 'copied':
      return { copied: true };
    case 'none':
      return kills;
    default:
      return variant satisfies never;
  }
};

/** A random point of a scenario. `isVaried`: see randomVariant. */
export const randomTrial = (
  steps: ReadonlyMap<string, readonly Step[]>,
  endings: readonly Ending[],
  random: () => number,
  { isVaried = false }: { readonly isVaried?: boolean } = {},
): Trial => {
  const scenario = pick(
    scenarios.filter(({ name }) => (steps.get(name) ?? []).length > 0),
    random,
  );
  const all = steps.get(scenario.name) ?? [];
  // Around these steps a call begins.
  const fateful = all.filter(({ place }) =>
    /\/pawl\/sandbox\/[^/]+\/(session|sent|commands)/.test(place),
  );
  const step = pick(isVaried && fateful.length > 0 && random() < 0.5 ? fateful : all, random);
  const whens = step.name === 'write' ? WHENS : WHENS.slice(0, 2);
  const point = { ending: pick(endings, random), at: step.number, when: pick(whens, random) };
  const again = pick(['at once', 'later'] as const, random);
  return {
    ...PLAIN,
    scenario,
    point,
    again,
    ...(isVaried && point.ending === 'kill' ? randomVariant(scenario, random) : {}),
  };
};

/** Every step of every scenario, before and after it, and writes half done. */
export const everyTrial = function* (
  steps: ReadonlyMap<string, readonly Step[]>,
): Generator<Trial> {
  for (const scenario of scenarios)
    for (const { number, name } of steps.get(scenario.name) ?? [])
      for (const when of name === 'write' ? WHENS : WHENS.slice(0, 2))
        yield { ...PLAIN, scenario, point: { ending: 'kill', at: number, when }, again: 'at once' };
};

export const describeTrial = (trial: Trial): string => {
  const { scenario, point, again, more, space, also, companion, copied } = trial;
  if (point === null) return scenario.name;
  return [
    scenario.name,
    ...[point, ...more].map(({ ending, when, at }) => `${ending} ${when} step ${at}`),
    `opened again ${again}`,
    ...(space === 'host' ? [] : [`${space} another pid namespace`]),
    ...(also === 'nothing' ? [] : [`the ${also} is killed, too`]),
    ...(companion ? ['beside another session'] : []),
    ...(copied ? ['from a copy'] : []),
  ].join(' | ');
};
