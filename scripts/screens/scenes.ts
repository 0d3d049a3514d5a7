/**
 * Scenes for pictures of the terminal: the replies of the scripted model, the acts of the user,
 * and the moment of the picture, which is when `play` ends. `window.sees` waits for a text on the
 * screen.
 *
 * From top to bottom: replies that several scenes use; plans and questions; stored and detached
 * sessions; `scenes`, the list of all; and the scene of README.md.
 */

import type { Window } from './window.js';

export type Scene = {
  readonly name: string;
  /** Arguments of `pawl`; null: the window runs a shell, in which somebody types `pawl`. */
  readonly flags: readonly string[] | null;
  /** Replies of the scripted model. */
  readonly replies: readonly object[];
  play(window: Window): Promise<void>;
  /** A command of the shell that runs after the picture. */
  readonly end?: string;
};

const usage = (inputTokens: number, outputTokens: number) => ({
  usage: { inputTokens, outputTokens },
});
const call = (tool: string, input: object) => ({ tool, input });

const CODE_ANSWER = `A bill is split in whole cents, so **something is left over**: up to \`people - 1\` cents. The usual repair gives one more cent to the first shares:

\`\`\`ts
/** Shares that differ by at most one cent and add up to the whole. */
export const splitBill = (cents: number, people: number): number[] => {
  const share = Math.floor(cents / people);
  const left = cents - share * people; // 0 to people - 1
  return Array.from({ length: people }, (_, index) => share + (index < left ? 1 : 0));
};
\`\`\`

Three things follow:

1. the sum is exact
2. no share differs by more than a cent
   - also for one person
3. the order of the people decides who pays the cent

| people | shares of 100 |
|---|---|
| 3 | 34, 33, 33 |
| 4 | 25, 25, 25, 25 |

The next step would be a test that ${'goes on with one more word '.repeat(60)}`;

const oldText = '  return Array.from({ length: people }, () => share);';
const newText = [
  '  const left = cents - share * people;',
  '  return Array.from({ length: people }, (_, index) => share + (index < left ? 1 : 0));',
].join('\n');

const repairReplies: readonly object[] = [
  {
    reasoning:
      'The tests fail because cents get lost. I should look at the split first, then at its tests.',
    text: 'I look at the code and its tests.',
    calls: [call('read', { path: 'src/split.js' }), call('search', { pattern: 'splitBill' })],
    ...usage(5_200, 90),
  },
  { calls: [call('bash', { command: 'node --test' })], ...usage(6_100, 40) },
  {
    text: 'Cents get lost: `Math.floor` rounds every share down.',
    calls: [call('edit', { path: 'src/split.js', edits: [{ oldText, newText }] })],
    ...usage(7_400, 160),
  },
  {
    calls: [call('bash', { command: 'node --test --test-reporter=dot && git status --short' })],
    ...usage(7_900, 40),
  },
  {
    text: 'Repaired: the cents that are left over go to the first shares, **one each**. All four tests pass.',
    ...usage(8_300, 60),
  },
];

const LONG_FILE = Array.from(
  { length: 90 },
  (_, index) => `export const square${index} = ${index} * ${index}; // ${index * index}`,
).join('\n');

/** The status of a session that waits for the user. */
const READY = /ready ·/;

/** Shown when a question about a call can be answered: its keys. */
const APPROVAL_KEYS = /Pawl asks: [\s\S]*(y a |y yes)/;

const prompt = async (window: Window, text: string): Promise<void> => {
  await window.sees(READY);
  window.press(`${text}\r`);
};

const AUTO = ['--preset', 'auto'];

const PLAN = {
  title: 'Make the split of a bill exact',
  steps: [
    'Write a test for a bill that leaves cents over',
    'Give the cents that are left over to the first shares in `splitBill`, **one each**',
    'Run all tests',
  ],
  text: '## Why\n\n`Math.floor` rounds *every* share down, so up to `people - 1` cents are lost.\n\n- no new dependency\n- the order of the people decides who pays the cent',
};

