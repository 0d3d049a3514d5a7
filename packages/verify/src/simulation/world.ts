/**
 * Everything outside of the simulated processes: disk, time, the user, and what has happened to
 * each call. From top to bottom: the checkers, whose violations a session collects; `World`;
 * simulated time; and the situations that a set of runs must contain.
 */

import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import { Disk, type Zeros } from './disk.js';
import type { Choices } from './random-choices.js';
import type { SessionPlan } from './session-plan.js';

/** Names of the checkers; each has a test that makes it fail. */
const checkers = [
  'machine-rules',
  'acknowledged-is-durable',
  'acknowledged-is-kept',
  'replay-equals-live',
  'intent-before-effect',
  'no-second-effect',
  'no-effect-after-failed-write',
  'permission-of-what-runs',
  'valid-request',
  'one-request-at-once',
  'input-exactly-once',
  'spend-within-limit',
  'timers-keep-their-delay',
  'commit-once',
  'result-is-true',
  'session-opens',
  'session-is-listed',
  'damage-is-refused',
  'one-writer',
  'own-journal',
  'reserve-is-used',
  'known-end',
  'settles',
] as const;
type Checker = (typeof checkers)[number];

export type Violation = { readonly checker: Checker; readonly text: string };

/** The history of one tool call, across processes. */
export type CallRecord = {
  readonly tool: string;
  /** JSON of the input that the policy judged. */
  readonly input: string;
  approval: 'none' | 'asked' | 'allowed' | 'denied';
  /** Number of the process that asked for the approval, and of the one that ran it last; or 0. */
  askedIn: number;
  ranIn: number;
  /** Its ToolStarted is durable. */
  isStarted: boolean;
  /** How often it took effect. */
  effects: number;
  /** The text of its result, once it has ended. */
  result: string | null;
  /** Its ToolCompleted is durable. */
  isCompleted: boolean;
};

type InputRecord = {
  readonly text: string;
  isAcknowledged: boolean;
  /** Removed by the user, or handed back to the user. */
  isWithdrawn: boolean;
};

/** The world of one session, and the facts that the checkers rely on. */
export class World {
  readonly choices: Choices;
  readonly plan: SessionPlan;
  readonly timeline = new Timeline();
  readonly disk = new Disk();
  readonly situations = new Set<Situation>();
  readonly violations: Violation[] = [];
  /** A readable log; null if it is not needed. */
  readonly trace: string[] | null;
  /** Files of the workspace: path and lines. Their writes are durable at once. */
  readonly files = new Map<string, string>();
  readonly calls = new Map<string, CallRecord>();
  readonly inputs = new Map<string, InputRecord>();
  /** Calls whose changes were committed, by their ids. */
  readonly commits = new Map<string, number>();
  /** Acknowledged events and the states after them, by seq. */
  readonly acknowledged = new Map<number, { readonly event: Event; readonly state: State }>();
  /** Operations of the disk so far, and its faults that are still to come. */
  operations = 0;
  diskFaultsLeft: number;
  /** Number of processes so far. */
  processes = 0;
  /** Acts of the user so far. */
  acts = 0;
  /** The user has sent the last input, after the faults have ended. */
  hasAskedLast = false;
  isLimitRaised = false;
  /** Delays of timers when they were first set. */
  readonly delays = new Map<string, number>();
  /** The session's creation has been acknowledged. */
  isCreated = false;
  /** Zeros that power cuts wrote at the end of the journal. */
  readonly zeros = new Set<Zeros>();
  /** Faults have ended: the session must settle. */
  isHealed = false;
  /** The wall clock is ahead of the timeline by this much. */
  #wallOffset = 1_700_000_000_000;
  #names = 0;

  constructor(choices: Choices, plan: SessionPlan, trace: string[] | null) {
    this.choices = choices;
    this.plan = plan;
    this.diskFaultsLeft = plan.diskFault?.length ?? 0;
    this.trace = trace;
  }

  /** Somebody else changes a file of the workspace. */
  changeFile(): void {
    for (const [path, content] of this.files)
      this.files.set(path, `${content}${this.name('foreign')}\n`);
  }

