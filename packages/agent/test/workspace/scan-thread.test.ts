import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import '../../../../test/own-process.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { StampTable } from '../../src/workspace/checkpoints/known-files.js';
import { lookAt } from '../../src/workspace/checkpoints/scan.js';
import { ScanThread, type ThreadLook } from '../../src/workspace/checkpoints/scan-thread.js';

/** The thread that watches a workspace finds each change, and looks at no more than it has to. */

const FILES = ['a.txt', 'one/b.txt', 'one/c.txt', 'one/deep/d.txt', 'two/e.txt', 'two/ü.txt'];
const FOLDERS = ['', 'one', 'one/deep', 'two'];
const NAMES = [...FILES, ...FOLDERS.slice(1)].map((name) => Buffer.from(name).toString('latin1'));
/** Stamps of younger files are not relied upon. */
const YOUNG_MS = 40;

type Place = {
  readonly workspace: string;
  readonly outside: string;
  readonly table: StampTable;
  readonly thread: ScanThread;
};

const send = (
  { thread, table }: Place,
  names: readonly string[],
  folders: readonly string[],
): void => {
  for (const name of names) table.add(name);
  thread.sendNames(table.takeUnsent());
  thread.sendFolders(folders);
};

const learn = (place: Place, names: readonly string[]): void => {
  for (const name of names) place.table.put(name, lookAt(place.workspace, name)?.stamp ?? null);
  place.thread.sendNames(place.table.takeUnsent());
};

const look = async ({ thread }: Place, isWhole = false): Promise<ThreadLook> => {
  const seen = await thread.look(isWhole);
  assert.ok(seen !== null);
  return { ...seen, changed: [...seen.changed].sort() };
};

/** A watched workspace in which all is known, and a second link of one file outside. */
const begin = async (t: TestContext): Promise<Place> => {
  const folder = realpathSync(temporaryFolder(t, 'thread'));
  const [workspace, outside] = [path.join(folder, 'work'), path.join(folder, 'outside')];
  for (const one of [...FOLDERS, '../outside'])
    mkdirSync(path.join(workspace, one), { recursive: true });
  for (const name of FILES) writeFileSync(path.join(workspace, name), 'first');
  linkSync(path.join(workspace, 'two/e.txt'), path.join(outside, 'e.txt'));
  await sleep(YOUNG_MS);
  const thread = new ScanThread(workspace, path.join(folder, 'marks'));
  t.after(() => thread.close());
  const place = { workspace, outside, table: new StampTable(), thread };
  learn(place, NAMES);
  send(place, NAMES, FOLDERS);
  assert.deepEqual(await look(place), { changed: [], reported: null, isWatching: true });
  assert.deepEqual(await look(place), { changed: [], reported: [], isWatching: true });
  return place;
};

const bash = (folder: string, command: string): void => {
  execFileSync('bash', ['-c', command], { cwd: folder });
};

const CHANGES: readonly (readonly [command: string, changed: readonly string[]])[] = [
  ['echo more >> one/b.txt', ['one/b.txt']],
  ['printf other > two/e.txt', ['two/e.txt']],
  ['printf other > two/ü.txt', ['two/Ã¼.txt']],
  ['chmod 600 a.txt', ['a.txt']],
  ['chmod 700 one/deep', ['one/deep']],
  ['rm one/c.txt', ['one', 'one/c.txt']],
  ['touch one/new.txt', ['one']],
  ['mkdir one/new', ['one']],
  ['mv one/b.txt two/e.txt', ['one', 'one/b.txt', 'two', 'two/e.txt']],
  ['ln -sfn ../a.txt one/b.txt', ['one', 'one/b.txt']],
  ['rm -r one', ['one', 'one/b.txt', 'one/c.txt', 'one/deep', 'one/deep/d.txt']],
  ['mv one three', ['one', 'one/b.txt', 'one/c.txt', 'one/deep', 'one/deep/d.txt']],
  ['mv one/deep three && mkdir one/deep', ['one', 'one/deep', 'one/deep/d.txt']],
  ['rm a.txt && mkdir a.txt', ['a.txt']],
  [': > one/deep/d.txt; sleep 0.03; printf first > one/deep/d.txt', ['one/deep/d.txt']],
];

