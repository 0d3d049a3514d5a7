/**
 * Questions that the user answers with a key, after reading them to the end.
 *
 * From top to bottom: `Questions`, the tool calls that wait for an approval; `questionFrame`, which
 * draws one of them; `ContentQuestion`, about any other text, such as a hook to be trusted;
 * `ArmingDelay`, a pause before keys count, since a key that was typed for the input line must not
 * answer a question; and `ReadingWindow`, how far the user has read. `Safe` is text that can't
 * control the terminal.
 */

import type { Clock } from '@pawl/agent/platform/clock';
import {
  type AllowingAnswer,
  type ApprovalRequest,
  createFolderRule,
  describeQuestion,
  describeSubject,
  type ReplyAnswer,
} from '@pawl/agent/policy/approval-question';
import type { PolicySettings } from '@pawl/agent/policy/decide';
import type { RuleSubject } from '@pawl/agent/policy/presets';
import { grantablePrefix } from '@pawl/agent/policy/rules';
import type { Stepped } from '@pawl/agent/ports/session';
import {
  applyKey,
  type Editor,
  editorFrame,
  emptyEditor,
  insertPaste,
  openEditor,
  wholeText,
} from './composer.js';
import type { Key, Pressed } from './keys.js';
import type { Frame } from './live-area.js';
import { countColumns, cutLine, fitWords, type Look, oneLine, paint } from './paint.js';
import {
  answerForLetter,
  answerLetter,
  answerRows,
  contentRows,
  nearPath,
  subjectAndFacts,
  type TerminalAnswer,
  type TerminalQuestion,
} from './question-rows.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

/** An answer to one question. A yes to all is one answer for each. */
export type AnsweredQuestion =
  | { readonly question: ApprovalRequest; readonly answer: AllowingAnswer }
  /** The user's words, or the text of the choice. */
  | { readonly question: ApprovalRequest; readonly answer: ReplyAnswer; readonly text: string }
  | { readonly question: ApprovalRequest; readonly answer: 'no'; readonly reason: string }
  /** `rule`: a permission rule to be written, which holds for ever in this folder. */
  | { readonly question: ApprovalRequest; readonly answer: 'folder'; readonly rule: RuleSubject };

type QuestionHandlers = {
  /** The question is visible and accepts answers from now on. */
  open(question: ApprovalRequest): void;
  /** Several answers if one key answers all questions. */
  answered(answers: readonly AnsweredQuestion[]): void;
  /** The question disappeared while the user typed `reply` for it. */
  unanswered(reply: string): void;
  /** Whether the user is typing a text. A question waits longer then. */
  isTyping(): boolean;
  /** The frame has to be drawn again. */
  changed(): void;
};

/** Advice where the typed text is empty. In a plan, every letter is text. */
const EMPTY_TEXTS = {
  reply: 'type an answer; Escape leads back to the question',
  edit: 'the plan is empty; Escape leads back to the question',
} as const;

/** No yes counts in a narrower window: it could cut rows off. */
const COLUMNS_MIN = 20;

type OpenQuestion = {
  readonly question: ApprovalRequest;
  readonly description: TerminalQuestion;
  /** The rule of the answer `folder`; null if that is not offered. */
  readonly folderRule: RuleSubject | null;
  /** The first words of the commands that a lasting answer allows; empty for other calls. */
  readonly prefix: string;
  readonly reading: ReadingWindow;
};

/**
 * A question as the terminal asks it: with a rule for the folder among the answers, if one fits.
 */
const openQuestion = (question: ApprovalRequest, settings: PolicySettings): OpenQuestion => {
  const described = describeQuestion(question, settings.workspace);
  const folderRule = createFolderRule(question.call, settings);
  const lasting =
    folderRule === null ? [] : [{ answer: 'folder', allows: describeSubject(folderRule) } as const];
  // the lasting answer stands before the no
  const choices = described.choices.flatMap((choice) =>
    choice.answer === 'no' ? [...lasting, choice] : [choice],
  );
  const description = { ...described, choices };
  const prefix = (grantablePrefix(question.call.facts) ?? []).join(' ');
  return { question, description, folderRule, prefix, reading: new ReadingWindow() };
};

/**
 * `off` accepts a yes to unread text. Only a test uses it: it shows that the test of `on` would
 * find such a yes.
 */
export type ReadingGuard = 'on' | 'off';

/**
 * Calls that wait for the user's approval. One is in focus; the others are listed.
 *
 * 1. Keys answer a question only after it was visible and the keyboard was quiet for a moment.
 *    Earlier keys go where the user was typing. One that the user turns to, by Tab, takes keys at
 *    once.
 * 2. A yes counts only after every row was on the screen, at the current size of the window. A yes
 *    to all needs this for each question.
 * 3. A text typed at one question never answers the next one. If the question disappears, the text
 *    is given back.
 */
