/**
 * A session as a trajectory in ATIF 1.7, the format of Harbor's benchmarks. Pure: everything comes
 * from the steps of the journal.
 *
 * 1. A stored reply of the model, with its calls and their results, is one step of source `agent`.
 *    The failed requests before it are counted with it. A turn that ends without a reply has a step
 *    with an empty message.
 * 2. A result belongs to the step of its call, however late it came.
 * 3. A compaction is a step of source `system` with the summary; the messages that stand behind the
 *    summary follow as copied context.
 * 4. A rewind is a step of source `system`; messages that come back with it follow as copied
 *    context. The steps that were taken back stay: they were paid for.
 * 5. Usage counts where the machine counted it. The metrics of the steps, and the usage under
 *    `extra` of compactions, calls and hooks, add up to the final metrics.
 * 6. A cost that is not known is left out.
 * 7. A message, or a part of one, is new if its object was not seen before: the machine keeps the
 *    objects from state to state. Only a rewind and an upgrade of the machine bring others, which
 *    are copied context.
 *
 * From top to bottom: the types of the format; `createTrajectory`; and `TrajectoryBuilder`, which
 * collects drafts of the steps from the journal (`addStep`), and then writes them (`finish`).
 */

import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Action } from '@pawl/agent/machine/action';
import { messagesOf, openParts } from '@pawl/agent/machine/conversation';
import type { ChangeSummary, Event, RewoundConversation } from '@pawl/agent/machine/event';
import type {
  AssistantMessage,
  CallPart,
  Image,
  Message,
  ResultPart,
  UserMessage,
  UserText,
} from '@pawl/agent/machine/message';
import { spendingId } from '@pawl/agent/machine/moves/request';
import { sumUsage, type Usage } from '@pawl/agent/machine/settings';
import type { State, WaitReason } from '@pawl/agent/machine/state';
import type { Header } from '@pawl/agent/ports/journal';
import type { ToolDeclaration } from '@pawl/agent/ports/model';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import { usageReports } from './figures/collect-figures.js';
import { promptTokens } from './figures/session-figures.js';

const SCHEMA_VERSION = 'ATIF-v1.7';

// ---- The format ----

export type TrajectoryContentPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image';
      readonly source: { readonly media_type: Image['mediaType']; readonly path: string };
    };
type Content = string | readonly TrajectoryContentPart[];

export type TrajectoryMetrics = {
  /** With the tokens that the cache read and wrote. */
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly cost_usd?: number;
  readonly extra?: JsonObject;
};

export type TrajectoryResult = {
  readonly source_call_id: string;
  readonly content?: Content;
  readonly subagent_trajectory_ref?: readonly {
    readonly trajectory_id: string;
    readonly session_id: string;
  }[];
  readonly extra?: JsonObject;
};

export type TrajectoryStep = {
  readonly step_id: number;
  readonly timestamp: string;
  readonly source: 'system' | 'user' | 'agent';
  readonly message: Content;
  readonly model_name?: string;
  readonly reasoning_effort?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly tool_call_id: string;
    readonly function_name: string;
    readonly arguments: JsonObject;
    readonly extra?: JsonObject;
  }[];
  readonly observation?: { readonly results: readonly TrajectoryResult[] };
  readonly metrics?: TrajectoryMetrics;
  readonly is_copied_context?: true;
  readonly llm_call_count?: number;
  readonly extra?: JsonObject;
};

export type Trajectory = {
  readonly schema_version: typeof SCHEMA_VERSION;
  readonly session_id: string;
  readonly trajectory_id: string;
  readonly agent: {
    readonly name: 'pawl';
    readonly version: string;
    readonly model_name: string;
    readonly tool_definitions?: readonly JsonObject[];
  };
  readonly steps: readonly TrajectoryStep[];
  readonly final_metrics: {
    readonly total_prompt_tokens: number;
    readonly total_completion_tokens: number;
    readonly total_cached_tokens: number;
    readonly total_cost_usd?: number;
    readonly total_steps: number;
    readonly extra?: JsonObject;
  };
  readonly subagent_trajectories?: readonly Trajectory[];
  readonly extra: JsonObject;
};

