import assert from 'node:assert/strict';
import type { ApprovalAnswer } from '../../../packages/agent/src/machine/event.js';
import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import type { ApprovalScope } from '../../../packages/agent/src/policy/rules.js';
import { action, event, type Story, type StorySession } from '../story.js';

/** What users do: approve, cancel, type meanwhile, change settings, close. */

const change = (text: string) => ({ calls: [{ tool: 'change', input: { text } }] });
const DONE = { text: 'Done.' };
const CAREFUL = { rules: presetRules.careful };

const reply = (
  session: StorySession,
  callId: string,
  answer: ApprovalAnswer,
  scope: ApprovalScope = 'once',
  batchId = 'batch-1',
) => session.send({ type: 'ApprovalAnswered', batchId, callId, answer, scope });
const ALLOW = { kind: 'allow' } as const;

const approval = (name: string, answer: ApprovalAnswer): Story => ({
  name,
  replies: [change('a'), DONE],
  settings: CAREFUL,
  async play(session) {
    await session.say('go');
    await session.until(action('RequestApproval'));
    await reply(session, 'call-1-1', answer);
    await session.rest();
  },
});

/** Cancels the turn at a step. */
const cancelAt = (
  name: string,
  replies: Story['replies'],
  fits: Parameters<StorySession['until']>[0],
  settings: Story['settings'] = {},
): Story => ({
  name,
  replies,
  settings,
  async play(session) {
    await session.say('go');
    await session.until(fits);
    await session.send({ type: 'CancelTurn' });
    await session.rest();
  },
});

const approvals: readonly Story[] = [
  approval('a change is allowed', ALLOW),
  approval('a change is refused with a reason', { kind: 'deny', reason: 'not in this file' }),
  {
    name: 'one change is allowed and one refused',
    replies: [{ calls: [change('a'), change('b')].flatMap(({ calls }) => calls) }, DONE],
    settings: CAREFUL,
    async play(session) {
      await session.say('go');
      await session.until(action('RequestApproval'));
      await reply(session, 'call-1-1', ALLOW);
      await reply(session, 'call-1-2', { kind: 'deny', reason: 'no' });
      await session.rest();
    },
  },
  {
    name: 'a tool is allowed for the session',
    replies: [change('a'), change('b'), DONE],
    settings: CAREFUL,
    async play(session) {
      await session.say('go');
      await session.until(action('RequestApproval'));
      await reply(session, 'call-1-1', ALLOW, 'session');
      await session.rest();
    },
  },
  {
    name: 'an approval that comes twice counts once',
    replies: [change('a'), DONE],
    settings: CAREFUL,
    async play(session) {
      await session.say('go');
      await session.until(action('RequestApproval'));
      await reply(session, 'call-1-1', { kind: 'deny', reason: 'no' });
      await session.rest();
      await reply(session, 'call-1-1', ALLOW);
    },
  },
  {
    name: 'nobody is there to be asked',
    replies: [change('a'), DONE],
    settings: { ...CAREFUL, onAsk: 'deny' },
    play: async (session) => void (await session.ask('go')),
  },
  {
    name: 'a question ends the turn where nobody answers',
    replies: [change('a'), DONE],
    settings: { ...CAREFUL, onAsk: 'stop' },
    play: async (session) => void (await session.ask('go')),
  },
];

const QUESTION = {
  calls: [{ tool: 'ask_user', input: { question: 'Which?', choices: ['this', 'that'] } }],
};
const PLAN = {
  calls: [{ tool: 'propose_plan', input: { title: 'A parser', steps: ['read', 'write'] } }],
};
const PLANNING = {
  preset: 'plan',
  rules: presetRules.plan,
  sandbox: 'read-only',
} as const;

/** The model asks in its first reply, and the user answers with these, one after the other. */
const questions = (
  name: string,
  replies: Story['replies'],
  settings: NonNullable<Story['settings']>,
  ...answers: readonly ApprovalAnswer[]
): Story => ({
  name,
  replies,
  settings,
  async play(session) {
    await session.say('go');
    for (const [index, answer] of answers.entries()) {
      const batchId = `batch-${index + 1}`;
      await session.until(({ actions }) =>
        actions.some((one) => one.type === 'RequestApproval' && one.batchId === batchId),
      );
      await reply(session, `call-${index + 1}-1`, answer, 'once', batchId);
    }
    await session.rest();
  },
});

