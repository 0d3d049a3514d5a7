import type { Action } from '../../../packages/agent/src/machine/action.js';
import { messagesOf } from '../../../packages/agent/src/machine/conversation.js';
import type { Message } from '../../../packages/agent/src/machine/message.js';
import {
  reservedUsd,
  type SessionData,
  type State,
  type WaitReason,
} from '../../../packages/agent/src/machine/state.js';
import type { Edge } from '../../../packages/machine/src/kernel/table.js';

/** How a trace shows what the machine did: in words, and leaving nothing of an action out but the inside of its calls. */

const quoted = (text: string): string => (/^[\w./-]+$/.test(text) ? text : JSON.stringify(text));

const isCall = (value: unknown): value is { readonly tool: string; readonly callId: string } =>
  typeof value === 'object' && value !== null && 'tool' in value && 'callId' in value;

const wordsOf = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value);
  if (isCall(value)) return `${value.tool}(${value.callId})`;
  return Array.isArray(value) ? `[${value.map(wordsOf).join(' ')}]` : JSON.stringify(value);
};

/** `SendLlmRequest requestId=req-1 purpose=user length=1` */
export const actionLine = ({ type, ...fields }: Action): string =>
  [type, ...Object.entries(fields).map(([name, value]) => `${name}=${wordsOf(value)}`)].join(' ');

/** `CallingLlm/LlmFailed/6 [mayRetry] waitToRetry → Error` */
export const edgeLine = (edge: Edge): string => {
  const guard = edge.when === '' ? '' : ` [${edge.when}]`;
  return `${edge.id}${guard} ${edge.then}${edge.kind === 'stay' ? '' : ` → ${edge.to}`}`;
};

const reasonWords = (reason: WaitReason): string => {
  switch (reason.kind) {
    case 'endOfTurn':
    case 'cancelled':
      return `${reason.kind} ${reason.cause}`;
    case 'budget':
      return `${reason.kind} ${reason.dimension}`;
    case 'error':
      return `${reason.kind} ${reason.error} ${quoted(reason.message)}`;
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return reason.kind;
    default:
      return reason satisfies never;
  }
};

const detail = (state: State): string => {
  switch (state.name) {
    case 'WaitingForUserInput':
      return reasonWords(state.reason);
    case 'CallingLlm': {
      const partial = state.partial === '' ? '' : `, so far ${JSON.stringify(state.partial)}`;
      const draining = state.call.mode === 'open' ? '' : `, draining for ${state.call.cause}`;
      return `${state.requestId} ${state.purpose}, attempt ${state.attempt}${partial}${draining}`;
    }
    case 'Error':
      return `${state.error.kind}, ${state.purpose}, attempt ${state.attempt}, ${state.timerId} due ${state.dueAt}`;
    case 'ExecutingTools': {
      const calls = state.calls
        .map(({ judged, status }) => `${judged.callId} ${status}`)
        .join(', ');
      const cause = state.phase.mode === 'cancelling' ? ` for ${state.phase.cause}` : '';
      return `${state.batchId} ${state.phase.mode}${cause}: ${calls}`;
    }
    case 'PostToolsHook':
      return `${state.hookId} ${state.phase}, tree ${state.tree}${(state.prepared ?? []).map(({ kind }) => `, prepared ${kind}`).join('')}`;
    case 'Compacting':
      return `${state.compactionId} ${state.mode.kind}, ${state.length} messages`;
    default:
      return '';
  }
};

/** What a session holds beside its conversation, each in words; empty where there is nothing to say. */
const holdings = (session: SessionData): Readonly<Record<string, string>> => {
  const { usage, settings, grants, notes, epoch, queue } = session;
  const tokens = usage.inputTokens + usage.outputTokens;
  const { usd, rounds, timeMs, truncation } = settings.limits;
  return {
    queue: queue
      .map(({ inputId, mode, text }) => `${inputId} ${mode} ${JSON.stringify(text)}`)
      .join(', '),
    reserved: reservedUsd(session) === 0 ? '' : `$${reservedUsd(session).toFixed(2)}`,
    spent: `$${usage.costUsd.toFixed(2)}, ${tokens} tokens${usage.unpriced > 0 ? `, ${usage.unpriced} unpriced` : ''}`,
    grants: grants.map((grant) => `${grant.tool} ${grant.scope}`).join(', '),
    notes: notes.map(quoted).join(', '),
    limits: `$${usd}, ${settings.limits.tokens} tokens, ${timeMs} ms, ${rounds} rounds, ${truncation} cut replies`,
    settings: JSON.stringify({ ...settings, limits: null }),
    epoch: String(epoch),
  };
};

/** `CallingLlm req-2 toolResults, attempt 1 · spent: $0.01, 110 tokens`: the state, what changed in the session, what still waits. */
export const stateLine = (before: State, after: State): string => {
  const old = holdings(before.session);
  const now = holdings(after.session);
  const changed = Object.entries(now)
    .filter(([name, words]) => words !== old[name])
    .map(([name, words]) =>
      name === 'settings' ? ' · new settings' : ` · ${name}: ${words || 'none'}`,
    );
  const { queue } = now;
  const { queue: earlier } = old;
  const waits = queue !== '' && queue === earlier ? ` · ${after.session.queue.length} queued` : '';
  return `${`${after.name} ${detail(after)}`.trim()}${changed.join('')}${waits}`;
};

const partWords = (part: Message['parts'][number]): string => {
  switch (part.type) {
    case 'text':
      return `${'origin' in part && part.origin !== 'user' ? `${part.origin} ` : ''}${JSON.stringify(part.text)}`;
    case 'reasoning':
      return `thought ${JSON.stringify(part.text)}`;
    case 'call':
      return `${part.tool}(${part.callId})`;
    case 'result':
      return `${part.callId} ${part.failed ? 'failed' : 'ok'} ${JSON.stringify(part.text)}`;
    default:
      return part satisfies never;
  }
};

/** A line per message. */
export const talkLines = (state: State): readonly string[] =>
  messagesOf(state.session.conversation).map((message) => {
    const cut = message.role === 'assistant' && message.cut ? ' (cut)' : '';
    return `${message.role}${cut}: ${message.parts.map(partWords).join(' | ')}`;
  });