// ---- The source ----

/**
 * A call of the tool `task`, which may have started a session of its own. `seq`: the entry with
 * which its batch began.
 */
export type TaskCall = {
  readonly batchId: string;
  readonly callId: string;
  readonly seq: number;
};

export type TrajectorySource = {
  readonly header: Header;
  readonly steps: Iterable<JournalStep>;
  /** The version of the program that exports. */
  readonly version: string;
  /** The id of the user's own session, of which this one may be a task. */
  readonly rootId: string;
  /** The system prompt and the tools of the session, as far as their blobs are there. */
  readonly prompt: {
    readonly instructions: string | undefined;
    readonly tools: readonly ToolDeclaration[] | undefined;
  };
  /** The path of a picture in the trajectory; null leaves it out. */
  picturePath(image: Image): string | null;
  /** The session that a call started; null if there is none. */
  findTask(call: TaskCall): Trajectory | null;
};

/** The trajectory of a session. It has no step without a system prompt and requests. */
export const createTrajectory = (source: TrajectorySource): Trajectory => {
  const builder = new TrajectoryBuilder(source);
  for (const step of source.steps) builder.addStep(step);
  return builder.finish();
};

// ---- Drafts ----

/**
 * Usage by the id under which the machine counts it. `placed`: a step shows it. What no step shows
 * goes under `extra` of the session.
 */
type UsageRecord = { readonly id: string; usage: Usage | null; placed: boolean };

/** A request to the model, and the requests that repeated it under the same id after a crash. */
type Attempt = {
  readonly record: UsageRecord;
  readonly sentAt: number;
  /** How often it was to be sent. What a policy of the user stopped before is not counted. */
  sent: number;
  /** Why it has no usable reply; null while that is not known. */
  failure: JsonObject | null;
};

/** The result of a call. `content`: null while it has none. */
type ResultDraft = { content: Content | null; readonly extra: Record<string, Json> };

/** A step to be written. Results and usage may come later. */
type StepDraft = {
  readonly source: TrajectoryStep['source'];
  readonly at: number;
  readonly message: Content;
  /** Whether it stands for a message that an earlier step had already. */
  readonly copied: boolean;
  readonly model: string | null;
  readonly effort: string | null;
  readonly reasoning: string;
  readonly calls: readonly CallPart[];
  readonly results: Map<string, ResultDraft>;
  readonly attempts: readonly Attempt[];
  readonly extra: Record<string, Json>;
  /** Usage of a compaction, which goes under `extra`. */
  readonly spending: UsageRecord | null;
  /** The batch of its calls, and the entry with which it began; null before. */
  batch: { readonly id: string; readonly seq: number } | null;
};

/** See the rules at the head of this file. */
class TrajectoryBuilder {
  readonly #source: TrajectorySource;
  readonly #steps: StepDraft[] = [];
  readonly #records = new Map<string, UsageRecord>();
  /** One for each time that the session was opened again. */
  readonly #resumes: JsonObject[] = [];
  /** A process has opened this fork: the entries that were copied from its parent are over. */
  #isForkOpened = false;
  /** Parts of messages, and replies, that a step holds already. */
  readonly #seen = new WeakSet<object>();
  /** Requests since the last reply. */
  #pending: Attempt[] = [];
  /** The state after the last step. */
  #last: State | null = null;
  #entries = 0;

  constructor(source: TrajectorySource) {
    this.#source = source;
    const { instructions } = source.prompt;
    if (instructions !== undefined)
      this.#steps.push(plainStep('system', source.header.createdAt, instructions));
  }