const askings: readonly Story[] = [
  questions(
    'a question is answered in words',
    [QUESTION, DONE],
    {},
    { kind: 'reply', text: 'that' },
  ),
  questions('a question is declined', [QUESTION, DONE], {}, { kind: 'deny', reason: '' }),
  questions('a question where nobody is', [QUESTION, DONE], { onAsk: 'stop' }),
  questions(
    'a plan is sent back, then accepted, and its changes are asked for',
    [PLAN, PLAN, change('a'), DONE],
    PLANNING,
    { kind: 'deny', reason: 'shorter' },
    ALLOW,
    ALLOW,
  ),
  questions(
    'a plan is accepted with changes, and goes on with the preset before it',
    [PLAN, change('a'), DONE],
    { ...PLANNING, presetBefore: 'auto' },
    { kind: 'reply', text: 'A parser\n1. write' },
  ),
  questions('a plan in another preset', [PLAN, DONE], {}),
];

const cancels: readonly Story[] = [
  cancelAt(
    'a cancel while the model answers',
    [{ text: 'Let me see.', stall: true }],
    event('TextDelta'),
  ),
  cancelAt('a cancel while a tool runs', [{ calls: [{ tool: 'work' }] }], event('ToolProgress')),
  cancelAt('a cancel while a question is open', [change('a')], action('RequestApproval'), CAREFUL),
  cancelAt(
    'a cancel while the session waits for a retry',
    [{ fail: { kind: 'overloaded' } }],
    action('ScheduleTimer'),
    { retrySchedule: { kind: 'list', delaysMs: [600_000] } },
  ),
  {
    name: 'a new turn after a cancel',
    replies: [{ text: 'Let me', stall: true }, DONE],
    async play(session) {
      await session.say('go');
      await session.until(event('TextDelta'));
      await session.send({ type: 'CancelTurn' });
      await session.rest();
      await session.ask('go on');
    },
  },
  {
    name: 'a cancel with nothing to cancel',
    replies: [DONE],
    async play(session) {
      await session.ask('go');
      await session.send({ type: 'CancelTurn' });
    },
  },
];

const meanwhile: readonly Story[] = [
  {
    name: 'a text while a tool runs joins its results',
    replies: [{ calls: [{ tool: 'work' }] }, DONE],
    async play(session) {
      await session.say('go');
      await session.until(event('ToolProgress'));
      await session.say('in English, please');
      await session.send({ type: 'CancelTool', batchId: 'batch-1', callId: 'call-1-1' });
      await session.rest();
    },
  },
  {
    name: 'a text for later begins the next turn',
    replies: [{ calls: [{ tool: 'work' }] }, { text: 'One.' }, { text: 'Two.' }],
    async play(session) {
      await session.say('go');
      await session.until(event('ToolProgress'));
      await session.say('then this', 'followUp');
      await session.send({ type: 'CancelTool', batchId: 'batch-1', callId: 'call-1-1' });
      await session.rest();
    },
  },
  {
    name: 'a queued text is taken back',
    replies: [{ calls: [{ tool: 'work' }] }, DONE],
    async play(session) {
      await session.say('go');
      await session.until(event('ToolProgress'));
      await session.say('not this', 'followUp');
      await session.send({ type: 'EditQueue', items: [] });
      await session.send({ type: 'CancelTool', batchId: 'batch-1', callId: 'call-1-1' });
      await session.rest();
    },
  },
  {
    name: 'settings change between turns',
    replies: [{ text: 'One.' }, change('a'), DONE],
    async play(session) {
      await session.ask('first');
      await session.send({ type: 'SettingsChanged', patch: { ...CAREFUL, onAsk: 'deny' } });
      await session.ask('second');
    },
  },
  {
    name: 'an input that the machine refuses changes nothing',
    replies: [DONE],
    async play(session) {
      const patch = { maxRetries: -1 };
      await assert.rejects(session.send({ type: 'SettingsChanged', patch }), /maxRetries/);
      await session.ask('go');
    },
  },
];

const endings: readonly Story[] = [
  { name: 'a session without a turn', replies: [], play: async () => undefined },
  {
    name: 'a session closes while the model answers',
    replies: [{ text: 'Let me', stall: true }],
    async play(session) {
      await session.say('go');
      await session.until(event('TextDelta'));
      await session.runtime.close(session.id);
    },
  },
  {
    name: 'a session closes while a tool runs',
    replies: [{ calls: [{ tool: 'work' }] }],
    async play(session) {
      await session.say('go');
      await session.until(event('ToolProgress'));
      await session.runtime.close(session.id);
    },
  },
];

export const userStories: readonly Story[] = [
  ...approvals,
  ...askings,
  ...cancels,
  ...meanwhile,
  ...endings,
];
