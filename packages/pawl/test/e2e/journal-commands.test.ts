import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, sessionOf } from './pawl.js';

/** Commands that check, carry and find sessions. */

const MODEL = ['--model', 'scripted/script.json'];

const worked = async (context: Parameters<typeof makePlace>[0]) => {
  const place = makePlace(context);
  writeFileSync(
    join(place.workspace, 'script.json'),
    JSON.stringify({ replies: [{ text: 'one' }, { text: 'two' }] }),
  );
  expectCode(await runInProcess(place, [...MODEL, '-p', 'first']), 0);
  const id = sessionOf(place);
  return { place, id, journal: join(place.state, 'pawl', 'sessions', `${id}.jsonl`) };
};

test('verify says that all is good, and names file, line and byte where it is not', async (context) => {
  const { place, id, journal } = await worked(context);
  const good = await runInProcess(place, ['verify', id]);
  expectCode(good, 0);
  assert.match(good.stdout, /all good \(\d+ entries, \d+ state hash(es)?, \d+ blobs?\)/);
  assert.doesNotMatch(good.stdout, /may be missing/);
  const mark = journal.replace('.jsonl', '.mark');
  const marked = readFileSync(mark);
  writeFileSync(mark, 'damaged');
  const unmarked = await runInProcess(place, ['verify', id]);
  expectCode(unmarked, 0);
  assert.match(unmarked.stdout, /all lines are good .*may be missing: no good mark/);
  writeFileSync(mark, marked);
  const bytes = readFileSync(journal);
  const begin = bytes.indexOf(0x0a) + 1;
  const changed = Buffer.from(bytes);
  changed[begin + 20] = (changed[begin + 20] ?? 0) ^ 1;
  const copy = join(place.folder, 'copy.jsonl');
  writeFileSync(copy, changed);
  const bad = await runInProcess(place, ['verify', copy]);
  expectCode(bad, 65);
  assert.ok(
    bad.stderr.includes(`${copy}: line 2, which begins at byte ${begin}: its checksum`),
    bad.stderr,
  );
  truncateSync(journal, begin);
  const cut = await runInProcess(place, ['verify', id]);
  expectCode(cut, 65);
  assert.match(cut.stderr, /line 2, .*the file was cut: entries 1 to \d+ stood/);
});

test('verify does not call a journal whole whose end nothing proves', async (context) => {
  const { place, id, journal } = await worked(context);
  const bytes = readFileSync(journal);
  const cut = join(place.folder, 'cut.jsonl');
  writeFileSync(cut, bytes.subarray(0, bytes.lastIndexOf(0x0a, bytes.length - 2) + 1));
  const copied = await runInProcess(place, ['verify', cut]);
  expectCode(copied, 0);
  assert.match(copied.stdout, /all lines are good .*Lines at the end may be missing/);
  assert.doesNotMatch(copied.stdout, /all good/);
  rmSync(journal.replace(/jsonl$/, 'mark'));
  assert.match(
    (await runInProcess(place, ['verify', id])).stdout,
    /Lines at the end may be missing/,
  );
  const exported = (await runInProcess(place, ['export', id])).stdout.trim();
  assert.match((await runInProcess(place, ['verify', exported])).stdout, /all good/); // its size is part of it
});

for (const { what, change, says } of [
  {
    what: 'a byte order mark',
    change: (text: string) => `\ufeff${text}`,
    says: /a byte order mark before it/,
  },
  {
    what: 'CR LF',
    change: (text: string) => text.replaceAll('\n', '\r\n'),
    says: /its line ends to CR LF/,
  },
])
  test(`a journal that another program has given ${what} is refused with that reason`, async (context) => {
    const { place, journal } = await worked(context);
    const copy = join(place.folder, 'copy.jsonl');
    writeFileSync(copy, change(readFileSync(journal, 'utf8')));
    const refused = await runInProcess(place, ['verify', copy]);
    expectCode(refused, 65);
    assert.match(refused.stderr, says);
  });

test('a session is exported, imported elsewhere and gone on with there; an import replaces nothing', async (context) => {
  const { place, id } = await worked(context);
  const exported = await runInProcess(place, ['export', id]);
  expectCode(exported, 0);
  const file = exported.stdout.trim();
  assert.equal(file, join(place.workspace, `${id}.pawl`));
  assert.match(exported.stderr, /in clear text/);
  const refused = await runInProcess(place, ['import', file]);
  expectCode(refused, 65);
  assert.match(refused.stderr, /is here already/);
  const other: Place = {
    ...place,
    state: join(place.folder, 'other'),
    environment: { ...place.environment, XDG_STATE_HOME: join(place.folder, 'other') },
  };
  const imported = await runInProcess(other, ['import', file]);
  expectCode(imported, 0);
  assert.equal(imported.stdout.trim(), id);
  assert.match(imported.stderr, /nothing was performed/);
  const again = await runInProcess(other, [...MODEL, '--resume', id, '-p', 'second']);
  expectCode(again, 0);
  assert.match(again.stdout, /two/);
});

for (const [title, header] of [
  ['empty', ''],
  ['damaged', '{"version":1,"sess'],
] as const) {
  test(`--continue never skips a session whose header is ${title}`, async (context) => {
    const { place, id, journal } = await worked(context);
    const newer = journal.replace(id, '20991231-000000-aaaaaaaa');
    writeFileSync(newer, header);
    writeFileSync(newer.replace('.jsonl', '.owner'), 'a code: it was created here\n');
    for (const words of [
      ['--continue', '-p', 'x', ...MODEL],
      ['ask', '--continue'],
    ]) {
      const refused = await runInProcess(place, words);
      expectCode(refused, 65);
      assert.match(refused.stderr, /session 20991231-000000-aaaaaaaa .*backup.*move it away/);
    }
    utimesSync(newer, 1, 1);
    expectCode(await runInProcess(place, ['--continue', '-p', 'control', ...MODEL]), 0);
  });
}

test('a session is deleted with --yes, by the beginning of its id; without a terminal nobody is asked', async (context) => {
  const { place, id, journal } = await worked(context);
  const refused = await runInProcess(place, ['sessions', 'delete', id]);
  expectCode(refused, 2);
  assert.match(refused.stderr, new RegExp(`pawl sessions delete ${id} --yes`));
  assert.ok(existsSync(journal));
  const deleted = await runInProcess(place, ['sessions', 'delete', id.slice(0, -2), '--yes']);
  expectCode(deleted, 0);
  assert.equal(deleted.stderr, `Deleted: ${id}.\n`);
  assert.deepEqual(readdirSync(join(place.state, 'pawl', 'sessions')), []);
  expectCode(await runInProcess(place, ['sessions', 'remove', id]), 2);
});

test('without an id it is the last session of this folder', async (context) => {
  const { place, id } = await worked(context);
  for (const words of [['show'], ['verify'], ['replay'], ['export'], ['logs']]) {
    const ran = await runInProcess(place, words);
    expectCode(ran, 0);
    assert.ok(ran.stderr.includes(`The last session of this folder: ${id}\n`), words.join(' '));
  }
  assert.ok(existsSync(join(place.workspace, `${id}.pawl`)));
  const other = join(place.folder, 'other');
  mkdirSync(other);
  const none = await runInProcess({ ...place, workspace: other }, ['show']);
  expectCode(none, 65);
  assert.match(none.stderr, /No session was run in this folder\. Name one by its id/);
});
