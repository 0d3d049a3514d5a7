/**
 * Where the time and the money of a session went, counted from its steps. The figures themselves
 * are types of session-figures.ts. From top to bottom: `FigureCollector`; `SpanLog`, the spans of
 * work; `RequestLog`, the requests to the model; and `ToolLog`, the calls of tools.
 */

import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import { initialState } from '@pawl/agent/machine/machine';
import { addUsage, isSpendingId, spendingId, toldUsage } from '@pawl/agent/machine/moves/request';
import {
  defaultSettings,
  nothingSpent,
  sumUsage,
  totalTokens,
  type Usage,
  type UsageTotals,
} from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { Header } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session';
import {
  type Activity,
  type ActivityKind,
  type CallSpending,
  findActivities,
  type ProcessGap,
  type RequestFigures,
  SessionClock,
  type SessionFigures,
  type StateFigures,
  spanText,
  type TimeSpan,
  type TimeSpanKind,
  type ToolFigures,
} from './session-figures.js';

/**
 * A step of a journal, or of a session that runs. `seq`: the number of its entry in the journal;
 * null for a delta, a piece of a streamed reply, which is not stored.
 */
export type FigureStep = Pick<Stepped, 'seq' | 'event' | 'state' | 'actions' | 'path'>;

/**
 * Collects the figures of one session from its steps, from the first on. Deltas of a running
 * session tell when a reply began; without them the journal does, if it says so. Figures of a
 * journal and of the live session are otherwise equal.
 */
export class FigureCollector {
  readonly #clock = new SessionClock();
  readonly #spans = new SpanLog();
  readonly #requests = new RequestLog();
  readonly #tools = new ToolLog();
  /** How often each state was entered, and for how long. */
  readonly #visits = new Map<string, { entered: number; totalMs: number }>();
  readonly #gaps: ProcessGap[] = [];
  readonly #spending: CallSpending[] = [];
  /** The tool of each call that has started, by `batch/call`. */
  readonly #toolNames = new Map<string, string>();
  /** Time of batches in which a tool ran, and in which only an approval was waited for. */
  readonly #batches = { tool: 0, approval: 0 };
  readonly #parent: Header['parent'];
  /** What goes on in `#state`. */
  #activities: readonly Activity[] = [];
  #hookUsage: UsageTotals = nothingSpent;
  /**
   * Before the first event every session is in the same state, up to its settings, which no figure
   * needs.
   */
  #state: State = initialState({ ...defaultSettings, model: '', workspace: '' });
  #seq = 0;
  #startedAt: number | null = null;
  /** A change of settings, until the next step says to which process it belongs. */
  #held: FigureStep | null = null;

  constructor({ parent }: Pick<Header, 'parent'>) {
    this.#parent = parent;
  }

  /** Adds a step; call it for all, in order. */
  see(step: FigureStep): void {
    if (step.seq === null) {
      this.#noteFirstPiece(step);
      return;
    }
    const held = this.#held;
    this.#held = null;
    // A change of settings waits for the next step: made while the session is opened, it belongs to
    // the new process.
    const isFirst = step.event.type === 'Resumed' && this.#isFirstOfProcess(step);
    if (held !== null && isFirst && step.event.at - held.event.at < SAME_OPENING_MS) {
      this.#beginProcess(held, step.seq);
      this.#take(step);
      return;
    }
    if (held !== null) this.#take(held);
    if (step.event.type === 'SettingsChanged') this.#held = step;
    else if (isFirst) this.#beginProcess(step, step.seq);
    else this.#take(step);
  }

  /**
   * The figures so far; a change of settings that was held back is added first. `now`: the time,
   * for a session that runs; without it everything ends with the last event.
   */
  figures(now?: number): SessionFigures {
    if (this.#held !== null) this.#take(this.#held);
    this.#held = null;
    const sinceMs = now === undefined ? 0 : this.#clock.since(now);
    const elapsedMs = this.#clock.elapsed + sinceMs;
    const spans = this.#spans.spans(elapsedMs);
    const batches = this.#batchesAfter(sinceMs);
    return {
      startedAt: this.#startedAt ?? 0,
      elapsedMs,
      clockSetBack: this.#clock.setBack,
      seq: this.#seq,
      state: this.#state.name,
      turns: this.#state.session.counters.turn,
      spans,
      time: divideTime(spans, elapsedMs, batches),
      requests: this.#requests.rows(
        elapsedMs,
        (id) => this.#findOpenRequest(id)?.firstPieceMs ?? null,
      ),
      tools: this.#tools.rows(spans, this.#spending),
      states: this.#stateRows(sinceMs),
      gaps: [...this.#gaps],
      usage: toldUsage(this.#state),
      spending: [...this.#spending],
      hookUsage: this.#hookUsage,
    };
  }

  /** The machine counts the processes that have opened the session as epochs. */
  #isFirstOfProcess({ state }: FigureStep): boolean {
    return state.session.epoch > this.#state.session.epoch;
  }

  #findOpenRequest(id: string): ReturnType<SpanLog['find']> {
    return this.#spans.find('request', id) ?? this.#spans.find('compaction', id);
  }

  /** A delta that is not in the journal: it only tells when the reply began. */
  #noteFirstPiece({ event }: FigureStep): void {
    if (!('requestId' in event) || event.requestId === null) return;
    const open = this.#findOpenRequest(event.requestId);
    if (open !== undefined) open.firstPieceMs ??= this.#clock.elapsed + this.#clock.since(event.at);
  }

