import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChangedPath, ChangeSummary } from '@pawl/agent/machine/event';
import { changesText, type DoneRewind, pointText, rewoundText } from '../src/rewind-words.js';

const summary = (...files: readonly ChangedPath[]): ChangeSummary => {
  const count = (change: ChangedPath['change']): number =>
    files.filter((file) => file.change === change).length;
  const counts = {
    created: count('created'),
    changed: count('changed'),
    deleted: count('deleted'),
  };
  const during = files.filter(({ duringCommands }) => duringCommands === 'yes').length;
  return { ...counts, ...(during === 0 ? {} : { duringCommands: during }), files };
};

/** It changed while a command ran. */
const inCommand = (file: ChangedPath): ChangedPath => ({ ...file, duringCommands: 'yes' });

const edited = (path: string, added: number, removed: number): ChangedPath => ({
  path,
  change: 'changed',
  added,
  removed,
});
const gone = (path: string): ChangedPath => ({ path, change: 'deleted', added: 0, removed: 9 });
const made = (path: string): ChangedPath => ({ path, change: 'created', added: 9, removed: 0 });

const rows: readonly (readonly [
  title: string,
  changes: ChangeSummary,
  by: string,
  text: string,
])[] = [
  ['nothing', summary(), '', ''],
  ['lines of an edited file', summary(edited('src/a.ts', 12, 3)), '', '+12 −3 src/a.ts'],
  ['only added lines', summary(edited('src/a.ts', 12, 0)), '', '+12 src/a.ts'],
  ['no text', summary({ path: 'logo.png', change: 'changed' }), '', 'changed logo.png'],
  ['only its mode', summary(edited('run.sh', 0, 0)), '', 'changed run.sh'],
  ['two are named', summary(edited('a', 1, 1), edited('b', 2, 0)), '', '+1 −1 a, +2 b'],
  [
    'three are counted',
    summary(edited('a', 1, 1), edited('b', 2, 0), edited('c', 0, 5)),
    '',
    '+3 −6 in 3 files',
  ],
  [
    'not all are listed',
    { created: 0, changed: 5_000, deleted: 0, files: [edited('a', 1, 1)] },
    '',
    '5000 files changed',
  ],
  [
    'edits, and deletions while a command ran',
    summary(edited('src/a.ts', 12, 3), inCommand(gone('x')), inCommand(gone('y'))),
    'npm run clean',
    '+12 −3 src/a.ts, 2 files deleted; 2 of them while commands ran',
  ],
  [
    'all of them while one command ran',
    summary(inCommand(edited('src/a.ts', 12, 3)), inCommand(gone('x'))),
    'npm run clean',
    '+12 −3 src/a.ts, x deleted while npm run clean ran',
  ],
  ['one new, one deleted', summary(made('b'), gone('c')), '', 'b created, c deleted'],
  ['a line feed in a name', summary(gone('a\nb')), '', 'a b deleted'],
];

for (const [title, changes, by, text] of rows)
  test(`changes of files: ${title}`, () => assert.equal(changesText(changes, by), text));

test('a point: a turn names the calls in which its files changed, if it was one command', () => {
  const turn = {
    seq: 10,
    kind: 'turn',
    title: 'clean up',
    changes: summary(edited('a', 1, 0), inCommand(gone('x')), inCommand(gone('y'))),
  } as const;
  const clean = {
    seq: 14,
    kind: 'calls',
    title: 'bash npm run\nclean',
    changes: summary(inCommand(gone('x')), inCommand(gone('y'))),
  } as const;
  const edit = {
    seq: 12,
    kind: 'calls',
    title: 'edit a',
    changes: summary(edited('a', 1, 0)),
  } as const;
  const older = { ...clean, seq: 4, title: 'rm z' } as const;
  const later = { ...turn, seq: 20 } as const;
  const others = [later, { ...clean, seq: 24, title: 'rm w' }] as const;
  assert.equal(
    pointText(turn, [...others, clean, edit, turn, older]),
    '+1 a, 2 files deleted; 2 of them while commands ran',
  );
  assert.equal(pointText(clean, [clean, turn]), '2 files deleted while it ran');
  const whole = { ...turn, changes: clean.changes };
  assert.equal(pointText(whole, [clean, whole]), '2 files deleted while npm run clean ran');
  const half = { ...clean, changes: summary(inCommand(gone('x'))) };
  const rest = { ...half, seq: 16, changes: summary(inCommand(gone('y'))) };
  assert.equal(pointText(whole, [rest, half, whole]), '2 files deleted while commands ran');
  assert.equal(pointText({ ...turn, changes: null }, [turn]), '');
});

const back: DoneRewind = {
  direction: 'back',
  messages: 4,
  changes: summary(),
  left: [],
  note: null,
};
const foreign = { path: 'b.ts', why: 'somebody else changed it' };

const reports: readonly (readonly [title: string, done: DoneRewind, text: string])[] = [
  [
    'both',
    { ...back, changes: summary(edited('src/a.ts', 3, 12), made('x'), made('y'), gone('new.ts')) },
    'taken back: 4 messages; src/a.ts as before, 2 files are back, new.ts removed',
  ],
  ['no file was changed', back, 'taken back: 4 messages; no file had to change'],
  [
    'the conversation alone',
    { ...back, messages: 1, changes: null },
    'taken back: 1 message; files stay as they are',
  ],
  [
    'files alone',
    { ...back, messages: null, changes: summary(made('x')) },
    'taken back: x is back; the conversation stays',
  ],
  [
    'forward',
    { ...back, direction: 'forward', changes: summary(edited('a', 1, 0)) },
    'done again: 4 messages; a changed again',
  ],
  [
    'a file is left',
    { ...back, left: [foreign] },
    'taken back: 4 messages · left as it is: b.ts (somebody else changed it)',
  ],
  [
    'many are left',
    {
      ...back,
      messages: null,
      left: ['a', 'b', 'c', 'd', 'e'].map((path) => ({ path, why: 'w' })),
    },
    'taken back: the conversation stays · left as they are: a (w), b (w), c (w) and 2 more',
  ],
  [
    'a compaction',
    { ...back, messages: -38, changes: null },
    'taken back: a summary, its messages are back; files stay as they are',
  ],
  [
    'a compaction, forward',
    { ...back, direction: 'forward', messages: -38, changes: null },
    'done again: a summary; files stay as they are',
  ],
  [
    'no file could be taken back',
    { ...back, note: 'the checkpoints were pruned' },
    'taken back: 4 messages; the checkpoints were pruned',
  ],
];

for (const [title, done, text] of reports)
  test(`a rewind in words: ${title}`, () => assert.equal(rewoundText(done), text));
