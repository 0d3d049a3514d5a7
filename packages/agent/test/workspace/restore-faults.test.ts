import assert from 'node:assert/strict';
import fs, { realpathSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import '../../../../test/own-process.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows, isDeep, SEED } from '../../../../test/tier.js';
import { readState } from '../../src/workspace/checkpoints/file-entries.js';
import type { FileState, PathChange } from '../../src/workspace/checkpoints/manifest.js';
import { performPlan } from '../../src/workspace/checkpoints/restore.js';
import { CheckpointStore } from '../../src/workspace/checkpoints/store.js';

/** A restore that is killed at any of its calls of the file system, and one with a rival. */

const CALLS = [
  'chmodSync',
  'fchmodSync',
  'linkSync',
  'lstatSync',
  'mkdirSync',
  'openSync',
  'readdirSync',
  'readFileSync',
  'readlinkSync',
  'renameSync',
  'rmdirSync',
  'symlinkSync',
  'unlinkSync',
  'writeFileSync',
] as const;

const real = { ...fs };
const replaced = Object.fromEntries(CALLS.map((name) => [name, fs[name]]));

/** Called before each of them; after a kill nothing takes effect. */
let beforeCall: ((number: number, call: string) => void) | null = null;
let number = 0;

for (const name of CALLS) {
  const call = fs[name] as (...words: unknown[]) => unknown;
  const counted = (...words: unknown[]): unknown => {
    if (beforeCall !== null) beforeCall(number++, name);
    return call(...words);
  };
  Object.assign(fs, { [name]: counted });
}
syncBuiltinESMExports();
after(() => {
  Object.assign(fs, replaced);
  syncBuiltinESMExports();
});

const watched = async <T>(
  watch: (number: number, call: string) => void,
  work: () => Promise<T>,
): Promise<T | null> => {
  number = 0;
  beforeCall = watch;
  try {
    return await work();
  } catch (error) {
    assert.match(String(error), /killed/);
    return null;
  } finally {
    beforeCall = null;
  }
};

const killedAt = (at: number) => (now: number) => {
  if (now >= at) throw new Error('killed');
};

// ---- Worlds ----

type Entry = string | { readonly link: string } | { readonly mode: number; readonly text: string };
type World = Readonly<Record<string, Entry>>;

const make = (folder: string, world: World): void => {
  real.rmSync(folder, { recursive: true, force: true });
  real.mkdirSync(folder, { recursive: true });
  for (const [name, entry] of Object.entries(world)) {
    const place = path.join(folder, name);
    real.mkdirSync(path.dirname(place), { recursive: true });
    if (typeof entry === 'string') real.writeFileSync(place, entry, { mode: 0o644 });
    else if ('link' in entry) real.symlinkSync(entry.link, place);
    else real.writeFileSync(place, entry.text, { mode: entry.mode });
  }
};

/** What lies below a folder. It never looks through a link: what reads folders whole in Node 22 does. */
const look = (folder: string, below = ''): Readonly<Record<string, string>> => {
  const found: Record<string, string> = {};
  for (const one of real.readdirSync(path.join(folder, below), { withFileTypes: true })) {
    const name = path.join(below, one.name);
    const place = path.join(folder, name);
    const mode = (real.lstatSync(place).mode & 0o777).toString(8);
    if (one.isSymbolicLink()) found[name] = `-> ${real.readlinkSync(place)}`;
    else if (one.isDirectory()) Object.assign(found, { [name]: 'folder' }, look(folder, name));
    else found[name] = `${mode} ${real.readFileSync(place, 'utf8')}`;
  }
  return found;
};

const states = async (
  folder: string,
  store: CheckpointStore,
): Promise<ReadonlyMap<string, FileState>> => {
  const found = new Map<string, FileState>();
  for (const name of Object.keys(look(folder)))
    found.set(name, await readState(folder, name, (bytes) => store.put(bytes)));
  return found;
};

const NOW: World = {
  'changed.txt': 'now',
  'made.txt': 'made',
  'mode.sh': { mode: 0o644, text: 'same' },
  'link-to-file': { link: 'changed.txt' },
  'file-to-link': 'file',
  relinked: { link: 'changed.txt' },
  'folder-to-file/inner/deep.txt': 'deep',
  'file-to-folder': 'file',
  'link-to-folder': { link: 'elsewhere' },
  'folder-to-link/inner.txt': 'inner',
  'kept.txt': 'kept',
};

const THEN: World = {
  'changed.txt': 'then',
  'deleted/deep/in/file.txt': 'deleted',
  'mode.sh': { mode: 0o755, text: 'same' },
  'link-to-file': 'a file',
  'file-to-link': { link: 'mode.sh' },
  relinked: { link: 'mode.sh' },
  'folder-to-file': 'file',
  'file-to-folder/inner/deep.txt': 'deep',
  'link-to-folder/inner.txt': 'inner',
  'folder-to-link': { link: 'file-to-folder' },
  'kept.txt': 'kept',
};

type Prepared = {
  readonly workspace: string;
  readonly store: CheckpointStore;
  readonly changes: readonly PathChange[];
};

const prepare = async (context: TestContext, now: World, then: World): Promise<Prepared> => {
  const folder = realpathSync(temporaryFolder(context, 'restore'));
  const workspace = path.join(folder, 'work');
  const store = new CheckpointStore(path.join(folder, 'store'));
  make(workspace, then);
  const old = await states(workspace, store);
  make(workspace, now);
  const present = await states(workspace, store);
  const absent: FileState = { kind: 'absent' };
  const changes = [...new Set([...old.keys(), ...present.keys()])].flatMap((name) => {
    const [before, later] = [present.get(name) ?? absent, old.get(name) ?? absent];
    return JSON.stringify(before) === JSON.stringify(later)
      ? []
      : [{ path: name, before, after: later }];
  });
  return { workspace, store, changes };
};

const restore = ({ workspace, store, changes }: Prepared) =>
  performPlan(store, 'a'.repeat(64), { version: 1, workspace, changes, left: [] });

/** Each day one of three calls. */
const STEP = isDeep ? 1 : 3;

/** Runs as long as there is one more call. */
const atEachCall = async (run: (at: number) => Promise<void>): Promise<number> => {
  for (let at = SEED % STEP; ; at += STEP) {
    await run(at);
    if (number <= at) return at;
  }
};

test('a restore that was killed at any call is completed by the next one', async (context) => {
  const prepared = await prepare(context, NOW, THEN);
  const { workspace } = prepared;
  const before = look(workspace);
  await restore(prepared);
  make(path.join(workspace, '..', 'then'), THEN);
  const expected = look(path.join(workspace, '..', 'then'));
  assert.deepEqual(look(workspace), expected);
  const calls = await atEachCall(async (at) => {
    make(workspace, NOW);
    await watched(killedAt(at), () => restore(prepared));
    for (const [name, text] of Object.entries(look(workspace)))
      if (!name.includes('.pawl-rewind'))
        assert.ok(
          [before[name], expected[name], 'folder'].includes(text),
          `${at}: ${name} ${text}`,
        );
    const calls = number;
    const outcome = await restore(prepared);
    number = calls;
    assert.deepEqual(outcome.left, [], `killed at ${at}`);
    assert.deepEqual(look(workspace), expected, `killed at ${at}`);
  });
  assert.ok(calls > 100, `${calls}`);
});

type Rival = {
  readonly name: string;
  readonly replaces: boolean;
  readonly kills: boolean;
  write(place: string): void;
};

const writeInto = (place: string): void => real.writeFileSync(place, 'rival');
const writeAnother = (place: string): void => {
  const draft = path.join(path.dirname(place), '..', 'rival-draft');
  real.writeFileSync(draft, 'rival');
  real.renameSync(draft, place);
};

const RIVALS: readonly Rival[] = [
  { name: 'writes into a file', replaces: false, kills: false, write: writeInto },
  { name: 'replaces a file', replaces: true, kills: false, write: writeAnother },
  { name: 'writes before a kill', replaces: false, kills: true, write: writeInto },
  { name: 'replaces before a kill', replaces: true, kills: true, write: writeAnother },
];

const CASES: readonly (readonly [string, World, World])[] = [
  ['changes a file', { 'a.txt': 'now' }, { 'a.txt': 'then' }],
  ['removes a file', { 'a.txt': 'now', b: 'b' }, { b: 'b' }],
  ['makes a file', { b: 'b' }, { 'a.txt': 'then', b: 'b' }],
  ['changes a mode', { 'a.txt': 'same' }, { 'a.txt': { mode: 0o755, text: 'same' } }],
];

for (const rival of RIVALS)
  for (const [what, now, then] of CASES)
    test(`a rival ${rival.name} while a restore ${what}: nothing is lost`, async (context) => {
      const prepared = await prepare(context, now, then);
      const { workspace } = prepared;
      const place = path.join(workspace, 'a.txt');
      const run = async (rivalAt: number, killAt: number): Promise<void> => {
        make(workspace, now);
        let hasWritten = false;
        const watch = (at: number): void => {
          if (at === rivalAt) {
            rival.write(place);
            hasWritten = true;
          }
          killedAt(killAt)(at);
        };
        await watched(watch, () => restore(prepared));
        const calls = number;
        if (hasWritten) {
          const first = look(workspace);
          await restore(prepared);
          const found = look(workspace);
          const note = `rival at ${rivalAt}, killed at ${killAt}: ${JSON.stringify([first, found])}`;
          assert.match(found['a.txt'] ?? '', / rival$/, note);
          assert.deepEqual(
            Object.keys(found).filter((name) => name.includes('pawl')),
            [],
            note,
          );
        }
        number = calls;
      };
      await atEachCall(async (rivalAt) => {
        await run(rivalAt, Number.POSITIVE_INFINITY);
        const calls = number;
        const kills = Array.from({ length: calls }, (_, at) => at).slice(rivalAt + 1);
        const classOf = (at: number): string => `${rivalAt} ${Math.floor(at / 4)}`;
        if (rival.kills)
          for (const killAt of chooseRows(kills, classOf)) await run(rivalAt, killAt);
        number = calls;
      });
    });

test('a folder that was to be a file again and stays because of the files in it is named', async (context) => {
  const prepared = await prepare(context, { 'made/by': 'ours' }, { made: 'a file' });
  real.writeFileSync(path.join(prepared.workspace, 'made/theirs.txt'), 'theirs');
  const { left } = await restore(prepared);
  assert.deepEqual(left, [{ path: 'made', why: 'other files are in it' }]);
  assert.deepEqual(Object.keys(look(prepared.workspace)), ['made', 'made/theirs.txt']);
});

test('a folder in which somebody else has put a file stays, and is no change that was made', async (context) => {
  const prepared = await prepare(context, { 'made/by/us.txt': 'ours' }, {});
  real.writeFileSync(path.join(prepared.workspace, 'made/theirs.txt'), 'theirs');
  const { done, left } = await restore(prepared);
  assert.deepEqual(
    done.map(({ path: name }) => name),
    ['made/by', 'made/by/us.txt'],
  );
  assert.deepEqual(left, []);
  assert.deepEqual(Object.keys(look(prepared.workspace)), ['made', 'made/theirs.txt']);
});
