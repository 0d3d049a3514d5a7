import type { JudgedCall, Verdict } from '../call.js';
import type { On } from '../event.js';
import type { AssistantMessage, AssistantPart } from '../message.js';
import type { Limits } from '../settings.js';
import type { Usage } from '../usage.js';
import type { ReplyKind, Spending } from './configuration.js';

/** What the model of the exploration says: built once, shared by all steps. */

/** The size of every window in an exploration, in tokens: no text that is ever told comes near to a share of it. */
export const windowTokens = 1_000_000;
/** A dollar limit that one costly reply crosses, and that one dear reply comes near to. */
export const usdLimit = 5;
/** What the user raises a limit to: more than all that can be spent. */
export const raisedLimit = 1_000;

/** The letters of a batch: R reads, T reads under the id of the first call, E edits, N does not exist, I has a bad argument. */
const letters: Readonly<
  Record<string, { readonly name: string; readonly mutating: boolean; readonly verdict: Verdict }>
> = {
  R: { name: 'grep', mutating: false, verdict: { kind: 'ok' } },
  T: { name: 'grep', mutating: false, verdict: { kind: 'ok' } },
  E: { name: 'edit', mutating: true, verdict: { kind: 'ok' } },
  N: { name: 'teleport', mutating: false, verdict: { kind: 'noSuchTool', known: ['grep', 'edit'] } },
  I: { name: 'edit', mutating: true, verdict: { kind: 'invalid', field: 'path', why: 'must be a string' } },
};

const path = 'a.ts';

/** The calls that a word of letters stands for: `RE` is a read and an edit. */
const callsOf = (word: string): readonly JudgedCall[] =>
  [...word].flatMap((letter, index) => {
    const known = letters[letter];
    if (known === undefined) return [];
    const { name, mutating, verdict } = known;
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

/** What a reply reports. Where tokens are limited, small ones are free, so that their sum stays finite. */
export const spend = (spending: Spending, limits: Limits): Usage => {
  const free = limits.tokens > 0 ? 0 : smallTokens;
  switch (spending) {
    case 'small':
      return usageOf(free, 0);
    case 'filling':
      return usageOf(windowTokens * 0.95, 0);
    case 'overfull':
      return usageOf(windowTokens * 1.1, 0);
    case 'dear':
      return usageOf(limits.tokens > 0 ? manyTokens * 0.8 : free, usdLimit * 0.8);
    case 'costly':
      return usageOf(limits.tokens > 0 ? manyTokens : free, usdLimit + 1);
    default:
      return spending satisfies never;
  }
};

export const tokensLimit = manyTokens;

/** A reply without its id and time. `costly`: it counts against the bound of budget stops. */
export type Reply = Pick<On<'LlmCompleted'>, 'message' | 'calls' | 'stopReason' | 'usage'> & {
  readonly costly: boolean;
};

export const replyOf = (kind: ReplyKind, limits: Limits): Reply => {
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
    usage: spend(spending, limits),
    costly: spending === 'dear' || spending === 'costly',
  };
};
