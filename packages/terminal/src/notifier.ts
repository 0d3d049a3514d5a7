/** Calls a user who looks elsewhere, with the title of the window, a bell and a notification. */

import { isBusy, type State } from '@pawl/agent/machine/state';
import { type Clock, isSoonAfter } from '@pawl/agent/platform/clock';
import { ESCAPE_MS } from './keys.js';
import { isAsking } from './live-area.js';
import { ASK_FOCUS, BELL, notification, oneLine } from './paint.js';
import { type Safe, safe } from './safe-text.js';

/** After so long without the focus the user is taken to look elsewhere. */
const AWAY_MS = 5_000;
/** The same after so long without a key, on a terminal that does not report the focus. */
const QUIET_MS = 30_000;
/** The end of a shorter turn calls nobody. */
const LONG_TURN_MS = 20_000;
const NAME_COLUMNS = 40;

/** One or two words that change rarely: a title is read in a list of many. */
const stateWord = (state: State): Safe => {
  if (isAsking(state)) return safe`needs your answer`;
  if (isBusy(state)) return safe`working`;
  const reason = state.name === 'WaitingForUserInput' ? state.reason.kind : 'done';
  if (reason === 'error') return safe`failed`;
  if (reason === 'budget') return safe`limit reached`;
  return reason === 'cancelled' ? safe`stopped` : safe`ready`;
};

/** `in` and `out` as the terminal reports it; `unknown` if it reports nothing. */
type Focus = 'in' | 'out' | 'unknown';

/** A report: the focus came (I) or went (O), or the terminal can report it. */
const FOCUS = /\u001b\[(?:([IO])|\?1004;[12]\$y)/g;
/** A report may arrive in pieces, one soon after the other. Typed keys come later. */
const PENDING_MAX = 16;

type NotifierParts = {
  readonly clock: Clock;
  write(text: Safe): void;
  setTitle(title: Safe): void;
  readonly environment: NodeJS.ProcessEnv;
};

/**
 * Calls the user who looks elsewhere: the title of the window has the state of the session, and a
 * bell and a notification of the desktop come once an answer is wanted, or a long turn has ended.
 *
 * 1. No call while the window has the focus. A terminal that reports the focus is believed; with
 *    any other one, a user who has pressed no key for a while looks elsewhere.
 * 2. One call for the questions that wait together, and one for each end of a turn.
 * 3. Names in it come from folders. They can't control the terminal: see `makeSafe`.
 */
export class Notifier {
  readonly #parts: NotifierParts;
  /** Name of the folder; null before `start` and after `stop`: nobody is called. */
  #name: Safe | null = null;
  /** The state of the session, as the title shows it. */
  #word = safe``;
  #focus: Focus = 'unknown';
  /** The end of the input, which may be the beginning of a report, and when it came. */
  #pending = { text: '', at: Number.NEGATIVE_INFINITY };
  /** Since when the user looks elsewhere, as far as it is known. */
  #awayAt: number;
  #wasAsking = false;
  #wasBusy = false;
  /** What the user is to be called for; null if nothing. */
  #wanted: Safe | null = null;
  /** Cancels the timer of the planned call. */
  #cancel: (() => void) | null = null;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
    this.#awayAt = parts.clock.now();
  }

  /** Begins. `name`: of the folder, for the title of the window. */
  start(name: string, state: State): void {
    this.#name = oneLine(name, NAME_COLUMNS);
    this.#parts.write(ASK_FOCUS);
    this.#show(stateWord(state));
  }

  /** The raw input, with the terminal's reports. */
  receive(text: string): void {
    const now = this.#parts.clock.now();
    const { text: pending, at } = this.#pending;
    const input = isSoonAfter(at, now, ESCAPE_MS) ? pending + text : text;
    let end = 0;
    for (const { 0: report, 1: letter, index } of input.matchAll(FOCUS)) {
      end = index + report.length;
      // The report without a letter answers ASK_FOCUS: the user has just started Pawl here.
      this.#setFocus(letter === 'O' ? 'out' : 'in');
    }
    // a key: whoever presses it looks here
    if (end < input.length) this.#awayAt = now;
    this.#pending = { text: input.slice(end).slice(-PENDING_MAX), at: now };
  }

  /** Call after every step: updates the title, and calls if an answer is wanted or a turn ended. */
  see(state: State): void {
    if (this.#name === null) return;
    const [asking, busy] = [isAsking(state), isBusy(state)];
    this.#show(stateWord(state));
    const { startedAt } = state.session.turn;
    const isLong = this.#parts.clock.now() - startedAt >= LONG_TURN_MS;
    const isCancelled = state.name === 'WaitingForUserInput' && state.reason.kind === 'cancelled';
    if (asking && !this.#wasAsking) this.ask();
    else if (this.#wasAsking && !asking) this.#stopCall();
    // Nobody is called to an end that was on the screen in front of the user. A question is
    // different: it waits, even if the user leaves after seeing it.
    const hasEnded = this.#wasBusy && !busy;
    if (hasEnded && isLong && !isCancelled && this.#focus !== 'in') this.#plan(this.#word);
    // a new turn: the user was here to begin it
    if (busy && !this.#wasBusy) this.#stopCall();
    this.#wasAsking = asking;
    this.#wasBusy = busy;
  }

  /** Calls the user to a question. Also for questions that are no part of the session's state. */
  ask(): void {
    if (this.#name !== null) this.#plan(safe`needs your answer`);
  }

  /** The session, or the program, ends. */
  stop(): void {
    this.#stopCall();
    this.#name = null;
    this.#word = safe``;
    this.#wasAsking = false;
    this.#wasBusy = false;
  }

  /** Cancels the call if the user is back; plans it again if the user leaves. */
  #setFocus(focus: Focus): void {
    const wanted = this.#wanted;
    const wasOut = this.#focus === 'out';
    this.#focus = focus;
    if (focus === 'in') {
      // A user who comes back has seen it. One who never left may still leave: the call waits.
      if (wasOut) this.#stopCall();
      return;
    }
    if (!wasOut) this.#awayAt = this.#parts.clock.now();
    if (wanted !== null) this.#plan(wanted); // the wait counts from the new time
  }

  /** Shows the state in the title of the window. */
  #show(word: Safe): void {
    if (this.#name === null || word === this.#word) return;
    this.#word = word;
    this.#parts.setTitle(safe`${word} · ${this.#name} · pawl`);
  }

  #stopCall(): void {
    this.#wanted = null;
    this.#cancel?.();
    this.#cancel = null;
  }

  /**
   * Calls once the user has been away for long enough. While the window has the focus the call is
   * only remembered (`#wanted`). The timer plans again, since a key may have come meanwhile.
   */
  #plan(word: Safe): void {
    this.#stopCall();
    this.#wanted = word;
    if (this.#focus === 'in') return;
    const { clock } = this.#parts;
    const waitMs = this.#awayAt + (this.#focus === 'out' ? AWAY_MS : QUIET_MS) - clock.now();
    if (waitMs <= 0) this.#call(word);
    else this.#cancel = clock.after(waitMs, () => this.#plan(word));
  }

  #call(word: Safe): void {
    this.#stopCall();
    const { write, environment } = this.#parts;
    const text = safe`${word} · ${this.#name ?? safe``}`;
    write(safe`${BELL}${notification(text, environment)}`);
  }
}
