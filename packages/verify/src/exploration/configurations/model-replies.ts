import type { CallVerdict, JudgedCall } from '@pawl/agent/machine/call';
import type { On } from '@pawl/agent/machine/event';
import type { AssistantMessage, AssistantPart } from '@pawl/agent/machine/message';
import type { Limits } from '@pawl/agent/machine/settings';
import type { Usage } from '@pawl/agent/machine/values/usage';
import type { ReplyKind, Spending } from './configuration.js';

/** Replies of the explored model, built once and shared by all steps. */

/** Tokens of the window: so many that texts alone never reach a threshold. */
export const windowTokens = 1_000_000;
/** A dollar limit that a costly reply crosses and a dear reply comes near to. */
export const usdLimit = 5;
/** The value of a raised limit: more than an exploration can spend. */
export const raisedLimit = 1_000;

/** Letters for calls: R read, T read with the first id, E edit, P edit with preview, S spend, N unknown, I invalid. */
const letters: Readonly<
  Record<
    string,
    {
      readonly name: string;
      readonly mutating: boolean;
      readonly verdict: CallVerdict;
      readonly previews?: 'yes';
      readonly spends?: 'yes';
    }
  >
> = {
  R: { name: 'grep', mutating: false, verdict: { kind: 'ok' } },
  T: { name: 'grep', mutating: false, verdict: { kind: 'ok' } },
  E: { name: 'edit', mutating: true, verdict: { kind: 'ok' } },
  P: { name: 'patch', mutating: true, verdict: { kind: 'ok' }, previews: 'yes' },
  S: { name: 'explore', mutating: false, verdict: { kind: 'ok' }, spends: 'yes' },
  N: { name: 'teleport', mutating: false, verdict: { kind: 'noSuchTool', known: ['grep', 'edit'] } },
  I: { name: 'edit', mutating: true, verdict: { kind: 'invalid', field: 'path', why: 'must be a string' } },
};

const path = 'a.ts';

/** The calls for a word of letters: `RE` is a read and an edit. */
const callsOf = (word: string): readonly JudgedCall[] =>
  [...word].flatMap((letter, index) => {
    const known = letters[letter];
    if (known === undefined) return [];
    const { name, mutating, verdict, previews, spends } = known;
    return [
      {
        callId: letter === 'T' ? 'c1' : `c${index + 1}`,
        tool: name,
        input: { path },
        verdict,
        traits: {
          effect: mutating ? ('probeable' as const) : ('pure' as const),
          parallelSafe: !mutating,
          mutating,
          deadlineMs: 120_000,
          ...(previews === undefined ? {} : { previews }),
          ...(spends === undefined ? {} : { spends }),
        },
        facts: { argv: [], paths: [`/project/${path}`], hosts: [], shape: `${name} ${path}` },
      },
    ];
  });

const usageOf = (inputTokens: number, costUsd: number): Usage => ({
  inputTokens,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd,
});

const smallTokens = 10;
const manyTokens = 100_000;

/** Usage of a reply. With a token limit small replies are free, so that the sums stay finite. */
export const usageFor = (spending: Spending, limits: Limits): Usage => {
  const free = limits.tokens !== 'unlimited' ? 0 : smallTokens;
  switch (spending) {
    case 'small':
      return usageOf(free, 0);
    case 'filling':
      return usageOf(windowTokens * 0.95, 0);
    case 'overfull':
      return usageOf(windowTokens * 1.1, 0);
    case 'dear':
      return usageOf(limits.tokens !== 'unlimited' ? manyTokens * 0.8 : free, usdLimit * 0.8);
    case 'costly':
      return usageOf(limits.tokens !== 'unlimited' ? manyTokens : free, usdLimit + 1);
    default:
      return spending satisfies never;
  }
};

export const tokensLimit = manyTokens;

/** A reply without id and time. `costly`: it counts against the bound `budgetStops`. */
export type ModelReply = Pick<On<'LlmCompleted'>, 'message' | 'calls' | 'stopReason' | 'usage'> & {
  readonly costly: boolean;
};

export const replyOf = (kind: ReplyKind, limits: Limits): ModelReply => {
  const calls = callsOf(kind.calls ?? '');
  const stopReason = kind.stop ?? (calls.length > 0 ? 'toolUse' : 'end');
  const spending = kind.spending ?? 'small';
  const said: readonly AssistantPart[] = kind.text === undefined ? [] : [{ type: 'text', text: kind.text }];
  const asked = calls.map(({ callId, tool, input }) => ({ type: 'call', callId, tool, input }) as const);
  const message: AssistantMessage | null =
    kind.message === null
      ? null
      : {
          role: 'assistant',
          model: 'test/model',
          cut: stopReason === 'maxTokens',
          parts: [...said, ...asked],
        };
  return {
    message,
    calls,
    stopReason,
    usage: usageFor(spending, limits),
    costly: spending === 'dear' || spending === 'costly',
  };
};
