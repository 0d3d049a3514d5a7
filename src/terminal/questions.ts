import type { Action } from '../agent/action.js';
import type { Clock, Stepped } from '../needs.js';
import { type Editor, emptyEditor, pasted, typed, wholeText } from './editor.js';
import { editorFrame } from './editor-rows.js';
import type { Frame } from './frame.js';
import type { Pressed } from './key.js';

export type Question = Extract<Action, { readonly type: 'RequestApproval' }>;

export type QuestionWishes = {
  /** What the call would change, for the user to see before the answer; null of a call of which nothing can be said. */
  foresee(question: Question): Promise<string | null> | null;
  /** A question stands on the screen and may be answered from now on. */
  open(question: Question): void;
  /** The question went away while an answer to it was being typed. */
  unanswered(reply: string): void;
};

/** Quiet time before keys count as an answer. */
const QUIET_MS = 300;

/**
 * Calls that wait for the user's answer, one at a time.
 *
 * 1. A question is answered only by keys pressed after it stood on the screen and the keyboard was quiet for a moment;
 *    what is typed earlier goes where it was going.
 * 2. What is typed at one question is never an answer to the next; if the question goes away, it is given back.
 */
export class Questions {
  readonly #clock: Clock;
  readonly #wishes: QuestionWishes;
  #waiting: readonly Question[] = [];
  #reply: Editor = emptyEditor;
  #foreseen: string | null = null;
  /** Rule 1: the first question may be answered. */
  #armed = false;
  #lastKeyAt = Number.NEGATIVE_INFINITY;
  #shownAt = 0;

  constructor(clock: Clock, wishes: QuestionWishes) {
    this.#clock = clock;
    this.#wishes = wishes;
  }

  /** The question that may be answered, or null. */
  get asked(): Question | null {
    return this.#armed ? (this.#waiting[0] ?? null) : null;
  }

  /** What the question that is asked would change, as a unified diff; null of what can't be foreseen. */
  get foreseen(): string | null {
    return this.#foreseen;
  }

  /** How many more wait behind the first. */
  get more(): number {
    return Math.max(0, this.#waiting.length - 1);
  }

  get replied(): string {
    return wholeText(this.#reply);
  }

  /** A key was pressed, whatever it was for. */
  notice(): void {
    this.#lastKeyAt = this.#clock.now();
  }

  see({ actions, state }: Stepped): void {
    let kept = this.#waiting;
    for (const action of actions) {
      if (action.type === 'RequestApproval') kept = [...kept, action];
      if (action.type === 'WithdrawApproval') kept = kept.filter(({ call }) => call.callId !== action.callId);
    }
    this.#keep(state.name === 'ExecutingTools' ? kept : []);
  }

  /** The first question was answered. */
  next(): void {
    this.#reply = emptyEditor;
    this.#keep(this.#waiting.slice(1));
  }

  /** A key at the question that is asked. */
  take(pressed: Pressed): void {
    this.#reply =
      pressed.kind === 'paste' ? pasted(this.#reply, pressed.text) : typed(this.#reply, pressed.key);
  }

  clearReply(): void {
    this.#reply = emptyEditor;
  }

  /** The line of the answer. */
  frame(columns: number): Frame {
    return editorFrame(this.#reply, columns, 3, '?');
  }

  #keep(kept: readonly Question[]): void {
    const same = kept[0] === this.#waiting[0];
    this.#waiting = kept;
    if (same) return;
    this.#armed = false;
    const { replied } = this;
    this.#reply = emptyEditor;
    if (replied !== '') this.#wishes.unanswered(replied);
    this.#foreseen = null;
    const [question] = kept;
    if (question === undefined) return;
    const foreseen = this.#wishes.foresee(question);
    if (foreseen === null) {
      this.#show(question, null);
      return;
    }
    // What can't be foreseen is asked for all the same.
    foreseen.then(
      (diff) => this.#show(question, diff),
      () => this.#show(question, null),
    );
  }

  #show(question: Question, diff: string | null): void {
    if (this.#waiting[0] !== question) return;
    this.#foreseen = diff;
    this.#shownAt = this.#clock.now();
    this.#waitForQuiet(question);
  }

  #waitForQuiet(question: Question): void {
    if (this.#waiting[0] !== question) return;
    const left = Math.max(this.#shownAt, this.#lastKeyAt) + QUIET_MS - this.#clock.now();
    if (left > 0) {
      this.#clock.after(left, () => this.#waitForQuiet(question));
      return;
    }
    this.#armed = true;
    this.#wishes.open(question);
  }
}
