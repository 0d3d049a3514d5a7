import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { HARDENING } from '../../src/workspace/git.js';
import { makePlace, makeRepository } from './place.js';

const EVIL = 'evil';
const DANGEROUS = [
  'core.hooksPath',
  'core.fsmonitor',
  'core.sshCommand',
  'core.editor',
  'gpg.program',
];

test('the options of each command line outweigh what the repository sets', async (t) => {
  const place = await makeRepository(t);
  const names = HARDENING.flatMap((word) => /^([a-zA-Z.]+)=/.exec(word)?.[1] ?? []);
  for (const name of DANGEROUS) assert.ok(names.includes(name), name);
  const lines = names.map((name) => `[${name.replace('.', ']\n')} = ${EVIL}\n`);
  await appendFile(path.join(place.workspace, '.git', 'config'), lines.join(''));
  const valuesWith = (words: readonly string[]): readonly (string | undefined)[] => {
    const listed = spawnSync('git', [...words, 'config', '--list', '-z'], {
      cwd: place.workspace,
      env: place.environment,
      encoding: 'utf8',
    });
    const entries = listed.stdout.split('\0').map((entry) => entry.split('\n') as [string, string]); // name, value
    const values = new Map(entries); // the last one of a name holds
    return names.map((name) => values.get(name.toLowerCase()));
  };
  assert.ok(!valuesWith(HARDENING).includes(EVIL));
  assert.ok(valuesWith([]).every((value) => value === EVIL));
});

/** A setting of a repository that runs a program, the command that runs it, and the settings that keep it from that. */
const SECOND_WALL: readonly (readonly [
  name: string,
  set: string,
  command: readonly string[],
  without: RegExp,
])[] = [
  [
    'a watcher',
    'git config core.fsmonitor "touch $PWD/fired; false"',
    ['status'],
    /^core\.fsmonitor=/,
  ],
  [
    'a hook',
    'mkdir hooks; printf "#!/bin/sh\ntouch fired\n" >hooks/pre-commit; chmod +x hooks/pre-commit; git config core.hooksPath hooks',
    ['commit', '-q', '--allow-empty', '-m', 'x'],
    /^core\.hooksPath=/,
  ],
  [
    'a program that signs',
    'printf "#!/bin/sh\ntouch fired\nexit 1\n" >sign; chmod +x sign; git config gpg.program ./sign; git config commit.gpgSign true',
    ['commit', '-q', '--allow-empty', '-m', 'x'],
    /^(commit\.gpgSign|gpg\.program)=/,
  ],
];

/** The options of HARDENING without the settings that fit. */
const withoutSetting = (pattern: RegExp): readonly string[] =>
  HARDENING.filter((word, index) => {
    const setting = word === '-c' ? HARDENING[index + 1] : word;
    return !pattern.test(setting ?? '');
  });

for (const [name, set, command, pattern] of SECOND_WALL)
  test(`git as Pawl calls it runs no program of the real configuration: ${name}; without the option it does`, async (context) => {
    const place = await makePlace(context);
    await place.shell(`git init -q; git config user.name a; git config user.email a@b; ${set}`);
    const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ');
    await place.tryShell(`git ${quoted([...HARDENING, ...command])}`);
    assert.equal(existsSync(place.path('fired')), false);
    await place.tryShell(`git ${quoted([...withoutSetting(pattern), ...command])}`);
    assert.equal(existsSync(place.path('fired')), true, 'the control must fire');
  });
