import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { agentMachine, type Entry, type Event, type Header, step } from 'pawl/engine';
import { messagesOf } from '../../packages/agent/src/machine/conversation.js';
import { defaultSettings } from '../../packages/agent/src/machine/settings.js';
import { deploymentAddress, register } from '../src/registration.js';
import { SessionStates, takeOverEvents } from '../src/session-states.js';
import type { SessionStore } from '../src/session-store.js';

/** Sessions of other versions of the machine on a node of this one, without an engine. */

const header = (machineVersion: number): Header => ({
  version: 1,
  sessionId: 's',
  createdAt: 1,
  workspace: '/somewhere',
  parent: null,
  machine: 'other',
  machineVersion,
  settings: { ...defaultSettings, model: 'scripted/test', workspace: '/somewhere', hooks: 'never' },
  instructions: 'a'.repeat(64),
  tools: 'b'.repeat(64),
  prices: null,
});

const storeOf = (head: Header, events: readonly Event[]): SessionStore =>
  ({
    header: async () => head,
    forgetHeader: () => undefined,
    async *entries(_id: string, from: number, to: number): AsyncGenerator<Entry> {
      for (let seq = from; seq <= Math.min(to, events.length); seq++)
        yield { seq, event: events[seq - 1] as Event };
    },
  }) as unknown as SessionStore; // what SessionStates uses of it

const at = async (version: number, events: readonly Event[]) => {
  const states = new SessionStates(storeOf(header(version), events), 60_000);
  try {
    return await states.exact('s', events.length);
  } finally {
    states.stop();
  }
};

const usage = {
  inputTokens: 1,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
};
const says = (requestId: string): Event => ({
  type: 'LlmCompleted',
  at: 3,
  requestId,
  message: { role: 'assistant', model: 'm', cut: false, parts: [{ type: 'text', text: 'hello' }] },
  calls: [],
  stopReason: 'end',
  usage,
});
const begun: readonly Event[] = [
  { type: 'Start', at: 1 },
  { type: 'UserInput', at: 2, text: 'hi', mode: 'steer' },
];
const OLD = agentMachine.version - 1;

test('a session of this version needs nothing, one of a later version is refused in words', async () => {
  assert.equal((await at(agentMachine.version, begun)).upgrade, null);
  const later = agentMachine.version + 1;
  await assert.rejects(at(later, begun), /is used by a newer Pawl .*update this node/);
  const upgraded: Event = { type: 'Resumed', at: 4, epoch: 1, upgrade: { from: 1, to: later } };
  await assert.rejects(at(agentMachine.version, [...begun, upgraded]), /is used by a newer Pawl/);
});

test('a session of an earlier version is taken over at rest, in a turn it goes on', async () => {
  const inTurn = await at(OLD, begun);
  assert.deepEqual(takeOverEvents(inTurn.state, inTurn.upgrade, 2), []);
  const atRest = await at(OLD, [...begun, says('req-1')]);
  const [resumed] = takeOverEvents(atRest.state, atRest.upgrade, 3);
  assert.deepEqual(resumed, {
    type: 'Resumed',
    epoch: 1,
    upgrade: { from: OLD, to: agentMachine.version },
  });
});

test('what this machine misses is carried, and a turn that it can not follow ends', async () => {
  const ended = await at(OLD, [...begun, says('other-1')]);
  const [resumed] = takeOverEvents(ended.state, ended.upgrade, 3);
  assert.ok(resumed?.type === 'Resumed');
  const { state } = step(ended.state, { ...resumed, at: 4 } as Event);
  assert.equal(messagesOf(state.session.conversation).length, 2);
  assert.equal(state.name, 'WaitingForUserInput');

  const more: Event = { type: 'UserInput', at: 4, text: 'more', mode: 'steer' };
  const inTurn = await at(OLD, [...begun, says('other-1'), more]);
  const events = takeOverEvents(inTurn.state, inTurn.upgrade, 4);
  assert.deepEqual(
    events.map(({ type }) => type),
    ['Resumed'],
  );
  let after = inTurn.state;
  for (const event of events) after = step(after, { ...event, at: 5 } as Event).state;
  assert.equal(after.name, 'WaitingForUserInput');
  assert.match(JSON.stringify(messagesOf(after.session.conversation)), /hello.*more/);
});

test('a node is registered under the address of its version, and replaces no deployment', async () => {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => {
      text += String(piece);
    });
    request.on('end', () => {
      bodies.push(JSON.parse(text));
      response.writeHead(bodies.length === 1 ? 201 : 409).end('{}');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await register(admin, 'http://n1:9080');
  await register(admin, 'http://n1:9080'); // the same node was started again
  server.close();
  const uri = `http://n1:9080/pawl-0.1.0-machine-${agentMachine.version}`;
  assert.equal(deploymentAddress('http://n1:9080'), uri);
  assert.deepEqual(bodies, [
    { uri, force: false },
    { uri, force: false },
  ]);
});
