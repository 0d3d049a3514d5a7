import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { GitHistory, NO_PURPOSE } from '../../src/command/sandbox/git-history.js';
import { guardRecordIn } from '../../src/command/sandbox/protected-files.js';
import { recordSession } from '../../src/command/sandbox/session-folders.js';

// A process that is killed at any moment leaves each record whole, the old one or the new one: a record is replaced, so
// that whoever holds the old one open still reads all of it.

type RecordCase = {
  readonly file: string;
  readonly write: (folder: string, time: number) => void;
};

const guardOf = (time: number) => ({
  workspace: '/w',
  known: [],
  bound: Array.from({ length: 3 - time }, () => '/w/.envrc'),
  sinceMs: time,
});

const histories = new Map<string, GitHistory>();

const beginHistory = (folder: string): void => {
  const options = { workspace: folder, sessionFolder: folder, git: () => null };
  const history = histories.get(folder) ?? new GitHistory(options);
  if (!histories.has(folder)) execFileSync('git', ['init', '-q', folder]);
  histories.set(folder, history);
  history.begin([path.join(folder, '.git')], NO_PURPOSE);
};

const RECORDS: readonly RecordCase[] = [
  {
    file: 'protected.json',
    write: (folder, time) => guardRecordIn(folder).write(guardOf(time)),
  },
  {
    file: 'notes.json',
    write: (folder, time) => guardRecordIn(folder).leaveNotes('/w', [`note ${time}`]),
  },
  { file: 'session', write: (folder, time) => recordSession(folder, `session-${time}`) },
  { file: 'history/1/folder', write: beginHistory },
  { file: 'history/1/packs', write: beginHistory },
];

for (const { file, write } of RECORDS)
  test(`the record ${file} is replaced, not rewritten`, (t) => {
    const folder = temporaryFolder(t, 'records');
    write(folder, 1);
    const place = path.join(folder, file);
    const before = readFileSync(place, 'utf8');
    const held = openSync(place, 'r');
    t.after(() => closeSync(held));
    write(folder, 2);
    assert.equal(readFileSync(held, 'utf8'), before);
    assert.equal(fstatSync(held).nlink, 0, 'control: another file took its place');
  });
