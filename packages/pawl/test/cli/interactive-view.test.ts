import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPointList } from '@pawl/terminal/rewind-list';

import { question, stageView } from './interactive-stage.js';

test('Enter sends the line once, and empties it', () => {
  const at = stageView();
  at.type('fix it\r\r');
  assert.deepEqual(at.asked, ['steer fix it']);
  assert.match(at.line(), /^> (Give a task, for example: .*)?$/);
});

test('a question that was on the screen for a quiet moment takes the answer', () => {
  const at = stageView();
  question(at);
  at.clock.advance(700);
  assert.match(at.drawn(), /y {2}yes, once/);
  at.type('y');
  assert.deepEqual(at.answers, [{ answer: { kind: 'allow' }, scope: 'once' }]);
});

test('keys pressed right when the question comes go into the line, and send it as a message', () => {
  const at = stageView();
  question(at);
  at.type('y\r');
  assert.deepEqual(at.answers, []);
  assert.deepEqual(at.asked, ['steer y']);
});

test('a question does not interrupt typing until the keyboard is quiet', () => {
  const at = stageView();
  at.type('half a sent');
  question(at);
  for (const letter of 'ence y') {
    at.clock.advance(200);
    at.type(letter);
  }
  assert.equal(at.line(), '> half a sentence y');
  at.clock.advance(400);
  assert.match(at.drawn(), /Pawl asks: use touch/, 'it is shown, and keys still go into the line');
  at.clock.advance(1_000);
  at.type('n\r');
  assert.equal(at.answers[0]?.answer.kind, 'deny');
  assert.equal(at.line(), '> half a sentence y');
});

test('a key that is no answer is said to be none, and does not spoil the next one', () => {
  const at = stageView();
  question(at);
  at.clock.advance(700);
  at.type('x');
  assert.deepEqual(at.answers, []);
  assert.match(at.drawn(), /'x' is no answer/);
  at.type('y');
  assert.deepEqual(at.answers, [{ answer: { kind: 'allow' }, scope: 'once' }]);
});

test('a cancelled turn takes its question away and gives what waited back', () => {
  const at = stageView();
  at.type('draft');
  question(at);
  at.happens({ type: 'UserInput', at: at.clock.now(), text: 'waits', mode: 'steer' });
  at.clock.advance(400);
  at.happens({ type: 'CancelTurn', at: at.clock.now() });
  assert.equal(at.line(), '> waits\n  draft');
});

test('an interrupt cancels what runs; two within two seconds end', () => {
  const at = stageView();
  question(at);
  at.view.interrupt();
  at.clock.advance(2_100);
  at.view.interrupt();
  at.clock.advance(1_900);
  at.view.interrupt();
  assert.deepEqual(at.asked, ['cancel', 'cancel', 'end hard']);
});

test('an interrupt at rest clears the line; the end key only works on an empty one', () => {
  const at = stageView();
  at.type('some');
  at.press('C-d');
  at.view.interrupt();
  assert.match(at.line(), /^> (Give a task, for example: .*)?$/);
  at.press('C-d');
  assert.deepEqual(at.asked, ['end clean']);
});

test('the end key does nothing while a list has a filter, or letters wait for one', async () => {
  const at = stageView();
  const point = { kind: 'turn', when: '', text: 'fix it', about: '' } as const;
  const picked = at.view.pickPoint(openPointList('Take back:', [point]));
  at.type('fix');
  at.press('C-d');
  at.press('escape');
  assert.equal(await picked, null);
  const listed = at.view.withLists(async () => undefined);
  at.type('x');
  at.press('C-d');
  await listed;
  assert.deepEqual(at.asked, []);
});

test('an unknown command is explained; it leaves the line, and Up brings it back', () => {
  const at = stageView();
  at.type('/halp\r');
  assert.match(at.printed.join(''), /There is no \/halp\. Did you mean \/help\?[\s\S]*Up brings/);
  assert.match(at.line(), /^> (Give a task, for example: .*)?$/);
  at.type('/cost\r');
  assert.deepEqual(at.asked, ['cost']);
  at.press('up', 'up');
  assert.equal(at.line(), '> /halp');
});

