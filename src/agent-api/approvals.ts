import type { ApprovalAnswer, ApprovalScope } from '../agent/event.js';
import type { JsonObject } from '../agent/message.js';
import type { Input, Stepped, Watcher } from '../needs.js';
import { attempt, attemptNow } from '../runtime/wall.js';

/** What is asked before a call runs that policy neither allows nor denies. */
export type ApprovalQuestion = {
  readonly tool: string;
  readonly input: JsonObject;
  /** Absolute paths that the call touches, and the words of a command. */
  readonly paths: readonly string[];
  readonly argv: readonly string[];
  /** Which rule asks, in words. */
  readonly why: string;
};

/** `allow`: this once; `always`: every call of the tool in this session; or a denial with a reason that the model reads. */
export type ApprovalReply = 'allow' | 'always' | { readonly deny: string };

/**
 * Answers for the user. One that throws denies the call. One that never answers leaves the turn waiting until it is
 * cancelled; `signal` is aborted as soon as the answer is no longer wanted.
 */
export type OnApproval = (
  question: ApprovalQuestion,
  signal: AbortSignal,
) => ApprovalReply | Promise<ApprovalReply>;

type Answer = { readonly answer: ApprovalAnswer; readonly scope: ApprovalScope };

const answerOf = (reply: ApprovalReply): Answer => {
  if (typeof reply === 'object') return { answer: { kind: 'deny', reason: reply.deny }, scope: 'once' };
  return { answer: { kind: 'allow' }, scope: reply === 'always' ? 'session' : 'once' };
};

const FAILED: Answer = {
  answer: { kind: 'deny', reason: 'nobody could be asked: the program that answers for the user failed' },
  scope: 'once',
};

type Asking = Extract<Stepped['actions'][number], { type: 'RequestApproval' }>;

export type Answering = {
  readonly onApproval: OnApproval;
  send(input: Input): Promise<unknown>;
  /** Told when the callback threw. */
  report(fault: Error): void;
};

/** Watches a session, asks for each approval that it requests, and sends the answer. */
export const createApprovals = ({ onApproval, send, report }: Answering): Watcher => {
  const open = new Map<string, AbortController>();
  const ask = async ({ batchId, call }: Asking, why: string): Promise<void> => {
    const { callId, tool, input, facts } = call;
    const asked = new AbortController();
    open.set(callId, asked);
    const question = { tool, input, paths: facts.paths, argv: facts.argv, why };
    const replied = await attempt(async () => onApproval(question, asked.signal));
    open.delete(callId);
    if (asked.signal.aborted) return;
    if (replied.kind === 'fault') report(replied.fault);
    const answer = replied.kind === 'done' ? answerOf(replied.value) : FAILED;
    // refused where the session has ended meanwhile: then nobody waits for the answer
    await attempt(() => send({ type: 'ApprovalAnswered', batchId, callId, ...answer }));
  };
  const withdraw = (callId: string): void => {
    open.get(callId)?.abort();
    open.delete(callId);
  };
  return ({ actions, state }) => {
    for (const action of actions) {
      if (action.type === 'WithdrawApproval') withdraw(action.callId);
      if (action.type === 'RequestApproval') void ask(action, action.why);
    }
    if (state.name !== 'ExecutingTools') for (const callId of open.keys()) withdraw(callId);
  };
};

/** Both watch. If `second` throws, that is reported and only `second` is not called again. */
export const together = (first: Watcher, second: Watcher, report: (fault: Error) => void): Watcher => {
  let isDeaf = false;
  return (stepped) => {
    first(stepped);
    if (isDeaf) return;
    const watched = attemptNow(() => second(stepped));
    if (watched.kind === 'done') return;
    isDeaf = true;
    report(watched.fault);
  };
};
