import {
  type ApprovalChoice,
  type ApprovalDescription,
  type ApprovalRequest,
  describeQuestion,
} from '@pawl/agent/policy/approval-question';
import type { Clock } from '@pawl/agent/ports/clock';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { applyKey, type Editor, emptyEditor, insertPaste, wholeText } from '../input/editor.js';
import type { Pressed } from '../input/key.js';
import type { Look } from '../paint-text.js';
import type { Safe } from '../safe-text.js';
import { ArmingDelay } from './arming-delay.js';
import { letterOf, questionRows } from './question-rows.js';
import { isSameSize, ReadingWindow, type WindowSize } from './reading-window.js';

/** An answer to one question. A yes to all is one answer for each. */
export type AnsweredQuestion =
  | { readonly question: ApprovalRequest; readonly answer: Exclude<ApprovalChoice['answer'], 'no'> }
  | { readonly question: ApprovalRequest; readonly answer: 'no'; readonly reason: string };

export type QuestionHandlers = {
  /** The question is visible and accepts answers from now on. */
  open(question: ApprovalRequest): void;
  /** Several answers if one key answers all questions. */
  answered(answers: readonly AnsweredQuestion[]): void;
  /** The question disappeared while the user typed a reason. */
  unanswered(reply: string): void;
  /** Whether the user is typing a text. A question waits longer then. */
  isTyping(): boolean;
  changed(): void;
};

/** A narrower window could cut rows off. */
const COLUMNS_MIN = 20;

type OpenQuestion = {
  readonly question: ApprovalRequest;
  readonly description: ApprovalDescription;
  readonly reading: ReadingWindow;
};

/** `off` accepts a yes to unread text. Only for the control of the test that such a yes is never accepted. */
export type ReadingGuard = 'on' | 'off';

/**
 * Calls that wait for the user's approval. One is in focus; the others are listed.
 *
 * 1. Keys answer a question only after it was visible and the keyboard was quiet for a moment. Earlier keys go where the
 *    user was typing.
 * 2. A yes counts only after every row was on the screen, at the current size of the window. A yes to all needs this for
 *    each question.
 * 3. A text typed at one question never answers the next one. If the question disappears, the text is given back.
 */
export class Questions {
  readonly #arming: ArmingDelay;
  readonly #handlers: QuestionHandlers;
  readonly #guard: ReadingGuard;
  #asked: readonly OpenQuestion[] = [];
  #current: OpenQuestion | null = null;
  #reason: Editor | null = null;
  #advice = '';
  #drawn: WindowSize | null = null;
  /** The rows of the last layout. */
  #layout: { readonly asked: OpenQuestion; readonly key: string; readonly rows: readonly Safe[] } | null =
    null;

