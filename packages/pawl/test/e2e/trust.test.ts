import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place } from './pawl.js';
import { openTerminal } from './pty.js';

/** A server that a project names in .mcp.json, in the real program. */

/** A server that leaves a mark when it is started. Required: the session waits for it, and so does the test. */
const plantServer = (place: Place) => {
  const started = path.join(place.workspace, 'started');
  writeFileSync(
    path.join(place.workspace, 'server.mjs'),
    `import { appendFileSync } from 'node:fs'; appendFileSync(${JSON.stringify(started)}, 'x');`,
  );
  const write = (more: readonly string[]): void => {
    const mine = { command: process.execPath, args: ['server.mjs', ...more], required: true };
    writeFileSync(
      path.join(place.workspace, '.mcp.json'),
      JSON.stringify({ mcpServers: { mine } }),
    );
  };
  write([]);
  return { started, write };
};

test('in a terminal a server of the project runs only after a question', async (context) => {
  const place = await makeServed(context, []);
  const { started } = plantServer(place);
  const window = openTerminal(context, place);
  await window.sees('This project wants to run: MCP server mine');
  await window.sees('y sandboxed · w with network · o as you');
  assert.equal(existsSync(started), false);
  window.press('o');
  await window.sees('MCP server mine: allowed, as you');
  await window.sees('/help');
  assert.equal(readFileSync(started, 'utf8'), 'x');
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});

test('without a terminal a server of the project runs only after pawl trust allow', async (context) => {
  const done = { type: 'message', parts: [{ type: 'text', text: 'Done.' }] } as const;
  const place = await makeServed(context, [done, done, done]);
  const { started, write } = plantServer(place);
  const first = await runInProcess(place, ['-p', 'hi']);
  expectCode(first, 0);
  assert.match(
    first.stderr,
    /not run, since you have not allowed it: MCP server mine\. pawl trust/,
  );
  assert.equal(existsSync(started), false);

  const allowed = await runInProcess(place, [
    'trust',
    'allow',
    'mcp-server',
    'mine',
    '--sandbox',
    'workspace',
  ]);
  expectCode(allowed, 0);
  assert.match(
    allowed.stdout,
    /server\.mjs.*Allowed in .*: MCP server mine, --sandbox workspace\. /s,
  );
  const second = await runInProcess(place, ['-p', 'hi']);
  expectCode(second, 0);
  assert.equal(readFileSync(started, 'utf8'), 'x', second.stderr);

  write(['--other']);
  const third = await runInProcess(place, ['-p', 'hi']);
  expectCode(third, 0);
  assert.match(
    third.stderr,
    /not run, since it has changed since you allowed it: MCP server mine\. pawl trust/,
  );
  assert.equal(readFileSync(started, 'utf8'), 'x');
});

test('in a terminal a hook of the project runs only after a question, also where no server is named', async (context) => {
  const place = await makeServed(context, []);
  const ran = path.join(place.workspace, 'ran');
  mkdirSync(path.join(place.workspace, '.pawl'));
  writeFileSync(
    path.join(place.workspace, '.pawl', 'config.toml'),
    `[hook.mark]\non = "session-start"\ncommand = ["/usr/bin/touch", ${JSON.stringify(ran)}]\n`,
  );
  const window = openTerminal(context, place);
  await window.sees('This project wants to run: hook mark');
  await window.sees(/\by allow/);
  assert.equal(existsSync(ran), false);
  window.press('y');
  await window.sees('hook mark: allowed');
  await window.sees('/help');
  await until('the hook has run', () => existsSync(ran));
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});
