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

const written = [
  { calls: [{ tool: 'write', input: { path: 'one.txt', content: 'x\n' } }] },
  { text: 'Written.' },
];
const NOTICES = { session: { notices: {} } };

test('/rewind and /redo can be typed in an editor', async (context) => {
  const { client, workspace } = await makeStage(context, written, {
    flags,
    capabilities: NOTICES,
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