  /** The journal itself says when a reply that has ended began. */
  #divideReply(event: Event, { atMs }: Moment): void {
    if (event.type !== 'LlmCompleted' && event.type !== 'LlmFailed') return;
    const open = this.#findOpenRequest(event.requestId);
    if (open === undefined || event.firstPieceAt === undefined) return;
    // Counted back from the end: the clock may have been set since the request was sent.
    open.firstPieceMs = Math.max(open.from.atMs, atMs - Math.max(0, event.at - event.firstPieceAt));
  }

  /**
   * The first step of a new process: the time before it belongs to none. `resumedSeq`: the entry of
   * `Resumed`, which may be the one after it.
   */
  #beginProcess(step: FigureStep, resumedSeq: number): void {
    const before = this.#now();
    const state = this.#state.name;
    const doing = this.#activities.filter(({ kind }) => kind !== 'idle').map(spanText);
    this.#tick(step, 'between');
    const next = this.#getMoment(step);
    // a fork begins with entries that were copied from its parent
    const copied = this.#parent !== null && this.#parent.seq === before.seq;
    const cause = copied ? 'forked' : state === 'ShuttingDown' ? 'closed' : 'crashed';
    this.#gaps.push({
      cause,
      seq: resumedSeq,
      startMs: before.atMs,
      endMs: next.atMs,
      state,
      doing,
    });
    const interrupted = this.#spans.interrupt(before, next, cause);
    // A request that goes on in the new process has not ended.
    const started = this.#apply(step, next);
    const again = new Set(started.map(({ activity }) => activity.id));
    const dropped = interrupted.filter(({ activity }) => !again.has(activity.id));
    this.#requests.end(dropped, step.event, before);
  }

  /** A step of the process that took the one before it. */
  #take(step: FigureStep): void {
    this.#tick(step, 'sameProcess');
    this.#apply(step, this.#getMoment(step));
  }

  #now(): Moment {
    return { seq: this.#seq, atMs: this.#clock.elapsed };
  }

  #getMoment({ seq }: FigureStep): Moment {
    return { seq: seq ?? this.#seq, atMs: this.#clock.elapsed };
  }

  /** The time since the event before goes to the state that lasted until now. */
  #tick({ event }: FigureStep, passed: 'sameProcess' | 'between'): void {
    this.#startedAt ??= event.at;
    const passedMs = this.#clock.advance(event.at);
    if (passed === 'between') return;
    this.#getVisits(this.#state.name).totalMs += passedMs;
    const doing = this.#batchActivity();
    if (doing !== null) this.#batches[doing] += passedMs;
  }

  /** What the time in a batch of calls counts as; null outside of one. */
  #batchActivity(): 'tool' | 'approval' | null {
    if (this.#state.name !== 'ExecutingTools') return null;
    if (this.#activities.some(({ kind }) => kind === 'tool')) return 'tool';
    return this.#activities.some(({ kind }) => kind === 'approval') ? 'approval' : null;
  }

  /** The times of batches, with the milliseconds since the last event. */
  #batchesAfter(sinceMs: number): { readonly tool: number; readonly approval: number } {
    const doing = this.#batchActivity();
    const { tool, approval } = this.#batches;
    return {
      tool: tool + (doing === 'tool' ? sinceMs : 0),
      approval: approval + (doing === 'approval' ? sinceMs : 0),
    };
  }

  #getVisits(state: string): { entered: number; totalMs: number } {
    const known = this.#visits.get(state) ?? { entered: 0, totalMs: 0 };
    this.#visits.set(state, known);
    return known;
  }

  #stateRows(sinceMs: number): readonly StateFigures[] {
    const rows = [...this.#visits].map(([state, { entered, totalMs }]) => ({
      state,
      entered,
      totalMs: totalMs + (state === this.#state.name ? sinceMs : 0),
    }));
    return rows.sort((left, right) => right.totalMs - left.totalMs || right.entered - left.entered);
  }

  /** Counts a step that happened at `moment`. Returns the work that it started. */
  #apply(step: FigureStep, moment: Moment): readonly OpenActivity[] {
    const { event, state, path, actions } = step;
    this.#divideReply(event, moment);
    const before = this.#state;
    this.#state = state;
    this.#seq = moment.seq;
    // Other edges stay in their state.
    for (const { kind, to } of path) if (kind === 'go') this.#getVisits(to).entered += 1;
    this.#activities = findActivities(state); // what goes on in it: a request, calls, a wait
    const { started, ended } = this.#spans.change(this.#activities, moment);
    this.#requests.end(ended, event, moment);
    this.#requests.begin(started, state, event.at, moment);
    for (const { activity } of started)
      if (activity.kind === 'tool') this.#toolNames.set(activity.id, activity.name);
    this.#tools.countEnded(actions);
    if (isCounted(before, state)) this.#count(step);
    return started;
  }

  /** Adds the usage of a step to the requests, the hook or the calls that reported it. */
  #count({ event }: FigureStep): void {
    for (const { id, usage } of usageReports(event)) {
      if (this.#requests.count(id, usage)) continue;
      if (!isSpendingId(id)) {
        this.#hookUsage = addUsage(this.#hookUsage, usage);
        continue;
      }
      const slash = id.indexOf('/');
      this.#spending.push({
        batchId: id.slice(0, slash),
        callId: id.slice(slash + 1),
        tool: this.#toolNames.get(id) ?? '',
        at: event.at,
        usage,
      });
    }
  }
}

