import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FileState, PathChange } from '@pawl/agent/workspace/checkpoints/manifest';
import { createFileDiff } from '../../src/commands/diff-files.js';

/** The note of each change that `pawl diff ID --at A..B` shows: in words, and no reason is lost. */

const texts: Readonly<Record<string, string | Buffer>> = {
  short: 'one\n',
  long: 'line\n'.repeat(6_000),
  binary: 'a\u0000b',
  latin: Buffer.from('caf\u00e9', 'latin1'),
  otherLatin: Buffer.from('caf\u00e8', 'latin1'),
};
const store = {
  get: async (sha256: string) => {
    const text = texts[sha256];
    return text === undefined ? null : Buffer.from(text);
  },
};
const file = (sha256: string, mode = 0o644): FileState => ({
  kind: 'file',
  sha256,
  bytes: 9,
  mode,
});
const absent: FileState = { kind: 'absent' };
const folder: FileState = { kind: 'folder', mode: 0o755 };
const link: FileState = { kind: 'link', target: 'there' };
const tooLarge: FileState = { kind: 'notKept', why: 'it has more than 20 MB' };

const rows: readonly (readonly [FileState, FileState, note: string, 'diff' | 'none'])[] = [
  [absent, file('short'), 'created', 'diff'],
  [file('short'), absent, 'deleted', 'diff'],
  [file('short'), file('short', 0o755), 'mode 644 → 755', 'none'],
  [file('short'), link, 'file became link', 'diff'],
  [absent, folder, 'folder created', 'none'],
  [absent, file('long'), 'created; too many changes to be shown', 'none'],
  [file('short'), file('long', 0o755), 'mode 644 → 755; too many changes to be shown', 'none'],
  [file('short'), file('gone'), 'its content is no longer stored', 'none'],
  [absent, file('binary'), 'created; binary', 'none'],
  [absent, tooLarge, 'created; it has more than 20 MB', 'none'],
  [tooLarge, absent, 'deleted; it has more than 20 MB', 'none'],
  [file('short'), tooLarge, 'it has more than 20 MB', 'none'],
  [file('latin'), file('otherLatin'), 'they differ only in bytes that are not UTF-8', 'none'],
];

for (const [before, after, note, shows] of rows)
  test(`a change from ${JSON.stringify(before)} to ${JSON.stringify(after)}: ${note}`, async () => {
    const shown = await createFileDiff(store, { path: 'a', before, after } as PathChange); // no call
    assert.deepEqual([shown.note, shown.diff === '' ? 'none' : 'diff'], [note, shows]);
  });
