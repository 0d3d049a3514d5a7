import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { headerOf, makeFolder, plain, tellFrom } from '../../../../test/kit/journal/story.js';
import { encodeHeader, encodeRecord } from '../../src/journal/codec.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { agentMachine, replay } from '../../src/journal/journaled-agent-machine.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { InspectableStore } from '../../src/journal/reader.js';
import { edgesFingerprint, type JournaledMachine } from '../../src/journal/replay.js';
import { initialState, step } from '../../src/machine/machine.js';
import type { State } from '../../src/machine/state.js';
import type { Stepped } from '../../src/ports/session.js';

const header = headerOf('a');
const drafts = tellFrom(header, 10);

const makeStore = async (folder: string, machine = agentMachine) => {
  const store = fileJournals({ folder, checkEvery: 4, machine });
  const journal = await store.create(header);
  await journal.append(drafts);
  await journal.close();
  return store;
};

/** The agent's machine, but for one thing: it counts an epoch too many. */
const changed: JournaledMachine = {
  ...agentMachine,
  fingerprint: 'another',
  step: (before, event) => {
    const stepped = step(before, event);
    const session = { ...stepped.state.session, epoch: stepped.state.session.epoch + 1 };
    const state: State = { ...stepped.state, session };
    return { ...stepped, state };
  },
};

test('a replay leads to the state from before, on the same path, and verifies every check', async (context) => {
  const { records } = await (await makeStore(await makeFolder(context))).inspect('a');
  const seen: Stepped[] = [];
  const replayed = await replay(header, records, { visit: (stepped) => seen.push(stepped) });
  assert.deepEqual(plain(replayed.state), plain(drafts.at(-1)?.state));
  assert.equal(replayed.seq, 10);
  assert.deepEqual(replayed.mismatches, []);
  assert.equal(replayed.checks, records.filter(({ check }) => check !== null).length);
  let state: State = initialState(header.settings);
  const paths = drafts.map(({ event }) => {
    const stepped = step(state, event);
    state = stepped.state;
    return stepped.path.map(({ id }) => id);
  });
  assert.deepEqual(
    seen.map(({ path }) => path.map(({ id }) => id)),
    paths,
  );
  assert.deepEqual(
    seen.map(({ seq, event }) => ({ seq, event })),
    records.map(({ entry }) => entry),
  );
});

test('a replay stops where it is told to', async (context) => {
  const { records } = await (await makeStore(await makeFolder(context))).inspect('a');
  const seen: Stepped[] = [];
  const { seq, state } = await replay(header, records, {
    at: 7,
    visit: (stepped) => seen.push(stepped),
  });
  assert.deepEqual([seq, seen.length], [7, 7]);
  assert.deepEqual(plain(state), plain(drafts[6]?.state));
});

test('an edited event whose sums were all made to fit is still found, by the state checks', async (context) => {
  const folder = await makeFolder(context);
  const store = await makeStore(folder);
  const { records } = await store.inspect('a');
  const head = encodeHeader(header);
  let { crc } = head;
  const lines = records.map((recorded) => {
    const { seq, event } = recorded.entry;
    const edited =
      seq === 5 && event.type === 'LlmCompleted'
        ? { ...event, usage: { ...event.usage, costUsd: 0 } }
        : event;
    const line = encodeRecord({ ...recorded, entry: { seq, event: edited } }, crc);
    crc = line.crc;
    return line.bytes;
  });
  const path = join(folder, 'sessions', 'a.jsonl');
  const before = await readFile(path);
  await writeFile(path, Buffer.concat([head.bytes, ...lines]));
  assert.notDeepEqual(await readFile(path), before);
  await assert.rejects(store.open('a'), { kind: 'damaged', message: /seq 5.*file was edited/ });
  const { records: edited } = await store.inspect('a');
  assert.equal((await replay(header, edited)).mismatches[0]?.seq, 5);
});

test('a machine that leads elsewhere is refused, and the message says that it has changed', async (context) => {
  const folder = await makeFolder(context);
  await makeStore(folder);
  const store = fileJournals({ folder, machine: changed });
  const bytes = await readFile(join(folder, 'sessions', 'a.jsonl'));
  await assert.rejects(store.open('a'), {
    kind: 'damaged',
    message: /seq 1 .*machine has changed.*another/,
  });
  assert.deepEqual(await readFile(join(folder, 'sessions', 'a.jsonl')), bytes);
});

test('another machine that leads to the same states is let in', async (context) => {
  const folder = await makeFolder(context);
  await makeStore(folder);
  const { journal } = await fileJournals({
    folder,
    machine: { ...agentMachine, fingerprint: 'another' },
  }).open('a');
  assert.equal(journal.seq, 10);
  await journal.close();
});

test('a fingerprint depends on every edge', () => {
  const edge = {
    id: 'a',
    from: 'a',
    event: null,
    when: '',
    to: 'b',
    as: '',
    then: '',
    kind: 'go',
  } as const;
  assert.equal(edgesFingerprint([edge]), edgesFingerprint([{ ...edge }]));
  assert.notEqual(edgesFingerprint([edge]), edgesFingerprint([{ ...edge, to: 'c' }]));
  assert.notEqual(edgesFingerprint([edge]), edgesFingerprint([edge, edge]));
});

const stores: Readonly<Record<string, (folder: string) => InspectableStore>> = {
  'on disk': (folder) => fileJournals({ folder }),
  'in memory': () => memoryJournals(),
};
for (const [place, storeOf] of Object.entries(stores)) {
  test(`${place}: a store replays a session as its records are replayed`, async (context) => {
    const store = storeOf(await makeFolder(context));
    const journal = await store.create(header);
    await journal.append(tellFrom(header, 140));
    await journal.close();
    const { records, ...look } = await store.inspect('a');
    for (const at of [undefined, 0, 9, 140, 200]) {
      const limits = at === undefined ? {} : { at };
      const direct: Stepped[] = [];
      const kept: Stepped[] = [];
      const stored = await store.replay('a', {
        ...limits,
        visit: (stepped) => direct.push(stepped),
      });
      const replayed = await replay(header, records, {
        ...limits,
        visit: (stepped) => kept.push(stepped),
      });
      assert.equal(JSON.stringify(stored), JSON.stringify({ ...look, ...replayed }));
      assert.equal(JSON.stringify(direct), JSON.stringify(kept));
      assert.equal(direct.length, Math.min(at ?? 140, 140));
    }
    await assert.rejects(store.replay('nobody'), { kind: 'notFound' });
  });
}
