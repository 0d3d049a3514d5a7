/**
 * Calls the user who looks elsewhere: the title of the window has the state of the session, and a
 * bell and a notification of the desktop come once an answer is wanted, or a long turn has ended.
 *
 * 1. No call while the window has the focus. A terminal that reports the focus is believed; with
 *    any other one, a user who has pressed no key for a while looks elsewhere.
 * 2. One call for each question and each end of a turn.
 * 3. Names in it come from folders. They can't control the terminal: see `makeSafe`.
 */

import type { State } from '@pawl/agent/machine/state';
import type { Clock } from '@pawl/agent/platform/clock';
import { isBusy } from './live-area.js';
import { ASK_FOCUS, BELL, notification, oneLine } from './paint.js';
import { type Safe, safe } from './safe-text.js';

/** Time without the focus, or without a key where the focus is not known. */
const AWAY_MS = 5_000;
const QUIET_MS = 30_000;
/** The end of a shorter turn is not told. */
const LONG_TURN_MS = 20_000;
const NAME_COLUMNS = 40;

type NotifierParts = {
  readonly clock: Clock;
  write(text: Safe): void;
  setTitle(title: Safe): void;
  readonly environment: NodeJS.ProcessEnv;
};

const isAsking = (state: State): boolean =>
  state.name === 'ExecutingTools' &&
  state.calls.some(({ status }) => status === 'awaitingApproval');

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

const FOCUS = /\u001b\[(?:([IO])|\?1004;[12]\$y)/g;
/** A report may arrive in pieces. */
const PENDING_MAX = 16;

export class Notifier {
  readonly #parts: NotifierParts;
  #name: Safe | null = null;
  #word = safe``;
  #focus: Focus = 'unknown';
  #pending = '';
  /** Since when the user looks elsewhere, as far as it is known. */
  #awayAt: number;
  #wasAsking = false;
  #wasBusy = false;
  /** What the user is to be called for; null if nothing. */
  #wanted: Safe | null = null;
  #cancel: (() => void) | null = null;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
    this.#awayAt = parts.clock.now();
  }

  /** Begins. `name`: of the folder, as the title has it. */
  start(name: string, state: State): void {
    this.#name = oneLine(name, NAME_COLUMNS);
    this.#parts.write(ASK_FOCUS);
    this.#show(stateWord(state));
  }

  /** The raw input, with the terminal's reports. */
  receive(text: string): void {
    const input = this.#pending + text;
    let end = 0;
    for (const { 0: report, 1: letter, index } of input.matchAll(FOCUS)) {
      end = index + report.length;
      this.#setFocus(letter === 'O' ? 'out' : 'in');
    }
    // a key: whoever presses it looks here
    if (end < input.length) this.#awayAt = this.#parts.clock.now();
    this.#pending = input.slice(end).slice(-PENDING_MAX);
  }

  see(state: State): void {
    if (this.#name === null) return;
    const [asking, busy] = [isAsking(state), isBusy(state)];
    this.#show(stateWord(state));
    const { startedAt } = state.session.turn;
    const isLong = this.#parts.clock.now() - startedAt >= LONG_TURN_MS;
    const isCancelled = state.name === 'WaitingForUserInput' && state.reason.kind === 'cancelled';
    if (asking && !this.#wasAsking) this.ask();
    else if (this.#wasAsking && !asking) this.#stopCall();
    if (this.#wasBusy && !busy && isLong && !isCancelled && this.#focus !== 'in')
      this.#plan(this.#word);
    if (busy && !this.#wasBusy) this.#stopCall();
    this.#wasAsking = asking;
    this.#wasBusy = busy;
  }

  /** An answer is wanted. */
  ask(): void {
    if (this.#name !== null) this.#plan(safe`needs your answer`);
  }

  /** The session, or the program, ends. */
  stop(): void {
    this.#stopCall();
    this.#name = null;
  }

  #setFocus(focus: Focus): void {
    const wanted = this.#wanted;
    const wasOut = this.#focus === 'out';
    this.#focus = focus;
    if (focus === 'in') {
      // who comes back has seen it; who never left may still leave
      if (wasOut) this.#stopCall();
      return;
    }
    if (!wasOut) this.#awayAt = this.#parts.clock.now();
    if (wanted !== null) this.#plan(wanted);
  }

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

  /** Calls once the user has been away for long enough; the end of a turn was seen by who looks. */
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
