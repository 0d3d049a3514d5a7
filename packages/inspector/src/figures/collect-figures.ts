import type { Event } from '@pawl/agent/machine/event';
import { initialState } from '@pawl/agent/machine/machine';
import { addUsage, isSpendingId, spendingId } from '@pawl/agent/machine/moves/common/count-usage';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State, UsageTotals } from '@pawl/agent/machine/state';
import { tokensOf, type Usage } from '@pawl/agent/machine/values/usage';
import type { Header } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { RequestLog } from './request-log.js';
import { SessionClock } from './session-clock.js';
import type { CallSpending, ProcessGap, SessionFigures, StateFigures } from './session-figures.js';
import { activitiesOf } from './state-activities.js';
import { divideTime, type Moment, type OpenActivity, SpanLog } from './time-span-log.js';
import { NO_USAGE, ToolLog } from './tool-log.js';

/** A step of a journal (`steps`), or of a session that runs. */
export type FigureStep = Pick<Stepped, 'seq' | 'event' | 'state' | 'actions' | 'path'>;

/** A change of settings just before `Resumed` belongs to the new process, which makes both in one go. */
const SAME_OPENING_MS = 100;

/** Ids of the event's usage and the usage; null for an event without usage. */
const usageIn = ({ event }: FigureStep): { readonly id: string; readonly usage: Usage } | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return event.usage && { id: event.requestId, usage: event.usage };
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return event.usage && { id: event.compactionId, usage: event.usage };
    case 'HookCompleted':
      return event.usage && { id: event.hookId, usage: event.usage };
    case 'ToolCompleted':
      return event.outcome.usage === undefined
        ? null
        : { id: spendingId(event.batchId, event.callId), usage: event.outcome.usage };
    case 'UsageReported':
      return { id: event.usageId, usage: event.usage };
    default:
      return null;
  }
};

/** Whether the session counted usage in a step; usage that was counted before, or belongs to nothing, it does not count. */
const isCounted = ({ session: { usage: before } }: State, { session: { usage } }: State): boolean =>
  tokensOf(before) !== tokensOf(usage) ||
  before.costUsd !== usage.costUsd ||
  before.unpriced !== usage.unpriced;

/**
 * Collects the figures of one session from its steps, from the first on. Deltas of a running session tell when a reply
 * began; without them the journal does, if it says so. Figures of a journal and of the live session are otherwise equal.
 */
export class FigureCollector {
  readonly #clock = new SessionClock();
  readonly #spans = new SpanLog();
  readonly #requests = new RequestLog();
  readonly #tools = new ToolLog();
  readonly #visits = new Map<string, { entered: number; totalMs: number }>();
  readonly #gaps: ProcessGap[] = [];
  readonly #spending: CallSpending[] = [];
  readonly #toolOf = new Map<string, string>();
  readonly #batches = { tool: 0, approval: 0 };
  readonly #parent: Header['parent'];
  #hookUsage: UsageTotals = NO_USAGE;
  /** Before the first event every session is in the same state, up to its settings, which no figure needs. */
  #state: State = initialState({ ...defaultSettings, model: '', workspace: '' });
  #seq = 0;
  #startedAt: number | null = null;
  #held: FigureStep | null = null;

  constructor({ parent }: Pick<Header, 'parent'>) {
    this.#parent = parent;
  }

  see(step: FigureStep): void {
    if (step.seq === null) {
      this.#hearPiece(step);
      return;
    }
    const held = this.#held;
    this.#held = null;
    const opening = step.event.type === 'Resumed' && this.#isNewEpoch(step);
    if (held !== null && opening && step.event.at - held.event.at < SAME_OPENING_MS) {
      this.#open(held, step.seq);
      this.#take(step, 'sameProcess');
      return;
    }
    if (held !== null) this.#take(held, 'sameProcess');
    if (step.event.type === 'SettingsChanged') this.#held = step;
    else if (opening) this.#open(step, step.seq);
    else this.#take(step, 'sameProcess');
  }

  /** `now`: the time, for a session that runs; without it everything ends with the last event. */
  figures(now?: number): SessionFigures {
    if (this.#held !== null) this.#take(this.#held, 'sameProcess');
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
      requests: this.#requests.rows(elapsedMs, (id) => this.#requestOpen(id)?.firstPieceMs ?? null),
      tools: this.#tools.rows(spans, this.#spending),
      states: this.#stateRows(sinceMs),
      gaps: [...this.#gaps],
      usage: this.#state.session.usage,
      spending: [...this.#spending],
      hookUsage: this.#hookUsage,
    };
  }

  #isNewEpoch({ state }: FigureStep): boolean {
    return state.session.epoch > this.#state.session.epoch;
  }

  #requestOpen(id: string): ReturnType<SpanLog['find']> {
    return this.#spans.find('request', id) ?? this.#spans.find('compaction', id);
  }

