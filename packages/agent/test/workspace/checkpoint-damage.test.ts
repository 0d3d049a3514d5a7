/** Attacks on the store of checkpoints and on restores: damage, and folders with odd names. */

import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { hashBytes } from '../../src/platform/files.js';
import { readRunning, writeRunning } from '../../src/workspace/checkpoints/batch.js';
import { KnownFiles, SavedScan } from '../../src/workspace/checkpoints/known-files.js';
import { performPlan } from '../../src/workspace/checkpoints/restore.js';
import {
  CheckpointStore,
  pruneStores,
  STORE_BYTES_MAX,
  storeFolder,
} from '../../src/workspace/checkpoints/store.js';
import { WorkspaceLister } from '../../src/workspace/checkpoints/workspace-lister.js';
import { KnownRepository } from '../../src/workspace/git.js';
import { type Folder, makeFolder, type WatchedSession } from './whose-changes.js';

const scratch = (): string => realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-damage-')));

const fileOf = (text: string, mode = 0o644) => ({
  kind: 'file' as const,
  sha256: hashBytes(Buffer.from(text)),
  bytes: Buffer.byteLength(text),
  mode,
});

describe('damage to checkpoints', () => {
  it('writes a damaged object again', async () => {
    const folder = scratch();
    const sha256 = await new CheckpointStore(folder).put(Buffer.from('precious'));
    writeFileSync(path.join(folder, 'objects', sha256.slice(0, 2), sha256.slice(2)), 'torn');
    const store = new CheckpointStore(folder);
    assert.equal(await store.get(sha256), null);
    await store.has(sha256);
    await store.put(Buffer.from('precious'));
    assert.equal((await store.get(sha256))?.toString(), 'precious');
  });

  it('reads the last record of running calls, whatever stood in its file before', async () => {
    const store = new CheckpointStore(scratch());
    const record = (callIds: readonly string[]) => ({
      ranFromMs: 1,
      commands: callIds.map((callId) => [callId, 1, null] as const),
      known: [],
      taken: null,
    });
    for (const callIds of [['a'], ['a', 'b'.repeat(5_000)], ['c']]) {
      writeRunning(store, 'session', record(callIds));
      assert.deepEqual(await readRunning(store, 'session'), record(callIds));
    }
    // a kill between the record and the end of its file
    appendFileSync(store.callsFile('session'), 'the rest of a longer one');
    assert.deepEqual(await readRunning(store, 'session'), record(['c']));
    writeRunning(store, 'session', null);
    assert.equal(await readRunning(store, 'session'), null);
    // one that can't be written says nothing any more
    rmSync(store.callsFile('session'));
    mkdirSync(store.callsFile('session'));
    writeRunning(store, 'session', record(['d']));
    assert.equal(await readRunning(store, 'session'), null);
  });

  it('removes what no session needs before a session loses its checkpoints', async () => {
    const stateFolder = scratch();
    const folder = storeFolder(stateFolder, '/workspace');
    const store = new CheckpointStore(folder);
    await store.addManifest('old', { version: 1, by: 'user', changes: [] });
    const left = await store.put(Buffer.from('left by a killed process'));
    const object = path.join(folder, 'objects', left.slice(0, 2), left.slice(2));
    truncateSync(object, STORE_BYTES_MAX + 1);
    utimesSync(object, 0, 0);
    assert.deepEqual(await pruneStores(stateFolder, { isOpen: async () => false }), []);
    assert.equal(existsSync(object), false);
    // one that is opened meanwhile loses nothing either
    await store.addManifest('new', { version: 1, by: 'user', changes: [] });
    let asked = 0;
    const isOpen = async (): Promise<boolean> => ++asked > 2;
    const removed = await pruneStores(stateFolder, { isOpen, isNeedless: () => true });
    assert.equal(removed.length, 1);
  });

  it('keeps what a session without a checkpoint needs, and leaves its store alone while it is open', async () => {
    const stateFolder = scratch();
    const folder = storeFolder(stateFolder, '/workspace');
    const store = new CheckpointStore(folder);
    await store.addManifest('other', { version: 1, by: 'user', changes: [] });
    const precious = await store.put(Buffer.from('precious'));
    const object = path.join(folder, 'objects', precious.slice(0, 2), precious.slice(2));
    utimesSync(object, 0, 0);
    writeFileSync(store.scanFile('scanned'), `{"sha256":"${precious}"}`);
    const isNeedless = (id: string): boolean => id === 'other';
    const isOpen = async (id: string): Promise<boolean> => id === 'scanned';
    assert.deepEqual(await pruneStores(stateFolder, { isOpen, isNeedless }), []);
    const removed = await pruneStores(stateFolder, { isOpen: async () => false, isNeedless });
    assert.deepEqual([removed.length, existsSync(object)], [1, true]);
  });

  it('stores a content again that a prune has removed, and keeps an old one that is put again', async () => {
    const stateFolder = scratch();
    const folder = storeFolder(stateFolder, '/workspace');
    const store = new CheckpointStore(folder);
    const content = Buffer.from('precious');
    const sha256 = await store.put(content);
    const object = path.join(folder, 'objects', sha256.slice(0, 2), sha256.slice(2));
    const prune = async (): Promise<void> => {
      await store.addManifest('old', { version: 1, by: 'user', changes: [] });
      await pruneStores(stateFolder, { isOpen: async () => false, isNeedless: () => true });
    };
    utimesSync(object, 0, 0);
    await prune();
    assert.equal(await store.has(sha256), false);
    await store.put(content);
    assert.equal(await store.has(sha256), true);
    utimesSync(object, 0, 0);
    store.putMany(content);
    await prune();
    assert.equal(await store.has(sha256), true);
  });

  it('leaves no draft when a file vanishes while its content is read', async () => {
    const [workspace, folder] = [scratch(), scratch()];
    const store = new CheckpointStore(folder);
    await store.put(Buffer.from('old'));
    writeFileSync(path.join(workspace, 'a'), 'new', { mode: 0o644 });
    const get = store.get.bind(store);
    // the file becomes a folder after it was looked at
    store.get = async (sha256) => {
      execFileSync('sh', ['-c', 'rm a && mkdir a'], { cwd: workspace });
      return get(sha256);
    };
    const changes = [{ path: 'a', before: fileOf('new'), after: fileOf('old') }];
    const plan = { version: 1 as const, workspace, changes, left: [] };
    const outcome = await performPlan(store, hashBytes(Buffer.from('plan')), plan);
    assert.equal(outcome.left.length, 1);
    assert.deepEqual(readdirSync(workspace), ['a']);
  });

  it('lists a workspace whose name has characters of patterns', async () => {
    const top = scratch();
    const workspace = path.join(top, 'a[b]');
    mkdirSync(workspace);
    writeFileSync(path.join(workspace, 'own'), 'text');
    mkdirSync(path.join(top, ':x'));
    writeFileSync(path.join(top, ':x', 'own'), 'text');
    execFileSync('git', ['init', '-q'], { cwd: top });
    for (const folder of [workspace, path.join(top, ':x')]) {
      const signal = new AbortController().signal;
      const environment = process.env as never;
      const known = new KnownRepository(environment);
      const lister = new WorkspaceLister({ workspace: folder, environment, signal, known });
      const listing = await lister.list(true);
      assert.deepEqual([[...listing.names], listing.clean === null], [['own'], false]);
    }
  });
});