  wallNow(): number {
    return Math.round(this.#wallOffset + this.timeline.now);
  }

  /** Sets the clock of the wall. Never before 1970: Linux refuses that (`settimeofday`). */
  setWallClock(byMs: number): void {
    this.#wallOffset = Math.max(this.#wallOffset + byMs, -this.timeline.now);
  }

  /** The user's last input is durable. */
  isLastTaken(): boolean {
    return this.hasAskedLast && [...this.inputs.values()].at(-1)?.isAcknowledged === true;
  }

  /** A name that no other thing of the session has. */
  name(prefix: string): string {
    this.#names += 1;
    return `${prefix}${this.#names}`;
  }

  violate(checker: Checker, text: string): void {
    this.log(`VIOLATION ${checker}: ${text}`);
    this.violations.push({ checker, text });
  }

  /** The session has had a situation that a set of runs must contain. */
  noteSituation(situation: Situation): void {
    this.situations.add(situation);
  }

  log(text: string): void {
    this.trace?.push(`${(this.timeline.now / 1000).toFixed(3)} s  ${text}`);
  }
}

/** A planned callback. */
type Planned = {
  readonly at: number;
  /** Decides between callbacks of the same time: first planned, first run. */
  readonly index: number;
  run: (() => void) | null;
  /** Its process: after its end nothing runs. */
  readonly owner: Owner | null;
};

type Owner = { readonly isDead: boolean };

const isBefore = (one: Planned, other: Planned): boolean =>
  one.at < other.at || (one.at === other.at && one.index < other.index);

/**
 * Resolves when every promise that could settle has settled: Node runs this queue after that of
 * promises.
 */
const promisesSettled = (): Promise<true> =>
  new Promise((resolve) => process.nextTick(resolve, true));

/** Simulated time: one heap of planned callbacks, by time. Time jumps from one to the next. */
class Timeline {
  /** Milliseconds since the simulation began. Never goes back. */
  now = 0;
  #planned = 0;
  /** A binary heap. */
  readonly #heap: Planned[] = [];

  /** Runs `run` after `delayMs`; the returned function cancels that. */
  after(delayMs: number, run: () => void, owner: Owner | null = null): () => void {
    const planned = this.plan(delayMs, run, owner);
    return () => {
      planned.run = null;
    };
  }

  /** Like `after`, for callbacks that are never cancelled. */
  plan(delayMs: number, run: () => void, owner: Owner | null): Planned {
    const planned: Planned = {
      at: this.now + Math.max(0, delayMs),
      index: this.#planned++,
      run,
      owner,
    };
    this.#heap.push(planned);
    this.#rise(this.#heap.length - 1);
    return planned;
  }

  /** Runs the next callback and settles its promises. False if nothing is planned. */
  advance(): Promise<true> | false {
    for (;;) {
      const next = this.#takeFirst();
      if (next === undefined) return false;
      if (next.run === null) continue;
      this.now = Math.max(this.now, next.at);
      if (next.owner?.isDead !== true) next.run();
      return promisesSettled();
    }
  }

  /** Time passes at once, as in a call that blocks. */
  pass(durationMs: number): void {
    this.now += durationMs;
  }

  #takeFirst(): Planned | undefined {
    const [first] = this.#heap;
    const last = this.#heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#sink();
    }
    return first;
  }

  #rise(from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  #sink(): void {
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const [one, other] = [this.#heap[left], this.#heap[left + 1]];
      if (one === undefined) return;
      const child = other !== undefined && isBefore(other, one) ? left + 1 : left;
      if (!this.#swapIfBefore(child, index)) return;
      index = child;
    }
  }

  #swapIfBefore(lower: number, upper: number): boolean {
    const [one, other] = [this.#heap[lower], this.#heap[upper]];
    if (one === undefined || other === undefined || !isBefore(one, other)) return false;
    this.#heap[lower] = other;
    this.#heap[upper] = one;
    return true;
  }
}

/**
 * Situations that must occur in every larger set of runs: without them the set has shown nothing.
 */
export const situations = [
  'crash while the session is created',
  'crash while the session is opened',
  'crash while the model is called',
  'crash while waiting to retry',
  'crash while compacting',
  'crash while a hook runs',
  'crash while committing',
  'crash while an approval is open',
  'crash between intent and effect',
  'crash between effect and result',
  'crash at rest',
  'power cut with unsynced data',
  'torn tail',
  'acknowledged lines damaged',
  'zeros after a power cut',
  'ENOSPC at a result',
  'ENOSPC while opening',
  'EIO at a sync',
  'EMFILE at an open',
  'EPIPE at a watcher',
  'session ended by the disk and opened again',
  'clock set back while waiting to retry',
  'clock set forward while waiting to retry',
  'rate limited',
  'server failed',
  'reply broke off',
  'model fell silent',
  'malformed reply',
  'usage that can not be counted',
  'context overflow',
  'usage after an abort',
  'limit reached',
  'another model took over',
  'model passed over',
  'first model asked again',
  'crash while another model is called',
  'limit reached by another model',
  'input while busy',
  'turn cancelled while tools ran',
  'tool out of time',
  'tool that ignores its signal',
  'tool that throws',
  'calls at the same time',
  'approval answered after a resume',
  'opaque call lost',
  'probeable call run again',
  'probeable call found done',
  'probeable call found changed',
  'pure call run again',
  'compaction completed',
  'commit made',
  'resume after a clean end',
  'resume from a snapshot',
  'second process refused',
  'entries in reserved space',
  'journal changed by another program',
  'a line without its line feed',
  'sync failed in another thread',
] as const;
export type Situation = (typeof situations)[number];
