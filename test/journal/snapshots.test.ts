import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { initialState, step } from '../../src/agent/machine.js';
import { collectPastFiles } from '../../src/agent/past-files.js';
import type { State } from '../../src/agent/state.js';
import { fileJournals } from '../../src/journal/file-store.js';
import type { JournaledMachine } from '../../src/journal/journaled-machine.js';
import type { VisitedOpening } from '../../src/journal/read/inspect.js';
import { agentMachine } from '../../src/journal/read/replay.js';
import { loadSnapshot } from '../../src/journal/snapshot/load-snapshot.js';
import { decodeSnapshots, encodeSnapshot } from '../../src/journal/snapshot/snapshot-format.js';
import type { EntryDraft, Header, Journal } from '../../src/ports/journal.js';
import type { AgentTypes } from '../../src/ports/machine-types.js';
import { begin, completed, edit, ended, eventOf, type Given, input, started } from '../agent/given.js';
import { play } from '../agent/trace-player.js';
import { headerOf, linesOf, makeFolder, plain, tell, tellFrom } from './story.js';

/** Snapshots save the fold of a long journal. They never lead to another state than the journal does. */

const atOnce = { every: 1, later: (work: () => void): void => work() };
const TRACES = new URL('../traces/', import.meta.url);
/** Entries that are written at once, and followed by a snapshot. */
const GROUP = 3;
/** Damaged snapshots that are tried; all cuts and all bytes are some 15,000. */
const DAMAGES = Number(process.env.PAWL_SNAPSHOT_COUNT ?? 300);

const storeOf = (folder: string, every = 1, machine: JournaledMachine = agentMachine) =>
  fileJournals({ folder, snapshots: { ...atOnce, every }, machine });
type Store = ReturnType<typeof storeOf>;

const pathsIn = (folder: string, sessionId = 'a') => ({
  journal: join(folder, 'sessions', `${sessionId}.jsonl`),
  snapshot: join(folder, 'sessions', `${sessionId}.snapshot`),
  mark: join(folder, 'sessions', `${sessionId}.mark`),
});

const write = async (
  store: Store,
  header: Header,
  drafts: readonly EntryDraft[],
  group = 1,
): Promise<void> => {
  const journal = await store.create(header);
  for (let from = 0; from < drafts.length; from += group)
    await appendAndRest(journal, drafts.slice(from, from + group));
  await journal.close();
};

/** Appends, and lets a snapshot be written, as a session does while it waits for the model. */
const appendAndRest = async (journal: Journal, drafts: readonly EntryDraft[]): Promise<void> => {
  await journal.append(drafts);
  await setImmediate();
};

/** Opens and closes the session: its state, what is told of files, and the steps that were folded. */
const openOnce = async (store: Store, options: VisitedOpening<AgentTypes> = {}, sessionId = 'a') => {
  const folded: { seq: number; before: State }[] = [];
  const visit = ({ seq, before }: { seq: number; before: State }): void => void folded.push({ seq, before });
  const { journal, state, past } = await store.open(sessionId, { visitLast: 0, ...options, visit });
  await journal.close();
  return { state, past, folded };
};

const texts = (index: number): string => `line ${index}\n"quoted" äöü € ${'x'.repeat(300)}${index}`;

const stage = async (context: TestContext, { count = 20, every = 4, machine = agentMachine } = {}) => {
  const folder = await makeFolder(context);
  const store = storeOf(folder, every, machine);
  const drafts = tell(count, initialState(headerOf('a').settings), texts);
  await write(store, headerOf('a'), drafts);
  return { folder, store, drafts, ...pathsIn(folder), last: plain(drafts.at(-1)?.state) };
};

for (const file of readdirSync(TRACES).filter((name) => name.endsWith('.trace'))) {
  test(`a snapshot leads to the states of: ${file.replace('.trace', '').replaceAll('-', ' ')}`, async (context) => {
    const folder = await makeFolder(context);
    const { steps } = play(readFileSync(new URL(file, TRACES), 'utf8'));
    const settings = steps[0]?.before.session.settings ?? headerOf('a').settings;
    const store = storeOf(folder);
    const drafts = steps.map(({ event, step }) => ({ event, state: step.state }));
    await write(store, { ...headerOf('a'), settings }, drafts, GROUP);
    const collector = collectPastFiles();
    for (const { event } of drafts) collector.see(event);
    for (const visitLast of [0, Math.floor(steps.length / 2)]) {
      const { state, past, folded } = await openOnce(store, { visitLast });
      assert.deepEqual(plain(state), plain(drafts.at(-1)?.state));
      assert.deepEqual(past, collector.past());
      const most = drafts.length - visitLast;
      const first = most === drafts.length ? most : most - (most % GROUP);
      assert.deepEqual(
        folded.map(({ seq }) => seq),
        drafts.map((_, index) => index + 1).slice(first),
      );
      if (first > 0 && folded.length > 0)
        assert.deepEqual(
          plain(folded[0]?.before),
          plain(drafts[first - 1]?.state),
          'the state of a snapshot',
        );
    }
  });
}

