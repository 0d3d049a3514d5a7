import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import type { TreeEvent } from '../../src/run/event.js';
import { type AskEquipment, TreeCalls } from '../../src/runtime/model-calls.js';
import { initialTree } from '../../src/tree/tree-state.js';
import { settingsOf } from '../given.js';

const run = initialTree(settingsOf({})).nodes.n0?.run ?? assert.fail();

/** The only event of a call, with a model that may throw. */
const eventOfCall = async (model: AskEquipment['model']): Promise<unknown> => {
  const posted: unknown[] = [];
  const equipment = { model, random: () => 0, redactor: createRedactor([]), effort: {} };
  const calls = new TreeCalls(
    equipment as unknown as AskEquipment, // the call fails before it needs more
    { subcallInstructions: '' } as ConstructorParameters<typeof TreeCalls>[1],
    (event: Omit<TreeEvent, 'at'>) => void posted.push(event),
  );
  const call = { type: 'CallModel', node: 'n0', requestId: 'n0.r1', length: 0, purpose: 'plain' };
  calls.send(call as Parameters<TreeCalls['send']>[0], run);
  await calls.stopAll();
  assert.equal(posted.length, 1);
  return posted[0];
};

test('a call of a model that is not there was not sent, so it has cost nothing', async () => {
  const failed = await eventOfCall(() => {
    throw new Error('there is no model x');
  });
  const message = 'the request could not be made: there is no model x';
  assert.deepEqual(Reflect.get(Object(failed), 'error'), {
    kind: 'malformed',
    message,
    retryable: false,
    retryAfterMs: null,
    sent: 'no',
  });
});

test('a call that fails later may have been sent', async () => {
  const failed = await eventOfCall(() => ({ id: 'm' }) as ReturnType<AskEquipment['model']>);
  const { message, sent } = Reflect.get(Object(failed), 'error');
  assert.match(message, /^the call failed: /);
  assert.equal(sent, undefined);
});
