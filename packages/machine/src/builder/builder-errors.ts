/** Errors of machines that are built by calls. Each message says what to do. */

/** A registration after `build()`. */
export class MachineFrozen extends Error {
  override readonly name = 'MachineFrozen';
  constructor(registration: string) {
    super(`${registration}: this machine is built already; register everything before build()`);
  }
}

/** An impossible registration. */
export class BadRegistration extends Error {
  override readonly name = 'BadRegistration';
}

/** A setting out of its range. */
export class BadSetting extends Error {
  override readonly name = 'BadSetting';
}

/** A step that was begun inside another step of the same machine. */
export class MachineBusy extends Error {
  override readonly name = 'MachineBusy';
  constructor(what: string) {
    super(
      `${what} from inside a step: let a source or a listener do it, or return the change from the callback`,
    );
  }
}

/** A change of state without a transition. */
export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
  readonly from: string;
  readonly to: string;
  /** States that transitions lead to from there. */
  readonly legal: readonly string[];

  constructor(from: string, to: string, legal: readonly string[]) {
    const ways = legal.length === 0 ? 'nowhere' : `to ${legal.join(', ')}`;
    super(`no transition leads from ${from} to ${to}; from there one goes ${ways}`);
    this.from = from;
    this.to = to;
    this.legal = legal;
  }
}

/** Too many events in a row without a transition: the source makes no progress. */
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

/** A circle of transitions without an event. */
export class EndlessTransitions extends Error {
  override readonly name = 'EndlessTransitions';
  readonly state: string;
  /** null if the machine was entering its first state. */
  readonly event: string | null;

  constructor(state: string, event: string | null, why: string) {
    const when = event === null ? `to begin in ${state}` : `${event} in ${state}`;
    super(`${when}: ${why}; a guard must end the circle of transitions without an event`);
    this.state = state;
    this.event = event;
  }
}

export type CallbackKind = 'guard' | 'onExit' | 'action' | 'onEnter';

/** A callback threw. The state is unchanged; the context too, unless a callback has mutated it. */
export class CallbackFailed extends Error {
  override readonly name = 'CallbackFailed';
  readonly callback: CallbackKind;
  /** The state that owns the callback, or the source of the transition. */
  readonly state: string;
  /** null for a transition without an event. */
  readonly event: string | null;
  /** The transition's label, or the name of its guard or action; may be empty. */
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
