/**
 * Schema of the `--json` lines, version 1. docs/json-stream.schema.json is generated from this
 * file.
 *
 * 1. The first record is `session`, the last one `result`; a program that could not open a session
 *    prints `result` alone.
 * 2. Within schema 1 records and fields are only ever added.
 */

import {
  array,
  boolean,
  exactOptional,
  type InferOutput,
  integer,
  literal,
  minValue,
  nullable,
  number,
  optional,
  picklist,
  pipe,
  record,
  strictObject,
  string,
  unknown,
  variant,
} from 'valibot';

const count = pipe(number(), integer(), minValue(0));
/** Milliseconds since 1970. */
const time = pipe(number(), minValue(0));
/** Journal line of the event; null for events that are not journaled. */
const seq = nullable(pipe(number(), integer(), minValue(1)));
const input = record(string(), unknown());
/** `pawl ask` only: id of the run in the tree; `n0` is the root. */
const node = optional(string());

const usage = strictObject({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  /** Models whose servers reported no usage: tokens are estimates. Absent: none. */
  estimated: optional(array(string())),
});

/**
 * Details of an approval question, as the terminal shows them
 * (`packages/agent/src/policy/approval-question.ts`).
 */
const questionFields = {
  /** The full command, address, change, input or question; never truncated. */
  subject: strictObject({
    kind: picklist(['command', 'address', 'change', 'input', 'question', 'plan']),
    text: string(),
  }),
  /** Absolute paths that the call touches. */
  paths: array(string()),
  hosts: array(string()),
  /** Absolute paths of the programs that a command would start, as far as known. */
  programs: array(string()),
  folder: string(),
  /** null: no time limit. */
  timeLimitMs: nullable(number()),
  background: boolean(),
  /**
   * Why the call must leave the sandbox: for the network, for paths outside the workspace, or for
   * changes of git folders (`repository`). null: it need not.
   */
  needs: nullable(picklist(['network', 'outside', 'repository'])),
  /** The entries of `paths` that other programs run later without asking, such as git hooks. */
  protectedPaths: array(string()),
  oddCharacters: array(strictObject({ code: string(), name: string(), count })),
  /** Possible answers, and what each allows; of a choice (`1` to `4`) its text. */
  choices: array(
    strictObject({
      answer: picklist([
        ...['once', 'always', 'prefix', 'session', 'no'],
        ...['1', '2', '3', '4', 'reply', 'edit'],
      ] as const),
      allows: string(),
    }),
  ),
};

