import assert from 'node:assert/strict';
import type { Action } from '../../../packages/agent/src/machine/action.js';
import { type Conversation, messagesOf } from '../../../packages/agent/src/machine/conversation.js';
import type {
  AssistantPart,
  Message,
  UserMessage,
} from '../../../packages/agent/src/machine/message.js';
import type { State, WaitReason } from '../../../packages/agent/src/machine/state.js';
import type { Edge } from '../../../packages/machine/src/kernel/table.js';
import { NOW } from './given.js';

// ---- States by their short names ----

const reasonOf = (reason: WaitReason): string => {
  switch (reason.kind) {
    case 'endOfTurn':
    case 'cancelled':
      return `${reason.kind} ${reason.cause}`;
    case 'budget':
      return `${reason.kind} ${reason.dimension}`;
    case 'error':
      return `${reason.kind} ${reason.error}`;
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return reason.kind;
    default:
      return reason satisfies never;
  }
};

const HOOK_LETTERS = {
  CheckingGitCommits: 'c',
  RunningAutoformatters: 'f',
  AutoCommitting: 'a',
} as const;
const COMPACTION_LETTERS = { idle: 'i', mid: 'm', overflow: 'o' } as const;

/** The short name of a state: W(cancelled user), C[t] 2 draining, X cancelling, H[f], K[m]. */
export const nameOf = (state: State): string => {
  switch (state.name) {
    case 'WaitingForUserInput':
      return `W(${reasonOf(state.reason)})`;
    case 'CallingLlm': {
      const attempt = state.attempt === 1 ? '' : ` ${state.attempt}`;
      return `C[${state.purpose === 'user' ? 'u' : 't'}]${attempt}${state.call.mode === 'open' ? '' : ' draining'}`;
    }
    case 'Error':
      return 'Er';
    case 'ExecutingTools':
      return state.phase.mode === 'running' ? 'X' : `X ${state.phase.mode}`;
    case 'PostToolsHook':
      return `H[${HOOK_LETTERS[state.phase]}]`;
    case 'Compacting':
      return `K[${COMPACTION_LETTERS[state.mode.kind]}]`;
    case 'ShuttingDown':
      return 'Z';
    default:
      return state.name;
  }
};

/** `1 starting, 2 queued` */
export const callsOf = (state: State): string =>
  state.name === 'ExecutingTools'
    ? state.calls.map((call) => `${call.judged.callId} ${call.status}`).join(', ')
    : 'no calls';

const SHORT: Readonly<Record<string, string>> = {
  WaitingForUserInput: 'W',
  CallingLlm: 'C',
  Error: 'Er',
  ExecutingTools: 'X',
  PostToolsHook: 'H',
  Compacting: 'K',
  ShuttingDown: 'Z',
  GatheringAdditionalMessages: 'Gathering',
  ProcessingLlmResponse: 'Processing',
};

/** The states a step went through, repetitions joined: `C Processing EndOfTurn W`. */
export const pathOf = (path: readonly Edge[]): string => {
  const names = path.flatMap((edge) => [edge.from, edge.to]).map((name) => SHORT[name] ?? name);
  return names.filter((name, index) => name !== names[index - 1]).join(' ');
};

// ---- Actions ----

/** An action in a line. Times are relative to NOW. */
export const lineOf = (action: Action): string => {
  switch (action.type) {
    case 'ExecuteTools':
      return `ExecuteTools ${action.calls.map((call) => call.callId).join(',')}`;
    case 'CancelTools':
      return `CancelTools ${action.callIds.join(',')}${action.force ? ' force' : ''}`;
    case 'ScheduleTimer':
      return `ScheduleTimer ${action.dueAt - NOW}`;
    case 'RunHook':
      return [
        `RunHook ${action.phase} ${action.callIds.join(',')}`,
        ...(action.interrupted === undefined
          ? []
          : ['after', ...action.interrupted.map(({ kind }) => kind)]),
      ].join(' ');
    case 'RequestApproval':
      return `RequestApproval ${action.call.callId}`;
    case 'WithdrawApproval':
      return `WithdrawApproval ${action.callId}`;
    case 'RestoreQueue':
      return `RestoreQueue ${action.texts.join('|')}`;
    case 'DisplayText':
    case 'DisplayError':
      return `${action.type} ${action.text}`;
    case 'DisplayNotice':
    case 'DisplayWarning':
      return `${action.type} ${action.kind}: ${action.text}`;
    case 'DisplayToolResult':
      return `DisplayToolResult ${action.callId} ${action.status}: ${action.text}`;
    default:
      return action.type;
  }
};

