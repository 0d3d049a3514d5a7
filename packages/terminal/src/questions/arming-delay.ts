import type { Clock } from '@pawl/agent/ports/clock';

/** The keyboard must be quiet for this long before keys count as an answer; longer while the user is typing a text. */
const QUIET_MS = 300;
const QUIET_TYPING_MS = 1_000;

/**
 * `hidden`: no question. `shown`: the question is visible, and keys still go to the input line. `next`: the question
 * follows another one, and keys are ignored. `armed`: keys answer the question.
 */
export type ArmingPhase = 'hidden' | 'shown' | 'next' | 'armed';

export type ArmingHandlers = {
  isTyping(): boolean;
  shown(): void;
  armed(): void;
};

/** The delay before a question accepts keys: it appears after a quiet moment, and is armed after another one. */
export class ArmingDelay {
  readonly #clock: Clock;
  readonly #handlers: ArmingHandlers;
  #phase: ArmingPhase = 'hidden';
  #lastKeyAt = Number.NEGATIVE_INFINITY;
  #shownAt = 0;
  /** Number of the current delay. A timer of an earlier delay does nothing. */
  #round = 0;

  constructor(clock: Clock, wishes: ArmingHandlers) {
    this.#clock = clock;
    this.#handlers = wishes;
  }

  get phase(): ArmingPhase {
    return this.#phase;
  }

  /** Call for every key. */
  keyPressed(): void {
    this.#lastKeyAt = this.#clock.now();
  }

  /** Starts the delay of the first question, or of the one after an answer. */
  begin(): void {
    this.#phase = this.#phase === 'hidden' ? 'hidden' : 'next';
    this.#shownAt = this.#clock.now();
    this.#round += 1;
    this.#wait(this.#round);
  }

  /** There is no question any more. */
  stop(): void {
    this.#phase = 'hidden';
    this.#round += 1;
  }

  #wait(round: number): void {
    if (round !== this.#round || this.#phase === 'armed') return;
    const isTyping = this.#phase === 'shown' && this.#handlers.isTyping();
    const quietMs = isTyping ? QUIET_TYPING_MS : QUIET_MS;
    const since = this.#phase === 'hidden' ? this.#lastKeyAt : Math.max(this.#shownAt, this.#lastKeyAt);
    const left = since + quietMs - this.#clock.now();
    if (left > 0) {
      this.#clock.after(left, () => this.#wait(round));
      return;
    }
    if (this.#phase !== 'hidden') {
      this.#phase = 'armed';
      this.#handlers.armed();
      return;
    }
    this.#phase = 'shown';
    this.#shownAt = this.#clock.now();
    this.#handlers.shown();
    this.#wait(round);
  }
}
