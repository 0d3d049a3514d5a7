import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent } from '@pawl/agent/machine/machine';
import type { FiniteModel } from '@pawl/machine/explorer/explore';
import { chooseRows } from '../../../../test/tier.js';
import type { Configuration } from '../../src/exploration/configuration.js';
import { createConfigurations } from '../../src/exploration/configurations.js';
import { createModel } from '../../src/exploration/exploration-model.js';
import type { ExplorationEvent, ExplorationNode } from '../../src/exploration/exploration-node.js';
import { projections } from '../../src/projections/all-projections.js';
import { smallBounds } from './small.js';

/** Nodes of one key that are compared. */
const COMPARED_MAX = 2;
/** The nodes that are nearest to the start: those further off are made of the same things. */
const NODES_MAX = 750;

/** What comes of a node: steps that lead back to its key say nothing. */
const futureOf = (
  model: FiniteModel<ExplorationNode, ExplorationEvent>,
  node: ExplorationNode,
  key: string,
  found: (next: ExplorationNode, key: string) => void,
): readonly string[] => {
  const future = new Set<string>();
  for (const label of model.labels(node)) {
    const { node: next, faults } = model.next(node, label);
    assert.equal(faults.length, 0, faults.join());
    const nextKey = model.key(next);
    if (nextKey === key) continue;
    const arrows = agent.step(node.state, label.event).path.map(({ id }) => id);
    future.add(`${label.by} ${label.event.type} over ${arrows.join(' ')} to ${nextKey}`);
    found(next, nextKey);
  }
  return [...future].sort();
};

/**
 * Explores by itself, and compares the first nodes that it finds of each key: from all of them the same kinds of events
 * must lead over the same arrows to the same keys.
 */
const compareAll = (configuration: Configuration): number => {
  const { model } = createModel(configuration, agent, projections);
  const counts = new Map<string, number>();
  const futures = new Map<string, readonly string[]>();
  const waiting: { readonly node: ExplorationNode; readonly key: string }[] = [];
  const found = (node: ExplorationNode, key: string): void => {
    const count = counts.get(key) ?? 0;
    if (count < COMPARED_MAX && waiting.length < NODES_MAX) waiting.push({ node, key });
    counts.set(key, count + 1);
  };
  found(model.initial, model.key(model.initial));
  let compared = 0;
  for (const { node, key } of waiting) {
    const future = futureOf(model, node, key, found);
    const first = futures.get(key);
    if (first === undefined) futures.set(key, future);
    else {
      assert.deepEqual(future, first, `two futures of ${key}`);
      compared += 1;
    }
  }
  return compared;
};

const bounds = { ...smallBounds, steers: 0 };

for (const configuration of chooseRows(createConfigurations(bounds), undefined, 3)) {
  test(`the key of '${configuration.name}' leaves nothing out on which the future depends`, () => {
    assert.ok(compareAll(configuration) > 20);
  });
}
