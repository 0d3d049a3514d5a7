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
import { until } from '../../../../test/until.js';
import { lookAt } from '../../src/workspace/checkpoints/file-entries.js';
import { FolderWatch, type Reports } from '../../src/workspace/checkpoints/folder-watch.js';
import { KnownFiles } from '../../src/workspace/checkpoints/known-files.js';
import { WorkspaceLooks } from '../../src/workspace/checkpoints/looks.js';
import { CheckpointStore } from '../../src/workspace/checkpoints/store.js';
import type { Listing, WorkspaceLister } from '../../src/workspace/checkpoints/workspace-lister.js';

/** Looks at a large workspace find each change, and look at no more than they have to. */

const FILES = ['a.txt', 'one/b.txt', 'one/c.txt', 'one/deep/d.txt', 'two/e.txt', 'two/ü.txt'];
const FOLDERS = ['', 'one', 'one/deep', 'two'];
const toName = (name: string): string => Buffer.from(name).toString('latin1');
const NAMES = [...FILES, ...FOLDERS.slice(1)].map(toName);
/** Git lists them, though they are not there: the workspace is a large one. */
const MANY = Array.from({ length: 2_001 }, (_, index) => `none/${index}`);
/** Stamps of younger files are not relied upon. */
const YOUNG_MS = 40;

type Place = {
  readonly workspace: string;
  readonly outside: string;
  readonly known: KnownFiles;
  readonly looks: WorkspaceLooks;
  /** What is listed from now on; `folders`: what is watched. */
  list(names: readonly string[], folders: readonly string[]): void;
};

/** The names are known as they are now. */
const learn = ({ workspace, known }: Place, names: readonly string[]): void => {
  for (const name of names) {
    const entry = lookAt(workspace, name);
    known.set(name, entry && { entry, content: { kind: 'git', blob: '' } });
  }
};

const look = async ({ looks }: Place, isWhole = false) => {
  const { changed } = await looks.look(isWhole);
  return { changed: [...changed.keys()].sort(), isWatching: looks.isWatching };
};

const NOTHING = { changed: [], isWatching: true };

/** A watched workspace in which all is known, and a second link of one file outside. */
const begin = async (t: TestContext): Promise<Place> => {
  const folder = realpathSync(temporaryFolder(t, 'watch'));
  const [workspace, outside] = [path.join(folder, 'work'), path.join(folder, 'outside')];
  for (const one of [...FOLDERS, '../outside'])
    mkdirSync(path.join(workspace, one), { recursive: true });
  for (const name of FILES) writeFileSync(path.join(workspace, name), 'first');
  linkSync(path.join(workspace, 'two/e.txt'), path.join(outside, 'e.txt'));
  await sleep(YOUNG_MS);
  const known = new KnownFiles(workspace, new CheckpointStore(path.join(folder, 'store')));
  let listing: Listing = { names: new Set(), clean: null, limit: null };
  const lister = { folders: new Set<string>(), list: async () => listing };
  const looks = new WorkspaceLooks(workspace, path.join(folder, 'marks'), {
    known,
    named: new Set(),
    lister: lister as unknown as WorkspaceLister, // no more of it is called
  });
  t.after(() => looks.close());
  const list = (names: readonly string[], folders: readonly string[]): void => {
    listing = { ...listing, names: new Set([...names, ...MANY]) };
    lister.folders = new Set(folders);
  };
  const place = { workspace, outside, known, looks, list };
  learn(place, NAMES);
  list(FILES.map(toName), FOLDERS);
  assert.deepEqual(await look(place), NOTHING);
  assert.deepEqual(await look(place), NOTHING);
  return place;
};

/** A file that differs unseen: only a look at everything finds it. */
const hide = (place: Place): void =>
  writeFileSync(path.join(place.outside, 'e.txt'), 'by another link');

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
  test(`a look finds: ${command}`, async (t) => {
    const place = await begin(t);
    bash(place.workspace, command);
    assert.deepEqual(await look(place), { changed, isWatching: true });
    assert.deepEqual((await look(place)).changed, changed, 'until it is known');
    await sleep(YOUNG_MS);
    learn(place, changed);
    assert.deepEqual(await look(place), NOTHING);
  });

