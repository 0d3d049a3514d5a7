import type { CallOutcome } from '../../../packages/agent/src/machine/call.js';
import type { Event, EventType, On } from '../../../packages/agent/src/machine/event.js';
import { defaultSettings, type Usage } from '../../../packages/agent/src/machine/settings.js';
import { userEventCases } from '../../../packages/agent/src/machine/shapes.js';
import type { HookVerdicts, JudgedCall } from '../../../packages/agent/src/policy/judged-call.js';
import { presetRules } from '../../../packages/agent/src/policy/presets.js';

/** One event of each type with everything in it that can be: nothing that a shape names stays unlooked at. */

const usage: Usage = {
  inputTokens: 100,
  outputTokens: 20,
  cacheReadTokens: 3,
  cacheWriteTokens: 4,
  costUsd: 0.01,
};
const prices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const images = [{ mediaType: 'image/png', sha256: 'ab'.repeat(32), base64: 'AAAA' }] as const;
const metadata = { anthropic: { signature: 'sealed', nested: { deep: [1, 'two', null] } } };
const call = { batchId: 'batch-1', callId: '1' };
/** What one hook says. */
const hooks: HookVerdicts = [
  { hook: 'guard', decision: 'deny', reason: 'no', note: 'look', fault: 'slow' },
];

const outcome: CallOutcome = {
  status: 'ok',
  text: 'done',
  blob: 'ab'.repeat(32),
  images,
  diff: '+a',
  ran: 'no',
  seen: [{ path: '/project/a.ts', sha256: 'ab'.repeat(32) }],
  usage,
  hooks,
};

const judged: JudgedCall = {
  callId: '1',
  tool: 'bash',
  input: { command: 'npm test > log', list: [1, { two: 3 }] },
  rawInput: '{"command": "npm test > log"}',
  verdict: { kind: 'ok' },
  traits: {
    effect: 'opaque',
    parallelSafe: false,
    mutating: true,
    deadlineMs: 120_000,
    spends: 'yes',
    previews: 'yes',
    group: 'fileChanges',
    shown: 'list',
  },
  facts: {
    argv: ['npm', 'test'],
    paths: ['/project/log'],
    hosts: ['example.com'],
    shape: 'npm test > log',
    needs: 'network',
    shell: {
      commands: [
        {
          words: ['npm', null],
          assignments: ['A=1'],
          writes: ['/project/log', null],
          program: '/usr/bin/npm',
          runs: 1,
          wrapped: 'yes',
        },
      ],
      unclear: null,
      indirect: 'it sources a file',
    },
    protected: ['/project/.git/config'],
    secret: ['/project/.netrc'],
    background: 'yes',
  },
  hooks,
};
const refused: JudgedCall = {
  ...judged,
  callId: '2',
  verdict: { kind: 'invalid', field: 'path', why: 'is missing' },
};
const unknown: JudgedCall = {
  ...judged,
  callId: '3',
  verdict: { kind: 'noSuchTool', known: ['read'] },
};

const changes = {
  created: 0,
  changed: 1,
  deleted: 0,
  files: [{ path: 'a.ts', change: 'changed', added: 12, removed: 3 }],
} as const;

const sample = <T extends EventType>(type: T, body: Omit<On<T>, 'type' | 'at'>): Event =>
  ({ type, at: 1_700_000_000_000, ...body }) as unknown as Event; // its type and its body belong together