  /**
   * Adds a step of the journal; call it for all, from the first on. A reply comes before the
   * requests of the same step, which belong to the next one, and before results of its calls.
   */
  addStep(step: JournalStep): void {
    const { event, before, state } = step;
    this.#countUsage(step);
    // A policy that stops too late changes nothing: the request was sent.
    if (event.type !== 'PolicyStopped' || step.diagnostics.length === 0) this.#endRequest(event);
    this.#endCompaction(step);
    if (event.type === 'RewindRequested' || event.type === 'Rewound') this.#rewind(step);
    else this.#addReply(step);
    for (const action of step.actions) this.#readAction(action, step);
    if (state.name === 'ExecutingTools') this.#noteBatch(state.batchId, step.seq);
    // The open message takes results of tools and texts of the user, until it is sent.
    this.#addResults(openParts(state.session.conversation));
    if (event.type === 'Resumed') this.#resume(step, event);
    if (state.name === 'WaitingForUserInput' && before.name !== 'WaitingForUserInput')
      this.#endTurn(state.reason, event.at);
    this.#last = state;
    this.#entries = step.seq;
  }

  #record(id: string): UsageRecord {
    const record = this.#records.get(id) ?? { id, usage: null, placed: false };
    this.#records.set(id, record);
    return record;
  }

  /** The machine counts usage once per id: then it leaves the list of ids without usage. */
  #countUsage({ event, before, state }: JournalStep): void {
    for (const { id, usage } of usageReports(event)) {
      const open = before.session.unaccounted.includes(id);
      if (!open || state.session.unaccounted.includes(id)) continue;
      const record = this.#record(id);
      record.usage = sumUsage(record.usage, usage);
    }
  }

  /** Notes why a request has no usable reply. A reply that is stored takes the note back. */
  #endRequest(event: Event): void {
    if (!('requestId' in event)) return;
    const attempt = this.#pending.find(({ record }) => record.id === event.requestId);
    if (attempt === undefined) return;
    if (event.type === 'LlmFailed')
      attempt.failure = { kind: event.error.kind, message: event.error.message };
    if (event.type === 'LlmCompleted')
      attempt.failure = { kind: 'unusable', message: `stop reason ${event.stopReason}` };
    if (event.type !== 'PolicyStopped') return;
    attempt.failure = { kind: 'policy', message: event.why };
    attempt.sent -= 1;
  }

  /** Adds what was sent to the model, and facts about a result that the user was shown. */
  #readAction(action: Action, { event, state, seq }: JournalStep): void {
    if (action.type === 'SendLlmRequest') {
      this.#addTexts(openParts(state.session.conversation), event.at);
      const record = this.#record(action.requestId);
      const again = this.#pending.find((attempt) => attempt.record === record);
      if (again === undefined)
        this.#pending.push({ record, sentAt: event.at, sent: 1, failure: null });
      else again.sent += 1;
    }
    if (action.type !== 'DisplayToolResult') return;
    this.#noteBatch(action.batchId, seq);
    const step = this.#findCall(action.callId, action.batchId);
    if (step === undefined) return;
    const { status, title, diff } = action;
    Object.assign(this.#result(step, action.callId).extra, {
      status,
      ...(title === undefined ? {} : { title }),
      ...(diff === null ? {} : { diff }),
    });
  }

  #result(step: StepDraft, callId: string): ResultDraft {
    const result = step.results.get(callId) ?? { content: null, extra: {} };
    step.results.set(callId, result);
    return result;
  }

  /** The last reply with calls asks for those of the batch, unless it has one already. */
  #noteBatch(id: string, seq: number): void {
    const step = this.#steps.findLast(({ calls, copied }) => calls.length > 0 && !copied);
    if (step !== undefined) step.batch ??= { id, seq };
  }

  /**
   * The step of a call. Of several: that of the batch, or else the last original, or the last copy.
   */
  #findCall(callId: string, batchId?: string): StepDraft | undefined {
    const steps = this.#steps.filter(({ calls }) => calls.some((call) => call.callId === callId));
    const originals = steps.filter(({ copied }) => !copied);
    return (
      originals.findLast(({ batch }) => batch?.id === batchId) ?? originals.at(-1) ?? steps.at(-1)
    );
  }

  /** Text, with pictures if there are some. */
  #content(text: string, images: readonly Image[] = []): Content {
    if (images.length === 0) return text;
    return [
      { type: 'text', text },
      ...images.map((image): TrajectoryContentPart => {
        const path = this.#source.picturePath(image);
        return path === null
          ? { type: 'text', text: `[${image.mediaType} ${image.sha256}: not exported]` }
          : { type: 'image', source: { media_type: image.mediaType, path } };
      }),
    ];
  }

  /** Adds a step for each new text of the user. */
  #addTexts(parts: UserMessage['parts'], at: number): void {
    for (const part of parts) {
      if (part.type !== 'text' || this.#seen.has(part)) continue;
      this.#steps.push(this.#textStep(part, at));
    }
  }

  #textStep(part: UserText, at: number): StepDraft {
    this.#seen.add(part);
    const source = part.origin === 'user' ? 'user' : 'system';
    return plainStep(source, at, this.#content(part.text, part.images));
  }

  /** Puts results into the steps of their calls, or all of them into `copy`. */
  #addResults(parts: UserMessage['parts'], copy?: StepDraft): void {
    for (const part of parts) {
      if (part.type !== 'result' || (copy === undefined && this.#seen.has(part))) continue;
      this.#seen.add(part);
      const step = copy ?? this.#findCall(part.callId);
      if (step !== undefined) this.#fillResult(this.#result(step, part.callId), part);
    }
  }

  #fillResult(result: ResultDraft, { text, images, failed }: ResultPart): void {
    result.content = this.#content(text, images);
    if (failed) result.extra.failed = true;
  }

  /** Adds a step for a reply that the conversation has stored. */
  #addReply({ event, before, state }: JournalStep): void {
    // the step of the resume copies them (7)
    if (event.type === 'Resumed' && event.upgrade?.session !== undefined) return;
    // Closed messages are complete: replies, and what was sent before them.
    const { closed } = state.session.conversation;
    if (closed.length <= before.session.conversation.closed.length) return;
    const reply = closed.at(closed.length - 1); // an AppendList counts from 0 only
    if (reply?.role !== 'assistant' || this.#seen.has(reply)) return;
    const step = this.#replyStep(reply, event.at, this.#takePending());
    const last = step.attempts.at(-1);
    if (event.type === 'LlmCompleted' && last?.record.id === event.requestId) last.failure = null;
    if (event.type === 'LlmCompleted' && !['end', 'toolUse'].includes(event.stopReason))
      step.extra.stop_reason = event.stopReason;
    this.#steps.push(step);
  }

  /** Takes the requests since the last reply, for the step that shows them. */
  #takePending(): readonly Attempt[] {
    const attempts = this.#pending;
    this.#pending = [];
    for (const { record } of attempts) record.placed = true;
    return attempts;
  }

  #replyStep(reply: AssistantMessage, at: number, attempts: readonly Attempt[]): StepDraft {
    this.#seen.add(reply);
    const effort = this.#last?.session.settings.effort ?? 'auto';
    return {
      ...plainStep('agent', at, joinTexts(reply, 'text')),
      model: reply.model,
      effort: effort === 'auto' ? null : effort,
      reasoning: joinTexts(reply, 'reasoning'),
      calls: reply.parts.filter((part) => part.type === 'call'),
      attempts,
      extra: reply.cut ? { cut: true } : {},
    };
  }

  /** Adds a step for a compaction: the messages of the conversation became a summary. */
  #endCompaction({ event, before, state }: JournalStep): void {
    if (event.type !== 'CompactionCompleted' && event.type !== 'CompactionFailed') return;
    if (before.name !== 'Compacting' || before.compactionId !== event.compactionId) return;
    const record = this.#record(event.compactionId);
    record.placed = true;
    const failed = event.type === 'CompactionFailed';
    const message = failed ? `No summary: ${event.message}` : event.summary;
    const compaction = failed ? { failed: true } : { replaced_messages: before.length };
    this.#steps.push({
      ...plainStep('system', event.at, message),
      extra: { compaction },
      spending: record,
    });
    if (!failed) this.#copyContext(messagesOf(state.session.conversation), event.at, 'kept');
  }

  /** Adds a step for a rewind that has ended. */
  #rewind({ event, before, state }: JournalStep): void {
    if (state.name !== 'WaitingForUserInput' || state === before) return;
    // Without files to restore a rewind ends with its request, otherwise with `Rewound`.
    const request =
      event.type === 'RewindRequested' ? event : before.name === 'Rewinding' ? before : null;
    if (request === null) return;
    const { to, conversation } = request;
    const notice = `The user went to entry ${to} of the session`;
    const removed =
      conversation === undefined
        ? 0
        : messagesOf(before.session.conversation).length - conversation.kept;
    const changes = event.type === 'Rewound' ? event.changes : null;
    this.#steps.push({
      ...plainStep('system', event.at, `${notice}: ${rewoundParts(conversation, changes)}.`),
      extra: {
        rewind: {
          to,
          removed_messages: removed,
          ...(changes === null
            ? {}
            : { changed_files: changes.created + changes.changed + changes.deleted }),
        },
      },
    });
    this.#copyContext(conversation?.messages ?? [], event.at, 'new');
  }

  /**
   * Adds copied steps for messages that stand in the conversation again. `new`: as other objects.
   * `kept`: behind a summary, which has its step already. Kept texts that no request has sent are
   * left out: they come with their request.
   */
  #copyContext(messages: readonly Message[], at: number, objects: 'new' | 'kept'): void {
    let reply: StepDraft | null = null;
    for (const message of messages) {
      if (message.role === 'assistant') {
        reply = { ...this.#replyStep(message, at, []), copied: true, extra: {} };
        this.#steps.push(reply);
        continue;
      }
      if (reply !== null) this.#addResults(message.parts, reply);
      for (const part of message.parts) {
        if (part.type !== 'text') continue;
        if (objects === 'kept' && part.origin === 'summary') this.#seen.add(part);
        else if (objects === 'new' || this.#seen.has(part))
          this.#steps.push({ ...this.#textStep(part, at), copied: true });
      }
    }
  }

  /** Notes that the session was opened again; under another machine its messages are copied. */
  #resume(
    { before, state, seq }: JournalStep,
    event: Extract<Event, { readonly type: 'Resumed' }>,
  ): void {
    const { parent } = this.#source.header;
    // A change of the settings may stand between the entries of the parent and the first process.
    const forked = parent !== null && seq > parent.seq && !this.#isForkOpened;
    this.#isForkOpened ||= forked;
    const cause = forked ? 'forked' : before.name === 'ShuttingDown' ? 'closed' : 'crashed';
    this.#resumes.push({
      at: timestamp(event.at),
      after_step: this.#steps.length,
      cause,
      ...(event.upgrade === undefined
        ? {}
        : { machine: { from: event.upgrade.from, to: event.upgrade.to } }),
    });
    if (event.upgrade?.session === undefined) return;
    const { to } = event.upgrade;
    this.#steps.push(plainStep('system', event.at, `The session goes on under machine ${to}.`));
    this.#copyContext(messagesOf(state.session.conversation), event.at, 'new');
  }

  #endTurn(reason: WaitReason, at: number): void {
    const end = turnEnd(reason);
    if (this.#pending.length > 0) this.#addUnanswered(at);
    const step = this.#steps.findLast(({ copied }) => !copied);
    if (end !== null && step !== undefined) step.extra.turn_end = end;
  }

  /** Requests that no stored reply answers. */
  #addUnanswered(at: number): void {
    this.#steps.push({
      ...plainStep('agent', at, ''),
      model: this.#last?.session.settings.model ?? this.#source.header.settings.model,
      attempts: this.#takePending(),
    });
  }

  /** Calls that have ended in a batch that has not. */
  #addOpenBatch(state: State): void {
    if (state.name !== 'ExecutingTools') return;
    for (const call of state.calls) {
      if (!('outcome' in call)) continue;
      const step = this.#findCall(call.judged.callId, state.batchId);
      if (step === undefined) continue;
      const result = this.#result(step, call.judged.callId);
      result.content = this.#content(call.outcome.text, call.outcome.images);
      result.extra.status = call.status;
    }
  }

  /** Writes everything. Call it once, after the last step. */
  finish(): Trajectory {
    const { header, version, rootId, prompt } = this.#source;
    if (this.#last !== null) this.#addOpenBatch(this.#last);
    if (this.#pending.length > 0) this.#addUnanswered(this.#pending[0]?.sentAt ?? header.createdAt);
    const tasks: Trajectory[] = [];
    const { settings } = this.#last?.session ?? header;
    const steps = this.#steps.map((step, index) => this.#writeStep(step, index + 1, tasks));
    return {
      schema_version: SCHEMA_VERSION,
      session_id: rootId,
      trajectory_id: header.sessionId,
      agent: {
        name: 'pawl',
        version,
        model_name: (settings.primary ?? settings).model,
        ...(prompt.tools === undefined
          ? {}
          : { tool_definitions: prompt.tools.map(toolDefinition) }),
      },
      steps,
      final_metrics: this.#finalMetrics(steps.length),
      ...(tasks.length === 0 ? {} : { subagent_trajectories: tasks }),
      extra: this.#sessionExtra(),
    };
  }

  /** The sums of the session, as the machine keeps them. */
  #finalMetrics(steps: number): Trajectory['final_metrics'] {
    const usage = this.#last?.session.usage;
    const { unpriced = 0, costUsd = 0 } = usage ?? {};
    const reportedUsd = [...this.#records.values()].reduce(
      (sum, record) => sum + (record.usage?.costUsd ?? 0),
      0,
    );
    // Under a limit, a request without a report counts as spent, at an assumed cost.
    const assumedUsd = costUsd - reportedUsd;
    return {
      total_prompt_tokens: usage === undefined ? 0 : promptTokens(usage),
      total_completion_tokens: usage?.outputTokens ?? 0,
      total_cached_tokens: usage?.cacheReadTokens ?? 0,
      ...(unpriced > 0 ? {} : { total_cost_usd: costUsd }),
      total_steps: steps,
      extra: {
        cache_write_tokens: usage?.cacheWriteTokens ?? 0,
        ...(unpriced > 0 ? { unpriced_calls: unpriced, known_cost_usd: costUsd } : {}),
        ...(assumedUsd > 1e-6 ? { assumed_cost_usd: assumedUsd } : {}),
      },
    };
  }

  #sessionExtra(): JsonObject {
    const { parent, workspace, createdAt } = this.#source.header;
    const others = [...this.#records.values()].flatMap(({ id, usage, placed }) =>
      usage === null || placed ? [] : [{ id, ...usageMetrics(usage) }],
    );
    return {
      workspace,
      created_at: timestamp(createdAt),
      journal_entries: this.#entries,
      ...(parent === null
        ? {}
        : { forked_from: { session_id: parent.sessionId, seq: parent.seq } }),
      ...(this.#resumes.length === 0 ? {} : { resumes: this.#resumes }),
      ...(others.length === 0 ? {} : { other_usage: others }),
    };
  }

  #writeStep(step: StepDraft, stepId: number, tasks: Trajectory[]): TrajectoryStep {
    const { model, effort, reasoning, calls, attempts } = step;
    const metrics = sumAttempts(attempts);
    const results = calls.flatMap((call) => this.#writeResult(step, call, tasks));
    const sent = attempts.reduce((sum, attempt) => sum + sentTimes(attempt), 0);
    // If one was sent again after a crash, all of them are listed: the counts differ.
    const failed = attempts.filter(({ failure }) => failure !== null || sent > attempts.length);
    const spending = step.spending?.usage ?? null;
    const extra: JsonObject = {
      ...step.extra,
      ...(failed.length === 0 ? {} : { attempts: failed.map(writeAttempt) }),
      ...(spending === null ? {} : { usage: usageMetrics(spending) }),
    };
    return {
      step_id: stepId,
      timestamp: timestamp(step.at),
      source: step.source,
      message: step.message,
      ...(model === null ? {} : { model_name: model }),
      ...(effort === null ? {} : { reasoning_effort: effort }),
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls.map(writeCall) }),
      ...(results.length === 0 ? {} : { observation: { results } }),
      ...(metrics === null ? {} : { metrics: usageMetrics(metrics) }),
      ...(step.copied ? { is_copied_context: true } : {}),
      ...(step.source === 'agent' && !step.copied ? { llm_call_count: sent } : {}),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    };
  }

  #writeResult(
    { results, batch, copied }: StepDraft,
    { callId, tool }: CallPart,
    tasks: Trajectory[],
  ): readonly TrajectoryResult[] {
    const result = results.get(callId);
    // Only a call that asks models itself reports usage, under an id of its own.
    const record = batch === null ? undefined : this.#records.get(spendingId(batch.id, callId));
    if (record !== undefined) record.placed = true;
    const task =
      tool !== 'task' || batch === null || copied
        ? null
        : this.#source.findTask({ batchId: batch.id, callId, seq: batch.seq });
    if (task !== null) tasks.push(task);
    if (result === undefined && task === null) return [];
    const usage = record?.usage ?? null;
    const extra = {
      ...result?.extra,
      ...(usage === null ? {} : { usage: usageMetrics(usage) }),
    };
    return [
      {
        source_call_id: callId,
        ...(result === undefined || result.content === null ? {} : { content: result.content }),
        ...(task === null
          ? {}
          : {
              subagent_trajectory_ref: [
                { trajectory_id: task.trajectory_id, session_id: task.session_id },
              ],
            }),
        ...(Object.keys(extra).length === 0 ? {} : { extra }),
      },
    ];
  }
}

