import {
  type ApprovalChoice,
  type ApprovalDescription,
  type ApprovalRequest,
  describeQuestion,
} from '../../agent/policy/approval-question.js';
import type { Clock } from '../../ports/clock.js';
import type { Stepped } from '../../ports/session.js';
import { type Editor, emptyEditor, pasted, typed, wholeText } from '../input/editor.js';
import type { Pressed } from '../input/key.js';
import type { Look } from '../print.js';
import type { Safe } from '../safe-text.js';
import { ArmingDelay } from './arming-delay.js';
import { letterOf, questionRows } from './question-rows.js';
import { ReadingWindow, type WindowSize } from './reading-window.js';

/** An answer to one question, or yes to all that wait. */
export type AnsweredQuestion =
  | { readonly question: ApprovalRequest; readonly answer: Exclude<ApprovalChoice['answer'], 'no'> }
  | { readonly question: ApprovalRequest; readonly answer: 'no'; readonly reason: string };

export type QuestionHandlers = {
  /** A question stands on the screen and may be answered from now on. */
  open(question: ApprovalRequest): void;
  /** The answers; several where all questions are answered with one key. */
  answered(answers: readonly AnsweredQuestion[]): void;
  /** The question went away while a reason was being typed. */
  unanswered(reply: string): void;
  /** Whether a text is being typed, which a question would interrupt. */
  isTyping(): boolean;
  /** The screen shows something else now. */
  changed(): void;
};

/** In a narrower window rows could be cut. */
const COLUMNS_MIN = 20;

type OpenQuestion = {
  readonly question: ApprovalRequest;
  readonly description: ApprovalDescription;
  readonly reading: ReadingWindow;
};

/** `off` accepts a yes to what was not on the screen: for the control of the test that it never does. */
export type ReadingGuard = 'on' | 'off';

/**
 * Calls that wait for the user's answer. One is looked at at a time; the others are listed.
 *
 * 1. A question is answered only by keys pressed after it stood on the screen and the keyboard was quiet for a moment;
 *    what is typed earlier goes where it was going.
 * 2. Nothing is allowed before all of it was on the screen, in a window of the size that it has now. All questions are
 *    allowed together only if that holds for each.
 * 3. What is typed at one question is never an answer to the next; if the question goes away, it is given back.
 */
export class Questions {
  /** Rule 1. */
  readonly #arming: ArmingDelay;
  readonly #wishes: QuestionHandlers;
  readonly #guard: ReadingGuard;
  #asked: readonly OpenQuestion[] = [];
  #current: OpenQuestion | null = null;
  #reason: Editor | null = null;
  #advice = '';
  /** The rows as they were laid out last. */
  #laid: { readonly asked: OpenQuestion; readonly key: string; readonly rows: readonly Safe[] } | null = null;

