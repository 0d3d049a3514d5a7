import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { picturesNamed, storePictures } from '../../src/sessions/typed-input.js';

const texts: readonly (readonly [string, readonly string[]])[] = [
  ['look at @shot.png', ['shot.png']],
  ['@a/b.JPG, and @c.webp. Which?', ['a/b.JPG', 'c.webp']],
  ['@shot.png again: @shot.png', ['shot.png']],
  ['me@shot.png is an address', []],
  ['@notes.txt and shot.png', []],
  ['@shot.pngs', []],
  ['see @"my shot.png"', ['my shot.png']],
  ['see @"my shots/a b.JPG", and @c.webp', ['my shots/a b.JPG', 'c.webp']],
  ['(see @"my shot.png")', ['my shot.png']],
  ['@"shot.png" and @shot.png', ['shot.png']],
  ['@"my notes.txt" and "b.png"', []],
  ['@"my shot.png', []],
  ['@"two\nlines.png"', []],
  ['me@"my shot.png"', []],
];

for (const [text, names] of texts) {
  test(`the text ${JSON.stringify(text)} names ${names.length} pictures`, () =>
    assert.deepEqual(picturesNamed(text), names));
}

test('readable pictures are sent in order; for the others the reason is given', async (context) => {
  const folder = temporaryFolder(context, 'pictures');
  for (const name of ['one.png', 'two.png', 'bad.png'])
    await writeFile(path.join(folder, name), name);
  const keep = async (bytes: Uint8Array) => {
    const sha256 = Buffer.from(bytes).toString();
    if (sha256 === 'bad.png') throw new Error('it is no picture');
    return { mediaType: 'image/png', sha256 } as const;
  };
  await mkdir(path.join(folder, 'folder.png'));
  execFileSync('mkfifo', [path.join(folder, 'pipe.png')]);
  await symlink('one.png', path.join(folder, 'link.png'));
  const names = ['two.png', 'bad.png', 'gone.png', 'folder.png', 'pipe.png', 'one.png', 'link.png'];
  const kept = await storePictures(names, folder, keep);
  assert.deepEqual(
    kept.images.map(({ sha256 }) => sha256),
    ['two.png', 'one.png', 'one.png'],
  );
  assert.deepEqual(kept.faults, [
    'bad.png is not sent: it is no picture',
    'gone.png is not sent: there is no such file',
    'folder.png is not sent: it is a folder',
    "pipe.png is not sent: it can't be read: it is not a regular file",
  ]);
});
