/**
 * Runs the user's hooks of one session.
 *
 * 1. What they say becomes part of an event before anything follows from it, so a replay never runs
 *    them.
 * 2. Hooks that belong to a request, a call or a compaction end with it.
 * 3. What they say contains no secrets.
 * 4. Hooks at the end of the session run after all its other work has stopped.
 *
 * "User hooks" run at moments that HOOK_MOMENTS of ports/hooks.ts lists. after-tool-hooks.ts
 * beside this file performs the other kind: our formatters and commits after a batch of tools. The
 * facts are what a hook reads; a verdict is its answer: a decision, a reason, a note for the model.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { Action } from '../machine/action.js';
import type { CallOutcome } from '../machine/call.js';
import { messagesOf } from '../machine/conversation.js';
import type { SessionData, State } from '../machine/state.js';
import {
  type HookVerdicts,
  type JudgedCall,
  type ReportedMoment,
  verdictReason,
} from '../policy/judged-call.js';
import type { HookMoment, UserHooks } from '../ports/hooks.js';
import type { Redactor } from '../secrets/redactor.js';
import type { Post } from './loop.js';

type Compaction = Extract<Action, { readonly type: 'StartCompaction' }>;

/** What the session tells at its start. */
export type SessionBegin = 'startup' | 'resume';

const NONE: HookVerdicts = [];

/** The first hook that denies, with its reason; null if none does. */
export const findDenial = (verdicts: HookVerdicts): string | null => {
  const denied = verdicts.find(({ decision }) => decision === 'deny');
  return denied === undefined ? null : `the hook ${denied.hook}: ${verdictReason(denied)}`;
};

export class UserHookRuns {
  readonly #hooks: UserHooks;
  readonly #redactor: Redactor;
  readonly #post: Post;
  /** Abort the hooks of a request or compaction, by its id. */
  readonly #running = new Map<string, AbortController>();
  /** Aborted requests and compactions, whose other hooks do not begin. Ids are not used again. */
  readonly #aborted = new Set<string>();
  readonly #unfinished = new Set<Promise<unknown>>();
  /** Aborted when the session begins to end. */
  readonly #closing = new AbortController();
  /** Aborted when all other work has stopped. */
  readonly #over = new AbortController();
  /** The hooks of the session's start; null once they are reported. */
  #starting: Promise<HookVerdicts> | null = null;
  /** The last batch whose hooks ran, by its number. */
  #batch: number;

  /** `batch`: the number of the last batch whose hooks may have run. */
  constructor(hooks: UserHooks, redactor: Redactor, post: Post, batch: number) {
    this.#hooks = hooks;
    this.#redactor = redactor;
    this.#post = post;
    this.#batch = batch;
  }