const proposePlan = { text: 'I have read the code.', calls: [call('propose_plan', PLAN)] };

/** Shown when a plan can be answered: its keys, with names if no rows explain them. */
const PLAN_KEYS = /y e n|y yes/;
const PAGE_DOWN = '\u001b[6~';
const DRAWN_MS = 300;

/** Scenes with a question of the model, or a plan that it proposes. */
const planScenes: readonly Scene[] = [
  {
    name: '21-question-of-the-model',
    flags: [],
    replies: [
      {
        text: 'There are two ways.',
        calls: [
          call('ask_user', {
            question:
              'Who pays the cents that are left over when a bill is split? The tests do not say it, and both ways are usual.',
            choices: ['the first people of the list, one each', 'the person who paid the bill'],
          }),
        ],
        ...usage(5_200, 90),
      },
    ],
    async play(window) {
      await prompt(window, 'make the split exact');
      await window.sees(/1 2 t n|t type/);
    },
  },
  {
    name: '22-plan-proposed',
    flags: ['--preset', 'plan'],
    replies: [proposePlan],
    async play(window) {
      await prompt(window, 'make the split exact');
      await window.sees(PLAN_KEYS);
    },
  },
  {
    name: '23-plan-accepted',
    flags: ['--preset', 'plan'],
    replies: [proposePlan, { text: 'I begin with the test.', delayMs: 4_000 }],
    async play(window) {
      await prompt(window, 'make the split exact');
      await window.sees(PLAN_KEYS);
      // down to the end of the plan, then the yes
      for (const key of [PAGE_DOWN, PAGE_DOWN, 'y']) {
        window.press(key);
        await pause(DRAWN_MS);
      }
      await window.sees(/0 of 3 done/);
    },
  },
  {
    name: '24-reason-of-a-no',
    flags: [],
    replies: [{ calls: [call('bash', { command: 'npm install left-pad && node --test' })] }],
    async play(window) {
      await prompt(window, 'add left-pad');
      await window.sees(/Pawl asks:/);
      await pause(DRAWN_MS);
      window.press('n');
      await window.sees(/Enter sends/);
      window.press('use what is there');
      await window.sees(/what is\s+there/);
    },
  },
];

/** Stops the detached session. */
const STOP = `pawl stop "$(pawl sessions --live | grep -o '[0-9]\\{8\\}-[0-9a-f-]*' | head -n 1)"`;

/** Scenes with sessions that were stored, or run detached from a terminal. */
const sessionScenes: readonly Scene[] = [
  {
    name: '25-list-of-sessions',
    flags: null,
    replies: [{ text: 'Cents are rounded down.', ...usage(5_200, 90) }],
    async play(window) {
      await window.sees('$ ');
      window.press(
        "pawl -p 'why is a cent lost when I split a bill?'; pawl -p 'name the tests'; pawl\r",
      );
      await prompt(window, '/resume');
      await window.sees(/› \S.*name the tests|› \d/);
    },
  },
  {
    name: '26-detached-sessions',
    flags: null,
    replies: [{ calls: [call('bash', { command: 'npm install left-pad' })] }],
    async play(window) {
      await window.sees('$ ');
      window.press(
        "pawl -p 'add left-pad' --detach --preset careful; sleep 3; pawl sessions --live\r",
      );
      await window.sees(/since\s+\d+ s/);
    },
    end: STOP,
  },
  {
    name: '27-attached',
    flags: null,
    replies: [{ calls: [call('bash', { command: 'npm install left-pad' })] }],
    async play(window) {
      await window.sees('$ ');
      window.press("pawl -p 'add left-pad' --detach --preset careful; pawl attach\r");
      await window.sees(/Pawl asks: [\s\S]*Escape s/);
    },
    end: STOP,
  },
];

