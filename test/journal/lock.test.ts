import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { acquireLock } from '../../src/journal/write/lock.js';
import {
  describeSelf,
  type Holder,
  isGone,
  removeDead,
  writeHolder,
} from '../../src/journal/write/lock-owner.js';
import { startChild } from './start-child.js';
import { makeFolder } from './story.js';

for (const platform of ['linux', 'darwin']) {
  test(`on ${platform} a lock is held by one at a time, and free when released`, async (context) => {
    const folder = await makeFolder(context);
    const path = join(folder, 'a.lock');
    const lock = await acquireLock(path, platform);
    const locked = { kind: 'locked', message: new RegExp(`process ${process.pid} on`) };
    await assert.rejects(acquireLock(path, platform), locked);
    const other = await acquireLock(join(folder, 'b.lock'), platform);
    await lock.release();
    await other.release();
    assert.deepEqual(await readdir(folder), []);
    await (await acquireLock(path, platform)).release();
  });

  test(`on ${platform} one of many that ask at the same time gets it`, async (context) => {
    const path = join(await makeFolder(context), 'a.lock');
    const asked = Array.from({ length: 20 }, () => acquireLock(path, platform));
    const results = await Promise.allSettled(asked);
    const locks = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    assert.equal(locks.length, 1);
    await locks[0]?.release();
  });

  test(`on ${platform} another process is refused with the pid, and let in when that is killed`, async (context) => {
    const path = join(await makeFolder(context), 'a.lock');
    const child = startChild(context, ['hold', path, platform]);
    assert.equal(await child.nextLine(), 'held', child.complaints());
    const locked = { kind: 'locked', message: new RegExp(`process ${child.pid} on`) };
    await assert.rejects(acquireLock(path, platform), locked);
    await child.kill();
    await access(path); // nobody tidied up
    const lock = await acquireLock(path, platform);
    assert.equal(JSON.parse(await readFile(path, 'utf8')).pid, process.pid);
    await lock.release();
  });
}

test('another way to the same folder is the same lock', async (context) => {
  const folder = await makeFolder(context);
  await mkdir(join(folder, 'real'));
  await symlink(join(folder, 'real'), join(folder, 'link'));
  const lock = await acquireLock(join(folder, 'real', 'a.lock'));
  await assert.rejects(acquireLock(join(folder, 'link', 'a.lock')), { kind: 'locked' });
  await lock.release();
});

test('a lock in a folder that does not exist cannot be taken', async (context) => {
  const path = join(await makeFolder(context), 'none', 'a.lock');
  await assert.rejects(acquireLock(path), { kind: 'cannotWrite', message: /ENOENT/ });
});

test('a lock file that makes no sense names nobody and is taken over', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  await writeFile(path, '{"pid":');
  const lock = await acquireLock(path);
  assert.equal(JSON.parse(await readFile(path, 'utf8')).pid, process.pid);
  await lock.release();
});

test('a lock file from another computer is respected, since nobody can know', async (context) => {
  const folder = await makeFolder(context);
  const path = join(folder, 'a.lock');
  await writeHolder(path, { ...(await describeSelf()), host: 'elsewhere', bootId: 'other', pid: 4 });
  await assert.rejects(acquireLock(path), {
    kind: 'locked',
    message: /process 4 on elsewhere.*delete the file/,
  });
  await access(path);
});

test('who takes over a lock that another one has just taken over puts it back', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  const self = await describeSelf();
  const dead = { ...self, pid: 999_999 };
  await writeHolder(path, self);
  assert.deepEqual(await removeDead(path, dead), self);
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), self);
  assert.equal(await removeDead(path, self), undefined);
  await assert.rejects(access(path), { code: 'ENOENT' });
});

const NEVER = 2 ** 30;
const linux: Partial<Holder> = { host: 'here', bootId: 'b1', network: 'n1', pids: 'p1' };
const other: Partial<Holder> = { host: 'here', bootId: '', network: '', pids: '', started: '' };
type Row = readonly [title: string, holder: Partial<Holder>, self: Partial<Holder>, gone: boolean];
const rows: readonly Row[] = [
  // given a holder that,                                 as it wrote itself down,               seen from,  then it is gone
  ['would hold the same socket', { ...linux }, linux, true],
  ['ran before the last start of this computer', { ...linux, bootId: 'b0' }, linux, true],
  ['ran on another computer', { ...linux, host: 'there', bootId: 'b0' }, linux, false],
  ['runs in a container of its own', { ...linux, network: 'n2', pids: 'p2', pid: NEVER }, linux, false],
  ['has another network and is dead', { ...linux, network: 'n2', pid: NEVER }, linux, true],
  ['has another network and is alive', { ...linux, network: 'n2' }, linux, false],
  [
    'has another network and the pid of a later process',
    { ...linux, network: 'n2', started: '1' },
    linux,
    true,
  ],
  ['is alive where there are no sockets', { ...other, pid: process.ppid }, other, false],
  ['is dead where there are no sockets', { ...other, pid: NEVER }, other, true],
  ['had our own pid where there are no sockets', other, other, true],
  ['ran before the start where there are no sockets', { ...other, pid: process.ppid, since: 1 }, other, true],
  ['ran elsewhere where there are no sockets', { ...other, host: 'there', pid: NEVER }, other, false],
];
for (const [title, holder, self, gone] of rows) {
  test(`a holder that ${title} ${gone ? 'is gone' : 'may be alive'}`, async () => {
    const own = await describeSelf();
    assert.equal(await isGone({ ...own, ...holder }, { ...own, ...self }), gone);
  });
}
