import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { CallToolResult } from '@modelcontextprotocol/client';
import { type Connection, createConnection } from '@pawl/agent/extensions/mcp/connection';
import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import { settingsOf } from '../../../../test/kit/mcp/test-servers.js';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { bin, expectCode, makeServed, type Place, readRecords, uniqueSleep } from './pawl.js';
import { call, done, message, text } from './wire-words.js';

// `pawl mcp serve`, driven by our own client in both eras.

const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === 'text' ? block.text : block.type)).join('\n');

const connect = (t: TestContext, place: Place, protocol: string): Connection => {
  const env = Object.fromEntries(
    Object.entries(place.environment).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  );
  const table = { command: process.execPath, args: [bin, 'mcp', 'serve'], env, protocol };
  const connection = createConnection(settingsOf<McpServer & { kind: 'stdio' }>('pawl', table), {
    environment: process.env,
    workspace: place.workspace,
    stateFolder: place.folder,
  });
  atEnd(t, () => connection.close());
  return connection;
};

test('another agent can not go on with a session in the preset full, and nothing is written', async (t) => {
  const place = await makeServed(t, [done, done]);
  const folder = path.join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'config.toml'), 'preset = "full"\n');
  const own = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(own, 0);
  const record = readRecords(own.stdout)[0];
  assert.ok(record?.type === 'session' && record.preset === 'full');
  const { sessionId, journal } = record;
  const before = readFileSync(journal, 'utf8');
  const connection = connect(t, place, 'legacy');
  const run = (input: Record<string, string>): Promise<CallToolResult> =>
    connection.call('prompt', input, {
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
  const refused = await run({ prompt: 'and now?', sessionId });
  assert.equal(refused.isError, true, textOf(refused));
  assert.match(textOf(refused), /chooses the preset full for it, which no other agent gets\. Name/);
  assert.equal(readFileSync(journal, 'utf8'), before);
  assert.equal(textOf(await run({ prompt: 'and now?', sessionId, preset: 'plan' })), 'Done.');
});

for (const protocol of ['legacy', '2026-07-28'] as const)
  test(`another agent gives a task, continues its session and reads it, with the protocol ${protocol}`, async (t) => {
    const place = await makeServed(t, [
      message(text('Looking.'), call('c1', 'write', { path: 'a.txt', content: 'no' })),
      message(text('The preset plan only reads.')),
      done,
    ]);
    const connection = connect(t, place, protocol);
    const progress: string[] = [];
    const run = (tool: string, input: Record<string, string>): Promise<CallToolResult> =>
      connection.call(tool, input, {
        signal: new AbortController().signal,
        onProgress: (line) => void progress.push(line),
      });
    assert.deepEqual(
      (await connection.listTools()).map(({ name }) => name),
      ['prompt', 'sessions', 'show'],
    );
    const first = await run('prompt', { prompt: 'write a file', workspace: place.workspace });
    assert.equal(textOf(first), 'The preset plan only reads.');
    assert.match(progress.join(''), /the model has replied/);
    const { sessionId = '' } = first.structuredContent as { readonly sessionId?: string }; // as `prompt` gives it
    const second = await run('prompt', { prompt: 'and now?', sessionId });
    assert.equal(textOf(second), 'Done.');
    assert.match(
      textOf(await run('sessions', {})),
      new RegExp(`^${sessionId}  .*  write a file$`, 'm'),
    );
    assert.match(
      textOf(await run('show', { sessionId })),
      /user: write a file[\s\S]*user: and now\?[\s\S]*Done\./,
    );
    const neither = await run('prompt', { prompt: 'x' });
    assert.deepEqual(
      [neither.isError, textOf(neither)],
      [true, 'Give either workspace, for a new session, or sessionId, to continue one.'],
    );
    assert.equal((await run('show', { sessionId: 'nothing' })).isError, true);
    assert.equal((await run('prompt', { prompt: 'x', workspace: 'relative' })).isError, true);
  });

test('when the other agent goes, a running command ends with it', async (t) => {
  const sleep = uniqueSleep(t);
  const place = await makeServed(t, [
    message(call('c1', 'bash', { command: `sleep ${sleep}` })),
    done,
  ]);
  const connection = connect(t, place, 'legacy');
  const called = connection.call(
    'prompt',
    { prompt: 'wait', workspace: place.workspace, preset: 'auto' },
    { signal: new AbortController().signal, onProgress: () => undefined },
  );
  await Promise.all([
    assert.rejects(called, /is gone/),
    until('the command runs', () => processesWith(sleep).length > 0).then(() => connection.close()),
  ]);
  await until('no process is left', () => processesWith(sleep).length === 0);
});

test('over HTTP another agent is served with the token, and an interrupt ends what it has started', async (t) => {
  const sleep = uniqueSleep(t);
  const place = await makeServed(t, [
    message(text('Fine.')),
    message(call('c1', 'bash', { command: `sleep ${sleep}` })),
    done,
  ]);
  const served = spawn(process.execPath, [bin, 'mcp', 'serve', '--http'], {
    env: { ...place.environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  atEnd(t, () => void served.kill('SIGKILL'));
  const exit = once(served, 'exit');
  let said = '';
  served.stderr?.on('data', (piece: Buffer) => {
    said += piece.toString('utf8');
  });
  await until('it says where it is', () => /Bearer \S+\n/.test(said));
  const [, url, token] = /at (\S+?)\. [\s\S]*(Bearer \S+)\n/.exec(said) ?? [];
  const connection = createConnection(
    settingsOf<McpServer>('pawl', { url, headers: { Authorization: token } }),
    {
      environment: process.env,
      workspace: place.workspace,
      stateFolder: place.folder,
    },
  );
  atEnd(t, () => connection.close());
  const options = { signal: new AbortController().signal, onProgress: () => undefined };
  const { workspace } = place;
  assert.equal(
    textOf(await connection.call('prompt', { prompt: 'hi', workspace }, options)),
    'Fine.',
  );
  const running = connection.call('prompt', { prompt: 'wait', workspace, preset: 'auto' }, options);
  const told = assert.rejects(
    running,
    /the MCP server pawl is gone: .*Whether the call took effect/,
  );
  await until('the command runs', () => processesWith(sleep).length > 0);
  served.kill('SIGINT');
  assert.deepEqual(await exit, [0, null]);
  await until('no process is left', () => processesWith(sleep).length === 0);
  await told;
});
