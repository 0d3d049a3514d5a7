import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { keepPictures, picturesNamed } from '../../src/cli/pictures.js';

const texts: readonly (readonly [string, readonly string[]])[] = [
  ['look at @shot.png', ['shot.png']],
  ['@a/b.JPG, and @c.webp. Which?', ['a/b.JPG', 'c.webp']],
  ['@shot.png again: @shot.png', ['shot.png']],
  ['me@shot.png is an address', []],
  ['@notes.txt and shot.png', []],
  ['@shot.pngs', []],
];

for (const [text, names] of texts) {
  test(`the text '${text}' names ${names.length} pictures`, () =>
    assert.deepEqual(picturesNamed(text), names));
}

test('what can be kept goes along, in its order; of the others it is said why not', async (context) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pawl-pictures-'));
  context.after(() => rm(folder, { recursive: true }));
  for (const name of ['one.png', 'two.png', 'bad.png']) await writeFile(path.join(folder, name), name);
  const keep = async (bytes: Uint8Array) => {
    const sha256 = Buffer.from(bytes).toString();
    if (sha256 === 'bad.png') throw new Error('it is no picture');
    return { mediaType: 'image/png', sha256 } as const;
  };
  const kept = await keepPictures(['two.png', 'bad.png', 'gone.png', 'one.png'], folder, keep);
  assert.deepEqual(
    kept.images.map(({ sha256 }) => sha256),
    ['two.png', 'one.png'],
  );
  assert.match(kept.faults.join('\n'), /^bad\.png does not go with it: it is no picture\ngone\.png .*ENOENT/);
});
