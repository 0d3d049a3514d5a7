import type {
  Event,
  EventType,
  On,
  QueuedInput,
} from '../../../packages/agent/src/machine/event.js';
import type { AssistantPart } from '../../../packages/agent/src/machine/message.js';
import type { HookVerdicts } from '../../../packages/agent/src/policy/judged-call.js';
import { outcomeOf, usageOr, usualUsage, Words } from './trace-words.js';

/**
 * How an event is written in a trace. `@1200` in front sets the clock (milliseconds); without it time stands still.
 *
 *     Start, RetryLast, RetryNow, CancelTurn, ShutdownRequested
 *     CompactRequested ["what to keep"]
 *     UserInput "text" [picture=cat] [followUp]   EditQueue [input-1 steer "text"]...
 *     ApproveBudget usd 2                         SettingsChanged {"onAsk":"deny"}
 *     InputFailed "message"                       Resumed 2
 *     TextDelta req-1 "text"                      ReasoningDelta req-1 "text"
 *     ToolCallDelta req-1 edit "text"
 *     LlmCompleted req-1 [thinks "text"] [says "text"] [calls read(c1) edit(c2 b.ts)] [stop=maxTokens] [usage]
 *         [note="text"] [deny="reason"], as a hook says at the end of a turn
 *     LlmCompleted req-1 unreadable [usage]
 *     LlmFailed req-1 overloaded "message" [about=picture] [retryAfter=ms] [jitter=0.5] [usage]
 *     CallPreviewed batch-1 c1 change "diff", CallPreviewed batch-1 c1 refused "reason", CallPreviewed batch-1 c1 none
 *     ToolStarted batch-1 c1                      ToolProgress batch-1 c1 "text"
 *     ToolCompleted batch-1 c1 ok "text" [diff="text"] [picture=cat]
 *     ToolsFailed batch-1 "message"
 *     ApprovalAnswered batch-1 c1 allow [shape or session], ApprovalAnswered batch-1 c1 deny "reason",
 *         ApprovalAnswered batch-1 c1 reply "text"
 *     CancelTool batch-1 c1
 *     HookPrepared hook-1 a.ts
 *     HookCompleted hook-1 [commit="subject"]... [file=a.ts]... [dirty] [note="text"] [warning="text"] [veto] [usage]
 *     HookFailed hook-1 "message"                 TimerFired timer-1
 *     CompactionCompleted compaction-1 "summary" [usage]
 *     CompactionFailed compaction-1 "message" [usage]
 *     UsageReported req-1 usage
 *     RequestMeasured req-1 [bytes=9000] [out=4000] [price=10] or [price=1/5], dollars for a million tokens of input and output
 *     UserHooksRan before-request req-1 [note="text"] [deny="reason"]; the request can be none
 *
 * usage is `tokens=100+10 cost=0.01`; a reply or summary without it costs just that, everything else nothing.
 * `edit!(c1)` has arguments that are not valid; a tool other than read, grep, edit, write, bash, patch, which previews, explore, which spends, and
 * ask and plan, which ask the user, does not exist.
 */
export const eventFrom = (line: string, clock: number): Event => {
  const [, time, rest = ''] = /^(?:@(\d+) )?(.*)$/.exec(line) ?? [];
  const at = time === undefined ? clock : Number(time);
  const words = new Words(rest);
  const type = words.next('an event');
  // A parser gives its own type of event, found by that very name; a wrong name has none.
  const parse = parsers[type as EventType] as ((words: Words) => Body<EventType>) | undefined;
  if (parse === undefined) throw words.mistake(`${type} is no event`);
  const body = parse(words);
  words.end();
  return { type, at, ...body } as Event;
};

type Body<T extends EventType> = T extends EventType ? Omit<On<T>, 'type' | 'at'> : never;
type Parsers = { readonly [T in EventType]: (words: Words) => Body<T> };

const nothing = (): Record<string, never> => ({});
const about = (words: Words) => ({ batchId: words.next('a batch'), callId: words.next('a call') });
const piece = (words: Words) => ({ requestId: words.next('a request'), text: words.text() });

