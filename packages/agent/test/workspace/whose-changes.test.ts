import assert from 'node:assert/strict';
import { mkdirSync, renameSync, statSync, utimesSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import '../../../../test/own-process.js';
import { chooseRows } from '../../../../test/tier.js';
import { acquireLock } from '../../src/journal/lock.js';
import { lockPath } from '../../src/journal/state-folder.js';
import { toolCall } from '../../src/machine/event.js';
import { describeLost } from '../../src/workspace/checkpoints/lost-text.js';
import { type Folder, makeFolder, type WatchedSession } from './whose-changes.js';

/** Whose a change is: what the user does between turns, after them and beside them is never undone. */

type Row = {
  readonly title: string;
  readonly does: (folder: Folder, session: WatchedSession) => Promise<void>;
  /** After all is taken back; null: no such file. */
  readonly then: Readonly<Record<string, string | null>>;
};

const FILES = { one: '0\n', two: '0\n', 'd/b': 'mine\n', 'd/c': 'mine\n', 'e/f': 'mine\n' };

const inTurn = async (session: WatchedSession, folder: Folder, name: string): Promise<void> => {
  await session.bash(`echo 1 > ${name}`, () => folder.write(name, '1\n'));
  await session.end();
  await folder.rest();
};

const rows: readonly Row[] = [
  {
    title: 'what the user deleted or renamed between two turns stays so, though a write came first',
    does: async (folder, session) => {
      await inTurn(session, folder, 'one');
      folder.remove('d/b');
      folder.remove('e');
      renameSync(path.join(folder.workspace, 'd/c'), path.join(folder.workspace, 'd/renamed'));
      await folder.rest();
      await session.edit('new.txt', 'new\n');
      await inTurn(session, folder, 'two');
    },
    then: {
      'd/b': null,
      'd/c': null,
      'd/renamed': 'mine\n',
      'e/f': null,
      one: '0\n',
      two: '0\n',
      'new.txt': null,
    },
  },
  {
    title: 'what the user does between the calls of one batch stays',
    does: async (folder, session) => {
      await session.edit('new.txt', 'new\n', () => folder.remove('e'));
      await folder.rest();
      await session.bash('echo 1 > one', () => folder.write('one', '1\n'));
      await folder.rest();
      folder.remove('d/b');
      folder.write('d/c', 'edited\n');
      folder.write('d/new', 'new\n');
      await folder.rest();
      await inTurn(session, folder, 'two');
    },
    then: {
      'd/b': null,
      'd/c': 'edited\n',
      'd/new': 'new\n',
      'e/f': null,
      one: '0\n',
      two: '0\n',
      'new.txt': null,
    },
  },
  {
    title: 'control: what commands delete comes back, though a tool writes beside it then',
    does: async (folder, session) => {
      await inTurn(session, folder, 'one');
      await session.bash('rm d/b', () => folder.remove('d/b'));
      await folder.rest();
      await session.edit('d/new', 'new\n');
      await session.edit('d/c', 'edited\n');
      await session.bash('rm -r e', () => folder.remove('e'));
      await session.end();
    },
    then: { 'd/b': 'mine\n', 'd/c': 'mine\n', 'e/f': 'mine\n', one: '0\n', 'd/new': null },
  },
];

const inFolders = rows.flatMap((row) =>
  [true, false].map((isRepository) => ({ row, isRepository })),
);
for (const {
  row: { title, does, then },
  isRepository,
} of chooseRows(inFolders, ({ row }) => row.title))
  test(`${title} (${isRepository ? 'in a repository' : 'without git'})`, async (t) => {
    const folder = makeFolder(t, FILES, { isRepository });
    const session = folder.session('one');
    await does(folder, session);
    await session.rewind();
    for (const [name, text] of Object.entries(then)) assert.equal(folder.read(name), text, name);
  });

test('a file that the user deletes when the turn has just ended stays deleted, and can be had', async (t) => {
  const folder = makeFolder(t, FILES);
  const session = folder.session('one');
  await session.bash('echo 1 > one', () => folder.write('one', '1\n'));
  const ended = session.end();
  // the look begins only after this: nothing else runs before
  for (const endedAtMs = Date.now(); Date.now() < endedAtMs + 30; );
  folder.remove('d/b');
  const taken = await ended;
  assert.deepEqual(
    taken?.changes.files.map(({ path: name }) => name),
    ['one'],
  );
  await session.rewind();
  assert.equal(folder.read('one'), '0\n');
  assert.equal(folder.read('d/b'), null);
});

type TextRow = {
  readonly title: string;
  readonly does: (folder: Folder, session: WatchedSession) => Promise<void>;
  /** A text of `one` that no call leaves there, and that some version of it has. */
  readonly text: string;
};

const textRows: readonly TextRow[] = [
  {
    title: 'that the user saves between two commands, of which both write the file',
    does: async (folder, session) => {
      await session.bash('echo 1 > one', () => folder.write('one', '1\n'));
      await folder.rest();
      folder.write('one', 'saved\n');
      await folder.rest();
      await session.bash('echo 2 > one', () => folder.write('one', '2\n'));
      await session.end();
    },
    text: 'saved\n',
  },
  {
    title: 'that the user saves while a command runs, before a later one of the batch writes',
    does: async (folder, session) => {
      await session.bash('npm test', () => folder.write('one', 'saved\n'));
      await session.edit('one', 'edited\n');
      await session.end();
    },
    text: 'saved\n',
  },
  {
    title: 'that the user saves between the first edit and the first command of a session',
    does: async (folder, session) => {
      await session.edit('one', 'edited\n', () => folder.write('one', 'saved\n'));
      await session.bash('rm one', () => folder.remove('one'));
      await session.end();
    },
    text: 'saved\n',
  },
  {
    title: 'that a command replaced, if the user saves the file when it has just ended',
    does: async (folder, session) => {
      folder.write('one', 'uncommitted\n');
      await folder.rest();
      await session.bash('echo 1 > one', () => folder.write('one', '1\n'));
      const ended = session.end();
      for (const endedAtMs = Date.now(); Date.now() < endedAtMs + 30; );
      folder.write('one', 'later\n');
      await ended;
    },
    text: 'uncommitted\n',
  },
];

for (const { title, does, text } of textRows)
  test(`each text can be had ${title}`, async (t) => {
    const folder = makeFolder(t, FILES);
    const session = folder.session('one');
    await does(folder, session);
    assert.notEqual(folder.read('one'), text, 'control');
    const [id = ''] = session.taken;
    const restored: (string | null)[] = [];
    for (let at = 0; at < 6; at++) {
      const version = { checkpoint: { id, isForeign: false }, path: 'one', at };
      const { plan } = await session.checkpoints.planFile(version);
      if (plan !== null) await session.checkpoints.restore(plan);
      restored.push(folder.read('one'));
    }
    assert.ok(restored.includes(text), JSON.stringify(restored));
  });

/** Settings of the user with which git says of a changed file that it is clean. */
const settings: readonly (readonly string[])[] = [
  ['core.trustctime', 'false'],
  ['core.checkStat', 'minimal'],
  ['core.ignoreStat', 'true'],
  ['status.showUntrackedFiles', 'no'],
];

for (const [name = '', value = ''] of chooseRows(settings))
  test(`with ${name}=${value} of the user a file comes back with their text, not with git's`, async (t) => {
    const folder = makeFolder(t, { a: 'aaaa', b: 'b' });
    const place = path.join(folder.workspace, 'a');
    folder.git('config', name, value);
    utimesSync(place, 1_000, 1_000);
    folder.git('add', 'a', 'b');
    const addedAtMs = statSync(place).ctimeMs;
    // git compares whole seconds
    while (Math.floor(Date.now() / 1_000) === Math.floor(addedAtMs / 1_000)) await folder.rest();
    await folder.rest(); // the clock of files is a few ms behind
    folder.write('a', 'MINE');
    utimesSync(place, 1_000, 1_000);
    await folder.rest();
    const session = folder.session('one');
    await session.bash('rm a', () => folder.remove('a'));
    await session.end();
    await session.rewind();
    assert.equal(folder.read('a'), 'MINE');
  });

const attributes: readonly (readonly [where: string, config: string | null])[] = [
  ['.git/info/attributes', null],
  ['../attributes', 'core.attributesFile'],
  ['d/.gitattributes', null],
];

for (const [where, config] of chooseRows(attributes))
  test(`a file that git stores in other bytes by ${where} comes back with its own`, async (t) => {
    const folder = makeFolder(t, { 'd/a': 'one $Id$\n', '.gitignore': '.gitattributes\n' });
    folder.write(where, '* ident\n');
    if (config !== null) folder.git('config', config, path.join(folder.workspace, where));
    folder.remove('d/a');
    folder.git('checkout', 'd/a');
    const text = folder.read('d/a');
    assert.notEqual(text, 'one $Id$\n', 'control: git writes other bytes');
    await folder.rest();
    const session = folder.session('one');
    await session.bash('rm d/a', () => folder.remove('d/a'));
    await session.end();
    await session.rewind();
    assert.equal(folder.read('d/a'), text);
  });

// ---- Two sessions in one folder ----

type SharedRow = {
  readonly title: string;
  /** What the two do; `one` rewinds after it. */
  readonly does: (folder: Folder, one: WatchedSession, two: WatchedSession) => Promise<void>;
  readonly then: Readonly<Record<string, string | null>>;
  /** What stays because of the other session. */
  readonly claimed: readonly string[];
};

const editBy = async (session: WatchedSession, name: string, text: string): Promise<void> => {
  await session.edit(name, text);
  await session.end();
};

const shared: readonly SharedRow[] = [
  {
    title: 'an edit of the other session while a command ran stays; what the command made goes',
    does: async (folder, one, two) => {
      await one.bash('npm test', async () => {
        folder.write('new', '1\n');
        await editBy(two, 'd/b', 'two\n');
        await editBy(two, 'd/new', 'two\n');
      });
      await one.end();
    },
    then: { new: null, 'd/b': 'two\n', 'd/new': 'two\n' },
    claimed: ['d/b', 'd/new'],
  },
  {
    title: 'what changed while commands of both ran stays',
    does: async (folder, one, two) => {
      await one.bash('npm test', async () => {
        await two.bash('npm run build', () => folder.write('d/b', 'built\n'));
        await two.end();
      });
      await one.end();
    },
    then: { 'd/b': 'built\n' },
    claimed: ['d/b'],
  },
  {
    title: 'what a tool wrote goes back, though a command of the other session ran meanwhile',
    does: async (_folder, one, two) => {
      await two.bash('npm test', () => editBy(one, 'd/b', 'one\n'));
      await two.end();
    },
    then: { 'd/b': 'mine\n' },
    claimed: [],
  },
  {
    title: 'an edit that the other session made later stays, also by force',
    does: async (folder, one, two) => {
      await editBy(one, 'd/b', 'one\n');
      await folder.rest();
      await editBy(two, 'd/b', 'two\n');
      await one.rewind({ force: true });
      assert.equal(folder.read('d/b'), 'two\n');
    },
    then: { 'd/b': 'two\n' },
    claimed: ['d/b'],
  },
  {
    title: 'an edit that the other session made earlier is where a rewind goes back to',
    does: async (folder, one, two) => {
      await editBy(two, 'd/b', 'two\n');
      await folder.rest();
      await editBy(one, 'd/b', 'one\n');
    },
    then: { 'd/b': 'two\n' },
    claimed: [],
  },
  {
    title: 'what the other session took back stays taken back',
    does: async (folder, one, two) => {
      await one.bash('npm test', () => editBy(two, 'd/b', 'two\n'));
      await one.end();
      await folder.rest();
      await two.rewind();
      assert.equal(folder.read('d/b'), 'mine\n');
      await one.rewind();
      await folder.rest();
      await two.rewind({ ids: two.taken.slice(1) }); // forward again
    },
    then: { 'd/b': 'two\n' },
    claimed: ['d/b'],
  },
  {
    title: 'the edits of a task count as those of its session',
    does: async (folder, one) => {
      const task = folder.session('task', { parent: 'one' });
      await one.bash('a task', () => editBy(task, 'd/b', 'task\n'));
      await one.end();
    },
    then: { 'd/b': 'mine\n' },
    claimed: [],
  },
];

for (const { title, does, then, claimed } of shared)
  test(`two sessions: ${title}`, async (t) => {
    const folder = makeFolder(t, FILES);
    const [one, two] = [folder.session('one'), folder.session('two')];
    await does(folder, one, two);
    const { left } = await one.rewind();
    assert.deepEqual(
      left
        .filter(({ why }) => why === 'the session two changed it too')
        .map((file) => file.path)
        .sort(),
      claimed,
    );
    for (const [name, text] of Object.entries(then)) assert.equal(folder.read(name), text, name);
  });

test('two sessions: while a call of the other one runs, what it may have changed stays', async (t) => {
  const folder = makeFolder(t, FILES);
  const [one, two] = [folder.session('one'), folder.session('two')];
  await two.edit('d/b', 'two\n');
  await one.bash('npm test', () => {
    folder.write('d/b', 'two again\n');
    folder.write('d/c', 'of one, as far as two does not run\n');
  });
  await one.end();
  await one.rewind();
  assert.equal(folder.read('d/b'), 'two again\n');
  assert.equal(folder.read('d/c'), 'mine\n');
  await two.bash('npm start', () => undefined);
  await one.bash('npm test', () => folder.write('d/c', 'by whom?\n'));
  await one.end();
  mkdirSync(path.dirname(lockPath(folder.stateFolder, 'two')), { recursive: true });
  const lock = await acquireLock(lockPath(folder.stateFolder, 'two'));
  await one.rewind({ ids: one.taken.slice(-1) });
  assert.equal(folder.read('d/c'), 'by whom?\n');
  await lock.release();
  await one.rewind({ ids: one.taken.slice(-1) });
  assert.equal(folder.read('d/c'), 'mine\n', 'control: a killed session claims no more than names');
});

test('of a file that was removed after its call, a rewind says one thing', async (t) => {
  const folder = makeFolder(t, FILES);
  const session = folder.session('one');
  await inTurn(session, folder, 'one');
  await session.bash('true', () => folder.rest());
  await folder.rest();
  folder.remove('one');
  await session.end();
  const takeBack = session.taken.map((id) => ({ id, isForeign: false }));
  const left = async (force: boolean): Promise<number> =>
    (await session.checkpoints.plan({ takeBack, force })).left.length;
  assert.deepEqual([await left(false), await left(true)], [1, 0]);
});

// ---- Uncommitted text of the user ----

const DIRTY = 'one\ntwo\nmine\n';

/** Commands after which a text of the user is gone, in whatever words. */
const losing: readonly (readonly [command: string, work: (folder: Folder) => void])[] = [
  ['git checkout src/a', ({ git }) => git('checkout', 'src/a')],
  ['git reset --hard', ({ git }) => git('reset', '-q', '--hard')],
  ['rm src/a', ({ remove }) => remove('src/a')],
  ['sed -i s/mine/yours/ src/a', ({ write }) => write('src/a', 'one\ntwo\nyours\n')],
  [
    'mv src/a b',
    ({ remove, write }) => {
      write('b', DIRTY);
      remove('src/a');
    },
  ],
];

for (const [text, work] of chooseRows(losing, undefined, 2))
  test(`that uncommitted text is gone is said after ${text}, with the way back`, async (t) => {
    const folder = makeFolder(t, { 'src/a': 'one\ntwo\n' });
    folder.write('src/a', DIRTY);
    await folder.rest();
    const session = folder.session('one');
    const heard = await session.bash(text, () => work(folder));
    assert.match(heard, /^Uncommitted text of the user in src\/a was replaced or removed while `/);
    assert.ok(heard.includes(`\`${text}\``) && heard.includes('checkpoints one --restore src/a'));
    const taken = await session.end();
    assert.match(taken?.leftOut.join('\n') ?? '', /Uncommitted text of the user in src\/a/);
    await session.rewind();
    assert.equal(folder.read('src/a'), DIRTY);
  });

