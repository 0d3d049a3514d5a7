import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attribute, type Moment } from '../../src/workspace/checkpoints/attribution.js';
import {
  ABSENT,
  type ChangeOrigin,
  composeChanges,
  type FileState,
  isSameState,
  type PathChange,
  summarise,
} from '../../src/workspace/checkpoints/manifest.js';

/** Whose a change is: one row for each rule, and one for each word of it. */

const file = (sha256: string, mode = 0o644): FileState => ({
  kind: 'file',
  sha256,
  bytes: 1,
  mode,
});
const FOLDER: FileState = { kind: 'folder', mode: 0o755 };
const AFTER: FileState = { kind: 'notKept', why: 'somebody else changed it at once' };

const tool = { origin: 'tool' } as const;
const replaced = { origin: 'tool', after: AFTER } as const;
const command = { origin: 'commands' } as const;
const unsure = { origin: 'commands', unsure: true } as const;
const after = { origin: 'after' } as const;

type Row = readonly [
  title: string,
  named: 'named' | 'unnamed',
  /** What a tool last wrote: the content is `old` before and `new` after. */
  written: string | null,
  moment: Moment,
  /** Null: it is somebody else's. */
  says: Partial<PathChange> | null,
  states?: Partial<Pick<PathChange, 'before' | 'after'>>,
];

const rows: readonly Row[] = [
  ['a tool wrote it, while a command ran too', 'named', 'new', 'command', tool],
  ['a tool made a folder', 'named', null, 'beforeCommands', tool, { after: FOLDER }],
  ['control: no tool named it', 'unnamed', null, 'beforeCommands', null, { after: FOLDER }],
  ['tools are not asked', 'named', 'any', 'beforeCommands', tool],
  ['control: no tool named it then', 'unnamed', 'any', 'beforeCommands', null],
  ['a tool wrote it without its name, first', 'unnamed', 'new', 'beforeCommands', tool],
  ['a tool wrote it without its name, later', 'unnamed', 'new', 'afterCommands', tool],
  ['a tool wrote it without its name, beside a job', 'unnamed', 'new', 'perhapsJob', tool],
  ['a formatter of a command may have written it', 'unnamed', 'new', 'command', command],
  [
    'only its mode is another one',
    'unnamed',
    'new',
    'beforeCommands',
    null,
    { before: file('new', 0o600) },
  ],
  ['a command changed the file of a tool', 'named', 'other', 'command', command],
  ['perhaps a job changed the file of a tool', 'named', 'other', 'perhapsJob', unsure],
  ['somebody saved over the text of a tool', 'named', 'other', 'afterCommands', replaced],
  ['control: over an older text of a tool', 'named', 'old', 'beforeCommands', null],
  ['somebody saved it while a tool failed', 'named', null, 'beforeCommands', null],
  ['somebody saved what no tool named', 'unnamed', 'other', 'beforeCommands', null],
  ['nobody knows who removed it', 'unnamed', null, 'afterCommands', after, { after: ABSENT }],
];

for (const [title, named, written, moment, says, states] of rows)
  test(`whose a change is: ${title}`, () => {
    const change = { path: 'a', before: file('old'), after: file('new'), ...states };
    const facts = { moment, isNamed: named === 'named', written };
    assert.deepEqual(attribute(change, facts), says && { ...change, ...says });
  });

type Origin = ChangeOrigin | undefined;
const UNRECORDED = undefined;
const joins: readonly (readonly [one: Origin, other: Origin, joined: Origin])[] = [
  ['tool', 'tool', 'tool'],
  ['tool', 'commands', 'commands'],
  ['tool', UNRECORDED, UNRECORDED],
  ['commands', UNRECORDED, 'commands'],
];

test('two changes of a path are one: a command may be in it, and a tool only if it made both', async () => {
  for (const [one, other, joined] of joins)
    for (const [first, second] of [
      [one, other],
      [other, one],
    ]) {
      const changes = [
        { path: 'x', before: ABSENT, after: file('1'), ...(first && { origin: first }) },
        { path: 'x', before: file('1'), after: file('2'), ...(second && { origin: second }) },
      ];
      const [target] = composeChanges([{ by: 'agent', changes }], isSameState);
      assert.equal(target?.origin, joined, `${first} and ${second}`);
      const { files } = await summarise({ get: async () => null }, changes, 'all');
      assert.equal(files[0]?.duringCommands === 'yes', joined === 'commands');
    }
});