type Refused = {
  readonly title: string;
  /** Only what other sessions claim can't be read. */
  readonly isOfClaims?: true;
  /** What is done, until the store refuses. */
  readonly does: (folder: Folder, session: WatchedSession) => Promise<unknown>;
  readonly refused: (session: WatchedSession) => Promise<unknown>;
  /** What the same says once the store takes it. */
  readonly then: (session: WatchedSession, folder: Folder) => Promise<unknown>;
  readonly expected: unknown;
};

const writeBy = async (session: WatchedSession, { write }: Folder, name: string) =>
  session.bash(`echo 1 > ${name}`, () => write(name, '1\n'));

const changedIn = async ({ checkpoints }: WatchedSession): Promise<readonly string[]> =>
  (await checkpoints.observe()).changes.files().map((file) => path.basename(file));

const refusals: readonly Refused[] = [
  {
    title: 'the changes of a batch',
    does: (folder, session) => writeBy(session, folder, 'one'),
    refused: (session) => session.end(),
    then: async (session, folder) => {
      await writeBy(session, folder, 'two');
      return (await session.end())?.changes.files.map((file) => file.path);
    },
    expected: ['one', 'two'],
  },
  {
    title: 'a sentence for the user',
    does: async (folder, session) => {
      folder.write('one', 'mine\n');
      await folder.rest();
      await session.bash('rm one', () => folder.remove('one'));
    },
    refused: (session) => session.end(),
    then: async (session) => (await session.end())?.leftOut.length,
    expected: 1,
  },
  {
    title: 'what changed, for auto-commit',
    isOfClaims: true,
    does: async (folder, session) => {
      await session.checkpoints.observe();
      await writeBy(session, folder, 'one');
      await session.end();
    },
    refused: (session) => session.checkpoints.observe(),
    then: changedIn,
    expected: ['one'],
  },
  {
    title: 'which files are committed',
    does: async (folder, session) => {
      await writeBy(session, folder, 'one');
      await session.checkpoints.settle([path.join(folder.workspace, 'one')]);
    },
    refused: (session) => session.end(),
    then: async (session, folder) => {
      await session.end();
      return changedIn(folder.session('one')); // another process
    },
    expected: [],
  },
];

