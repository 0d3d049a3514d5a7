import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  agentMachine,
  beginHeader,
  type Entry,
  type Event,
  fileBlobs,
  freezePrompt,
  type JudgedCall,
  newSessionId,
  type Posted,
  type SessionDependencies,
  systemClock,
  type Tool,
} from 'pawl/engine';
import { scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import type { ModelRequest } from '../../packages/agent/src/ports/model.js';
import { createJobs } from '../../packages/agent/src/ports/tool.js';
import { createFileMemory } from '../../packages/agent/src/tools/file-change.js';
import { guard } from '../../test/contract/contract-hooks.js';
import { MODEL_ID, storySettings } from '../../test/contract/play-story.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { localLive } from '../src/index.js';
import type { StoredSession, Work } from '../src/session-records.js';
import { SessionStates } from '../src/session-states.js';
import type { SessionStore } from '../src/session-store.js';
import { Workers } from '../src/session-worker.js';
import { listWork } from '../src/started-work.js';

/** The sessions that one node works for, with an engine that answers late. */

const IDLE_MS = 10;

type Answers = Partial<Pick<SessionStore, 'entries' | 'session' | 'post' | 'header'>>;

/** What the session is equipped with, and when. */
type Equipped = Partial<SessionDependencies> & { readonly when?: Promise<void> };

const startWorkers = async (
  context: TestContext,
  answers: Answers,
  { when, ...equipped }: Equipped = {},
) => {
  const faults: string[] = [];
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
    equip: async () => {
      await when;
      return {
        model: () => assert.fail('no model is called'),
        tools: [],
        hooks: null,
        files: createFileMemory(),
        jobs: createJobs(),
        compactionInstructions: () => '',
        ...equipped,
      };
    },
    report: (fault: Error) => void faults.push(fault.message),
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
  /** Its result, once it has begun here and ended. */
  const perform = async (id: string, action: Work['action'], seq = 1, isAgain = false) => {
    const worker = await workers.of(sessionId, seq, 'n1');
    const [{ workId = '' } = {}] = listWork(action);
    const run = await worker.run(id, { ...work, seq, action, workId }, isAgain);
    return run.result;
  };
  return { workers, states, sessionId, work, perform, faults };
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

const gate = () => {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

/** A tool that notes each of its runs, and a call of it. */
const notingTool = (effect: 'opaque' | 'probeable' = 'opaque') => {
  const ran: string[] = [];
  const facts = { argv: [], paths: [], hosts: [], shape: 'note' };
  const tool: Tool = {
    name: 'note',
    description: 'Notes that it ran.',
    inputSchema: { type: 'object' },
    traits: { effect, parallelSafe: false, mutating: false, deadlineMs: 0 },
    judge: (input) => ({ kind: 'ok', input, facts }),
    run: async (_, { callId }) => {
      ran.push(callId);
      return { status: 'ok', text: 'noted' };
    },
  };
  const call = (callId: string): JudgedCall => {
    const { traits } = tool;
    return { callId, tool: 'note', input: {}, verdict: { kind: 'ok' }, traits, facts };
  };
  const execute = (callId: string): Work['action'] => ({
    type: 'ExecuteTools',
    batchId: 'batch-1',
    calls: [call(callId)],
  });
  return { ran, tool, call, execute };
};

const outcomesIn = ({ posted }: { readonly posted: readonly Posted[] }): readonly string[] =>
  posted.flatMap((event) => (event.type === 'ToolCompleted' ? [event.outcome.status] : []));

const request = { type: 'SendLlmRequest', requestId: 'req-1', purpose: 'user', length: 1 } as const;

test('work that is stopped while its session is equipped is not done, and a call says so', async (context) => {
  const { ran, tool, execute } = notingTool();
  const { open, opened } = gate();
  const equipped = { when: opened, tools: [tool] };
  const { workers, sessionId, perform, faults } = await startWorkers(context, {}, equipped);
  const works = [execute('soon'), execute('force'), request, execute('runs')] as const;
  const results = works.map((action, index) => perform(`inv-${index}`, action));
  workers.stopWork(sessionId, 'inv-0', false);
  workers.stopWork(sessionId, 'inv-1', true);
  workers.stopWork(sessionId, 'inv-1', false);
  workers.stopWork(sessionId, 'inv-2', false);
  open();
  const ended = await Promise.all(results);
  assert.deepEqual(ended.map(outcomesIn), [['cancelled'], [], [], ['ok']]);
  assert.deepEqual([ran, faults], [['runs'], []]);
});

test('a session that ends while it is equipped is closed, and its work is not begun', async (context) => {
  const { ran, tool, execute } = notingTool();
  for (const end of ['end', 'stop'] as const) {
    const { open, opened } = gate();
    let closed = 0;
    const close = async (): Promise<void> => {
      closed += 1;
    };
    const equipped = { when: opened, tools: [tool], close };
    const { workers, sessionId, perform } = await startWorkers(context, {}, equipped);
    const working = perform('inv-1', execute('a'));
    const ending = workers[end](sessionId);
    open();
    await ending;
    assert.deepEqual((await working).posted, []);
    assert.deepEqual([closed, workers.size, ran], [1, 0, []]);
  }
});

test('a call whose start the engine does not take ends as failed', async (context) => {
  const { ran, tool, execute } = notingTool('probeable');
  const post = async (): Promise<never> => {
    throw new Error('the engine is away');
  };
  const { perform, faults } = await startWorkers(context, { post }, { tools: [tool] });
  assert.deepEqual(outcomesIn(await perform('inv-1', execute('a'))), ['failed']);
  assert.deepEqual([ran, faults], [[], ['the engine is away']]);
});

test('a call that an earlier process began is found behind any number of entries', async (context) => {
  const { ran, tool, call, execute } = notingTool();
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const events: readonly Event[] = [
    {
      type: 'LlmCompleted',
      at: 1,
      requestId: 'req-1',
      message: null,
      calls: [call('a')],
      stopReason: 'toolUse',
      usage: { ...usage, costUsd: 0 },
    },
    { type: 'ToolStarted', at: 1, batchId: 'batch-1', callId: 'a' },
    ...Array.from({ length: 500 }, () => entry.event),
  ];
  const { perform } = await startWorkers(
    context,
    {
      async *entries(_, from, to = events.length) {
        for (const [index, event] of events.entries())
          if (index + 1 >= from && index + 1 <= to) yield { seq: index + 1, event };
      },
    },
    { tools: [tool] },
  );
  assert.deepEqual(outcomesIn(await perform('inv-1', execute('a'), events.length, true)), ['lost']);
  assert.deepEqual(ran, []);
});

test('a request goes with its conversation although the engine takes no verdict of its hooks', async (context) => {
  const texts: string[] = [];
  const events: readonly Event[] = [
    { type: 'Start', at: 1 },
    { type: 'UserInput', at: 1, text: 'hi', mode: 'steer' },
  ];
  const scripted = scriptedModel({ replies: [{ text: 'Hello.' }] }, { id: MODEL_ID });
  const model = {
    ...scripted,
    stream: (asked: ModelRequest, signal: AbortSignal) => {
      texts.push(JSON.stringify(asked.messages));
      return scripted.stream(asked, signal);
    },
  };
  const started = await startWorkers(
    context,
    {
      async *entries(_, from) {
        for (const [index, event] of events.entries())
          if (index + 1 >= from) yield { seq: index + 1, event };
      },
      post: async () => {
        started.states.stop(); // as after a while in which nobody asks for them
        throw new Error('the engine is away');
      },
    },
    { model: () => model, userHooks: guard({ 'before-request': () => ({ note: 'be careful' }) }) },
  );
  const { posted } = await started.perform('inv-1', request, events.length);
  assert.equal(posted.at(-1)?.type, 'LlmCompleted');
  assert.match(texts.join(), /"hi"/);
});