test('a refusal is seen as one, with its reason', () => {
  const at = stageView();
  question(at);
  at.clock.advance(700);
  at.type('nuse a copy\r');
  const [given] = at.answers;
  assert.ok(given !== undefined);
  at.happens({
    type: 'ApprovalAnswered',
    at: at.clock.now(),
    batchId: 'batch-1',
    callId: 'a',
    ...given,
  });
  assert.equal(at.printed.at(-1)?.trim(), '✗ touch x · refused by user: use a copy');
});

test('a command that cannot be followed now says why', () => {
  const at = stageView();
  question(at);
  at.happens({ type: 'CompactRequested', at: at.clock.now() });
  assert.equal(at.printed.at(-1), '  not now: a turn is running');
});

test('Ctrl-Z gives the terminal back, whatever is in the line', () => {
  const at = stageView();
  at.type('half a');
  at.press('C-z');
  assert.deepEqual(at.asked, ['suspend']);
  assert.equal(at.line(), '> half a');
});

test('an answer that was being typed when its question went away comes back into the line', () => {
  const at = stageView();
  at.type('draft');
  question(at);
  at.clock.advance(1_400);
  at.type('nuse pnpm');
  at.happens({ type: 'CancelTurn', at: at.clock.now() });
  assert.equal(at.line(), '> draft\n  use pnpm');
});

test('a lasting permission is reported with the way to revoke it', () => {
  const at = stageView();
  question(at);
  at.clock.advance(700);
  at.type('a');
  const [given] = at.answers;
  assert.equal(given?.scope, 'shape');
  assert.doesNotMatch(at.printed.join('\n'), /allowed/);
  if (given !== undefined)
    at.happens({
      type: 'ApprovalAnswered',
      at: at.clock.now(),
      batchId: 'batch-1',
      callId: 'a',
      ...given,
    });
  assert.match(at.printed.join('\n'), /^· allowed \(\/permissions revokes it\): touch x$/m);
});

test('Escape twice at rest opens the list of a rewind; twice while it works only cancels, and slowly does nothing', () => {
  const at = stageView();
  at.press('escape');
  at.clock.advance(1_000);
  at.press('escape');
  assert.deepEqual(at.asked, []);
  at.press('escape');
  assert.deepEqual(at.asked, ['rewind']);
  question(at);
  at.press('escape', 'escape');
  assert.deepEqual(at.asked, ['rewind', 'cancel', 'cancel']);
});

test('Escape twice leaves a text alone, but for the one that a rewind has put there', () => {
  const at = stageView();
  at.type('draft');
  at.press('escape', 'escape', 'escape');
  assert.deepEqual(at.asked, []);
  at.press('C-u');
  at.view.editAgain('taken back');
  assert.equal(at.line(), '> taken back');
  at.press('escape', 'escape');
  assert.deepEqual(at.asked, ['rewind']);
  at.clock.advance(2_000);
  at.type('!');
  at.press('escape', 'escape');
  assert.deepEqual(at.asked, ['rewind']);
});

test('a text that a rewind takes back comes before a draft, and both stay at the next Escape', () => {
  const at = stageView();
  at.type('draft');
  at.view.editAgain('taken back');
  const lines = at.line();
  assert.ok(lines.includes('draft'), lines);
  at.press('escape', 'escape');
  assert.deepEqual(at.asked, []);
});

test('keys that come before a list of a rewind wait for it; later ones go to the line', async () => {
  const at = stageView();
  const point = { kind: 'turn', when: '', about: '' } as const;
  const list = openPointList('Take back:', [
    { ...point, text: 'two' },
    { ...point, text: 'one' },
  ]);
  const picked: (number | undefined)[] = [];
  const work = at.view.withLists(async () => {
    await Promise.resolve();
    picked.push((await at.view.pickPoint(list))?.index);
    await Promise.resolve();
    picked.push((await at.view.pickPoint(list))?.index);
  });
  at.press('down', 'enter', 'enter');
  await work;
  assert.deepEqual(picked, [1, 0]);
  at.type('text');
  assert.equal(at.line(), '> text');
});

