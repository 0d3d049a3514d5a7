import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import { step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import { presetRules } from '@pawl/agent/policy/presets';
import fc from 'fast-check';
import {
  callOf,
  completed,
  createStage,
  type Stage,
  type StageOptions,
  stream,
} from '../../../test/kit/terminal/stage.js';
import { countCases } from '../../../test/tier.js';
import { loadMarkdown, renderMarkdown } from '../src/markdown.js';
import { safe } from '../src/safe-text.js';
import { callRows } from '../src/tool-call-rows.js';
import { createSentPrompts, Transcript } from '../src/transcript.js';

before(loadMarkdown);

/** The promise is 4 kB for each event of a stream. */
const WRITE_BYTES_MAX = 4_096;

const asked = (options: Partial<StageOptions> = {}): Stage => {
  const stage = createStage({ columns: 60, ...options });
  stage.happens({ type: 'UserInput', text: 'go', mode: 'steer' });
  return stage;
};

const runs = (stage: Stage, call: ReturnType<typeof callOf>, text: string): string => {
  stage.happens(completed('req-1', '', [call]));
  stage.happens({ type: 'ToolStarted', batchId: 'batch-1', callId: call.callId });
  return stage.happens({
    type: 'ToolCompleted',
    batchId: 'batch-1',
    callId: call.callId,
    outcome: { status: 'ok', text },
  });
};

test('a question of the model and the answer stand in rows of their own, each whole', () => {
  const call = callOf({ callId: 'a', tool: 'ask_user' });
  const asks = { ...call, traits: { ...call.traits, asks: 'question' as const } };
  const title = 'Who pays the rest of a split bill, if it can not be divided?';
  const rows = (result: { status: 'ok' | 'denied'; text: string; summary?: string }) =>
    callRows(
      {
        type: 'DisplayToolResult',
        batchId: 'b',
        callId: 'a',
        tool: 'ask_user',
        diff: null,
        ...result,
      },
      { call: asks, title, tookMs: 10 },
      { colour: 'no', columns: 40 },
    ).rows;
  const question = ['? Who pays the rest of a split bill, if', '  it can not be divided?'];
  const words = 'the organiser, as it was agreed upon before';
  assert.deepEqual(rows({ status: 'ok', text: 'x', summary: words }), [
    ...question,
    '✓ the organiser, as it was agreed upon',
    '  before',
  ]);
  assert.deepEqual(rows({ status: 'denied', text: 'refused by user\nmore' }), [
    ...question,
    '✗ refused by user',
  ]);
});

test('a plain terminal tells of texts that wait at rest; any other has them in rows', () => {
  const error = { kind: 'auth', message: 'no', retryable: false, retryAfterMs: null } as const;
  for (const plain of ['yes', 'no'] as const) {
    const stage = asked({ look: { plain } });
    stage.happens({ type: 'UserInput', text: 'be brief', mode: 'steer' });
    const failed = {
      type: 'LlmFailed',
      requestId: 'req-1',
      error,
      usage: null,
      jitter: 0,
    } as const;
    assert.equal(stage.happens(failed).includes('1 of your texts waits'), plain === 'yes');
  }
});

test('a refused key: the hint names the variable of the provider', () => {
  const hint = (model: string | null): string => {
    const stage = createStage({ columns: 90 });
    if (model !== null) stage.happens({ type: 'SettingsChanged', patch: { model } });
    stage.happens({ type: 'UserInput', text: 'go', mode: 'steer' });
    const error = { kind: 'auth', message: 'no', retryable: false, retryAfterMs: null } as const;
    return stage.happens({ type: 'LlmFailed', requestId: 'req-1', error, usage: null, jitter: 0 });
  };
  assert.match(hint('anthropic/claude-opus-5'), /with Ctrl-D, set ANTHROPIC_API_KEY, then pawl/);
  assert.match(hint(null), /with Ctrl-D, set the key, then pawl/);
});

test('a refused request: where the conversation was accepted before, the hint says how to take back what was refused', () => {
  const error = {
    kind: 'badRequest',
    message: 'no',
    retryable: false,
    retryAfterMs: null,
  } as const;
  const refusal = (requestId: string) =>
    ({ type: 'LlmFailed', requestId, error, usage: null, jitter: 0 }) as const;
  assert.match(asked().happens(refusal('req-1')), /\n {2}\/model changes the model\./);
  const later = asked({ columns: 200 });
  later.happens(completed('req-1', 'Done.'));
  later.happens({ type: 'UserInput', text: 'go on', mode: 'steer' });
  assert.match(later.happens(refusal('req-2')), /\/rewind takes back what was refused, \/compact/);
});

test('finished entries are printed, unfinished ones are shown, and none is in both', () => {
  const stage = asked();
  const printed = stage.happens({
    type: 'TextDelta',
    requestId: 'req-1',
    text: 'One.\n\nTwo **is',
  });
  assert.equal(printed, '\nOne.');
  assert.deepEqual(stage.scroll.rows(60, 0), ['', 'Two **is', '']);
  assert.equal(stage.happens({ type: 'TextDelta', requestId: 'req-1', text: '** done.' }), '');
  const last = stage.happens(completed('req-1', 'One.\n\nTwo **is** done.'));
  assert.match(last, /^\nTwo is done\.\n\n─── \d\.\ds · 1\.5k tokens · \$0\.01 ───$/);
  assert.deepEqual(stage.scroll.rows(60, 0), ['']);
});

const broken = (stage: Stage): string =>
  stage.happens({
    type: 'LlmFailed',
    requestId: 'req-1',
    error: { kind: 'overloaded', message: 'busy', retryable: true, retryAfterMs: null },
    usage: null,
    jitter: 0,
  });

test('a reply that broke off is dropped; what was printed of it is said to be void', () => {
  const stage = asked();
  stage.happens({ type: 'TextDelta', requestId: 'req-1', text: 'One.\n\nTwo' });
  const printed = broken(stage);
  assert.match(printed, /does not count/);
  assert.doesNotMatch(printed, /Two/);
  assert.deepEqual(stage.scroll.rows(60, 0), ['']);
});

test('a reply that broke off before anything of it was printed leaves no word', () => {
  const stage = asked();
  stage.happens({ type: 'TextDelta', requestId: 'req-1', text: 'One' });
  assert.doesNotMatch(broken(stage), /One|count/);
});

test('a reply that ends with other text than was streamed is shown whole', () => {
  for (const streamed of ['Two', 'Zero.\n\nTwo']) {
    const stage = asked();
    const early = stage.happens({ type: 'TextDelta', requestId: 'req-1', text: streamed });
    const printed = stage.happens(completed('req-1', 'One.\n\nTwo and three.'));
    assert.match(printed, /\nOne\.\n\nTwo and three\.\n/);
    assert.equal(printed.includes('Two\n'), false);
    const told = printed.indexOf('above does not count');
    assert.equal(told !== -1 && told < printed.indexOf('One'), early !== '');
  }
});

test('half a block at a cancel is printed as it is, and marked', () => {
  const stage = asked();
  stage.happens({ type: 'TextDelta', requestId: 'req-1', text: '```ts\nconst a =' });
  assert.match(
    stage.happens({ type: 'CancelTurn' }),
    /\nconst a =\n\n· \(cut off here\)\n· cancelled/,
  );
});

test('a cancel before any text marks nothing', () => {
  assert.doesNotMatch(asked().happens({ type: 'CancelTurn' }), /cut off/);
});

test('a call is one line; its whole text can be had once', () => {
  const stage = asked();
  const text = Array.from({ length: 50 }, (_, line) => `row ${line}`).join('\n');
  const printed = runs(stage, callOf({ callId: 'a', tool: 'read', path: '/w/a.ts' }), text);
  assert.equal(printed, '\n✓ read a.ts 50 lines 0.0s');
  assert.match(stage.scroll.expand(), /^✓ read a\.ts.*\n {4}row 0\n[\s\S]* {4}row 49$/);
  assert.equal(stage.scroll.expand(), '');
});

test('lines in brackets are output; remarks of the tool follow the end of a command', () => {
  const effect = { effect: 'opaque', mutating: true } as const;
  const call = callOf({ callId: 'a', tool: 'bash', argv: ['x'], ...effect });
  const text =
    '[1,2]\n[info] [ready]\n[exit code 0, 0.1 s]\n[a process that it detached still runs]';
  const printed = runs(asked(), call, text);
  assert.match(printed, /^\n✓ bash .*2 lines.*\n {4}\[1,2\]\n {4}\[info\] \[ready\]$/);
});

test('Ctrl-O shows a call that never ran in whole lines', () => {
  const result = {
    type: 'DisplayToolResult',
    batchId: 'b',
    callId: 'a',
    tool: 'edit',
    status: 'denied',
    text: `no\n${'word '.repeat(30).trim()}`,
    diff: null,
  } as const;
  const known = { call: undefined, title: 'x', tookMs: null };
  const { rows, whole } = callRows(result, known, { colour: 'no', columns: 40 });
  assert.ok(rows.every((row) => row.length <= 40) && rows.length === 2, rows.join('\n')); // control
  assert.equal(whole[1]?.trim(), 'word '.repeat(30).trim());
});

test('thoughts are seen while they come, then one line; they can be had in full', () => {
  const stage = asked();
  const text = 'I think about this for a while. '.repeat(20);
  stage.happens({ type: 'ReasoningDelta', requestId: 'req-1', text });
  stage.pass(1_500);
  assert.equal(stage.scroll.rows(60, 0).filter((row) => row.startsWith('│')).length, 2);
  const [row = ''] = stage.happens(completed('req-1', '')).trim().split('\n');
  assert.match(row, /^· thought: I think about this for a while\. .*…$/);
  assert.ok(row.length <= 60, row);
  assert.equal(stage.scroll.expand().replace(/\n?│ /g, ' ').trim(), text.trim());
});

test('a list of what is to be done stays in sight while something goes on, until all is done', () => {
  const stage = asked();
  const call = callOf({ callId: 'a', tool: 'plan', shown: 'list' });
  const items = [
    '[x] look',
    '[>] repair',
    ...Array.from({ length: 7 }, (_, item) => `[ ] step ${item}`),
  ];
  assert.equal(
    runs(stage, call, ['1 of 9 done', ...items].join('\n')).trim(),
    '✓ plan plan 1 of 9 done 0.0s',
  );
  const rows = [
    '1 of 9 done',
    '  [>] repair',
    ...[0, 1, 2, 3].map((item) => `  [ ] step ${item}`),
    '  … 3 more',
  ];
  assert.deepEqual(stage.scroll.rows(60, 0), ['', ...rows, '']);
  stage.happens(completed('req-2', 'Later.'));
  assert.deepEqual(stage.scroll.rows(60, 0), ['']);
  stage.happens({ type: 'UserInput', text: 'go on', mode: 'steer' });
  assert.equal(stage.scroll.rows(60, 0).length, 9);
  stage.happens(completed('req-3', '', [{ ...call, callId: 'b' }]));
  stage.happens({ type: 'ToolStarted', batchId: 'batch-2', callId: 'b' });
  const outcome = { status: 'ok', text: '1 of 1 done\n[x] look' } as const;
  stage.happens({ type: 'ToolCompleted', batchId: 'batch-2', callId: 'b', outcome });
  assert.deepEqual(stage.scroll.rows(60, 0), ['']);
});

test('a summary shows its beginning; Ctrl-O prints all of it', () => {
  const stage = asked();
  stage.happens(completed('req-1', 'One.'));
  stage.happens({ type: 'CompactRequested' });
  const summary = Array.from({ length: 20 }, (_, line) => `point ${line}`).join('\n');
  const usage = {
    inputTokens: 1,
    outputTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 0.02,
  };
  const printed = stage.happens({
    type: 'CompactionCompleted',
    compactionId: compactionOf(stage),
    summary,
    usage,
  });
  assert.match(
    printed,
    /replaced by a summary\n│ point 0\n[\s\S]*│ point 7\n│ … 12 more\n· \S+ tokens became \S+ · it cost \$0\.02$/,
  );
  assert.match(stage.scroll.expand(), /│ point 19$/);
});

const compactionOf = (stage: Stage): string => {
  const state = stage.state();
  assert.ok(state.name === 'Compacting', state.name);
  return state.compactionId;
};

test('the line of a turn tells the wait for an answer from the time of the work', () => {
  const stage = asked({ settings: { preset: 'careful', rules: presetRules.careful } });
  stage.clock.advance(3_000);
  stage.happens(
    completed('req-1', '', [callOf({ callId: 'a', tool: 'edit', path: '/w/a', mutating: true })]),
  );
  const state = stage.state();
  assert.ok(state.name === 'ExecutingTools' && state.calls[0]?.status === 'awaitingApproval');
  stage.clock.advance(120_000);
  const refused = { kind: 'deny', reason: 'no' } as const;
  stage.happens({
    type: 'ApprovalAnswered',
    batchId: 'batch-1',
    callId: 'a',
    answer: refused,
    scope: 'once',
  });
  stage.clock.advance(1_000);
  const last = stage.happens(completed('req-2', 'Done.'));
  assert.match(last, /─── 4\.0s · 2m00s for your answers · /);
});

test('the line of a resumed turn has the sums of the whole turn, or none if its beginning is not known', () => {
  const stage = asked();
  const begun = stage.state();
  stage.happens(completed('req-1', '', [callOf({ callId: 'a', tool: 'read', path: '/w/a.ts' })]));
  stage.happens({ type: 'ToolStarted', batchId: 'batch-1', callId: 'a' });
  const ends: Event = {
    type: 'ToolCompleted',
    at: 5_000,
    batchId: 'batch-1',
    callId: 'a',
    outcome: { status: 'ok', text: 'x' },
  };
  const before = step(stage.state(), ends).state;
  const event: Event = { ...completed('req-2', 'Done.'), at: 6_000 } as Event; // with its time
  const stepped = { seq: 9, event, ...step(before, event) };
  const lineFrom = (turnStart: State | null): string => {
    const transcript = new Transcript({ colour: 'no', plain: 'no', columns: 80 }, '/w');
    transcript.startFrom(before, turnStart);
    return /─── .* ───/.exec(transcript.see(stepped))?.[0] ?? 'no line';
  };
  assert.match(lineFrom(begun), / · 3\.0k tokens · \$0\.02 /);
  assert.match(lineFrom(null), /^─── [\d.]+s ───$/);
});

test('the item in progress is in sight, however many open ones stand before it', () => {
  const call = callOf({ callId: 'a', tool: 'plan', shown: 'list' });
  const shown = (current: number): readonly string[] => {
    const stage = asked();
    const items = Array.from({ length: 9 }, (_, at) => `[${at === current ? '>' : ' '}] ${at}`);
    runs(stage, call, ['0 of 9 done', ...items].join('\n'));
    return stage.scroll.rows(60, 0).flatMap((row) => /\] (\d)$/.exec(row)?.[1] ?? []);
  };
  assert.equal(shown(-1).join(''), '01234');
  assert.equal(shown(3).join(''), '34567');
  assert.equal(shown(8).join(''), '45678');
});

