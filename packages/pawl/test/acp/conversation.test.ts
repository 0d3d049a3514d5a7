import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileBlobs } from '@pawl/agent/journal/state-folder';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { completed } from '../../../../test/kit/terminal/stage.js';
import { SessionUpdates } from '../../src/editor/session-updates.js';
import { makeStage } from './acp-stage.js';
import { select } from './strict-client.js';

test('a turn streams its text, shows its calls, and is answered after all its updates', async (context) => {
  const { client, workspace } = await makeStage(context, [
    {
      text: 'I look.',
      reasoning: 'Hm.',
      calls: [{ tool: 'read', input: { path: 'a.txt', offset: 2 } }],
    },
    { text: 'It says two.' },
  ]);
  const file = path.join(workspace, 'a.txt');
  writeFileSync(file, 'one\ntwo\n');
  const { sessionId, modes } = await client.newSession(workspace);
  assert.equal(modes?.currentModeId, 'careful');
  assert.equal(await client.prompt(sessionId, 'what is in a.txt?'), 'end_turn');
  assert.equal(client.textOf(sessionId), 'I look.It says two.');
  assert.equal(client.textOf(sessionId, 'agent_thought_chunk'), 'Hm.');
  const [call] = client.updatesOf(sessionId, 'tool_call');
  assert.equal(call?.title, 'read a.txt');
  assert.equal(call.kind, 'read');
  assert.deepEqual(call.locations, [{ path: file, line: 2 }]);
  const statuses = client.updatesOf(sessionId, 'tool_call_update').map(({ status }) => status);
  assert.deepEqual(statuses, ['in_progress', 'completed']);
  const [info] = client.updatesOf(sessionId, 'session_info_update');
  assert.equal(info?.title, 'what is in a.txt?');
  const usage = client.updatesOf(sessionId, 'usage_update').at(-1);
  assert.ok(usage !== undefined && usage.used > 0 && usage.size >= usage.used);
  client.expectNoFault();
});

test('two sessions run at the same time in one process', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { text: 'First.', calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
    { text: 'Second.' },
  ]);
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  const [one, two] = await Promise.all([
    client.newSession(workspace),
    client.newSession(workspace),
  ]);
  assert.notEqual(one.sessionId, two.sessionId);
  const answers = await Promise.all(
    [one, two].map(({ sessionId }) => client.prompt(sessionId, 'go')),
  );
  assert.deepEqual(answers, ['end_turn', 'end_turn']);
  for (const { sessionId } of [one, two]) assert.equal(client.textOf(sessionId), 'First.Second.');
  client.expectNoFault();
});

test('a change of a file is asked about and shown with the whole texts', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
    {
      calls: [
        { tool: 'edit', input: { path: 'a.txt', edits: [{ oldText: 'two', newText: 'three' }] } },
      ],
    },
    { text: 'Done.' },
  ]);
  const file = path.join(workspace, 'a.txt');
  const before = `${'line\n'.repeat(40)}two\n${'line\n'.repeat(40)}`;
  writeFileSync(file, before);
  client.onPermission = () => select('once');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'change it'), 'end_turn');
  const after = before.replace('two', 'three');
  assert.equal(readFileSync(file, 'utf8'), after);
  const change = { type: 'diff', path: file, oldText: before, newText: after };
  assert.deepEqual(client.permissions[0]?.toolCall.content?.[0], change);
  const result = client.updatesOf(sessionId, 'tool_call_update').at(-1);
  assert.equal(result?.status, 'completed');
  assert.deepEqual(result.content, [change]);
  assert.deepEqual(result.locations?.[0]?.path, file);
  client.expectNoFault();
});

test('of a reply that ends with other text than was streamed, only the streamed text is said not to count', () => {
  const updates: unknown[] = [];
  const session = new SessionUpdates({
    workspace: '/w',
    features: { notices: false, compaction: false, forms: false },
    blobs: fileBlobs('/nowhere'),
    title: 'known',
    push: (item) => updates.push(item),
  });
  let state: State = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });
  const events: readonly Event[] = [
    { type: 'UserInput', at: 1, text: 'go', mode: 'steer' },
    { type: 'TextDelta', at: 2, requestId: 'req-1', text: 'Two' },
    { ...completed('req-1', 'One. Two.'), at: 3 } as Event, // with its time it is an event
  ];
  for (const [index, event] of events.entries()) {
    const next = step(state, event);
    session.see({ seq: index + 1, event, ...next });
    state = next.state;
  }
  const texts = updates.flatMap((update) =>
    Reflect.get(Object(update), 'sessionUpdate') === 'agent_message_chunk'
      ? [String(Reflect.get(Object(update), 'content').text).trim()]
      : [],
  );
  assert.deepEqual(texts, ['Two', '> The text of the reply above does not count.', 'One. Two.']);
});
