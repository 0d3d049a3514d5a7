import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';
import { habits, type TestedWire, wires } from '../../../../test/kit/models/wires.js';
import { ok, tool } from '../../../../test/kit/runtime/stage.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { Stepped } from '../../src/ports/session.js';
import type { Tool } from '../../src/ports/tool.js';
import { openSession, type Session } from '../../src/session/create-agent.js';

/** One conversation through every wire, and one session through all of them. */

const workspace = realpathSync(os.tmpdir());

const read = tool('read', ({ path }) => ok(`text of ${path}`));
const checked: Tool = {
  ...read,
  judge: (input, where) =>
    typeof input.path === 'string'
      ? read.judge(input, where)
      : { kind: 'invalid', field: 'path', why: 'is no text' },
};
const tools = [checked, tool('fail', () => ({ status: 'failed', text: 'no such file' }))];

const call = (id: string, name: string, input: object) =>
  ({ type: 'call', id, name, input }) as const;
const says = (...parts: Extract<WireReply, { type: 'message' }>['parts']): WireReply => ({
  type: 'message',
  parts,
});
const text = (words: string) => ({ type: 'text', text: words }) as const;

const golden: readonly WireReply[] = [
  says(
    { type: 'thinking', text: 'Two files, then.', secret: 'secret-1' },
    text('I read both.'),
    call('c1', 'read', { path: 'one' }),
    call('c2', 'read', { path: 'two' }),
  ),
  { type: 'failure', failure: 'overloaded' },
  says(
    { type: 'thinking', text: 'And the third.', secret: 'secret-2' },
    call('c3', 'fail', { path: 'three' }),
  ),
  { type: 'message', parts: [text('this breaks o')], end: 'clean' },
  says(call('c4', 'read', { path: 7 })),
  says(call('c5', 'read', { path: 'four' })),
  says(text('Done.')),
  says({ type: 'thinking', text: 'Easy.', secret: 'secret-3' }, text('You are welcome.')),
  { type: 'failure', failure: 'badRequest' },
];

const settings = { retrySchedule: { kind: 'linear', stepMs: 1 }, hooks: 'never' } as const;

const turn = async (session: Session, words: string): Promise<string> => {
  await session.send({ type: 'UserInput', text: words, mode: 'steer' });
  const state = await session.idle();
  const reason = state.name === 'WaitingForUserInput' ? state.reason.kind : state.name;
  return `${reason}: ${JSON.stringify(messagesOf(state.session.conversation).at(-1)?.parts.at(-1))}`;
};

/** Every step that is journaled: the event and the states that it led through. */
const pathOf = (steps: readonly Stepped[]): readonly string[] =>
  steps.flatMap(({ seq, event, path, state }) =>
    seq === null
      ? []
      : [`${event.type}: ${path.map((edge) => JSON.stringify(edge)).join(' ')} ${state.name}`],
  );

const results = (session: {
  readonly conversation: Parameters<typeof messagesOf>[0];
}): readonly string[] =>
  messagesOf(session.conversation).flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'result' ? `${part.failed ? 'failed ' : ''}${part.text}` : [],
    ),
  );

const playGolden = async (wire: TestedWire): Promise<readonly string[]> => {
  const server = await wire.start(golden);
  const steps: Stepped[] = [];
  const session = await openSession({
    workspace,
    journals: memoryJournals(),
    model: wire.model(server.url),
    tools,
    settings,
    watcher: (stepped) => steps.push(stepped),
  });
  try {
    assert.match(await turn(session, 'look at the files'), /^endOfTurn: .*Done\./, wire.name);
    assert.deepEqual(results((await session.state()).session), [
      'text of one',
      'text of two',
      'failed failed: no such file',
      'failed the arguments were not valid: path: is no text',
      'text of four',
    ]);
    assert.match(await turn(session, 'thank you'), /^endOfTurn: .*You are welcome\./, wire.name);
    assert.match(await turn(session, 'once more'), /^error/, wire.name);
    const faults = server.requests.flatMap(({ fault }) => fault ?? []);
    if (wires.includes(wire)) assert.deepEqual(faults, [], wire.name);
    assert.equal(new Set(faults).size, faults.length, 'nothing is refused twice');
    assert.equal(server.requests.length - faults.length, golden.length, wire.title);
    return pathOf(steps);
  } finally {
    await session.close();
    await server.close();
  }
};

const all = [...wires, ...habits];

test('the same conversation takes the same path through the machine on all wires', async (context) => {
  const paths = new Map<string, readonly string[]>();
  for (const wire of all) paths.set(wire.title, await playGolden(wire));
  const [first = [], ...others] = paths.values();
  for (const other of others) assert.deepEqual(other, first);
  assert.ok(first.length > 20, 'it is a real path');
  context.diagnostic(`${first.length} steps, the same on ${[...paths.keys()].join(', ')}`);
});

