import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServerAnswer, ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import { question, stageView } from './interactive-stage.js';

/** Questions of MCP servers in the terminal. The texts are those of a hostile server. */

const form: ServerQuestion = {
  server: 'deploy',
  message: `Where to?\u001b[2J\r> y hid\u202eden ${'long '.repeat(50)}`,
  asks: {
    kind: 'form',
    fields: [
      {
        name: 'place',
        label: 'place',
        isRequired: true,
        type: {
          kind: 'choice',
          choices: [
            { value: 'a', label: 'Staging' },
            { value: 'b', label: 'Production' },
          ],
        },
      },
      { name: 'count', label: 'How many?', isRequired: true, type: { kind: 'integer' } },
      { name: 'sure', label: 'Sure', isRequired: false, type: { kind: 'boolean' } },
      { name: 'note', label: 'Note', isRequired: false, type: { kind: 'text' } },
    ],
  },
};

const ask = (asked: ServerQuestion, plain: 'yes' | 'no' = 'no') => {
  const stage = stageView(plain);
  const taken = new AbortController();
  const answers: ServerAnswer[] = [];
  void stage.view.askForServer(asked, taken.signal).then((answer) => answers.push(answer));
  const settled = async (): Promise<readonly ServerAnswer[]> => {
    await new Promise(setImmediate);
    return answers;
  };
  return { ...stage, taken, settled };
};

test('a form is answered line by line, wrong lines are told, and the agent gets nothing of it', async () => {
  const stage = ask(form);
  const shown = stage.printed.join('\n');
  assert.match(shown, /^\? The MCP server deploy asks:/);
  assert.ok(
    shown.includes('␛[2J') && shown.includes('⟨U+202E⟩') && !shown.includes('\u001b'),
    shown,
  );
  assert.ok(shown.split('\n').every((row) => row.length <= 80));
  assert.match(stage.drawn(), /deploy asks: y and Enter to answer/);
  stage.type('look at the tests too\r');
  assert.deepEqual(
    stage.asked,
    ['steer look at the tests too'],
    'the agent still gets other lines',
  );
  stage.type('y\r');
  assert.match(stage.drawn(), /for deploy, not the agent: place \(a number of the list\)/);
  stage.type('7\r');
  assert.match(stage.printed.at(-1) ?? '', /Type a number from 1 to 2\./);
  stage.type('2\r1.5\r3\r\rsee issue 7\r');
  assert.deepEqual(await stage.settled(), [
    { action: 'accept', content: { place: 'b', count: 3, note: 'see issue 7' } },
  ]);
  assert.equal(stage.asked.length, 1);
  assert.doesNotMatch(stage.drawn(), /deploy/);
});

test('n, an empty line for what is needed, and the end of the call send nothing', async () => {
  const refused = ask(form);
  refused.type('n\r');
  assert.deepEqual(await refused.settled(), [{ action: 'decline' }]);
  const empty = ask(form);
  empty.type('y\r\r');
  assert.deepEqual(await empty.settled(), [{ action: 'decline' }]);
  const late = ask(form);
  late.type('y\r1\r');
  late.taken.abort();
  assert.deepEqual(await late.settled(), [{ action: 'cancel' }]);
  late.type('y\r');
  assert.deepEqual(late.asked, ['steer y']);
});

test('a line for a question that has ended meanwhile goes to nobody, and stays with the user', async () => {
  const stage = ask(form);
  stage.type('y\r1\r');
  stage.type('hunt');
  stage.taken.abort('answered elsewhere');
  void stage.view.askForServer(form, new AbortController().signal); // the server asks on at once
  stage.type('er2\r');
  assert.deepEqual([stage.asked, stage.line()], [[], '> hunter2']);
  assert.match(stage.printed.at(-1) ?? '', /your line .* deploy, whose question is over/);
  stage.type('\r');
  assert.deepEqual(stage.asked, ['steer hunter2'], 'a second Enter is meant');
  const unbegun = ask(form);
  unbegun.type('y\r');
  unbegun.taken.abort();
  unbegun.type('go on\r');
  assert.deepEqual(unbegun.asked, ['steer go on']);
  // nobody sees what is begun in a plain terminal
  const plain = ask(form, 'yes');
  plain.view.take({ kind: 'paste', text: 'y' });
  plain.press('enter');
  plain.taken.abort();
  plain.view.take({ kind: 'paste', text: 'hunter2' });
  plain.press('enter');
  assert.deepEqual(plain.asked, []);
});

test('in a plain terminal the line that answers a question of Pawl answers no form', async () => {
  const stage = ask(form, 'yes');
  const enter = (text: string): void => {
    stage.view.take({ kind: 'paste', text });
    stage.press('enter');
  };
  enter('y');
  question(stage);
  stage.clock.advance(700);
  enter('y');
  assert.equal(stage.answers.length, 1);
  assert.deepEqual(await stage.settled(), []);
  enter('2');
  assert.match(stage.drawn(), /How many/);
});

test('an address is shown and never opened', async () => {
  const stage = ask({
    server: 'pay',
    message: 'Sign in.',
    asks: { kind: 'address', url: 'https://example.com/\u001b]8;;x' },
  });
  assert.match(
    stage.printed.join('\n'),
    /Open it yourself if you trust it: https:\/\/example\.com\/␛\]8;;x/,
  );
  stage.type('y\r');
  assert.deepEqual(await stage.settled(), [{ action: 'accept', content: {} }]);
});