test('output of a tool can’t write an escape', () => {
  const stage = asked({ look: { colour: 'yes' } });
  const call = callOf({ callId: 'a', tool: 'bash', argv: ['x\u001b[2J'], mutating: true });
  const printed = runs(stage, call, 'a\u001b[2J\u0007');
  assert.match(printed, /x␛\[2J/);
  assert.doesNotMatch(printed + stage.scroll.expand(), /\u001b\[2J|\u0007/);
});

test('in plain mode nothing is live: whole lines, and a line where a call starts', () => {
  const stage = asked({ look: { plain: 'yes' } });
  assert.equal(
    stage.happens({ type: 'TextDelta', requestId: 'req-1', text: 'One.\n\nTwo' }),
    '\nOne.',
  );
  assert.deepEqual(stage.scroll.rows(60, 0), []);
  stage.happens(
    completed('req-1', 'One.\n\nTwo', [callOf({ callId: 'a', tool: 'read', path: '/w/a.ts' })]),
  );
  const started = stage.happens({ type: 'ToolStarted', batchId: 'batch-1', callId: 'a' });
  assert.equal(started.trim(), 'started: read a.ts');
});

test('without colours no escape is printed, with them each is closed', () => {
  for (const colour of ['yes', 'no'] as const) {
    const stage = asked({ look: { colour } });
    const text = '# Head\n\n**bold** and `code`\n\n```ts\nconst a = 1;\n```\n';
    const printed = stage.happens({ type: 'TextDelta', requestId: 'req-1', text }) + broken(stage);
    assert.equal(printed.includes('\u001b'), colour === 'yes');
    for (const line of printed.split('\n'))
      assert.doesNotMatch(line, /\u001b\[(?!2[2-9]m|39m|0m)[\d;]+m[^\u001b]*$/);
  }
});

for (const [title, text] of [
  [
    'a block of code that does not end',
    `\`\`\`ts\n${'const value = compute(first, second); // 日本語\n'.repeat(300)}`,
  ],
  ['one line that does not end', 'word '.repeat(4_000)],
  ['one line of wide characters', '日本語の文章、'.repeat(900)],
  [
    'a table that does not end',
    `| a | b |\n|---|---|\n${`| ${'x'.repeat(60)} | ${'y'.repeat(60)} |\n`.repeat(80)}`,
  ],
] as const) {
  test(`each event of a stream writes at most 4 kB: ${title}, in a large window`, () => {
    const stage = asked({ columns: 240, rows: 70, look: { colour: 'yes' } });
    stream(stage, 'req-1', text, 40);
    stage.pass(100);
    for (const written of stage.screen.writes())
      assert.ok(Buffer.byteLength(written) <= WRITE_BYTES_MAX, written);
  });
}

test('a window that changes in the middle of an answer: what was printed stays, one status, nothing twice', async () => {
  const stage = asked({ columns: 80, rows: 20 });
  const words = Array.from({ length: 120 }, (_, index) => `word${index}`);
  const text = words
    .map((word, index) => (index % 12 === 11 ? `${word}\n\n` : `${word} `))
    .join('');
  const sizes = [70, 100, 50, 64, 110, 80];
  for (let at = 0; at < text.length; at += 6) {
    stage.happens({ type: 'TextDelta', requestId: 'req-1', text: text.slice(at, at + 6) });
    stage.clock.advance(10);
    const columns = at % 120 === 0 ? sizes[(at / 120) % sizes.length] : undefined;
    if (columns === undefined) continue;
    await stage.screen.resize(columns, 20);
    stage.pass(0);
  }
  stage.happens(completed('req-1', text));
  stage.pass(50);
  const shown = await stage.screen.text();
  for (const word of words)
    assert.equal(shown.match(new RegExp(`\\b${word}\\b`, 'g'))?.length, 1, `${word} in ${shown}`);
  assert.equal(shown.match(/ready · /g)?.length, 1);
  assert.doesNotMatch(shown, /answering|thinking/);
});

test('at any widths, while an answer streams, nothing is lost and nothing stands there twice', async () => {
  const run = async (windows: readonly number[], size: number) => {
    const stage = asked({ columns: 80, rows: 20 });
    const words = Array.from({ length: 20 * windows.length }, (_, index) => `word${index}`);
    const text = words.map((word, at) => word + (at % 17 === 16 ? '\n\n' : ' ')).join('');
    const share = Math.ceil(text.length / windows.length);
    for (const [index, columns] of windows.entries()) {
      const end = Math.min(text.length, (index + 1) * share);
      for (let at = index * share; at < end; at += size) {
        const piece = text.slice(at, Math.min(end, at + size));
        stage.happens({ type: 'TextDelta', requestId: 'req-1', text: piece });
        stage.clock.advance(10);
      }
      await stage.screen.resize(columns, 20);
      stage.pass(0);
    }
    stage.happens(completed('req-1', text));
    stage.pass(50);
    // a terminal breaks again the rows that it keeps, also within words
    const shown = (await stage.screen.text()).replace(/\s/g, '');
    assert.ok(shown.startsWith(`>go${words.join('')}───`), shown);
    assert.equal(shown.match(/ready·/g)?.length, 1, shown);
    assert.doesNotMatch(shown, /answering|thinking/);
  };
  const anyWindows = fc.array(fc.integer({ min: 20, max: 120 }), { minLength: 1, maxLength: 6 });
  const anySize = fc.integer({ min: 1, max: 40 });
  await fc.assert(fc.asyncProperty(anyWindows, anySize, run), { numRuns: countCases(200) });
});

const anyBlock = fc.constantFrom(
  'A paragraph of some words that is longer than the window is wide, so it is broken.\n\n',
  '# Head\n\n',
  '- one\n- two\n\n',
  '```ts\nconst a = 1;\n\nconst b = 2;\n```\n\n',
  '| a | b |\n|---|---|\n| c | d |\n\n',
  '> quote\n\n',
);

test('however an answer is cut into deltas, the screen shows it once, as if it had come at once', async () => {
  const run = async (blocks: readonly string[], size: number): Promise<void> => {
    const stage = asked({ columns: 50, rows: 12 });
    const text = blocks.join('');
    stream(stage, 'req-1', text, size);
    stage.happens(completed('req-1', text));
    stage.pass(50);
    const rows = renderMarkdown({ colour: 'no', columns: 50 }, text, 50, 'printed');
    const shown = (await stage.screen.text()).split('\n');
    assert.deepEqual(shown.slice(0, -6), ['', '> go', '', ...rows, '']);
  };
  const given = [
    fc.array(anyBlock, { minLength: 1, maxLength: 12 }),
    fc.integer({ min: 1, max: 60 }),
  ] as const;
  // Two lists in a row are one.
  const apart = (blocks: readonly string[]): boolean =>
    !blocks.some((block, at) => block[0] === '-' && blocks[at + 1]?.[0] === '-');
  await fc.assert(fc.asyncProperty(given[0].filter(apart), given[1], run), {
    numRuns: countCases(60),
  });
});

test('a prompt is printed as its own, also if an earlier one that is still prepared is a part of it', () => {
  const prompts = createSentPrompts({ colour: 'no', columns: 60 });
  prompts.typed('fix', safe`> fix`);
  prompts.typed('please fix the tests', safe`> please fix the tests`);
  const { state } = createStage({ columns: 60 });
  const see = (text: string): readonly string[] => {
    const event: Event = { type: 'UserInput', text, mode: 'steer', at: 1 };
    return prompts.see(state(), { ...step(state(), event), event, seq: 1 });
  };
  assert.deepEqual(see('please fix the tests'), ['> please fix the tests']);
  assert.deepEqual(see('fix\n\nthe text of a skill'), ['> fix']);
});
