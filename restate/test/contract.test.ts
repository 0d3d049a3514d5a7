import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import type { Model } from '../../packages/agent/src/ports/model.js';
import { allStories } from '../../test/contract/all-stories.js';
import { linesOf, readExpected } from '../../test/contract/expected-events.js';
import { attend, MODEL_ID, playStory, storySettings } from '../../test/contract/play-story.js';
import { sessionChecks, withRuntime } from '../../test/contract/session-checks.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { createRestateRuntime, localLive } from '../src/index.js';
import { engineUnderTest, NODE } from './engine-under-test.js';

/** The contract of runtimes, over the engine: the same stories, the same events as in one process. */

const engine = await engineUnderTest({ after: (hook) => after(hook) });
const expected = readExpected();

/** The signals to running work. */
const SIGNALS = `select id from sys_journal where entry_type = 'Notification: Signal'`;

for (const story of allStories)
  test(`story: ${story.name}`, async (context) => {
    const workspace = temporaryFolder(context, 'contract');
    const played = await playStory(story, engine.make, workspace);
    assert.deepEqual(linesOf(played.entries, workspace), expected.get(story.name));
  });

for (const check of sessionChecks)
  test(`sessions: ${check.name}`, async (context) => {
    await withRuntime(engine.make, check, temporaryFolder(context, 'contract'));
  });

test('work that is stopped before it has begun is not done, and the engine keeps nothing of it', async (context) => {
  const workspace = temporaryFolder(context, 'stopped');
  const scripted = scriptedModel({ replies: [{ text: 'Hello.' }] }, { id: MODEL_ID });
  let asked = 0;
  const model: Model = {
    ...scripted,
    stream: (...request) => {
      asked += 1;
      return scripted.stream(...request);
    },
  };
  const { runtime, stop } = await engine.make({ model, tools: [], hooks: null });
  const id = await runtime.create({
    settings: storySettings(workspace),
    instructions: 'Be brief.',
  });
  const release = engine.hold(workspace);
  const session = attend(runtime, id);
  const rows = (sql: string) => engine.engine.query(sql);
  await session.say('hi');
  await session.send({ type: 'CancelTurn' });
  await until('the stop has come', async () => (await rows(SIGNALS)).length > 0);
  release();
  const live = `select key from state where service_key = '${id}' and key like 'live-%'`;
  await until('nothing is left', async () => (await rows(live)).length === 0);
  assert.equal(asked, 0);
  await session.ask('hi again');
  assert.equal(asked, 1);
  await until('nothing is left', async () => (await rows(live)).length === 0);
  await stop();
});

test('a reader that begins where others closed and opened the session goes on', async (context) => {
  const workspace = temporaryFolder(context, 'reopened');
  const model = scriptedModel({ replies: [] }, { id: MODEL_ID });
  const { runtime, stop } = await engine.make({ model, tools: [], hooks: null });
  const { ingressUrl } = engine.engine;
  const other = createRestateRuntime({ ingressUrl, live: localLive(), placeOn: () => NODE });
  const settings = storySettings(workspace);
  const id = await runtime.create({ settings, instructions: 'Be brief.' });
  await other.close(id);
  await other.open(id);
  const types: string[] = [];
  const reading = (async () => {
    for await (const { event } of runtime.read(id)) types.push(event.type);
  })();
  await until('the first entries', () => types.includes('Resumed'));
  await other.send(id, { type: 'SettingsChanged', patch: { effort: 'low' } });
  await until('the next entry', () => types.at(-1) === 'SettingsChanged');
  await other.close(id);
  await reading;
  assert.equal(types.at(-1), 'ShutdownRequested');
  await other.disconnect();
  assert.throws(() => other.watch(id, () => undefined), /has let go of its connections/);
  await stop();
});

test('no call of the engine was tried again and again', async () => {
  assert.deepEqual(await engine.stuck(), []);
});
