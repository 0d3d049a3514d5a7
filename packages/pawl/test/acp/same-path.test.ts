import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { loadScript } from '@pawl/agent/models/choose-model';
import { createAgent } from '@pawl/agent/session/create-agent';
import { openFromFlags } from '../../src/sessions/open-session.js';
import { expectCode, makePlace, runPawl } from '../e2e/pawl.js';
import { makeStage } from './acp-stage.js';
import '../../../../test/own-process.js';
import { AgentError } from './wire-message.js';

/** The same conversation takes the same path through the machine, whoever drives it. */

const replies = [
  { text: 'I look.', calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
  {
    calls: [
      { tool: 'edit', input: { path: 'a.txt', edits: [{ oldText: 'one', newText: 'two' }] } },
      { tool: 'bash', input: { command: 'cat a.txt' } },
    ],
  },
  { text: 'It says two now.' },
];
const flags = { preset: 'auto', hooks: 'never' };

const prepare = (workspace: string): void => writeFileSync(path.join(workspace, 'a.txt'), 'one\n');

type Taken = { readonly event: string; readonly path: readonly string[] };

/** Each event of the only session in a state folder, with the states that it led through. */
const pathIn = async (folder: string): Promise<readonly Taken[]> => {
  const [name, ...others] = readdirSync(path.join(folder, 'sessions')).filter((one) =>
    one.endsWith('.jsonl'),
  );
  assert.ok(name !== undefined && others.length === 0);
  const taken: Taken[] = [];
  await fileJournals({ folder }).replay(name.replace('.jsonl', ''), {
    visit: ({ event, path: edges }) =>
      void taken.push({ event: event.type, path: edges.map(({ to }) => to) }),
  });
  return taken;
};

test('a conversation takes the same path in editor, terminal, library and headless', async (context) => {
  const { client, workspace, model, folder, leave } = await makeStage(context, replies, { flags });
  prepare(workspace);
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'change it'), 'end_turn');
  await leave();
  const inEditor = await pathIn(path.join(folder, 'state', 'pawl'));
  assert.ok(inEditor.some(({ path: states }) => states.includes('ExecutingTools')));

  prepare(workspace);
  process.env.XDG_STATE_HOME = path.join(folder, 'terminal');
  const warn = (): void => undefined;
  const inTerminal = await openFromFlags({ ...flags, model, workspace }, 'terminal', { warn });
  await inTerminal.session.prompt('change it');
  await inTerminal.session.close();
  assert.deepEqual(await pathIn(path.join(folder, 'terminal', 'pawl')), inEditor);

  prepare(workspace);
  const loaded = await loadScript(model.slice('scripted/'.length), folder);
  assert.equal(loaded.kind, 'ok');
  const journals = fileJournals({ folder: path.join(folder, 'library') });
  const agent = createAgent({ model: loaded.model, journals });
  const session = await agent.open({ workspace, preset: 'auto', settings: { hooks: 'never' } });
  await session.prompt('change it');
  await session.close();
  assert.deepEqual(await pathIn(path.join(folder, 'library')), inEditor);

  const place = makePlace(context);
  mkdirSync(place.workspace, { recursive: true });
  prepare(place.workspace);
  expectCode(
    await runPawl(place, [
      '-p',
      'change it',
      '--model',
      model,
      '--preset',
      'auto',
      '--hooks',
      'never',
    ]),
    0,
  );
  assert.deepEqual(await pathIn(path.join(place.state, 'pawl')), inEditor);
});

/** An editor takes back turns by requests of its own, and by typed commands. */

const written = [
  { calls: [{ tool: 'write', input: { path: 'one.txt', content: 'x\n' } }] },
  { text: 'Written.' },
];
const auto = { preset: 'auto', sandbox: 'off' } as const;
const NOTICES = { session: { notices: {} } };

const refusal = async (request: Promise<unknown>): Promise<readonly [number, string]> => {
  const error = await request.then(
    () => null,
    (fault: unknown) => fault,
  );
  assert.ok(error instanceof AgentError);
  return [error.code, error.message];
};

