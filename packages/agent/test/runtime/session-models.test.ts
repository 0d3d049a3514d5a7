import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';
import { pieces, say, testModel } from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { openSession } from '../../src/session/create-agent.js';

const workspace = realpathSync(os.tmpdir());

test('another model answers from the next call on, with its own window and prices, and its price is in the journal', async () => {
  const journals = memoryJournals();
  const one = testModel(say('from one'), say('from one again'));
  const dear = { ...testModel(say('from two')), id: 'test/two' };
  const prices = { input: 100, output: 0, cacheRead: 0, cacheWrite: 0 };
  const two = { ...dear, facts: { ...dear.facts, windowTokens: 50_000, prices } };
  const asked: string[] = [];
  const connect = async (modelId: string) => {
    asked.push(modelId);
    return two;
  };
  const session = await openSession({ workspace, journals, model: one, connect });
  const costs: (number | null)[] = [];
  session.watch(({ event }) => {
    if (event.type === 'LlmCompleted') costs.push(event.usage.costUsd);
  });
  const turn = async (text: string) => {
    await session.send({ type: 'UserInput', text, mode: 'steer' });
    const { conversation, settings } = (await session.idle()).session;
    const reply = messagesOf(conversation).at(-1);
    return [settings.windowTokens, reply?.role === 'assistant' && reply.model];
  };
  assert.deepEqual(await turn('hi'), [100_000, 'test/one']);
  assert.equal(await session.model(), one);
  assert.equal(await session.useModel('two'), two);
  assert.equal(await session.model(), two);
  assert.deepEqual(await turn('hi'), [50_000, 'test/two']);
  await session.useModel('test/two');
  await session.useModel('test/one');
  assert.deepEqual(await turn('hi'), [100_000, 'test/one']);
  assert.deepEqual(asked, ['two'], 'a model is connected once');
  assert.deepEqual(costs, [0.0002, 0.01, 0.0002]);
  await session.close();
  const changes: unknown[] = [];
  for await (const { event } of journals.read(session.id)) {
    if (event.type === 'SettingsChanged') changes.push([event.patch.model, event.prices]);
  }
  assert.deepEqual(changes, [
    ['test/two', prices],
    ['test/two', prices],
    ['test/one', one.facts.prices],
  ]);
});

test('a model that can not be connected, or whose price is unknown under a limit in dollars, changes nothing', async () => {
  const model = testModel(say('still one'));
  const free = { ...testModel(), id: 'test/free', facts: { ...model.facts, prices: null } };
  const options = { workspace, journals: memoryJournals(), model };
  const session = await openSession({ ...options, settings: { limits: { usd: 1 } } });
  await assert.rejects(session.useModel('test/none'), /test\/none can't be found by its name here/);
  await assert.rejects(session.useModel(free), /the price of test\/free is not known/);
  const patch = { model: 'test/none' };
  await assert.rejects(
    session.send({ type: 'SettingsChanged', patch }),
    /test\/none is not connected/,
  );
  assert.equal((await session.state()).session.settings.model, 'test/one');
  await session.close();
  const careless = await openSession({
    ...options,
    settings: { limits: { usd: 1 } },
    unpriced: 'countAsNothing',
  });
  await careless.useModel(free);
  assert.equal((await careless.state()).session.settings.model, 'test/free');
  await careless.close();
});

test('a server that refuses the effort is told of once', async () => {
  const usage = { inputTokens: 9, outputTokens: 9, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const parts = [{ type: 'text', text: 'yes' }] as const;
  const refused = pieces({ type: 'completed', parts, stopReason: 'end', usage, effort: 'refused' });
  const model = testModel(say('yes'), refused, refused);
  const session = await openSession({ workspace, journals: memoryJournals(), model });
  const warnings: string[] = [];
  session.watch(({ actions }) => {
    for (const action of actions) if (action.type === 'DisplayWarning') warnings.push(action.text);
  });
  for (const expected of [0, 1, 1]) {
    await session.prompt('hi');
    assert.equal(warnings.length, expected);
  }
  assert.match(warnings.join(), /refused the level of effort/);
  await session.close();
});
