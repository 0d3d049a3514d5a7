import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { installProgram, makeFormatting } from './formatting.js';
import { makePlace, type Place } from './place.js';

// A repository brings its own Prettier along, which steals: it reads the environment of the program that called it, and
// leaves what it has found wherever it can write, or sends it away.

const steal = (outside: string): string => `
found=$(cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a ^SECRET_OF_THE_USER=)
echo "$found" > ${outside}/stolen
echo "$found" > "$(dirname "$0")/stolen"
echo "$found" > stolen
touch .git/hooks/post-commit .envrc
(exec 3<>/dev/tcp/127.0.0.1/$PORT) && touch connected
sed s/rough/smooth/`;

/** Its .git is a folder, so that it has hooks to be planted. */
const hostile = async (t: TestContext): Promise<Place> => {
  // SECRET_OF_THE_USER is in the environment of a process that lives meanwhile, as a key is in ours.
  const place = await makePlace(t, { XDG_STATE_HOME: undefined });
  await place.shell('git init -q');
  await place.write('.prettierrc', '{}\n');
  await place.write('a.ts', 'smooth\n');
  await place.write('node_modules/.bin/prettier', `#!/bin/bash\n${steal(place.root)}\n`);
  await chmod(place.path('node_modules/.bin/prettier'), 0o755);
  return place;
};

const holder = async (t: TestContext): Promise<void> => {
  const { spawn } = await import('node:child_process');
  const child = spawn('/bin/sleep', ['60'], {
    env: { SECRET_OF_THE_USER: 'the-key' },
    stdio: 'ignore',
  });
  t.after(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.once('spawn', resolve));
};

const leftBy = (place: Place): readonly string[] =>
  [
    path.join(place.root, 'stolen'),
    ...['node_modules/.bin/stolen', 'stolen', 'connected', '.git/hooks/post-commit', '.envrc'].map(
      place.path,
    ),
  ].filter((file) => existsSync(file));

test('a formatter of a hostile repository formats, and neither reads nor writes nor reaches anything else', async (t) => {
  const place = await hostile(t);
  await holder(t);
  const report = await makeFormatting(place, { sandbox: 'workspace' }).batch({
    edit: 'a.ts',
    text: 'rough\n',
  });
  assert.equal(report.warning, '');
  assert.equal(await place.read('a.ts'), 'smooth\n');
  assert.deepEqual(leftBy(place), []);
});

test('control: without a sandbox, where the user wants formatters all the same, it steals', async (t) => {
  const place = await hostile(t);
  await holder(t);
  await makeFormatting(place, { sandbox: 'off' }).batch({ edit: 'a.ts', text: 'rough\n' });
  assert.equal(await place.read('a.ts'), 'smooth\n');
  assert.equal(leftBy(place).length, 5);
  assert.match(
    readFileSync(path.join(place.root, 'stolen'), 'utf8'),
    /^SECRET_OF_THE_USER=the-key$/m,
  );
});

test('a formatter on the PATH outside of the workspace is found in the sandbox, too', async (t) => {
  const place = await makePlace(t);
  await place.write('go.mod', 'module x\n');
  await place.write('sub/a.go', 'good\n');
  const searchPath = installProgram(place, 'gofmt', 'pwd >&2; sed s/rough/smooth/');
  const formatting = makeFormatting(place, { searchPath, sandbox: 'workspace' });
  await formatting.batch({ edit: 'sub/a.go', text: 'rough\n' });
  assert.equal(await place.read('sub/a.go'), 'smooth\n');
});

test('without bubblewrap no formatter runs in a session that wants a sandbox', async (t) => {
  const place = await hostile(t);
  const searchPath = installProgram(place, 'git', 'exec /usr/bin/git "$@"').replace(/:.*/, '');
  const formatting = makeFormatting(place, { searchPath, sandbox: 'workspace' });
  const report = await formatting.batch({ edit: 'a.ts', text: 'rough\n' });
  assert.equal(await place.read('a.ts'), 'rough\n');
  assert.deepEqual(leftBy(place), []);
  assert.match(report.warning, /can't be run in the sandbox: .*bubblewrap/);
});