export class Questions {
  readonly #arming: ArmingDelay;
  readonly #handlers: QuestionHandlers;
  readonly #guard: ReadingGuard;
  #open: readonly OpenQuestion[] = [];
  #current: OpenQuestion | null = null;
  /** Whether a call whose change is still computed may precede those that already ask. */
  #isIncomplete = false;
  /** The text that the user types for the question; null while only single keys answer. */
  #reason: Editor | null = null;
  /** What that text is: the reason of a no, the answer to a question, or an edited plan. */
  #typing: 'no' | 'reply' | 'edit' = 'no';
  #advice = '';
  /** Size of the window at the last drawing. */
  #drawn: WindowSize | null = null;
  /** The rows of the last layout, kept while `key` (all that they depend on) is the same. */
  #layout: {
    readonly question: OpenQuestion;
    readonly key: string;
    readonly asked: readonly Safe[];
    readonly answers: readonly Safe[];
  } | null = null;

  constructor(clock: Clock, handlers: QuestionHandlers, guard: ReadingGuard = 'on') {
    this.#arming = new ArmingDelay(clock, {
      isTyping: () => handlers.isTyping(),
      shown: () => handlers.changed(),
      armed: () => {
        if (this.#current !== null) handlers.open(this.#current.question);
      },
    });
    this.#handlers = handlers;
    this.#guard = guard;
  }

  /** The question in focus; null if none is visible. */
  get current(): ApprovalRequest | null {
    return this.#arming.phase === 'hidden' ? null : (this.#current?.question ?? null);
  }

  get description(): TerminalQuestion | null {
    return this.#arming.phase === 'hidden' ? null : (this.#current?.description ?? null);
  }

  /** Whether keys go to the question, and no longer to the input line. */
  get takesKeys(): boolean {
    return this.#arming.phase === 'armed' || this.#arming.phase === 'next';
  }

  /** The first words of the commands that a lasting answer would allow. */
  get prefix(): string {
    return this.#current?.prefix ?? '';
  }

  /** All open questions, in the order of the calls. */
  get all(): readonly TerminalQuestion[] {
    return this.#open.map(({ description }) => description);
  }

  /** Number of the question in focus, from 1. */
  get position(): number {
    return this.#current === null ? 0 : this.#open.indexOf(this.#current) + 1;
  }

  /** Why the last key did nothing; empty if it did something. */
  get advice(): string {
    return this.#advice;
  }

  /** The text that the user types for the question, or null. */
  get reason(): Editor | null {
    return this.#reason;
  }

  /** The letter that began the typed text: `n`, `t` or `e`. */
  get typing(): string {
    return answerLetter(this.#typing);
  }

  /** Whether the question in focus asks for words, and allows nothing. */
  get isForWords(): boolean {
    return this.takesKeys && this.offers('reply');
  }

  /** The text that the user types for the question, with pastes in full. */
  get replied(): string {
    return this.#reason === null ? '' : wholeText(this.#reason);
  }

  /** Drops the typed text, and waits for an answer again. */
  stopTyping(): void {
    this.#reason = null;
  }

  /** Call for every key. */
  keyPressed(): void {
    this.#arming.keyPressed();
  }

  /** Call after every step: opens the questions that it asks, and drops those that are over. */
  see({ actions, state }: Pick<Stepped, 'actions' | 'state'>): void {
    if (state.name !== 'ExecutingTools') {
      this.#isIncomplete = false;
      this.#setOpen([]);
      return;
    }
    const { settings } = state.session;
    let open = this.#open;
    for (const action of actions) {
      if (action.type === 'RequestApproval') open = [...open, openQuestion(action, settings)];
      if (action.type === 'WithdrawApproval')
        open = open.filter(({ question }) => question.call.callId !== action.callId);
    }
    const callIds = (state.calls ?? []).map(({ judged }) => judged.callId);
    const callIndex = ({ question }: OpenQuestion): number => callIds.indexOf(question.call.callId);
    // Answered in another window, or by a command: no action withdraws it.
    const isAnswered = ({ question }: OpenQuestion): boolean =>
      (state.calls ?? []).some(
        ({ status, judged }) =>
          judged.callId === question.call.callId && status !== 'awaitingApproval',
      );
    this.#isIncomplete = (state.calls ?? []).some(({ status }) => status === 'previewing');
    this.#setOpen(
      open
        .filter((one) => !isAnswered(one))
        .toSorted((one, other) => callIndex(one) - callIndex(other)),
    );
  }

  /**
   * The rows that fit, with or without the answers. Calling this marks them as read, so call it
   * only to draw them.
   */
  rows(
    look: Look,
    height: number,
    window: WindowSize,
    part: 'asked' | 'all' = 'all',
  ): readonly Safe[] {
    const current = this.#current;
    if (current === null) return [];
    // Advice about the old size may be wrong now, and all is to be read again.
    if (this.#drawn !== null && !isSameSize(this.#drawn, window)) this.#advice = '';
    this.#drawn = window;
    const { asked, answers } = this.layout(look, window.columns);
    const rows = part === 'asked' ? asked : [...asked, ...answers];
    const top = current.reading.show(rows.length, height, window);
    return rows.slice(top, top + height);
  }

  /** What is asked, and the answers with what they allow. Marks nothing as read. */
  layout(
    look: Look,
    columns: number,
  ): { readonly asked: readonly Safe[]; readonly answers: readonly Safe[] } {
    const question = this.#current;
    if (question === null) return { asked: [], answers: [] };
    const key = `${columns} ${look.colour} ${look.background}`;
    if (this.#layout?.question === question && this.#layout.key === key) return this.#layout;
    const { description } = question;
    const asked = subjectAndFacts(description, look, columns);
    const answers = answerRows(description, look, columns);
    this.#layout = { question, key, asked, answers };
    return this.#layout;
  }

  /** Number of unread rows. */
  get unreadRows(): number {
    return this.#current?.reading.unreadRows ?? 0;
  }

  #isRead({ reading }: OpenQuestion, window: WindowSize): boolean {
    return this.#guard === 'off' || (window.columns >= COLUMNS_MIN && reading.isRead(window));
  }

  /** A key or a paste, while `takesKeys`. */
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
  answer(answer: TerminalAnswer, reason = ''): void {
    const current = this.#current;
    if (current === null || this.#arming.phase !== 'armed') return;
    if (answer === 'no') this.#close([{ question: current.question, answer, reason }]);
    else this.#allow(current, answer, reason);
  }

  #allow(
    { question, folderRule, description }: OpenQuestion,
    answer: Exclude<TerminalAnswer, 'no'>,
    words = '',
  ): void {
    switch (answer) {
      case 'folder':
        if (folderRule !== null) this.#close([{ question, answer, rule: folderRule }]);
        return;
      case 'edit':
      case 'reply':
        // an empty text is no answer
        if (words.trim() === '') this.#advice = EMPTY_TEXTS[answer];
        else this.#close([{ question, answer, text: words.trim() }]);
        return;
      case '1':
      case '2':
      case '3':
      case '4': {
        const chosen = description.choices.find((choice) => choice.answer === answer);
        if (chosen !== undefined) this.#close([{ question, answer, text: chosen.allows }]);
        return;
      }
      default:
        this.#close([{ question, answer }]);
    }
  }

  /** Whether one yes can be an answer to all open questions. */
  get takesAll(): boolean {
    const { all } = this;
    return (
      all.length > 1 && all.every(({ choices }) => choices.some(({ answer }) => answer === 'once'))
    );
  }

  /** Allows all open questions once. */
  answerAll(): void {
    if (this.#arming.phase === 'armed')
      this.#close(this.#open.map(({ question }) => ({ question, answer: 'once' })));
  }

  offers(answer: TerminalAnswer): boolean {
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
    this.#current = this.#open[(index + this.#open.length) % this.#open.length] ?? this.#current;
  }

  /** Answers with a letter, begins a text, or says why the letter does nothing. */
  #takeLetter(current: OpenQuestion, letter: string, window: WindowSize): void {
    // typed so fast that `n` (or `t`) and the text after it came together
    const [, first = '', quick] = /^([nNt])(.+)$/s.exec(letter) ?? [];
    const isReply = first === 't';
    if (quick !== undefined && (!isReply || this.offers('reply'))) {
      this.#typing = isReply ? 'reply' : 'no';
      this.#reason = insertPaste(emptyEditor, quick);
      return;
    }
    if (letter === 'A' && this.takesAll) {
      this.#takeAll(window);
      return;
    }
    const answer = answerForLetter(letter);
    if (answer === undefined || !this.offers(answer)) {
      if (letter === '') return; // a key without a character
      const isAnswer = letter === 'A' || (answer !== undefined && /\D/.test(letter));
      this.#advice = isAnswer ? 'this call does not offer that answer' : `'${letter}' is no answer`;
    } else if (answer === 'no' || answer === 'reply') {
      this.#typing = answer;
      this.#reason = emptyEditor;
    } else if (!this.#isRead(current, window)) {
      const isNarrow = window.columns < COLUMNS_MIN;
      this.#advice = isNarrow ? 'the window is too narrow' : 'read to the end first: ↓ or space';
      current.reading.nextPage();
    } else if (answer === 'edit') {
      this.#typing = answer;
      this.#reason = openEditor(current.description.subject.text);
    } else this.#allow(current, answer);
  }

  #takeAll(window: WindowSize): void {
    const unread = this.#open.find((one) => !this.#isRead(one, window));
    if (unread !== undefined) {
      this.#advice = 'read all of them to the end first: tab and ↓';
      this.#current = unread;
    } else this.answerAll();
  }

  /** A key while a text is typed. */
  #takeReason(current: OpenQuestion, reason: Editor, pressed: Pressed): void {
    const { question } = current;
    if (pressed.kind === 'paste') {
      this.#reason = insertPaste(reason, pressed.text);
      return;
    }
    const { key } = pressed;
    const sends = key.name === 'enter' && !key.alt;
    if (sends && this.#typing !== 'no') this.#allow(current, this.#typing, wholeText(reason));
    else if (sends) this.#close([{ question, answer: 'no', reason: wholeText(reason).trim() }]);
    else if (key.name === 'backspace' && wholeText(reason) === '') this.#reason = null;
    else this.#reason = applyKey(reason, key);
  }

  /** Drops the answered questions, and passes the answers on. */
  #close(answers: readonly AnsweredQuestion[]): void {
    this.#reason = null;
    this.#setOpen(
      this.#open.filter(({ question }) => !answers.some((one) => one.question === question)),
    );
    this.#handlers.answered(answers);
  }

  /** The questions that are open now. If the one in focus is gone, the first one follows. */
  #setOpen(open: readonly OpenQuestion[]): void {
    const before = this.#current;
    this.#open = open;
    if (before !== null && open.includes(before)) return;
    const { replied } = this;
    this.#reason = null;
    this.#advice = '';
    if (replied !== '') this.#handlers.unanswered(replied);
    // While the list is incomplete, no question is in focus: the first one may still change.
    this.#current = this.#isIncomplete ? null : (open[0] ?? null);
    if (this.#current === null) this.#arming.stop();
    else this.#arming.begin();
  }
}