test('the way back is a command that works, whatever the name, and holds for each file', () => {
  const tell = (...names: string[]): string => describeLost(names, 'x', 'one');
  assert.match(tell('a $b'), / --restore 'a \$b' brings it back$/);
  assert.match(tell('a', 'b'), / --restore a brings back the first; .* each of the others$/);
});

test('that uncommitted text is gone is said in a large repository, where only reported files are looked at', async (t) => {
  const folder = makeFolder(t, { 'src/a': 'one\ntwo\n', 'src/b': 'b\n' });
  for (let at = 0; at < 2_001; at++) folder.write(`untracked/${at}`, 'mine\n');
  folder.write('src/a', DIRTY);
  await folder.rest();
  const session = folder.session('one');
  await session.bash('echo x >> src/b', () => folder.write('src/b', 'b\nx\n'));
  await session.end();
  const heard = await session.bash('git checkout src/a', () => folder.git('checkout', 'src/a'));
  assert.match(heard, /^Uncommitted text of the user in src\/a was replaced/);
  await session.end();
  await session.rewind();
  assert.equal(folder.read('src/a'), DIRTY);
});

test('control: nothing is said of uncommitted text that stays, is committed, or was none', async (t) => {
  const folder = makeFolder(t, { 'src/a': 'one\ntwo\n', clean: 'c\n' });
  folder.write('src/a', DIRTY);
  await folder.rest();
  const session = folder.session('one');
  const works: readonly (() => void)[] = [
    () => folder.write('src/a', `${DIRTY}new\n`),
    () => folder.write('src/a', 'ONE\ntwo\nmine\nnew\n'),
    () => folder.git('commit', '-qam', 'mine'),
    () => folder.remove('clean'),
  ];
  for (const work of works) {
    assert.equal(await session.bash('x', work), '');
    assert.deepEqual((await session.end())?.leftOut ?? [], []);
    await folder.rest();
  }
});

