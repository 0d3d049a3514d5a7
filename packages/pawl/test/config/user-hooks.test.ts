import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'smol-toml';
import { parseConfig } from '../../src/settings/configuration.js';

const read = (text: string) => parseConfig(text, (toml) => parse(toml));

test('a hook is read with what it leaves out', () => {
  const { hooks, faults } = read(
    '[hook.one]\non = "turn-end"\ncommand = "true"\n[hook.two]\non = ["before-tool", "ask-user"]\n' +
      'command = ["node", "a.mjs"]\ntools = "bash"\ntimeout = 0.5\nsandbox = "read-only"\non_failure = "allow"\nenabled = false\n',
  );
  assert.deepEqual(faults, []);
  assert.deepEqual(hooks, [
    {
      name: 'one',
      on: ['turn-end'],
      tools: null,
      command: 'true',
      timeoutMs: 30_000,
      sandbox: null,
      onFailure: null,
      enabled: true,
    },
    {
      name: 'two',
      on: ['before-tool', 'ask-user'],
      tools: ['bash'],
      command: ['node', 'a.mjs'],
      timeoutMs: 500,
      sandbox: 'read-only',
      onFailure: 'allow',
      enabled: false,
    },
  ]);
});

const HOOK = '[hook.a]\non = "turn-end"\ncommand = "true"\n';
const rows: readonly (readonly [text: string, line: number, fault: RegExp])[] = [
  [
    `${HOOK}tools = ["bash"]`,
    4,
    /^hook\.a\.tools belongs to a hook on before-tool, after-tool, ask-user only\.$/,
  ],
  [`${HOOK}timout = 3`, 4, /^hook\.a\.timout is no setting of a hook\. Did you mean timeout\?$/],
  [`${HOOK}timeout = "3"`, 4, /is a number of seconds up to 600/],
  [`${HOOK}sandbox = "none"`, 4, /is "read-only", "workspace", "workspace\+net" or "off"/],
  [
    '[hook.a]\non = "before"\ncommand = "true"',
    2,
    /^hook\.a\.on is a moment, or a list of moments: session-start/,
  ],
  ['[hook.a]\non = "turn-end"', 1, /^hook\.a lacks command, which is a text for the shell/],
  ['[hook.a]\non = "turn-end"\ncommand = []', 3, /is a text for the shell/],
  ['[hook."a b"]\non = "turn-end"\ncommand = "x"', 1, /needs a name of at most 40 letters/],
  ['[hook._a]\non = "turn-end"\ncommand = "x"', 1, /and _, without - or _ at its start/],
  ['hook = 1', 1, /^hook is a table: \[hook\.NAME\]\.$/],
  ['[hooks.a]\non = "turn-end"', 1, /A hook of your own is a table \[hook\.NAME\]\.$/],
];
for (const [text, line, fault] of rows) {
  test(`a faulty hook is named with its line: ${fault.source}`, () => {
    const { hooks, faults } = read(text);
    assert.deepEqual([hooks.length, faults.length, faults[0]?.line], [0, 1, line]);
    assert.match(faults[0]?.text ?? '', fault);
  });
}

test('a hook has at least 1 ms, since 0 would end it before it could answer', () => {
  assert.equal(read(`${HOOK}timeout = 0.0001`).hooks[0]?.timeoutMs, 1);
});

test('of more than 50 hooks the first 50 are used, and the fault says so', () => {
  const tables = Array.from({ length: 51 }, (_, at) => HOOK.replace('hook.a', `hook.a${at}`));
  const { hooks, faults } = read(tables.join(''));
  assert.deepEqual([hooks.length, hooks.at(-1)?.name, faults.length], [50, 'a49', 1]);
  assert.equal(faults[0]?.text, 'there are more than 50 hooks: only the first 50 are used.');
});
