import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attribute, type ChangeFacts } from '../../src/workspace/checkpoints/attribution.js';
import {
  ABSENT,
  type FileState,
  type PathChange,
} from '../../src/workspace/checkpoints/manifest.js';

/** Whose a change is: one row for each rule, and one for each word of it. */

const file = (sha256: string, mode = 0o644): FileState => ({
  kind: 'file',
  sha256,
  bytes: 1,
  mode,
});
const FOLDER: FileState = { kind: 'folder', mode: 0o755 };

type Row = {
  readonly title: string;
  readonly facts: ChangeFacts;
  readonly before?: FileState;
  readonly after?: FileState;
  /** What is added to the change; null: it is somebody else's. */
  readonly then: Partial<PathChange> | null;
};

const [named, unnamed] = [{ isNamed: true }, { isNamed: false }];
const TOOL = { origin: 'tool' } as const;
const COMMANDS = { origin: 'commands' } as const;
const UNSURE = { origin: 'commands', unsure: true } as const;
const REPLACED: FileState = { kind: 'notKept', why: 'somebody else changed it at once' };

const rows: readonly Row[] = [
  {
    title: 'what a tool wrote to a file that it named is the tool’s, while a command ran too',
    facts: { ...named, written: 'new', moment: 'command' },
    then: TOOL,
  },
  {
    title: 'so is a folder that it named, whatever was written',
    facts: { ...named, written: null, moment: 'beforeCommands' },
    after: FOLDER,
    then: TOOL,
  },
  {
    title: 'control: a folder that no tool named is somebody else’s',
    facts: { ...unnamed, written: null, moment: 'beforeCommands' },
    after: FOLDER,
    then: null,
  },
  {
    title: 'where tools are not asked, what they named is theirs',
    facts: { ...named, written: 'any', moment: 'beforeCommands' },
    then: TOOL,
  },
  {
    title: 'control: what they did not name is not',
    facts: { ...unnamed, written: 'any', moment: 'beforeCommands' },
    then: null,
  },
  ...(['beforeCommands', 'afterCommands', 'perhapsJob'] as const).map(
    (moment): Row => ({
      title: `the text of a tool in a file that it did not name is the tool’s: ${moment}`,
      facts: { ...unnamed, written: 'new', moment },
      then: TOOL,
    }),
  ),
  {
    title: 'but not while a command ran: it may be a formatter of the command',
    facts: { ...unnamed, written: 'new', moment: 'command' },
    then: COMMANDS,
  },
  {
    title: 'nor where the text was there before: only the mode is another one',
    facts: { ...unnamed, written: 'new', moment: 'beforeCommands' },
    before: file('new', 0o600),
    then: null,
  },
  {
    title: 'what changed while a command ran is the command’s, also in a file of a tool',
    facts: { ...named, written: 'other', moment: 'command' },
    then: COMMANDS,
  },
  {
    title: 'what changed while perhaps a job ran is so too, but unsure',
    facts: { ...named, written: 'other', moment: 'perhapsJob' },
    then: UNSURE,
  },
  {
    title: 'what somebody saved over the text of a tool is not taken back by its content',
    facts: { ...named, written: 'other', moment: 'afterCommands' },
    then: { ...TOOL, after: REPLACED },
  },
  {
    title: 'control: what somebody saved over an older text of a tool is theirs',
    facts: { ...named, written: 'old', moment: 'beforeCommands' },
    then: null,
  },
  {
    title: 'so is what they saved while a tool failed',
    facts: { ...named, written: null, moment: 'beforeCommands' },
    then: null,
  },
  {
    title: 'what they saved in a file that no tool named is theirs',
    facts: { ...unnamed, written: 'other', moment: 'beforeCommands' },
    then: null,
  },
  {
    title: 'what changed after a command is nobody’s for sure',
    facts: { ...unnamed, written: null, moment: 'afterCommands' },
    after: ABSENT,
    then: { origin: 'after' },
  },
];

for (const { title, facts, before = file('old'), after = file('new'), then } of rows)
  test(title, () => {
    const change: PathChange = { path: 'a', before, after };
    assert.deepEqual(attribute(change, facts), then && { ...change, ...then });
  });