/** What makes git store a file in other bytes, and the file. */
const conversions: readonly (readonly [attributes: string, text: string])[] = [
  ['text eol=crlf', 'one\r\ntwo\r\n'],
  ['filter=upper', 'one\n'],
  ['ident', '$Id: 1$\n'],
];

for (const [attributes, text] of conversions)
  test(`control: nothing is said of committed text where git has ${attributes}`, async (t) => {
    const folder = makeFolder(t, { '.gitattributes': `a ${attributes}\n`, keep: 'x\n' });
    folder.git('config', 'filter.upper.clean', 'tr a-z A-Z');
    folder.write('a', text);
    // git would run the filter for a file as young as its index
    utimesSync(path.join(folder.workspace, 'a'), 1_000, 1_000);
    folder.git('add', 'a');
    folder.git('commit', '-qm', 'a');
    await folder.rest();
    const session = folder.session('one');
    assert.equal(await session.bash('rm a', () => folder.remove('a')), '');
    await session.end();
    await session.rewind();
    assert.equal(folder.read('a'), text);
  });

test('control: nothing is said of text that the session wrote itself', async (t) => {
  const folder = makeFolder(t, { 'src/a': 'one\n' });
  await folder.rest();
  const session = folder.session('one');
  await session.bash('echo agent >> src/a', () => folder.write('src/a', 'one\nagent\n'));
  await session.end();
  await folder.rest();
  assert.equal(await session.bash('git checkout src/a', () => folder.git('checkout', 'src/a')), '');
});

