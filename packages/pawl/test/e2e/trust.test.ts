import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, makeServed, type Place, root, runPawl } from './pawl.js';
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

// Hooks in the real program: the examples of docs/extend/user-hooks.md, and a project's hook.

const document = readFileSync(path.join(root, 'docs/extend/user-hooks.md'), 'utf8');

/** The example with this name, as readers copy it. */
const example = (name: string): string => {
  const found = [...document.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].find(([, text]) =>
    text?.startsWith(`[hook.${name}]`),
  );
  assert.ok(found?.[1] !== undefined, `docs/extend/user-hooks.md has the example ${name}`);
  return found[1];
};

const program = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
};

test('the documented notifications tell that the session waits', async (context) => {
  const done = { type: 'message', parts: [{ type: 'text', text: 'Done.' }] } as const;
  const served = await makeServed(context, [done]);
  const programs = path.join(served.folder, 'programs');
  const told = path.join(served.folder, 'told');
  for (const name of ['notify-send', 'paplay'])
    program(path.join(programs, name), `echo "${name} $*" >> '${told}'`);
  const place = {
    ...served,
    environment: { ...served.environment, PATH: `${programs}:${served.environment.PATH}` },
  };
  const config = path.join(place.home, '.config/pawl/config.toml');
  mkdirSync(path.dirname(config), { recursive: true });
  writeFileSync(config, ['desktop', 'bell', 'sound'].map(example).join('\n'));

  const window = openTerminal(context, place);
  await window.sees('/help');
  /** Bells that are no end of a title. */
  const bells = (): number =>
    window
      .raw()
      .replace(/\u001b\][^\u0007]*\u0007/g, '')
      .split('\u0007').length - 1;
  assert.equal(bells(), 0);
  window.press('hi\r');
  await window.sees('Done.');
  await until(
    () => `notified: ${existsSync(told) ? readFileSync(told, 'utf8') : ''}, ${bells()} bells`,
    () => existsSync(told) && /paplay/.test(readFileSync(told, 'utf8')) && bells() > 0,
  );
  assert.equal(
    readFileSync(told, 'utf8'),
    'notify-send --app-name=Pawl Pawl needs you\npaplay /usr/share/sounds/freedesktop/stereo/complete.oga\n',
  );
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});

test('a hook of the project runs once it was allowed, and denies; the documented guard is one of the user', async (context) => {
  const place = makePlace(context);
  const script = path.join(place.folder, 'script.json');
  const push = { callId: 'c1', tool: 'bash', input: { command: 'git push --force' } };
  writeFileSync(
    script,
    JSON.stringify({
      replies: [
        {
          calls: [
            { callId: 'c0', tool: 'todo', input: { items: [{ text: 'look', status: 'pending' }] } },
          ],
        },
        { calls: [push] },
        { text: 'Done.' },
      ],
    }),
  );
  const config = path.join(place.home, '.config/pawl/config.toml');
  mkdirSync(path.dirname(config), { recursive: true });
  writeFileSync(config, example('no-force-push'));
  program(path.join(place.workspace, 'guard.sh'), 'echo "not this one" >&2; exit 2');
  mkdirSync(path.join(place.workspace, '.pawl'));
  writeFileSync(
    path.join(place.workspace, '.pawl/config.toml'),
    '[hook.guard]\non = "before-tool"\ntools = ["todo"]\ncommand = ["./guard.sh"]\nsandbox = "off"\n',
  );
  const run = (...words: readonly string[]) =>
    runPawl(place, [
      '-p',
      'go',
      '--verbose',
      '--sandbox',
      'off',
      '--model',
      `scripted/${script}`,
      ...words,
    ]);

  const first = await run();
  expectCode(first, 0);
  assert.match(first.stderr, /not run, since you have not allowed it: hook guard\. pawl trust/);
  assert.doesNotMatch(first.stderr, /not this one/);
  assert.match(first.stderr, /never force a push/);

  const listed = await runInProcess(place, ['hooks']);
  expectCode(listed, 0);
  assert.match(
    listed.stdout,
    /^no-force-push \(yours\) on before-tool \(bash\), sandbox off: grep/m,
  );
  assert.match(
    listed.stdout,
    /^guard \(project, not run: pawl trust allow hook guard\) on before-tool/m,
  );

  const allowed = await runInProcess(place, ['trust', 'allow', 'hook', 'guard']);
  expectCode(allowed, 0);
  assert.match(allowed.stdout, /file of the project: guard\.sh \(sha256/);
  assert.match(allowed.stdout, /granted: it runs as you, outside the sandbox/);
  const second = await run();
  expectCode(second, 0);
  assert.match(second.stderr, /the hook guard: not this one/);
});
