import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explore } from '@pawl/machine/explorer/explore';
import type { TreeEvent } from '../src/run/event.js';
import { projectEdges, type SeedCursor } from '../src/run/seed-projection.js';
import type { CodeState, RunningCell } from '../src/run/state.js';
import { codeMode } from '../src/run/table.js';
import { stepTree } from '../src/tree/step-tree.js';
import { initialTree, type Tree } from '../src/tree/tree-state.js';
import * as g from './given.js';
import { treeFaults } from './tree-faults.js';
import { running } from './walker.js';

/** Every way through small trees: all faults of a tree, all goals, all edges of the machine. */

/** Where the tree stands, and where the seed's machine would stand for each of its runs. */
type Node = { readonly tree: Tree; readonly cursors: Readonly<Record<string, SeedCursor>> };
type Bounds = {
  readonly epochs: number;
  readonly prompts: readonly string[];
  readonly settings: g.SettingsPatch;
};

const free =
  (given: g.Given): g.Given =>
  (tree) => {
    const event = g.eventOf(given, tree);
    return event.type === 'ModelReplied'
      ? { ...event, usage: { ...event.usage, inputTokens: 0, outputTokens: 0 } }
      : event;
  };

const callOptions = (node: string, forms: boolean): readonly g.Given[] => {
  const few = [
    g.says(g.program('one()'), { who: node }),
    g.says('words', { who: node }),
    g.breaks({ who: node }),
  ];
  return node === 'n0' ? [...few, ...moreOptions(node, forms)] : few;
};

const moreOptions = (node: string, forms: boolean): readonly g.Given[] => [
  g.says('', { who: node, stopReason: 'refusal' }),
  ...(forms
    ? ['FINAL(42)', 'FINAL_VAR(x)', `${g.program('one()')}\nFINAL_VAR(x)`].map((text) =>
        g.says(text, { who: node }),
      )
    : []),
  g.fails({ who: node }),
  g.fails({ who: node, kind: 'contextOverflow', retryable: false }),
];

/** One sub-call a cell; it may be asked again, the same, and once otherwise. */
const askingOptions = (
  node: string,
  { asked, differed }: RunningCell,
  prompts: readonly string[],
): readonly g.Given[] => {
  if (prompts.length === 0) return [];
  const first = g.asks(prompts, { who: node, kind: 'rlm' });
  if (asked === 0) return [first];
  return differed > 0 ? [first] : [first, g.asks(['other'], { who: node })];
};

const cellOptions = (
  node: string,
  work: RunningCell,
  prompts: readonly string[],
): readonly g.Given[] => {
  const few = [g.ends({}, node), g.ends({ answer: '42' }, node)];
  if (node !== 'n0')
    return prompts.length === 0 || work.asked > 0 ? few : [...few, g.asks(['one'], { who: node })];
  return [
    ...few,
    g.ends({ status: 'died', variablesLost: 'yes', stdout: 'x'.repeat(3_000) }, node),
    ...askingOptions(node, work, prompts),
    { type: 'SubcallAnswered', at: g.NOW, node, cellId: 'stale', ordinal: 1, texts: [] },
  ];
};

const ownOptions = (
  node: string,
  state: CodeState,
  { prompts, settings }: Bounds,
): readonly g.Given[] => {
  if (state.name === 'DONE') return [];
  const { work } = state;
  switch (work.kind) {
    case 'new':
      return [{ ...g.started, node }];
    case 'calling':
      return callOptions(node, settings.parity?.finalForms === 'on');
    case 'running':
      return cellOptions(node, work, prompts);
    case 'reading':
      return [g.holds('', node), g.holds(null, node)];
    case 'asking':
      return [
        g.judges({ kind: 'go' }, node),
        g.judges({ kind: 'stop', reason: 'policy', why: 'enough' }, node),
        g.judges({ kind: 'finish', reason: 'policy', why: 'enough' }, node),
      ];
    case 'retrying':
      return [g.rings(node)];
    case 'next':
    case 'deciding':
      return [];
    default:
      return work satisfies never;
  }
};

