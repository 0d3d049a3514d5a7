// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are words of shells
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { buildProgram } from '../../src/commands/command-line.js';
import {
  allFlags,
  completionScript,
  describeProgram,
  secondWords,
} from '../../src/commands/shell-completion.js';

const program = describeProgram(buildProgram(() => undefined));

/** What bash offers for the last word of a line, where `pawl sessions` lists two and the folder has two files and one folder. */
const complete = (context: TestContext, words: readonly string[]): readonly string[] => {
  const folder = temporaryFolder(context, 'completion');
  const script = path.join(folder, 'completion');
  writeFileSync(script, completionScript('bash', program));
  for (const name of ['notes.txt', 'my list.txt']) writeFileSync(path.join(folder, name), '');
  const asked = [
    `source ${script}`,
    'pawl() { echo "20260101-aa  now  /work  a title"; echo "20260102-bb  then  /work  another"; }',
    `cd ${folder} && mkdir inner`,
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}`,
    '_pawl',
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ];
  const said = execFileSync('bash', ['--norc', '-c', asked.join('\n')], { encoding: 'utf8' });
  return said.split('\n').filter((line) => line !== '');
};

type Row = { readonly line: readonly string[]; readonly then: readonly string[] };

const rows: readonly Row[] = [
  { line: ['pawl', 'conf'], then: ['config'] },
  { line: ['pawl', '--pre'], then: ['--preset'] },
  { line: ['pawl', '--preset', ''], then: ['plan', 'careful', 'ci', 'auto', 'full'] },
  { line: ['pawl', '--preset', 'c'], then: ['careful', 'ci'] },
  { line: ['pawl', 'run', '--formatter', ''], then: ['off', 'on'] },
  { line: ['pawl', '--model', 'ol'], then: ['ollama/'] },
  { line: ['pawl', '--model', 'google/gemini-2.5-p'], then: ['google/gemini-2.5-pro'] },
  { line: ['pawl', 'sessions', 'd'], then: ['delete'] },
  { line: ['pawl', 'mcp', 'lo'], then: ['login', 'logout'] },
  { line: ['pawl', 'machine', '--view', 'mini'], then: ['minimal', 'minimal-head'] },
  { line: ['pawl', 'machine', '--m'], then: ['--mermaid'] },
  { line: ['pawl', 'show', '--r'], then: ['--request'] },
  { line: ['pawl', 'show', '2026'], then: ['20260101-aa', '20260102-bb'] },
  { line: ['pawl', '--resume', '20260102'], then: ['20260102-bb'] },
  { line: ['pawl', 'ask', '--context', 'n'], then: ['notes.txt'] },
  { line: ['pawl', 'ask', '--context', 'my'], then: ['my list.txt'] },
  { line: ['pawl', '--workspace', ''], then: ['inner'] },
  { line: ['pawl', '--max-usd', ''], then: [] },
  { line: ['pawl', '-p', '--verb'], then: ['--verbose'] },
  { line: ['pawl', '--model', 'run', '--ask'], then: [] },
  { line: ['pawl', '--model', 'run', 'doc'], then: ['doctor'] },
  { line: ['pawl', 'doctor', '--onl'], then: ['--online'] },
  { line: ['pawl', 'completion', ''], then: ['bash', 'zsh', 'fish', '-h', '--help'] },
];

for (const { line, then } of rows) {
  const offered = then.length === 0 ? 'nothing' : then.join(', ');
  test(`bash completes "${line.join(' ')}" with ${offered}`, (context) =>
    assert.deepEqual(complete(context, line), then));
}

for (const shell of ['bash', 'zsh', 'fish']) {
  test(`the script for ${shell} has every command and every flag`, () => {
    const script = completionScript(shell, program);
    for (const { name } of program.commands)
      assert.match(script, new RegExp(`\\b${name}\\b`), name);
    for (const { long } of allFlags(program)) {
      const written = shell === 'fish' ? `-l ${long.slice(2)} ` : long;
      assert.ok(script.includes(written), long);
    }
  });
}

test('quotes in descriptions are quoted in zsh and fish', () => {
  const flag = {
    long: '--odd',
    short: null,
    written: '--odd',
    help: "it's `odd` \\ $HOME",
    takes: { kind: 'nothing' },
  } as const;
  const odd = { ...program, flags: [flag], commands: [] };
  assert.ok(completionScript('zsh', odd).includes("'--odd:it'\\''s `odd` \\ $HOME'"));
  assert.ok(completionScript('fish', odd).includes("-d 'it\\'s `odd` \\\\ $HOME'"));
});

test('a shell that there is no script for is a usage fault that names those there are', () => {
  for (const shell of ['powershell', 'constructor', '']) {
    assert.throws(
      () => completionScript(shell, program),
      /There is completion for bash, zsh, fish, not for/,
    );
  }
});

test('the second words that are completed are those that the help of their command names', () => {
  for (const [name, words] of Object.entries(secondWords)) {
    const command = program.commands.find((one) => one.name === name);
    for (const word of words.split(' '))
      assert.match(`${command?.help} ${command?.words}`, new RegExp(`\\b${word}\\b`), name);
  }
});
