import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { HARDENING } from '../../src/workspace/git/safe-git-config.js';
import { makeRepository } from './place.js';

const EVIL = 'evil';
const DANGEROUS = ['core.hooksPath', 'core.fsmonitor', 'core.sshCommand', 'core.editor', 'gpg.program'];

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