test('letters typed while a rewind is at work stay in the line; a second Enter sends nothing', async () => {
  const at = stageView();
  let finish = (): void => undefined;
  const work = at.view.withLists(
    () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  );
  at.press('enter', 'escape', 'escape'); // no second rewind begins
  at.type('next');
  finish();
  await work;
  assert.equal(at.line(), '> next');
  assert.deepEqual(at.asked, []);
});

test('a list takes the keys until one is chosen or it is left', async () => {
  const at = stageView();
  at.type('draft');
  const choices = ['apple', 'pear'].map((text) => ({ text, about: '' }));
  const chosen = at.view.pick('Fruit:', choices);
  at.press('down', 'enter');
  assert.equal(await chosen, 1);
  const left = at.view.pick('Fruit:', choices);
  at.press('escape');
  assert.equal(await left, null);
  assert.equal(at.line(), '> draft');
});

test('the end key does not leave while a list has a filter', () => {
  const at = stageView();
  void at.view.pick('Fruit:', [{ text: 'apple', about: '' }]);
  at.type('a');
  at.press('C-d');
  assert.deepEqual(at.asked, []);
  at.press('backspace', 'C-d');
  assert.deepEqual(at.asked, ['end clean']);
});

test('a command of the user’s own, and what it is called by', () => {
  const at = stageView();
  at.type('!ls -l\r');
  at.type('/model\r');
  assert.deepEqual(at.asked, ['!ls -l', 'model']);
});

test('a question that may be answered stands on the screen: a list that would cover it is closed', async () => {
  const at = stageView();
  const left = at.view.pick('Fruit:', [{ text: 'apple', about: '' }]);
  question(at);
  at.press('down');
  at.clock.advance(400);
  assert.equal(await left, null);
  assert.match(at.drawn(), /y {2}yes, once/);
});

test('Shift+Tab asks for the next preset, and changes nothing that is typed', () => {
  const at = stageView();
  at.type('half a');
  at.view.take({
    kind: 'key',
    key: { name: 'tab', text: '', control: false, alt: false, shift: true },
  });
  assert.deepEqual(at.asked, ['preset']);
  assert.equal(at.line(), '> half a');
});

test('at a question Shift+Tab changes no preset', () => {
  const at = stageView();
  question(at);
  at.clock.advance(700);
  at.view.take({
    kind: 'key',
    key: { name: 'tab', text: '', control: false, alt: false, shift: true },
  });
  assert.deepEqual(at.asked, []);
});

test('a question mark alone shows the card of keys; Escape closes it, and a text has none', () => {
  const at = stageView();
  at.type('?');
  assert.match(at.drawn(), /Alt\+Enter[\s\S]*\n {2}sandbox off · x · /);
  at.press('escape');
  assert.doesNotMatch(at.drawn(), /Alt\+Enter/);
  assert.match(at.line(), /^> Give a task/);
  at.type('?why');
  assert.equal(at.line(), '> ?why');
  assert.doesNotMatch(at.drawn(), /Alt\+Enter {2}/);
});

test('a question keeps preset, model and money in sight', () => {
  const at = stageView();
  question(at);
  at.clock.advance(700);
  assert.match(at.drawn(), /\n {2}sandbox off · x · \$0\.00 · context 0%$/);
});

test('a prompt on the command line that is no command says so, and stays in the line', () => {
  const at = stageView();
  at.view.sendFirst('/nothing');
  assert.match(at.printed.join('\n'), /There is no \/nothing/);
  assert.doesNotMatch(at.printed.join('\n'), /Press Enter/);
});

test('a command on the command line is not run: a plain terminal shows it, and it can be typed again', () => {
  const at = stageView('yes');
  at.view.sendFirst('!touch made');
  assert.deepEqual(at.asked, []);
  const printed = at.printed.join('\n');
  assert.match(
    printed,
    /from the command line\. Type it here to run it\.\n.*not sent: !touch made/,
  );
});
