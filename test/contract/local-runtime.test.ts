import '../own-process.js';
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileJournals } from '../../packages/agent/src/journal/file-store.js';
import { agentMachine } from '../../packages/agent/src/journal/journaled-agent-machine.js';
import { systemClock } from '../../packages/agent/src/platform/clock.js';
import { createJobs } from '../../packages/agent/src/ports/tool.js';
import { newSessionId } from '../../packages/agent/src/session/equipment.js';
import { LocalRuntime } from '../../packages/agent/src/session/runtime.js';
import { createFileMemory } from '../../packages/agent/src/tools/file-change.js';
import { temporaryFolder } from '../temporary-folder.js';
import { allStories } from './all-stories.js';
import { linesOf, readExpected, writeExpected } from './expected-events.js';
import { playStory } from './play-story.js';
import type { MakeRuntime } from './runtime-under-test.js';
import { sessionChecks, withRuntime } from './session-checks.js';

/** The contract of runtimes, over the runtime inside one process with journals on disk. */

const makeLocal =
  (folder: string): MakeRuntime =>
  async ({ model, tools, hooks, userHooks = null, stoppingPolicy = null }) => {
    const faults: Error[] = [];
    const runtime = new LocalRuntime({
      journals: fileJournals({ folder }),
      clock: systemClock,
      machine: agentMachine.fingerprint,
      equip: async () => ({
        model: () => model,
        tools,
        files: createFileMemory(),
        jobs: createJobs(),
        compactionInstructions: () => 'Summarise.',
        hooks,
        userHooks,
        stoppingPolicy,
      }),
      newSessionId: () => newSessionId(systemClock),
      random: Math.random,
      report: (fault) => faults.push(fault),
    });
    const stop = async (): Promise<void> => {
      for await (const { sessionId } of runtime.list())
        await runtime.close(sessionId).catch(() => undefined); // closed already
    };
    return { runtime, stop };
  };

const updates = process.env.UPDATE === '1';
const expected = updates ? new Map<string, readonly string[]>() : readExpected();
const found = new Map<string, readonly string[]>();

for (const story of allStories)
  test(`story: ${story.name}`, async (context) => {
    const workspace = temporaryFolder(context, 'contract');
    const played = await playStory(
      story,
      makeLocal(temporaryFolder(context, 'journals')),
      workspace,
    );
    const lines = linesOf(played.entries, workspace);
    found.set(story.name, lines);
    if (!updates) assert.deepEqual(lines, expected.get(story.name));
  });

for (const check of sessionChecks)
  test(`sessions: ${check.name}`, async (context) => {
    const folder = temporaryFolder(context, 'contract');
    await withRuntime(makeLocal(temporaryFolder(context, 'journals')), check, folder);
  });

test('each story has a name of its own, and no expectation is left over', () => {
  const names = allStories.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  if (!updates) assert.deepEqual([...expected.keys()], names);
});

after(() => {
  if (updates) writeExpected(new Map(allStories.map(({ name }) => [name, found.get(name) ?? []])));
});
