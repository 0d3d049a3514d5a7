import * as g from '../../../../test/kit/agent/given.js';
import type { Action } from '../../src/machine/action.js';
import type { Event } from '../../src/machine/event.js';
import type { Usage } from '../../src/machine/settings.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { callKey, type SpendingChecker } from './spending-checker.js';

/** A world in which everything costs: it answers what the machine has begun, late, twice, in vain, or not at all. */

/** Mulberry32: the same numbers for the same seed. */
export const createRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

type Running = {
  readonly batchId: string;
  readonly callId: string;
  readonly spends: boolean;
  started: boolean;
};

const explore = (callId: string): JudgedCall => {
  const call = g.grep(callId);
  return { ...call, tool: 'explore', traits: { ...call.traits, spends: 'yes' } };
};
const BATCHES: readonly (readonly JudgedCall[])[] = [
  [explore('1'), explore('2'), explore('3'), explore('4'), explore('5')],
  [g.edit('1'), explore('2'), g.grep('3'), explore('4')],
  [explore('1'), g.edit('2')],
  [g.grep('1'), g.grep('2')],
];

/** Something that can happen now; null where it can't. */
type Maybe = () => Event | null;

export class SpendingWorld {
  readonly #random: () => number;
  readonly #checker: SpendingChecker;
  readonly #timers = new Set<string>();
  #request: string | null = null;
  #compaction: string | null = null;
  #hook: string | null = null;
  #running: Running[] = [];
  #asked: { batchId: string; callId: string }[] = [];
  /** What was given up and may still send a bill: requests and compactions by id, calls. */
  #billable: string[] = [];
  #late: Running[] = [];
  #epoch = 1;
  #at = g.NOW;

  constructor(random: () => number, checker: SpendingChecker) {
    this.#random = random;
    this.#checker = checker;
  }

  /** The next event: mostly an answer to what is going on. The clock jumps now and then. */
  next(): Event {
    this.#at += this.#random() < 0.02 ? Math.round((this.#random() - 0.5) * 7_200_000) : 10;
    for (;;) {
      const list = this.#random() < 0.75 ? this.#answers : this.#others;
      const event = list[Math.floor(this.#random() * list.length)]?.() ?? null;
      if (event !== null) return event;
    }
  }

  /** Sees what came of an event. */
  see(event: Event, actions: readonly Action[]): void {
    this.#settle(event);
    for (const action of actions) this.#perform(action);
    if (event.type === 'Resumed') this.#late = [];
  }

  #settle(event: Event): void {
    if (event.type === 'LlmCompleted' || event.type === 'LlmFailed') {
      if (event.requestId === this.#request) this.#request = null;
      if (event.usage === null) this.#billable.push(event.requestId);
    }
    if (event.type === 'CompactionCompleted' || event.type === 'CompactionFailed')
      this.#compaction = null;
    if (event.type === 'HookCompleted' || event.type === 'HookFailed') this.#hook = null;
    if (event.type === 'TimerFired') this.#timers.delete(event.timerId);
    if (event.type === 'ToolStarted')
      for (const call of this.#running) if (isOf(call, event)) call.started = true;
    if (event.type === 'ToolCompleted') {
      this.#running = this.#running.filter((call) => !isOf(call, event));
      this.#late = this.#late.filter((call) => !isOf(call, event));
    }
    if (event.type === 'ApprovalAnswered')
      this.#asked = this.#asked.filter((call) => !isOf(call, event));
    if (event.type === 'ToolsFailed') this.#running = [];
    if (event.type === 'Resumed') this.#die();
  }

  /** Calls that had begun are settled by the runtime; everything else is begun again, or is gone. */
  #die(): void {
    [this.#request, this.#compaction, this.#hook] = [null, null, null];
    this.#timers.clear();
    this.#running = this.#running.filter(({ started }) => started);
    this.#asked = [];
  }

  #perform(action: Action): void {
    switch (action.type) {
      case 'SendLlmRequest':
        this.#request = action.requestId;
        break;
      case 'AbortLlmRequest':
        this.#request = null;
        this.#billable.push(action.requestId);
        break;
      case 'StartCompaction':
        this.#compaction = action.compactionId;
        break;
      case 'AbortCompaction':
        this.#compaction = null;
        this.#billable.push(action.compactionId);
        break;
      case 'ExecuteTools':
        for (const { callId, traits } of action.calls)
          this.#running.push({
            batchId: action.batchId,
            callId,
            spends: traits.spends === 'yes',
            started: false,
          });
        break;
      case 'CancelTools':
        if (action.force) this.#force(action);
        break;
      case 'RequestApproval':
        this.#asked.push({ batchId: action.batchId, callId: action.call.callId });
        break;
      case 'WithdrawApproval':
        this.#asked = this.#asked.filter((call) => !isOf(call, action));
        break;
      case 'RunHook':
        this.#hook = action.hookId;
        break;
      case 'AbortHook':
        this.#hook = null;
        break;
      case 'ScheduleTimer':
        this.#timers.add(action.timerId);
        break;
      case 'CancelTimer':
        this.#timers.delete(action.timerId);
        break;
      default:
        break;
    }
  }

