/** Follows a session that another process holds, by its entries and by what is not journaled. */

import type { Event } from '../machine/event.js';
import { step } from '../machine/machine.js';
import type { State } from '../machine/state.js';
import type { Entry } from '../ports/journal.js';
import type { Stepped, Watcher } from '../ports/session.js';

const isOfOtherReply = (event: Event, state: State): boolean =>
  'requestId' in event && 'requestId' in state && event.requestId !== state.requestId;

/**
 * The steps of a session from its entries and from deltas (pieces of a reply or of an output).
 *
 * 1. Each step comes once and in order, as in the process of the session.
 * 2. Deltas are shown by a state that the next entry drops, so one that was lost harms nothing.
 * 3. Text that was streamed is not repeated when its entry comes.
 */
export class SessionFollower {
  readonly #watcher: Watcher;
  /** After the last entry. */
  #state: State;
  #seq: number;
  /** The state with the deltas since the last entry. */
  #shown: State;
  /** Text of the running reply that came without an entry. */
  #streamedText = '';

  constructor(state: State, seq: number, watcher: Watcher) {
    this.#state = state;
    this.#shown = state;
    this.#seq = seq;
    this.#watcher = watcher;
  }

  get state(): State {
    return this.#shown;
  }

  /** The last entry. */
  get seq(): number {
    return this.#seq;
  }

  /** The next entry of the journal. One that was seen before does nothing. */
  entry({ seq, event }: Entry): void {
    if (seq <= this.#seq) return;
    const before = this.#state;
    const shown = this.#shown;
    const streamedText = this.#streamedText;
    const isText = event.type === 'TextDelta';
    const isStreamed = isText && event.text.startsWith(streamedText);
    const rest = isStreamed ? { ...event, text: event.text.slice(streamedText.length) } : event;
    const stepped = step(shown, rest);
    this.#seq = seq;
    this.#state = shown === before ? stepped.state : step(before, event).state;
    this.#shown = this.#state;
    this.#streamedText = '';
    if (isStreamed && streamedText.length === event.text.length) return;
    this.#watcher({ seq: isText ? null : seq, event: rest, ...stepped, state: this.#state });
  }

  /** Shows a delta, unless it does not belong to what runs now: then it returns false. */
  delta(event: Event): boolean {
    if (isOfOtherReply(event, this.#shown)) return false;
    const stepped: Stepped = { seq: null, event, ...step(this.#shown, event) };
    const { state, actions, path } = stepped;
    if (state === this.#shown && actions.length === 0 && path.length === 0) return false;
    if (event.type === 'TextDelta') this.#streamedText += event.text;
    this.#shown = state;
    this.#watcher(stepped);
    return true;
  }

  /** Shows what is still unknown of the text after the entry `seq`, of which this is all so far. */
  pending({ event, seq }: { readonly event: Event; readonly seq: number }): void {
    if (seq !== this.#seq || event.type !== 'TextDelta') return;
    const text = event.text.slice(this.#streamedText.length);
    if (text !== '' && event.text.startsWith(this.#streamedText)) this.delta({ ...event, text });
  }
}
