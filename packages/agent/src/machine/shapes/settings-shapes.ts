import {
  amount,
  count,
  countFromOne,
  either,
  type Fields,
  finite,
  list,
  object,
  oneOf,
  optional,
  partly,
  type Shape,
  share,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { CommandPlace, Decision, PolicyRule, Preset, WrittenRule } from '../../policy/preset-rules.js';
import type { Dimension, Effort, Grant, Limits, RetrySchedule, SandboxLevel, Settings } from '../settings.js';
import type { Limit } from '../values/limit-value.js';
import { needsShape } from './value-shapes.js';

/** Shapes of settings, limits, rules and grants. They refuse only numbers that would stop a session. */

const words = list(text);
const decision = oneOf<Decision>({ allow: 1, ask: 1, deny: 1 });

export const dimensionShape: Shape<Dimension> = oneOf<Dimension>({
  usd: 1,
  tokens: 1,
  time: 1,
  rounds: 1,
  truncation: 1,
  repeats: 1,
  errors: 1,
  sameResults: 1,
});

/** A number below 0 passes: the table refuses it, so that the user is told. */
export const limitShape: Shape<Limit> = either(finite, oneOf({ unlimited: 1 }));
const setLimit: Shape<Limit> = either(amount, oneOf({ unlimited: 1 }));
const limitFields: Fields<Limits> = {
  usd: setLimit,
  tokens: setLimit,
  timeMs: setLimit,
  rounds: setLimit,
  truncation: setLimit,
  repeats: setLimit,
  errors: setLimit,
  sameResults: setLimit,
};

const scheduleShape: Shape<RetrySchedule> = variant<RetrySchedule, 'kind'>('kind', {
  linear: { stepMs: amount },
  exponential: { baseMs: amount, factor: amount, capMs: amount, jitter: optional(amount) },
  list: { delaysMs: list(amount) },
});

const ruleShape: Shape<PolicyRule> = object<PolicyRule>({
  decision,
  tool: text,
  where: oneOf({ inside: 1, outside: 1, anywhere: 1 }),
  touches: oneOf({ reads: 1, mutates: 1, anything: 1 }),
  hosts: optional(words),
  runs: optional(oneOf<CommandPlace>({ sandboxed: 1, leaving: 1, unfenced: 1, missing: 1, mcpServer: 1 })),
  unrecoverable: optional(oneOf({ yes: 1 })),
  why: text,
  unattended: optional(text),
});

const writtenShape: Shape<WrittenRule> = variant<WrittenRule, 'kind'>('kind', {
  command: { words, needs: optional(needsShape), decision, origin: text },
  path: { pattern: text, touches: oneOf({ reads: 1, anything: 1 }), decision, origin: text },
  host: { pattern: text, decision, origin: text },
  mcp: { pattern: text, decision, origin: text },
});

const grantOwn = { tool: text, needs: optional(needsShape) };
export const grantShape: Shape<Grant> = variant<Grant, 'scope'>('scope', {
  shape: { shape: text, ...grantOwn },
  prefix: { words, ...grantOwn },
  session: { group: optional(oneOf({ fileChanges: 1 })), ...grantOwn },
});

const onOff = oneOf({ on: 1, off: 1 });

const settingFields: Fields<Settings> = {
  model: text,
  workspace: text,
  maxRetries: count,
  retrySchedule: scheduleShape,
  retryJitterMs: amount,
  retryAfterCapMs: amount,
  emptyRetries: count,
  firstByteMs: amount,
  silenceMs: amount,
  windowTokens: countFromOne,
  compactAtRatio: amount,
  compactMidRatio: amount,
  resultCutBytes: count,
  outputCutBytes: count,
  maxParallel: countFromOne,
  graceMs: amount,
  limits: object<Limits>(limitFields),
  budgetWarnRatio: share,
  atLimit: oneOf({ stop: 1, finish: 1 }),
  userPolicy: oneOf({ none: 1, ask: 1 }),
  autoRearm: onOff,
  queueOnCancel: oneOf({ hold: 1, restore: 1, send: 1 }),
  cancelMode: oneOf({ abort: 1, drain: 1 }),
  onAsk: oneOf({ ask: 1, deny: 1, stop: 1 }),
  hooks: oneOf<Settings['hooks']>({ mutating: 1, mutatingOk: 1, always: 1, never: 1 }),
  formatter: oneOf({ off: 1, onChanges: 1, onOneCommit: 1 }),
  autoCommit: onOff,
  rules: list(ruleShape),
  writtenRules: optional(list(writtenShape)),
  effort: optional(oneOf<Effort>({ auto: 1, low: 1, medium: 1, high: 1 })),
  preset: optional(oneOf<Preset>({ plan: 1, careful: 1, auto: 1, ci: 1 })),
  sandbox: optional(
    oneOf<SandboxLevel | 'missing'>({ workspace: 1, 'workspace+net': 1, 'read-only': 1, off: 1, missing: 1 }),
  ),
};

/** Settings in the header of a journal. Those of earlier versions lack some fields. */
export const recordedSettingsShape: Shape<Partial<Settings>> = object<
  Partial<Omit<Settings, 'limits'>> &
    Pick<Settings, 'model' | 'workspace' | 'rules'> & { limits: Partial<Limits> }
>({
  ...partly<Settings>(settingFields),
  model: text,
  workspace: text,
  rules: list(ruleShape),
  limits: object<Partial<Limits>>(partly<Limits>(limitFields)),
}) as unknown as Shape<Partial<Settings>>; // the same fields, limits in part

export const settingsPatchShape: Shape<Partial<Settings>> = object<Partial<Settings>>(
  partly<Settings>(settingFields),
);
