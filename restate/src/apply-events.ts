/**
 * The events of one invocation, applied by the machine, and the work that its actions start and
 * stop: pure.
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

// The events of one invocation, applied by the machine: pure. The same state and events give the
// same result, so an invocation that is repeated on another node starts the same work.

/** Result of one event. `refused`: why it has no effect and no entry. */
export type AppliedEvent =
  | { readonly seq: number; readonly accepted: boolean }
  | { readonly refused: string };

export type AppliedEvents = {
  readonly entries: readonly Entry[];
  readonly state: State;
  /**
   * To be performed once the entries are durable. `ExecuteTools` names only calls whose start is
   * among them.
   */
  readonly actions: readonly Action[];
  /** One for each posted event, in order. */
  readonly results: readonly AppliedEvent[];
};

/**
 * A call whose file is looked at before it starts: its node posts ToolStarted, with what it saw.
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

  /** Calls start only if the machine has accepted their start. */
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

// Which work an action starts or stops, and which event ends it.

/** Models are called on any node, all else where the workspace is. */
type Place = 'model' | 'workspace';

export type StartedWork = {
  readonly kind: 'start';
  readonly workId: string;
  readonly place: Place;
  readonly action: Action;
};
type StoppedWork = { readonly kind: 'stop'; readonly workId: string };

/** The ids of calls begin with it. */
export const CALL = 'call-';
const callId = (batchId: string, id: string): string => `${CALL}${batchId}-${id}`;
const previewId = (batchId: string, id: string): string => `preview-${batchId}-${id}`;

const start = (workId: string, place: Place, action: Action): StartedWork => ({
  kind: 'start',
  workId,
  place,
  action,
});
const stop = (workId: string): StoppedWork => ({ kind: 'stop', workId });

/** Null: the action is for watchers, or for the session itself. */
export const listWork = (action: Action): readonly (StartedWork | StoppedWork)[] => {
  switch (action.type) {
    case 'SendLlmRequest':
      return [start(action.requestId, 'model', action)];
    case 'AbortLlmRequest':
      return [stop(action.requestId)];
    case 'StartCompaction':
      return [start(action.compactionId, 'model', action)];
    case 'AbortCompaction':
      return [stop(action.compactionId)];
    case 'PreviewCall':
      return [start(previewId(action.batchId, action.call.callId), 'workspace', action)];
    case 'WithdrawApproval':
      return [stop(previewId(action.batchId, action.callId))];
    case 'ExecuteTools':
      return action.calls.map((call) =>
        start(callId(action.batchId, call.callId), 'workspace', { ...action, calls: [call] }),
      );
    case 'CancelTools':
      return action.callIds.map((id) => stop(callId(action.batchId, id)));
    case 'RunHook':
      return [start(action.hookId, 'workspace', action)];
    case 'AbortHook':
      return [stop(action.hookId)];
    default:
      return [];
  }
};

/** The id of the work that the event ends; null if it ends none. */
export const endedWork = (event: Event | Posted): string | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
    case 'PolicyStopped':
      return event.requestId;
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return event.compactionId;
    case 'CallPreviewed':
      return previewId(event.batchId, event.callId);
    case 'ToolCompleted':
      return callId(event.batchId, event.callId);
    case 'HookCompleted':
    case 'HookFailed':
      return event.hookId;
    default:
      return null;
  }
};

/**
 * The action that stops the work. Only calls know two ways: with their outcome, or at once and
 * without a word.
 */
export const stoppingAction = (action: Action, force: boolean): Action | null => {
  switch (action.type) {
    case 'SendLlmRequest':
      return { type: 'AbortLlmRequest', requestId: action.requestId };
    case 'StartCompaction':
      return { type: 'AbortCompaction', compactionId: action.compactionId };
    case 'PreviewCall':
      return { type: 'WithdrawApproval', batchId: action.batchId, callId: action.call.callId };
    case 'ExecuteTools': {
      const callIds = action.calls.map((call) => call.callId);
      return { type: 'CancelTools', batchId: action.batchId, callIds, force };
    }
    case 'RunHook':
      return { type: 'AbortHook', hookId: action.hookId };
    default:
      return null;
  }
};
