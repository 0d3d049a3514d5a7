import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, makeServed, type Place, root, runPawl } from './pawl.js';
import { openTerminal } from './pty.js';
import { openReady } from './window.js';

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
  assert.match((await runInProcess(place, ['mcp', 'list'])).stdout, /^mine /m);
  const tested = await runInProcess(place, ['mcp', 'test', 'mine']);
  assert.match(tested.stderr, /the MCP server mine .*/, 'it is started, and ends at once');
  assert.equal(readFileSync(started, 'utf8'), 'xx');

  write(['--other']);
  for (const words of [
    ['-p', 'hi'],
    ['mcp', 'list'],
    ['mcp', 'test'],
  ]) {
    const changed = await runInProcess(place, words);
    expectCode(changed, 0);
    assert.match(
      changed.stderr,
      /not run, since it has changed since you allowed it: MCP server mine\. pawl trust/,
    );
  }
  assert.equal(readFileSync(started, 'utf8'), 'xx');
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
  const run = (more: Readonly<Record<string, string>> = {}) =>
    runPawl({ ...place, environment: { ...place.environment, ...more } }, [
      '-p',
      'go',
      '--verbose',
      '--sandbox',
      'off',
      '--model',
      `scripted/${script}`,
    ]);

  const first = await run();
  expectCode(first, 0);
  assert.match(first.stderr, /not run, since you have not allowed it: hook guard\. pawl trust/);
  assert.doesNotMatch(first.stderr, /not this one/);
  assert.match(first.stderr, /never force a push/);

  const long = JSON.stringify(['true', ...Array.from({ length: 400 }, (_, word) => `a${word}`)]);
  appendFileSync(
    path.join(place.workspace, '.pawl/config.toml'),
    `[hook.long]\non = "before-tool"\ncommand = ${long}\n`,
  );
  const listed = await runInProcess(place, ['hooks']);
  expectCode(listed, 0);
  assert.match(listed.stderr, /^pawl: the hook long of this project has more words/m);
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
  // whoever sets the variable turns the guards off, and the user reads it
  const inHook = await run({ PAWL_HOOK: 'guard' });
  assert.match(inHook.stderr, /No hook runs: PAWL_HOOK is set/);
  assert.doesNotMatch(inHook.stderr, /not this one|never force a push/);
});

/** Skills and commands, from the files to the requests of the real program. */

const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

test('a skill is offered and loaded, a command is expanded, a broken skill is named, and a resumed session goes on', async (context) => {
  const load = { type: 'call', id: 'a', name: 'skill', input: { name: 'release' } } as const;
  const again = { ...load, id: 'b' } as const;
  const place = await makeServed(context, [
    { type: 'message', parts: [load] },
    { type: 'message', parts: [{ type: 'text', text: 'Done.' }] },
    { type: 'message', parts: [again] },
    { type: 'message', parts: [{ type: 'text', text: 'It is gone.' }] },
  ]);
  const skills = path.join(place.workspace, '.agents/skills');
  write(
    path.join(skills, 'release/SKILL.md'),
    '---\nname: release\ndescription: How to release\n---\nRun it.',
  );
  write(path.join(skills, 'broken/SKILL.md'), '---\nname: [\n---\n');
  write(
    path.join(place.home, '.config/pawl/commands/git/fix.md'),
    'Fix issue $1. !`touch was-here`',
  );
  const first = await runInProcess(place, ['-p', '/git:fix 12']);
  expectCode(first, 0);
  assert.match(first.stderr, /broken\/SKILL\.md:\d: the skill is not used: the YAML is invalid/);
  const [asked, loaded] = place.server.requests.map(({ body }) => body);
  assert.match(JSON.stringify(asked?.system), /# Skills\\n.*- release: How to release"/);
  assert.match(JSON.stringify(asked?.tools), /"name":"skill".*"enum":\["release"\]/);
  const command =
    '/git:fix 12\\n\\n<command name=\\"git:fix\\">\\nFix issue 12. !`touch was-here`\\n</command>';
  assert.ok(JSON.stringify(asked?.messages).includes(command), JSON.stringify(asked?.messages));
  assert.match(JSON.stringify(loaded?.messages.at(-1)), /<skill name=\\"release\\">.*Run it\./);

  rmSync(skills, { recursive: true });
  const second = await runInProcess(place, ['--continue', '-p', '/nothing']);
  expectCode(second, 0);
  const [third, fourth] = place.server.requests.slice(2).map(({ body }) => body);
  assert.deepEqual(third?.system, asked?.system, 'the instructions of a session never change');
  assert.match(JSON.stringify(third?.messages.at(-1)), /"\/nothing"/);
  assert.match(JSON.stringify(fourth?.messages.at(-1)), /"is_error":true/);
});

test('without skills nothing is said of them', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [{ type: 'text', text: 'Done.' }] },
  ]);
  expectCode(await runInProcess(place, ['-p', 'hi']), 0);
  const [asked] = place.server.requests;
  assert.doesNotMatch(JSON.stringify(asked?.body), /skill/i);
});

test('in a terminal a command is completed, sent with its text, and shown as it was typed', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [{ type: 'text', text: 'Undone.' }] },
  ]);
  write(
    path.join(place.workspace, '.pawl/commands/git/undo.md'),
    '---\ndescription: Undo work\n---\nUndo $1.',
  );
  const window = await openReady(context, place);
  window.press('/git:');
  await window.sees('Undo work');
  window.press('\t');
  window.press('two\r');
  await window.sees('Undone.');
  const shown = await window.text();
  assert.match(shown, /\/git:undo two/);
  assert.doesNotMatch(shown, /Undo two/, 'the text is for the model');
  const [asked] = place.server.requests;
  assert.match(
    JSON.stringify(asked?.body.messages),
    /\/git:undo two\\n\\n<command name=.*Undo two\./,
  );
  window.press('/nothing\r');
  await window.sees('There is no /nothing');
  assert.equal(place.server.requests.length, 1);
});
