import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Settings } from '../../src/machine/settings.js';
import { defaultSettings, settingsAfterPlan } from '../../src/machine/settings.js';
import { allowHosts, type Preset, presetRules } from '../../src/policy/presets.js';
import type { ToolContext } from '../../src/ports/tool.js';
import { appendPreserved } from '../../src/session/compaction.js';
import { freezePrompt } from '../../src/session/equipment.js';
import { newSettings, resumedSettings } from '../../src/session/session-settings.js';
import { askingTools, askUserTool, proposePlanTool } from '../../src/tools/ask-user.js';
import { createFetchTool } from '../../src/tools/fetch.js';
import { todoTool } from '../../src/tools/todo.js';

const answered = (reply?: string): ToolContext =>
  (reply === undefined ? {} : { reply }) as unknown as ToolContext; // the tools read nothing else
const plan = { title: 'A parser', steps: ['read the grammar', 'write it'], text: 'By hand.' };
const outcomeOf = async (reply: string) => proposePlanTool.run(plan, answered(reply));

test('the words of the user are the result of a question', async () => {
  const question = { question: 'Which?', choices: ['this', 'that'] };
  const { text } = await askUserTool.run(question, answered('that\n'));
  assert.equal(text, 'The user answered: that');
  const plain = await askUserTool.run(question, answered(''));
  assert.equal(plain.text, 'The user answered yes.');
  const judged = await askUserTool.judge({ question: ' ' }, '/w');
  assert.ok(judged.kind === 'invalid' && judged.field === 'question');
  const withoutChoices = await askUserTool.judge({ question: 'Why?', choices: null }, '/w');
  assert.deepEqual(withoutChoices.kind === 'ok' && withoutChoices.input, { question: 'Why?' });
  const withoutText = await proposePlanTool.judge({ title: 'A', steps: ['b'], text: null }, '/w');
  assert.equal(withoutText.kind, 'ok', 'null is no text');
});

test('an accepted plan is a list, and with its changes the changed list and text', async () => {
  const plain = await outcomeOf('');
  assert.match(
    plain.text,
    /^0 of 2 done\n\[ \] read the grammar\n\[ \] write it\n\nThe user accepted this plan/,
  );
  const same = await outcomeOf('A parser\n1. read the grammar\n2. write it\n\nBy hand.\n');
  assert.equal(same.text, plain.text);
  const changed = await outcomeOf('A parser\n1) only write it\n\nWith a library.');
  assert.match(changed.text, /^0 of 1 done\n\[ \] only write it\n\nThe user /);
  assert.match(changed.text, /With a library\.$/);
});

test('only the steps of a plan become the list, not its title or numbers in its text', async () => {
  const numbered = { ...plan, title: '2. Phase', text: 'Risks:\n1. time\n2. money' };
  const listed = async (reply: string): Promise<string | undefined> =>
    (await proposePlanTool.run(numbered, answered(reply))).text.split('\n\n')[0];
  const both = '0 of 2 done\n[ ] read the grammar\n[ ] write it';
  assert.equal(await listed(''), both);
  const steps = '1. read the grammar\n2. write it';
  for (const reply of [
    `2. Phase\n${steps}\n\nRisks:\n1. much time\n2. money`,
    `2. Phase\n\n${steps.replace('\n', '\n\n')}\n\n1. time\n2. money`,
    `${steps}\n`,
  ])
    assert.equal(await listed(reply), both, reply);
});

test('a summary keeps the plan as the user accepted it, until the model writes its own list', async () => {
  const { text } = await outcomeOf('A parser\n1. only write it');
  const call = (callId: string, tool: string, input: object) =>
    ({ type: 'call', callId, tool, input }) as const;
  const said = (...parts: readonly object[]) =>
    ({ role: 'assistant', model: 'm', cut: false, parts }) as never;
  const results = (callId: string, tool: string, result: string) =>
    ({
      role: 'user',
      parts: [{ type: 'result', callId, tool, failed: false, text: result }],
    }) as never;
  const options = { tools: [todoTool, proposePlanTool], turn: 'over', limitBytes: 1_000 } as const;
  const planned = [said(call('c1', 'propose_plan', plan)), results('c1', 'propose_plan', text)];
  assert.equal(
    appendPreserved('Sum.', planned, options),
    'Sum.\n\n[kept: todo]\n0 of 1 done\n[ ] only write it',
  );
  const items = [{ text: 'test it', status: 'inProgress' }];
  const listed = [...planned, said(call('c2', 'todo', { items })), results('c2', 'todo', 'x')];
  assert.equal(
    appendPreserved('Sum.', listed, options),
    'Sum.\n\n[kept: todo]\n0 of 1 done\n[>] test it',
  );
});

