import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cleanMessage, cutDiff, DIFF_BYTES } from '../../src/workspace/auto-commit.js';
import { makeRepository, makeSession, type Write } from './place.js';

const messages: readonly {
  readonly title: string;
  readonly written: string;
  readonly is: string | null;
}[] = [
  { title: 'one line', written: 'feat(core): add x', is: 'feat(core): add x' },
  { title: 'a body', written: 'fix!: y\n\nwhy  \nand how\n', is: 'fix!: y\n\nwhy\nand how' },
  { title: 'a body without the empty line', written: 'fix: y\nwhy', is: 'fix: y\n\nwhy' },
  { title: 'a code fence', written: '```text\nfix: y\n\nwhy\n```\n', is: 'fix: y\n\nwhy' },
  { title: 'quotes', written: '"fix: y"', is: 'fix: y' },
  {
    title: 'control characters',
    written: 'fix: y\x1b[2J\u202e\r\n\r\nz\x00',
    is: 'fix: y[2J\n\nz',
  },
  {
    title: 'a body without end',
    written: `fix: y\n\n${'z\n'.repeat(100)}`,
    is: `fix: y\n\n${'z\n'.repeat(10).trim()}`,
  },
  { title: 'talk', written: 'Here is your message: fix: y', is: null },
  { title: 'nothing', written: ' \n', is: null },
  { title: 'a subject without end', written: `fix: ${'y'.repeat(200)}`, is: null },
  { title: 'a type alone', written: 'fix: ', is: null },
];

for (const { title, written, is } of messages) {
  test(`a message of a model: ${title}`, () => {
    assert.equal(cleanMessage(written), is);
  });
}

const NOTICE = '[the diff goes on; the rest was left out]\n';

test('a diff that fits is whole', () => {
  const text = `${'x'.repeat(DIFF_BYTES - 1)}\n`;
  assert.equal(cutDiff(Buffer.from(text)), text);
});

test('a diff that is too long ends with a whole line and a notice', () => {
  const text = 'ab ü\n'.repeat(DIFF_BYTES);
  const cut = cutDiff(Buffer.from(text));
  assert.ok(cut.endsWith(`ab ü\n${NOTICE}`));
  const kept = Buffer.byteLength(cut) - NOTICE.length;
  assert.ok(kept <= DIFF_BYTES && kept > DIFF_BYTES - 7);
});

test('a diff of one long line ends with a whole character and a notice', () => {
  for (const shift of ['', 'a', 'ab', 'abc']) {
    const cut = cutDiff(Buffer.from(shift + '🙂'.repeat(DIFF_BYTES)));
    assert.match(cut, /^a?b?c?(🙂)+\n\[the diff goes on/u);
    const kept = Buffer.byteLength(cut) - NOTICE.length - 1;
    assert.ok(kept <= DIFF_BYTES && kept > DIFF_BYTES - 4);
  }
});

const late: Write = () => new Promise<null>(() => undefined);

const models: readonly {
  readonly title: string;
  readonly write: Write;
  readonly subject: string;
}[] = [
  { title: 'writes one', write: async () => 'docs: say why', subject: 'docs: say why' },
  { title: 'has none in time', write: async () => null, subject: 'chore: pawl changed 2 files' },
  { title: 'never answers', write: late, subject: 'chore: pawl changed 2 files' },
  {
    title: 'fails',
    write: async () => Promise.reject(new Error('no')),
    subject: 'chore: pawl changed 2 files',
  },
  {
    title: 'writes something else',
    write: async () => 'Sure!',
    subject: 'chore: pawl changed 2 files',
  },
];

for (const { title, write, subject } of models) {
  test(`the message of a commit when the model ${title}`, async (t) => {
    const place = await makeRepository(t);
    const session = makeSession(place);
    const context = session.context(await session.batch([{ command: 'echo x >> a; rm b' }]), {
      write,
    });
    await session.check(context);
    const report = await session.hooks.run('AutoCommitting', context);
    assert.equal(await place.shell('git log -1 --format=%B'), `${subject}\n\n`);
    const during = 'changed while a command ran: a, b';
    assert.equal(report.commits[0]?.subject, `${subject} (2 files, +1 -1); ${during}`);
    assert.equal(report.warning, '');
  });
}

test('the model is shown the diff of what is committed, and no more than its beginning', async (t) => {
  const place = await makeRepository(t);
  await place.shell('echo user >> b');
  const session = makeSession(place);
  const shown: string[] = [];
  const write: Write = async (instructions, text) => {
    shown.push(text);
    assert.match(instructions, /conventional commit/);
    return null;
  };
  for (const deed of [
    { edit: 'a', text: 'agent\n' },
    { edit: 'big', text: 'line\n'.repeat(1_000_000) },
  ]) {
    const context = session.context(await session.batch([deed]), { write });
    await session.commit(context);
  }
  assert.match(shown[0] ?? '', /^diff --git a\/a b\/a\n[\s\S]*-one\n\+agent\n$/);
  assert.match(
    shown[1] ?? '',
    /^diff --git a\/big b\/big\n[\s\S]*\n\+line\n\[the diff goes on; the rest was left out\]\n$/,
  );
  assert.equal(
    await place.shell('git log -2 --format=%s'),
    'chore: pawl changed big\nchore: pawl changed a\n',
  );
});