/** What a turn of the switching session is answered with: a thinking reply with two calls, then text. */
const round = (number: number): readonly WireReply[] => [
  says(
    { type: 'thinking', text: `Thoughts ${number}.`, secret: `secret ${number}` },
    text(`I look, ${number}.`),
    call(`first${number}`, 'read', { path: 'one' }),
    call(`second${number}`, 'read', { path: 7 }),
  ),
  says(
    { type: 'thinking', text: `Done thinking ${number}.`, secret: `other ${number}` },
    text(`Done, ${number}.`),
  ),
];

test('one session goes through all wires and back: calls stay paired, thoughts stay with their model', async () => {
  const servers = await Promise.all(
    all.map((wire, index) => wire.start([...round(index), ...round(index + all.length)])),
  );
  const models = all.map((wire, index) => wire.model(servers[index]?.url ?? ''));
  const connect = async (modelId: string) => {
    const model = models.find(({ id }) => id === modelId);
    return model ?? assert.fail(`no model ${modelId}`);
  };
  const [first] = models;
  assert.ok(first);
  const session = await openSession({
    workspace,
    journals: memoryJournals(),
    model: first,
    connect,
    tools,
    settings,
  });
  try {
    for (let lap = 0; lap < 2; lap++) {
      for (const [index, { id }] of models.entries()) {
        await session.useModel(id);
        assert.match(
          await turn(session, `question ${lap} ${index}`),
          /^endOfTurn: .*Done, \d+\./,
          id,
        );
      }
    }
    for (const [index, server] of servers.entries()) {
      const wire = all[index] ?? assert.fail();
      const faults = server.requests.flatMap(({ fault }) => fault ?? []);
      if (wires.includes(wire)) assert.deepEqual(faults, [], wire.title);
      assert.equal(new Set(faults).size, faults.length, `${wire.title}: ${faults}`);
      assert.equal(server.requests.length - faults.length, 4);
      const last = server.requests.at(-1)?.text ?? '';
      for (const other of all.keys()) {
        const isOwn = other === index && wire.keeps !== 'nothing';
        const thought = new RegExp(`secret ${other}\\b|Thoughts ${other}\\b`);
        assert.equal(thought.test(last), isOwn, wire.title);
      }
    }
  } finally {
    await session.close();
    await Promise.all(servers.map((server) => server.close()));
  }
});

for (const [index, from] of wires.entries()) {
  const to = wires[(index + 1) % wires.length] ?? from;
  test(`the model changes from ${from.name} to ${to.name} between a call and its result`, async () => {
    const [one, two] = await Promise.all([
      from.start(round(1).slice(0, 1)),
      to.start(round(2).slice(1)),
    ]);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = {
      ...checked,
      run: async (input, context) => held.then(() => checked.run(input, context)),
    } as Tool; // only `run` differs
    const session = await openSession({
      workspace,
      journals: memoryJournals(),
      model: from.model(one.url),
      tools: [slow],
      settings,
    });
    const started = new Promise<void>((resolve) => {
      session.watch(({ event }) => {
        if (event.type === 'ToolStarted') resolve();
      });
    });
    try {
      await session.send({ type: 'UserInput', text: 'hi', mode: 'steer' });
      await started;
      await session.useModel(to.model(two.url));
      release();
      const state = await session.idle();
      assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'endOfTurn');
      assert.deepEqual(
        [...one.requests, ...two.requests].map(({ fault }) => fault),
        [null, null],
      );
    } finally {
      await session.close();
      await Promise.all([one.close(), two.close()]);
    }
  });
}

test('a session that is resumed goes on with another model', async (context) => {
  const journals = memoryJournals();
  const servers = await Promise.all(
    all.map((wire, index) => wire.start([...round(index), ...round(index + all.length)])),
  );
  context.after(() => Promise.all(servers.map((server) => server.close())));
  let before: { readonly resume?: string } = {};
  for (let number = 0; number < 2 * all.length; number++) {
    const wire = all[number % all.length] ?? assert.fail();
    const model = wire.model(servers[number % all.length]?.url ?? '');
    const session = await openSession({ workspace, journals, model, tools, settings, ...before });
    assert.match(await turn(session, `question ${number}`), /^endOfTurn: .*Done, \d+\./, wire.name);
    before = { resume: session.id };
    await session.close();
  }
  for (const { requests } of servers) {
    const faults = requests.flatMap(({ fault }) => fault ?? []);
    assert.equal(new Set(faults).size, faults.length, 'nothing is refused twice');
  }
});
