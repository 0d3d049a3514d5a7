/**
 * Time on a session's own axis: milliseconds since its first event. A clock that was set back takes nothing away: the
 * time until the next event then counts as none.
 */
export class SessionClock {
  #last: number | null = null;
  #elapsed = 0;
  #setBack = 0;

  /** Goes on to the time of an event. Returns the milliseconds since the event before it. */
  advance(at: number): number {
    const since = at - (this.#last ?? at);
    if (since < 0) this.#setBack += 1;
    const passed = Math.max(0, since);
    this.#last = at;
    this.#elapsed += passed;
    return passed;
  }

  /** The milliseconds from the last event to `at`, at least 0. */
  since(at: number): number {
    return Math.max(0, at - (this.#last ?? at));
  }

  get elapsed(): number {
    return this.#elapsed;
  }

  /** How often the clock was set back. */
  get setBack(): number {
    return this.#setBack;
  }
}
