import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, open, readFile, rm, writeFile } from 'node:fs/promises';
import test from 'node:test';
import {
  headerOf,
  linesOf,
  makeFolder,
  plain,
  tell,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { countCases } from '../../../../test/tier.js';
import { agentMachine } from '../../src/journal/journaled-agent-machine.js';
import {
  decodeSnapshot,
  encodeSnapshot,
  loadSnapshot,
  snapshotOwner,
} from '../../src/journal/snapshot.js';
import { initialState } from '../../src/machine/machine.js';
import { foldsAll, pathsIn, stage, storeOf, texts, write } from './snapshot-stage.js';

/** A snapshot that does not fit the journal never counts, and never hides damage of the journal. */

/** Damaged snapshots that are tried; all cuts and all bytes are some 15,000. */
const DAMAGES = countCases(300);

test('a cut or changed snapshot does not count', async (context) => {
  const { journal, snapshot } = await stage(context, { count: 12 });
  const good = await readFile(snapshot);
  const handle = await open(journal);
  context.after(() => handle.close());
  const load = async (bytes: Buffer) => {
    await writeFile(snapshot, bytes);
    return loadSnapshot({
      handle,
      path: journal,
      header: headerOf('a'),
      machine: agentMachine,
      entriesToVisit: 0,
    });
  };
  assert.equal((await load(good))?.fold.seq, 12, 'control: the whole snapshot counts');
  const stride = Math.max(1, Math.floor((2 * good.length) / DAMAGES));
  for (let at = 0; at < good.length; at += stride) {
    assert.equal(await load(good.subarray(0, at)), null, `cut at ${at}`);
    const changed = Buffer.from(good);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at);
    assert.equal(await load(changed), null, `byte ${at} changed`);
  }
});

test('a snapshot of another session, of a fork or of a longer journal does not count', async (context) => {
  const { store, folder, journal, snapshot, mark, drafts, last } = await stage(context);
  await foldsAll(store, 0, last); // control: its own counts
  const other = tellFrom(headerOf('b'), 20);
  await write(store, headerOf('b'), other);
  await copyFile(snapshot, pathsIn(folder, 'b').snapshot);
  await foldsAll(store, 20, plain(other.at(-1)?.state), 'b');
  await store.fork('a', 16, 'c', 2_000);
  await copyFile(snapshot, pathsIn(folder, 'c').snapshot);
  await foldsAll(store, 16, plain(drafts[15]?.state), 'c');
  await rm(mark);
  await writeFile(journal, `${(await linesOf(journal)).slice(0, 15).join('\n')}\n`);
  await foldsAll(store, 14, plain(drafts[13]?.state));
});

test('a snapshot of another machine does not count', async (context) => {
  const { folder, store, last } = await stage(context, {
    machine: { ...agentMachine, fingerprint: 'another' },
  });
  await foldsAll(store, 0, last); // control
  await foldsAll(storeOf(folder), 20, last);
});

const FORGED: readonly (readonly [name: string, from: RegExp, to: string])[] = [
  ['another state', /"contextTokens":\d+/g, '"contextTokens":7'],
  ['another hash of a state', /"check":"./g, '"check":"_'],
  ['another hash of the messages', /"chain":"./g, '"chain":"_'],
  ['another number of the entry', /"seq":20/, '"seq":19'],
  ['another checksum of the entry', /"crc":(\d)/g, '"crc":1$1'],
  ['another size of the journal', /"size":(\d)/g, '"size":1$1'],
  ['another sum of the journal', /"sum":(\d)/g, '"sum":1$1'],
  ['another length of the entry', /"length":(\d)/g, '"length":1$1'],
  ['a message more than there is', /"shared":\d+/g, '"shared":99'],
  ['no state', /"states":\[.*\],"past"/, '"states":[],"past"'],
];

test('a snapshot that names another state or entry than the journal does not count', async (context) => {
  const { store, snapshot, last } = await stage(context);
  const owner = snapshotOwner(agentMachine, 'a');
  const content = decodeSnapshot(await readFile(snapshot), owner);
  assert.ok(content !== null);
  for (const [name, from, to] of FORGED) {
    const forged = JSON.parse(JSON.stringify(content).replace(from, to)) as typeof content;
    assert.notDeepEqual(forged, content, name);
    await writeFile(snapshot, encodeSnapshot(owner, forged));
    await foldsAll(store, 20, last);
    await writeFile(snapshot, encodeSnapshot(owner, content));
    await foldsAll(store, 0, last); // control
  }
  const early = { ...content, version: 1 }; // the form of earlier versions
  await writeFile(snapshot, encodeSnapshot(owner, early));
  await foldsAll(store, 20, last);
});

test('damage of the journal before the snapshot is found as without one', async (context) => {
  const { store, journal } = await stage(context);
  const bytes = await readFile(journal);
  for (const at of [bytes.indexOf('line 2'), bytes.indexOf('"at":1005'), bytes.length - 3]) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    await writeFile(journal, changed);
    await assert.rejects(store.open('a'), { kind: 'damaged' });
  }
});

/** Changes a byte as a bad disk does: size and time of the file stay. */
const rot = async (path: string, at: number): Promise<void> => {
  const bytes = await readFile(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  execFileSync('touch', ['-r', path, `${path}.time`]);
  await writeFile(path, bytes);
  execFileSync('touch', ['-r', `${path}.time`, path]);
};

for (const { since, had, every, next } of [
  { since: 'it was written', had: 0, every: 8, next: 8 },
  { since: 'it was folded', had: 12, every: 100, next: 20 },
  { since: 'a snapshot of its beginning was loaded', had: 12, every: 12, next: 8 },
])
  for (const isDamaged of [true, false])
    test(
      isDamaged
        ? `a snapshot does not hide that a byte has changed since ${since}`
        : `control: a snapshot counts if nothing has changed since ${since}`,
      async (context) => {
        const folder = await makeFolder(context);
        const { journal: path } = pathsIn(folder);
        const drafts = tell(20, initialState(headerOf('a').settings), texts);
        await write(storeOf(folder, every), headerOf('a'), drafts.slice(0, had), Math.max(1, had));
        const store = storeOf(folder, next);
        const { journal } = await store.open('a');
        await journal.append(drafts.slice(had, had + 7));
        const word = every === had ? `line ${had + 2}` : 'line 2';
        if (isDamaged) await rot(path, (await readFile(path)).indexOf(word));
        await journal.append(drafts.slice(had + 7, had + 8));
        await journal.close();
        if (isDamaged) await assert.rejects(store.open('a'), { kind: 'damaged' });
        else await foldsAll(store, 0, plain(drafts[had + 7]?.state));
      },
    );
