import { limitShape } from '@pawl/agent/machine/shapes/settings-shapes';
import {
  assistantShape,
  modelErrorShape,
  stopReasonShape,
  usageShape,
} from '@pawl/agent/machine/shapes/value-shapes';
import {
  amount,
  count,
  type Fields,
  finite,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  share,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { CellReport, CellVariable, SubcallKind } from './cell-types.js';
import type { CodeEvent, CodeEventType, LimitsChanged, RunEventOf, TreeEvent } from './event.js';
import type { PolicyReason, Short, StopVerdict } from './stop-policies.js';

/** Runtime checks for the events of code mode. The machine rejects an event with another shape. */

/** A lookup key. Names on Object.prototype are not allowed. */
const id: Shape<string> = {
  check: (value) =>
    typeof value === 'string' && value in Object.prototype
      ? { path: [], must: 'the name of a run, or of what it asked for', is: `"${value}"` }
      : text.check(value),
};

const reason = oneOf<PolicyReason>({
  iterations: 1,
  usd: 1,
  tokens: 1,
  unpriced: 1,
  time: 1,
  repeated: 1,
  errors: 1,
  noProgress: 1,
  policy: 1,
});
export const verdictShape: Shape<StopVerdict> = variant<StopVerdict, 'kind'>('kind', {
  go: {},
  stop: { reason, why: text },
  finish: { reason, why: text },
});

const reportShape: Shape<CellReport> = object<CellReport>({
  status: oneOf({ ok: 1, raised: 1, stopped: 1, died: 1 }),
  stdout: text,
  stderr: text,
  variables: list(object<CellVariable>({ name: text, type: text, size: nullable(finite) })),
  answer: nullable(text),
  variablesLost: oneOf({ no: 1, yes: 1 }),
});

const subcall = { cellId: id, ordinal: count };

const fields: { readonly [T in CodeEventType]: Fields<Omit<RunEventOf<T>, 'type' | 'at'>> } = {
  Started: {},
  ModelReplied: {
    requestId: id,
    message: nullable(assistantShape),
    stopReason: stopReasonShape,
    usage: usageShape,
  },
  ModelFailed: { requestId: id, error: modelErrorShape, usage: nullable(usageShape), jitter: share },
  CallRefused: { requestId: id, short: oneOf<Short>({ usd: 1, tokens: 1, unpriced: 1 }) },
  EnvironmentStarted: { variables: oneOf({ kept: 1, changed: 1, lost: 1 }) },
  EnvironmentFailed: { message: text },
  CellFinished: { cellId: id, report: reportShape },
  SubcallAsked: {
    ...subcall,
    kind: oneOf<SubcallKind>({ llm: 1, rlm: 1 }),
    prompts: list(text),
    model: optional(text),
  },
  SubcallAnswered: { ...subcall, texts: list(text) },
  VariableRead: { readId: id, value: nullable(text) },
  PolicyAnswered: { policyId: id, verdict: verdictShape },
  TimerFired: { timerId: id },
  CancelRequested: { cause: oneOf({ user: 1, parent: 1 }) },
  ShutdownRequested: {},
  Resumed: { epoch: count, stoppedAt: optional(finite) },
};

const changedLimits: Fields<Omit<LimitsChanged, 'type' | 'at' | 'node'>> = {
  limits: object<LimitsChanged['limits']>({
    usd: optional(limitShape),
    tokens: optional(limitShape),
    timeMs: optional(limitShape),
    iterations: optional(amount),
  }),
  stoppedAt: optional(finite),
};

const withFields = (all: object, common: object): never =>
  Object.fromEntries(Object.entries(all).map(([type, own]) => [type, { ...common, ...own }])) as never; // the same types, each with the fields that all have

/** An event of one run, without the run's id. */
export const codeEventShape: Shape<CodeEvent> = variant<CodeEvent, 'type'>(
  'type',
  withFields(fields, { at: finite }),
);

/** An event of the tree, with the run's id. */
export const treeEventShape: Shape<TreeEvent> = variant<TreeEvent, 'type'>(
  'type',
  withFields({ ...fields, LimitsChanged: changedLimits }, { at: finite, node: id }),
);
