import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { prepareAsk, submit } from './asking.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, runPawl } from './pawl.js';

/**
 * A repository that brings programs along, for a user who has its node_modules/.bin in the PATH: relative, as many
 * have it, and absolute. Each planted program notes that it ran, with the key that it found in its environment.
 */

const PROGRAMS = [
  ...[
    'bash',
    'sh',
    'git',
    'bwrap',
    'python3',
    'ldd',
    'rg',
    'node',
    'wl-paste',
    'xclip',
    'xdg-open',
  ],
  ...['systemd-run', 'env', 'true', 'unshare', 'less', 'cat', 'stty', 'tput'],
];
const KEY = 'planted-key-check';

type Planted = Place & { readonly log: string };

const plant = (t: TestContext, entry: 'relative' | 'absolute' | 'empty'): Planted => {
  const place = makePlace(t, { ANTHROPIC_API_KEY: KEY, DISPLAY: ':9' });
  const bin = join(place.workspace, 'node_modules', '.bin');
  const log = join(place.folder, 'log');
  mkdirSync(bin, { recursive: true });
  const folders = entry === 'empty' ? [bin, place.workspace] : [bin];
  for (const folder of folders) {
    for (const name of PROGRAMS) {
      const text = `#!/bin/sh\necho "${name} $* $ANTHROPIC_API_KEY" >> ${log}\nexit 1\n`;
      writeFileSync(join(folder, name), text);
      chmodSync(join(folder, name), 0o755);
    }
  }
  execFileSync('git', ['init', '--quiet', place.workspace]);
  // a script of the user's own, as version managers have them, that looks for its shell by name
  const shims = join(place.folder, 'shims');
  mkdirSync(shims);
  writeFileSync(join(shims, 'git'), '#!/usr/bin/env bash\nexec /usr/bin/git "$@"\n');
  chmodSync(join(shims, 'git'), 0o755);
  const first = { relative: './node_modules/.bin', absolute: bin, empty: '' }[entry];
  return {
    ...place,
    log,
    environment: { ...place.environment, PATH: `${first}:${shims}:${process.env.PATH}` },
  };
};

const ranIn = ({ log }: Planted): string => (existsSync(log) ? readFileSync(log, 'utf8') : '');

/** Every command of ours that starts programs by itself. */
const useAll = async (place: Planted, run: typeof runPawl): Promise<void> => {
  await run(place, ['doctor']);
  const asked = prepareAsk(place, { replies: [{ text: submit('javascript', '"found"') }] });
  const ask = await run(place, [...asked, 'what is in it?']);
  expectCode(ask, 0);
  writeFileSync(
    join(place.workspace, 'session.json'),
    JSON.stringify({
      replies: [
        { calls: [{ tool: 'search', input: { pattern: 'a' } }] },
        { calls: [{ tool: 'write', input: { path: 'a.txt', content: 'a' } }] },
        { text: 'done' },
      ],
    }),
  );
  const session = await run(place, [
    '-p',
    'go',
    '--model',
    'scripted/session.json',
    '--sandbox',
    'off',
  ]);
  expectCode(session, 0);
};

for (const entry of chooseRows(['relative', 'absolute', 'empty'] as const)) {
  test(`programs of a repository are not run where its folder is in the PATH (${entry})`, async (t) => {
    const place = plant(t, entry);
    await useAll(place, entry === 'relative' ? runPawl : runInProcess);
    assert.equal(ranIn(place), '');
  });
}

test('control: whoever starts programs by name runs them', (t) => {
  const place = plant(t, 'relative');
  const options = { cwd: place.workspace, env: place.environment };
  assert.throws(() => execFileSync('git', ['status'], options));
  assert.match(ranIn(place), /^git status planted-key-check\n/);
});