for (const [command, changed] of CHANGES)
  test(`the thread reports: ${command}`, async (t) => {
    const place = await begin(t);
    bash(place.workspace, command);
    const seen = await look(place);
    assert.deepEqual(seen.changed, changed);
    assert.ok(seen.isWatching);
    assert.deepEqual((await look(place)).changed, changed, 'until it is known');
    await sleep(YOUNG_MS);
    learn(place, changed);
    assert.deepEqual(await look(place), { changed: [], reported: [], isWatching: true });
  });

test('the change right before a look is reported', async (t) => {
  const place = await begin(t);
  for (let time = 0; time < 200; time++) {
    const name = FILES[time % 4] ?? '';
    writeFileSync(path.join(place.workspace, name), `${time}`);
    assert.ok((await look(place)).reported?.includes(path.dirname(name).replace('.', '')), name);
  }
});

test('a folder that was replaced is watched anew', async (t) => {
  const place = await begin(t);
  bash(place.workspace, 'rm -r one && mkdir -p one/deep && echo x > one/deep/d.txt');
  const all = ['one', 'one/b.txt', 'one/c.txt', 'one/deep', 'one/deep/d.txt'];
  assert.deepEqual((await look(place)).changed, all);
  await sleep(YOUNG_MS);
  learn(place, all);
  send(place, NAMES, FOLDERS);
  assert.deepEqual((await look(place)).changed, []);
  bash(place.workspace, 'echo more >> one/deep/d.txt');
  const seen = await look(place);
  assert.deepEqual(seen, { changed: ['one/deep/d.txt'], reported: ['one/deep'], isWatching: true });
});

test('what was in a new folder before it was watched is looked at', async (t) => {
  const place = await begin(t);
  bash(place.workspace, 'mkdir new; echo x > new/f.txt');
  assert.deepEqual((await look(place)).reported, ['']);
  send(place, ['new', 'new/f.txt'], [...FOLDERS, 'new']);
  const seen = await look(place);
  assert.deepEqual(seen.reported, ['new']);
  assert.ok(seen.changed.includes('new/f.txt'));
});

test('a whole look finds what no folder reports', async (t) => {
  const place = await begin(t);
  writeFileSync(path.join(place.outside, 'e.txt'), 'by another link');
  assert.deepEqual((await look(place)).changed, []);
  assert.deepEqual((await look(place, true)).changed, ['two/e.txt']);
});

test('a queue of the kernel that may have overflowed is not relied upon', async (t) => {
  const place = await begin(t);
  const most = Number(execFileSync('cat', ['/proc/sys/fs/inotify/max_queued_events'], {}));
  const half = Math.ceil(most / 2);
  // each is another event than the one before
  const script = `for ((i = 0; i <= ${half}; i++)); do : > two/$((i % 2)); done`;
  bash(place.workspace, script);
  writeFileSync(path.join(place.outside, 'e.txt'), 'by another link');
  const seen = await look(place);
  assert.equal(seen.reported, null);
  assert.ok(seen.changed.includes('two/e.txt'));
  for (let left = 5; left > 0 && (await look(place)).reported === null; left--);
  assert.deepEqual((await look(place)).reported, []);
});

test('where folders can’t be watched, each look is at everything', async (t) => {
  const place = await begin(t);
  const many = Array.from({ length: 10_001 }, (_, index) => `none/${index}`);
  send(place, [], [...FOLDERS, ...many]);
  writeFileSync(path.join(place.outside, 'e.txt'), 'by another link');
  for (const name of ['two/e.txt', 'a.txt']) {
    chmodSync(path.join(place.workspace, name), 0o640);
    const seen = await look(place);
    assert.equal(seen.isWatching, false);
    assert.equal(seen.reported, null);
    assert.ok(seen.changed.includes(name));
  }
});

test('a link in the place of a folder is not followed', async (t) => {
  const place = await begin(t);
  bash(place.workspace, 'rm -r two');
  symlinkSync(place.outside, path.join(place.workspace, 'two'));
  assert.ok((await look(place)).changed.includes('two'));
  send(place, NAMES, FOLDERS);
  await look(place);
  writeFileSync(path.join(place.outside, 'other.txt'), 'other');
  assert.deepEqual((await look(place)).reported, []);
});

test('a thread that has ended says so, and leaves nothing to wait for', async (t) => {
  const place = await begin(t);
  const marks = path.join(place.workspace, '../marks');
  assert.ok(existsSync(marks));
  await place.thread.close();
  assert.equal(await place.thread.look(false), null);
});
