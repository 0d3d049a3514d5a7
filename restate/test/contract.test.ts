import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allStories } from '../../test/contract/all-stories.js';
import { linesOf, readExpected } from '../../test/contract/expected-events.js';
import { playStory } from '../../test/contract/play-story.js';
import { sessionChecks, withRuntime } from '../../test/contract/session-checks.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { engineUnderTest } from './engine-under-test.js';

/** The contract of runtimes, over the engine: the same stories, the same events as in one process. */

const engine = await engineUnderTest({ after: (hook) => after(hook) });
const expected = readExpected();

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

test('no call of the engine was tried again and again', async () => {
  assert.deepEqual(await engine.stuck(), []);
});
