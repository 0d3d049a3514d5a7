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

/**
 * The lines of `--json`, version 1. docs/json-stream.schema.json is made from this file.
 *
 * 1. The first record is `session`, the last one `result`; a program that could not open a session prints `result` alone.
 * 2. Within schema 1 records and fields are only ever added.
 */

const count = pipe(number(), integer(), minValue(0));
/** Milliseconds since 1970. */
const time = pipe(number(), minValue(0));
/** Line of the journal that holds the event; null of an event that is not journaled. */
const seq = nullable(pipe(number(), integer(), minValue(1)));
const input = record(string(), unknown());
/** Of `pawl ask`: the run that it is about; `n0` is the root. */
const node = optional(string());

const usage = strictObject({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});

export const recordSchema = variant('type', [
  strictObject({
    type: literal('session'),
    schema: literal(1),
    sessionId: string(),
    workspace: string(),
    model: string(),
    journal: string(),
    resumed: boolean(),
    /** What was cut off the journal's end before it was gone on with. */
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
  strictObject({ type: literal('text'), text: string() }),
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
  strictObject({ type: literal('retry'), timerId: string(), dueAt: time }),
  strictObject({
    type: literal('toolStarted'),
    seq,
    at: time,
    batchId: string(),
    callId: string(),
    tool: string(),
    input,
  }),
  strictObject({ type: literal('toolProgress'), batchId: string(), callId: string(), text: string() }),
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
  }),
  strictObject({ type: literal('approvalWithdrawn'), batchId: string(), callId: string() }),
  strictObject({
    type: literal('approvalAnswered'),
    seq,
    at: time,
    batchId: string(),
    callId: string(),
    answer: picklist(['allow', 'deny']),
    scope: picklist(['once', 'shape', 'session']),
  }),
  strictObject({
    type: literal('compaction'),
    compactionId: string(),
    phase: picklist(['started', 'completed', 'failed']),
    /** Of a completed one: what the model goes on with in place of the messages. */
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
    /** Absolute paths: files that the calls changed; of the formatters, those that they rewrote. */
    changedFiles: array(string()),
    /** Whether there are uncommitted changes. */
    dirty: boolean(),
  }),
  strictObject({ type: literal('hookFailed'), seq, at: time, hookId: string(), message: string() }),
  strictObject({ type: literal('error'), text: string() }),
  strictObject({ type: literal('warning'), kind: string(), text: string(), node }),
  strictObject({ type: literal('notice'), kind: string(), text: string() }),
  strictObject({
    type: literal('state'),
    seq,
    at: time,
    event: string(),
    path: array(string()),
    state: string(),
    node,
  }),
  /** `pawl ask`: what is asked of what, and where its programs run. */
  strictObject({
    type: literal('run'),
    question: string(),
    inputs: array(strictObject({ name: string(), path: string(), characters: count, sha256: string() })),
    environment: picklist(['javascript', 'quickjs', 'python']),
    /** Why it is not the one that works best; null where it is. */
    note: nullable(string()),
  }),
  strictObject({
    type: literal('environment'),
    node: string(),
    phase: picklist(['starting', 'ready', 'failed', 'closed']),
    /** What became of the variables of cells that ran before; of `ready`. */
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
    /** Of all prompts together. */
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
    /** null: the price of some call is unknown. */
    costUsd: nullable(number()),
  }),
]);

export type JsonRecord = InferOutput<typeof recordSchema>;
