/**
 * Compares the journals of two sessions of the agent, step by step, and stops comparing at the
 * first difference. Then both are read to their ends, for what follows from it. Each journal is
 * read once; only one step of each is held.
 *
 * From top to bottom: the result; the reading and comparing (`compareSessions`); events without
 * what differs between any two runs; and the fields that differ.
 */

import { JournalError } from '@pawl/agent/journal/journal-error';
import { deepJson } from '@pawl/agent/journal/journaled-agent-machine';
import { type JournalStep, steps } from '@pawl/agent/journal/steps';
import type { Event } from '@pawl/agent/machine/event';
import type { State, StateName } from '@pawl/agent/machine/state';
import type { Entry, Header } from '@pawl/agent/ports/journal';
import { FigureCollector } from '@pawl/inspector/figures/collect-figures';
import { figuresSince, type LaterFigures } from '@pawl/inspector/figures/session-figures';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import { turnEnding } from '../process/exit-codes.js';

export type SessionSource = {
  readonly header: Header;
  readonly entries: AsyncIterable<Entry>;
  /** The stored text of a hash; undefined if it is missing. */
  blob(sha256: string): Promise<string | undefined>;
};

type Pair<T> = { readonly a: T; readonly b: T };

/** One of the two events at which the sessions part. */
export type PartingEvent = {
  readonly seq: number;
  readonly type: Event['type'];
  readonly before: StateName;
  readonly after: StateName;
};

/** What one of the sessions did after the last event that both have. */
export type SessionRest = LaterFigures & {
  /**
   * The reason of its last rest there, as `result` of the JSON stream names it; null if it never
   * came to rest there.
   */
  readonly ended: string | null;
  readonly damage: JournalError | null;
};

export type SessionComparison = {
  /** Entries of each session up to the difference, with those that are not compared. */
  readonly common: Pair<number>;
  /** Settings that differ, apart from the folder. */
  readonly settings: readonly FieldDifference[];
  /** Other parts of the headers that differ: they are told, but don't make sessions different. */
  readonly headers: readonly string[];
  /**
   * The first event that differs; null on the side that has ended, and both null if none differs.
   */
  readonly parting: Pair<PartingEvent | null>;
  /** The fields that differ, if both sessions have an event there. */
  readonly fields: readonly FieldDifference[];
  /** Outputs of commands that differ in durations only. They count as equal. */
  readonly durationsOnly: number;
  readonly rest: Pair<SessionRest>;
};

/**
 * Whether a step is compared. A report of usage alone is not: it comes at any time, and usage is
 * not compared.
 */
const isCompared = ({ event }: JournalStep): boolean =>
  event.type !== 'UsageReported' || event.fault !== undefined;

/**
 * Reads one session in order. A damage ends it, and is kept, so that what was read before can still
 * be told.
 */
class SessionReader {
  readonly comparable: ComparableEvents;
  readonly #steps: AsyncGenerator<JournalStep, undefined>;
  readonly #figures: FigureCollector;
  #lastEnding: string | null = null;
  damage: JournalError | null = null;
  seq = 0;

  constructor({ header, entries, blob }: SessionSource, workspace: string | null) {
    this.comparable = new ComparableEvents(blob, workspace);
    this.#steps = steps(header, entries);
    this.#figures = new FigureCollector(header);
  }

  /** The next step that is compared; null at the end. It counts only once `count` gets it. */
  async next(): Promise<JournalStep | null> {
    for (;;) {
      const step = await this.#read();
      if (step === null || isCompared(step)) return step;
      this.count(step);
    }
  }

  /** Adds a step to the figures of the session. */
  count(step: JournalStep): void {
    this.#figures.see(step);
    this.seq = step.seq;
    this.#noteRest(step.state);
  }

