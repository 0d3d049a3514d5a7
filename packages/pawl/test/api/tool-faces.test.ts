import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session';
import type { ApprovalQuestion } from '@pawl/agent/session/approvals';
import { defineTool, type ToolDefinition } from '@pawl/agent/session/define-tool';
import type { Look } from '@pawl/terminal/paint';
import { Transcript } from '@pawl/terminal/transcript';
import * as z from 'zod';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  callTools,
  rawCall,
  resultsOf,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';

/** Title, summary and preview of a tool that a program defines: on the screen, in a replay, in a question. */

const look: Look = { colour: 'no', columns: 80 };
const input = z.object({ town: z.string(), days: z.number() });
type Definition = ToolDefinition<typeof input>;

const forecast = (own: Partial<Definition>) =>
  defineTool({
    name: 'forecast',
    description: 'The weather of the next days.',
    input,
    effect: 'reads',
    run: () => 'sun\nrain',
    ...own,
  });

const TITLE: Partial<Definition> = { title: ({ town, days }) => `${town}, ${days} days` };
const SUMMARY: Partial<Definition> = {
  summary: ({ days }, { text }) => `${text.length} signs, ${days} days`,
};
const fault = (): never => {
  throw new Error('no words');
};

/** The row of the call, without its time. */
const rowIn = (lines: readonly string[]): string | undefined =>
  lines.find((line) => /^[✓✗] forecast/.test(line))?.replace(/ [\d.]+s$/, '');

const screenOf = (workspace: string) => {
  const scroll = new Transcript(look, workspace);
  const lines: string[] = [];
  return { lines, see: (stepped: Stepped) => void lines.push(...scroll.see(stepped).split('\n')) };
};

/** One call of the tool: its row on the live screen, the same from the journal, and the result that the model read. */
const callOnce = async (context: TestContext, own: Partial<Definition>) => {
  const model = testModel(
    callTools(rawCall('1', 'forecast', { town: 'Bern', days: 3 })),
    say('done'),
  );
  const { session, journals, workspace } = await openHere(context, model, {
    tools: [forecast(own)],
  });
  const live = screenOf(workspace);
  session.watch(live.see);
  await session.prompt('go');
  const replayed = screenOf(workspace);
  const { header } = await journals.peek(session.id);
  let state: State = initialState(header.settings);
  for await (const { seq, event } of journals.read(session.id)) {
    const next = step(state, event) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
    state = next.state;
    replayed.see({ ...next, seq, event });
  }
  assert.equal(rowIn(replayed.lines), rowIn(live.lines), 'a replay shows the same');
  return { row: rowIn(live.lines), result: resultsOf(model.requests.at(-1)?.messages ?? [])['1'] };
};

type Row = { readonly given: string; readonly own: Partial<Definition>; readonly row: string };

const rows: readonly Row[] = [
  {
    given: 'its own title and summary',
    own: { ...TITLE, ...SUMMARY },
    row: 'Bern, 3 days 8 signs, 3 days',
  },
  { given: 'control: neither: a guess, and a count of lines', own: {}, row: 'Bern 2 lines' },
  { given: 'a title alone', own: TITLE, row: 'Bern, 3 days 2 lines' },
  {
    given: 'a summary in the outcome, which wins',
    own: { ...SUMMARY, run: () => ({ status: 'ok', text: 'sun', summary: 'fine' }) },
    row: 'Bern fine',
  },
  {
    given: 'a title and a summary that throw',
    own: { title: fault, summary: fault },
    row: 'Bern 2 lines',
  },
  { given: 'a title of several lines', own: { title: () => 'a\nb' }, row: 'a b 2 lines' },
];

for (const { given, own, row } of rows) {
  test(`a tool with ${given}: "${row}"`, async (context) => {
    const { row: shown, result } = await callOnce(context, own);
    assert.equal(shown, `✓ forecast ${row}`);
    assert.match(result ?? '', /^sun/);
  });
}

test('a title that is far too long is shortened before it is journaled', async (context) => {
  const model = testModel(
    callTools(rawCall('1', 'forecast', { town: 'Bern', days: 3 })),
    say('done'),
  );
  const tools = [forecast({ title: () => `${'x'.repeat(298)}😀${'y'.repeat(9_000)}` })];
  const { session, journals } = await openHere(context, model, { tools });
  await session.prompt('go');
  const titles: (string | undefined)[] = [];
  for await (const { event } of journals.read(session.id))
    if (event.type === 'LlmCompleted') titles.push(...event.calls.map(({ title }) => title));
  assert.deepEqual(titles, [`${'x'.repeat(298)}…`]);
});

/** What is asked about a call that changes something, and how it ended. */
const asked = async (context: TestContext, own: Partial<Definition>) => {
  const model = testModel(
    callTools(rawCall('1', 'forecast', { town: 'Bern', days: 3 })),
    say('done'),
  );
  const questions: ApprovalQuestion[] = [];
  const { session } = await openHere(context, model, {
    tools: [forecast({ effect: 'changes', ...own })],
    preset: 'careful',
    onApproval: (question) => {
      questions.push(question);
      return 'allow';
    },
  });
  await session.prompt('go');
  return { questions, result: resultsOf(model.requests.at(-1)?.messages ?? [])['1'] };
};

test('a question shows the preview of the tool', async (context) => {
  const { questions, result } = await asked(context, {
    preview: ({ town }) => ({
      kind: 'change',
      diff: `--- a\n+++ a\n@@ -1 +1 @@\n-${town}\n+rain\n`,
    }),
  });
  const subjects = questions.map(({ subject }) => subject);
  assert.deepEqual(subjects, [
    { kind: 'change', text: '--- a\n+++ a\n@@ -1 +1 @@\n-Bern\n+rain\n' },
  ]);
  assert.equal(result, 'sun\nrain');
});

test('a call that its preview refuses ends so, and nobody is asked', async (context) => {
  const { questions, result } = await asked(context, {
    preview: async ({ town }) => ({ kind: 'refused', text: `${town} has no weather` }),
  });
  assert.deepEqual([questions.length, result], [0, 'failed: Bern has no weather']);
});

for (const [given, own] of [
  ['control: without a preview', {}],
  ['with a preview that throws', { preview: fault }],
] as const) {
  test(`${given} the question shows the input`, async (context) => {
    const { questions } = await asked(context, own);
    assert.deepEqual(
      questions.map(({ subject }) => subject.kind),
      ['input'],
    );
  });
}
