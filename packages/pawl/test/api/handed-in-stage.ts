import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { callTools, command, ok, rawCall, tool } from '../../../../test/kit/runtime/stage.js';
import type { Session, Tool } from '../../src/index.js';

/** What the tests of malformed things have in common. */

export const CALL = callTools(rawCall('1', 'odd'));

/** Faults of the process itself while the work is done: none may come of what is handed in. */
export const uncaught = (context: TestContext): readonly unknown[] => {
  const caught: unknown[] = [];
  const note = (thrown: unknown): void => void caught.push(thrown);
  process.on('unhandledRejection', note);
  context.after(() => process.off('unhandledRejection', note));
  return caught;
};

export const goesOn = async (session: Session, caught: readonly unknown[]): Promise<void> => {
  const turn = await session.prompt('and now?');
  assert.deepEqual([turn.ok, turn.text], [true, 'still here']);
  await turnOfTheLoop();
  assert.deepEqual(caught, []);
};

export const shown = (text: string): RegExp =>
  new RegExp(text.replaceAll(/[[\](){}.*+?^$\\]/g, '\\$&'));

export const odd = (own: Partial<Tool>): Tool => ({
  ...tool('odd', () => ok('ran'), command),
  ...own,
});
/** What a program without types hands in. */
export const bad = (value: unknown): never => value as never;