/**
 * A change of settings so shortly before `Resumed` belongs to the new process, which makes both.
 */
const SAME_OPENING_MS = 100;

/** Usage reports of an event, by their ids. */
export const usageReports = (
  event: Event,
): readonly { readonly id: string; readonly usage: Usage }[] => {
  const report = (id: string, usage: Usage | null | undefined) =>
    usage === null || usage === undefined ? [] : [{ id, usage }];
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return report(event.requestId, event.usage);
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return report(event.compactionId, event.usage);
    case 'HookCompleted':
      return report(event.hookId, event.usage);
    case 'UsageReported':
      return report(event.usageId, event.usage);
    case 'ToolCompleted':
      return report(spendingId(event.batchId, event.callId), event.outcome.usage);
    case 'ShutdownRequested':
      return (event.outcomes ?? []).flatMap(({ batchId, callId, outcome }) =>
        report(spendingId(batchId, callId), outcome.usage),
      );
    default:
      return [];
  }
};

/** True if the session counted usage in the step: it ignores repeated and unassigned usage. */
const isCounted = ({ session: { usage: before } }: State, { session: { usage } }: State): boolean =>
  totalTokens(before) !== totalTokens(usage) ||
  before.costUsd !== usage.costUsd ||
  before.unpriced !== usage.unpriced;

// ---- Spans of work ----

/** A moment of a step: its journal line and its place on the axis. */
type Moment = { readonly seq: number; readonly atMs: number };

/** Work in progress since `from`. */
type OpenActivity = {
  readonly activity: Activity;
  readonly from: Moment;
  /** When the first piece of a request's reply came, if that is known. */
  firstPieceMs: number | null;
  /** The number of the last change that found it still going on. */
  seenIn: number;
};

/** The end of a span; `seq` is null while the work is open. */
type Closing = Pick<TimeSpan, 'ending'> & { readonly seq: number | null; readonly atMs: number };

/** The spans of finished or open work; two for a request whose first piece is known. */
const spansFrom = (
  { activity: { kind, id, name, about }, from, firstPieceMs }: OpenActivity,
  { ending, atMs: endMs, seq: endSeq }: Closing,
): readonly TimeSpan[] => {
  const { atMs: startMs, seq: startSeq } = from;
  const named = { id, name, about, startSeq, endSeq };
  if (firstPieceMs === null) return [{ kind, startMs, endMs, ending, ...named }];
  const splitMs = Math.min(Math.max(firstPieceMs, startMs), endMs);
  return [
    { kind: 'waiting', startMs, endMs: splitMs, ending: 'done', ...named },
    { kind: 'streaming', startMs: splitMs, endMs, ending, ...named },
  ];
};

