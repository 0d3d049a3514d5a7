import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { countCases, SEED } from '../../../test/tier.js';
import type { TreeEvent } from '../src/run/event.js';
import type { CodeState } from '../src/run/state.js';
import type { Tree } from '../src/tree/tree-state.js';
import * as g from './given.js';
import { type Walker, walk } from './walker.js';

/** Random walks over trees: reproducible by PAWL_SEED, shrunk to few events when they fail. */

type Label = { readonly weight: number; readonly given: g.Given };
const label = (weight: number, given: g.Given): Label => ({ weight, given });

const replies = (who: string): readonly Label[] => [
  label(6, g.says(g.program(`look(${who.length})`), { who, costUsd: 0.01 })),
  label(3, g.says(g.program('one()', 'two()'), { who, costUsd: 0.02 })),
  label(2, g.says(`${g.program('x = 1')}\nFINAL_VAR(x)`, { who, costUsd: 0.01 })),
  label(1, g.says('FINAL_VAR(x)', { who })),
  label(1, g.says('FINAL(42)', { who, costUsd: 0.01 })),
  label(1, g.says('FINAL()', { who })),
  label(1, g.says('just words', { who })),
  label(1, g.says('', { who })),
  label(1, g.says('', { who, stopReason: 'refusal' })),
  label(1, g.says('```repl\nhalf(', { who, stopReason: 'maxTokens' })),
  label(1, g.says('an unknown price', { who, costUsd: null })),
  label(3, g.fails({ who, costUsd: 0.01 })),
  label(1, g.fails({ who, retryAfterMs: 90_000 })),
  label(1, g.fails({ who, kind: 'contextOverflow', retryable: false })),
  label(1, g.breaks({ who, costUsd: 0.03 })),
];

const doings = (who: string, ordinals: number): readonly Label[] => [
  label(4, g.ends({ stdout: 'some output' }, who)),
  label(1, g.ends({ stdout: 'x'.repeat(3_000) }, who)),
  label(2, g.ends({ status: 'raised', stderr: 'NameError' }, who)),
  label(1, g.ends({ status: 'stopped' }, who)),
  label(1, g.ends({ status: 'died', variablesLost: 'yes' }, who)),
  label(2, g.ends({ answer: 'the answer' }, who)),
  label(3, g.asks(['a', 'b', 'c'], { who, ordinal: ordinals + 1 })),
  label(3, g.asks(['d', '', 'e'], { who, ordinal: ordinals + 1, kind: 'rlm' })),
  label(1, g.asks([], { who, ordinal: ordinals + 1 })),
  label(1, g.asks(g.promptsOf(9), { who, ordinal: ordinals + 1 })),
  // asked again, the same or otherwise: as after a crash
  label(ordinals > 0 ? 2 : 0, g.asks(['a', 'b', 'c'], { who, ordinal: Math.max(1, ordinals) })),
];

const fitting = (node: string, state: CodeState): readonly Label[] => {
  if (state.name === 'DONE') return [];
  const { work, run } = state;
  const environment =
    run.environment === 'starting' ? [label(6, g.environmentIs('kept', node))] : [];
  const lost = [
    ...(run.environment === 'starting' ? [label(1, g.environmentIs('lost', node))] : []),
    ...(run.deadline?.timerId ? [label(0.5, g.timeIsUp(node))] : []),
  ];
  switch (work.kind) {
    case 'new':
      return [label(9, { ...g.started, node })];
    case 'calling':
      return [...environment, ...lost, ...replies(node)];
    case 'running':
      return [
        ...environment,
        ...lost,
        ...doings(node, work.asked),
        label(0.2, {
          type: 'SubcallAnswered',
          at: g.NOW,
          node,
          cellId: 'stale',
          ordinal: 1,
          texts: [],
        }),
      ];
    case 'reading':
      return [
        ...environment,
        label(3, g.holds('42', node)),
        label(1, g.holds(null, node)),
        label(1, g.holds('', node)),
        label(0.5, { type: 'VariableRead', at: g.NOW, node, readId: 'stale', value: '' }),
        label(0.5, g.environmentFails(node)),
        label(1, g.timeIsUp(node)),
      ];
    case 'asking':
      return [
        label(6, g.judges({ kind: 'go' }, node)),
        label(1, g.judges({ kind: 'stop', reason: 'policy', why: 'enough' }, node)),
        label(1, g.judges({ kind: 'finish', reason: 'policy', why: 'enough' }, node)),
      ];
    case 'retrying':
      return [...environment, label(5, g.rings(node))];
    case 'next':
    case 'deciding':
      return environment;
    default:
      return work satisfies never;
  }
};

