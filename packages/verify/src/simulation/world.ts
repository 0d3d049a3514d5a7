import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import { Disk, type Zeros } from './disk/disk.js';
import type { Choices } from './random-choices.js';
import type { Situation } from './required-situations.js';
import type { SessionPlan } from './session-plan.js';
import { Timeline } from './timeline.js';

/** Names of the checkers; each has a test that makes it fail. */
export const checkers = [
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
export type Checker = (typeof checkers)[number];

export type Violation = { readonly checker: Checker; readonly text: string };

/** What happened to one tool call, over all lives. */
export type CallRecord = {
  readonly tool: string;
  /** JSON of the input that the policy judged. */
  readonly input: string;
  approval: 'none' | 'asked' | 'allowed' | 'denied';
  /** The process that asked for the approval, and the one that ran it last. */
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

export type InputRecord = {
  readonly text: string;
  isAcknowledged: boolean;
  /** Removed by the user, or handed back to the user. */
  isWithdrawn: boolean;
};

/** Everything outside of the simulated processes, and what is known for certain about the session. */
export class World {
  readonly choices: Choices;
  readonly plan: SessionPlan;
  readonly timeline = new Timeline();
  readonly disk = new Disk();
  readonly situations = new Set<Situation>();
  readonly violations: Violation[] = [];
  /** What happened, for people; null if nobody reads it. */
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
  /** Processes so far. */
  lives = 0;
  /** Acts of the user so far. */
  acts = 0;
  /** The user's last input, after the faults have ended. */
  hasAskedLast = false;
  isLimitRaised = false;
  /** Tokens of the largest request. */
  requestTokens = 0;
  /** Requests that had been given up, and had not said what they cost, when the last request went out. */
  uncountedRequests = 0;
  /** Delays of timers when they were first set. */
  readonly delays = new Map<string, number>();
  /** The session's creation has been acknowledged. */
  isCreated = false;
  /** What the power cuts have left in the journal's last group. */
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
    for (const [path, content] of this.files) this.files.set(path, `${content}${this.name('foreign')}\n`);
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
    this.say(`VIOLATION ${checker}: ${text}`);
    this.violations.push({ checker, text });
  }

  meet(situation: Situation): void {
    this.situations.add(situation);
  }

  say(text: string): void {
    this.trace?.push(`${(this.timeline.now / 1000).toFixed(3)} s  ${text}`);
  }
}