const plainStep = (source: StepDraft['source'], at: number, message: Content): StepDraft => ({
  source,
  at,
  message,
  copied: false,
  model: null,
  effort: null,
  reasoning: '',
  calls: [],
  results: new Map(),
  attempts: [],
  extra: {},
  spending: null,
  batch: null,
});

const joinTexts = (message: AssistantMessage, type: 'text' | 'reasoning'): string =>
  message.parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('\n');

/** What a rewind took back, in words. */
const rewoundParts = (
  conversation: RewoundConversation | undefined,
  changes: ChangeSummary | null,
): string => {
  const parts = [
    ...(conversation === undefined ? [] : ['conversation']),
    ...(changes === null ? [] : ['files']),
  ];
  return parts.join(' and ');
};

/** Why the turn ended, if it did not end with an answer. */
const turnEnd = (reason: WaitReason): JsonObject | null => {
  switch (reason.kind) {
    case 'endOfTurn':
      return reason.cause === 'answer' ? null : { kind: reason.cause };
    case 'cancelled':
      return { kind: 'cancelled', cause: reason.cause };
    case 'budget':
      return { kind: 'limit', limit: reason.dimension };
    case 'error':
      return { kind: 'error', error: reason.error, message: reason.message };
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return null;
    default:
      return reason satisfies never;
  }
};