export const scenes: readonly Scene[] = [
  {
    name: '01-greeting',
    flags: [],
    replies: [],
    play: (window) => window.sees(READY),
  },
  {
    name: '02-streaming',
    flags: AUTO,
    replies: [{ text: CODE_ANSWER, delayMs: 60 }],
    async play(window) {
      await prompt(window, 'why is a cent lost when I split a bill?');
      await window.sees(/25, 25, 25, 25/);
      await window.sees(/The next step/);
    },
  },
  {
    name: '03-tools-and-diff',
    flags: AUTO,
    replies: repairReplies,
    async play(window) {
      await prompt(window, 'the tests fail: find out why and repair it');
      await window.sees(/four\s+tests\s+pass[\s\S]*ready ·/);
    },
  },
  {
    name: '04-question',
    flags: ['--preset', 'careful'],
    replies: [repairReplies[0] ?? {}, repairReplies[2] ?? {}],
    async play(window) {
      await prompt(window, 'repair the split');
      await window.sees(APPROVAL_KEYS);
    },
  },
  {
    name: '05-failing-command',
    flags: AUTO,
    replies: [
      repairReplies[1] ?? {},
      { text: 'Two of the four tests fail: `splitBill` loses cents.', ...usage(6_000, 30) },
    ],
    async play(window) {
      await prompt(window, 'run the tests');
      await window.sees(/loses\s+cents[\s\S]*ready ·/);
    },
  },
  {
    name: '06-retry',
    flags: AUTO,
    replies: [
      {
        text: 'I read the',
        fail: { kind: 'overloaded', message: 'Overloaded', retryAfterMs: 20_000 },
      },
      { text: 'done' },
    ],
    async play(window) {
      await prompt(window, 'explain the split to me');
      await window.sees(/retrying in 1\d/);
    },
  },
  {
    name: '07-todo',
    flags: AUTO,
    replies: [
      {
        text: 'Four steps.',
        calls: [
          call('todo', {
            items: [
              { text: 'Read the code', status: 'done' },
              { text: 'Write a test for odd bills', status: 'inProgress' },
              { text: 'Repair the split', status: 'pending' },
              { text: 'Run everything and commit', status: 'pending' },
            ],
          }),
        ],
        ...usage(5_400, 120),
      },
      {
        calls: [call('bash', { command: 'for n in 1 2 3; do echo "step $n of 3"; sleep 4; done' })],
      },
      { text: 'done' },
    ],
    async play(window) {
      await prompt(window, 'make the split exact');
      await window.sees('step 1 of 3');
      window.press('and commit it when you are done\r');
      await window.sees(/1 waiting/);
      await window.sees('step 2 of 3');
    },
  },
  {
    name: '08-resumed',
    flags: AUTO,
    replies: repairReplies,
    async play(window) {
      await prompt(window, 'the tests fail: find out why and repair it');
      await window.sees(/four\s+tests\s+pass[\s\S]*ready ·/);
      window.press('/resume\r');
      await window.sees(/no other session/);
      window.press('/fork\r');
      await window.sees(/a fork of/);
      await window.sees(/a fork of[\s\S]*ready ·/);
    },
  },
  {
    name: '09-help',
    flags: [],
    replies: [],
    async play(window) {
      await prompt(window, '/help');
      await window.sees(READY);
      window.press('/re');
      await window.sees(/› re\w+ /);
    },
  },
  {
    name: '10-end',
    flags: [...AUTO, '--max-rounds', '2'],
    replies: repairReplies,
    async play(window) {
      await prompt(window, 'the tests fail: find out why and repair it');
      await window.sees(/limit reached/);
      window.press('/cost\r');
      await window.sees(/cache read/);
      window.press('\u0004');
      await window.sees(/pawl --resume \S/);
    },
  },
  {
    name: '11-question-of-a-command',
    flags: [],
    replies: [{ calls: [call('bash', { command: 'npm install left-pad && node --test' })] }],
    async play(window) {
      await prompt(window, 'add left-pad');
      await window.sees(APPROVAL_KEYS);
    },
  },
  {
    name: '12-question-of-a-long-change',
    flags: [],
    replies: [{ calls: [call('write', { path: 'src/table.js', content: LONG_FILE })] }],
    async play(window) {
      await prompt(window, 'write a table of squares');
      await window.sees(/more row/);
    },
  },
  {
    name: '13-list-of-models',
    flags: [],
    replies: [],
    async play(window) {
      await prompt(window, '/model');
      await window.sees(/› /);
    },
  },
  {
    name: '14-card-of-keys',
    flags: [],
    replies: [],
    async play(window) {
      await window.sees(READY);
      window.press('?');
      await window.sees(/Shift.Tab/);
    },
  },
  {
    name: '15-error',
    flags: AUTO,
    replies: [
      {
        fail: {
          kind: 'auth',
          message: 'invalid x-api-key. Set ANTHROPIC_API_KEY to a key that may use this model.',
        },
      },
    ],
    async play(window) {
      await prompt(window, 'explain the split to me');
      await window.sees(/failed/);
    },
  },
  {
    name: '16-compaction',
    flags: AUTO,
    replies: [
      ...repairReplies,
      { text: 'The split was repaired: the cents that are left over go to the first shares.' },
    ],
    async play(window) {
      await prompt(window, 'the tests fail: find out why and repair it');
      await window.sees(/four\s+tests\s+pass[\s\S]*ready ·/);
      window.press('/compact\r');
      await window.sees(/became/);
    },
  },
  {
    name: '17-rewind',
    flags: AUTO,
    replies: repairReplies,
    async play(window) {
      await prompt(window, 'the tests fail: find out why and repair it');
      await window.sees(/four\s+tests\s+pass[\s\S]*ready ·/);
      window.press('/rewind\r');
      await window.sees(/Take back this/);
    },
  },
  {
    name: '18-diff',
    flags: AUTO,
    replies: repairReplies,
    async play(window) {
      await prompt(window, 'the tests fail: find out why and repair it');
      await window.sees(/four\s+tests\s+pass[\s\S]*ready ·/);
      window.press('/diff\r');
      await window.sees(/HEAD \(/);
    },
  },
  {
    name: '19-plan',
    flags: [],
    replies: [],
    async play(window) {
      await window.sees(READY);
      window.press('\u001b[Z\u001b[Z');
      await window.sees(/^ *plan/m);
      window.press('look at the split first, then');
      await window.sees(/first, then/);
    },
  },
  {
    name: '20-two-questions',
    flags: [],
    replies: [
      repairReplies[0] ?? {},
      {
        calls: [
          call('edit', { path: 'src/split.js', edits: [{ oldText, newText }] }),
          call('write', { path: 'NOTES.md', content: '# Notes\n\nCents were lost.\n' }),
        ],
      },
    ],
    async play(window) {
      await prompt(window, 'repair the split and note it');
      await window.sees(/1 of\s+2/);
    },
  },
  ...planScenes,
  ...sessionScenes,
];

const KEY_MS = 60;
const READ_MS = 1_500;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

/** Types as people do. */
const typeSlowly = async (window: Window, text: string): Promise<void> => {
  for (const letter of text) {
    window.press(letter);
    await pause(KEY_MS);
  }
  await pause(4 * KEY_MS);
  window.press('\r');
};

/** The session that README.md shows: Pawl is killed while a command runs, and goes on with it. */
export const readmeScene: Scene = {
  name: 'readme',
  flags: null,
  replies: [
    {
      text: 'I run the slow check.',
      calls: [
        call('bash', {
          command:
            'for n in 1 2 3 4 5 6 7 8; do echo "step $n of 8"; sleep 1; done; echo all passed',
        }),
      ],
      ...usage(5_200, 90),
    },
    {
      text: 'The check ran **once**, from beginning to end: all eight steps passed.',
      ...usage(6_100, 40),
    },
  ],
  async play(window) {
    await window.sees('$ ');
    await typeSlowly(window, 'pawl');
    await window.sees(READY);
    await typeSlowly(window, 'run the slow check and tell me what it says');
    await window.sees('step 3 of 8');
    window.killProgram();
    await window.sees(/Killed/);
    await pause(READ_MS);
    await typeSlowly(window, 'pawl --continue');
    await window.sees(/all eight steps passed[\s\S]*ready ·/);
  },
};
