import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { appendFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { openHistory } from '../../src/interactive/terminal-session.js';

const folderOf = (context: TestContext): string => {
  const folder = temporaryFolder(context, 'history');
  return folder;
};

test('the history of a folder is kept for that folder only, and only its user can read it', (context) => {
  const folder = folderOf(context);
  const history = openHistory(folder, '/work');
  assert.deepEqual(history.read(), []);
  history.add('one');
  history.add('two\nlines');
  history.add('  ');
  history.add('two\nlines', 'unsent'); // that could not be sent, after all
  assert.deepEqual(openHistory(folder, '/work').read(), ['one', 'two\nlines']);
  assert.deepEqual(openHistory(folder, '/other').read(), []);
  const [name = ''] = readdirSync(join(folder, 'history'));
  assert.equal(statSync(join(folder, 'history', name)).mode & 0o777, 0o600);
});

test('lines that are no entries are left out; the others stay', (context) => {
  const folder = folderOf(context);
  const history = openHistory(folder, '/work');
  history.add('one');
  const [name = ''] = readdirSync(join(folder, 'history'));
  appendFileSync(join(folder, 'history', name), '[]\n{"text":7}\n{"text":"cut o');
  history.add('two');
  assert.deepEqual(history.read(), ['one', 'two']);
});

test('it does not grow for ever, and the newest stay', (context) => {
  const folder = folderOf(context);
  const history = openHistory(folder, '/work');
  const text = 'x'.repeat(20_000);
  for (let count = 0; count < 100; count += 1) history.add(`${count} ${text}`);
  const files = readdirSync(join(folder, 'history'));
  const bytes = files.reduce((sum, name) => sum + statSync(join(folder, 'history', name)).size, 0);
  assert.ok(bytes < 1_200_000, String(bytes));
  const read = history.read();
  assert.ok(read.at(-1)?.startsWith('99 ') && read.length > 20);
  history.add('y'.repeat(40_000));
  assert.ok(history.read().at(-1)?.startsWith('99 '), 'a text that is too long is not kept');
  history.add('z'.repeat(400_000), 'unsent');
  assert.ok(history.read().at(-1)?.startsWith('zz'), 'one that no journal has is kept');
  history.add('z'.repeat(600_000), 'unsent');
  assert.ok(history.read().length > 20, 'the file stays readable');
});

test('several programs may write at once', async (context) => {
  const folder = folderOf(context);
  const source = fileURLToPath(
    new URL('../../src/interactive/terminal-session.ts', import.meta.url),
  );
  const code = `import { openHistory } from ${JSON.stringify(source)};
     const history = openHistory(${JSON.stringify(folder)}, '/work');
     for (let count = 0; count < 50; count += 1) history.add(process.argv[2] + '-' + count);`;
  const program = await bundleProgram(context, { code });
  const ends = ['a', 'b', 'c'].map(
    (name) =>
      new Promise((resolve) => {
        fork(program, [name], { execArgv: [] }).on('exit', resolve);
      }),
  );
  assert.deepEqual(await Promise.all(ends), [0, 0, 0]);
  assert.equal(new Set(openHistory(folder, '/work').read()).size, 150);
});

test('a folder that can’t be written stops nothing', (context) => {
  const file = join(folderOf(context), 'file');
  writeFileSync(file, '');
  const history = openHistory(file, '/work');
  history.add('one');
  assert.deepEqual(history.read(), []);
});