const usageMetrics = (usage: Usage): TrajectoryMetrics => ({
  prompt_tokens: promptTokens(usage),
  completion_tokens: usage.outputTokens,
  cached_tokens: usage.cacheReadTokens,
  ...(usage.costUsd === null || usage.unpriced ? {} : { cost_usd: usage.costUsd }),
  ...(usage.cacheWriteTokens === 0
    ? {}
    : { extra: { cache_write_tokens: usage.cacheWriteTokens } }),
});

const timestamp = (at: number): string => new Date(at).toISOString();

const sumAttempts = (attempts: readonly Attempt[]): Usage | null =>
  attempts.reduce<Usage | null>(
    (sum, { record }) => (record.usage === null ? sum : sumUsage(sum, record.usage)),
    null,
  );

/** What has usage was sent, whatever else is noted of it. */
const sentTimes = ({ sent, record }: Attempt): number =>
  record.usage === null ? sent : Math.max(sent, 1);

const writeAttempt = (attempt: Attempt): JsonObject => ({
  request_id: attempt.record.id,
  sent_at: timestamp(attempt.sentAt),
  sent: sentTimes(attempt),
  ...(attempt.failure === null ? {} : { failure: attempt.failure }),
});

const writeCall = ({ callId, tool, input, rawInput }: CallPart) => ({
  tool_call_id: callId,
  function_name: tool,
  arguments: input,
  ...(rawInput === undefined ? {} : { extra: { raw_arguments: rawInput } }),
});

const toolDefinition = ({ name, description, inputSchema }: ToolDeclaration): JsonObject => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
});