// ---- The frame of a question: its head, the rows that fit, the other questions, the keys ----

/**
 * The whole frame. `above`: rows that are left out if there is no room. `below`: the input line,
 * while keys still go to it. `last`: rows at the very bottom.
 */
export const questionFrame = (
  questions: Questions,
  look: Look,
  window: WindowSize,
  above: readonly Safe[],
  below: Frame | null,
  last: readonly Safe[] = [],
): Frame => {
  const room = Math.max(1, window.rows - 1 - last.length);
  const typed = below ?? typedFrame(questions, window.columns, room);
  const layout = questions.layout(look, window.columns);
  const head = questionHead(questions, look, window);
  const list = questionList(questions, look, window);
  const all = layout.asked.length + layout.answers.length;

  // The answers are pinned (always visible below the text) if they fit beside all other rows.
  const seenKeys = questionKeys(questions, look, window, all, 'seen');
  const pinned = pinnedAnswers(
    questions,
    layout,
    room - head.length - list.length - seenKeys.length,
  );
  const isPinned = pinned.length > 0;

  // The foot is the typed text, or the keys.
  const keysFor = (unread: number) =>
    questionKeys(questions, look, window, unread, isPinned ? 'seen' : 'below');
  // The height of the text must not depend on the number of unread rows: that is known only once
  // the text is drawn.
  const keyHeight = Math.max(keysFor(all).length, keysFor(0).length);
  const footRows = Math.max(
    0,
    typed === null
      ? Math.min(keyHeight, Math.max(1, room - 2))
      : Math.min(typed.rows.length, room - 1),
  );

  // In a low window the head is cut, and the list of questions is left out if less than three rows
  // of the text would stay. The text gets the rest.
  const upperHead = head.slice(0, Math.max(0, room - footRows - 1));
  const free = room - footRows - upperHead.length - pinned.length;
  const listed = free - list.length >= 3 ? list : [];
  const part = isPinned || questions.reason !== null ? 'asked' : 'all';
  const total = part === 'asked' ? layout.asked.length : all;
  const bodyRows = Math.max(1, Math.min(free - listed.length, total));
  const body = [...questions.rows(look, bodyRows, window, part), ...pinned];

  // Drawing the text has changed the number of unread rows, which the keys name.
  const { advice } = questions;
  const keys =
    advice === '' ? keysFor(questions.unreadRows) : [adviceRow(advice, look, window.columns)];
  const foot = (typed?.rows ?? keys).slice(0, footRows);

  const spare = room - upperHead.length - body.length - listed.length - foot.length;
  const upper = spare > 0 ? above.slice(-spare) : [];
  const rows = [...upper, ...upperHead, ...body, ...listed, ...foot, ...last];
  const cursor = typed?.cursor ?? null;
  if (cursor === null || cursor.row >= foot.length) return { rows, cursor: null };
  const footAt = rows.length - foot.length - last.length;
  return { rows, cursor: { ...cursor, row: cursor.row + footAt } };
};

