import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import '../../../../test/own-process.js';
import {
  type Answer,
  callTools,
  rawCall,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { createAgent, type Session, type SessionOptions } from '../../src/session/create-agent.js';

/** A file of twenty lines, and what the model replaces it by. */
const FILE = Array.from({ length: 20 }, (_, at) => `line ${at + 1}\n`).join('');
const NEW = 'replaced\n';

let calls = 0;
const read = (input: Readonly<Record<string, number>> = {}) =>
  rawCall(`read-${++calls}`, 'read', { path: 'file', ...input });
const write = (content = NEW) => rawCall(`write-${++calls}`, 'write', { path: 'file', content });
const edit = (oldText: string, newText: string) =>
  rawCall(`edit-${++calls}`, 'edit', { path: 'file', edits: [{ oldText, newText }] });

/** A turn: each list of calls is one reply. */
type Call = ReturnType<typeof rawCall>;
type Step = readonly (readonly Call[])[] | 'compact' | 'undoCompaction' | 'rewind' | 'reopen';

type Row = {
  readonly title: string;
  readonly steps: readonly Step[];
  readonly settings?: SessionOptions['settings'];
  /** What the refusal of the last call says. Absent: it replaces the file. */
  readonly refused?: RegExp;
};

const notShown = (lines: string): RegExp =>
  new RegExp(`The conversation does not show lines ${lines} of file: read them, or edit`);

const rows: readonly Row[] = [
  { title: 'after all lines were read', steps: [[[read()], [write()]]] },
  {
    title: 'not after a part was read',
    steps: [[[read({ limit: 10 })], [write()]]],
    refused: notShown('11-20'),
  },
  {
    title: 'after all lines were read in two parts',
    steps: [[[read({ limit: 10 })], [read({ offset: 11 })], [write()]]],
  },
  {
    title: 'not while a part between two others is missing',
    steps: [[[read({ limit: 10 }), read({ offset: 15 })], [write()]]],
    refused: notShown('11-14'),
  },
  {
    title: 'not after a search alone',
    steps: [[[rawCall('s', 'search', { pattern: 'line', path: 'file' })], [write()]]],
    refused: /has not been read in this session/,
  },
  {
    title: 'not in the reply that asks to read it',
    steps: [[[read(), write()]]],
    refused: notShown('1-20'),
  },
  {
    title: 'again in the reply that has replaced it',
    steps: [[[read()], [write('own\n'), write()]]],
  },
  {
    title: 'after an edit of a file that was read',
    steps: [[[read()], [edit('line 3', 'three\nand more')], [write()]]],
  },
  {
    title: 'after the rest was read beside an edit that adds lines',
    steps: [
      [[read({ limit: 10 })], [edit('line 3\n', '3\n3\n')], [read({ offset: 12 })], [write()]],
    ],
  },
  {
    title: 'not after an edit of a file of which a part was read',
    steps: [[[read({ limit: 10 })], [edit('line 3\n', '3\n3\n')], [write()]]],
    refused: notShown('12-21'),
  },
  {
    title: 'not after a result that was cut',
    steps: [[[read()], [write()]]],
    settings: { outputCutBytes: 100 },
    refused: notShown('1-20'),
  },
  {
    title: 'not after a summary of the reading',
    steps: [[[read()]], 'compact', [[write()]]],
    refused: notShown('1-20'),
  },
  {
    title: 'after the summary of the reading was taken back',
    steps: [[[read()]], 'compact', 'undoCompaction', [[write()]]],
  },
  {
    title: 'not after a rewind to before the reading',
    steps: [[[read()]], 'rewind', [[write()]]],
    refused: notShown('1-20'),
  },
  { title: 'in a session that was opened again', steps: [[[read()]], 'reopen', [[write()]]] },
  {
    title: 'not in a session that was opened again after a part was read',
    steps: [[[read({ offset: 3 })]], 'reopen', [[write()]]],
    refused: notShown('1-2'),
  },
];

const answersOf = (steps: readonly Step[]): readonly Answer[] =>
  steps.flatMap((step) => {
    if (step === 'compact') return [say('the summary')];
    return typeof step === 'string' ? [] : [...step.map((reply) => callTools(...reply)), say('ok')];
  });

/** Plays the steps and returns the last session. */
const play = async (
  { steps, settings = {} }: Row,
  open: (options?: Partial<SessionOptions>) => Promise<Session>,
): Promise<Session> => {
  let session = await open({ settings });
  for (const step of steps) {
    switch (step) {
      case 'compact':
        await session.send({ type: 'CompactRequested' });
        await session.idle();
        break;
      case 'undoCompaction':
        await session.undoCompaction();
        break;
      case 'rewind': {
        const [turn] = (await session.timeline()).filter(({ kind }) => kind === 'turn');
        await session.rewind({ at: turn?.seq ?? 0 });
        break;
      }
      case 'reopen':
        await session.close();
        session = await open({ resume: session.id });
        break;
      default:
        await session.prompt('go');
    }
  }
  return session;
};

const place = (context: TestContext): { readonly workspace: string; readonly state: string } => {
  const folder = realpathSync(temporaryFolder(context, 'unseen'));
  const [workspace, state] = [path.join(folder, 'work'), path.join(folder, 'state')];
  mkdirSync(workspace);
  process.env.XDG_STATE_HOME = state;
  writeFileSync(path.join(workspace, 'file'), FILE);
  return { workspace, state };
};

for (const row of rows) {
  test(`a file is replaced ${row.title}`, async (context) => {
    const { workspace, state } = place(context);
    const agent = createAgent({
      model: testModel(...answersOf(row.steps)),
      journals: fileJournals({ folder: path.join(state, 'pawl') }),
    });
    const open = (options: Partial<SessionOptions> = {}) =>
      agent.open({ workspace, sandbox: 'off', ...options });
    const session = await play(row, open);
    const results = messagesOf((await session.state()).session.conversation).flatMap((message) =>
      message.parts.flatMap((part) => (part.type === 'result' ? [part.text] : [])),
    );
    const last = results.at(-1) ?? '';
    const after = readFileSync(path.join(workspace, 'file'), 'utf8');
    if (row.refused === undefined)
      assert.deepEqual([after, last], [NEW, 'Replaced file (1 line).']);
    else {
      assert.match(last, row.refused);
      assert.notEqual(after, NEW);
    }
    await session.close();
  });
}
