import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check, countOf, spentBy } from '../../../../test/kit/agent/rows.js';
import { a, u } from '../../../../test/kit/agent/shown.js';
import { bring, start } from '../../../../test/kit/agent/walker.js';

// Turns and input.

const emptied = () => {
  const walker = bring('C[u]');
  walker.send(g.empty);
  return walker;
};
const failed = () => {
  const walker = bring('C[u]');
  walker.send(g.refusedRequest);
  return walker;
};
/** Waits after a cancel whose request is not accounted for yet. */
const cancelled = () => {
  const walker = bring('C[u]');
  walker.send(g.cancel);
  return walker;
};

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
    rule: 'input-starts-turn',
    title: 'blank input is not sent',
    given: 'W',
    send: [g.input('  ')],
    state: 'W(start)',
    does: [],
    shows: ['PromptForInput'],
    says: true,
    talk: [],
    queue: [],
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
    rule: 'empty-reply',
    title: 'an empty reply stores nothing and warns',
    given: 'C[u]',
    send: [g.empty],
    state: 'W(endOfTurn empty)',
    does: [],
    shows: ['DisplayWarning empty', 'PromptForInput'],
    path: 'C Processing EndOfTurn W',
    talk: [u('hi')],
  },
  {
    rule: 'empty-reply',
    title: 'with empty retries an empty reply waits for its retry, straight from C',
    given: 'C[u]',
    settings: { emptyRetries: 1 },
    send: [g.empty],
    state: 'Er',
    does: ['ScheduleTimer 1000'],
    path: 'C Er',
    talk: [u('hi')],
  },
  {
    rule: 'empty-reply',
    title: 'the retry of an empty reply is attempt 1 again, and a second empty reply ends the turn',
    given: 'C[u]',
    settings: { emptyRetries: 1 },
    send: [g.empty, g.rings(), g.empty],
    state: 'W(endOfTurn empty)',
    does: [],
    shows: ['DisplayWarning empty'],
    talk: [u('hi')],
    also: (walker) => {
      assert.equal(countOf(walker, 'SendLlmRequest'), 2);
      const attempts = walker
        .steps()
        .flatMap(({ state }) => (state.name === 'CallingLlm' ? [state.attempt] : []));
      assert.deepEqual(attempts, [1, 1]);
    },
  },
  {
    rule: 'empty-reply',
    title: 'after an empty reply the next input joins the unanswered message',
    given: emptied,
    send: [g.input('again')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u('hi', 'again')],
  },
  {
    rule: 'empty-reply',
    title: 'tool use announced with nothing at all is an empty reply and leaves a diagnostic',
    given: 'C[u]',
    send: [g.completed({ stopReason: 'toolUse' })],
    state: 'W(endOfTurn empty)',
    does: [],
    shows: ['DisplayWarning empty'],
    says: true,
    talk: [u('hi')],
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
    rule: 'empty-reply',
    title: 'white space alone counts as empty',
    given: 'C[u]',
    send: [g.says(' \n ')],
    state: 'W(endOfTurn empty)',
    does: [],
    shows: ['DisplayWarning empty'],
    talk: [u('hi')],
  },
  {
    rule: 'retry-last',
    title: 'after a failure the next input joins the unanswered message',
    given: failed,
    send: [g.input('more')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u('hi', 'more')],
  },
  {
    rule: 'retry-last',
    title: 'RetryLast after a failure sends the conversation as it stands, as a new turn',
    given: failed,
    send: [g.retryLast],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u('hi')],
    also: (walker) => {
      const turns = new Set(walker.steps().map(({ state }) => state.session.turn.turnId));
      assert.ok(turns.size >= 2, 'a new turn id');
    },
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
  {
    rule: 'stale-events',
    title: 'the completion of an old request changes nothing in W but usage',
    given: cancelled,
    send: [g.completed({ text: 'late', requestId: 'req-1', usage: g.usage(0.25) })],
    state: 'W(cancelled user)',
    quiet: true,
    talk: [u('hi')],
    also: (walker) => assert.equal(spentBy(walker), 0.25),
  },
  {
    rule: 'stale-events',
    title: 'a timer in W is stale',
    given: 'W',
    send: [g.rings('timer-1')],
    state: 'W(start)',
    quiet: true,
  },
  {
    rule: 'send-again',
    title: 'RetryNow in W is late',
    given: 'W',
    send: [g.retryNow],
    state: 'W(start)',
    quiet: true,
  },
]);
