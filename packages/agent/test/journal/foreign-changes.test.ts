import assert from 'node:assert/strict';
import { readdirSync, readlinkSync, renameSync } from 'node:fs';
import {
  appendFile,
  chmod,
  cp,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';

import { basename, dirname, join } from 'node:path';
import test from 'node:test';
import {
  collect,
  eventsOf,
  headerOf,
  makeFolder,
  tell,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { JournalError } from '../../src/journal/journal-error.js';
import { reservePath } from '../../src/journal/state-folder.js';

/** What others do to the file of a running session, and what the session does then. */

const COUNT = 6;

type Change = {
  readonly title: string;
  readonly make: (path: string) => Promise<unknown>;
  readonly says: RegExp;
  /** Entries in the rescued copy; with the two that could not be written, unless a part is missing. */
  readonly rescued?: number;
};

const overwrite = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'r+');
  const { size } = await file.stat();
  await file.write(text, size - text.length);
  await file.close();
};

const changes: readonly Change[] = [
  { title: 'removed', make: (path) => rm(path), says: /was removed while/ },
  {
    title: 'moved',
    make: (path) => rename(path, `${path}.old`),
    says: process.platform === 'linux' ? /was moved to .*a\.jsonl\.old while/ : /was moved/,
  },
  {
    title: 'moved, with another file at its path,',
    make: async (path) => {
      await rename(path, `${path}.old`);
      await cp(`${path}.old`, path);
    },
    says: /was moved.* while .* move .*a\.jsonl away, then: pawl import/,
  },
  {
    title: 'replaced',
    make: async (path) => {
      await cp(path, `${path}.new`);
      await rename(`${path}.new`, path);
    },
    says: /was replaced by another file .* move .*a\.jsonl away, then: pawl import/,
  },
  {
    title: 'cut at a line end',
    make: async (path) => {
      const bytes = await readFile(path);
      await truncate(path, bytes.lastIndexOf(0x0a, bytes.length - 2) + 1);
    },
    says: /was cut shorter/,
    rescued: COUNT - 1,
  },
  {
    title: 'appended to',
    make: (path) => appendFile(path, 'a line of another program\n'),
    says: /was appended to by another program/,
  },
  {
    title: 'removed with its folder',
    make: (path) => rm(dirname(path), { recursive: true }),
    says: /was removed with its folder/,
  },
  { title: 'made read-only', make: (path) => chmod(path, 0o400), says: /was made read-only/ },
  {
    title: 'overwritten in place',
    make: async (path) => {
      await overwrite(path, '\0'.repeat(40));
      await utimes(path, 1, 1);
    },
    says: /was overwritten by another program/,
    rescued: COUNT - 1,
  },
];

const begin = async (folder: string) => {
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  const drafts = tellFrom(headerOf('a'), COUNT + 2);
  await journal.append(drafts.slice(0, COUNT));
  return { store, journal, drafts, path: join(folder, 'sessions', 'a.jsonl') };
};

const errorOf = (work: Promise<unknown>): Promise<JournalError> =>
  work.then(
    () => assert.fail('it was accepted'),
    (error: unknown) => {
      assert.ok(error instanceof JournalError, String(error));
      return error;
    },
  );

