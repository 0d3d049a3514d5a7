import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import type { Entry, State, Stepped } from 'pawl/engine';
import { storySettings } from '../../test/contract/play-story.js';
import { atEnd } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { Follower } from '../src/follower.js';
import { httpLive, localLive } from '../src/live.js';
import { createRestateRuntime } from '../src/runtime.js';

const settings = storySettings('/work');
const header = { settings } as NonNullable<ConstructorParameters<typeof Follower>[1]['header']>; // all that is used of it
const hello: Entry = { seq: 1, event: { type: 'UserInput', at: 1, mode: 'steer', text: 'hello' } };
const delta = (requestId: string, text: string) =>
  ({ type: 'TextDelta', at: 2, requestId, text }) as const;

/** A runtime on an engine that answers as told; a number is the status of a refusal. */
const runtimeOn = async (context: TestContext, answer: (handler: string) => unknown) => {
  const engine = createServer((incoming, outgoing) => {
    incoming.resume();
    const body = answer(incoming.url?.split('/').at(-1) ?? '');
    outgoing.setHeader('content-type', 'application/json');
    outgoing.statusCode = typeof body === 'number' ? body : 200;
    outgoing.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  atEnd(context, () => void engine.close().closeAllConnections());
  const ingressUrl = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const report = (): void => undefined;
  const live = localLive();
  const runtime = createRestateRuntime({ ingressUrl, live, placeOn: () => 'a', report });
  atEnd(context, () => runtime.disconnect());
  return runtime;
};

test('a delta that is faster than the entry that its reply began with is shown after it, and one that is late is not', async () => {
  const live = localLive();
  const store = {
    async *entries() {
      await new Promise(setImmediate); // the engine takes its time
      yield hello;
    },
  };
  const follower = new Follower('s1', {
    store,
    live,
    header,
    now: () => Promise.reject(new Error('it begins with the first entry')),
    missingNode: async () => null,
    report: (fault) => assert.fail(fault),
  });
  const seen: Stepped[] = [];
  follower.watch((stepped) => void seen.push(stepped));
  for (const event of [delta('req-0', 'late'), delta('req-1', 'One '), delta('req-1', 'two.')])
    live.publish('s1', { kind: 'delta', event });
  assert.equal(seen.length, 0);
  await follower.catchUp();
  await follower.catchUp();
  live.publish('s1', { kind: 'delta', event: delta('req-1', ' Three.') });
  const texts = seen.map(({ seq, event }) => [
    seq,
    event.type === 'TextDelta' ? event.text : event.type,
  ]);
  assert.deepEqual(texts, [
    [1, 'UserInput'],
    [null, 'One '],
    [null, 'two.'],
    [null, ' Three.'],
  ]);
  follower.stop();
});

test('a question for the node that fails is reported once, and ends nothing', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const faults: string[] = [];
  const state = { name: 'ExecutingTools', calls: [] } as unknown as State; // all that is used of it
  const follower = new Follower('s1', {
    store: { entries: () => Readable.from([]) as never },
    live: localLive(),
    header: null,
    now: async () => ({ seq: 0, state }),
    missingNode: () => Promise.reject(new Error('the engine did not answer')),
    report: ({ message }) => void faults.push(message),
  });
  await follower.ready();
  for (let polls = 0; polls < 3; polls++) {
    context.mock.timers.tick(3_000);
    await new Promise(setImmediate);
  }
  follower.stop();
  assert.deepEqual(faults, ['the engine did not answer']);
});

test('a session that can not be followed at first takes inputs, and is followed from the next poll on', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  let isBroken = true;
  let seq = 0;
  const runtime = await runtimeOn(context, (handler) => {
    if (handler === 'input') seq++;
    const answers: Record<string, unknown> = {
      input: [{ seq, accepted: true }],
      entries: { entries: [hello, { ...hello, seq: 2 }].slice(0, seq), seq, over: false },
      session: { header: { settings, parent: null }, seq: 1, over: false, inTurn: false },
    };
    return isBroken && handler !== 'input' ? 500 : answers[handler];
  });
  const seen: (number | null)[] = [];
  runtime.watch('s1', (stepped) => void seen.push(stepped.seq));
  assert.deepEqual(await runtime.send('s1', { type: 'CancelTurn' }), { seq: 1 });
  isBroken = false;
  context.mock.timers.tick(3_000);
  await runtime.state('s1');
  await runtime.send('s1', { type: 'CancelTurn' });
  assert.deepEqual(seen, [2]);
});

const shutdown: Entry = { seq: 2, event: { type: 'ShutdownRequested', at: 2 } };
const ofHooks: Entry = { ...hello, seq: 3 }; // which entry it is does not matter

/** `closedAfter`: questions for the session that find it open. */
const readWhileItEnds = async (context: TestContext, closedAfter: number) => {
  let asked = 0;
  const runtime = await runtimeOn(context, (handler) => {
    if (handler === 'session') asked++;
    const ending = asked < 5;
    const entries = ending ? [hello, shutdown] : [hello, shutdown, ofHooks];
    const seq = entries.length;
    const over = asked > closedAfter;
    if (handler === 'entries') return { entries, seq, over };
    return { header: { settings, parent: null }, seq, over, ending };
  });
  const seen: number[] = [];
  for await (const { seq } of runtime.read('s1')) seen.push(seq);
  return seen;
};

test('a reader of a session whose last hooks still run gets their entries, then ends', async (context) => {
  assert.deepEqual(await readWhileItEnds(context, 0), [1, 2, 3]);
  assert.deepEqual(await readWhileItEnds(context, 1), [1, 2, 3], 'closed before it is followed');
});

test('to disconnect ends readers of an open session', async (context) => {
  const runtime = await runtimeOn(context, (handler) =>
    handler === 'entries'
      ? { entries: [hello], seq: 1, over: false }
      : { header: { settings, parent: null }, seq: 1, over: false },
  );
  const seen: number[] = [];
  for await (const { seq } of runtime.read('s1')) {
    seen.push(seq);
    setImmediate(() => void runtime.disconnect());
  }
  assert.deepEqual(seen, [1]);
});

test('to close a session that another caller closes meanwhile is no fault', async (context) => {
  let over = false;
  const runtime = await runtimeOn(context, (handler) => {
    if (handler === 'session') return { header: { settings, parent: null }, seq: 2, over };
    over = true;
    return 409;
  });
  await runtime.close('s1');
});

test('a node asks for another one that is away again and again, and leaves no listener at its signal', async (context) => {
  let asked = 0;
  const away = createServer((incoming) => {
    asked++;
    incoming.destroy();
  });
  await new Promise<void>((resolve) => away.listen(0, '127.0.0.1', resolve));
  atEnd(context, () => void away.close());
  const warnings: string[] = [];
  const note = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', note);
  atEnd(context, () => void process.off('warning', note));
  const peer = `http://127.0.0.1:${(away.address() as AddressInfo).port}`;
  const listen = { host: '127.0.0.1', port: 0 };
  const live = await httpLive({ peers: [peer], token: 'token', listen });
  atEnd(context, () => live.close());
  const node = { name: 'a', machineVersion: 1, deployment: 'd', sharedPort: 1 };
  void live.join(node, () => undefined);
  await until('it has asked more often than a signal has listeners', () => asked > 12);
  assert.deepEqual(warnings, []);
});
