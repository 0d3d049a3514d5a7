import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import type { HookMoment } from '../../../packages/agent/src/ports/hooks.js';
import { type Gate, gate, guard, inTurn } from '../contract-hooks.js';
import { action, event, oneTurn, type Story, type StorySession } from '../story.js';

/** Hooks of the user at each of their moments, and stopping policies. */

const use = (tool: string, text = 'a') => ({ calls: [{ tool, input: { text } }] });
const DONE = { text: 'Done.' };
const OK = { kind: 'allow' } as const;

const denying = (name: string, moment: HookMoment, replies: Story['replies']): Story =>
  oneTurn(
    name,
    replies,
    {},
    { userHooks: () => guard({ [moment]: inTurn({ decision: 'deny', reason: 'not today' }) }) },
  );

/** A story whose hook waits for the story. */
const gated = (
  name: string,
  moment: HookMoment,
  replies: Story['replies'],
  play: (session: StorySession, hook: Gate) => Promise<void>,
): Story => {
  let hook = gate({ note: 'look again' });
  return {
    name,
    replies,
    userHooks: () => {
      hook = gate({ note: 'look again' });
      return guard({ [moment]: hook.says });
    },
    play: (session) => play(session, hook),
  };
};

const cancelledIn = (moment: HookMoment, replies: Story['replies']): Story =>
  gated(`a cancel ends the hook ${moment}`, moment, replies, async (session, hook) => {
    await session.say('go');
    await hook.begun;
    await session.send({ type: 'CancelTurn' });
    await session.rest();
    // What the hook's end brings comes next, as nobody waits for it.
    if (moment !== 'after-tool')
      await session.until(event(moment === 'before-request' ? 'UserHooksRan' : 'LlmCompleted'));
    await session.ask('again');
  });

/** The hook of the start ends when the first request waits for it: its stopping policy, which comes before, opens it. */
const firstRequestWaits = (): Story => {
  let open = (): void => undefined;
  const story = gated(
    'the first request waits for the hooks of the start',
    'session-start',
    [DONE],
    async (session, hook) => {
      open = hook.open;
      await session.ask('go');
    },
  );
  const stoppingPolicy = (): null => {
    setImmediate(open);
    return null;
  };
  return { ...story, settings: { userPolicy: 'ask' }, stoppingPolicy };
};

const hooks: readonly Story[] = [
  oneTurn(
    'hooks say something at each moment of a turn',
    [use('change'), DONE],
    {},
    {
      userHooks: () =>
        guard({
          'before-request': () => ({ note: 'be quick' }),
          'before-tool': () => ({ note: 'the branch is main' }),
          'after-tool': () => ({ note: 'the file is long' }),
          'after-batch': () => ({ note: 'the index is stale' }),
          'turn-end': () => ({ note: 'well done' }),
        }),
    },
  ),
  denying('a hook denies a call', 'before-tool', [use('change'), DONE]),
  denying('a hook holds a request back', 'before-request', []),
  denying('a hook objects to what a call did', 'after-tool', [use('change'), DONE]),
  denying('a hook objects to what a batch did', 'after-batch', [use('change'), DONE]),
  denying('a hook objects to the end of a turn', 'turn-end', [{ text: 'Done?' }, DONE]),
  oneTurn(
    'hooks after a batch run once, also if the next request is repeated',
    [use('change'), { fail: { kind: 'overloaded' } }, use('echo'), DONE],
    {},
    { userHooks: () => guard({ 'after-batch': () => ({ note: 'the index is stale' }) }) },
  ),
  {
    name: 'a hook asks the user about a call',
    replies: [use('change'), DONE],
    settings: { onAsk: 'ask' },
    userHooks: () => guard({ 'before-tool': () => ({ decision: 'ask', reason: 'is it Friday?' }) }),
    async play(session) {
      await session.say('go');
      await session.until(action('RequestApproval'));
      await session.send({
        type: 'ApprovalAnswered',
        batchId: 'batch-1',
        callId: 'call-1-1',
        answer: OK,
        scope: 'once',
      });
      await session.rest();
    },
  },
  gated(
    'hooks of the start that end before the first request',
    'session-start',
    [DONE],
    async (session, hook) => {
      await hook.begun;
      hook.open();
      await session.until(event('UserHooksRan'));
      await session.ask('go');
    },
  ),
  firstRequestWaits(),
  {
    name: 'a hook is told that the user is asked, and nothing waits for it',
    replies: [use('change'), DONE],
    settings: { rules: presetRules.careful },
    userHooks: () =>
      guard({
        'ask-user': ({ notification_type: type }) =>
          type === 'approval' ? { note: 'called the user' } : undefined,
      }),
    async play(session) {
      await session.say('go');
      await session.until(event('UserHooksRan'));
      await session.send({
        type: 'ApprovalAnswered',
        batchId: 'batch-1',
        callId: 'call-1-1',
        answer: OK,
        scope: 'once',
      });
      await session.rest();
    },
  },
  {
    name: 'hooks of the end run after the last event of the session',
    replies: [DONE],
    userHooks: () => guard({ 'session-end': () => ({ note: 'bye' }) }),
    play: async (session) => void (await session.ask('go')),
  },
  {
    name: 'a hook refuses a compaction, then adds to the next one',
    replies: [DONE, { text: 'They said go.' }],
    userHooks: () =>
      guard({
        'before-compaction': inTurn(
          { decision: 'deny', reason: 'not now' },
          { note: 'keep the ids' },
        ),
      }),
    async play(session) {
      await session.ask('go');
      await session.send({ type: 'CompactRequested' });
      await session.until(event('CompactionFailed'));
      await session.send({ type: 'CompactRequested' });
      await session.until(event('CompactionCompleted'));
    },
  },
  cancelledIn('before-request', [DONE]),
  cancelledIn('before-tool', [use('change'), DONE]),
  cancelledIn('after-tool', [use('change'), DONE]),
  cancelledIn('turn-end', [DONE, DONE]),
];

const policy = (name: string, stoppingPolicy: Story['stoppingPolicy']): Story =>
  oneTurn(
    name,
    [use('change'), DONE],
    { userPolicy: 'ask' },
    stoppingPolicy === undefined ? {} : { stoppingPolicy },
  );

const policies: readonly Story[] = [
  policy('a stopping policy that allows', () => null),
  policy('a stopping policy stops the second request', async ({ session }) =>
    session.counters.batch > 0 ? 'one batch is enough' : null,
  ),
  policy('a stopping policy that fails stops the turn', () => {
    throw new Error('no answer');
  }),
  policy('a session whose stopping policy is not connected', undefined),
];

export const hookStories: readonly Story[] = [...hooks, ...policies];