  /**
   * Runs the hooks of the start. If the first request comes before they end, it waits for them and
   * reports what they say. Otherwise this is reported here.
   */
  async begin(source: SessionBegin, model: string): Promise<void> {
    if (!this.#hooks.wants('session-start')) return;
    const starting = this.#run('session-start', { source, model }, this.#closing.signal);
    this.#starting = starting;
    const verdicts = await starting;
    if (this.#starting !== starting) return; // the first request has reported them
    this.#starting = null;
    this.#tell('session-start', null, verdicts);
  }

  /** The call with the answers of its hooks. */
  async beforeTool(requestId: string, call: JudgedCall): Promise<JudgedCall> {
    if (call.verdict.kind !== 'ok' || !this.#hooks.wants('before-tool', call.tool)) return call;
    const verdicts = await this.#runFor(requestId, 'before-tool', callFacts(call));
    return verdicts.length === 0 ? call : { ...call, hooks: verdicts };
  }

  /** The outcome with the answers of its hooks. `signals`: each of them ends the hooks. */
  async afterTool(
    call: JudgedCall,
    outcome: CallOutcome,
    signals: readonly AbortSignal[],
  ): Promise<CallOutcome> {
    if (outcome.status === 'cancelled' || !this.#hooks.wants('after-tool', call.tool))
      return outcome;
    const facts = outcomeFacts(call, outcome);
    const verdicts = await this.#run('after-tool', facts, AbortSignal.any([...signals]));
    return verdicts.length === 0 ? outcome : { ...outcome, hooks: verdicts };
  }

  /** What hooks say about the end of a turn with this answer. */
  turnEnd(requestId: string, { session }: State, text: string): Promise<HookVerdicts> {
    return this.#runFor(requestId, 'turn-end', turnEndFacts(session, text));
  }

  /** The state with the notes of hooks, and why the request is held back, or null. */
  async beforeRequest(
    requestId: string,
    before: State,
  ): Promise<{ readonly state: State; readonly heldBackBy: string | null }> {
    let state = before;
    const reportAndWait = async (moment: ReportedMoment, verdicts: HookVerdicts): Promise<void> => {
      if (verdicts.length > 0) state = (await this.#report(moment, requestId, verdicts)) ?? state;
    };
    if (this.#starting !== null) {
      const starting = this.#starting;
      this.#starting = null;
      await reportAndWait('session-start', await starting);
    }
    const { batch } = before.session.counters;
    if (batch > this.#batch) {
      this.#batch = batch;
      await reportAndWait(
        'after-batch',
        await this.#runFor(requestId, 'after-batch', batchFacts(before.session)),
      );
    }
    const verdicts = await this.#runFor(
      requestId,
      'before-request',
      requestFacts(state, requestId),
    );
    await reportAndWait('before-request', verdicts);
    return { state, heldBackBy: findDenial(verdicts) };
  }

  beforeCompaction(state: State, task: Compaction): Promise<HookVerdicts> {
    return this.#runFor(task.compactionId, 'before-compaction', compactionFacts(state, task));
  }

  /** The user is asked for something. The session does not wait for these hooks. */
  async asked(action: Action, state: State): Promise<void> {
    const facts = this.#hooks.wants('ask-user') ? questionFacts(action, state) : null;
    if (facts === null) return;
    const verdicts = await this.#run('ask-user', facts, this.#over.signal);
    // A hook that only allows has nothing to report.
    const remarks = verdicts.filter(
      ({ note, fault, decision }) =>
        note !== undefined || fault !== undefined || decision !== 'allow',
    );
    if (remarks.length > 0) this.#tell('ask-user', null, remarks);
  }

  /** Ends the hooks of a request or a compaction. */
  abort(id: string): void {
    this.#aborted.add(id);
    this.#running.get(id)?.abort();
  }

  /** Ends all hooks but `ask-user` and `after-tool`. Resolves when these have ended, too. */
  async stopAll(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#unfinished);
  }

  /** Ends the hooks that still run, then runs those of the end. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#unfinished);
    const verdicts = await this.#run('session-end', {}, new AbortController().signal);
    if (verdicts.length > 0) this.#tell('session-end', null, verdicts);
  }

  /** Runs the hooks of a request or compaction; of one id one moment at a time. */
  #runFor(id: string, moment: HookMoment, facts: JsonObject): Promise<HookVerdicts> {
    if (!this.#hooks.wants(moment) || this.#aborted.has(id)) return Promise.resolve(NONE);
    const abortion = this.#running.get(id) ?? new AbortController();
    this.#running.set(id, abortion);
    const signal = AbortSignal.any([abortion.signal, this.#closing.signal]);
    return this.#run(moment, facts, signal).finally(() => {
      if (this.#running.get(id) === abortion) this.#running.delete(id);
    });
  }

  /** Runs the hooks of a moment. What they say is passed on without secrets. */
  async #run(moment: HookMoment, facts: JsonObject, signal: AbortSignal): Promise<HookVerdicts> {
    const running = this.#hooks.run(moment, facts, signal);
    this.#unfinished.add(running);
    const verdicts = await running.finally(() => this.#unfinished.delete(running));
    if (this.#redactor.isIdle) return verdicts;
    const clean = (text: string): string => this.#redactor.clean(text);
    return verdicts.map(({ hook, decision, reason, note, fault }) => ({
      hook,
      decision,
      ...(reason === undefined ? {} : { reason: clean(reason) }),
      ...(note === undefined ? {} : { note: clean(note) }),
      ...(fault === undefined ? {} : { fault: clean(fault) }),
    }));
  }

  /** Reports what hooks say, without waiting for it to be journaled. */
  #tell(moment: ReportedMoment, requestId: string | null, verdicts: HookVerdicts): void {
    if (verdicts.length > 0) this.#post({ type: 'UserHooksRan', moment, requestId, verdicts });
  }

  /** Resolves with the state that has the report, or null if the session ends before. */
  #report(
    moment: ReportedMoment,
    requestId: string,
    verdicts: HookVerdicts,
  ): Promise<State | null> {
    return new Promise((resolve) => {
      const { signal } = this.#closing;
      const giveUp = (): void => resolve(null);
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      this.#post({ type: 'UserHooksRan', moment, requestId, verdicts }, (_accepted, state) => {
        signal.removeEventListener('abort', giveUp);
        resolve(state);
      });
    });
  }
}

// ---- What hooks read at each moment, with the names of fields that other agents use ----

const callFacts = ({ callId, tool, input, traits, facts }: JudgedCall): JsonObject => ({
  tool_name: tool,
  tool_use_id: callId,
  tool_input: input,
  changes_something: traits.mutating,
  paths: [...facts.paths],
  hosts: [...facts.hosts],
});

const outcomeFacts = (call: JudgedCall, { status, text }: CallOutcome): JsonObject => ({
  ...callFacts(call),
  tool_response: { status, text },
});

/** The calls of the last batch with their results. */
const batchFacts = ({ conversation }: SessionData): JsonObject => {
  const messages = messagesOf(conversation);
  const results = messages.at(-1);
  const reply = messages.at(-2);
  const calls =
    reply?.role === 'assistant' ? reply.parts.filter((part) => part.type === 'call') : [];
  const failed = (callId: string): boolean =>
    results?.parts.some(
      (part) => part.type === 'result' && part.callId === callId && part.failed,
    ) === true;
  return {
    tool_calls: calls.map(({ callId, tool, input }) => ({
      tool_name: tool,
      tool_use_id: callId,
      tool_input: input,
      failed: failed(callId),
    })),
  };
};

const requestFacts = (state: State, requestId: string): JsonObject => {
  const { settings, contextTokens, usage } = state.session;
  return {
    request_id: requestId,
    attempt: state.name === 'CallingLlm' ? state.attempt : 1,
    model: settings.model,
    context_tokens: contextTokens,
    cost_usd: usage.costUsd,
  };
};

/** `objections`: how many turns in a row began because a hook objected to the end of the last. */
const turnEndFacts = ({ turn: { objections } }: SessionData, text: string): JsonObject => ({
  last_assistant_message: text,
  stop_hook_active: objections > 0,
  objections,
});

const compactionFacts = (state: State, { length, instructions }: Compaction): JsonObject => {
  // After a compaction that the user asked for, the session rests.
  const isAsked =
    state.name === 'Compacting' && state.mode.kind === 'idle' && state.mode.resume === 'rest';
  return {
    trigger: isAsked ? 'manual' : 'auto',
    messages: length,
    ...(instructions === undefined ? {} : { custom_instructions: instructions }),
  };
};

/**
 * What the user is asked; null if there is no question. A session that has just been opened says so
 * itself.
 */
const questionFacts = (action: Action, state: State): JsonObject | null => {
  if (action.type === 'RequestApproval')
    return { ...callFacts(action.call), notification_type: 'approval', message: action.why };
  if (action.type !== 'PromptForInput' || state.name !== 'WaitingForUserInput') return null;
  const { reason } = state;
  if (reason.kind === 'start' || reason.kind === 'resumed') return null;
  const message = 'cause' in reason ? `${reason.kind}: ${reason.cause}` : reason.kind;
  return { notification_type: 'waiting', message };
};