/**
 * The other questions are listed only in windows of at least this height, and at most this many.
 */
const LIST_ROWS_MIN = 16;
const LISTED_MAX = 5;
const REASON_ROWS = 3;

const nearPaths = ({ paths, folder }: TerminalQuestion): string =>
  paths.map((path) => nearPath(path, folder)).join(' ');

/** A question in a few words, for the list of the other questions. */
const questionTitle = (description: TerminalQuestion): string => {
  const { tool, subject } = description;
  return `${tool} ${subject.kind === 'change' ? nearPaths(description) : subject.text}`;
};

/** The list of all questions, if there are several. */
const questionList = (questions: Questions, look: Look, window: WindowSize): readonly Safe[] => {
  if (questions.all.length < 2 || window.rows < LIST_ROWS_MIN) return [];
  const rows = questions.all.slice(0, LISTED_MAX).map((description, index) => {
    const marker = index + 1 === questions.position ? safe`›` : safe` `;
    const title = oneLine(`${index + 1} ${questionTitle(description)}`, window.columns - 5);
    return safe`  ${paint(look, 'dim', cutLine(safe`${marker} ${title}`, window.columns - 3))}`;
  });
  const more = questions.all.length - LISTED_MAX;
  return [...rows, ...(more > 0 ? [paint(look, 'dim', safe`    … ${more} more`)] : [])];
};

