import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { namePastesIn, pathsMeant } from '../../src/interactive/terminal-session.js';
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

/** What a terminal writes of a file that is dragged into it, and what is done with it. */

const meant: readonly (readonly [string, string, readonly string[]])[] = [
  ['a bare path', '/p/a.png', ['/p/a.png']],
  ['blanks and a line end around it are the terminal’s', ' /p/a.png \n', ['/p/a.png']],
  ['a bare path with blanks is a path', '/p/my a.png', ['/p/my a.png']],
  ['backslashes before blanks', '/p/my\\ a\\(1\\).png', ['/p/my\\ a\\(1\\).png', '/p/my a(1).png']],
  ['single quotes', "'/p/my a.png' ", ['/p/my a.png']],
  ['a quote in single quotes, as shells write it', "'/p/it'\\''s.png'", ["/p/it's.png"]],
  ['double quotes', '"/p/my a.png"', ['/p/my a.png']],
  ['escapes in double quotes', '"/p/\\$a\\".png"', ['/p/$a".png']],
  ['a URL', 'file:///p/my%20a.png', ['/p/my a.png']],
  ['a URL of this machine', 'file://localhost/p/a.png', ['/p/a.png']],
  ['a URL of another machine', 'file://elsewhere/p/a.png', []],
  ['a URL of no file', 'https://example.com/a.png', []],
  ['a URL with a line break in it', 'file:///p/a%0Ab.png', []],
  ['the home folder', '~/a.png', ['/h/a.png']],
  ['a name alone is a word', 'a.png', []],
  ['a relative path is words', 'pictures/a.png', []],
  ['a quote that is left open', "'/p/a.png", []],
  ['two lines', '/p/a.png\n/p/b.png', []],
  ['two quoted paths', "'/p/a.png' '/p/b.png'", []],
  ['nothing', ' ', []],
  ['a text that no path can be as long as', `/${'a'.repeat(5_000)}.png`, []],
];

for (const [title, pasted, paths] of meant) {
  test(`${title}: ${JSON.stringify(pasted).slice(0, 40)}`, () =>
    assert.deepEqual(pathsMeant(pasted, '/h'), paths));
}

const folder = temporaryFolder(test, 'pasted');
for (const name of ['project/in', 'out', 'home', 'project/folder.png'])
  mkdirSync(path.join(folder, name), { recursive: true });
for (const name of [
  'project/in/a.png',
  'project/my a.jpg',
  'project/notes.txt',
  'out/a.webp',
  'out/my a.GIF',
  'out/a\\ b.png',
  'out/a b"c.png',
  'home/h.png',
])
  writeFileSync(path.join(folder, name), 'x');
symlinkSync('a.webp', path.join(folder, 'out/link.png'));

/** `~` stands for the folder of the test. */
const named: readonly (readonly [string, string, string, string | null])[] = [
  ['a picture of the workspace by its short path', '', '~/project/in/a.png', '@in/a.png'],
  ['one with blanks in quotes', '', '~/project/my a.jpg', '@"my a.jpg"'],
  ['one that the terminal has escaped', '', '~/project/my\\ a.jpg', '@"my a.jpg"'],
  ['one from elsewhere by its whole path', '', '~/out/a.webp', '@~/out/a.webp'],
  ['one from elsewhere, quoted, with a large ending', '', "'~/out/my a.GIF' ", '@"~/out/my a.GIF"'],
  ['a link to one', '', '~/out/link.png', '@~/out/link.png'],
  ['a URL', '', 'file://~/out/my%20a.GIF', '@"~/out/my a.GIF"'],
  ['a file whose name holds a backslash', '', '~/out/a\\ b.png', '@"~/out/a\\ b.png"'],
  ['several', '', "~/project/in/a.png '~/out/my a.GIF'", '@in/a.png @"~/out/my a.GIF"'],
  [
    'several, a line each',
    '',
    '~/project/my\\ a.jpg\nfile://~/out/a.webp\n',
    '@"my a.jpg" @~/out/a.webp',
  ],
  ['not several of which one is no picture', '', '~/project/in/a.png ~/project/notes.txt', null],
  ['not several where a quote is left open', '', "~/project/in/a.png '~/out/a.webp", null],
  ['not more than can be meant', '', '~/project/in/a.png '.repeat(21), null],
  ['not one whose name can’t be quoted', '', '~/out/a b"c.png', null],
  ['not a file that is no picture by its name', '', '~/project/notes.txt', null],
  ['not a folder', '', '~/project/folder.png', null],
  ['not a file that is not there', '', '~/project/gone.png', null],
  ['not a text with a path in it', '', 'see ~/project/in/a.png', null],
  ['in the middle of a text', 'see', '~/project/in/a.png', '@in/a.png'],
  ['in a line about a path', '/etc/hosts is like ', '~/project/in/a.png', '@in/a.png'],
  ['in a text for later', '/later see ', '~/project/in/a.png', '@in/a.png'],
  ['not in a command of one’s own', '!open ', '~/project/in/a.png', null],
  ['not in a command of the terminal', '/export ', '~/project/in/a.png', null],
];

for (const [title, before, pasted, word] of named) {
  test(`a paste names ${title}: ${JSON.stringify(before + pasted)}`, () => {
    const name = namePastesIn(path.join(folder, 'project'), path.join(folder, 'home'));
    assert.equal(
      name(pasted.replaceAll('~', folder), before),
      word?.replaceAll('~', folder) ?? null,
    );
  });
}

test('a paste names a picture of the home folder', () => {
  const name = namePastesIn(path.join(folder, 'project'), path.join(folder, 'home'));
  assert.equal(name('~/h.png', ''), `@${folder}/home/h.png`);
});
