/**
 * A session as the inspector's page knows it. A step is what the machine did with one entry, a line
 * of the journal with the number `seq`. From top to bottom: `SessionHistory`, all steps; markers,
 * the places to which a reader jumps; the search; and the differences of two states.
 */

import { type JournalStep, stepEntry } from '@pawl/agent/journal/steps';
import { agent, initialState } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Entry, Header } from '@pawl/agent/ports/journal';
import { isRecord } from '@pawl/machine/kernel/shape';
import { FigureCollector } from '../figures/collect-figures.js';
import type { SessionFigures } from '../figures/session-figures.js';
import { SessionIndex } from './session-index.js';

/**
 * A session as the page knows it: every step from the first entry on, folded by the same machine
 * that ran it. States share their parts, so the history holds all of them, and going to any of them
 * costs nothing.
 */
export class SessionHistory {
  readonly header: Header;
  /** Messages, calls and turns of the steps so far. */
  readonly index = new SessionIndex();
  readonly #initial: State;
  readonly #collector: FigureCollector;
  readonly #steps: JournalStep[] = [];
  readonly #markers: Marker[] = [];
  #figures: SessionFigures | null = null;

  constructor(header: Header) {
    this.header = header;
    this.#initial = initialState(header.settings);
    this.#collector = new FigureCollector(header);
  }

  /** Adds the next entries. Skips those that it already has; a gap is a fault of the sender. */
  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.seq <= this.seq) continue;
      if (entry.seq !== this.seq + 1)
        throw new Error(`entry ${this.seq + 1} is missing before ${entry.seq}`);
      const before = this.stateAt(this.seq);
      // What the machine did with the entry. It was checked before it was written.
      const step = stepEntry({ step: agent.stepUnchecked }, before, entry);
      this.#steps.push(step);
      this.#markers.push(...findMarkers(step));
      this.#collector.see(step); // counts its time and money
      this.index.addStep(step);
    }
    this.#figures = null;
  }

  /** The number of the last entry; 0 for none. */
  get seq(): number {
    return this.#steps.length;
  }

  get steps(): readonly JournalStep[] {
    return this.#steps;
  }

  /** Targets of jumps, in order. */
  get markers(): readonly Marker[] {
    return this.#markers;
  }

  stepAt(seq: number): JournalStep | null {
    return this.#steps[seq - 1] ?? null;
  }

  /** The state after the entry; before the first one for 0. */
  stateAt(seq: number): State {
    return this.stepAt(seq)?.state ?? this.#initial;
  }

  /** Time and money of the whole session so far. */
  get figures(): SessionFigures {
    this.#figures ??= this.#collector.figures();
    return this.#figures;
  }
}

// ---- Markers: places in a session to which a reader wants to jump ----

export const MARKER_KINDS = [
  'prompt',
  'error',
  'retry',
  'approval',
  'failed call',
  'cancel',
  'limit',
  'compaction',
  'rewind',
  'crash',
] as const;

export type MarkerKind = (typeof MARKER_KINDS)[number];

type Marker = { readonly seq: number; readonly kind: MarkerKind };

/** The kinds of events that are a marker by themselves. */
const EVENT_MARKERS: Partial<Record<JournalStep['event']['type'], MarkerKind>> = {
  UserInput: 'prompt',
  LlmFailed: 'error',
  ToolsFailed: 'error',
  HookFailed: 'error',
  InputFailed: 'error',
  CompactionFailed: 'compaction',
  CompactionCompleted: 'compaction',
  ApprovalAnswered: 'approval',
  CancelTurn: 'cancel',
  CancelTool: 'cancel',
};

/** Endings of calls that make a marker. */
const FAILED = ['failed', 'timedOut', 'lost', 'interrupted', 'denied', 'invalid', 'noSuchTool'];