  #force({
    batchId,
    callIds,
  }: {
    readonly batchId: string;
    readonly callIds: readonly string[];
  }): void {
    const isForced = (call: Running): boolean =>
      call.batchId === batchId && callIds.includes(call.callId);
    this.#late.push(...this.#running.filter((call) => isForced(call) && call.spends));
    this.#running = this.#running.filter((call) => !isForced(call));
  }

  // ---- What costs ----

  #price(): Usage {
    const roll = this.#random();
    const costUsd = roll < 0.1 ? 0 : roll < 0.9 ? 0.2 * this.#random() : 1.5;
    return { ...g.usage(costUsd, Math.round(1_000 * costUsd)), outputTokens: 7 };
  }

  /** A call spends what it was handed, and at most one reply more. */
  #spentBy(call: Running): Usage {
    const handed = this.#checker.handedTo(callKey(call.batchId, call.callId));
    const all = this.#random() < 0.5;
    const part = (most: number): number => Math.min(all ? most : most * this.#random(), 50_000);
    return g.usage(part(handed.usd) + 0.05 * this.#random(), Math.floor(part(handed.tokens)) + 20);
  }

  #outcomeOf(call: Running | undefined): Event | null {
    if (call === undefined) return null;
    const { batchId, callId } = call;
    const statuses = ['ok', 'ok', 'failed', 'timedOut', 'cancelled', 'lost'] as const;
    const status = statuses[Math.floor(this.#random() * statuses.length)] ?? 'ok';
    const usage = call.spends && status !== 'lost' ? { usage: this.#spentBy(call) } : {};
    return {
      type: 'ToolCompleted',
      at: this.#at,
      batchId,
      callId,
      outcome: { status, text: 'x', ...usage },
    };
  }

  readonly #answers: readonly Maybe[] = [
    () => this.#reply({ text: 'yes' }),
    () => this.#reply({ calls: this.#oneOf(BATCHES) ?? [] }),
    () => this.#reply({ calls: this.#oneOf(BATCHES) ?? [] }),
    () => this.#fail({ usage: this.#price() }),
    () => this.#fail({ kind: 'contextOverflow', retryable: false, usage: this.#price() }),
    () =>
      this.#compaction === null
        ? null
        : {
            ...at(this.#at),
            type: 'CompactionCompleted',
            compactionId: this.#compaction,
            summary: 's',
            usage: this.#price(),
          },
    () =>
      this.#compaction === null
        ? null
        : {
            ...at(this.#at),
            type: 'CompactionFailed',
            compactionId: this.#compaction,
            message: 'no',
            usage: this.#price(),
          },
    () => this.#outcomeOf(this.#oneOf(this.#running)),
    () => this.#outcomeOf(this.#oneOf(this.#running)),
    () => {
      const call = this.#oneOf(this.#running.filter(({ started }) => !started));
      return call === undefined
        ? null
        : { ...at(this.#at), type: 'ToolStarted', batchId: call.batchId, callId: call.callId };
    },
    () => {
      const call = this.#oneOf(this.#asked);
      return call === undefined
        ? null
        : {
            ...at(this.#at),
            type: 'ApprovalAnswered',
            ...call,
            answer: { kind: 'allow' },
            scope: 'once',
          };
    },
    () =>
      this.#hook === null
        ? null
        : { ...hookDone, at: this.#at, hookId: this.#hook, usage: this.#price() },
    () => this.#timer(),
  ];

  readonly #others: readonly Maybe[] = [
    () => ({ ...at(this.#at), type: 'Start' }),
    () => ({ ...at(this.#at), type: 'UserInput', text: 'go on', mode: 'steer' }),
    () => ({ ...at(this.#at), type: 'UserInput', text: 'go on', mode: 'followUp' }),
    () => ({ ...at(this.#at), type: 'RetryLast' }),
    () => ({ ...at(this.#at), type: 'RetryNow' }),
    () => ({ ...at(this.#at), type: 'CompactRequested' }),
    () => (this.#random() < 0.5 ? { ...at(this.#at), type: 'CancelTurn' } : null),
    () => {
      const call = this.#oneOf(this.#running);
      return call === undefined
        ? null
        : { ...at(this.#at), type: 'CancelTool', batchId: call.batchId, callId: call.callId };
    },
    () => this.#outcomeOf(this.#oneOf(this.#late)),
    () => {
      const usageId = this.#oneOf(this.#billable);
      return usageId === undefined
        ? null
        : { ...at(this.#at), type: 'UsageReported', usageId, usage: this.#price() };
    },
    () =>
      this.#random() < 0.3 ? { ...at(this.#at), type: 'Resumed', epoch: ++this.#epoch } : null,
    () => (this.#random() < 0.05 ? { ...at(this.#at), type: 'ShutdownRequested' } : null),
  ];

  #reply(said: Parameters<typeof g.completed>[0]): Event | null {
    if (this.#request === null) return null;
    const event = g.completed({ ...said, requestId: this.#request, usage: this.#price() });
    return { ...event({ name: 'Ready' } as never), at: this.#at };
  }

  #fail(failure: Parameters<typeof g.fails>[0]): Event | null {
    if (this.#request === null) return null;
    const event = g.eventOf(g.fails({ ...failure, requestId: this.#request }), {
      name: 'Ready',
    } as never);
    return { ...event, at: this.#at };
  }

  #timer(): Event | null {
    const timerId = this.#oneOf([...this.#timers]);
    return timerId === undefined ? null : { ...at(this.#at), type: 'TimerFired', timerId };
  }

  #oneOf<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.#random() * list.length)];
  }
}

const at = (time: number): { readonly at: number } => ({ at: time });
const isOf = (
  call: { readonly batchId: string; readonly callId: string },
  event: { readonly batchId: string; readonly callId: string },
): boolean => call.batchId === event.batchId && call.callId === event.callId;
const hookDone = {
  type: 'HookCompleted',
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
} as const;