test('the timeline, a plan, a rewind and the way forward again', async (context) => {
  const { client, workspace } = await makeStage(context, written, { flags: auto });
  const { sessionId } = await client.newSession(workspace);
  const ask = (method: string, more: object = {}): Promise<Record<string, unknown>> =>
    client.request(`_pawl/session/${method}`, { sessionId, ...more }) as Promise<
      Record<string, unknown>
    >; // an extension has no schema
  const file = path.join(workspace, 'one.txt');
  await client.prompt(sessionId, 'write it');
  const { points } = (await ask('timeline')) as {
    readonly points: readonly Record<string, unknown>[];
  }; // as above
  assert.deepEqual(
    points.map(({ kind, title, text, summary }) => [kind, title, text, summary]),
    [
      ['calls', 'write one.txt', null, 'one.txt created'],
      ['turn', 'write it', 'write it', 'one.txt created'],
    ],
  );
  const at = points[1]?.seq;
  const plan = await ask('plan_rewind', { at });
  assert.deepEqual([plan.messages, plan.left], [4, []]);
  assert.ok(existsSync(file));
  const report = await ask('rewind', { at });
  assert.deepEqual([report.prompt, existsSync(file)], ['write it', false]);
  const said = 'taken back: 4 messages; one.txt removed · forward again: /redo';
  assert.ok(client.textOf(sessionId).includes(said), client.textOf(sessionId));
  await ask('redo');
  assert.ok(existsSync(file));
  await ask('rewind', { at, conversation: false });
  assert.ok(!existsSync(file));
  client.expectNoFault();
});

test('what can’t be taken back is refused in words', async (context) => {
  const { client, workspace } = await makeStage(context, written, { flags: auto });
  const { sessionId } = await client.newSession(workspace);
  const ask = (method: string, params: object): Promise<unknown> =>
    client.request(`_pawl/session/${method}`, params);
  assert.deepEqual(await refusal(ask('timeline', {})), [-32602, 'sessionId is missing.']);
  assert.equal((await refusal(ask('timeline', { sessionId: 'none' })))[0], -32002);
  assert.deepEqual(await refusal(ask('rewind', { sessionId })), [
    -32602,
    'at must be the number of an entry.',
  ]);
  assert.deepEqual(await refusal(ask('rewind', { sessionId, at: 0, files: 'no' })), [
    -32602,
    'files must be true or false.',
  ]);
  const [code, words] = await refusal(ask('rewind', { sessionId, at: 900 }));
  assert.equal(code, -32602);
  assert.match(words, /There is no entry 900/);
  assert.match((await refusal(ask('redo', { sessionId })))[1], /nothing to go forward to/);
  assert.match(
    (await refusal(ask('undo_compaction', { sessionId })))[1],
    /no summary to take back/,
  );
});

test('the extension is announced, and /rewind and /redo can be typed', async (context) => {
  const { client, workspace } = await makeStage(context, written, {
    flags,
    capabilities: NOTICES,
  });
  const { agentCapabilities } = (await client.initialize(NOTICES)) as {
    readonly agentCapabilities: { readonly _meta: { readonly pawl: { readonly rewind: unknown } } };
  }; // the client checks it against the schema
  assert.deepEqual(agentCapabilities._meta.pawl.rewind, {
    methods: ['timeline', 'plan_rewind', 'rewind', 'redo', 'undo_compaction'].map(
      (name) => `_pawl/session/${name}`,
    ),
  });
  const { sessionId } = await client.newSession(workspace);
  const file = path.join(workspace, 'one.txt');
  await client.prompt(sessionId, 'write it');
  await client.prompt(sessionId, '/rewind');
  const seq = /\n {2}(\d+) {2}write it · one\.txt created\n/.exec(client.textOf(sessionId))?.[1];
  assert.ok(seq !== undefined, client.textOf(sessionId));
  await client.prompt(sessionId, `/rewind ${seq}`);
  assert.ok(!existsSync(file));
  assert.match(client.textOf(sessionId), /You wrote: write it/);
  await client.prompt(sessionId, '/redo');
  assert.ok(existsSync(file));
  client.expectNoFault();
});
