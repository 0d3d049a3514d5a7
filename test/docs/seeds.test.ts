import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Each row of docs/seeds/README.md names the tests that keep it: by their file, and by their title as it stands there. */

const page = fileURLToPath(new URL('../../docs/seeds/README.md', import.meta.url));
const TEST_LINK = /\[([^\]]+)\]\((\.\.\/\.\.\/(?:packages\/[a-z]+\/)?test\/[^)]+)\)/g;

/** The tests that a row names and that do not exist. */
const faultsOf = (text: string): readonly string[] =>
  [...text.matchAll(TEST_LINK)].flatMap(([, title = '', target = '']) => {
    const file = path.join(path.dirname(page), target);
    if (!existsSync(file)) return [`there is no ${target}`];
    // A link to a whole file has its name as its text.
    if (target.endsWith(title)) return [];
    const source = readFileSync(file, 'utf8').replaceAll("\\'", "'");
    return source.includes(title) ? [] : [`${target} has no test "${title}"`];
  });

const rowsOf = (text: string): readonly string[] =>
  text.split('\n').filter((line) => /^\| /.test(line) && !line.startsWith('| capability |'));

test('every capability of the seed texts names the tests that keep it', () => {
  const text = readFileSync(page, 'utf8');
  assert.deepEqual(faultsOf(text), []);
  const rows = rowsOf(text);
  assert.ok(rows.length > 60, `${rows.length} rows`);
  assert.deepEqual(
    rows.filter((row) => row.match(TEST_LINK) === null && !row.includes('`AGENTS.md`')),
    [],
  );
});

test('a title or a file that is gone is named', () => {
  const text = '[no such title](../../test/docs/links.test.ts) [x](../../test/docs/gone.test.ts)';
  assert.deepEqual(faultsOf(text), [
    '../../test/docs/links.test.ts has no test "no such title"',
    'there is no ../../test/docs/gone.test.ts',
  ]);
});