for (const { title, isOfClaims = false, does, refused, then, expected } of refusals)
  it(`keeps for later what the store refuses: ${title}`, async (t) => {
    const folder = makeFolder(t, { one: '0\n', two: '0\n' });
    const session = folder.session('one');
    await does(folder, session);
    const lists = path.join(storeFolder(folder.stateFolder, folder.workspace), 'sessions');
    mkdirSync(lists, { recursive: true });
    const damaged = isOfClaims ? path.join(lists, 'other') : lists;
    if (isOfClaims) mkdirSync(damaged);
    else {
      renameSync(lists, `${lists}-aside`);
      writeFileSync(lists, '');
    }
    await assert.rejects(refused(session));
    rmSync(damaged, { recursive: true });
    if (!isOfClaims) renameSync(`${lists}-aside`, lists);
    assert.deepEqual(await then(session, folder), expected);
  });

it('a saved scan that a full disk cuts off is no scan, and is written again', async () => {
  const folder = scratch();
  const store = new CheckpointStore(folder);
  const file = path.join(folder, 'scan');
  const open = (): { known: KnownFiles; scan: SavedScan } => {
    const known = new KnownFiles(folder, store);
    return { known, scan: new SavedScan(file, known, new Set()) };
  };
  const { known, scan } = open();
  await scan.save();
  writeFileSync(path.join(folder, 'a'), 'a');
  await known.note('a');
  rmSync(file);
  symlinkSync('/dev/full', file);
  await scan.save();
  assert.equal(existsSync(file), false);
  await scan.save();
  const later = open();
  assert.equal(await later.scan.load(), true);
  assert.ok(later.known.has('a'));
});

it('a saved scan is gone once there are too many files for one', async () => {
  const folder = scratch();
  const file = path.join(folder, 'scan');
  const known = new KnownFiles(folder, new CheckpointStore(folder));
  const scan = new SavedScan(file, known, new Set());
  writeFileSync(path.join(folder, 'a'), 'a');
  await known.note('a');
  await scan.save();
  assert.ok(existsSync(file));
  for (let count = 0; count < 20_000; count++) known.set(`${count}`, known.get('a') ?? null);
  await scan.save();
  assert.equal(existsSync(file), false);
});

it('of a saved scan with a faulty line nothing counts', async () => {
  const folder = scratch();
  const file = path.join(folder, 'scan');
  const known = new KnownFiles(folder, new CheckpointStore(folder));
  writeFileSync(file, '{"version":3}\n["b",null]\n["named"]\n["a",\n["c",null]\n');
  const named = new Set<string>();
  assert.equal(await new SavedScan(file, known, named).load(), false);
  assert.deepEqual([known.unsaved.size, named.size], [0, 0]);
});
