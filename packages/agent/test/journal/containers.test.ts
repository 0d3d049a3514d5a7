import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { makeFolder } from '../../../../test/kit/journal/story.js';
import { acquireLock } from '../../src/journal/lock.js';
import { type Child, startChild } from './start-child.js';

/** Processes in containers that share a folder: with pids, a network and a host name of their own. */

const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
const CONTAINER = [
  'unshare',
  ...asRoot,
  ...['--pid', '--net', '--uts', '--ipc', '--mount', '--mount-proc', '--fork', '--kill-child'],
];

const requireContainers = (): void => {
  const [program = '', ...words] = [...CONTAINER, 'true'];
  const { status, stderr } = spawnSync(program, words);
  assert.equal(status, 0, `This test needs unshare and namespaces. ${String(stderr)}`);
};

const inContainer = (context: TestContext, words: readonly string[]): Child =>
  startChild(context, words, [...CONTAINER, 'sh', '-c', 'hostname box && exec "$@"', 'sh']);

const makeLock = async (context: TestContext): Promise<string> => {
  requireContainers();
  return join(await makeFolder(context), 'a.lock');
};

const lockedIn = (where: RegExp) => ({ kind: 'locked', message: where });

test('a holder in a container is respected while it lives, here and in another container', async (context) => {
  const path = await makeLock(context);
  const holder = inContainer(context, ['hold', path]);
  assert.equal(await holder.nextLine(), 'held', holder.complaints());
  await assert.rejects(acquireLock(path), lockedIn(/process \d+ on box, in another container/));
  const second = inContainer(context, ['hold', path]);
  assert.match((await second.nextLine()) ?? '', /^refused locked: .*on box, in another container/);
});

test('the lock of a killed container is free at once', async (context) => {
  const path = await makeLock(context);
  const holder = inContainer(context, ['hold', path]);
  assert.equal(await holder.nextLine(), 'held', holder.complaints());
  await holder.kill();
  await access(path); // nobody tidied up
  const lock = await acquireLock(path);
  assert.equal(lock.predecessor, 'gone');
  await lock.release();
});

test('a holder here is respected in a container', async (context) => {
  const path = await makeLock(context);
  const lock = await acquireLock(path);
  const other = inContainer(context, ['hold', path]);
  assert.match((await other.nextLine()) ?? '', /^refused locked: .*in another container/);
  await lock.release();
  assert.deepEqual(await readdir(join(path, '..')), []);
});

test('one of many containers gets the lock of a dead one', async (context) => {
  const path = await makeLock(context);
  const dead = inContainer(context, ['hold', path]);
  assert.equal(await dead.nextLine(), 'held', dead.complaints());
  await dead.kill();
  const asking = Array.from({ length: 3 }, () => inContainer(context, ['hold', path]));
  const said = await Promise.all(asking.map((child) => child.nextLine()));
  assert.equal(said.filter((line) => line === 'held').length, 1, said.join('\n'));
  assert.equal(
    said.filter((line) => line?.startsWith('refused locked')).length,
    2,
    said.join('\n'),
  );
});

test('a living holder in a container can be taken over, and has nothing acknowledged after that', async (context) => {
  const path = await makeLock(context);
  const folder = join(path, '..');
  const writer = inContainer(context, ['append', folder]);
  assert.match((await writer.nextLine()) ?? '', /^\d+$/, writer.complaints());
  const taker = startChild(context, ['takeSession', folder]);
  const seen = Number(/^took (\d+)$/.exec((await taker.nextLine()) ?? '')?.[1]);
  let last = 0;
  let ending = '';
  for (let line = await writer.nextLine(); line !== undefined; line = await writer.nextLine()) {
    if (/^\d+$/.test(line)) last = Number(line);
    else ending = line;
  }
  assert.match(ending, new RegExp(`^stopped takenOver: .*taken over by process ${taker.pid} on `));
  assert.ok(seen >= last, `${last} was acknowledged, the new holder found ${seen}`);
  assert.equal(await taker.nextLine(), `wrote ${seen + 1}`, taker.complaints());
});
