/** `pawl --help` and `pawl help`. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildProgram } from '../../src/commands/command-line.js';
import { firstHelp, fullHelp, topicHelp } from '../../src/commands/help.js';

const program = buildProgram(() => undefined);
const commands = program.commands.map((command) => command.name());
const flagsOf = (text: string): readonly string[] =>
  [...text.matchAll(/(?<![\w-])--?[a-z][\w-]*/g)].map(([flag]) => flag);

test('the first help fits on a screen, and names only what there is', () => {
  const lines = firstHelp().trimEnd().split('\n');
  assert.ok(lines.length <= 40, `${lines.length} lines`);
  assert.deepEqual(
    lines.filter((line) => line.length > 80),
    [],
  );
  const terms = lines.flatMap((line) => /^ {2}([a-z]+)/.exec(line)?.[1] ?? []);
  assert.ok(terms.length >= 8, String(terms));
  for (const term of terms) assert.ok(commands.includes(term), term);
  for (const flag of flagsOf(firstHelp())) assert.notEqual(topicHelp(program, flag), null, flag);
  for (const word of [
    '--print',
    '--continue',
    'rewind',
    '--detach',
    'attach',
    '--max-usd',
    '--model',
    'list what can be taken back; with --at',
    'for ever',
    'time and cost',
  ])
    assert.ok(firstHelp().includes(word), word);
});

test('the help of all lists every command and flag in 80 columns', () => {
  const text = fullHelp(program);
  for (const name of commands) assert.match(text, new RegExp(`^ {2}${name} `, 'm'));
  for (const { flags } of program.options) assert.ok(text.includes(flags), flags);
  assert.deepEqual(
    text.split('\n').filter((line) => line.length > 80),
    [],
  );
});

test('each command and each flag is a topic, with all that is known of it', () => {
  for (const command of program.commands) {
    const help = topicHelp(program, command.name()) ?? '';
    assert.ok(help.startsWith(`Usage: pawl ${command.name()}`), help);
    for (const { long, flags } of command.options)
      assert.ok(topicHelp(program, long ?? '')?.includes(flags), flags);
  }
  assert.match(topicHelp(program, 'preset') ?? '', /--preset <name>\n[\s\S]*ci is like\s+auto/);
  assert.equal(topicHelp(program, 'c'), topicHelp(program, '-c'));
  for (const topic of ['nothing', '--nothing', '-', '--', '', 'constructor'])
    assert.equal(topicHelp(program, topic), null, topic);
});
