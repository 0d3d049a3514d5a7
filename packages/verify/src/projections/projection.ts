import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import type { Settings } from '@pawl/agent/machine/settings';
import type { RestingState, State } from '@pawl/agent/machine/state';
import type { FailureOrigin } from '@pawl/agent/machine/values/failure-origin';
import type { Step } from '@pawl/machine/kernel/step-types';

/** Projections: the table of a seed system as data, and our steps as steps of that table. */

/** One arrow of a seed's table. */
export type ProjectionEdge = {
  /** Stable: `from/event/to`, with a number if there are several. */
  readonly id: string;
  readonly from: string;
  /** The seed's event; null if its text names none. */
  readonly event: string | null;
  /** The condition, in the seed's words; empty for none. */
  readonly when: string;
  readonly to: string;
  /** The seed's action; null if its text names none. */
  readonly action: string | null;
  /** `text`: in the seed text. `code`: only in its program. `forced`: bypasses its table. */
  readonly source: 'text' | 'code' | 'forced';
};

/** One step of the seed's machine. `edge` is null for an illegal step, which its table does not have. */
export type ProjectionStep = {
  readonly from: string;
  readonly event: string | null;
  readonly to: string;
  readonly action: string | null;
  readonly edge: ProjectionEdge | null;
  /** The origin of a failure, if the seed's errors name one. */
  readonly origin?: FailureOrigin;
};

/** The state of the seed's machine between two of our steps: plain data that can be compared. */
export type ProjectionCursor = { readonly state: string };

/** The seed's names, each with our name for it. */
type OurWords = Readonly<Record<string, string>>;

export type Projection = {
  /** `minimal-head`: seed 000 with the later changes of its program. */
  readonly name: 'minimal' | 'minimal-head' | 'loom' | 'sketch' | 'tools';
  readonly title: string;
  /** The seed texts it is taken from. */
  readonly seeds: readonly string[];
  /** The seed's states, each with a line of documentation. */
  readonly states: Readonly<Record<string, string>>;
  /** The seed's events and actions, each with a line; empty if its text names none. */
  readonly events: Readonly<Record<string, string>>;
  readonly actions: Readonly<Record<string, string>>;
  readonly initial: string;
  readonly ends: readonly string[];
  /** States that the seed itself calls transient. */
  readonly transient: readonly string[];
  readonly edges: readonly ProjectionEdge[];
  /** Edges that no run takes, by id, each with its reason. */
  readonly unreached: Readonly<Record<string, string>>;
  readonly ours: { readonly states: OurWords; readonly events: OurWords; readonly actions: OurWords };
  /** The allowed states of the seed's machine for each of our resting states. */
  readonly stands: Readonly<Record<RestingState['name'], readonly string[]>>;
  /** Settings that make the agent behave like the seed. */
  readonly settings: Partial<Settings>;
  readonly begin: ProjectionCursor;
  /** Projects one of our steps to zero or more steps of the seed. Pure. */
  project(
    cursor: ProjectionCursor,
    before: State,
    event: Event,
    step: Step<State, Action>,
  ): { readonly cursor: ProjectionCursor; readonly steps: readonly ProjectionStep[] };
};
