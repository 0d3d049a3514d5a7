import assert from 'node:assert/strict';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { type Executable, openTrust, type TrustStore } from '../../src/extensions/trust.js';

type Place = { readonly state: string; readonly project: string; readonly stored: string };

const makePlace = (t: TestContext): Place => {
  const root = temporaryFolder(t, 'trust');
  const project = path.join(root, 'project');
  mkdirSync(project);
  return { state: path.join(root, 'state'), project, stored: path.join(root, 'state', 'trust') };
};

const opened = ({ state }: Place): { store: TrustStore; warnings: string[] } => {
  const warnings: string[] = [];
  return { store: openTrust(state, (text) => void warnings.push(text)), warnings };
};

const hook = (content: string, name = 'format'): Executable => ({ kind: 'hook', name, content });

/** Path of the only stored version. */
const storedFile = ({ stored }: Place): string => {
  const names = readdirSync(stored).filter((name) => name.endsWith('.json'));
  assert.equal(names.length, 1, `exactly one version: ${readdirSync(stored).join(' ')}`);
  return path.join(stored, names[0] ?? '');
};

test('exactly the allowed content is trusted, and a change names what was allowed', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
  await store.allow(place.project, hook('echo 1'));
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'trusted' });
  for (const changed of ['echo 1 ', 'echo 2', '', 'Echo 1', 'echo\u00a01'])
    assert.deepEqual(await store.judge(place.project, hook(changed)), {
      kind: 'changed',
      before: 'echo 1',
    });
  assert.deepEqual(await store.judge(place.project, hook('echo 1', 'other')), { kind: 'unknown' });
  const server = { kind: 'mcp-server', name: 'format', content: 'echo 1' } as const;
  assert.deepEqual(await store.judge(place.project, server), { kind: 'unknown' });
});

test('a refused content is not asked for again, a new one is', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await store.refuse(place.project, hook('rm -r /'));
  assert.deepEqual(await store.judge(place.project, hook('rm -r /')), { kind: 'refused' });
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
  await store.allow(place.project, hook('rm -r /'));
  assert.deepEqual(await store.judge(place.project, hook('rm -r /')), { kind: 'trusted' });
});

test('a revoked answer asks again; another process sees it at once', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await store.allow(place.project, hook('echo 1'));
  const other = opened(place).store;
  assert.deepEqual(await other.judge(place.project, hook('echo 1')), { kind: 'trusted' });
  assert.equal(await other.revoke(place.project, hook('')), true);
  assert.equal(await other.revoke(place.project, hook('')), false);
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
  assert.deepEqual(await store.list(), []);
});

test('a copied or moved project asks again; a symlink to the project does not', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await store.allow(place.project, hook('echo 1'));
  const link = `${place.project}-link`;
  symlinkSync(place.project, link);
  assert.deepEqual(await store.judge(link, hook('echo 1')), { kind: 'trusted' });
  const copy = `${place.project}-copy`;
  cpSync(place.project, copy, { recursive: true });
  assert.deepEqual(await store.judge(copy, hook('echo 1')), { kind: 'unknown' });
  const moved = `${place.project}-moved`;
  renameSync(place.project, moved);
  assert.deepEqual(await store.judge(moved, hook('echo 1')), { kind: 'unknown' });
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
  assert.equal(
    await store.revoke(place.project, hook('')),
    true,
    'a removed folder can be revoked',
  );
});

test('nobody else can read the answers, and nothing is written into the project', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await store.allow(place.project, hook('echo 1'));
  assert.equal(statSync(place.stored).mode & 0o777, 0o700);
  assert.equal(statSync(storedFile(place)).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(place.project), []);
});

test('answers given at the same time are all kept', async (t) => {
  const place = makePlace(t);
  const names = Array.from({ length: 24 }, (_, index) => `hook-${index}`);
  await Promise.all(
    names.map((name) => opened(place).store.allow(place.project, hook('echo 1', name))),
  );
  const { store, warnings } = opened(place);
  assert.deepEqual((await store.list()).map(({ name }) => name).sort(), names.sort());
  assert.deepEqual(warnings, []);
  storedFile(place);
});