  /** Reads the rest, from `first` on, which was read but not counted. */
  async finish(first: JournalStep | null): Promise<SessionRest> {
    const before = this.#figures.figures();
    this.#lastEnding = null;
    for (let step = first; step !== null; step = await this.#read()) this.count(step);
    const later = figuresSince(before, this.#figures.figures());
    return { ...later, ended: this.#lastEnding, damage: this.damage };
  }

  #noteRest(state: State): void {
    if (state.name === 'WaitingForUserInput') this.#lastEnding = turnEnding(state).reason;
  }

  async #read(): Promise<JournalStep | null> {
    try {
      const { value } = await this.#steps.next();
      return value ?? null;
    } catch (error) {
      if (!(error instanceof JournalError) || error.kind !== 'damaged') throw error;
      this.damage = error; // told at the end, with the exit code of damaged journals
      return null;
    }
  }
}

/**
 * Replaces texts in an event's outcome, or in its progress. A `diff` stays: it is content of files,
 * not output.
 */
const inOutput = (event: JsonObject, change: (text: string) => string): JsonObject => {
  const { outcome, text } = event;
  if (typeof text === 'string') return { ...event, text: change(text) };
  if (typeof outcome !== 'object' || outcome === null || Array.isArray(outcome)) return event;
  const changed = Object.entries(outcome).map(([name, value]) =>
    typeof value === 'string' && name !== 'diff' ? [name, change(value)] : [name, value],
  );
  return { ...event, outcome: Object.fromEntries(changed) };
};

const headerDifferences = (a: Header, b: Header): readonly string[] => [
  ...(a.workspace === b.workspace ? [] : ['folder']),
  ...(a.machine === b.machine ? [] : ['state machine']),
  ...(a.instructions === b.instructions ? [] : ['instructions']),
  ...(a.tools === b.tools ? [] : ['tools']),
  ...(JSON.stringify(a.prices) === JSON.stringify(b.prices) ? [] : ['prices']),
];

const describeParting = (step: JournalStep | null): PartingEvent | null =>
  step && {
    seq: step.seq,
    type: step.event.type,
    before: step.before.name,
    after: step.state.name,
  };

/** The fields in which two events differ, and whether durations alone would. */
const compareEvents = async (
  readers: Pair<SessionReader>,
  events: Pair<Event>,
): Promise<{ readonly fields: readonly FieldDifference[]; readonly durationsOnly: boolean }> => {
  const a = await readers.a.comparable.convert(events.a);
  const b = await readers.b.comparable.convert(events.b);
  const fields = fieldDifferences(a, b);
  const areCommands =
    readers.a.comparable.isCommandOutput(events.a) &&
    readers.b.comparable.isCommandOutput(events.b);
  const durationsOnly =
    fields.length > 0 &&
    areCommands &&
    fieldDifferences(inOutput(a, withoutDurations), inOutput(b, withoutDurations)).length === 0;
  return { fields: durationsOnly ? [] : fields, durationsOnly };
};

/** Compares the sessions, and reads both to their ends. */
export const compareSessions = async (
  a: SessionSource,
  b: SessionSource,
): Promise<SessionComparison> => {
  const otherFolder = a.header.workspace !== b.header.workspace;
  const readers = {
    a: new SessionReader(a, otherFolder ? a.header.workspace : null),
    b: new SessionReader(b, otherFolder ? b.header.workspace : null),
  };
  let durationsOnly = 0;
  let fields: readonly FieldDifference[] = [];
  let [stepA, stepB] = [await readers.a.next(), await readers.b.next()];
  while (stepA !== null && stepB !== null) {
    const events = { a: stepA.event, b: stepB.event };
    const compared = await compareEvents(readers, events);
    if (compared.fields.length > 0) {
      fields = compared.fields;
      break;
    }
    durationsOnly += compared.durationsOnly ? 1 : 0;
    readers.a.count(stepA);
    readers.b.count(stepB);
    [stepA, stepB] = [await readers.a.next(), await readers.b.next()];
  }
  const common = { a: readers.a.seq, b: readers.b.seq };
  return {
    common,
    settings: fieldDifferences(
      readers.a.comparable.settings(a.header),
      readers.b.comparable.settings(b.header),
    ),
    headers: headerDifferences(a.header, b.header),
    parting: { a: describeParting(stepA), b: describeParting(stepB) },
    fields,
    durationsOnly,
    rest: { a: await readers.a.finish(stepA), b: await readers.b.finish(stepB) },
  };
};

// Events without what differs between any two runs: times, usage, random delays, provider metadata,
// commit hashes, the path of the workspace, and call ids, which are numbered in order. A model's
// tool input is compared in full, whatever its fields are called.

const IGNORED: ReadonlySet<string> = new Set([
  'at',
  'firstPieceAt',
  'stoppedAt',
  'jitter',
  'usage',
  'metadata',
]);
/**
 * The parts of a commit that depend on its time and its author, and the folders of its repository.
 */
const IGNORED_IN_COMMIT: ReadonlySet<string> = new Set(['commit', 'before', 'claim', 'gitFolder']);
/** Fields whose own fields have names that a model or a user chose. */
const FREELY_NAMED: ReadonlySet<string> = new Set(['input', 'patch']);
/** Older journals hold tool input of any depth; deeper parts are compared as text. */
const DEPTH_MAX = 100;

const DURATIONS =
  /(?<![\w.])(?:duration_ms:? \d+(?:\.\d+)?|(?:\d+h ?)?(?:\d+m(?:in)? ?)?\d+(?:\.\d+)?\s?(?:ns|\u00b5s|us|ms|s|secs?|seconds?)\b)/gu;

/** A command's output without the durations in it. */
const withoutDurations = (output: string): string => output.replace(DURATIONS, '⟨duration⟩');

/** Whether a field is left out of the comparison. */
const isIgnored = (owner: object, name: string): boolean =>
  IGNORED.has(name) ||
  ('kind' in owner && owner.kind === 'commit' && IGNORED_IN_COMMIT.has(name)) ||
  ('subject' in owner && name === 'hash'); // a commit among those that a hook has seen

const escapeForRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Makes the events of one session comparable, in their order. */
class ComparableEvents {
  readonly #blob: SessionSource['blob'];
  readonly #workspace: RegExp | null = null;
  readonly #numbers = new Map<string, string>();
  readonly #commands = new Set<string>();

