import { contractHooks } from '../contract-tools.js';
import { event, oneTurn, type Story } from '../story.js';

/** Tools, the limits of a batch, and hooks. */

const calls = (...list: readonly (readonly [string, string])[]) => ({
  calls: list.map(([tool, text]) => ({ tool, input: { text } })),
});
const DONE = { text: 'Done.' };
const HOOKS = { hooks: 'mutating' } as const;

export const toolStories: readonly Story[] = [
  oneTurn('a tool', [calls(['echo', 'hello']), DONE]),
  oneTurn('a tool after some text', [{ text: 'I look.', ...calls(['echo', 'hello']) }, DONE]),
  oneTurn('five rounds', [...['1', '2', '3', '4', '5'].map((text) => calls(['echo', text])), DONE]),
  oneTurn('changes of one batch run one after the other', [
    calls(['change', 'a'], ['change', 'b']),
    DONE,
  ]),
  oneTurn('a tool that fails', [calls(['fail', 'no such file']), DONE]),
  oneTurn('a tool with a bug', [calls(['throws', '']), DONE]),
  oneTurn('a tool that takes too long', [calls(['brief', '']), DONE]),
  oneTurn('a result that is too long', [calls(['long', 'line']), DONE]),
  oneTurn('a tool that does not exist', [calls(['delete', 'x']), DONE]),
  oneTurn('an input that is wrong', [{ calls: [{ tool: 'echo', input: { text: 7 } }] }, DONE]),
  oneTurn('an input that is no JSON', [{ calls: [{ tool: 'echo', rawInput: '{"text":' }] }, DONE]),
  oneTurn('a good call beside a bad one', [
    { calls: [{ tool: 'delete' }, { tool: 'change', input: { text: 'a' } }] },
    DONE,
  ]),
  oneTurn('a call id that comes again', [
    { calls: [{ tool: 'echo', callId: 'same', input: { text: 'a' } }] },
    { calls: [{ tool: 'echo', callId: 'same', input: { text: 'b' } }] },
    DONE,
  ]),
  oneTurn('a retry between tools', [
    calls(['echo', 'a']),
    { fail: { kind: 'overloaded' } },
    calls(['echo', 'b']),
    DONE,
  ]),
  oneTurn('at most two rounds', [calls(['echo', 'a']), calls(['echo', 'b']), DONE], {
    limits: limitsOf({ rounds: 2 }),
  }),
  oneTurn('the same call again and again', [calls(['echo', 'a']), calls(['echo', 'a']), DONE], {
    limits: limitsOf({ repeats: 2 }),
  }),
  oneTurn('batches that fail again and again', [calls(['fail', 'a']), calls(['fail', 'b']), DONE], {
    limits: limitsOf({ errors: 2 }),
  }),
  oneTurn(
    'at most so many tokens',
    [{ ...calls(['echo', 'a']), usage: { inputTokens: 500, outputTokens: 10 } }, DONE],
    { limits: limitsOf({ tokens: 400 }) },
  ),
  {
    name: 'a limit is raised and the turn goes on',
    replies: [{ ...calls(['echo', 'a']), usage: { inputTokens: 500, outputTokens: 10 } }, DONE],
    settings: { limits: limitsOf({ tokens: 400 }) },
    async play(session) {
      await session.ask('go');
      await session.send({ type: 'ApproveBudget', dimension: 'tokens', limit: 5_000 });
      await session.ask('go on');
    },
  },
  oneTurn('hooks find a commit', [calls(['change', 'a']), DONE], HOOKS, { hooks: contractHooks() }),
  oneTurn('hooks after reads alone do nothing', [calls(['echo', 'a']), DONE], HOOKS, {
    hooks: contractHooks(),
  }),
  oneTurn(
    'a hook that fails stops nothing',
    [calls(['change', 'a']), DONE],
    { ...HOOKS, formatter: 'onChanges' },
    {
      hooks: contractHooks('RunningAutoformatters'),
    },
  ),
  oneTurn('hooks that are not connected', [calls(['change', 'a']), DONE], HOOKS),
  {
    name: 'a tool is cancelled and the turn goes on',
    replies: [calls(['work', 'a']), DONE],
    async play(session) {
      await session.say('go');
      await session.until(event('ToolProgress'));
      await session.send({ type: 'CancelTool', batchId: 'batch-1', callId: 'call-1-1' });
      await session.rest();
    },
  },
];

function limitsOf(own: Partial<NonNullable<Story['settings']>['limits']>) {
  const none = 'unlimited' as const;
  return {
    usd: none,
    tokens: none,
    timeMs: none,
    rounds: 100,
    truncation: 2,
    repeats: none,
    errors: none,
    sameResults: none,
    ...own,
  };
}