  constructor(clock: Clock, wishes: QuestionHandlers, guard: ReadingGuard = 'on') {
    this.#arming = new ArmingDelay(clock, {
      isTyping: () => wishes.isTyping(),
      shown: () => wishes.changed(),
      armed: () => {
        if (this.#current !== null) wishes.open(this.#current.question);
      },
    });
    this.#wishes = wishes;
    this.#guard = guard;
  }

  /** The question on the screen, or null. */
  get current(): ApprovalRequest | null {
    return this.#arming.phase === 'hidden' ? null : (this.#current?.question ?? null);
  }

  get description(): ApprovalDescription | null {
    return this.#arming.phase === 'hidden' ? null : (this.#current?.description ?? null);
  }

  /** Whether keys are for the question. */
  get takesKeys(): boolean {
    return this.#arming.phase === 'armed' || this.#arming.phase === 'next';
  }

  /** All that wait, in the order of the calls. */
  get all(): readonly ApprovalDescription[] {
    return this.#asked.map(({ description }) => description);
  }

  /** Which of them is looked at, from 1. */
  get position(): number {
    return this.#current === null ? 0 : this.#asked.indexOf(this.#current) + 1;
  }

  /** Why nothing came of the last key; empty if something did. */
  get advice(): string {
    return this.#advice;
  }
  /** The reason of a refusal as it is being typed, or null. */
  get reason(): Editor | null {
    return this.#reason;
  }

  get replied(): string {
    return this.#reason === null ? '' : wholeText(this.#reason);
  }

  /** A key was pressed, whatever it was for. */
  notice(): void {
    this.#arming.notice();
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

  /** The part of the question that a window has room for; it is read by being asked for, when it is drawn. */
  rows(look: Look, height: number, window: WindowSize): readonly Safe[] {
    const current = this.#current;
    if (current === null) return [];
    const rows = this.#lay(current, look, window.columns);
    const top = current.reading.show(rows.length, height, window);
    return rows.slice(top, top + height);
  }

  /** Rows of the question; they are not read by this. */
  height(look: Look, columns: number): number {
    return this.#current === null ? 0 : this.#lay(this.#current, look, columns).length;
  }

  #lay(asked: OpenQuestion, look: Look, columns: number): readonly Safe[] {
    const key = `${columns} ${look.colour} ${look.background}`;
    if (this.#laid?.asked !== asked || this.#laid.key !== key)
      this.#laid = { asked, key, rows: questionRows(asked.description, look, columns) };
    return this.#laid.rows;
  }

  /** Rows of the question that were not on the screen yet. */
  get left(): number {
    return this.#current?.reading.left ?? 0;
  }

  #isRead({ reading }: OpenQuestion, window: WindowSize): boolean {
    return this.#guard === 'off' || (window.columns >= COLUMNS_MIN && reading.isRead(window));
  }

  /** A key at the question. */
  take(pressed: Pressed, window: WindowSize): void {
    this.#advice = '';
    const current = this.#current;
    if (current === null) return;
    if (this.#reason !== null) {
      this.#takeReason(current, this.#reason, pressed);
      return;
    }
    if (pressed.kind === 'paste') {
      this.#advice = 'one key answers; what was pasted is dropped';
      return;
    }
    const { name, text } = pressed.key;
    if (this.#move(current, name === '' ? text : name)) return;
    if (this.#arming.phase !== 'armed') {
      this.#advice = 'a new question: look at it first';
      return;
    }
    this.#takeLetter(current, text, window);
  }

  /** An answer that came as a word or a line. */
  answer(answer: ApprovalChoice['answer'], reason = ''): void {
    const current = this.#current;
    if (current === null || this.#arming.phase !== 'armed') return;
    if (answer === 'no') this.#give([{ question: current.question, answer, reason }]);
    else this.#give([{ question: current.question, answer }]);
  }

  /** Yes, once, to all. */
  answerAll(): void {
    if (this.#arming.phase === 'armed')
      this.#give(this.#asked.map(({ question }) => ({ question, answer: 'once' })));
  }

  /** Whether the current call offers the answer. */
  offers(answer: ApprovalChoice['answer']): boolean {
    return this.#current?.description.choices.some((choice) => choice.answer === answer) === true;
  }

  /** Scrolls, or looks at another question; whether the key does that. */
  #move({ reading }: OpenQuestion, key: string): boolean {
    const steps: Readonly<Record<string, number>> = {
      ...{ up: -1, down: 1, enter: 1, pageup: -reading.page, pagedown: reading.page, ' ': reading.page },
      ...{ home: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY },
    };
    const step = steps[key];
    if (step !== undefined) reading.scroll(step);
    else if (key === 'tab' || key === 'right') this.#look(1);
    else if (key === 'left') this.#look(-1);
    else return false;
    return true;
  }

  #look(by: number): void {
    const index = this.position - 1 + by;
    this.#current = this.#asked[(index + this.#asked.length) % this.#asked.length] ?? this.#current;
  }

  #takeLetter(current: OpenQuestion, letter: string, window: WindowSize): void {
    const quick = /^[nN](.+)$/s.exec(letter)?.[1]; // typed so fast that it came at once
    if (quick !== undefined) this.#reason = pasted(emptyEditor, quick);
    if (quick !== undefined) return;
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
      current.reading.scroll(current.reading.page);
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
    if (pressed.kind === 'paste') this.#reason = pasted(reason, pressed.text);
    else if (pressed.key.name === 'enter' && !pressed.key.alt)
      this.#give([{ question, answer: 'no', reason: wholeText(reason).trim() }]);
    else if (pressed.key.name === 'backspace' && wholeText(reason) === '') this.#reason = null;
    else this.#reason = typed(reason, pressed.key);
  }

  #give(answers: readonly AnsweredQuestion[]): void {
    this.#reason = null;
    this.#keep(
      this.#asked.filter(({ question }) => !answers.some((one) => one.question === question)),
      false,
    );
    this.#wishes.answered(answers);
  }

  #keep(kept: readonly OpenQuestion[], isIncomplete: boolean): void {
    const before = this.#current;
    this.#asked = kept;
    if (before !== null && kept.includes(before)) return;
    const { replied } = this;
    this.#reason = null;
    this.#advice = '';
    if (replied !== '') this.#wishes.unanswered(replied);
    // the first of several is not looked at before it is known which they are
    this.#current = isIncomplete ? null : (kept[0] ?? null);
    if (this.#current === null) this.#arming.stop();
    else this.#arming.begin();
  }
}