test('snapshots go on over many openings, and the state stays that of the journal', async (context) => {
  const { store, folder, snapshot, last } = await stage(context, { count: 6, every: 3 });
  let state = (await openOnce(store)).state;
  assert.deepEqual(plain(state), last);
  for (let life = 1; life <= 5; life++) {
    const before = (await linesOf(snapshot)).length;
    const { journal, state: opened } = await store.open('a');
    const drafts = tell(4, opened, texts);
    for (const draft of drafts) await appendAndRest(journal, [draft]);
    await journal.close();
    state = drafts.at(-1)?.state ?? opened;
    assert.ok((await linesOf(snapshot)).length > before, 'it was appended to, and not begun again');
    const { folded, state: again } = await openOnce(store);
    assert.ok(folded.length <= 3, `${folded.length} entries were folded`);
    assert.deepEqual(plain(again), plain(state));
    const replayed = await storeOf(folder).replay('a');
    assert.deepEqual(plain(replayed.state), plain(state));
    assert.deepEqual(replayed.mismatches, []);
  }
});

/** A session that edits a file in each round. */
const editRounds = (header: Header, rounds: number): EntryDraft[] => {
  const drafts: EntryDraft[] = [];
  const take = (given: Given): void => {
    const before = drafts.at(-1)?.state ?? initialState(header.settings);
    const event = eventOf(given, before);
    drafts.push({ event, state: step(before, event).state });
  };
  take(begin);
  take(input('repair them'));
  for (let round = 1; round <= rounds; round++) {
    const id = `call-${round}`;
    take(completed({ text: 'I edit.', calls: [edit(id)] }));
    take((state) => ({ ...eventOf(started(id), state), before: `${round}`, after: `${round + 1}` }));
    take((state) => {
      const event = eventOf(ended(id), state);
      if (event.type !== 'ToolCompleted') return event;
      const seen = [{ path: `/project/${round % 3}`, sha256: `${round}` }];
      return { ...event, outcome: { ...event.outcome, seen } };
    });
  }
  return drafts;
};

test('files that were seen before a snapshot are still known, over several openings', async (context) => {
  const store = storeOf(await makeFolder(context), 4);
  const header = headerOf('a');
  const drafts = editRounds(header, 9);
  const collector = collectPastFiles();
  for (const { event } of drafts) collector.see(event);
  const [first, rest] = [drafts.slice(0, 11), drafts.slice(11)];
  await write(store, header, first);
  for (const draft of rest) {
    const { journal } = await store.open('a');
    await journal.append([draft]);
    await journal.close();
  }
  const { past, folded, state } = await openOnce(store);
  assert.deepEqual(past, collector.past());
  assert.equal(past?.seen.size, 3);
  assert.ok(folded.length < 4);
  assert.deepEqual(plain(state), plain(drafts.at(-1)?.state));
});

test('a cut or changed snapshot never leads to another state', async (context) => {
  const { journal, snapshot, drafts } = await stage(context, { count: 12 });
  const good = await readFile(snapshot);
  const handle = await open(journal);
  context.after(() => handle.close());
  const load = async (bytes: Buffer) => {
    await writeFile(snapshot, bytes);
    return loadSnapshot({ handle, path: journal, sessionId: 'a', machine: agentMachine, foldLast: 0 });
  };
  assert.equal((await load(good))?.fold.seq, 12, 'control: the whole snapshot counts');
  const stride = Math.max(1, Math.floor((2 * good.length) / DAMAGES));
  const found = new Set<number>();
  const assertRight = async (bytes: Buffer, what: string): Promise<void> => {
    const loaded = await load(bytes);
    if (loaded === null) return;
    const { seq, state } = loaded.fold;
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

const foldsAll = async (store: Store, count: number, last: unknown, sessionId = 'a'): Promise<void> => {
  const { folded, state } = await openOnce(store, {}, sessionId);
  assert.equal(folded.length, count);
  assert.deepEqual(plain(state), last);
};

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
  const owner = { session: 'a', machine: agentMachine.fingerprint };
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

test('long texts are not stored again, and the file is yours alone', async (context) => {
  const { journal, snapshot } = await stage(context, { count: 60, every: 10 });
  const [stored, all] = [await stat(snapshot), await stat(journal)];
  assert.ok(!(await readFile(snapshot, 'utf8')).includes('xxxxxxxxxxxxxxxxxxxx'));
  assert.ok(stored.size < all.size, `${stored.size} of ${all.size} bytes`);
  assert.equal(stored.mode & 0o777, 0o600);
});

test('a session goes on where no snapshot can be written, and leaves none for a journal that was removed', async (context) => {
  const { store, snapshot, last } = await stage(context);
  await rm(snapshot);
  await mkdir(snapshot);
  const { journal, state } = await store.open('a');
  await journal.append(tell(4, state));
  await journal.close();
  await rm(snapshot, { recursive: true });
  assert.equal((await openOnce(store)).folded.length, 24);
  assert.notDeepEqual(plain((await openOnce(store)).state), last);
  const opened = await store.open('a');
  await opened.journal.append(tell(8, opened.state).slice(0, 1));
  await rm(snapshot, { force: true });
  await rm(pathsIn(join(snapshot, '..', '..')).journal);
  await assert.rejects(opened.journal.close(), { kind: 'foreignChange' });
  await assert.rejects(stat(snapshot), { code: 'ENOENT' });
});