/** The spans of a session: work opens and closes as the states say. */
class SpanLog {
  readonly #closed: TimeSpan[] = [];
  /** By the id alone: no state has two activities with one id. */
  readonly #open = new Map<string, OpenActivity>();
  #changes = 0;

  /** Work of the kind with the id, if it is going on. */
  find(kind: ActivityKind, id: string): OpenActivity | undefined {
    const open = this.#open.get(id);
    return open?.activity.kind === kind ? open : undefined;
  }

  get open(): readonly OpenActivity[] {
    return [...this.#open.values()];
  }

  /** Closes activities that have ended, and opens those that have started. Returns both. */
  change(
    now: readonly Activity[],
    at: Moment,
  ): { readonly started: readonly OpenActivity[]; readonly ended: readonly OpenActivity[] } {
    this.#changes += 1;
    const started: OpenActivity[] = [];
    for (const activity of now) {
      const open = this.find(activity.kind, activity.id);
      if (open !== undefined) open.seenIn = this.#changes;
      else started.push({ activity, from: at, firstPieceMs: null, seenIn: this.#changes });
    }
    const ended: OpenActivity[] = [];
    for (const open of this.#open.values()) if (open.seenIn < this.#changes) ended.push(open);
    for (const one of ended) this.#close(one, { seq: at.seq, atMs: at.atMs, ending: 'done' });
    for (const one of started) this.#open.set(one.activity.id, one);
    return { started, ended };
  }

  /**
   * Closes everything, since the process has ended at `at`, and adds the time until the next one.
   * Returns what it closed.
   */
  interrupt(at: Moment, next: Moment, about: string): readonly OpenActivity[] {
    const interrupted = this.open;
    for (const one of interrupted) this.#close(one, { ...at, ending: 'interrupted' });
    this.#closed.push({
      kind: 'between',
      id: '',
      name: 'processes',
      about,
      startMs: at.atMs,
      startSeq: at.seq,
      endMs: next.atMs,
      endSeq: next.seq,
      ending: 'done',
    });
    return interrupted;
  }

  /** All spans by their start; open work reaches to `nowMs`. */
  spans(nowMs: number): readonly TimeSpan[] {
    const going = this.open.flatMap((one) =>
      spansFrom(one, { seq: null, atMs: nowMs, ending: 'open' }),
    );
    return [...this.#closed, ...going].sort((left, right) => left.startMs - right.startMs);
  }

  #close(one: OpenActivity, to: Closing): void {
    this.#open.delete(one.activity.id);
    this.#closed.push(...spansFrom(one, to));
  }
}

const NO_TIME: Readonly<Record<TimeSpanKind, number>> = {
  waiting: 0,
  streaming: 0,
  request: 0,
  retry: 0,
  compaction: 0,
  approval: 0,
  tool: 0,
  hook: 0,
  idle: 0,
  between: 0,
};

/**
 * The axis divided among the kinds, each moment counted once. `batches`: that of tools and
 * approvals.
 */
const divideTime = (
  spans: readonly TimeSpan[],
  elapsedMs: number,
  batches: { readonly tool: number; readonly approval: number },
): Readonly<Record<TimeSpanKind | 'other', number>> => {
  const time = { ...NO_TIME, ...batches };
  for (const { kind, startMs, endMs } of spans)
    if (kind !== 'tool' && kind !== 'approval') time[kind] += endMs - startMs;
  const known = Object.values(time).reduce((sum, one) => sum + one, 0);
  return { ...time, other: Math.max(0, elapsedMs - known) };
};

// ---- Requests to the model ----

type Row = { -readonly [K in keyof RequestFigures]: RequestFigures[K] };

/** How the event ends the request with the id, and why. */
const describeEnding = (event: Event, id: string): Pick<RequestFigures, 'ending' | 'why'> => {
  if (event.type === 'LlmCompleted' && event.requestId === id)
    return { ending: 'completed', why: event.stopReason };
  if (event.type === 'LlmFailed' && event.requestId === id)
    return { ending: 'failed', why: `${event.error.kind}: ${event.error.message}` };
  if (event.type === 'CompactionCompleted' && event.compactionId === id)
    return { ending: 'completed', why: '' };
  if (event.type === 'CompactionFailed' && event.compactionId === id)
    return { ending: 'failed', why: event.message };
  return { ending: 'stopped', why: event.type === 'PolicyStopped' ? event.why : event.type };
};

const isRequest = ({ activity: { kind } }: OpenActivity): boolean =>
  kind === 'request' || kind === 'compaction';

/** The calls of the model, by their ids. */
class RequestLog {
  readonly #rows = new Map<string, Row>();

  /** Adds a row for each request that was sent, or notes that it was sent again. */
  begin(started: readonly OpenActivity[], state: State, at: number, { seq, atMs }: Moment): void {
    for (const { activity } of started.filter(isRequest)) {
      const known = this.#rows.get(activity.id);
      if (known !== undefined) {
        known.sent += 1;
        known.ending = 'open';
        continue;
      }
      const calling =
        state.name === 'CallingLlm' ? state : { purpose: 'compaction' as const, attempt: 1 };
      this.#rows.set(activity.id, {
        id: activity.id,
        purpose: calling.purpose,
        model: activity.name,
        attempt: calling.attempt,
        seq,
        endSeq: null,
        at,
        startMs: atMs,
        firstPieceMs: null,
        endMs: atMs,
        ending: 'open',
        sent: 1,
        why: '',
        usage: null,
      });
    }
  }

