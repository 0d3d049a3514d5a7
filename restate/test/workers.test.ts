import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  agentMachine,
  beginHeader,
  type Entry,
  fileBlobs,
  freezePrompt,
  newSessionId,
  systemClock,
} from 'pawl/engine';
import { createJobs } from '../../packages/agent/src/ports/tool.js';
import { createFileMemory } from '../../packages/agent/src/tools/file-change.js';
import { storySettings } from '../../test/contract/play-story.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { localLive } from '../src/index.js';
import type { StoredSession, Work } from '../src/session-records.js';
import { SessionStates } from '../src/session-states.js';
import type { SessionStore } from '../src/session-store.js';
import { Workers } from '../src/session-worker.js';

/** The sessions that one node works for, with an engine that answers late. */

const IDLE_MS = 10;

type Answers = Partial<Pick<SessionStore, 'entries' | 'session'>>;

const startWorkers = async (context: TestContext, answers: Answers) => {
  const folder = temporaryFolder(context, 'workers');
  const blobs = fileBlobs(folder);
  const settings = storySettings(folder);
  const session = {
    sessionId: newSessionId(systemClock),
    createdAt: 0,
    settings,
    startedBy: undefined,
    machine: agentMachine.fingerprint,
    prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  const header = await beginHeader(session, freezePrompt('Be brief.', [], settings), blobs);
  const store = {
    header: async () => header,
    forgetHeader: () => undefined,
    async *entries() {
      yield entry;
    },
    ...answers,
  } as Partial<SessionStore> as SessionStore; // what is asked here
  const states = new SessionStates(store, 60_000);
  const world = {
    node: 'n1',
    store,
    states,
    live: localLive(),
    blobs,
    equip: async () => ({
      model: () => assert.fail('no model is called'),
      tools: [],
      hooks: null,
      files: createFileMemory(),
      jobs: createJobs(),
      compactionInstructions: () => '',
    }),
    report: (fault: Error) => assert.fail(fault.message),
  };
  const workers = new Workers(world, IDLE_MS);
  context.after(() => Promise.all([workers.stop(), states.stop()]));
  const { sessionId } = header;
  const work: Work = {
    sessionId,
    seq: 1,
    action: { type: 'StartCompaction', compactionId: 'c1' } as Work['action'], // only its id counts: its process has died
    workId: 'c1',
    node: 'n1',
    isBound: false,
    isRecovered: true,
  };
  return { workers, sessionId, work };
};

const entry: Entry = {
  seq: 1,
  event: { type: 'SettingsChanged', at: 1, patch: { maxRetries: 2 } },
};

test('work that waits for the engine while its session counts as idle is begun once', async (context) => {
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const { workers, sessionId, work } = await startWorkers(context, {
    async *entries() {
      await answered;
      yield entry;
    },
  });
  const ask = async () => (await workers.of(sessionId, 0, 'n1')).run('inv-1', work, true);
  const first = ask();
  const until = performance.now() + 10 * IDLE_MS;
  while (performance.now() < until) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const second = ask();
  answer();
  assert.equal(await first, await second);
});

test('work from before a move does not bring its worker back, and counts as begun', async (context) => {
  let node = 'n2';
  const session = async () => ({ node }) as StoredSession; // all that is used of it
  const { workers, sessionId, work } = await startWorkers(context, { session });
  const old = await workers.of(sessionId, 0, 'n2');
  await old.run('inv-1', { ...work, node: 'n2' }, true);
  assert.equal(workers.hasEnded('inv-1'), false);
  await assert.rejects(workers.of(sessionId, 0, 'n1'), /was moved to the node n2/);
  node = 'n1';
  const moved = await workers.of(sessionId, 0, 'n1');
  await moved.run('inv-2', work, true);
  assert.notEqual(moved, old);
  assert.equal(workers.hasEnded('inv-1'), true);
  await assert.rejects(workers.of(sessionId, 0, 'n2'), /was moved to the node n1/);
  assert.equal(await workers.of(sessionId, 0, 'n1'), moved);
  workers.forget(sessionId, 'inv-2');
  assert.equal(workers.hasEnded('inv-2'), true);
  await moved.run('inv-3', work, true);
  await workers.end(sessionId);
  assert.equal(workers.hasEnded('inv-3'), true);
});