export const recordSchema = variant('type', [
  strictObject({
    type: literal('session'),
    schema: literal(1),
    sessionId: string(),
    workspace: string(),
    model: string(),
    journal: string(),
    resumed: boolean(),
    /**
     * Sandbox level of commands; `missing`: it is wanted but does not work here. Absent in `pawl
     * ask`.
     */
    sandbox: exactOptional(picklist(['workspace', 'workspace+net', 'read-only', 'off', 'missing'])),
    /** What decides about its calls (docs/set-up/permissions.md). Absent in `pawl ask`. */
    preset: exactOptional(picklist(['plan', 'careful', 'auto', 'ci', 'full'])),
    /** Unfinished last line that was cut off the journal when it was resumed. */
    tornTail: nullable(strictObject({ bytes: count, keptAs: string() })),
  }),
  strictObject({
    type: literal('input'),
    seq,
    at: time,
    text: string(),
    mode: picklist(['steer', 'followUp']),
  }),
  strictObject({
    type: literal('request'),
    requestId: string(),
    purpose: picklist(['user', 'toolResults', 'iteration', 'answer', 'plain']),
    messages: count,
    node,
  }),
  /** A piece of the reply that is streamed. */
  strictObject({ type: literal('text'), text: string() }),
  /** The text of this reply so far does not count: the reply broke off. */
  strictObject({ type: literal('retracted'), requestId: string() }),
  strictObject({
    type: literal('reply'),
    seq,
    at: time,
    requestId: string(),
    stopReason: string(),
    text: string(),
    calls: array(strictObject({ callId: string(), tool: string(), input, verdict: string() })),
    usage,
    costUsd: nullable(number()),
    node,
  }),
  strictObject({
    type: literal('modelFailed'),
    seq,
    at: time,
    requestId: string(),
    kind: string(),
    message: string(),
    retryable: boolean(),
    retryAfterMs: nullable(number()),
    node,
  }),
  /** A model call failed. It is repeated after `delayMs`. */
  strictObject({
    type: literal('retry'),
    timerId: string(),
    dueAt: time,
    delayMs: count,
    /** Number of this retry, from 1; `of` is the most that are made. */
    retry: count,
    of: count,
    kind: string(),
    message: string(),
  }),
  strictObject({
    type: literal('toolStarted'),
    seq,
    at: time,
    batchId: string(),
    callId: string(),
    tool: string(),
    input,
  }),
  strictObject({
    type: literal('toolProgress'),
    batchId: string(),
    callId: string(),
    text: string(),
  }),
  strictObject({
    type: literal('toolResult'),
    batchId: string(),
    callId: string(),
    tool: string(),
    status: string(),
    text: string(),
    diff: nullable(string()),
  }),
  strictObject({
    type: literal('approvalRequested'),
    batchId: string(),
    callId: string(),
    tool: string(),
    input,
    why: string(),
    ...questionFields,
  }),
  strictObject({ type: literal('approvalWithdrawn'), batchId: string(), callId: string() }),
  strictObject({
    type: literal('approvalAnswered'),
    seq,
    at: time,
    batchId: string(),
    callId: string(),
    answer: picklist(['allow', 'deny', 'reply']),
    /** What it allows: this call once, this exact call, commands that begin so, or the tool. */
    scope: picklist(['once', 'shape', 'prefix', 'session']),
  }),
  strictObject({
    type: literal('compaction'),
    compactionId: string(),
    phase: picklist(['started', 'completed', 'failed', 'cancelled']),
    /** Only if completed: the summary that replaces the messages. */
    summary: exactOptional(string()),
  }),
  strictObject({
    type: literal('hookStarted'),
    hookId: string(),
    phase: picklist(['CheckingGitCommits', 'RunningAutoformatters', 'AutoCommitting']),
  }),
  strictObject({
    type: literal('hookCompleted'),
    seq,
    at: time,
    hookId: string(),
    commits: array(strictObject({ hash: string(), subject: string() })),
    /**
     * Absolute paths of files that the calls changed; in the formatter phase, of files that
     * formatters rewrote.
     */
    changedFiles: array(string()),
    /** Whether there are uncommitted changes. */
    dirty: boolean(),
  }),
  strictObject({ type: literal('hookFailed'), seq, at: time, hookId: string(), message: string() }),
  strictObject({ type: literal('error'), text: string(), origin: picklist(['llm', 'tool', 'io']) }),
  strictObject({ type: literal('warning'), kind: string(), text: string(), node }),
  strictObject({ type: literal('notice'), kind: string(), text: string() }),
  /** A change of the machine's state; `path`: all states it went through. */
  strictObject({
    type: literal('state'),
    seq,
    at: time,
    event: string(),
    path: array(string()),
    state: string(),
    node,
  }),
  /** `pawl ask`: question, inputs, and the environment that runs its programs. */
  strictObject({
    type: literal('run'),
    question: string(),
    inputs: array(
      strictObject({ name: string(), path: string(), characters: count, sha256: string() }),
    ),
    environment: picklist(['javascript', 'quickjs', 'python']),
    /** Always null: the environment is the one that was named. */
    note: nullable(string()),
  }),
  strictObject({
    type: literal('environment'),
    node: string(),
    phase: picklist(['starting', 'ready', 'failed', 'closed']),
    /** Only with `ready`: whether the variables of earlier cells survived. */
    variables: optional(picklist(['kept', 'changed', 'lost'])),
    message: optional(string()),
  }),
  strictObject({ type: literal('cellStarted'), node: string(), cellId: string(), code: string() }),
  strictObject({
    type: literal('cellFinished'),
    seq,
    at: time,
    node: string(),
    cellId: string(),
    status: picklist(['ok', 'raised', 'stopped', 'died']),
    stdout: string(),
    stderr: string(),
    variablesLost: boolean(),
  }),
  strictObject({
    type: literal('subcall'),
    seq,
    at: time,
    node: string(),
    cellId: string(),
    ordinal: count,
    kind: picklist(['llm', 'rlm']),
    prompts: count,
    /** Length of all prompts together. */
    characters: count,
  }),
  strictObject({
    type: literal('outcome'),
    node: string(),
    status: picklist(['answered', 'stopped', 'failed', 'cancelled']),
    text: string(),
  }),
  strictObject({
    type: literal('result'),
    ok: boolean(),
    reason: string(),
    exit: count,
    message: string(),
    text: string(),
    sessionId: nullable(string()),
    usage: nullable(usage),
    /** null if the price of any call is unknown. */
    costUsd: nullable(number()),
    /** Not of `pawl ask`: a call broke off before it reported all of its usage. */
    costAtLeast: exactOptional(literal(true)),
    /** `pawl ask` only: counts of the prompts that its programs sent to models, by result. */
    pieces: exactOptional(
      strictObject({
        asked: count,
        answered: count,
        /** No answer because a limit did not allow the call. */
        refused: count,
        /** No answer for another reason. */
        failed: count,
        reasons: array(strictObject({ why: string(), count })),
      }),
    ),
    /** Not of `pawl ask`: how many calls were denied in this run, for any reason. */
    denied: exactOptional(count),
    /** `--json-schema` only: the answer, if it satisfies the schema. */
    structuredOutput: exactOptional(unknown()),
    /**
     * `pawl ask` only: calls that a crash cut off and that were repeated. Their cost is not in
     * `costUsd`.
     */
    unknownCalls: exactOptional(count),
  }),
]);

export type JsonRecord = InferOutput<typeof recordSchema>;
