/**
 * The events of one invocation, applied by the machine: pure. The same state and events give the
 * same result, so an invocation that is repeated on another node starts the same work.
 */

import {
  type Action,
  type Entry,
  type Event,
  type JudgedCall,
  type Posted,
  type State,
  step,
} from 'pawl/engine';

/** Result of one event. `refused`: why it has no effect and no entry. */
export type AppliedEvent =
  | { readonly seq: number; readonly accepted: boolean }
  | { readonly refused: string };

export type AppliedEvents = {
  readonly entries: readonly Entry[];
  readonly state: State;
  /**
   * To be performed once the entries are durable. `ExecuteTools` names only calls whose start is
   * among them, or comes from their node.
   */
  readonly actions: readonly Action[];
  /** One for each posted event, in order; none for a timer that nobody waits for. */
  readonly results: readonly AppliedEvent[];
};

/**
 * A call whose file is looked at before it starts: its node posts ToolStarted, with what it saw.
 * Other calls start with the event that asks for them (`startEvents`).
 */
const startsOnItsNode = ({ traits }: JudgedCall): boolean => traits.effect === 'probeable';

type Queued = { readonly event: Event; readonly isPosted: boolean };

class Application {
  state: State;
  readonly entries: Entry[] = [];
  readonly actions: Action[] = [];
  readonly results: AppliedEvent[] = [];
  readonly #firstSeq: number;
  readonly #started = new Set<string>();

  constructor(seq: number, state: State) {
    this.#firstSeq = seq + 1;
    this.state = state;
  }

  /** Applies one event; returns the events that follow from its actions at once. */
  apply({ event, isPosted }: Queued): readonly Queued[] {
    const { state, actions, diagnostics } = step(this.state, event);
    const malformed = diagnostics.find(({ kind }) => kind === 'malformed');
    if (malformed !== undefined) {
      const refused = `${event.type} is refused, and nothing has changed: ${malformed.why}`;
      if (isPosted) this.results.push({ refused });
      return [];
    }
    const seq = this.#firstSeq + this.entries.length;
    const accepted = state !== this.state;
    // The engine can't take a timer back, so one that nobody waits for any more is as if it had
    // been.
    if (event.type === 'TimerFired' && !accepted) return [];
    this.entries.push({ seq, event });
    this.state = state;
    this.actions.push(...actions);
    if (isPosted) this.results.push({ seq, accepted });
    if (event.type === 'ToolStarted' && accepted)
      this.#started.add(`${event.batchId} ${event.callId}`);
    return actions.flatMap((action) => startEvents(action, event.at));
  }

  /** The actions, without calls whose start the machine has not accepted. */
  startable(): readonly Action[] {
    return this.actions.map((action) => {
      if (action.type !== 'ExecuteTools') return action;
      const { batchId } = action;
      const isStarted = (call: JudgedCall): boolean =>
        this.#started.has(`${batchId} ${call.callId}`);
      return {
        ...action,
        calls: action.calls.filter((call) => startsOnItsNode(call) || isStarted(call)),
      };
    });
  }
}

const startEvents = (action: Action, at: number): readonly Queued[] => {
  if (action.type !== 'ExecuteTools') return [];
  const { batchId, calls } = action;
  return calls
    .filter((call) => !startsOnItsNode(call))
    .map(({ callId }) => ({
      event: { type: 'ToolStarted', at, batchId, callId },
      isPosted: false,
    }));
};

/** `seq`: number of the last entry before these events. */
export const applyEvents = (seq: number, state: State, events: readonly Event[]): AppliedEvents => {
  const application = new Application(seq, state);
  const queue: Queued[] = events.map((event) => ({ event, isPosted: true }));
  // the loop visits what is pushed
  for (const queued of queue) queue.push(...application.apply(queued));
  const { entries, results } = application;
  return { entries, state: application.state, actions: application.startable(), results };
};

/**
 * Stamps the time: never before that of the entry before it, whatever the clock of the computer
 * that posted it says.
 */
export const stampTimes = (
  posted: readonly Posted[],
  at: number,
  lastAt: number,
): readonly Event[] => {
  const time = Math.max(at, lastAt);
  return posted.map((event) => ({ ...event, at: time }));
};