test('a damaged list allows nothing, is reported once, and is kept aside by the next answer', async (t) => {
  for (const damage of ['', '{', '{"format":1,"entries":[{"kind":"hook"}]}', '\0']) {
    const place = makePlace(t);
    await opened(place).store.allow(place.project, hook('echo 1'));
    const file = storedFile(place);
    writeFileSync(file, damage);
    const { store, warnings } = opened(place);
    assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
    await store.list();
    assert.equal(warnings.length, 1, damage);
    assert.match(warnings[0] ?? '', /1\.json is damaged, so nothing counts as allowed/);
    await store.allow(place.project, hook('echo 2'));
    assert.deepEqual(await store.judge(place.project, hook('echo 2')), { kind: 'trusted' });
    assert.equal(readFileSync(path.join(place.stored, '1.damaged'), 'utf8'), damage);
    assert.deepEqual(await opened(place).store.judge(place.project, hook('echo 1')), {
      kind: 'changed',
      before: 'echo 2',
    });
  }
});

test('answers of a newer version count for nothing, and are kept', async (t) => {
  const place = makePlace(t);
  await opened(place).store.allow(place.project, hook('echo 1'));
  const [known] = JSON.parse(readFileSync(storedFile(place), 'utf8')).entries;
  const newer = [
    { ...known, kind: 'plugin', more: 1 },
    { ...known, name: 'lint', level: 'moon' },
  ];
  writeFileSync(storedFile(place), JSON.stringify({ format: 1, entries: [known, ...newer] }));
  const { store, warnings } = opened(place);
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'trusted' });
  assert.deepEqual(await store.judge(place.project, hook('echo 1', 'lint')), { kind: 'unknown' });
  await store.refuse(place.project, hook('echo 1'));
  assert.equal((await store.list()).length, 1);
  assert.deepEqual(JSON.parse(readFileSync(storedFile(place), 'utf8')).entries.slice(0, 2), newer);
  assert.deepEqual(warnings, []);
});

test('a list in a newer format is left alone, and a damaged one by an answer that changes nothing', async (t) => {
  const place = makePlace(t);
  await opened(place).store.allow(place.project, hook('echo 1'));
  const file = storedFile(place);
  for (const [text, why] of [
    ['{"format":2}', /newer version of Pawl has written/],
    ['{', /is damaged/],
  ] as const) {
    writeFileSync(file, text);
    const { store, warnings } = opened(place);
    assert.deepEqual(await store.list(), []);
    assert.match(warnings.join('\n'), why);
    const revoked = store.revoke(place.project, hook('echo 1'));
    if (text === '{') assert.equal(await revoked, false);
    else {
      await assert.rejects(revoked, why);
      await assert.rejects(store.allow(place.project, hook('echo 2')), why);
    }
    assert.equal(readFileSync(file, 'utf8'), text);
  }
});

test('a version that was set aside does not bring an older one back', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await store.allow(place.project, hook('echo 1'));
  const first = readFileSync(storedFile(place));
  await store.revoke(place.project, hook(''));
  // A process that was killed before it removed the older version.
  writeFileSync(path.join(place.stored, '1.json'), first);
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
  renameSync(path.join(place.stored, '2.json'), path.join(place.stored, '2.damaged'));
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
});

test('drafts and older versions of killed processes are removed by the next answer', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await store.allow(place.project, hook('echo 1'));
  writeFileSync(path.join(place.stored, '2.0000.tmp'), '{"format":1,');
  await store.allow(place.project, hook('echo 2', 'second'));
  assert.deepEqual(readdirSync(place.stored), ['2.json']);
});

test('a list that others may write to allows nothing', async (t) => {
  const place = makePlace(t);
  await opened(place).store.allow(place.project, hook('echo 1'));
  chmodSync(storedFile(place), 0o666);
  const { store, warnings } = opened(place);
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
  assert.match(warnings.join(), /others may write to it/);
  await assert.rejects(store.allow(place.project, hook('echo 2')), /others may write to it/);
});

test('a content that nobody would read, or that could not be stored, is refused with words', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  await assert.rejects(
    store.allow(place.project, hook('x'.repeat(100_001))),
    /at most 100000 can be allowed/,
  );
  writeFileSync(place.state, 'a file where the folder should be');
  await assert.rejects(store.allow(place.project, hook('echo 1')));
  assert.deepEqual(await store.judge(place.project, hook('echo 1')), { kind: 'unknown' });
});

test('names and contents with any characters come back as they were', async (t) => {
  const place = makePlace(t);
  const { store } = opened(place);
  const odd = { kind: 'hook', name: '\u202e"\n\0__proto__', content: '\ud800\u2028é\r\n' } as const;
  await store.allow(place.project, odd);
  assert.deepEqual(await opened(place).store.judge(place.project, odd), { kind: 'trusted' });
  const [entry] = await store.list();
  assert.equal(entry?.content, odd.content);
});