const ACCESS = {
  repository: ' that can change the repository',
  network: ' with the network',
  outside: ' outside the sandbox',
} as const;

/** What the call wants, in a few words that are read at a glance. */
export const questionHeading = (description: TerminalQuestion): Safe => {
  const { subject, tool, needs, background } = description;
  const asks = (what: string): Safe => makeSafe(`Pawl asks: ${what}`.replace(/\s+/g, ' '));
  switch (subject.kind) {
    case 'command':
      return asks(
        `run this command${needs === null ? '' : ACCESS[needs]}${background ? ' in the background' : ''}`,
      );
    case 'change': {
      // the head of the diff: a new file is compared with /dev/null
      const isNew = /^--- \/dev\/null$/m.test(subject.text.slice(0, subject.text.indexOf('\n@@')));
      return asks(`${isNew ? 'create' : 'change'} ${nearPaths(description)}`);
    }
    case 'address':
      return asks('read this address');
    case 'input':
      return asks(`use ${tool}`);
    case 'question':
      return safe`The model asks you`;
    case 'plan':
      return safe`The model proposes a plan`;
    default:
      return subject.kind satisfies never;
  }
};

/** Lower windows have no rule (a horizontal line) above a question. */
const RULE_ROWS = 16;
/** A longer heading is cut. */
const HEADING_ROWS = 2;
/** As long as the edges of the input box: so short that a narrower window does not rewrap it. */
const RULE_COLUMNS = 40;

/** The heading of a question below a coloured rule. `place` ("2 of 3") is never cut. */
const headRows = (
  text: string,
  place: Safe,
  look: Look,
  { columns, rows }: WindowSize,
): readonly Safe[] => {
  const room = columns - 3;
  const whole = fitWords(safe`${oneLine(text, Number.POSITIVE_INFINITY)}${place}`, room);
  const lines =
    whole.length <= HEADING_ROWS ? whole : [safe`${oneLine(text, room - place.length)}${place}`];
  const head = lines.map((line, index) => {
    const sign = index === 0 ? paint(look, 'yellow', safe`?`) : safe` `;
    return safe`${sign} ${paint(look, 'bold', cutLine(line, room))}`;
  });
  const rule = paint(look, 'yellow', safe`─`.repeat(Math.min(RULE_COLUMNS, columns - 1)));
  return rows < RULE_ROWS ? head : [rule, ...head];
};

const questionHead = (questions: Questions, look: Look, window: WindowSize): readonly Safe[] => {
  const { description, all, position } = questions;
  if (description === null) return [];
  const place = all.length > 1 ? safe` · ${position} of ${all.length}` : safe``;
  return headRows(questionHeading(description), place, look, window);
};

/** Keys with their meanings in rows. No key is cut: one that does not fit begins another row. */
const keyRows = (keys: readonly Safe[], columns: number): readonly Safe[] => {
  const rows: Safe[] = [];
  for (const key of keys) {
    const last = rows.at(-1);
    const longer = last === undefined ? key : safe`${last} · ${key}`;
    if (last === undefined || countColumns(longer) > columns - 3) rows.push(key);
    else rows[rows.length - 1] = longer;
  }
  return rows.flatMap((row) => fitWords(row, columns - 3).map((one) => safe`  ${one}`));
};

const adviceRow = (advice: string, look: Look, columns: number): Safe =>
  paint(look, 'yellow', cutLine(safe`  ${makeSafe(advice)}`, columns - 1));

/** Keys that count once all is read: while rows are `unread` they are dim, behind how many. */
const keysOnceRead = (keys: readonly Safe[], unread: number, look: Look): readonly Safe[] => {
  if (unread === 0) return keys;
  const rows = safe`↓ ${unread} more ${unread === 1 ? safe`row` : safe`rows`} (PgDn)`;
  const [first, ...others] = keys.map((key) => paint(look, 'dim', key));
  return [first === undefined ? rows : safe`${rows}; then ${first}`, ...others];
};

/** Whether an answer counts before all is read: it allows nothing. */
const countsAtOnce = (answer: TerminalAnswer): boolean => answer === 'no' || answer === 'reply';

/**
 * What a letter does, in two or three words, so that nobody confuses `p` with `P`; null if the rows
 * of the answers alone can say it. `prefix`: first words of the commands that `p` allows.
 */
