import type { Clock } from '../../ports/clock.js';

/** Quiet time before keys count as an answer; longer where a text is being typed. */
const QUIET_MS = 300;
const QUIET_TYPING_MS = 1_000;

/**
 * `hidden`: nothing is asked; `shown`: the question stands there, and keys go where they went before; `next`: it follows
 * another, and keys go nowhere; `armed`: keys answer it.
 */
export type ArmingPhase = 'hidden' | 'shown' | 'next' | 'armed';

export type ArmingHandlers = {
  isTyping(): boolean;
  shown(): void;
  armed(): void;
};

/** From when a question comes until it may be answered: first the keyboard is quiet, then it is while the question stands there. */
export class ArmingDelay {
  readonly #clock: Clock;
  readonly #wishes: ArmingHandlers;
  #phase: ArmingPhase = 'hidden';
  #lastKeyAt = Number.NEGATIVE_INFINITY;
  #shownAt = 0;
  /** Counts what is waited for, so that an old timer does nothing. */
  #round = 0;

  constructor(clock: Clock, wishes: ArmingHandlers) {
    this.#clock = clock;
    this.#wishes = wishes;
  }

  get phase(): ArmingPhase {
    return this.#phase;
  }

  /** A key was pressed, whatever it was for. */
  notice(): void {
    this.#lastKeyAt = this.#clock.now();
  }

  /** A question is to be shown: the first, or the one behind an answer. */
  begin(): void {
    this.#phase = this.#phase === 'hidden' ? 'hidden' : 'next';
    this.#shownAt = this.#clock.now();
    this.#round += 1;
    this.#wait(this.#round);
  }

  /** Nothing is asked any more. */
  stop(): void {
    this.#phase = 'hidden';
    this.#round += 1;
  }

  #wait(round: number): void {
    if (round !== this.#round || this.#phase === 'armed') return;
    const isTyping = this.#phase === 'shown' && this.#wishes.isTyping();
    const quietMs = isTyping ? QUIET_TYPING_MS : QUIET_MS;
    const since = this.#phase === 'hidden' ? this.#lastKeyAt : Math.max(this.#shownAt, this.#lastKeyAt);
    const left = since + quietMs - this.#clock.now();
    if (left > 0) {
      this.#clock.after(left, () => this.#wait(round));
      return;
    }
    if (this.#phase !== 'hidden') {
      this.#phase = 'armed';
      this.#wishes.armed();
      return;
    }
    this.#phase = 'shown';
    this.#shownAt = this.#clock.now();
    this.#wishes.shown();
    this.#wait(round);
  }
}
