/**
 * Watchers of a session. `createApprovals` answers the machine's questions about calls by a
 * function of a library user (`onApproval`); `endUnapproved` ends the turn where there is no user.
 * Terminals and editors ask by themselves.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { ApprovalAnswer } from '../machine/event.js';
import { attempt, attemptNow } from '../platform/attempt.js';
import {
  type ApprovalDescription,
  type ApprovalRequest,
  describeQuestion,
} from '../policy/approval-question.js';
import type { ApprovalScope } from '../policy/rules.js';
import type { Input, Watcher } from '../ports/session.js';

/** The question to the user about a call that policy neither allows nor denies. */
export type ApprovalQuestion = ApprovalDescription & {
  /** The calls of one reply of the model. Their ids are unique in it, but not in the session. */
  readonly batchId: string;
  readonly callId: string;
  readonly input: JsonObject;
  /** The command's program and arguments; empty for other tools. */
  readonly argv: readonly string[];
};

/**
 * The user's answer. `allow`: this once; `alwaysThis`: this exact call; `alwaysPrefix`: commands
 * with the prefix that `choices` names; `always`: every call of the tool in this session (all tools
 * that change files count as one); `deny`: refused, with a reason for the model; `reply`: the
 * words for a question (`subject.kind` is `question`). An answer that is not among the question's
 * `choices` holds once.
 */
export type ApprovalReply =
  | 'allow'
  | 'alwaysThis'
  | 'alwaysPrefix'
  | 'always'
  | { readonly deny: string }
  | { readonly reply: string };

/**
 * Callback that answers for the user. If it throws, the call is denied. If it never answers, the
 * turn waits until it is cancelled. `signal` is aborted as soon as the answer is no longer needed.
 */
export type OnApproval = (
  question: ApprovalQuestion,
  signal: AbortSignal,
) => ApprovalReply | Promise<ApprovalReply>;

type Answering = {
  readonly onApproval: OnApproval;
  send(input: Input): Promise<unknown>;
  /** Called with the error if the callback throws. */
  report(fault: Error): void;
};

/** Watches a session, asks for each approval that it requests, and sends the answer. */
export const createApprovals = ({ onApproval, send, report }: Answering): Watcher => {
  /** By call id: only one batch is open at a time. */
  const open = new Map<string, AbortController>();
  const ask = async (asking: ApprovalRequest, workspace: string): Promise<void> => {
    const { batchId, call } = asking;
    const { callId, input, facts } = call;
    const { argv } = facts;
    const abortion = new AbortController();
    open.set(callId, abortion);
    const replied = await attempt(async () => {
      const question = { ...describeQuestion(asking, workspace), batchId, callId, input, argv };
      const answer = parseReply(await onApproval(question, abortion.signal));
      if (answer === null)
        throw new TypeError(
          "onApproval gave no answer: it answers 'allow', 'alwaysThis', …, " +
            "{ reply: 'words' } or { deny: 'why' }",
        );
      return answer;
    });
    if (abortion.signal.aborted) return; // a later question may have the id by now
    open.delete(callId);
    if (replied.kind === 'fault') report(replied.fault);
    const answer = replied.kind === 'done' ? replied.value : FAILED;
    // `send` rejects if the session has ended meanwhile; then the answer is not needed
    await attempt(() => send({ type: 'ApprovalAnswered', batchId, callId, ...answer }));
  };
  const withdraw = (callId: string): void => {
    open.get(callId)?.abort();
    open.delete(callId);
  };
  return ({ actions, state }) => {
    for (const action of actions) {
      if (action.type === 'WithdrawApproval') withdraw(action.callId);
      if (action.type === 'RequestApproval') void ask(action, state.session.settings.workspace);
    }
    // No call waits any more.
    if (state.name !== 'ExecutingTools') for (const callId of open.keys()) withdraw(callId);
  };
};

/** A call that needed an approval, without a user to ask. */
export type UnapprovedCall = {
  readonly tool: string;
  readonly why: string;
  /** The hosts that it would reach. */
  readonly hosts: readonly string[];
};

/**
 * Watches a session without a user to ask: the first question ends its turn. `calls` gets the calls
 * that needed an answer.
 */
export const endUnapproved =
  (calls: UnapprovedCall[], send: Answering['send']): Watcher =>
  ({ actions }) => {
    const asked = actions.filter((action) => action.type === 'RequestApproval');
    for (const { call, why } of asked)
      calls.push({ tool: call.tool, why, hosts: call.facts.hosts });
    // `send` rejects if the session has ended meanwhile; then the answer is not needed
    if (asked.length > 0) void attempt(() => send({ type: 'CancelTurn' }));
  };

type Answer = { readonly answer: ApprovalAnswer; readonly scope: ApprovalScope };

/** How far each yes holds. `shape`: for this exact call. */
const SCOPES: Readonly<Record<Extract<ApprovalReply, string>, ApprovalScope>> = {
  allow: 'once',
  alwaysThis: 'shape',
  alwaysPrefix: 'prefix',
  always: 'session',
};

/** null if the callback returned something that is not an ApprovalReply. */
const parseReply = (reply: unknown): Answer | null => {
  if (typeof reply === 'string' && Object.hasOwn(SCOPES, reply))
    // it is one of them
    return { answer: { kind: 'allow' }, scope: SCOPES[reply as keyof typeof SCOPES] };
  if (typeof reply !== 'object' || reply === null) return null;
  if ('reply' in reply && typeof reply.reply === 'string')
    return { answer: { kind: 'reply', text: reply.reply }, scope: 'once' };
  return 'deny' in reply && typeof reply.deny === 'string'
    ? { answer: { kind: 'deny', reason: reply.deny }, scope: 'once' }
    : null;
};

const FAILED: Answer = {
  answer: {
    kind: 'deny',
    reason: 'nobody could be asked: the program that answers for the user failed',
  },
  scope: 'once',
};

/**
 * Combines two watchers. If `second` throws, or returns a promise that rejects, the error is
 * reported and only `first` is called from then on.
 */
export const combineWatchers = (
  first: Watcher,
  second: Watcher,
  report: (fault: Error) => void,
): Watcher => {
  let hasFailed = false;
  return (stepped) => {
    first(stepped);
    if (hasFailed) return;
    const drop = (fault: Error): void => {
      if (!hasFailed) report(fault);
      hasFailed = true;
    };
    const watched = attemptNow<unknown>(() => second(stepped));
    if (watched.kind === 'fault') drop(watched.fault);
    else if (typeof watched.value === 'object')
      void attempt(() => watched.value).then((waited) => {
        if (waited.kind === 'fault') drop(waited.fault);
      });
  };
};