test('the change right before a look is found', async (t) => {
  const place = await begin(t);
  for (let time = 0; time < 200; time++) {
    const name = FILES[time % 4] ?? '';
    writeFileSync(path.join(place.workspace, name), `${time}`);
    assert.ok((await look(place)).changed.includes(name), name);
    learn(place, [name]);
  }
});

// The second folder may have the inode of the first one.
test('a folder that was replaced is watched anew', async (t) => {
  const place = await begin(t);
  bash(place.workspace, 'rm -r one && mkdir -p one/deep && echo x > one/deep/d.txt');
  const all = ['one', 'one/b.txt', 'one/c.txt', 'one/deep', 'one/deep/d.txt'];
  assert.deepEqual((await look(place)).changed, all);
  await sleep(YOUNG_MS);
  learn(place, all);
  assert.deepEqual(await look(place), NOTHING);
  bash(place.workspace, 'echo more >> one/deep/d.txt');
  assert.deepEqual((await look(place)).changed, ['one/deep/d.txt']);
});

test('what was in a folder before it was watched is looked at, also in one that came back', async (t) => {
  const place = await begin(t);
  bash(place.workspace, 'mkdir new; echo x > new/f.txt');
  place.list([...FILES.map(toName), 'new/f.txt'], [...FOLDERS, 'new']);
  assert.deepEqual((await look(place)).changed, ['new', 'new/f.txt']);
  await sleep(YOUNG_MS);
  for (const command of ['mv new ../aside', 'mv ../aside new; echo y > new/f.txt']) {
    learn(place, ['new', 'new/f.txt']);
    bash(place.workspace, command);
    assert.deepEqual((await look(place)).changed, ['new', 'new/f.txt']);
  }
});

test('a whole look finds what no folder reports', async (t) => {
  const place = await begin(t);
  hide(place);
  assert.deepEqual((await look(place)).changed, []);
  assert.deepEqual((await look(place, true)).changed, ['two/e.txt']);
});

test('a queue of the kernel that may have overflowed is not relied upon', async (t) => {
  const place = await begin(t);
  const most = Number(execFileSync('cat', ['/proc/sys/fs/inotify/max_queued_events'], {}));
  const half = Math.ceil(most / 2);
  // each is another event than the one before
  const script = `for ((i = 0; i <= ${half}; i++)); do : > one/$((i % 2)); done`;
  bash(place.workspace, script);
  hide(place);
  assert.ok((await look(place)).changed.includes('two/e.txt'));
  // as soon as the queue is empty, looks rely on it again
  let time = 0;
  await until('a change that is not reported is not looked for', async () => {
    await sleep(YOUNG_MS);
    learn(place, NAMES);
    await look(place);
    writeFileSync(path.join(place.outside, 'e.txt'), `${time++}`);
    return (await look(place)).changed.length === 0;
  });
});

test('where folders can’t be watched, each look is at everything', async (t) => {
  const place = await begin(t);
  const many = Array.from({ length: 10_001 }, (_, index) => `many/${index}`);
  place.list(FILES.map(toName), [...FOLDERS, ...many]);
  hide(place);
  assert.equal((await look(place)).isWatching, false);
  for (const name of ['two/e.txt', 'a.txt']) {
    chmodSync(path.join(place.workspace, name), 0o640);
    assert.ok((await look(place)).changed.includes(name));
  }
});

test('a link in the place of a folder is not followed', async (t) => {
  const place = await begin(t);
  bash(place.workspace, 'rm -r two');
  symlinkSync(place.outside, path.join(place.workspace, 'two'));
  const gone = ['two', 'two/e.txt', toName('two/ü.txt')];
  assert.deepEqual((await look(place)).changed, gone);
  await sleep(YOUNG_MS);
  learn(place, gone);
  writeFileSync(path.join(place.outside, 'other.txt'), 'other');
  assert.deepEqual((await look(place)).changed, []);
});

test('a watch that was closed reports that anything may have changed, and leaves no files', async (t) => {
  const folder = realpathSync(temporaryFolder(t, 'watch'));
  const marks = path.join(folder, 'marks');
  const watch = new FolderWatch(folder, marks);
  t.after(() => watch.close());
  const [before, after]: (Reports | null)[] = [await watch.take(), null];
  assert.deepEqual([before?.names, existsSync(marks)], [new Set(), true], 'control');
  watch.close();
  assert.deepEqual([await watch.take(), existsSync(marks)], [after, false]);
});
