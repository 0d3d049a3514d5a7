import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stepped } from '@pawl/agent/ports/session';
import type { Edge } from '@pawl/machine/kernel/table';
import {
  changesState,
  countStates,
  pathLine,
  pathStates,
} from '../../src/sessions/session-text.js';

const edge = (from: string, to: string, kind: Edge['kind']): Edge => ({
  id: `${from}/x/0`,
  from,
  event: 'ToolCompleted',
  when: '',
  to,
  as: '',
  then: 'move',
  kind,
});

/** A step of which only the path counts. */
const stepOf = (...path: readonly Edge[]): Stepped =>
  ({ seq: 7, event: { type: 'ToolCompleted' }, path }) as unknown as Stepped;

const STAY = edge('ExecutingTools', 'ExecutingTools', 'stay');
const ON = edge('ExecutingTools', 'PostToolsHook', 'go');
const AGAIN = edge('PostToolsHook', 'PostToolsHook', 'go');

const rows: readonly (readonly [string, Stepped, readonly string[]])[] = [
  ['nothing happened', stepOf(), []],
  ['it stayed', stepOf(STAY), []],
  ['it stayed, then went on', stepOf(STAY, ON), ['ExecutingTools', 'PostToolsHook']],
  ['a state was left and entered again', stepOf(AGAIN), ['PostToolsHook', 'PostToolsHook']],
];

for (const [title, given, then] of rows) {
  test(`the states of a path where ${title}`, () => {
    assert.deepEqual(pathStates(given), then);
    assert.equal(changesState(given), then.length > 0);
  });
}

test('a line of a path and the count of its states leave out what stayed', () => {
  const steps = [stepOf(STAY), stepOf(STAY, ON, AGAIN)];
  assert.equal(
    pathLine(stepOf(STAY, ON)),
    '   7  ToolCompleted       ExecutingTools → PostToolsHook',
  );
  assert.equal(countStates(steps), 'PostToolsHook ×2');
});