  constructor(clock: Clock, wishes: QuestionHandlers, guard: ReadingGuard = 'on') {
    this.#arming = new ArmingDelay(clock, {
      isTyping: () => wishes.isTyping(),
      shown: () => wishes.changed(),
      armed: () => {
        if (this.#current !== null) wishes.open(this.#current.question);
      },
    });
    this.#handlers = wishes;
    this.#guard = guard;
  }

  /** The question in focus, or null. */
  get current(): ApprovalRequest | null {
    return this.#arming.phase === 'hidden' ? null : (this.#current?.question ?? null);
  }

  get description(): ApprovalDescription | null {
    return this.#arming.phase === 'hidden' ? null : (this.#current?.description ?? null);
  }

  /** Whether keys go to the question. */
  get takesKeys(): boolean {
    return this.#arming.phase === 'armed' || this.#arming.phase === 'next';
  }

  /** All open questions, in the order of the calls. */
  get all(): readonly ApprovalDescription[] {
    return this.#asked.map(({ description }) => description);
  }

  /** Number of the question in focus, from 1. */
  get position(): number {
    return this.#current === null ? 0 : this.#asked.indexOf(this.#current) + 1;
  }

  /** Why the last key did nothing; empty if it did something. */
  get advice(): string {
    return this.#advice;
  }
  /** The reason of a refusal while the user types it, or null. */
  get reason(): Editor | null {
    return this.#reason;
  }

  get replied(): string {
    return this.#reason === null ? '' : wholeText(this.#reason);
  }

  /** Call for every key. */
  keyPressed(): void {
    this.#arming.keyPressed();
  }

  see({ actions, state }: Stepped): void {
    if (state.name !== 'ExecutingTools') {
      this.#keep([], false);
      return;
    }
    const { workspace } = state.session.settings;
    let kept = this.#asked;
    for (const action of actions) {
      if (action.type === 'RequestApproval') {
        const description = describeQuestion(action, workspace);
        kept = [...kept, { question: action, description, reading: new ReadingWindow() }];
      }
      if (action.type === 'WithdrawApproval')
        kept = kept.filter(({ question }) => question.call.callId !== action.callId);
    }
    const order = (state.calls ?? []).map(({ judged }) => judged.callId);
    const placeOf = ({ question }: OpenQuestion): number => order.indexOf(question.call.callId);
    const isIncomplete = (state.calls ?? []).some(({ status }) => status === 'previewing');
    this.#keep(
      kept.toSorted((one, other) => placeOf(one) - placeOf(other)),
      isIncomplete,
    );
  }

  /** The rows that fit. Calling this marks them as read, so call it only to draw them. */
  rows(look: Look, height: number, window: WindowSize): readonly Safe[] {
    const current = this.#current;
    if (current === null) return [];
    // Advice about the old size may be wrong now, and all is to be read again.
    if (this.#drawn !== null && !isSameSize(this.#drawn, window)) this.#advice = '';
    this.#drawn = window;
    const rows = this.#lay(current, look, window.columns);
    const top = current.reading.show(rows.length, height, window);
    return rows.slice(top, top + height);
  }

  /** Number of rows of the question. Marks nothing as read. */
  height(look: Look, columns: number): number {
    return this.#current === null ? 0 : this.#lay(this.#current, look, columns).length;
  }

  #lay(asked: OpenQuestion, look: Look, columns: number): readonly Safe[] {
    const key = `${columns} ${look.colour} ${look.background}`;
    if (this.#layout?.asked !== asked || this.#layout.key !== key)
      this.#layout = { asked, key, rows: questionRows(asked.description, look, columns) };
    return this.#layout.rows;
  }

  /** Number of unread rows. */
  get left(): number {
    return this.#current?.reading.left ?? 0;
  }

  #isRead({ reading }: OpenQuestion, window: WindowSize): boolean {
    return this.#guard === 'off' || (window.columns >= COLUMNS_MIN && reading.isRead(window));
  }

  take(pressed: Pressed, window: WindowSize): void {
    this.#advice = '';
    const current = this.#current;
    if (current === null) return;
    if (this.#reason !== null) {
      this.#takeReason(current, this.#reason, pressed);
      return;
    }
    if (pressed.kind === 'paste') {
      this.#advice = 'answer with one key; the paste was ignored';
      return;
    }
    const { name, text } = pressed.key;
    if (this.#move(current, name === '' ? text : name)) return;
    if (this.#arming.phase !== 'armed') {
      this.#advice = 'this is a new question: read it first';
      return;
    }
    this.#takeLetter(current, text, window);
  }

  /** Answers the question in focus, without a key. */
  answer(answer: ApprovalChoice['answer'], reason = ''): void {
    const current = this.#current;
    if (current === null || this.#arming.phase !== 'armed') return;
    if (answer === 'no') this.#give([{ question: current.question, answer, reason }]);
    else this.#give([{ question: current.question, answer }]);
  }

  /** Allows all open questions once. */
  answerAll(): void {
    if (this.#arming.phase === 'armed')
      this.#give(this.#asked.map(({ question }) => ({ question, answer: 'once' })));
  }

  offers(answer: ApprovalChoice['answer']): boolean {
    return this.#current?.description.choices.some((choice) => choice.answer === answer) === true;
  }

  /** Scrolls, or moves to another question. Returns whether the key does that. */
  #move({ reading }: OpenQuestion, key: string): boolean {
    if (reading.takeKey(key)) return true;
    if (key === 'tab' || key === 'right') this.#focusNext(1);
    else if (key === 'left') this.#focusNext(-1);
    else return false;
    return true;
  }

  #focusNext(by: number): void {
    const index = this.position - 1 + by;
    this.#current = this.#asked[(index + this.#asked.length) % this.#asked.length] ?? this.#current;
  }

  #takeLetter(current: OpenQuestion, letter: string, window: WindowSize): void {
    const quick = /^[nN](.+)$/s.exec(letter)?.[1]; // typed so fast that `n` and the reason came together
    if (quick !== undefined) {
      this.#reason = insertPaste(emptyEditor, quick);
      return;
    }
    const { choices } = current.description;
    const answer = choices.find(
      (one) => letterOf(one.answer) === (/^[YN]$/.test(letter) ? letter.toLowerCase() : letter),
    )?.answer;
    if (letter === 'A' && this.#asked.length > 1) {
      this.#takeAll(window);
      return;
    }
    if (answer === undefined) {
      const why =
        'aps'.includes(letter) && letter !== ''
          ? 'this call does not offer that answer'
          : `'${letter}' is no answer`;
      if (letter !== '') this.#advice = why;
    } else if (answer === 'no') this.#reason = emptyEditor;
    else if (!this.#isRead(current, window)) {
      const isNarrow = window.columns < COLUMNS_MIN;
      this.#advice = isNarrow ? 'the window is too narrow' : 'read to the end first: ↓ or space';
      current.reading.nextPage();
    } else this.#give([{ question: current.question, answer }]);
  }

  #takeAll(window: WindowSize): void {
    const unread = this.#asked.find((asked) => !this.#isRead(asked, window));
    if (unread !== undefined) {
      this.#advice = 'read all of them to the end first: tab and ↓';
      this.#current = unread;
    } else this.answerAll();
  }

  #takeReason({ question }: OpenQuestion, reason: Editor, pressed: Pressed): void {
    if (pressed.kind === 'paste') this.#reason = insertPaste(reason, pressed.text);
    else if (pressed.key.name === 'enter' && !pressed.key.alt)
      this.#give([{ question, answer: 'no', reason: wholeText(reason).trim() }]);
    else if (pressed.key.name === 'backspace' && wholeText(reason) === '') this.#reason = null;
    else this.#reason = applyKey(reason, pressed.key);
  }

  #give(answers: readonly AnsweredQuestion[]): void {
    this.#reason = null;
    this.#keep(
      this.#asked.filter(({ question }) => !answers.some((one) => one.question === question)),
      false,
    );
    this.#handlers.answered(answers);
  }

  #keep(kept: readonly OpenQuestion[], isIncomplete: boolean): void {
    const before = this.#current;
    this.#asked = kept;
    if (before !== null && kept.includes(before)) return;
    const { replied } = this;
    this.#reason = null;
    this.#advice = '';
    if (replied !== '') this.#handlers.unanswered(replied);
    // While the list is incomplete, no question is in focus: the first one may still change.
    this.#current = isIncomplete ? null : (kept[0] ?? null);
    if (this.#current === null) this.#arming.stop();
    else this.#arming.begin();
  }
}