const shortMeaning = (
  answer: TerminalAnswer,
  { subject, tool }: TerminalQuestion,
  prefix: string,
): Safe | null => {
  const isChange = subject.kind === 'change';
  const isCommand = subject.kind === 'command';
  const single = isChange ? safe`this file` : isCommand ? safe`this command` : safe`this call`;
  const group = isChange ? safe`files` : isCommand ? safe`commands` : oneLine(tool, 20);
  const words = oneLine(prefix === '' ? tool : `${prefix} *`, 20);
  switch (answer) {
    case 'once':
      return safe`yes`;
    case 'always':
      return safe`always ${single}`;
    case 'prefix':
      return safe`always ${words}`;
    case 'session':
      return safe`all ${group}`;
    case 'folder':
      return safe`for ever ${words}`;
    case 'reply':
      return safe`type`;
    case 'edit':
      return safe`edit`;
    case 'no':
      return safe`no`;
    default:
      return null;
  }
};

/** From this height on, keys with their meanings may take two rows more than without. */
const NAMED_ROWS = 15;

/**
 * The keys, while `unread` rows are below the window. `answers`: whether the rows that explain the
 * letters are in the window; if not, and if there is room, their meanings stand here.
 */
const questionKeys = (
  questions: Questions,
  look: Look,
  { columns, rows }: WindowSize,
  unread: number,
  answers: 'seen' | 'below',
): readonly Safe[] => {
  const { description, all } = questions;
  if (description === null) return [];
  const others = [
    ...(all.length > 1 ? [safe`Tab next`] : []),
    questions.isForWords ? safe`Escape declines` : safe`Escape stops`,
  ];
  const yesToAll = questions.takesAll ? [safe`A yes to all ${all.length}`] : [];
  const keys = description.choices.map(({ answer }) => {
    const letter = makeSafe(answerLetter(answer));
    const meaning = shortMeaning(answer, description, questions.prefix);
    const named = meaning === null ? letter : safe`${letter} ${meaning}`;
    return { letter, named, isLate: unread > 0 && !countsAtOnce(answer) };
  });
  const late = keys.filter(({ isLate }) => isLate);
  const now = keys.filter(({ isLate }) => !isLate);
  const joined = (some: typeof keys): readonly Safe[] =>
    some.length === 0
      ? []
      : [
          joinSafe(
            some.map(({ letter }) => letter),
            safe` `,
          ),
        ];
  if (unread === 0) return keyRows([...joined(now), ...yesToAll, ...others], columns);
  const short = keyRows(
    [...keysOnceRead([...joined(late), ...yesToAll], unread, look), ...joined(now), ...others],
    columns,
  );
  if (answers === 'seen') return short;
  const names = (some: typeof keys): readonly Safe[] => some.map(({ named }) => named);
  const long = keyRows(
    [...keysOnceRead([...names(late), ...yesToAll], unread, look), ...names(now), ...others],
    columns,
  );
  return long.length <= short.length + (rows >= NAMED_ROWS ? 2 : 0) ? long : short;
};

/** What Enter and Escape do while a text is typed. */
const typingKeys = (questions: Questions, columns: number): readonly Safe[] => {
  const keys: Readonly<Record<string, readonly Safe[]>> = {
    n: [safe`type a reason, or none`, safe`Enter sends the no`],
    t: [safe`type your answer`, safe`Enter sends it`],
    e: [safe`change the plan`, safe`Enter accepts it`],
  };
  return keyRows([...(keys[questions.typing] ?? []), safe`Escape takes it back`], columns);
};

/** The typed text, with the keys below it; or null. */
const typedFrame = (questions: Questions, columns: number, room: number) => {
  const { reason, typing } = questions;
  if (reason === null) return null;
  const keys = typingKeys(questions, columns);
  // A plan is edited whole: its text gets all rows but four, for the head and the edges.
  const rowsMax = typing === 'e' ? Math.max(REASON_ROWS, room - 4 - keys.length) : REASON_ROWS;
  const { rows, cursor } = editorFrame(reason, columns, rowsMax, makeSafe(typing));
  return { rows: [...rows, ...keys], cursor };
};

/** With less room for a long text, its answers are not pinned (always visible) below it. */
const ASKED_ROWS_MIN = 8;

/**
 * The answers that stay below the text however far it is scrolled. None while a text is typed, and
 * none if too little of a long text would be seen: the answers then scroll with it, at its end.
 */
const pinnedAnswers = (
  questions: Questions,
  { asked, answers }: ReturnType<Questions['layout']>,
  room: number,
): readonly Safe[] => {
  if (questions.reason !== null) return [];
  return room - answers.length >= Math.min(asked.length, ASKED_ROWS_MIN) ? answers : [];
};

// ---- A question about any text ----

export type ContentToRead = {
  /** One line: what is asked. */
  readonly title: string;
  readonly content: string;
  readonly kind: 'text' | 'diff';
  /** A sentence below the content: what a yes means. */
  readonly meaning: string;
  /** The keys that say yes; `y` alone without it. */
  readonly yes?: readonly YesKey[];
};

