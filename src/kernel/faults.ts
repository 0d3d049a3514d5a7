/** What can go wrong with a machine that is built and driven from code; each says what to do about it. */

/** A registration after `build()`. */
export class MachineFrozen extends Error {
  override readonly name = 'MachineFrozen';
  constructor(registration: string) {
    super(`${registration}: this machine is built already; register everything before build()`);
  }
}

/** A registration that says something impossible. */
export class BadRegistration extends Error {
  override readonly name = 'BadRegistration';
}

/** A setting out of its range. */
export class BadSetting extends Error {
  override readonly name = 'BadSetting';
}

/** A callback of a step that begins another step of the same machine. */
export class MachineBusy extends Error {
  override readonly name = 'MachineBusy';
  constructor(what: string) {
    super(
      `${what} from inside a step: let a source or a listener do it, or return the change from the callback`,
    );
  }
}

/** A move that no transition allows. */
export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
  readonly from: string;
  readonly to: string;
  /** Where one may go from there. */
  readonly legal: readonly string[];

  constructor(from: string, to: string, legal: readonly string[]) {
    const ways = legal.length === 0 ? 'nowhere' : `to ${legal.join(', ')}`;
    super(`no transition leads from ${from} to ${to}; from there one goes ${ways}`);
    this.from = from;
    this.to = to;
    this.legal = legal;
  }
}

/** Events that no transition takes, one after the other: the source makes no progress. */
export class UnmatchedEvents extends Error {
  override readonly name = 'UnmatchedEvents';
  readonly state: string;
  readonly event: string;
  readonly times: number;

  constructor(state: string, event: string, times: number) {
    const many = times === 1 ? 'an event' : `${times} events in a row`;
    super(
      `${many} had no transition, the last was ${event} in ${state}: ` +
        'register one, or let the source send something else',
    );
    this.state = state;
    this.event = event;
    this.times = times;
  }
}

/** Transitions without an event that lead on and on. */
export class EndlessTransitions extends Error {
  override readonly name = 'EndlessTransitions';
  readonly state: string;
  /** null: it was about to begin in the state. */
  readonly event: string | null;

  constructor(state: string, event: string | null, why: string) {
    const when = event === null ? `to begin in ${state}` : `${event} in ${state}`;
    super(`${when}: ${why}; a guard must end the circle of transitions without an event`);
    this.state = state;
    this.event = event;
  }
}

export type CallbackKind = 'guard' | 'onExit' | 'action' | 'onEnter';

/** A callback threw. The state is what it was, and the context too, unless a callback that mutates had changed it. */
export class CallbackFailed extends Error {
  override readonly name = 'CallbackFailed';
  readonly callback: CallbackKind;
  /** Whose callback it was, or from which the transition leads. */
  readonly state: string;
  /** null: none was needed. */
  readonly event: string | null;
  /** The transition's label, or the name of its guard or action; empty where there is none. */
  readonly label: string;

  constructor(
    callback: CallbackKind,
    place: { readonly state: string; readonly event: string | null; readonly label: string },
    cause: unknown,
  ) {
    const { state, event, label } = place;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const what = label === '' ? callback : `${callback} of ${label}`;
    super(`${what} failed in ${state}${event === null ? '' : ` on ${event}`}: ${reason}`, { cause });
    this.callback = callback;
    this.state = state;
    this.event = event;
    this.label = label;
  }
}
