import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check, countOf } from '../../../../test/kit/agent/rows.js';
import { a, u } from '../../../../test/kit/agent/shown.js';
import { start } from '../../../../test/kit/agent/walker.js';

// Turns and input.

check([
  {
    rule: 'open-session',
    title: 'a new machine is ready and has said nothing',
    given: () => start(),
    state: 'Ready',
    talk: [],
  },
  {
    rule: 'open-session',
    title: 'Start waits for the user and prompts',
    given: 'Ready',
    send: [g.begin],
    state: 'W(start)',
    does: [],
    shows: ['PromptForInput'],
    talk: [],
  },
  {
    rule: 'open-session',
    title: 'input in Ready begins a turn by way of W',
    given: 'Ready',
    send: [g.input('hi')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    path: 'Ready W C',
    talk: [u('hi')],
    also: (walker) => {
      const { state } = walker.last();
      assert.equal(state.name === 'CallingLlm' && state.requestId, 'req-1');
    },
  },
  {
    rule: 'input-starts-turn',
    title: 'input in W is sent',
    given: 'W',
    send: [g.input('hi')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    path: 'W C',
    talk: [u('hi')],
  },
  {
    rule: 'streamed-text',
    title: 'a streamed reply is shown piece by piece and not once more at its end',
    given: 'C[u]',
    send: [g.delta('y'), g.delta('o'), g.says('yo')],
    state: 'W(endOfTurn answer)',
    does: [],
    hides: ['DisplayText', 'RetractPartial'],
    path: 'C Processing EndOfTurn W',
    talk: [u('hi'), a('yo')],
    also: (walker) => assert.equal(countOf(walker, 'DisplayText'), 2),
  },
  {
    rule: 'streamed-text',
    title: 'text that was not streamed is shown at completion',
    given: 'C[u]',
    send: [g.delta('y'), g.says('yo')],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: [/^DisplayText o$/],
    talk: [u('hi'), a('yo')],
  },
  {
    rule: 'calls-decide',
    title: 'calls win over a stop reason that says the turn ends',
    given: 'C[u]',
    send: [g.completed({ calls: [g.grep('1')], stopReason: 'end' })],
    state: 'X',
    does: ['ExecuteTools 1'],
    path: 'C Processing ToolUseRequested CheckingForCancellation X',
  },
  {
    rule: 'refused-reply',
    title: 'a refusal with text is kept, shown and warned about',
    given: 'C[u]',
    send: [g.completed({ text: 'I will not', stopReason: 'refusal' })],
    state: 'W(endOfTurn refused)',
    does: [],
    shows: ['DisplayText I will not', 'DisplayWarning refused'],
    talk: [u('hi'), a('I will not')],
  },
  {
    rule: 'input-failed',
    title: 'failing input is shown and waited for again',
    given: 'W',
    send: [g.inputFails],
    state: 'W(error input)',
    does: [],
    shows: [/^DisplayError .*the terminal is gone/, 'PromptForInput'],
    path: 'W Failed W',
  },
]);