const completed = (words: Words): Body<'LlmCompleted'> => {
  const requestId = words.next('a request');
  if (words.flag('unreadable')) {
    return {
      requestId,
      message: null,
      calls: [],
      stopReason: 'other',
      usage: usageOr(words, usualUsage),
    };
  }
  const parts: AssistantPart[] = [];
  if (words.flag('thinks')) parts.push({ type: 'reasoning', text: words.text() });
  if (words.flag('says')) parts.push({ type: 'text', text: words.text() });
  const calls = words.flag('calls') ? words.calls() : [];
  for (const { callId, tool, input } of calls) parts.push({ type: 'call', callId, tool, input });
  const said = words.option('stop') ?? (calls.length > 0 ? 'toolUse' : 'end');
  const stopReason = (
    ['end', 'toolUse', 'maxTokens', 'refusal', 'contentFilter', 'other'] as const
  ).find((reason) => reason === said);
  if (stopReason === undefined) throw words.mistake(`${said} is no reason to stop`);
  const message = {
    role: 'assistant',
    model: 'test/model',
    cut: stopReason === 'maxTokens',
    parts,
  } as const;
  const hooks = verdictsFrom(words);
  const told = hooks.length === 0 ? {} : { hooks };
  return { requestId, message, calls, stopReason, usage: usageOr(words, usualUsage), ...told };
};

/** One hook says all of it. */
const verdictsFrom = (words: Words): HookVerdicts => {
  const [note, reason] = [words.option('note'), words.option('deny')];
  if (note === undefined && reason === undefined) return [];
  const noted = note === undefined ? {} : { note };
  return [
    reason === undefined
      ? { hook: 'guard', decision: 'allow', ...noted }
      : { hook: 'guard', decision: 'deny', reason, ...noted },
  ];
};

const MOMENTS = [
  'session-start',
  'session-end',
  'after-batch',
  'before-request',
  'ask-user',
] as const;

const userHooksRan = (words: Words): Body<'UserHooksRan'> => {
  const moment = words.one(MOMENTS);
  const request = words.next('a request, or none');
  return { moment, requestId: request === 'none' ? null : request, verdicts: verdictsFrom(words) };
};

const RETRYABLE = ['rateLimited', 'overloaded', 'unreachable', 'timeout'] as const;
const FINAL = [
  'contextOverflow',
  'auth',
  'badRequest',
  'quotaExhausted',
  'refused',
  'malformed',
] as const;

const failed = (words: Words): Body<'LlmFailed'> => {
  const requestId = words.next('a request');
  const kind = words.one([...RETRYABLE, ...FINAL]);
  const message = words.text();
  const about = words.option('about') === 'picture' ? ({ about: 'picture' } as const) : {};
  const wait = words.option('retryAfter');
  const jitter = Number(words.option('jitter') ?? 0);
  const retryable = RETRYABLE.some((candidate) => candidate === kind);
  const error = {
    kind,
    message,
    retryable,
    retryAfterMs: wait === undefined ? null : Number(wait),
    ...about,
  };
  return { requestId, error, usage: usageOr(words, null), jitter };
};

/** Pictures of an input; a name stands for its hash. */
const picturesFrom = (words: Words): Pick<Body<'UserInput'>, 'images'> => {
  const images = several(words, 'picture').map(
    (name) => ({ mediaType: 'image/png', sha256: name }) as const,
  );
  return images.length === 0 ? {} : { images };
};

const several = (words: Words, name: string): readonly string[] => {
  const values: string[] = [];
  for (let value = words.option(name); value !== undefined; value = words.option(name))
    values.push(value);
  return values;
};

const hookCompleted = (words: Words): Body<'HookCompleted'> => ({
  hookId: words.next('a hook'),
  commits: several(words, 'commit').map((subject, index) => ({ hash: `abcdef${index}`, subject })),
  changedFiles: several(words, 'file'),
  dirty: words.flag('dirty'),
  note: words.option('note') ?? '',
  warning: words.option('warning') ?? '',
  proceed: !words.flag('veto'),
  usage: usageOr(words, null),
});

const queueFrom = (words: Words): readonly QueuedInput[] => {
  const items: QueuedInput[] = [];
  while (!words.isAtEnd()) {
    const inputId = words.next('an input');
    const mode = words.one(['steer', 'followUp'] as const);
    items.push({ inputId, mode, text: words.text() });
  }
  return items;
};

const answered = (words: Words): Body<'ApprovalAnswered'> => {
  const call = about(words);
  const kind = words.one(['allow', 'deny', 'reply'] as const);
  if (kind === 'deny') return { ...call, answer: { kind, reason: words.text() }, scope: 'once' };
  if (kind === 'reply') return { ...call, answer: { kind, text: words.text() }, scope: 'once' };
  const scope = words.flag('shape') ? 'shape' : words.flag('session') ? 'session' : 'once';
  return { ...call, answer: { kind: 'allow' }, scope };
};

const previewed = (words: Words): Body<'CallPreviewed'> => {
  const call = about(words);
  switch (words.one(['change', 'refused', 'none'] as const)) {
    case 'change':
      return { ...call, preview: { kind: 'change', diff: words.text() } };
    case 'refused':
      return { ...call, preview: { kind: 'refused', text: words.text() } };
    default:
      return { ...call, preview: { kind: 'none' } };
  }
};

