import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { makeStage } from './acp-stage.js';
import { AgentError } from './wire-message.js';

/** An editor takes back turns by requests of its own, and by typed commands. */

const replies = [
  { calls: [{ tool: 'write', input: { path: 'one.txt', content: 'x\n' } }] },
  { text: 'Written.' },
];
const flags = { preset: 'auto', sandbox: 'off' } as const;
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
  const { client, workspace } = await makeStage(context, replies, { flags });
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
  const { client, workspace } = await makeStage(context, replies, { flags });
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
  const { client, workspace } = await makeStage(context, replies, {
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
