import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import {
  begin,
  completed,
  edit,
  ended,
  eventOf,
  type Given,
  input,
  started,
} from '../../../../test/kit/agent/given.js';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { headerOf, makeFolder, plain, tell } from '../../../../test/kit/journal/story.js';
import { chooseRows } from '../../../../test/tier.js';
import { initialState, step } from '../../src/machine/machine.js';
import { collectPastFiles } from '../../src/machine/seen-files.js';
import type { EntryDraft, Header } from '../../src/ports/journal.js';
import {
  appendAndRest,
  openOnce,
  pathsIn,
  stage,
  storeOf,
  texts,
  write,
} from './snapshot-stage.js';

/** Snapshots save the fold of a long journal. They never lead to another state than the journal does. */

const TRACES = new URL('../../../../test/traces/', import.meta.url);
/** Entries that are written at once, and followed by a snapshot. */
const GROUP = 3;

const traces = readdirSync(TRACES).filter((name) => name.endsWith('.trace'));
for (const file of chooseRows(traces, undefined, 20)) {
  test(`a snapshot leads to the states of: ${file.replace('.trace', '').replaceAll('-', ' ')}`, async (context) => {
    const folder = await makeFolder(context);
    const { steps } = play(readFileSync(new URL(file, TRACES), 'utf8'));
    const settings = steps[0]?.before.session.settings ?? headerOf('a').settings;
    const store = storeOf(folder);
    const drafts = steps.map(({ event, step }) => ({ event, state: step.state }));
    await write(store, { ...headerOf('a'), settings }, drafts, GROUP);
    const collector = collectPastFiles();
    for (const { event } of drafts) collector.see(event);
    const count = drafts.length;
    for (const visitLast of [0, 1, GROUP, count]) {
      // a reader of a session that another process has open
      const seen: number[] = [];
      const visit = ({ seq }: { readonly seq: number }): void => void seen.push(seq);
      const replayed = await store.replay('a', { visit, visitLast });
      const { state, past, folded } = await openOnce(store, { visitLast });
      assert.deepEqual(plain(replayed.state), plain(state));
      assert.deepEqual(
        seen,
        folded.map(({ seq }) => seq),
      );
      assert.deepEqual(plain(state), plain(drafts.at(-1)?.state));
      // a snapshot does not hold the time of the last entry: without entries after it, the journal is asked
      const lastAt = past?.lastAt ?? collector.past().lastAt;
      assert.deepEqual({ ...past, lastAt }, collector.past());
      const first = count - folded.length;
      assert.ok(folded.length >= visitLast);
      assert.ok(first > 0 || visitLast >= GROUP || count <= 2 * GROUP, 'a snapshot was used');
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

test('snapshots follow each other over many openings, and the state stays that of the journal', async (context) => {
  const { store, folder, last } = await stage(context, { count: 6, every: 3 });
  let state = (await openOnce(store)).state;
  assert.deepEqual(plain(state), last);
  for (let life = 1; life <= 5; life++) {
    const { journal, state: opened } = await store.open('a');
    const drafts = tell(4, opened, texts);
    for (const draft of drafts) await appendAndRest(journal, [draft]);
    await journal.close();
    state = drafts.at(-1)?.state ?? opened;
    for (const [visitLast, most] of [
      [0, 3],
      [2, 8],
    ] as const) {
      const { folded, state: again } = await openOnce(store, { visitLast });
      assert.ok(folded.length >= visitLast && folded.length <= most, `${folded.length} folded`);
      assert.deepEqual(plain(again), plain(state));
    }
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
    take((state) => ({
      ...eventOf(started(id), state),
      before: `${round}`,
      after: `${round + 1}`,
    }));
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

test('a snapshot is plain JSON of all texts, each once, and yours alone', async (context) => {
  const { snapshot } = await stage(context, { count: 61, every: 10 });
  const content: unknown = JSON.parse(await readFile(snapshot, 'utf8'));
  const stored = JSON.stringify(content);
  for (let index = 2; index < 50; index++)
    assert.equal(stored.split(JSON.stringify(texts(index))).length, 2, `text ${index}`);
  assert.equal((await stat(snapshot)).mode & 0o777, 0o600);
});

test('a session that grows is stored each time that it has grown by an eighth', async (context) => {
  const { store, snapshot } = await stage(context, { count: 100, every: 4 });
  const { journal, state } = await store.open('a');
  const written: number[] = [];
  for (const [index, draft] of tell(40, state, texts).entries()) {
    const before = (await stat(snapshot)).ino;
    await appendAndRest(journal, [draft]);
    if ((await stat(snapshot)).ino !== before) written.push(index + 1);
  }
  await journal.close();
  assert.deepEqual(written, [13, 28]);
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