/** A small letter, and two or three words for what it does. */
export type YesKey = { readonly key: string; readonly means: string };

const ALLOW: readonly YesKey[] = [{ key: 'y', means: 'allow' }];

/** `later`: the user closed the question without an answer. */
export type ContentAnswer = YesKey | 'no' | 'later';

type ContentHandlers = { answered(answer: ContentAnswer): void; changed(): void };

/**
 * A question about a text that the user must have seen.
 *
 * 1. Keys answer only after the question was visible and the keyboard was quiet for a moment.
 * 2. A yes counts only after every row was on the screen, at the current size of the window.
 */
export class ContentQuestion {
  readonly #content: ContentToRead;
  readonly #handlers: ContentHandlers;
  readonly #arming: ArmingDelay;
  readonly #reading = new ReadingWindow();
  #advice = '';
  #drawn: WindowSize | null = null;

  constructor(content: ContentToRead, clock: Clock, handlers: ContentHandlers) {
    this.#content = content;
    this.#handlers = handlers;
    const changed = (): void => handlers.changed();
    this.#arming = new ArmingDelay(clock, {
      isTyping: () => false,
      shown: changed,
      armed: changed,
    });
  }

  /** Shows the question after a quiet moment. */
  open(): void {
    this.#arming.begin();
  }

  /** Call only to draw: the rows count as read. */
  frame(look: Look, window: WindowSize): Frame {
    if (this.#arming.phase === 'hidden') return { rows: [], cursor: null };
    // advice about the old size may be wrong now
    if (this.#drawn !== null && !isSameSize(this.#drawn, window)) this.#advice = '';
    this.#drawn = window;
    const { title } = this.#content;
    const head = headRows(title, safe``, look, window);
    const all = this.rows(look, window.columns);
    const free = window.rows - 1 - head.length - this.#footHeight(all.length, look, window);
    const height = Math.max(1, free);
    const top = this.#reading.show(all.length, height, window);
    return {
      rows: [...head, ...all.slice(top, top + height), ...this.#foot(look, window)],
      cursor: null,
    };
  }

  /** All rows below the title. */
  rows(look: Look, columns: number): readonly Safe[] {
    const { content, kind, meaning } = this.#content;
    const below = fitWords(makeSafe(meaning), columns - 4).map(
      (row) => safe`  ${paint(look, 'dim', row)}`,
    );
    return [...contentRows(content, kind, look, columns), ...below];
  }

  /**
   * The rows that the keys take at most, so that the height of the text does not change while it is
   * read.
   */
  #footHeight(total: number, look: Look, { columns }: WindowSize): number {
    return this.#keys(total, look, columns).length;
  }

  #foot(look: Look, { columns }: WindowSize): readonly Safe[] {
    if (this.#advice !== '') return [adviceRow(this.#advice, look, columns)];
    if (this.#arming.phase !== 'armed') return [paint(look, 'dim', safe`  read it first`)];
    return this.#keys(this.#reading.unreadRows, look, columns);
  }

  /** `unread`: rows below the window. */
  #keys(unread: number, look: Look, columns: number): readonly Safe[] {
    const { yes = ALLOW } = this.#content;
    const others =
      yes.length > 1
        ? [safe`n never`, safe`Escape later`]
        : [safe`n never run this`, safe`Escape ask again next time`];
    const keys = yes.map(({ key, means }) => makeSafe(`${key} ${means}`));
    return keyRows([...keysOnceRead(keys, unread, look), ...others], columns);
  }

  take(pressed: Pressed, window: WindowSize): void {
    this.#arming.keyPressed();
    this.#advice = '';
    if (pressed.kind === 'paste') this.#advice = 'answer with one key; the paste was ignored';
    else this.#takeKey(pressed.key, window);
    this.#handlers.changed();
  }

  /** A name scrolls, a text answers: a letter with Control or Alt has only a name. */
  #takeKey({ name, text }: Key, window: WindowSize): void {
    if (this.#reading.takeKey(name === '' ? text : name)) return;
    if (name === 'escape') this.#handlers.answered('later');
    else if (this.#arming.phase !== 'armed') this.#advice = 'this is a new question: read it first';
    else if (/^n$/i.test(text)) this.#handlers.answered('no');
    else if (text !== '') this.#sayYes(text, window);
  }

  #sayYes(typed: string, window: WindowSize): void {
    const yes = (this.#content.yes ?? ALLOW).find(({ key }) => key === typed.toLowerCase());
    if (yes === undefined) this.#advice = `'${typed.slice(0, 10)}' is no answer`;
    else if (window.columns < COLUMNS_MIN) this.#advice = 'the window is too narrow';
    else if (this.#reading.isRead(window)) this.#handlers.answered(yes);
    else {
      this.#advice = 'read to the end first: ↓ or space';
      this.#reading.nextPage();
    }
  }

  /** Ends the delay, so that no timer is left. */
  close(): void {
    this.#arming.stop();
  }
}

// ---- The delay before keys count ----

/**
 * The keyboard must be quiet for this long before keys count as an answer; longer while the user is
 * typing a text.
 */
const QUIET_MS = 300;
const QUIET_TYPING_MS = 1_000;

/**
 * `hidden`: no question. `shown`: the question is visible, and keys still go to the input line.
 * `next`: the question follows another one, and keys are ignored. `armed`: keys answer the
 * question.
 */
type ArmingPhase = 'hidden' | 'shown' | 'next' | 'armed';

type ArmingHandlers = {
  isTyping(): boolean;
  shown(): void;
  armed(): void;
};

/**
 * The delay before a question accepts keys: it appears after a quiet moment, and is armed after
 * another one.
 */
class ArmingDelay {
  readonly #clock: Clock;
  readonly #handlers: ArmingHandlers;
  #phase: ArmingPhase = 'hidden';
  #lastKeyAt = Number.NEGATIVE_INFINITY;
  #shownAt = 0;
  /** Number of the current delay. A timer of an earlier delay does nothing. */
  #round = 0;

  constructor(clock: Clock, handlers: ArmingHandlers) {
    this.#clock = clock;
    this.#handlers = handlers;
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
    // A question after an answer is visible at once; the first one only after a quiet moment. One
    // that replaces a `shown` one takes no keys from the input line either.
    if (this.#phase === 'armed') this.#phase = 'next';
    this.#shownAt = this.#clock.now();
    this.#round += 1;
    this.#wait(this.#round);
  }

  /** There is no question any more. */
  stop(): void {
    this.#phase = 'hidden';
    this.#round += 1;
  }

  /** Goes to the next phase after a quiet moment; begins again for each key until then. */
  #wait(round: number): void {
    if (round !== this.#round || this.#phase === 'armed') return;
    const isTyping = this.#phase === 'shown' && this.#handlers.isTyping();
    const quietMs = isTyping ? QUIET_TYPING_MS : QUIET_MS;
    // Before a question is shown only keys count, so it appears at once if nobody was typing.
    const since =
      this.#phase === 'hidden' ? this.#lastKeyAt : Math.max(this.#shownAt, this.#lastKeyAt);
    const waitMs = since + quietMs - this.#clock.now();
    if (waitMs > 0) {
      this.#clock.after(waitMs, () => this.#wait(round));
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

// ---- How far the user has read ----

/** Size of the window in which a text is read. */
export type WindowSize = { readonly columns: number; readonly rows: number };

const isSameSize = (one: WindowSize, other: WindowSize): boolean =>
  one.columns === other.columns && one.rows === other.rows;

/**
 * How far the user has read a text that is longer than the window.
 *
 * 1. A row is read once it was drawn. Rows are read in order; none is skipped.
 * 2. A change of the window's size marks all rows as unread.
 */
class ReadingWindow {
  #window: WindowSize = { columns: 0, rows: 0 };
  /** Index of the first row on the screen. */
  #top = 0;
  #height = 1;
  #total = 0;
  /** Number of rows that were on the screen, from the first one. */
  #seen = 0;

  /** Marks the next `height` of `total` rows as read; returns the index of the first to draw. */
  show(total: number, height: number, window: WindowSize): number {
    if (!this.#fits(window)) {
      this.#window = window;
      this.#top = 0;
      this.#seen = 0;
    }
    this.#total = total;
    this.#height = Math.max(1, height);
    this.#top = Math.min(this.#top, this.#last);
    if (this.#top <= this.#seen)
      this.#seen = Math.max(this.#seen, Math.min(total, this.#top + this.#height));
    return this.#top;
  }

  /** Scrolls if the key does that; returns whether it does. */
  takeKey(key: string): boolean {
    const steps: Readonly<Record<string, number>> = {
      up: -1,
      down: 1,
      enter: 1,
      pageup: -this.#height,
      pagedown: this.#height,
      ' ': this.#height,
      home: Number.NEGATIVE_INFINITY,
      end: Number.POSITIVE_INFINITY,
    };
    const step = Object.hasOwn(steps, key) ? steps[key] : undefined;
    if (step !== undefined) this.scroll(step);
    return step !== undefined;
  }

  nextPage(): void {
    this.scroll(this.#height);
  }

  /** Scrolls at most to the first unread row, so that none is skipped. */
  scroll(by: number): void {
    this.#top = Math.max(0, Math.min(this.#top + by, this.#last, this.#seen));
  }

  get unreadRows(): number {
    return Math.max(0, this.#total - this.#seen);
  }

  /** Whether all rows were on a screen of this size. */
  isRead(window: WindowSize): boolean {
    return this.#fits(window) && this.#total > 0 && this.unreadRows === 0;
  }

  /** The last row that may be the first one on the screen. */
  get #last(): number {
    return Math.max(0, this.#total - this.#height);
  }

  #fits(window: WindowSize): boolean {
    return isSameSize(window, this.#window);
  }
}