const STALE = (node: string): readonly g.Given[] => [
  { ...g.started, node },
  g.says('stale', { who: node, requestId: 'stale' }),
  g.fails({ who: node, requestId: 'stale' }),
  g.ends({}, node, 'stale'),
  g.asks(['stale'], { who: node, cellId: 'stale' }),
  { type: 'VariableRead', at: g.NOW, node, readId: 'stale', value: null },
  { type: 'PolicyAnswered', at: g.NOW, node, policyId: 'stale', verdict: { kind: 'go' } },
  { type: 'TimerFired', at: g.NOW, node, timerId: 'stale' },
  { type: 'CallRefused', at: g.NOW, node, requestId: 'stale', short: 'usd' },
];

const optionsOf = ({ tree }: Node, bounds: Bounds): readonly g.Given[] => {
  if (tree.name === 'ShutDown') return [g.resumed(tree.epoch + 1), g.shutdown];
  return [
    ...Object.entries(tree.nodes).flatMap(([node, state]) => [
      ...ownOptions(node, state, bounds),
      ...(state.run.environment === 'none'
        ? []
        : [g.environmentIs('kept', node), g.environmentIs('lost', node)]),
      ...(bounds.epochs > 0 ? [g.environmentFails(node)] : []),
      ...(state.run.deadline === null ? [] : [g.timeIsUp(node)]),
      ...(node === 'n0' ? STALE(node) : []),
      g.cancels(node),
    ]),
    ...(tree.epoch < bounds.epochs ? [g.shutdown, g.resumed(tree.epoch + 1)] : []),
    g.resumed(0),
  ].map(free);
};

/** Nothing that may happen depends on these. */
const UNIMPORTANT = new Set([
  'settings',
  'counters',
  'conversation',
  'lastText',
  'notes',
  'past',
  'task',
  'stdout',
  'message',
  'text',
]);
/** Of texts it matters whether they are there, of a conversation whether it could be cut. */
const important =
  (isRich: boolean) =>
  (name: string, value: unknown): unknown => {
    if (UNIMPORTANT.has(name)) return undefined;
    if (name === 'characters' && isRich) return Number(value) > 2_500;
    return name === 'texts' && Array.isArray(value) ? value.map((text) => text === null) : value;
  };

/** Ids of calls, timers, readings and askings count up: which number one has changes nothing. */
const keyOf = ({ tree, cursors }: Node, isRich: boolean): string =>
  JSON.stringify(
    [{ ...tree, pieces: 0, ...(isRich ? { ledger: 0 } : {}) }, cursors],
    important(isRich),
  ).replace(/\.([rtvp])\d+/g, '.$1');

const search = (bounds: Bounds, edges: Set<string>) => {
  const settings = g.settingsOf(bounds.settings);
  const isRich = settings.limits.usd === 'unlimited' && settings.limits.tokens === 'unlimited';
  const next = ({ tree, cursors }: Node, event: TreeEvent) => {
    const step = stepTree(tree, event);
    const faults: string[] = [];
    const stood: Record<string, SeedCursor> = { ...cursors };
    for (const { node, ...edge } of step.path) {
      edges.add(edge.id);
      const { cursor, steps } = projectEdges(stood[node] ?? 'INIT', [edge]);
      stood[node] = cursor;
      for (const one of steps)
        if (one.edge === null) faults.push(`illegal: ${one.from} ${one.event} ${one.to}`);
    }
    for (const node of Object.keys(stood))
      if (step.state.nodes[node] === undefined) delete stood[node];
    return { node: { tree: step.state, cursors: stood }, faults };
  };
  return explore<Node, TreeEvent>(
    {
      initial: { tree: initialTree(settings), cursors: {} },
      labels: (node) => optionsOf(node, bounds).map((given) => g.eventOf(given, node.tree)),
      next,
      key: (node) => keyOf(node, isRich),
      findFaults: ({ tree }) => treeFaults(tree, settings.openCallsMax),
      goals: [
        {
          name: 'the end',
          holds: ({ tree }) => tree.name === 'Ended',
          via: ({ type }) => type !== 'CancelRequested',
        },
        {
          name: 'a cancel',
          holds: ({ tree }) => tree.name === 'Ended',
          via: ({ type }) => type === 'CancelRequested' || type === 'Resumed',
        },
      ],
    },
    { statesMax: 20_000 },
  );
};