  /** A delta that is not in the journal: it only tells when the reply began. */
  #hearPiece({ event }: FigureStep): void {
    if (!('requestId' in event) || event.requestId === null) return;
    const open = this.#requestOpen(event.requestId);
    if (open !== undefined) open.firstPieceMs ??= this.#clock.elapsed + this.#clock.since(event.at);
  }

  /** The journal itself says when a reply that has ended began. */
  #divideReply(event: Event, { atMs }: Moment): void {
    if (event.type !== 'LlmCompleted' && event.type !== 'LlmFailed') return;
    const open = this.#requestOpen(event.requestId);
    if (open === undefined || event.firstPieceAt === undefined) return;
    open.firstPieceMs = Math.max(open.from.atMs, atMs - Math.max(0, event.at - event.firstPieceAt));
  }

  /** The first step of a new process: the time before it belongs to none. */
  #open(step: FigureStep, resumedSeq: number): void {
    const before = this.#now();
    const state = this.#state.name;
    const doing = activitiesOf(this.#state)
      .filter(({ kind }) => kind !== 'idle')
      .map(({ name, about }) => (about === '' ? name : `${name} ${about}`));
    this.#tick(step, 'between');
    const next = this.#momentOf(step);
    const copied = this.#parent !== null && this.#parent.seq === before.seq;
    const cause = copied ? 'forked' : state === 'ShuttingDown' ? 'closed' : 'crashed';
    this.#gaps.push({ cause, seq: resumedSeq, startMs: before.atMs, endMs: next.atMs, state, doing });
    const interrupted = this.#spans.interrupt(before, next, cause);
    const begun = this.#apply(step, next);
    const again = new Set(begun.map(({ activity }) => activity.id));
    const dropped = interrupted.filter(({ activity }) => !again.has(activity.id));
    this.#requests.end(dropped, step.event, before);
  }

  #take(step: FigureStep, passed: 'sameProcess'): void {
    this.#tick(step, passed);
    this.#apply(step, this.#momentOf(step));
  }

  #now(): Moment {
    return { seq: this.#seq, atMs: this.#clock.elapsed };
  }

  #momentOf({ seq }: FigureStep): Moment {
    return { seq: seq ?? this.#seq, atMs: this.#clock.elapsed };
  }

  /** The time since the event before goes to the state that lasted until now. */
  #tick({ event }: FigureStep, passed: 'sameProcess' | 'between'): void {
    this.#startedAt ??= event.at;
    const passedMs = this.#clock.advance(event.at);
    if (passed === 'between') return;
    this.#visit(this.#state.name).totalMs += passedMs;
    const doing = this.#batchDoing();
    if (doing !== null) this.#batches[doing] += passedMs;
  }

  #batchDoing(): 'tool' | 'approval' | null {
    if (this.#state.name !== 'ExecutingTools') return null;
    const kinds = activitiesOf(this.#state).map(({ kind }) => kind);
    if (kinds.includes('tool')) return 'tool';
    return kinds.includes('approval') ? 'approval' : null;
  }

  #batchesAfter(sinceMs: number): { readonly tool: number; readonly approval: number } {
    const doing = this.#batchDoing();
    const { tool, approval } = this.#batches;
    return {
      tool: tool + (doing === 'tool' ? sinceMs : 0),
      approval: approval + (doing === 'approval' ? sinceMs : 0),
    };
  }

  #visit(state: string): { entered: number; totalMs: number } {
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

  /** Returns the work that has begun with the step. */
  #apply(step: FigureStep, moment: Moment): readonly OpenActivity[] {
    const { event, state, path, actions } = step;
    this.#divideReply(event, moment);
    const before = this.#state;
    this.#state = state;
    this.#seq = moment.seq;
    for (const { kind, to } of path) if (kind === 'go') this.#visit(to).entered += 1;
    const { begun, ended } = this.#spans.change(activitiesOf(state), moment);
    this.#requests.end(ended, event, moment);
    this.#requests.begin(begun, state, event.at, moment);
    for (const { activity } of begun)
      if (activity.kind === 'tool') this.#toolOf.set(activity.id, activity.name);
    this.#tools.see(actions);
    if (isCounted(before, state)) this.#count(step);
    return begun;
  }

  #count(step: FigureStep): void {
    const counted = usageIn(step);
    if (counted === null || this.#requests.count(counted.id, counted.usage)) return;
    const { id, usage } = counted;
    if (!isSpendingId(id)) {
      this.#hookUsage = addUsage(this.#hookUsage, usage);
      return;
    }
    const slash = id.indexOf('/');
    const tool = this.#toolOf.get(id) ?? '';
    this.#spending.push({
      batchId: id.slice(0, slash),
      callId: id.slice(slash + 1),
      tool,
      at: step.event.at,
      usage,
    });
  }
}

/** The figures of the steps of a journal, or of some of its first ones. */
export const figuresOf = (header: Pick<Header, 'parent'>, steps: Iterable<FigureStep>): SessionFigures => {
  const collector = new FigureCollector(header);
  for (const step of steps) collector.see(step);
  return collector.figures();
};