  /** Ends the rows of requests that are over. */
  end(ended: readonly OpenActivity[], event: Event, { seq, atMs }: Moment): void {
    for (const { activity, firstPieceMs } of ended.filter(isRequest)) {
      const row = this.#rows.get(activity.id);
      if (row === undefined) continue;
      Object.assign(row, describeEnding(event, activity.id));
      row.endSeq = seq;
      row.endMs = atMs;
      row.firstPieceMs = firstPieceMs;
    }
  }

  /** Counts usage for a request. Returns whether there is such a request. */
  count(id: string, usage: Usage): boolean {
    const row = this.#rows.get(id);
    if (row !== undefined) row.usage = sumUsage(row.usage, usage);
    return row !== undefined;
  }

  /** The rows; an open one reaches to `nowMs`. */
  rows(nowMs: number, firstPieceOf: (id: string) => number | null): readonly RequestFigures[] {
    return [...this.#rows.values()].map((row) =>
      row.ending === 'open'
        ? { ...row, endMs: nowMs, firstPieceMs: firstPieceOf(row.id) }
        : { ...row },
    );
  }
}

// ---- Calls of tools ----

/** How many calls of a tool ended, and how. */
type Counted = { calls: number; readonly endings: Map<string, number> };

/** How the calls of each tool ended. */
class ToolLog {
  readonly #tools = new Map<string, Counted>();
  /** Calls that were counted, as `batch/call`. */
  readonly #ended = new Set<string>();

  /** Counts calls whose results are shown: each call once. */
  countEnded(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.type !== 'DisplayToolResult') continue;
      const id = `${action.batchId}/${action.callId}`;
      if (this.#ended.has(id)) continue;
      this.#ended.add(id);
      const counted = this.#getCounts(action.tool);
      counted.calls += 1;
      counted.endings.set(action.status, (counted.endings.get(action.status) ?? 0) + 1);
    }
  }

  #getCounts(tool: string): Counted {
    const known = this.#tools.get(tool) ?? { calls: 0, endings: new Map<string, number>() };
    this.#tools.set(tool, known);
    return known;
  }

  rows(spans: readonly TimeSpan[], spending: readonly CallSpending[]): readonly ToolFigures[] {
    const times = new Map<string, Map<string, number>>();
    const approvals = new Map<string, number>();
    for (const { kind, id, name, startMs, endMs } of spans) {
      if (kind === 'approval') approvals.set(name, (approvals.get(name) ?? 0) + endMs - startMs);
      if (kind !== 'tool') continue;
      const calls = times.get(name) ?? new Map<string, number>();
      calls.set(id, (calls.get(id) ?? 0) + endMs - startMs);
      times.set(name, calls);
    }
    const names = new Set([...this.#tools.keys(), ...times.keys(), ...approvals.keys()]);
    const rows = [...names].map((tool) => {
      const { calls, endings } = this.#getCounts(tool);
      const each = [...(times.get(tool)?.values() ?? [])];
      return {
        tool,
        calls,
        endings: Object.fromEntries(endings),
        totalMs: each.reduce((sum, one) => sum + one, 0),
        longestMs: each.reduce((longest, one) => Math.max(longest, one), 0),
        approvalMs: approvals.get(tool) ?? 0,
        usage: spending
          .filter((one) => one.tool === tool)
          .reduce((sum, { usage }) => addUsage(sum, usage), nothingSpent),
      };
    });
    return rows.sort(
      (left, right) => right.totalMs - left.totalMs || (left.tool < right.tool ? -1 : 1),
    );
  }
}