test('what a hook of the user changes beside an edit is taken back with it', async (t) => {
  const folder = makeFolder(t, FILES);
  await folder.rest();
  const session = folder.session('one', { hasHooks: true });
  folder.write('d/b', 'edited\n');
  await folder.rest();
  await session.edit('two', '1\n', () => folder.write('one', '1\n'));
  await session.end();
  await folder.rest();
  folder.write('d/c', 'edited\n');
  await session.rewind();
  const names = ['one', 'two', 'd/b', 'd/c'];
  const then = names.map((name) => folder.read(name));
  assert.deepEqual(then, ['0\n', '0\n', 'edited\n', 'edited\n']);
});

test('what the user changes before an edit stays, though a job runs', async (t) => {
  const folder = makeFolder(t, FILES);
  await folder.rest();
  const session = folder.session('one');
  await session.bash('npm run dev &', () => undefined);
  await session.end();
  folder.write('d/b', 'edited\n');
  await folder.rest();
  await session.edit('two', '1\n');
  await session.end('jobs');
  await session.rewind();
  assert.deepEqual([folder.read('two'), folder.read('d/b')], ['0\n', 'edited\n']);
});

test('a tool for files that is cancelled before it ran claims nothing', async (t) => {
  const folder = makeFolder(t, FILES);
  const session = folder.session('one');
  await session.edit('one', '1\n');
  await session.end();
  folder.write('one', 'mine\n');
  await folder.rest();
  const facts = { paths: [path.join(folder.workspace, 'one')] };
  const traits = { group: 'fileChanges', mutating: true } as const;
  const call = toolCall({ callId: 'cancelled', tool: 'write', traits, facts });
  await session.checkpoints.before(call);
  await session.checkpoints.withdraw(call);
  folder.write('one', 'more of mine\n');
  await session.edit('two', '1\n');
  assert.deepEqual(
    (await session.end())?.changes.files.map((file) => file.path),
    ['two'],
  );
});
