import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { plainScript } from '../../../../test/kit/mcp/test-servers.js';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, type Place, startPawl, uniqueSleep } from './pawl.js';
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

const configure = (place: Place, file: string): void => {
  const folder = join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  const args = JSON.stringify([file]);
  const server = `[mcp.servers.odd]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${args}\nrequired = true\n`;
  writeFileSync(join(folder, 'config.toml'), `[rules.mcp]\nallow = ["odd"]\n${server}`);
};

test('killed while a server asks: the server ends with all it started, and the resumed session does not call it again', async (context) => {
  const mark = uniqueSleep(context);
  const file = plainScript(context, script(mark));
  const place = await makeServed(context, [message(call('c1', 'mcp__odd__ask', {})), done]);
  configure(place, file);
  const window = await openReady(context, place);
  window.press('deploy\r');
  await window.sees('The MCP server odd asks:');
  assert.ok(processesWith(file).length > 0 && processesWith(mark).length > 0);
  process.kill(window.pid, 'SIGKILL');
  await until(
    'nothing of the server runs',
    () => processesWith(file).length === 0 && processesWith(mark).length === 0,
  );
  const resumed = await runInProcess(place, ['--continue', '-p', 'and now?']);
  expectCode(resumed, 0);
  expectValid(place.server);
  const [, request] = place.server.requests;
  assert.match(JSON.stringify(last(request?.body)), /unknown after a crash/);
  assert.match(resumed.stderr, /unknown after a crash/);
  assert.equal(readFileSync(join(place.workspace, 'calls'), 'utf8'), 'called\n', 'called once');
  assert.ok(!JSON.stringify(request?.body.messages).includes('Your name?'));
});

/**
 * Answers nothing while the file `hold` is there. Its tools note their calls in `calls`, and answer once the file `answer`
 * is there. The tool `look` says that it changes nothing.
 */
const slowScript = `
import { appendFileSync, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const once = (file, isThere, work) => existsSync(file) === isThere ? work() : setTimeout(() => once(file, isThere, work), 20);
createInterface({ input: process.stdin }).on('line', (line) => once('hold', false, () => {
  const { id, method, params } = JSON.parse(line);
  const about = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } };
  if (method === 'initialize') say({ id, result: about });
  const inputSchema = { type: 'object' };
  if (method === 'tools/list') say({ id, result: { tools: [{ name: 'act', inputSchema }, { name: 'look', inputSchema, annotations: { readOnlyHint: true } }] } });
  if (method !== 'tools/call') return;
  appendFileSync('calls', params.name + '\\n');
  once('answer', true, () => say({ id, result: { content: [{ type: 'text', text: 'did ' + params.name } ] } }));
}));`;

/** Whether the only session that runs a tool has recorded its start. */
const hasStarted = ({ state }: Place): boolean => {
  const folder = join(state, 'pawl', 'sessions');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .some((name) => readFileSync(join(folder, name), 'utf8').includes('"ToolStarted"'));
};

const callsIn = ({ workspace }: Place): string => {
  const file = join(workspace, 'calls');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

const rows = [
  { tool: 'act', isSent: false, calls: 'act\n', result: /did act/ },
  {
    tool: 'act',
    isSent: true,
    calls: 'act\n',
    result: /unknown after a crash.*was being sent to the MCP server odd/,
  },
  { tool: 'look', isSent: true, calls: 'look\nlook\n', result: /did look/ },
];
for (const row of chooseRows(rows, ({ isSent }) => String(isSent)))
  test(`a call of ${row.tool} that was ${row.isSent ? 'sent' : 'not sent'} when Pawl was killed`, async (context) => {
    const place = await makeServed(context, [
      done,
      message(call('c1', `mcp__odd__${row.tool}`, {})),
      done,
    ]);
    configure(place, plainScript(context, slowScript));
    expectCode(await runInProcess(place, ['-p', 'learn the tools']), 0);
    if (!row.isSent) writeFileSync(join(place.workspace, 'hold'), '');
    const running = startPawl(place, ['-p', 'work']);
    await until('the call has started', () =>
      row.isSent ? callsIn(place) !== '' : hasStarted(place),
    );
    running.child.kill('SIGKILL');
    await running.ended;
    assert.equal(callsIn(place), row.isSent ? `${row.tool}\n` : '');
    rmSync(join(place.workspace, 'hold'), { force: true });
    writeFileSync(join(place.workspace, 'answer'), '');
    expectCode(await runInProcess(place, ['--continue', '-p', 'and now?']), 0);
    expectValid(place.server);
    assert.match(JSON.stringify(last(place.server.requests[2]?.body)), row.result);
    assert.equal(callsIn(place), row.calls);
    assert.deepEqual(readdirSync(join(place.state, 'pawl', 'sandbox')), []);
  });
