import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { plainScript } from '../mcp/test-servers.js';
import { expectCode, expectValid, makeServed, processesWith, runPawl, uniqueSleep, until } from './pawl.js';
import { openReady } from './window.js';
import { call, done, last, message } from './wire-words.js';

/** Pawl is killed while an MCP server asks the user something. The server is one that does not end by itself. */

/** Notes each call in the file `calls`, starts a process, and asks for a name. Nothing but SIGKILL ends it. */
const script = (mark: string): string => `
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGPIPE']) process.on(signal, () => undefined);
setInterval(() => undefined, 1_000_000);
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const about = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } };
  if (method === 'initialize') say({ id, result: about });
  if (method === 'tools/list') say({ id, result: { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] } });
  if (method !== 'tools/call') return;
  appendFileSync('calls', 'called\\n');
  spawn('sleep', ['${mark}'], { stdio: 'ignore' });
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
  say({ id: 'q', method: 'elicitation/create', params: { message: 'Your name?', requestedSchema } });
});`;

test('killed while a server asks: the server ends with all it started, and the resumed session does not call it again', async (context) => {
  const mark = uniqueSleep(context);
  const file = plainScript(context, script(mark));
  const place = await makeServed(context, [message(call('c1', 'mcp__odd__ask', {})), done]);
  const folder = join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  const args = JSON.stringify([file]);
  const server = `[mcp.servers.odd]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${args}\nrequired = true\n`;
  writeFileSync(join(folder, 'config.toml'), `[rules.mcp]\nallow = ["odd"]\n${server}`);
  const window = await openReady(context, place);
  window.press('deploy\r');
  await window.sees('The MCP server odd asks:');
  assert.ok(processesWith(file).length > 0 && processesWith(mark).length > 0);
  process.kill(window.pid, 'SIGKILL');
  await until(
    'nothing of the server runs',
    () => processesWith(file).length === 0 && processesWith(mark).length === 0,
  );
  const resumed = await runPawl(place, ['--continue', '-p', 'and now?']);
  expectCode(resumed, 0);
  expectValid(place.server);
  const [, request] = place.server.requests;
  assert.match(JSON.stringify(last(request?.body)), /unknown after a crash/);
  assert.match(resumed.stderr, /unknown after a crash/);
  assert.equal(readFileSync(join(place.workspace, 'calls'), 'utf8'), 'called\n', 'called once');
  assert.ok(!JSON.stringify(request?.body.messages).includes('Your name?'));
});
