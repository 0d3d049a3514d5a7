import {
  array,
  boolean,
  type InferOutput,
  integer,
  literal,
  minValue,
  nullable,
  number,
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
    purpose: picklist(['user', 'toolResults']),
    messages: count,
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
  }),
  strictObject({ type: literal('error'), text: string() }),
  strictObject({ type: literal('warning'), kind: string(), text: string() }),
  strictObject({ type: literal('notice'), kind: string(), text: string() }),
  strictObject({
    type: literal('state'),
    seq,
    at: time,
    event: string(),
    path: array(string()),
    state: string(),
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