/** What may come to any run at any time, whether it fits or not. */
const anyway = (node: string, tree: Tree): readonly Label[] => [
  ...replies(node).map(({ given }) => label(0.05, given)),
  ...doings(node, 1).map(({ given }) => label(0.05, given)),
  label(0.1, g.cancels(node)),
  label(0.1, g.timeIsUp(node)),
  label(0.05, g.environmentFails(node)),
  label(0.1, g.environmentIs('changed', node)),
  label(0.1, g.rings(node)),
  label(0.1, g.holds('stale', node)),
  label(0.1, g.judges({ kind: 'go' }, node)),
  label(0.1, { ...g.started, node }),
  label(0.3, g.shutdown),
  label(tree.name === 'ShutDown' ? 20 : 0.3, g.resumed(tree.epoch + 1)),
  label(0.1, g.resumed(tree.epoch)),
];

const choose = (tree: Tree, past: readonly TreeEvent[], roll: number): g.Given => {
  const repeated = past.slice(-12).map((event) => label(0.3, event));
  const labels = [
    ...Object.entries(tree.nodes).flatMap(([node, state]) => [
      ...fitting(node, state),
      ...anyway(node, tree),
    ]),
    ...anyway('n0.c1.1.1', tree),
    ...repeated,
  ];
  let left = roll * labels.reduce((sum, { weight }) => sum + weight, 0);
  for (const { weight, given } of labels) {
    left -= weight;
    if (left < 0) return given;
  }
  return g.started;
};

const VARIANTS: readonly g.SettingsPatch[] = [
  {},
  { depthMax: 2, ...g.withForms, openCallsMax: 2, limits: { usd: 0, tokens: 0, timeMs: 60_000 } },
  { depthMax: 3, iterationsMax: 4, childIterationsMax: 2, parallelRunsMax: 2, openCallsMax: 3 },
  { ...g.asSeed, iterationsMax: 2, maxRetries: 1 },
  { limits: { usd: 0, tokens: 12, timeMs: 0 } },
  { depthMax: 0, userPolicy: 'yes', limits: { usd: 0, tokens: 0, timeMs: 2_000 } },
  {
    depthMax: 2,
    userPolicy: 'yes',
    limits: { usd: 0.2, tokens: 0, timeMs: 60_000 },
    subcallsMax: 6,
  },
  {
    depthMax: 2,
    limits: { usd: 0, tokens: 400, timeMs: 0 },
    childLimits: { usd: 0.05, tokens: 60, timeMs: 1_000 },
    reserve: { callUsd: 0.01, callTokens: 7, characterUsd: 0, characterTokens: 0.25 },
    batchMax: 3,
    errorsMax: 2,
    repeatedMax: 2,
    sameOutputMax: 2,
  },
];

type Walked = { readonly settings: g.SettingsPatch; readonly rolls: readonly number[] };
const walks: fc.Arbitrary<Walked> = fc.record({
  settings: fc.constantFrom(...VARIANTS),
  rolls: fc.array(
    fc.noBias(fc.integer({ min: 0, max: 99_999 })).map((roll) => roll / 100_000),
    { minLength: 5, maxLength: 120, size: 'max' },
  ),
});

/** Walks as rolled; every step is checked on the way. */
export const roam = ({ settings, rolls }: Walked): Walker => {
  const walker = walk(g.settingsOf(settings));
  rolls.forEach((roll, index) => {
    const event = g.eventOf(choose(walker.tree(), walker.events(), roll), walker.tree());
    walker.send({ ...event, at: g.NOW + index * 50 });
  });
  return walker;
};

/** Holds a promise against many walks; against the same ones every time if a seed is given. */
export const forAll = (
  t: TestContext,
  numRuns: number,
  promise: (walked: Walked) => void,
  seed: number = SEED,
): void => {
  t.diagnostic(`PAWL_SEED=${seed}`);
  fc.assert(fc.property(walks, promise), { seed, numRuns: countCases(numRuns) });
};

/** Rolls alone, for tests that bring their own world. */
export const forRolls = (
  t: TestContext,
  numRuns: number,
  maxLength: number,
  promise: (rolls: readonly number[]) => void,
): void => {
  t.diagnostic(`PAWL_SEED=${SEED}`);
  const rolls = fc.array(
    fc.noBias(fc.integer({ min: 0, max: 99_999 })).map((roll) => roll / 100_000),
    { minLength: 1, maxLength, size: 'max' },
  );
  fc.assert(fc.property(rolls, promise), { seed: SEED, numRuns: countCases(numRuns) });
};
