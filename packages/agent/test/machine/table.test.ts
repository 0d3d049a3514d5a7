import assert from 'node:assert/strict';
import test from 'node:test';
import { mermaid } from '@pawl/machine/kernel/diagrams';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { agent, initialState } from '../../src/machine/machine.js';
import { table } from '../../src/machine/table.js';

// What the compiler does not see in rows that are made by spreading groups of cells (docs/decisions/0001).

for (const [state, { on = {} }] of Object.entries(table.states)) {
  test(`every cell of ${state} stands for an event that exists`, () => {
    assert.deepEqual(
      Object.keys(on).filter((event) => !Object.hasOwn(agent.events, event)),
      [],
    );
  });
}

test('every state that can be left is entered by some arrow, and every event moves something somewhere', () => {
  const entered = new Set(agent.edges.map((edge) => edge.to));
  const heard = new Set(agent.edges.map((edge) => edge.event));
  assert.deepEqual(
    Object.keys(agent.states).filter((state) => state !== agent.initial && !entered.has(state)),
    [],
  );
  assert.deepEqual(
    Object.keys(agent.events).filter((event) => !heard.has(event)),
    [],
  );
});

test('its picture ends where the session is closed, and nowhere else', () => {
  assert.deepEqual(
    mermaid(agent)
      .split('\n')
      .filter((line) => line.endsWith('[*]')),
    ['  ShuttingDown --> [*]'],
  );
});

test('a new session has warned of nothing', () => {
  assert.deepEqual(initialState(settingsOf()).session.turn.warned, []);
});