const bodies: { readonly [T in EventType]: Omit<On<T>, 'type' | 'at'> } = {
  Start: {},
  UserInput: { text: 'look', mode: 'steer', images },
  RetryLast: {},
  RetryNow: {},
  CancelTurn: {},
  CancelTool: call,
  EditQueue: { items: [{ inputId: 'input-1', text: 'later', mode: 'followUp', images }] },
  CompactRequested: { instructions: 'keep the names' },
  ApproveBudget: { dimension: 'usd', limit: 5 },
  ApprovalAnswered: { ...call, answer: { kind: 'deny', reason: 'no' }, scope: 'once' },
  SettingsChanged: {
    patch: {
      ...defaultSettings,
      retrySchedule: { kind: 'exponential', baseMs: 100, factor: 2, capMs: 5_000 },
      rules: presetRules.careful,
      writtenRules: [
        {
          kind: 'command',
          words: ['npm', 'test'],
          needs: 'network',
          decision: 'allow',
          origin: 'a:1',
        },
        { kind: 'path', pattern: '*.env', touches: 'reads', decision: 'deny', origin: 'a:2' },
        { kind: 'host', pattern: '*.example.com', decision: 'ask', origin: 'a:3' },
      ],
      preset: 'careful',
      sandbox: 'workspace+net',
    },
    prices,
    grants: [
      { scope: 'shape', shape: 'edit a.ts', tool: 'edit', needs: 'outside' },
      { scope: 'prefix', words: ['npm', 'test'], tool: 'bash' },
      { scope: 'session', group: 'fileChanges', tool: 'edit' },
    ],
    stoppedAt: 1,
  },
  ShutdownRequested: { outcomes: [{ ...call, outcome }] },
  InputFailed: { message: 'the terminal is gone' },
  TextDelta: { requestId: 'req-1', text: 'so' },
  ReasoningDelta: { requestId: 'req-1', text: 'hm' },
  ToolCallDelta: { requestId: 'req-1', tool: 'bash', text: '{"c' },
  LlmCompleted: {
    requestId: 'req-1',
    message: {
      role: 'assistant',
      model: 'test/model',
      cut: false,
      parts: [
        { type: 'reasoning', text: 'hm', metadata },
        { type: 'text', text: 'so', metadata },
        { type: 'call', callId: '1', tool: 'bash', input: judged.input, rawInput: '{}', metadata },
        { type: 'call', callId: '2', tool: 'bash', input: {} },
        { type: 'call', callId: '3', tool: 'bash', input: {} },
      ],
    },
    calls: [judged, refused, unknown],
    stopReason: 'toolUse',
    usage,
    firstPieceAt: 1_699_999_999_000,
    effort: 'refused',
    hooks,
  },
  LlmFailed: {
    requestId: 'req-1',
    error: { kind: 'rateLimited', message: 'later', retryable: true, retryAfterMs: 500 },
    usage,
    coverage: 'whole',
    jitter: 0.5,
    firstPieceAt: 1_699_999_999_000,
  },
  PolicyStopped: { requestId: 'req-1', why: 'enough' },
  RequestMeasured: {
    usageId: 'req-1',
    model: 'scripted/one',
    bytes: 9_000,
    images: 1,
    outputTokensMax: 8_000,
    prices: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
    freshBytes: 300,
  },
  CallPreviewed: { ...call, preview: { kind: 'change', diff: '+a' } },
  ToolStarted: { ...call, before: 'ab'.repeat(32), after: 'cd'.repeat(32) },
  ToolProgress: { ...call, text: 'running' },
  ToolCompleted: { ...call, outcome },
  ToolsFailed: { batchId: 'batch-1', message: 'the world ended' },
  HookPrepared: {
    hookId: 'hook-1',
    effect: {
      kind: 'file',
      path: '/project/a.ts',
      before: 'ab'.repeat(32),
      after: 'cd'.repeat(32),
    },
  },
  HookCompleted: {
    hookId: 'hook-1',
    commits: [{ hash: 'abcdef0', subject: 'Change it' }],
    changedFiles: ['/project/a.ts'],
    dirty: true,
    note: 'formatted',
    warning: 'look',
    proceed: true,
    usage,
    coverage: 'partial',
    seen: [{ path: '/project/a.ts', sha256: 'ab'.repeat(32) }],
  },
  HookFailed: { hookId: 'hook-1', message: 'too slow' },
  TimerFired: { timerId: 'timer-1' },
  CompactionCompleted: { compactionId: 'compaction-1', summary: 'what was', usage, hooks },
  CompactionFailed: {
    compactionId: 'compaction-1',
    message: 'no',
    usage,
    coverage: 'whole',
    hooks,
  },
  UsageReported: { usageId: 'req-1', usage, coverage: 'whole', fault: 'it was NaN' },
  UserHooksRan: {
    moment: 'before-request',
    requestId: 'req-1',
    verdicts: hooks,
  },
  CheckpointTaken: {
    checkpoint: 'ab'.repeat(32),
    by: 'agent',
    batchId: 'batch-1',
    changes,
    leftOut: ['big.iso has 30 MB'],
  },
  RewindRequested: {
    rewindId: 'rewind-1',
    to: 3,
    direction: 'back',
    conversation: {
      kept: 0,
      messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: 'hi' }] }],
      contextTokens: 1,
    },
    files: { plan: 'cd'.repeat(32) },
    note: 'src/a.ts is as it was',
  },
  Rewound: {
    rewindId: 'rewind-1',
    checkpoint: null,
    changes,
    left: [{ path: 'b.ts', why: 'somebody else changed it' }],
    note: 'src/a.ts is as it was',
    refs: ['HEAD is at main'],
  },
  Resumed: {
    epoch: 1,
    stoppedAt: 1_700_000_000_000,
    upgrade: {
      from: 1,
      to: 2,
      session: {
        messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: 'hi' }] }],
        queue: [],
        usage: {
          inputTokens: 1,
          outputTokens: 1,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
          costUsd: 0,
          unpriced: 0,
        },
        work: { kind: 'nothing' },
        idsFrom: 3,
        at: 1_700_000_000_000,
      },
    },
    judged: [judged],
  },
};

/** By type. Those of a user have the id by which they can be sent again. */
export const samples: readonly Event[] = Object.entries(bodies).map(([type, body]) => {
  const event = sample(type as EventType, body as never);
  return Object.hasOwn(userEventCases, type) ? { ...event, clientRequestId: 'request' } : event;
});
