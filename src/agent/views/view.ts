import type { Step } from '../../kernel/step.js';
import type { Action } from '../action.js';
import type { Event } from '../event.js';
import type { Settings } from '../settings.js';
import type { RestingState, State } from '../state.js';

/** A seed system's own table as data, and our steps in its words. */

/** One arrow of a seed's table. */
export type ViewEdge = {
  /** Stable: `from/event/to`, with a number where there are several. */
  readonly id: string;
  readonly from: string;
  /** In the seed's words; null where its text names none. */
  readonly event: string | null;
  /** The condition, in the seed's words; empty for none. */
  readonly when: string;
  readonly to: string;
  /** The action that the seed returns; null where its text names none. */
  readonly action: string | null;
  /** `text`: in the seed text. `code`: only in its program. `forced`: goes around its table. */
  readonly source: 'text' | 'code' | 'forced';
};

/** One step of the seed's machine. `edge` is null where its table has no such arrow: an illegal step. */
export type ViewStep = {
  readonly from: string;
  readonly event: string | null;
  readonly to: string;
  readonly action: string | null;
  readonly edge: ViewEdge | null;
};

/** Where the seed's machine stands between two steps of ours: small, plain data, so that states can be compared. */
export type ViewCursor = { readonly state: string };

/** The seed's names, each with our words for it. */
type OurWords = Readonly<Record<string, string>>;

export type View = {
  /** `minimal-head` is seed 000 as its program went on after the text. */
  readonly name: 'minimal' | 'minimal-head' | 'loom' | 'sketch' | 'tools';
  readonly title: string;
  /** The seed texts that it is taken from. */
  readonly seeds: readonly string[];
  /** The seed's states, each with a line of documentation. */
  readonly states: Readonly<Record<string, string>>;
  /** The seed's events and actions, likewise; none where its text names none. */
  readonly events: Readonly<Record<string, string>>;
  readonly actions: Readonly<Record<string, string>>;
  readonly initial: string;
  readonly ends: readonly string[];
  /** States that the seed itself calls transient. */
  readonly transient: readonly string[];
  readonly edges: readonly ViewEdge[];
  /** Arrows that no run takes, by id, each with its reason. */
  readonly unreached: Readonly<Record<string, string>>;
  readonly ours: { readonly states: OurWords; readonly events: OurWords; readonly actions: OurWords };
  /** The states in which the seed's machine may stand while ours rests. */
  readonly stands: Readonly<Record<RestingState['name'], readonly string[]>>;
  /** What makes the agent behave as the seed says. */
  readonly settings: Partial<Settings>;
  readonly begin: ViewCursor;
  /** One step of ours as no, one or several steps of the seed. Pure. */
  project(
    cursor: ViewCursor,
    before: State,
    event: Event,
    step: Step<State, Action>,
  ): { readonly cursor: ViewCursor; readonly steps: readonly ViewStep[] };
};
