import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mutate, pick, randomFrom, rubbish } from '../../../test/kit/agent/mutations.js';
import { countCases, SEED } from '../../../test/tier.js';
import type { TreeEvent } from '../src/run/event.js';
import { codeMode } from '../src/run/table.js';
import { stepTree } from '../src/tree/step-tree.js';
import { initialTree, type Tree } from '../src/tree/tree-state.js';
import * as g from './given.js';

/** Events that are none, for a tree of runs: refused with a diagnostic, and the tree is the same object as before. */

const COUNT = countCases(2_000);

const usual: readonly g.Given[] = [
  g.started,
  g.ready,
  g.says(g.program('one()'), { costUsd: 0.01 }),
  g.asks(['a', 'b']),
  g.asks(['a'], { kind: 'rlm' }),
  g.ends({ stdout: 'some', variables: [{ name: 'x', type: 'number', size: 1 }] }),
  g.fails({ costUsd: 0.01 }),
  g.holds('42'),
  g.judges({ kind: 'stop', reason: 'policy', why: 'enough' }),
  g.rings(),
  g.cancels(),
  g.shutdown,
  g.resumed(2),
  g.environmentFails(),
  { type: 'LimitsChanged', at: g.NOW, node: 'n0', limits: { usd: 5, iterations: 3 } },
];

/** What comes from outside has no type. */
const given = (event: unknown): TreeEvent => event as TreeEvent;

const eventOf = (one: g.Given, tree: Tree): TreeEvent => {
  try {
    return g.eventOf(one, tree);
  } catch {
    return g.shutdown; // nothing is in flight that it could answer
  }
};

const check = (tree: Tree, event: unknown): 'refused' | 'taken' => {
  const taken = stepTree(tree, given(event));
  if (taken.diagnostics[0]?.kind === 'malformed') {
    assert.equal(taken.state, tree);
    assert.deepEqual([taken.actions, taken.path], [[], []]);
    return 'refused';
  }
  JSON.stringify(taken.state);
  for (const { spent } of Object.values(taken.state.ledger.accounts))
    for (const number of Object.values({ ...spent, estimated: 0, atLeast: 0 }))
      assert.ok(Number.isFinite(number) && number >= 0);
  return 'taken';
};

test('the tree is total: whatever comes, it returns, and what it refuses changes nothing', (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}, PAWL_COUNT=${COUNT}`);
  const random = randomFrom(SEED);
  let refused = 0;
  let tree = initialTree(g.settingsOf());
  for (let index = 0; index < COUNT; index++) {
    if (index % 30 === 0) tree = initialTree(g.settingsOf());
    const event = eventOf(
      index % 30 < 4 ? (usual[index % 30] ?? g.started) : pick(random, usual),
      tree,
    );
    const wrong = random() < 0.03 ? rubbish(random) : mutate(random, event);
    if (check(tree, wrong) === 'refused') refused += 1;
    tree = stepTree(tree, event).state;
  }
  assert.ok(refused > COUNT / 3, `${refused} of ${COUNT} were refused`);
});

test('well-formed events are taken, and a run of its own refuses as the tree does', () => {
  let tree = initialTree(g.settingsOf());
  for (const one of usual) {
    const event = eventOf(one, tree);
    assert.equal(check(tree, event), 'taken', event.type);
    tree = stepTree(tree, event).state;
  }
  const root = g.rootOf(tree);
  for (const event of [
    undefined,
    {},
    { type: 'Started' },
    { type: 'TimerFired', at: 1, timerId: '__proto__' },
  ]) {
    const taken = codeMode.step(root, event as never);
    assert.equal(taken.state, root);
    assert.equal(taken.diagnostics[0]?.kind, 'malformed');
  }
});