const small: g.SettingsPatch = {
  maxRetries: 1,
  iterationsMax: 1,
  childIterationsMax: 1,
  openCallsMax: 1,
};

const timed = { limits: { usd: 0, tokens: 0, timeMs: 60_000 } };
const poor = (tokens: number): g.SettingsPatch => ({ limits: { usd: 0, tokens, timeMs: 0 } });

const configurations: readonly (Bounds & { readonly title: string })[] = [
  {
    title: 'the seed’s answers, a crash and a shutdown',
    epochs: 1,
    prompts: [],
    settings: { ...small, ...g.asSeed, ...timed, iterationsMax: 2 },
  },
  {
    title: 'sub-calls, one call at a time, a crash',
    epochs: 1,
    prompts: ['one', 'two'],
    settings: small,
  },
  {
    title: 'the user’s policy',
    epochs: 0,
    prompts: [],
    settings: { ...small, userPolicy: 'yes', maxRetries: 0, iterationsMax: 2 },
  },
  {
    title: 'children with an environment',
    epochs: 0,
    prompts: ['one'],
    settings: { ...small, depthMax: 2, maxRetries: 0, openCallsMax: 2 },
  },
  {
    title: 'a plain call',
    epochs: 1,
    prompts: [],
    settings: { ...small, ...timed, depthMax: 0, userPolicy: 'yes' },
  },
  {
    title: 'no money for the first call',
    epochs: 0,
    prompts: [],
    settings: { ...small, ...poor(1) },
  },
  {
    title: 'no money for a plain call',
    epochs: 0,
    prompts: [],
    settings: { ...small, ...poor(1), depthMax: 0 },
  },
  {
    title: 'no money for the second call',
    epochs: 0,
    prompts: ['one'],
    settings: { ...small, ...poor(40) },
  },
];

const taken = new Set<string>();

for (const { title, ...bounds } of configurations) {
  test(`every way through a small tree: ${title}`, (t) => {
    const { states, steps, complete, violation } = search(bounds, taken);
    t.diagnostic(`${states} states, ${steps} steps`);
    assert.deepEqual(violation, null);
    assert.ok(complete, `${states} states are not all`);
  });
}

/** Calls that wait while others spend what is left: too many states to go through them all. */
test('a call that waits and can no longer be paid ends its run wherever it is', () => {
  const reserve = { callUsd: 0.1, callTokens: 0, characterUsd: 0, characterTokens: 0 };
  const dear = { limits: { usd: 0.15 }, reserve, depthMax: 2, openCallsMax: 2 } as const;
  const two = g.asks(['one', 'two'], { kind: 'rlm' });
  const first = { who: g.child(1), costUsd: 0.1 };
  const stories: readonly (readonly [g.SettingsPatch, readonly g.Given[]])[] = [
    [{ ...dear, depthMax: 1 }, [two, g.says('x', first)]],
    [dear, [two, g.environmentIs('kept', g.child(1)), g.says('x', first)]],
    [
      { ...dear, limits: { usd: 0.25 } },
      [
        two,
        g.environmentIs('kept', g.child(1)),
        g.says(g.program('x'), first),
        g.ends({}, g.child(1)),
        g.says('x', { who: g.child(2), costUsd: 0.1 }),
      ],
    ],
  ];
  for (const [settings, events] of stories) {
    const walker = running(settings);
    walker.send(...events);
    for (const { path } of walker.steps()) for (const { id } of path) taken.add(id);
    assert.ok(walker.last().path.some(({ event, to }) => event === 'CallRefused' && to === 'DONE'));
  }
});

test('together they take every edge of the machine', () => {
  assert.deepEqual(
    codeMode.edges.filter(({ id }) => !taken.has(id)),
    [],
  );
});