/** The markers of one step, at most one of each kind. */
const findMarkers = ({ seq, event, before, path, actions }: JournalStep): readonly Marker[] => {
  const entered = path.filter(({ kind }) => kind === 'go').map(({ to }) => to);
  const isFirst = before.name === 'ShuttingDown' || before.name === 'Ready';
  const kinds: readonly (MarkerKind | undefined | false)[] = [
    EVENT_MARKERS[event.type],
    event.type === 'Resumed' && !isFirst && 'crash',
    entered.includes('BudgetExceeded') && 'limit',
    before.name === 'Error' && entered[0] === 'CallingLlm' && 'retry',
    ...actions.map((action) => {
      if (action.type === 'RequestApproval') return 'approval';
      if (action.type === 'DisplayNotice') return action.kind === 'rewound' && 'rewind';
      return action.type === 'DisplayToolResult' && FAILED.includes(action.status) && 'failed call';
    }),
  ];
  return [...new Set(kinds)].flatMap((kind) => (kind ? [{ seq, kind }] : []));
};

/**
 * The nearest marker of the kind (`null`: of any) after `seq`, or before it; null if there is none.
 */
export const nextMarker = (
  markers: readonly Marker[],
  kind: MarkerKind | null,
  seq: number,
  direction: 'forward' | 'back',
): Marker | null => {
  const fits = (marker: Marker): boolean =>
    (kind === null || marker.kind === kind) &&
    (direction === 'forward' ? marker.seq > seq : marker.seq < seq);
  return (direction === 'forward' ? markers.find(fits) : markers.findLast(fits)) ?? null;
};

// ---- Search over the events: what was typed, answered, called and returned is all in them ----

export type FoundEntry = {
  readonly seq: number;
  readonly type: string;
  /** The text around the first place that fits. */
  readonly before: string;
  readonly hit: string;
  readonly after: string;
};

const CONTEXT_CHARACTERS = 60;

const collectTexts = function* (value: unknown): Generator<string, undefined> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const one of value) yield* collectTexts(one);
  else if (typeof value === 'object' && value !== null)
    for (const one of Object.values(value)) yield* collectTexts(one);
};

/** The first text of the event that contains the query, in any case; null if none does. */
const findIn = (step: Pick<JournalStep, 'seq' | 'event'>, query: string): FoundEntry | null => {
  const lower = query.toLowerCase();
  for (const text of collectTexts(step.event)) {
    const at = text.toLowerCase().indexOf(lower);
    if (at < 0) continue;
    return {
      seq: step.seq,
      type: step.event.type,
      before: `${at > CONTEXT_CHARACTERS ? '…' : ''}${text.slice(Math.max(0, at - CONTEXT_CHARACTERS), at)}`,
      hit: text.slice(at, at + query.length),
      after: text.slice(at + query.length, at + query.length + CONTEXT_CHARACTERS),
    };
  }
  return null;
};

/** All entries that hold the text; all entries for an empty one. */
export const findEntries = (steps: readonly JournalStep[], query: string): readonly FoundEntry[] =>
  steps.flatMap((step) => {
    if (query === '')
      return [{ seq: step.seq, type: step.event.type, before: '', hit: '', after: '' }];
    const entry = findIn(step, query);
    return entry === null ? [] : [entry];
  });

// ---- The differences of two values of JSON ----

/** `path`: names and indexes, `session.queue[0].text`. undefined: not there. */
export type ValueDifference = {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
};

/** The value as JSON has it: the machine's shared lists become arrays. */
export const plainValue = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  return 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;
};

const collectDifferences = (
  path: string,
  old: unknown,
  fresh: unknown,
  differences: ValueDifference[],
): void => {
  if (old === fresh) return;
  const [before, after] = [plainValue(old), plainValue(fresh)];
  if (Array.isArray(before) && Array.isArray(after)) {
    for (let index = 0; index < Math.max(before.length, after.length); index++)
      collectDifferences(`${path}[${index}]`, before[index], after[index], differences);
    return;
  }
  if (isRecord(before) && isRecord(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      collectDifferences(
        path === '' ? key : `${path}.${key}`,
        before[key],
        after[key],
        differences,
      );
    return;
  }
  if (!Object.is(before, after)) differences.push({ path, before, after });
};

/** Every leaf that differs, in the order of the values. A value in only one is one difference. */
export const valueDifferences = (before: unknown, after: unknown): readonly ValueDifference[] => {
  const differences: ValueDifference[] = [];
  collectDifferences('', before, after, differences);
  return differences;
};
