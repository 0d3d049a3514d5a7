import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';
import {
  callTools,
  command,
  hang,
  ok,
  rawCall,
  say,
  type TestModel,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { systemClock } from '../../src/platform/clock.js';
import type { Watcher } from '../../src/ports/session.js';
import { type AgentOptions, createAgent } from '../../src/session/create-agent.js';
import type { Session } from '../../src/session/session.js';

const agentHere = (context: TestContext, model: TestModel, more: Partial<AgentOptions> = {}) => {
  const workspace = temporaryFolder(context, 'workspace');
  const state = temporaryFolder(context, 'state');
  const journals = fileJournals({ folder: state });
  const agent = createAgent({ model, journals, checkpoints: false, ...more });
  return { agent, journals, workspace, state, model };
};

const inputsOf = async (session: Session, journals: AgentOptions['journals']) => {
  const texts: string[] = [];
  for await (const { event } of journals.read(session.id, 1))
    if (event.type === 'UserInput') texts.push(event.text);
  return texts;
};

test('a prompt with a request id runs once, however often it is sent', async (context) => {
  const model = testModel(say('one'), say('two'), say('three'));
  const { agent, journals, workspace } = agentHere(context, model);
  const session = await agent.open({ workspace });
  const requestId = 'a';
  const [first, meanwhile] = await Promise.all([
    session.prompt('hi', { requestId }),
    session.prompt('hi', { requestId }),
  ]);
  const other = await session.prompt('hi', { requestId: 'b' });
  const later = await session.prompt('hi', { requestId });
  assert.deepEqual(
    [first.text, meanwhile.text, other.text, later.text],
    ['one', 'one', 'two', 'one'],
  );
  assert.deepEqual(later.usage, first.usage);
  // without an id each counts
  assert.equal((await session.prompt('hi')).text, 'three');
  assert.deepEqual(await inputsOf(session, journals), ['hi', 'hi', 'hi']);

  await assert.rejects(session.prompt('ho', { requestId }), {
    name: 'TypeError',
    message: /request id a came with another one/,
  });
  await session.close();
  const again = await agent.open({ workspace, resume: session.id });
  assert.equal((await again.prompt('hi', { requestId })).text, 'one');
  await again.close();
  assert.equal(model.requests.length, 3);
});

test('a prompt that is sent again while its turn runs waits for the turn', async (context) => {
  const model = testModel(hang(), say('two'));
  const { agent, journals, workspace } = agentHere(context, model);
  const session = await agent.open({ workspace });
  const turns = [session.prompt('hi', { requestId: 'a' })];
  await until('the request', () => model.requests.length === 1);
  turns.push(session.prompt('hi', { requestId: 'a' }));
  await session.cancel();
  const reasons = (await Promise.all(turns)).map(({ reason }) => reason);
  assert.deepEqual(reasons, Array(2).fill({ kind: 'cancelled', cause: 'user' }));
  assert.deepEqual(await inputsOf(session, journals), ['hi']);
  await session.close();
});

test('a prompt that is sent again while its turn runs cancels the turn by its own signal', async (context) => {
  const model = testModel(hang(), say('two'));
  const { agent, workspace } = agentHere(context, model);
  const session = await agent.open({ workspace });
  const turns = [session.prompt('hi', { requestId: 'a' })];
  await until('the request', () => model.requests.length === 1);
  const again = new AbortController();
  turns.push(session.prompt('hi', { requestId: 'a', signal: again.signal }));
  again.abort();
  const reasons = (await Promise.all(turns)).map(({ reason }) => reason.kind);
  assert.deepEqual(reasons, ['cancelled', 'cancelled']);
  const later = session.prompt('ho');
  await session.prompt('hi', { requestId: 'a', signal: AbortSignal.timeout(0) });
  assert.equal((await later).text, 'two', 'a turn that is over is not cancelled');
  await session.close();
});

test('a prompt that was sent before its process was killed does not run twice', async (context) => {
  const { workspace, state, agent, journals, model } = agentHere(context, testModel(say('one')));
  const file = fileURLToPath(new URL('prompt-and-die.ts', import.meta.url));
  const words = [await bundleProgram(context, { file }), workspace, state, 'hi', 'a'];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const [id] = (await once(child.stdout, 'data')) as [Buffer];
  child.kill('SIGKILL');
  await ended;
  const session = await agent.open({ workspace, resume: String(id).trim(), sandbox: 'off' });
  assert.equal((await session.prompt('hi', { requestId: 'a' })).text, 'one');
  assert.deepEqual(await inputsOf(session, journals), ['hi']);
  assert.equal(model.requests.length, 1);
  await session.close();
});

test('a journal that could not be read for a request id is read again for the next one', async (context) => {
  const journals = fileJournals({ folder: temporaryFolder(context, 'state') });
  let reads = 0;
  const create: typeof journals.create = async (header) => {
    const journal = await journals.create(header);
    const read = journal.read.bind(journal);
    const value: typeof read = (from) => {
      reads += 1;
      return reads === 1 ? assert.fail('EMFILE') : read(from);
    };
    return Object.defineProperty(journal, 'read', { value });
  };
  const { agent, workspace } = agentHere(context, testModel(say('one')), {
    journals: { ...journals, create },
  });
  const session = await agent.open({ workspace });
  await assert.rejects(session.prompt('hi', { requestId: 'a' }), /EMFILE/);
  assert.equal((await session.prompt('hi', { requestId: 'a' })).text, 'one');
  await session.close();
});

test('a prompt whose event was refused runs when it is sent again', async (context) => {
  let isBroken = false;
  const clock = { ...systemClock, now: () => (isBroken ? Number.NaN : systemClock.now()) };
  const model = testModel(say('one'));
  const { agent, workspace } = agentHere(context, model, { clock });
  const session = await agent.open({ workspace });
  isBroken = true;
  await assert.rejects(session.prompt('hi', { requestId: 'a' }), /the clock gives no time/);
  isBroken = false;
  assert.equal((await session.prompt('hi', { requestId: 'a' })).text, 'one');
  await session.close();
});

test('what the parent of a fork was sent does not count in the fork', async (context) => {
  const model = testModel(say('one'), say('two'));
  const { agent, workspace } = agentHere(context, model);
  const session = await agent.open({ workspace });
  await session.prompt('hi', { requestId: 'a' });
  await session.close();
  const { seq } = await agent.runtime.state(session.id);
  const fork = await agent.open({ workspace, resume: await agent.runtime.fork(session.id, seq) });
  assert.equal((await fork.prompt('hi', { requestId: 'a' })).text, 'two');
  await fork.close();
});

test('a session that is opened twice in one agent is one, until both have closed it', async (context) => {
  const model = testModel(say('one'), callTools(rawCall('1', 'change')), say('two'), say('three'));
  const tools = [tool('change', () => ok('changed'), command)];
  const { agent, journals, workspace } = agentHere(context, model, { tools });
  const { id } = await agent.open({ workspace, preset: 'careful' }).then(async (session) => {
    await session.close();
    return session;
  });
  const seen: string[] = [];
  const asked: string[] = [];
  const allow = ({ tool: name }: { readonly tool: string }) => {
    asked.push(name);
    return 'allow' as const;
  };
  const one = await agent.open({ workspace, resume: id, onApproval: allow });
  const watcher: Watcher = ({ event }) => void seen.push(event.type);
  const two = await agent.open({ workspace, resume: id, watcher });
  assert.equal((await one.prompt('hi')).text, 'one');
  assert.ok(seen.includes('LlmCompleted'));
  await assert.rejects(
    agent.open({ workspace, resume: id, preset: 'full' }),
    /is open in this process with another preset/,
  );
  await one.close();
  await one.close(); // counts once
  assert.equal((await two.prompt('change it')).text, 'two');
  assert.deepEqual(asked, ['change']);
  // whoever opens it while it ends gets it after its end
  const reopen = () => agent.open({ workspace, resume: id });
  const [, three, four] = await Promise.all([two.close(), reopen(), reopen()]);
  await four.close();
  assert.equal((await three.prompt('hi')).text, 'three');
  await three.close();
  await (await journals.open(id, { takeOver: false })).journal.close(); // the lock is free
});