export const isShown = (action: Action): boolean =>
  action.type.startsWith('Display') || action.type === 'PromptForInput';

// ---- Conversations ----

/** A string is meant word by word, an expression as key words. */
type Text = string | RegExp;
type ExpectedPart =
  | { readonly type: 'text'; readonly origin: string; readonly text: Text }
  | { readonly type: 'reasoning'; readonly text: Text }
  | { readonly type: 'call'; readonly callId: string }
  | {
      readonly type: 'result';
      readonly callId: string;
      readonly failed: boolean;
      readonly text: Text;
    };
export type Expected = { readonly role: Message['role']; readonly parts: readonly ExpectedPart[] };
type Loose = Text | ExpectedPart;

const isText = (part: Loose): part is Text => typeof part === 'string' || part instanceof RegExp;
const messageOf =
  (role: Message['role'], origin: string) =>
  (...parts: readonly Loose[]): Expected => ({
    role,
    parts: parts.map((part) => (isText(part) ? { type: 'text', origin, text: part } : part)),
  });

/** A user message; bare texts are the user's own. */
export const u = messageOf('user', 'user');
/** An assistant message. */
export const a = messageOf('assistant', 'assistant');
export const use = (callId: string): ExpectedPart => ({ type: 'call', callId });
export const think = (text: Text): ExpectedPart => ({ type: 'reasoning', text });
/** A result; without a text the one that `ended` gives. */
export const good = (callId: string, text: Text = `output of ${callId}`): ExpectedPart => ({
  type: 'result',
  callId,
  failed: false,
  text,
});
/** An error result. */
export const bad = (callId: string, text: Text = /./): ExpectedPart => ({
  type: 'result',
  callId,
  failed: true,
  text,
});
export const note = (text: Text): ExpectedPart => ({ type: 'text', origin: 'note', text });
export const summary = (text: Text = /what was said before/): ExpectedPart => ({
  type: 'text',
  origin: 'summary',
  text,
});

const fits = (text: string, expected: Text): boolean =>
  typeof expected === 'string' ? text === expected : expected.test(text);

type Part = UserMessage['parts'][number] | AssistantPart;
const partFits = (part: Part, expected: ExpectedPart): boolean => {
  switch (part.type) {
    case 'call':
      return expected.type === 'call' && part.callId === expected.callId;
    case 'reasoning':
      return expected.type === 'reasoning' && fits(part.text, expected.text);
    case 'result':
      return (
        expected.type === 'result' &&
        part.callId === expected.callId &&
        part.failed === expected.failed &&
        fits(part.text, expected.text)
      );
    case 'text':
      return (
        expected.type === 'text' &&
        expected.origin === ('origin' in part ? part.origin : 'assistant') &&
        fits(part.text, expected.text)
      );
    default:
      return part satisfies never;
  }
};

const plain = (expected: unknown): string =>
  JSON.stringify(
    expected,
    (_, value: unknown) => (value instanceof RegExp ? String(value) : value),
    1,
  );

/** The conversation holds exactly these messages. */
export const assertTalk = (conversation: Conversation, expected: readonly Expected[]): void => {
  const messages = messagesOf(conversation);
  const same =
    messages.length === expected.length &&
    messages.every((message, index) => {
      const other = expected[index];
      if (other === undefined || other.role !== message.role) return false;
      if (other.parts.length !== message.parts.length) return false;
      return message.parts.every((part, place) => {
        const wanted = other.parts[place];
        return wanted !== undefined && partFits(part, wanted);
      });
    });
  if (!same)
    assert.fail(`the conversation is\n${plain(messages)}\nbut should be\n${plain(expected)}`);
};