const NO_CHANGES = { created: 0, changed: 0, deleted: 0, files: [] } as const;

/** With `kept` the conversation goes to that many messages, and `said` by the user follows them. */
const rewindRequested = (words: Words): Body<'RewindRequested'> => {
  const rewindId = words.next('a rewind');
  const to = words.number();
  const [kept, plan, said] = [words.option('kept'), words.option('plan'), words.option('said')];
  const messages =
    said === undefined
      ? []
      : [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: said }] } as const];
  return {
    rewindId,
    to,
    direction: 'back',
    ...(kept === undefined
      ? {}
      : { conversation: { kept: Number(kept), messages, contextTokens: 10 } }),
    ...(plan === undefined ? {} : { files: { plan } }),
  };
};

const parsers: Parsers = {
  PolicyStopped: (words) => ({ requestId: words.next('a request'), why: words.text() }),
  Start: nothing,
  RetryLast: nothing,
  RetryNow: nothing,
  CancelTurn: nothing,
  CompactRequested: (words) => (words.isAtEnd() ? {} : { instructions: words.text() }),
  ShutdownRequested: nothing,
  UserInput: (words) => ({
    text: words.text(),
    ...picturesFrom(words),
    mode: words.flag('followUp') ? 'followUp' : 'steer',
  }),
  EditQueue: (words) => ({ items: queueFrom(words) }),
  CancelTool: about,
  ApproveBudget: (words) => ({
    dimension: words.one(['usd', 'tokens', 'time', 'rounds', 'truncation'] as const),
    limit: words.number(),
  }),
  ApprovalAnswered: answered,
  // What the machine may do with a wrong patch is not the traces' matter.
  SettingsChanged: (words) => ({ patch: JSON.parse(words.next('a patch')) }),
  InputFailed: (words) => ({ message: words.text() }),
  Resumed: (words) => ({ epoch: words.number() }),
  TextDelta: piece,
  ReasoningDelta: piece,
  ToolCallDelta: (words) => ({
    requestId: words.next('a request'),
    tool: words.next('a tool'),
    text: words.text(),
  }),
  LlmCompleted: completed,
  LlmFailed: failed,
  CallPreviewed: previewed,
  ToolStarted: about,
  ToolProgress: (words) => ({ ...about(words), text: words.text() }),
  ToolCompleted: (words) => ({ ...about(words), outcome: outcomeOf(words) }),
  ToolsFailed: (words) => ({ batchId: words.next('a batch'), message: words.text() }),
  HookPrepared: (words) => ({
    hookId: words.next('a hook'),
    effect: { kind: 'file', path: words.next('a file'), before: 'rough', after: 'smooth' },
  }),
  HookCompleted: hookCompleted,
  HookFailed: (words) => ({ hookId: words.next('a hook'), message: words.text() }),
  TimerFired: (words) => ({ timerId: words.next('a timer') }),
  CompactionCompleted: (words) => ({
    compactionId: words.next('a compaction'),
    summary: words.text(),
    usage: usageOr(words, usualUsage),
  }),
  CompactionFailed: (words) => ({
    compactionId: words.next('a compaction'),
    message: words.text(),
    usage: usageOr(words, null),
  }),
  UserHooksRan: userHooksRan,
  CheckpointTaken: (words) => ({
    checkpoint: words.next('a checkpoint'),
    by: 'agent',
    batchId: 'batch-1',
    changes: NO_CHANGES,
    leftOut: several(words, 'left'),
  }),
  RewindRequested: rewindRequested,
  Rewound: (words) => ({
    rewindId: words.next('a rewind'),
    checkpoint: null,
    changes: {
      ...NO_CHANGES,
      changed: 1,
      files: [{ path: 'src/a.ts', change: 'changed', added: 12, removed: 3 }],
    },
    left: several(words, 'left').map((path) => ({ path, why: 'somebody else changed it' })),
    note: 'src/a.ts is as it was: read it again before you edit it.',
  }),
  RequestMeasured: (words) => {
    const usageId = words.next('an id');
    const [bytes, out, price] = ['bytes', 'out', 'price'].map((name) => words.option(name));
    const [input = 0, output = input] = (price ?? '').split('/').map(Number);
    const prices = { input, output, cacheRead: 0, cacheWrite: 0 };
    return {
      usageId,
      model: 'scripted/model',
      bytes: Number(bytes ?? 0),
      images: 0,
      outputTokensMax: Number(out ?? 1_000),
      prices: price === undefined ? null : prices,
    };
  },
  UsageReported: (words) => ({ usageId: words.next('an id'), usage: usageOr(words, usualUsage) }),
};