const planning = (more: Partial<Settings> = {}): Settings => ({
  ...defaultSettings,
  ...({ model: 'm', workspace: '/w', preset: 'plan', rules: presetRules.plan } as const),
  ...({ sandbox: 'read-only', ...more } as const),
});

for (const [before, after] of [
  [undefined, 'careful'],
  ['careful', 'careful'],
  ['auto', 'auto'],
  ['ci', 'ci'],
  ['plan', 'careful'],
  ['full', 'careful'],
] as const satisfies readonly (readonly [Preset | undefined, Preset])[]) {
  test(`a plan of a session that had the preset ${before ?? 'plan alone'} goes on with ${after}`, () => {
    const settings = planning(before === undefined ? {} : { presetBefore: before });
    const { preset, rules, sandbox, onAsk } = settingsAfterPlan(settings);
    assert.equal(preset, after);
    assert.deepEqual(rules, presetRules[after]);
    assert.equal(sandbox, 'workspace');
    assert.equal(onAsk, after === 'ci' ? 'deny' : 'ask');
  });
}

test('a plan brings no sandbox back that is missing, and takes none away', () => {
  for (const sandbox of ['missing', 'off'] as const) {
    const after = settingsAfterPlan(planning({ sandbox, presetBefore: 'auto' }));
    assert.equal(after.sandbox, sandbox);
    assert.equal(after.formatter, 'off');
  }
});

test('a journal does not say what a plan may widen: a resumed session returns to careful', () => {
  const model = { id: 'm', facts: { prices: null, windowTokens: null } } as never;
  for (const origin of ['own', 'foreign'] as const) {
    const settings = planning({ presetBefore: 'auto' });
    const resumed = resumedSettings(model, '/w', { preset: 'plan' }, { settings, origin }, null);
    assert.equal(resumed.presetBefore, 'careful');
  }
});

test('a resumed session ends its plan as the options say, and a foreign one costs as a new one', () => {
  const model = { id: 'm', facts: { prices: null, windowTokens: 1 } } as never;
  const resume = (origin: 'own' | 'foreign', more: Partial<Settings>) =>
    resumedSettings(model, '/w', { preset: 'auto' }, { settings: planning(more), origin }, null);
  assert.equal(resume('own', {}).sandbox, 'workspace');
  assert.equal(resume('own', { sandboxBefore: 'read-only' }).sandbox, 'read-only');
  const foreign = resume('foreign', { effort: 'max', sandboxBefore: 'read-only' });
  assert.deepEqual([foreign.effort, foreign.sandboxBefore], ['auto', 'workspace']);
});

test('a read-only sandbox that the user chose stays after a plan', () => {
  const model = { id: 'm', facts: { prices: null, windowTokens: 1 } } as never;
  const options = { preset: 'plan', sandbox: 'read-only' } as const;
  const opened = newSettings(model, '/w', options, null);
  assert.equal(settingsAfterPlan(opened).sandbox, 'read-only');
  const { sandbox: _, ...others } = options;
  assert.equal(settingsAfterPlan(newSettings(model, '/w', others, null)).sandbox, 'workspace');
});

test('a question is offered where somebody can answer, a plan besides in the preset plan alone, a page where a host may be read', () => {
  const tools = [...askingTools, createFetchTool({})];
  const offered = (onAsk: Settings['onAsk'], preset: Preset, hosts: readonly string[] = []) => {
    const rules = allowHosts(presetRules[preset], hosts);
    return JSON.parse(freezePrompt('', tools, { onAsk, preset, rules }).tools).map(
      ({ name }: { readonly name: string }) => name,
    );
  };
  assert.deepEqual(offered('ask', 'plan'), ['ask_user', 'propose_plan']);
  assert.deepEqual(offered('ask', 'careful'), ['ask_user', 'fetch']);
  assert.deepEqual(offered('stop', 'plan'), []);
  assert.deepEqual(offered('stop', 'auto'), []);
  assert.deepEqual(offered('deny', 'auto', ['docs.example']), ['fetch']);
  assert.deepEqual(offered('deny', 'full'), ['fetch']);
});
