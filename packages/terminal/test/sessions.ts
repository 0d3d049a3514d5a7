import { callOf, completed, type Stage, stream } from '../../../test/kit/terminal/stage.js';

/** Sessions as they are told to the golden frames: what happens, and when the screen is looked at. */
export type Told = (stage: Stage, look: (title: string) => Promise<void>) => Promise<void>;

const say = (stage: Stage, text: string): void => {
  stage.happens({ type: 'UserInput', text, mode: 'steer' });
  stage.pass(500);
};

const MARKDOWN = `# How it works

The machine is **one table**: every state against every event. Read \`table.ts\` first; it says what happens when two things happen at once.

- a *move* computes
- a guard looks, and this item is long enough to be broken where the window is a narrow one, with its indent kept
  1. nested
  2. again

\`\`\`ts
export const step = (state: State, event: Event): Next => table[state.name][event.type](state, event);
// a comment
\`\`\`

| state | waits for |
|---|---|
| Ready | the user |
| CallingLlm | the model |

> Nothing is lost.

See [the journal](docs/journal.md).
`;

const answer: Told = async (stage, look) => {
  await look('before anything was asked');
  say(stage, 'how does it work?');
  await look('the model thinks');
  stage.happens({
    type: 'ReasoningDelta',
    requestId: 'req-1',
    text: 'The user asks about the machine. ',
  });
  stage.happens({
    type: 'ReasoningDelta',
    requestId: 'req-1',
    text: 'I should explain the table, briefly.',
  });
  stage.pass(900);
  await look('its thoughts');
  const middle = MARKDOWN.indexOf('State, event');
  stream(stage, 'req-1', MARKDOWN.slice(0, middle));
  stage.pass(50);
  await look('in the middle of a block of code');
  stream(stage, 'req-1', MARKDOWN.slice(middle));
  stage.happens(completed('req-1', MARKDOWN));
  stage.pass(50);
  await look('the whole answer');
};

const DIFF = `--- a/src/sum.ts
+++ b/src/sum.ts
@@ -1,5 +1,6 @@
 /** Adds. */
-export const sum = (a: number, b: number): number => a - b;
+export const sum = (a: number, b: number): number => a + b;
+export const zero = 0;
 
 export const one = 1;
 export const two = 2;
@@ -40,3 +41,2 @@
 // the end
-// really
 // yes
`;

const tools: Told = async (stage, look) => {
  say(stage, 'repair the test');
  stream(stage, 'req-1', 'I look at the code and run the test.');
  const read = callOf({
    callId: 'a',
    tool: 'read',
    input: { path: 'src/sum.ts' },
    path: '/w/src/sum.ts',
  });
  const search = callOf({ callId: 'b', tool: 'search', input: { pattern: 'sum\\(' } });
  stage.happens(completed('req-1', 'I look at the code and run the test.', [read, search]));
  for (const callId of ['a', 'b'])
    stage.happens({ type: 'ToolStarted', batchId: 'batch-1', callId });
  stage.pass(1_250);
  await look('two calls run');
  const end = (
    callId: string,
    batchId: string,
    status: 'ok' | 'failed',
    text: string,
    diff?: string,
  ): void => {
    const outcome = { status, text, ...(diff === undefined ? {} : { diff }) };
    stage.happens({ type: 'ToolCompleted', batchId, callId, outcome });
    stage.pass(40);
  };
  end(
    'a',
    'batch-1',
    'ok',
    Array.from({ length: 120 }, (_, line) => `${line + 1}\tcode`).join('\n'),
  );
  end('b', 'batch-1', 'ok', 'src/sum.ts:2: sum(');
  const bash = callOf({ callId: 'c', tool: 'bash', argv: ['npm', 'test'], mutating: true });
  stage.happens(completed('req-2', '', [bash]));
  stage.happens({ type: 'ToolStarted', batchId: 'batch-2', callId: 'c' });
  stage.happens({
    type: 'ToolProgress',
    batchId: 'batch-2',
    callId: 'c',
    text: 'TAP version 13\nok 1 - one\nnot ok 2 - sum of two numbers that are longer than the narrow window\n',
  });
  stage.pass(2_300);
  await look('a command runs, with its last line of output');
  const lines = Array.from({ length: 20 }, (_, line) => `line ${line + 1} of the output`);
  end('c', 'batch-2', 'failed', [...lines, '[exit code 1, 2.3 s]'].join('\n'));
  const edit = callOf({
    callId: 'd',
    tool: 'edit',
    input: { path: 'src/sum.ts' },
    path: '/w/src/sum.ts',
    mutating: true,
  });
  stage.happens({
    type: 'ToolCallDelta',
    requestId: 'req-3',
    tool: 'edit',
    text: '{"path":"src/sum',
  });
  stage.pass(100);
  await look('the model writes a call');
  stage.happens(completed('req-3', '', [edit]));
  stage.happens({ type: 'ToolStarted', batchId: 'batch-3', callId: 'd' });
  stage.pass(60);
  end('d', 'batch-3', 'ok', 'Replaced 1 text.', DIFF);
  stream(stage, 'req-4', 'Repaired.\n\nThe sign was wrong.');
  stage.happens(completed('req-4', 'Repaired.\n\nThe sign was wrong.'));
  stage.pass(50);
  await look('repaired');
};

const trouble: Told = async (stage, look) => {
  say(stage, 'tell me a story');
  stream(stage, 'req-1', 'Once upon a time.\n\nThere was a mach');
  const error = {
    kind: 'overloaded' as const,
    message: 'overloaded',
    retryable: true,
    retryAfterMs: 5_000,
  };
  stage.happens({ type: 'LlmFailed', requestId: 'req-1', error, usage: null, jitter: 0 });
  stage.pass(1_000);
  await look('a reply broke off after a paragraph of it was printed');
  stage.happens({ type: 'TimerFired', timerId: timerOf(stage) });
  stage.pass(100);
  stream(stage, 'req-2', 'Once more.\n\nThere was a **machine** that');
  stage.happens({
    type: 'UserInput',
    text: 'make it short, 短く please, and in the style of a sea shanty',
    mode: 'steer',
  });
  stage.happens({ type: 'UserInput', text: 'and then sing it', mode: 'followUp' });
  stage.pass(100);
  await look('two texts wait');
  stage.happens({ type: 'CancelTurn' });
  stage.pass(100);
  await look('cancelled in the middle of a block');
  say(stage, 'again');
  const auth = {
    kind: 'auth' as const,
    message: 'invalid x-api-key',
    retryable: false,
    retryAfterMs: null,
  };
  stage.happens({ type: 'LlmFailed', requestId: 'req-3', error: auth, usage: null, jitter: 0 });
  stage.pass(100);
  await look('a key that is not taken');
};

const timerOf = (stage: Stage): string => {
  const state = stage.state();
  if (state.name !== 'Error') throw new Error(`the machine waits for no retry: ${state.name}`);
  return state.timerId;
};

const WIDE = `日本語の文章は、とても長くなることがあります。端末の幅を超えると、次の行に折り返されます。カーソルの位置も正しくなければなりません。

- 絵文字 👩‍💻 と 🎉 も
- 한국어도 됩니다

| 名前 | 値 |
|---|---|
| 幅 | 二 |
`;

const wide: Told = async (stage, look) => {
  say(stage, '日本語で');
  stream(stage, 'req-1', WIDE, 3);
  stage.pass(50);
  await look('wide characters, the table not finished');
  stage.happens(completed('req-1', WIDE));
  stage.pass(50);
  await look('wide characters');
};

export const sessions: Readonly<Record<string, Told>> = { answer, tools, trouble, wide };
