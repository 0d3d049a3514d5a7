import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { isRecord, openRecords } from '../src/node-runtime.js';

/** The records that say whose a session is: one that is not whole gives nobody any rights. */

test('a record that is cut, forged or of another session is of no session, and a newer field stays in it', async (context) => {
  const folder = path.join(temporaryFolder(context, 'records'), 'sessions');
  mkdirSync(folder);
  const whole = {
    version: 1,
    sessionId: 'a',
    key: 'one',
    workspace: { kind: 'folder', path: '/srv' },
    isOpen: true,
    notice: '',
    newer: 7,
  } as const;
  const text = JSON.stringify(whole);
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['a', text, true],
    ['cut', text.slice(0, -9), false],
    ['empty', '', false],
    ['half', JSON.stringify({ version: 1, sessionId: 'half', key: 'one' }), false],
    ['forged', JSON.stringify({ ...whole, sessionId: 'forged', key: ['one'] }), false],
    ['other', text, false],
  ];
  for (const [id, content] of rows) writeFileSync(path.join(folder, `${id}.json`), content);
  await assert.rejects(openRecords(path.join(folder, 'a.json'), assert.fail), { code: 'ENOTDIR' });
  const faults: string[] = [];
  const records = await openRecords(folder, ({ message }) => void faults.push(message));
  for (const [id, , isWhole] of rows)
    assert.equal((await records.get(id)) !== undefined, isWhole, id);
  assert.equal(faults.length, rows.length - 1);
  assert.match(faults[0] ?? '', /cut\.json is no record .* no key can use the session/);
  assert.deepEqual(
    (await records.ofKey('one', null, 9)).map(({ sessionId }) => sessionId),
    ['a'],
  );
  const stored = await records.get('a');
  assert.ok(stored !== undefined && isRecord(stored));
  await records.put({ ...stored, isOpen: false });
  const later = JSON.parse(readFileSync(path.join(folder, 'a.json'), 'utf8'));
  assert.deepEqual(later, { ...whole, isOpen: false });
});
