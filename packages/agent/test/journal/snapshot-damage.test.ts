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
import { decodeSnapshots, encodeSnapshot, loadSnapshot } from '../../src/journal/snapshot.js';
import { initialState } from '../../src/machine/machine.js';
import { foldsAll, pathsIn, stage, storeOf, texts, write } from './snapshot-stage.js';

/** A snapshot that does not fit the journal never counts, and never hides damage of the journal. */

/** Damaged snapshots that are tried; all cuts and all bytes are some 15,000. */
const DAMAGES = countCases(300);

test('a cut or changed snapshot never leads to another state', async (context) => {
  const { journal, snapshot, drafts } = await stage(context, { count: 12 });
  const good = await readFile(snapshot);
  const handle = await open(journal);
  context.after(() => handle.close());
  const load = async (bytes: Buffer) => {
    await writeFile(snapshot, bytes);
    return loadSnapshot({
      handle,
      path: journal,
      sessionId: 'a',
      machine: agentMachine,
      entriesToVisit: 0,
    });
  };
  assert.equal((await load(good))?.start?.fold.seq, 12, 'control: the whole snapshot counts');
  const stride = Math.max(1, Math.floor((2 * good.length) / DAMAGES));
  const found = new Set<number>();
  const assertRight = async (bytes: Buffer, what: string): Promise<void> => {
    const start = (await load(bytes))?.start ?? null;
    if (start === null) return;
    const { seq, state } = start.fold;
    found.add(seq);
    assert.deepEqual(plain(state), plain(drafts[seq - 1]?.state), what);
    assert.ok(seq < 12, `${what}: the last snapshot is not whole`);
  };
  for (let at = 0; at < good.length - 1; at += stride) {
    await assertRight(good.subarray(0, at), `cut at ${at}`);
    const changed = Buffer.from(good);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at);
    await assertRight(changed, `byte ${at} changed`);
  }
  assert.deepEqual(
    [...found].sort((one, other) => one - other),
    [4, 8],
    'earlier snapshots still count',
  );
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

test('a state that does not have the hash of the journal does not count, nor a text that is not there', async (context) => {
  const { store, snapshot, last } = await stage(context, { every: 20 });
  const { fingerprint, version } = agentMachine;
  const owner = { session: 'a', machine: fingerprint, machineVersion: version };
  const [line] = decodeSnapshots(await readFile(snapshot), owner).lines;
  assert.ok(line !== undefined);
  const forge = (from: RegExp, to: string): Promise<void> => {
    const body: unknown = JSON.parse(JSON.stringify(line.body).replace(from, to));
    assert.notDeepEqual(body, line.body);
    return writeFile(snapshot, encodeSnapshot(owner, { ...line, body }, 0).bytes);
  };
  await writeFile(snapshot, encodeSnapshot(owner, line, 0).bytes);
  await foldsAll(store, 0, last); // control
  await forge(/"contextTokens":\d+/, '"contextTokens":7');
  await foldsAll(store, 20, last);
  await rm(snapshot);
  await forge(/\\u0000([jat])\d+\+/, '\\u0000$1987654321+');
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
