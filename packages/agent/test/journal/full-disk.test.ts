import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { makeFolder } from '../../../../test/kit/journal/story.js';
import { startChild } from './start-child.js';

/** Mounts a disk of its own over a folder, in a mount namespace of its own, and goes on with the words behind it. */
const onDisk = (folder: string, mount: string): readonly string[] => {
  const script = `mount ${mount} "$0" && exec "$@"`;
  return [
    'unshare',
    ...(process.getuid?.() === 0 ? [] : ['-Ur']),
    '-m',
    'sh',
    '-c',
    script,
    folder,
  ];
};

const requireUnshare = (): void => {
  const { status, stderr } = spawnSync('unshare', [
    ...(process.getuid?.() === 0 ? [] : ['-Ur']),
    '-m',
    'true',
  ]);
  assert.equal(
    status,
    0,
    `This test needs unshare and mount namespaces: "apt-get install util-linux", and allow user namespaces. ${String(stderr)}`,
  );
};

const linesOf = async (
  child: ReturnType<typeof startChild>,
): Promise<ReadonlyMap<string, string>> => {
  const lines = new Map<string, string>();
  for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
    const [word = '', ...rest] = line.split(' ');
    lines.set(word, rest.join(' '));
  }
  return lines;
};

test('a full disk refuses the append, says so, keeps what was durable, and nothing of the rest', async (context) => {
  requireUnshare();
  const folder = await makeFolder(context);
  const child = startChild(context, ['fill', folder], onDisk(folder, '-t tmpfs -o size=260k none'));
  const said = await linesOf(child);
  assert.match(
    said.get('append') ?? '',
    /^cannotWrite: .*ENOSPC.*disk is full: free some space/,
    child.complaints(),
  );
  const seq = Number(said.get('seq'));
  assert.ok(seq > 4);
  assert.match(said.get('again') ?? '', /^cannotWrite: /);
  assert.match(said.get('blob') ?? '', /^cannotWrite: .*ENOSPC/);
  assert.equal(said.get('opened'), `${seq} whole`);
});

test('a read-only disk refuses a new session and says so', async (context) => {
  requireUnshare();
  const folder = await makeFolder(context);
  const child = startChild(context, ['create', folder], onDisk(folder, '-t tmpfs -o ro none'));
  const said = await linesOf(child);
  assert.match(
    said.get('create') ?? '',
    /^cannotWrite: .*EROFS.*read-only.*XDG_STATE_HOME/,
    child.complaints(),
  );
});

test('what is known is written to a full disk from reserved space, once', async (context) => {
  requireUnshare();
  const folder = await makeFolder(context);
  const child = startChild(
    context,
    ['useReserve', folder],
    onDisk(folder, '-t tmpfs -o size=2m none'),
  );
  const said = await linesOf(child);
  assert.equal(said.get('append'), 'was accepted', child.complaints());
  assert.match(said.get('full') ?? '', /^cannotWrite: .*ENOSPC.*disk is full: free some space/);
  assert.match(said.get('more') ?? '', /^cannotWrite: .*ENOSPC/);
  assert.equal(said.get('opened'), `${said.get('seq')} whole`);
});

test('a snapshot that a full disk refuses leaves nothing, and takes nothing of the reserved space', async (context) => {
  requireUnshare();
  const folder = await makeFolder(context);
  const child = startChild(
    context,
    ['snapshot', folder],
    onDisk(folder, '-t tmpfs -o size=2m none'),
  );
  const said = Object.fromEntries(await linesOf(child));
  assert.deepEqual(
    said,
    {
      'control.snapshot': '429',
      control: 'has room',
      first: 'has room',
      'next.snapshot': '219',
      next: 'has room',
      reserve: 'is full',
    },
    child.complaints(),
  );
});

test('a torn end that a full disk can not keep stays in the journal, and nothing beside it', async (context) => {
  requireUnshare();
  const folder = await makeFolder(context);
  const child = startChild(
    context,
    ['cutOnFullDisk', folder],
    onDisk(folder, '-t tmpfs -o size=2m none'),
  );
  const said = await linesOf(child);
  assert.match(said.get('open') ?? '', /^cannotWrite: .*ENOSPC/, child.complaints());
  assert.equal(said.get('files'), 'a.snapshot');
});

test('a copy of a removed journal that a full disk refuses leaves nothing, and is made elsewhere', async (context) => {
  requireUnshare();
  const folder = await makeFolder(context);
  const copies = join(folder, 'rescued');
  await mkdir(copies);
  const child = startChild(
    context,
    ['rescueOnFullDisk', folder],
    onDisk(copies, '-t tmpfs -o size=16k none'),
  );
  const said = await linesOf(child);
  assert.match(
    said.get('append') ?? '',
    /^foreignChange: .*A copy with 4 entries is in \S+pawl-rescued-/,
    child.complaints(),
  );
  assert.equal(said.get('files'), '');
});