  /** `workspace`: its path, if the sessions have different ones; otherwise null. */
  constructor(blob: SessionSource['blob'], workspace: string | null) {
    this.#blob = blob;
    if (workspace === null || workspace.length < 2) return;
    // also as JSON has it: tools print JSON
    const forms = [workspace, JSON.stringify(workspace).slice(1, -1)].map(escapeForRegExp);
    this.#workspace = new RegExp(`(?<![\\w.-])(?:${forms.join('|')})(?![\\w-]|\\.\\w)`, 'g');
  }

  /** The event without what differs between any two runs. Notes its calls of commands. */
  async convert(event: Event): Promise<JsonObject> {
    if (event.type === 'LlmCompleted')
      // `opaque`: nobody knows what the call did, as with a shell command
      for (const { callId, traits } of event.calls)
        if (traits.effect === 'opaque') this.#commands.add(callId);
    return this.#object(await this.#withBlob(event), 0);
  }

  /** An output that was cut has its whole text in place of the hash. */
  async #withBlob(event: Event): Promise<object> {
    const hash = event.type === 'ToolCompleted' ? event.outcome.blob : undefined;
    if (event.type !== 'ToolCompleted' || typeof hash !== 'string') return event;
    return { ...event, outcome: { ...event.outcome, blob: (await this.#blob(hash)) ?? hash } };
  }

  /** Whether the event is output of a command, in which durations don't count. */
  isCommandOutput(event: Event): boolean {
    return (
      (event.type === 'ToolCompleted' || event.type === 'ToolProgress') &&
      this.#commands.has(event.callId)
    );
  }

  /** The settings without the workspace. Their fields count, whatever they are called. */
  settings({ settings }: Header): JsonObject {
    return this.#object({ ...settings, workspace: null }, 0, true);
  }

  /** The text without the path of the workspace. */
  #text(text: string): string {
    return this.#workspace === null ? text : text.replace(this.#workspace, '⟨workspace⟩');
  }

  #value(value: unknown, depth: number, isFreelyNamed: boolean): Json {
    if (typeof value === 'string') return this.#text(value);
    if (typeof value === 'number' || typeof value === 'boolean') return value;
    if (typeof value !== 'object' || value === null) return null;
    if (depth > DEPTH_MAX) return this.#text(deepJson(value)); // writes JSON without recursion
    if (Array.isArray(value))
      return value.map((item: unknown) => this.#value(item, depth + 1, isFreelyNamed));
    return this.#object(value, depth + 1, isFreelyNamed);
  }

  #object(owner: object, depth: number, isFreelyNamed = false): JsonObject {
    const fields: [string, Json][] = [];
    for (const [name, value] of Object.entries(owner)) {
      if (value === undefined || (!isFreelyNamed && isIgnored(owner, name))) continue;
      if (!isFreelyNamed && name === 'callId') fields.push([name, this.#number(String(value))]);
      else
        fields.push([
          isFreelyNamed ? this.#text(name) : name,
          this.#value(value, depth, isFreelyNamed || FREELY_NAMED.has(name)),
        ]);
    }
    return Object.fromEntries(fields); // also a field named __proto__ becomes a field
  }

  #number(callId: string): string {
    const number = this.#numbers.get(callId) ?? `call ${this.#numbers.size + 1}`;
    this.#numbers.set(callId, number);
    return number;
  }
}

/** A field with different values; an absent value is missing in that session. */
export type FieldDifference = { readonly field: string; readonly a?: Json; readonly b?: Json };

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);

const ownValue = (owner: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(owner, name) ? owner[name] : undefined;

function* walk(
  field: string,
  a: Json | undefined,
  b: Json | undefined,
): Generator<FieldDifference, undefined> {
  if (Object.is(a, b) || a === b) return; // the same scalar, or both are missing
  if (isObject(a) && isObject(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)]))
      yield* walk(field === '' ? name : `${field}.${name}`, ownValue(a, name), ownValue(b, name));
  } else if (isList(a) && isList(b)) {
    for (let index = 0; index < Math.max(a.length, b.length); index += 1)
      yield* walk(`${field}[${index}]`, a[index], b[index]);
  } else yield { field, ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) };
}

/** The fields in which two values differ, in order. The nesting of the values must be bounded. */
const fieldDifferences = (a: Json, b: Json): readonly FieldDifference[] => [...walk('', a, b)];
