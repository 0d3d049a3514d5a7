import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import {
  collect,
  eventsOf,
  headerOf,
  makeFolder,
  plain,
  readEvents,
  tell,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { InspectableStore } from '../../src/journal/reader.js';
import { initialState, step } from '../../src/machine/machine.js';

/** The promises of any store, kept on disk and in memory alike. */
type Stage = {
  readonly store: InspectableStore;
  /** Says when a session was changed last, where that is not taken from its entries. */
  readonly age: (sessionId: string, changedAt: number) => Promise<void>;
};
const stages: Readonly<Record<string, (context: TestContext) => Promise<Stage>>> = {
  'on disk': async (context) => {
    const folder = await makeFolder(context);
    const age = (sessionId: string, changedAt: number) =>
      utimes(join(folder, 'sessions', `${sessionId}.jsonl`), changedAt / 1_000, changedAt / 1_000);
    return { store: fileJournals({ folder }), age };
  },
  'in memory': async () => ({ store: memoryJournals(), age: async () => undefined }),
};

const promises: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  'what is appended can be read, and opening gives the state from before': async ({ store }) => {
    const header = headerOf('a');
    const drafts = tellFrom(header, 150);
    const journal = await store.create(header);
    for (let start = 0; start < 150; start += 50)
      await journal.append(drafts.slice(start, start + 50));
    assert.equal(journal.seq, 150);
    assert.deepEqual(await readEvents(journal), eventsOf(drafts));
    await journal.close();
    const opened = await store.open('a');
    assert.deepEqual(opened.journal.header, header);
    assert.equal(opened.journal.seq, 150);
    assert.deepEqual(plain(opened.state), plain(drafts.at(-1)?.state));
    assert.equal(opened.tornTail, null);
    await opened.journal.close();
  },

  'an opened journal goes on where it ended': async ({ store }) => {
    const drafts = tellFrom(headerOf('a'), 9);
    const first = await store.create(headerOf('a'));
    await first.append(drafts.slice(0, 4));
    await first.close();
    const { journal } = await store.open('a');
    await journal.append(drafts.slice(4));
    await journal.close();
    const again = await store.open('a');
    assert.deepEqual(await readEvents(again.journal), eventsOf(drafts));
    assert.deepEqual(plain(again.state), plain(drafts.at(-1)?.state));
    await again.journal.close();
  },

  'an empty journal opens in Ready with seq 0': async ({ store }) => {
    await (await store.create(headerOf('a'))).close();
    const { journal, state } = await store.open('a');
    assert.equal(journal.seq, 0);
    assert.deepEqual(plain(state), plain(initialState(headerOf('a').settings)));
    await journal.close();
  },

  'reading from a seq begins there, with the journal open or not': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await journal.append(tellFrom(headerOf('a'), 5));
    const seqs = async (items: AsyncIterable<{ readonly seq: number }>) =>
      (await collect(items)).map(({ seq }) => seq);
    assert.deepEqual(await seqs(journal.read(4)), [4, 5]);
    assert.deepEqual(await seqs(store.read('a', 2)), [2, 3, 4, 5]);
    await journal.close();
    assert.deepEqual(await seqs(store.read('a')), [1, 2, 3, 4, 5]);
    assert.deepEqual(await seqs(store.read('a', 6)), []);
  },

  'what was handed in may be changed later without changing what was written': async ({
    store,
  }) => {
    const journal = await store.create(headerOf('a'));
    const event = { type: 'UserInput', at: 1, text: 'before', mode: 'steer' } as {
      type: 'UserInput';
      at: 1;
      text: string;
      mode: 'steer';
    };
    await journal.append([
      { event, state: step(initialState(headerOf('a').settings), event).state },
    ]);
    event.text = 'after';
    assert.match(JSON.stringify(await readEvents(journal)), /before/);
    await journal.close();
  },

  'a session that is open is locked, and the error names the process': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await assert.rejects(store.open('a'), {
      name: 'JournalError',
      kind: 'locked',
      message: new RegExp(`${process.pid}`),
    });
    await journal.close();
    const { journal: second } = await store.open('a');
    await assert.rejects(store.open('a'), { kind: 'locked' });
    await second.close();
    await (await store.open('a')).journal.close();
  },

  'a closed journal refuses to append, and may be closed twice': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await Promise.all([journal.close(), journal.close()]);
    await assert.rejects(journal.append(tellFrom(headerOf('a'), 1)), {
      kind: 'cannotWrite',
      message: /closed/,
    });
    assert.equal(journal.seq, 0);
  },

  'appending nothing resolves and writes nothing': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await journal.append([]);
    assert.equal(journal.seq, 0);
    await journal.close();
  },

  'closing an old journal a second time leaves the lock of the next one alone': async ({
    store,
  }) => {
    const first = await store.create(headerOf('a'));
    await first.close();
    const { journal } = await store.open('a');
    await first.close();
    await assert.rejects(store.open('a'), { kind: 'locked' });
    await journal.close();
  },

  'a session that does not exist is not found, and the message says what to do': async ({
    store,
  }) => {
    const notFound = { kind: 'notFound', message: /no session "nobody".*List/ };
    await assert.rejects(store.open('nobody'), notFound);
    await assert.rejects(collect(store.read('nobody')), notFound);
    await assert.rejects(store.fork('nobody', 0, 'b', 1), notFound);
    await assert.rejects(store.inspect('nobody'), notFound);
    await assert.rejects(store.open('../../etc/passwd'), { kind: 'notFound' });
  },

  'a session is not made twice, and the first stays as it is': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await journal.append(tellFrom(headerOf('a'), 2));
    await journal.close();
    await assert.rejects(store.create(headerOf('a')), { kind: 'exists' });
    assert.equal((await collect(store.read('a'))).length, 2);
  },

  'a fork holds the entries up to its seq, knows its parent, and goes its own way': async ({
    store,
  }) => {
    const drafts = tellFrom(headerOf('a'), 140);
    const journal = await store.create(headerOf('a'));
    await journal.append(drafts);
    await store.fork('a', 130, 'b', 77);
    const { journal: copy, state } = await store.open('b');
    assert.deepEqual(copy.header, { ...headerOf('b', 77), parent: { sessionId: 'a', seq: 130 } });
    assert.deepEqual(plain(state), plain(drafts[129]?.state));
    assert.deepEqual(await readEvents(copy), eventsOf(drafts.slice(0, 130)));
    await copy.append(tell(3, state));
    assert.equal(copy.seq, 133);
    assert.equal(journal.seq, 140);
    await copy.close();
    await journal.close();
    await (await store.open('b')).journal.close();
  },

  'a fork may be empty or whole': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await journal.append(tellFrom(headerOf('a'), 3));
    await journal.close();
    await store.fork('a', 0, 'none', 1);
    await store.fork('a', 3, 'all', 1);
    assert.equal((await collect(store.read('none'))).length, 0);
    assert.equal((await collect(store.read('all'))).length, 3);
  },

  'a fork out of range is refused and leaves nothing behind': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await journal.append(tellFrom(headerOf('a'), 3));
    await journal.close();
    for (const seq of [4, -1, 1.5]) {
      await assert.rejects(store.fork('a', seq, 'b', 1), {
        kind: 'outOfRange',
        message: /entries 1 to 3.*from 0 to 3/,
      });
    }
    await assert.rejects(store.open('b'), { kind: 'notFound' });
    await assert.rejects(store.fork('a', 1, 'a', 1), { kind: 'exists' });
  },

  'sessions are listed newest first, with the first words of the user': async ({ store, age }) => {
    for (const [sessionId, count, at] of [
      ['old', 4, 0],
      ['empty', 1, 5_000],
      ['new', 4, 10_000],
    ] as const) {
      const header = headerOf(sessionId);
      const drafts = tell(
        count,
        initialState(header.settings),
        () => `  fix the\n\n ${sessionId} ${'bug '.repeat(40)}`,
      );
      const journal = await store.create(header);
      await journal.append(
        drafts.map(({ event, state }) => ({ event: { ...event, at: at + 1_000 }, state })),
      );
      await journal.close();
      await age(sessionId, at + 1_000);
    }
    const sessions = await collect(store.list());
    assert.deepEqual(
      sessions.map(({ sessionId }) => sessionId),
      ['new', 'empty', 'old'],
    );
    const [first, second] = sessions;
    assert.match(first?.title ?? '', /^fix the new bug bug .*…$/);
    assert.equal(first?.title.length, 80);
    assert.deepEqual(
      { ...first, title: '' },
      {
        sessionId: 'new',
        kind: 'agent',
        workspace: '/somewhere',
        createdAt: 1_000,
        changedAt: 11_000,
        parent: null,
        model: 'scripted/test',
        title: '',
      },
    );
    assert.equal(second?.title, '');
  },

  'a store without sessions lists none': async ({ store }) => {
    assert.deepEqual(await collect(store.list()), []);
  },

  'a blob that was kept before any session is there for all of them': async ({ store }) => {
    const sha256 = await store.blobs.put('instructions');
    const journal = await store.create({ ...headerOf('a'), instructions: sha256 });
    assert.equal(await journal.blobs.get(journal.header.instructions), 'instructions');
    await journal.close();
  },

  'what the model is told comes back from the blobs that the header names': async ({ store }) => {
    const [instructions, tools] = [await store.blobs.put('be brief'), await store.blobs.put('[]')];
    const journal = await store.create({ ...headerOf('a'), instructions, tools });
    assert.deepEqual(await journal.frozen(), { instructions: 'be brief', tools: '[]' });
    await journal.close();
    for (const [sessionId, missing] of Object.entries({ b: { instructions }, c: { tools } })) {
      const lacking = await store.create({ ...headerOf(sessionId), ...missing });
      await assert.rejects(lacking.frozen(), {
        kind: 'damaged',
        message: /the blob [ab]{64}, .* is missing/,
      });
      await lacking.close();
    }
  },

  'the state of a session can be looked at while it is open elsewhere': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    const drafts = tellFrom(headerOf('a'), 7);
    await journal.append(drafts);
    const { seq, state } = await store.peek('a');
    assert.deepEqual([seq, plain(state)], [7, plain(drafts.at(-1)?.state)]);
    await assert.rejects(store.peek('nobody'), { kind: 'notFound' });
    await journal.close();
  },

  'blobs come back by the sha256 of their text': async ({ store }) => {
    const { blobs, ...journal } = await store.create(headerOf('a'));
    const sha256 = await blobs.put('hello');
    assert.equal(sha256, '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824');
    assert.equal(await blobs.get(sha256), 'hello');
    assert.equal(await blobs.get('0'.repeat(64)), undefined);
    assert.equal(await blobs.get('../../etc/passwd'), undefined);
    await journal.close();
  },

  'an inspection shows entries and checks without the lock': async ({ store }) => {
    const journal = await store.create(headerOf('a'));
    await journal.append(tellFrom(headerOf('a'), 5));
    const { header, records, damage, tornBytes } = await store.inspect('a');
    assert.deepEqual([header, damage, tornBytes], [headerOf('a'), null, 0]);
    assert.deepEqual(
      records.map(({ check }) => check !== null),
      [true, false, true, false, true],
    );
    await journal.close();
  },
};

for (const [place, make] of Object.entries(stages)) {
  for (const [title, keep] of Object.entries(promises)) {
    test(`${place}: ${title}`, async (context) => keep(await make(context)));
  }
}