/** Files below the folder that this process has open. */
const openBelow = (folder: string): readonly string[] =>
  readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${name}`);
      return target.startsWith(folder) ? [target] : [];
    } catch {
      return []; // it was closed meanwhile
    }
  });

for (const { title, make, says, rescued = COUNT + 2 } of changes) {
  test(`a journal that was ${title} stops its session at the next write, with a copy`, async (context) => {
    const folder = await makeFolder(context);
    const { journal, drafts, path } = await begin(folder);
    await make(path);
    const before = await readFile(path).catch(() => null);
    const error = await errorOf(journal.append(drafts.slice(COUNT)));
    assert.equal(error.kind, 'foreignChange', error.message);
    assert.match(error.message, says);
    assert.deepEqual(
      await readFile(path).catch(() => null),
      before,
      'what others made of it stays',
    );
    assert.equal(journal.seq, COUNT);
    const copy = join(folder, 'rescued', 'a.jsonl');
    assert.ok(error.message.includes(copy), error.message);
    // the copy is a journal: a store that finds it under the session's name opens it
    const other = join(folder, 'other');
    await mkdir(join(other, 'sessions'), { recursive: true });
    await cp(copy, join(other, 'sessions', 'a.jsonl'));
    const opened = await fileJournals({ folder: other }).open('a');
    assert.deepEqual(
      (await collect(opened.journal.read())).map(({ event }) => event),
      eventsOf(drafts.slice(0, rescued)),
    );
    await opened.journal.close();
    await journal.close();
    if (process.platform === 'linux') assert.deepEqual(openBelow(folder), []);
  });

  test(`a journal that was ${title} after the last write is found when it is closed`, async (context) => {
    const { journal, path } = await begin(await makeFolder(context));
    await make(path);
    const error = await errorOf(journal.close());
    assert.equal(error.kind, 'foreignChange', error.message);
    assert.match(error.message, says);
  });
}

test('a journal that was cut while it was open is not read as a shorter one', async (context) => {
  const { journal, path } = await begin(await makeFolder(context));
  const bytes = await readFile(path);
  const lineEnd = bytes.lastIndexOf(0x0a, bytes.length - 2) + 1;
  for (const size of [bytes.length - 1, lineEnd + 5, lineEnd]) {
    await truncate(path, size);
    const cut = { kind: 'damaged', message: /the file was cut/ };
    await assert.rejects(collect(journal.read()), cut, `${size}`);
  }
  await errorOf(journal.close());
});

test('a file whose time was changed, but not its content, is still the own one', async (context) => {
  const { journal, drafts, path } = await begin(await makeFolder(context));
  await utimes(path, 1, 1);
  await journal.append(drafts.slice(COUNT));
  assert.equal(journal.seq, COUNT + 2);
  await journal.close();
});

test('a second copy does not replace the first', async (context) => {
  const folder = await makeFolder(context);
  const copies = join(folder, 'rescued');
  await mkdir(copies);
  await writeFile(join(copies, 'a.jsonl'), 'the first');
  const { journal, drafts, path } = await begin(folder);
  await rm(path);
  const error = await errorOf(journal.append(drafts.slice(COUNT)));
  assert.match(error.message, /rescued\/a\.2\.jsonl/);
  assert.equal(await readFile(join(copies, 'a.jsonl'), 'utf8'), 'the first');
  await errorOf(journal.close()).catch(() => undefined);
});

test('a close makes no second copy beside that of a refused write', async (context) => {
  const folder = await makeFolder(context);
  const { journal, drafts, path } = await begin(folder);
  await rm(path);
  const refused = errorOf(journal.append(drafts.slice(COUNT)));
  await journal.close();
  assert.equal((await refused).kind, 'foreignChange');
  assert.deepEqual(await readdir(join(folder, 'rescued')), ['a.jsonl']);
});

test('a reserve that can not be removed hinders no close', async (context) => {
  const { store, journal, path } = await begin(await makeFolder(context));
  await rm(reservePath(path));
  await mkdir(reservePath(path));
  await journal.close();
  await (await store.open('a')).journal.close();
});

test('a copy that fits nowhere beside the sessions is made among the temporary files', async (context) => {
  const folder = await makeFolder(context);
  await writeFile(join(folder, 'rescued'), 'no folder');
  const { journal, drafts, path } = await begin(folder);
  await rm(path);
  const error = await errorOf(journal.append(drafts.slice(COUNT)));
  const copy = /is in (\S+)\./.exec(error.message)?.[1] ?? '';
  assert.match(copy, /pawl-rescued-/);
  context.after(() => rm(dirname(copy), { recursive: true }));
  assert.deepEqual(await readdir(dirname(copy)), [basename(path)]);
  await journal.close();
});

test('nothing of a group that was written while the file was exchanged is acknowledged', async (context) => {
  const folder = await makeFolder(context);
  const { store, journal, drafts, path } = await begin(folder);
  const appending = journal.append(drafts.slice(COUNT));
  const error = errorOf(appending);
  renameSync(path, `${path}.old`); // at once: a quick disk would have written the group before
  await error;
  assert.equal(journal.seq, COUNT);
  await journal.close();
  await rename(`${path}.old`, path);
  const opened = await store.open('a');
  assert.ok(opened.journal.seq >= COUNT);
  await opened.journal.append(tell(1, opened.state));
  await opened.journal.close();
});
