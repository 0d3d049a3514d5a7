import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { makeFolder, memoryRuns } from '../../../../test/kit/ask/ask-stage.js';
import type { InputFile } from '../../src/ports.js';
import {
  findInputs,
  INPUT_BYTES_MAX,
  InputError,
  type InputSource,
  measureInputs as measureIn,
  verifyInputs as verifyIn,
} from '../../src/runtime/measure-inputs.js';

/** What is known of inputs without holding their text. */

const { blobs } = memoryRuns();
const measureInputs = (sources: readonly InputSource[], workspace = '/') =>
  measureIn(sources, { workspace, blobs });
const verifyInputs = (files: readonly InputFile[]) =>
  verifyIn(
    { files, inputs: files.map(() => ({ name: 'notes', type: 'text', characters: 1 })) },
    blobs,
  );

const sum = (text: string): string => createHash('sha256').update(text).digest('hex');

test('an input is known by its real path, its bytes, its sum and its characters', async (context) => {
  const folder = await makeFolder(context);
  const text = 'Grüße 🐾\n'.repeat(20_000);
  await writeFile(path.join(folder, 'a.json'), text);
  await symlink(path.join(folder, 'a.json'), path.join(folder, 'link'));
  const measured = await measureInputs([
    { path: path.join(folder, 'link') },
    { path: path.join(folder, 'a.json'), name: 'b' },
  ]);
  const file = {
    path: path.join(folder, 'a.json'),
    bytes: Buffer.byteLength(text),
    sha256: sum(text),
  };
  assert.deepEqual(measured, [
    {
      file,
      facts: { name: path.join(folder, 'link').slice(1), type: 'text', characters: text.length },
    },
    { file, facts: { name: 'b', type: 'text', characters: text.length } },
  ]);
  const [json] = await measureInputs([{ path: path.join(folder, 'a.json') }]);
  assert.equal(json?.facts.type, 'JSON');
});

test('an empty file is text, and so is one with a byte order mark', async (context) => {
  const folder = await makeFolder(context);
  const file = path.join(folder, 'a');
  await writeFile(file, '');
  assert.equal((await measureInputs([{ path: file }]))[0]?.facts.characters, 0);
  await writeFile(file, '\ufeffx');
  assert.equal((await measureInputs([{ path: file }]))[0]?.facts.characters, 2);
});

const refusals: readonly (readonly [
  string,
  InputError['kind'],
  RegExp,
  (file: string) => Promise<unknown>,
])[] = [
  ['a file that is not there', 'notFound', /There is no file/, async () => undefined],
  ['a folder', 'folder', /is a folder: name the files in it/, (file) => mkdir(file)],
  [
    'bytes that are no UTF-8',
    'notText',
    /not text in UTF-8/,
    (file) => writeFile(file, Buffer.from([0x61, 0xff, 0x61])),
  ],
  [
    'a character that is cut off',
    'notText',
    /not text/,
    (file) => writeFile(file, Buffer.from('ü').subarray(0, 1)),
  ],
  [
    'a file that is too large',
    'tooLarge',
    /100\.0 MB fit/,
    async (file) => {
      await writeFile(file, '');
      await truncate(file, INPUT_BYTES_MAX + 1);
    },
  ],
];

for (const [what, kind, message, make] of refusals) {
  test(`${what} is refused, and the message says what to do`, async (context) => {
    const file = path.join(await makeFolder(context), 'input');
    await make(file);
    await assert.rejects(measureInputs([{ path: file }]), (error: unknown) => {
      assert.ok(error instanceof InputError);
      assert.deepEqual([error.kind, error.path], [kind, file]);
      assert.match(error.message, message);
      return true;
    });
  });
}

test('a device is refused before anything is read of it', async () => {
  await assert.rejects(findInputs(['/dev/zero']), {
    kind: 'unreadable',
    message: /give its text on stdin/,
  });
  await assert.rejects(measureInputs([{ path: '/dev/zero' }]), { kind: 'unreadable' });
});

test('inputs are too large together as they are alone', async (context) => {
  const folder = await makeFolder(context);
  const [one, other] = ['one', 'other'].map((name) => path.join(folder, name));
  assert.ok(one !== undefined && other !== undefined);
  await writeFile(one, 'a'.repeat(1_000));
  await writeFile(other, '');
  await truncate(other, INPUT_BYTES_MAX - 999);
  await assert.rejects(measureInputs([{ path: one }, { path: other }]), {
    kind: 'tooLarge',
    path: other,
  });
});

test('an input that changed since is noticed, also where its size is the same', async (context) => {
  const file = path.join(await makeFolder(context), 'input');
  await writeFile(file, 'abc');
  const files = (await measureInputs([{ path: file }])).map((input) => input.file);
  await verifyInputs(files);
  await writeFile(file, 'abd');
  await assert.rejects(verifyInputs(files), {
    kind: 'changed',
    message: /has changed since the run began/,
  });
  await writeFile(file, 'abc');
  await verifyInputs(files);
});

test('a NUL is a character of UTF-8 like any other', async (context) => {
  const file = path.join(await makeFolder(context), 'a');
  await writeFile(file, 'a\0b');
  assert.equal((await measureInputs([{ path: file }]))[0]?.facts.characters, 3);
});

test('a file is named by its path in the workspace, or else by its whole path; no two inputs share a name', async (context) => {
  const folder = await makeFolder(context);
  const workspace = path.join(folder, 'work');
  const files = [
    'work/a.txt',
    'work/deep/a.txt',
    'work/..odd',
    'work/with blank\nand line.txt',
    'a.txt',
  ];
  await mkdir(path.join(workspace, 'deep'), { recursive: true });
  for (const file of files) await writeFile(path.join(folder, file), file);
  const sources = files.map((file) => ({ path: path.join(folder, file) }));
  const again = [{ path: path.join(workspace, 'a.txt') }, { text: 'x', name: 'a.txt' }];
  const named = (await measureInputs([...sources, ...again], workspace)).map(
    ({ facts }) => facts.name,
  );
  assert.deepEqual(named, [
    'a.txt',
    'deep/a.txt',
    '..odd',
    'with blank\nand line.txt',
    path.join(folder, 'a.txt'),
    'a.txt (2)',
    'a.txt (3)',
  ]);
});

test('texts and JSON from memory are kept as blobs', async () => {
  const inputs = await measureInputs([
    { text: 'Grüße\0\ud83d', name: 'greeting' },
    { json: [{ a: 1 }], name: 'rows' },
  ]);
  assert.deepEqual(
    inputs.map(({ facts }) => facts),
    [
      { name: 'greeting', type: 'text', characters: 7 },
      { name: 'rows', type: 'JSON', characters: 22 },
    ],
  );
  const files = inputs.map(({ file }) => file);
  assert.deepEqual(
    files.map((file) => file.path),
    [null, null],
  );
  assert.equal(await blobs.get(files[0]?.sha256 ?? ''), 'Grüße\0\ufffd');
  assert.deepEqual(JSON.parse((await blobs.get(files[1]?.sha256 ?? '')) ?? ''), [{ a: 1 }]);
  await verifyInputs(files);
  await assert.rejects(verifyInputs([{ path: null, bytes: 1, sha256: 'none' }]), {
    kind: 'changed',
    message: 'The text of the input notes is no longer stored: ask anew.',
  });
  await assert.rejects(measureInputs([{ json: undefined, name: 'nothing' }]), { kind: 'notText' });
});
