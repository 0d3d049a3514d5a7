/**
 * The view of one session: what the screen shows, and which part receives each key.
 *
 * From top to bottom: its parts; the view; the requests that it makes to the session
 * (`ViewHandlers`); and the words for commands that had no effect, for an answer and for a grant.
 */

import type { ServerAnswer, ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import { conversationLength } from '@pawl/agent/machine/conversation';
import type { ApprovalAnswer, Event, InputMode } from '@pawl/agent/machine/event';
import { isBusy, type State } from '@pawl/agent/machine/state';
import { type Clock, isSoonAfter } from '@pawl/agent/platform/clock';
import {
  type ApprovalRequest,
  describeGrant,
  scopeOfAnswer,
} from '@pawl/agent/policy/approval-question';
import type { RuleSubject } from '@pawl/agent/policy/presets';
import type { ApprovalScope, Grant } from '@pawl/agent/policy/rules';
import type { Stepped } from '@pawl/agent/ports/session';
import { type Choice, openPicker, type Picker, pick, pickerFrame } from '@pawl/terminal/choices';
import type { Composer, ComposerResult } from '@pawl/terminal/composer';
import type { Key, Pressed } from '@pawl/terminal/keys';
import {
  type Frame,
  inputBox,
  keyCard,
  type LiveArea,
  queuedRows,
  settingsRows,
  statusRow,
  withPlaceholder,
} from '@pawl/terminal/live-area';
import {
  indentWords,
  type Look,
  lineSign,
  oneLine,
  paint,
  paintTyped,
  shortened,
} from '@pawl/terminal/paint';
import {
  type AnsweredQuestion,
  Questions,
  questionFrame,
  type WindowSize,
} from '@pawl/terminal/questions';
import {
  type PointList,
  pointListFrame,
  pressAtPoints,
  type TakenPoint,
} from '@pawl/terminal/rewind-list';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { createSentPrompts, type SentPrompts, Transcript } from '@pawl/terminal/transcript';
import type { RecentTurns } from '../sessions/open-session.js';
import { readTypedInput, type TypedInput } from '../sessions/typed-input.js';
import { createPlainQuestions, type PlainQuestions } from './plain-questions.js';
import { renderRecentTurns } from './recent-turns.js';
import { ServerForms } from './server-forms.js';

type ViewParts = {
  readonly area: LiveArea;
  readonly look: Look;
  readonly clock: Clock;
  readonly composer: Composer;
  /** Rows of the window. */
  rows(): number;
  /** MCP servers that the request waits for. Absent: there are none. */
  servers?(): readonly string[];
  /**
   * The price of the next request if the provider's cache is cold; null while it is warm or
   * nothing is known. Absent: it is never shown.
   */
  coldUsd?(state: State, now: number): number | null;
};

/** First words of a queued text in a plain terminal. */
const QUEUED_COLUMNS = 60;
/** Two interrupts within this time leave at once. */
const TWICE_MS = 2_000;
/** Two Escapes at rest within this time open the list of what can be taken back. */
const ESCAPES_MS = 800;

/** A list that takes the keys. */
type OpenList =
  | { readonly kind: 'choices'; readonly list: Picker; done(index: number | null): void }
  | { readonly kind: 'points'; readonly list: PointList; done(taken: TakenPoint | null): void };

/**
 * The screen of one session, and what its user is promised:
 *
 * 1. Typed text leaves the input line only on Enter or by the user's edits. Up brings back a
 *    refused line. Queued text that was not sent returns to the line.
 * 2. Only keys pressed at a question answer it (see Questions).
 */
export class InteractiveView {
  readonly #area: LiveArea;
  readonly #look: Look;
  readonly #clock: Clock;
  readonly #composer: Composer;
  readonly #rows: () => number;
  readonly #servers: () => readonly string[];
  readonly #coldUsd: (state: State, now: number) => number | null;
  readonly #handlers: ViewHandlers;
  readonly #transcript: Transcript;
  readonly #questions: Questions;
  readonly #plainQuestions: PlainQuestions;
  /** Questions of MCP servers; null before the first. */
  #serverForms: ServerForms | null = null;
  #state: State;
  #picking: OpenList | null = null;
  /** Keys that came while `withLists` had no list open; null outside of it. */
  #early: Pressed[] | null = null;
  /** A question of a plain terminal has taken a line whose Enter is still to come. */
  #isLineTaken = false;
  /**
   * The text that a rewind has put into the line, empty for none. While it is unchanged the line
   * counts as empty: Escape twice goes further back.
   */
  #rewound = '';
  /** Texts entered while the session works, or elsewhere: each is printed once it is sent. */
  readonly #prompts: SentPrompts;
  #isLeaving = false;
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #escapedAt = Number.NEGATIVE_INFINITY;

  constructor(
    { area, look, clock, composer, rows, servers = () => [], coldUsd = () => null }: ViewParts,
    handlers: ViewHandlers,
    state: State,
  ) {
    this.#area = area;
    this.#look = look;
    this.#clock = clock;
    this.#composer = composer;
    this.#rows = rows;
    this.#servers = servers;
    this.#coldUsd = coldUsd;
    this.#handlers = handlers;
    this.#state = state;
    this.#transcript = new Transcript(look, state.session.settings.workspace);
    this.#transcript.startFrom(state);
    this.#prompts = createSentPrompts(look);
    this.#questions = new Questions(clock, {
      open: () => this.#showQuestion(),
      answered: (answers) => this.#sendAnswers(answers),
      unanswered: (reply) => this.#keepReply(reply),
      isTyping: () => !composer.isEmpty,
      changed: () => {
        this.#picking?.done(null); // the list would cover the question
        this.redraw();
      },
    });
    this.#plainQuestions = createPlainQuestions(this.#questions, look, (text) => this.print(text));
  }

  get state(): State {
    return this.#state;
  }

  print(text: Safe): void {
    this.#area.print(text);
  }

  /**
   * Index of the user's choice, or null. A plain terminal only prints the list and returns null.
   * `current`: where the cursor stands first.
   */
  pick(title: string, all: readonly Choice[], current = 0): Promise<number | null> {
    if (this.#look.plain === 'yes') {
      this.print(
        makeSafe([title, ...all.map(({ text, about }) => `  ${text}  ${about}`)].join('\n')),
      );
      return Promise.resolve(null);
    }
    return this.#openList((done) => ({
      kind: 'choices',
      list: openPicker(title, all, current),
      done,
    }));
  }

  /** As `pick`, in a list of points. Not for plain terminals. */
  pickPoint(list: PointList): Promise<TakenPoint | null> {
    return this.#openList((done) => ({ kind: 'points', list, done }));
  }

  #openList<Taken>(open: (done: (taken: Taken | null) => void) => OpenList): Promise<Taken | null> {
    this.#picking?.done(null);
    return new Promise((resolve) => {
      this.#picking = open((taken) => {
        this.#picking = null;
        resolve(taken);
      });
      while (this.#picking !== null && this.#early !== null) {
        const pressed = this.#early.shift();
        if (pressed === undefined) break;
        this.#takeAtList(this.#picking, pressed);
      }
      this.redraw();
    });
  }

  /**
   * Runs `work`, which opens lists one after the other and takes a moment before each. Keys that
   * come meanwhile wait for that list; Escape and Ctrl-C, -Z, -O and -D act at once
   * (`#takeEverywhere`). Letters and pastes that no list has taken go to the line, other keys are
   * dropped.
   */
  async withLists(work: () => Promise<void>): Promise<void> {
    this.#early = [];
    try {
      await work();
    } finally {
      const rest = this.#early ?? [];
      this.#early = null;
      for (const pressed of rest)
        if (pressed.kind === 'paste' || pressed.key.text !== '')
          this.#useComposed(this.#composer.take(pressed));
      this.redraw();
    }
  }

  /**
   * Sends the prompt of the command line. It may come from a script, whose words must not run a
   * command: the user must enter one. A text that is not sent comes back to the line.
   */
  sendFirst(text: string): void {
    const input = readTypedInput(text, 'steer', this.#composer.commandNames);
    if (input.kind === 'say') {
      this.#enter(input, text);
      return;
    }
    const how = this.#look.plain === 'yes' ? 'Type it here' : 'Press Enter';
    const notRun = `A command is not run from the command line. ${how} to run it.`;
    this.#warn(input.kind === 'refused' ? input.why : notRun);
    this.takeBack([text]);
    this.redraw();
  }

  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** While the session leaves this window, Enter runs commands alone: a text stays in the line. */
  setLeaving(isLeaving: boolean): void {
    this.#isLeaving = isLeaving;
    this.redraw();
  }

  /**
   * Puts texts that were not sent into the input line. In a plain terminal nobody sees that line,
   * so they are printed.
   */
  takeBack(texts: readonly string[]): void {
    const text = joinLines(texts);
    if (this.#look.plain !== 'yes') this.#join([text, this.#composer.text]);
    else if (text !== '')
      this.print(safe`${lineSign(this.#look, '·')} not sent: ${makeSafe(text)}`);
  }

  /**
   * Puts the text of a turn that was taken back into the line, before what the user has typed. A
   * plain terminal has no line that one sees: there it is printed.
   */
  editAgain(text: string): void {
    const isFree = this.#isLineFree();
    if (this.#look.plain === 'yes')
      this.print(safe`${lineSign(this.#look, '·')} you wrote: ${makeSafe(text)}`);
    else this.#join(isFree ? [text] : [text, this.#composer.text]);
    this.#rewound = isFree ? this.#composer.text : '';
    this.redraw();
  }

  /** Draws the live area again, for a new time or a new window size. */
  redraw(): void {
    this.#area.draw(() => this.#frame());
  }

  /** Takes a key or a paste. */
  take(pressed: Pressed): void {
    this.#questions.keyPressed(); // a question takes keys only after a pause in typing
    const isLineEnd = this.#isLineTaken && pressed.kind === 'key' && pressed.key.name === 'enter';
    this.#isLineTaken = false;
    if (isLineEnd) return;
    if (pressed.kind !== 'key' || !this.#takeEverywhere(pressed.key)) {
      if (this.#picking !== null) this.#takeAtList(this.#picking, pressed);
      else if (this.#questions.takesKeys) this.#takeAtQuestion(pressed);
      else if (this.#early !== null) this.#early.push(pressed);
      else this.#useComposed(this.#composer.take(pressed));
    }
    this.#area.draw(() => this.#frame(), 'now');
  }

  /** Ctrl-C, or the signal. */
  interrupt(): void {
    const twice = isSoonAfter(this.#interruptedAt, this.#clock.now(), TWICE_MS);
    this.#interruptedAt = this.#clock.now();
    if (twice) this.#handlers.end('hard');
    else if (this.#picking !== null) this.#picking.done(null);
    else if (this.#handlers.stopUserCommand())
      this.print(paint(this.#look, 'dim', safe`  stopped`));
    else if (isBusy(this.#state)) this.#handlers.cancel();
    else if (!this.#composer.isEmpty) this.#handlers.keepUnsent(this.#composer.putAside());
    else this.print(paint(this.#look, 'dim', safe`Press Ctrl-C again or Ctrl-D to leave.`));
    this.redraw();
  }

  /** Prints the last turns of a resumed session. */
  showRecentTurns(past: RecentTurns): void {
    const text = renderRecentTurns(past, this.#transcript, this.#look);
    if (text !== '') this.print(text);
  }

  /** Shows an input of another window: a message once it is sent, an answer at once. */
  showTyped(event: Event): void {
    if (event.type === 'UserInput')
      this.#prompts.typed(event.text, paintTyped(this.#look, shortened(event.text)));
    if (event.type !== 'ApprovalAnswered') return;
    const text = oneLine(`decided elsewhere: ${answerText(event.answer)}`, this.#look.columns - 3);
    this.print(paint(this.#look, 'dim', safe`  ${text}`));
  }

  /** Shows questions that were asked before this window looked on. */
  showQuestions(state: State, actions: Stepped['actions']): void {
    this.#questions.see({ state, actions });
    this.redraw();
  }

  /** Asks again what was answered, and still waits: the answer was not confirmed. */
  askAgain(question: ApprovalRequest): void {
    const { batchId, call } = question;
    const state = this.#state;
    if (state.name !== 'ExecutingTools' || state.batchId !== batchId) return;
    const asked = state.calls.find(({ judged }) => judged.callId === call.callId);
    if (asked?.status === 'awaitingApproval') this.showQuestions(state, [question]);
  }

  /** Asks the user what an MCP server wants to know (`ServerForms.ask`). */
  askForServer(question: ServerQuestion, signal: AbortSignal): Promise<ServerAnswer> {
    const print = (text: Safe): void => {
      this.print(text);
      this.redraw();
    };
    this.#serverForms ??= new ServerForms(this.#look, print, {
      isBegun: () => !this.#composer.isEmpty,
      giveBack: (text) => this.takeBack([text]),
    });
    return this.#serverForms.ask(question, signal);
  }

  /** Shows a step of the session. */
  see(stepped: Stepped): void {
    const sent = this.#prompts.see(this.#state, stepped);
    this.#state = stepped.state;
    const text = this.#transcript.see(stepped); // the lines to print
    if (text !== '') this.print(text);
    for (const prompt of sent) this.print(prompt);
    const refusal = refusalText(stepped, this.#look);
    if (refusal !== '') this.print(refusal);
    this.#questions.see(stepped); // opens those that it asks, drops those that are over
    for (const action of stepped.actions) {
      if (action.type === 'RestoreQueue')
        this.takeBack(this.#handlers.withoutShellOutput(action.texts));
    }
    this.redraw();
  }

  /**
   * Handles keys that mean the same in the input line, a list and a question; false for others.
   * Ctrl-D leaves only where nothing is typed.
   */
  #takeEverywhere(key: Key): boolean {
    if (key.name === 'escape') this.#escape();
    else if (!key.control || key.alt) return false;
    else if (key.name === 'c') this.interrupt();
    else if (key.name === 'z') this.#handlers.suspend();
    else if (key.name === 'o') this.#expand();
    else if (key.name === 'd' && !this.#hasTyped) this.#handlers.end('clean');
    else return false;
    return true;
  }

  get #hasTyped(): boolean {
    const open = this.#picking;
    const filter = open?.kind === 'choices' ? open.list.words : (open?.list.filter ?? '');
    const typed = `${this.#composer.text}${this.#questions.replied}${filter}`;
    return typed !== '' || (this.#early ?? []).length > 0;
  }

  /**
   * Undoes the innermost thing that is there, in this order: a list, a completion, the card of
   * keys, the user's shell command, an answer that is being typed, a question in words, the turn.
   * Twice at rest it opens the list of a rewind.
   */
  #escape(): void {
    const twice = isSoonAfter(this.#escapedAt, this.#clock.now(), ESCAPES_MS);
    this.#escapedAt = Number.NEGATIVE_INFINITY;
    if (this.#picking !== null) this.#picking.done(null);
    else if (this.#composer.isOpen) this.#composer.escape();
    else if (this.#hasCard) this.#composer.setText('');
    else if (this.#handlers.stopUserCommand())
      this.print(paint(this.#look, 'dim', safe`  stopped`));
    // A reason or an answer that was being typed is dropped; the question stays.
    else if (this.#questions.reason !== null) this.#questions.stopTyping();
    // A question of the model in words: it can be refused without ending the turn.
    else if (this.#questions.isForWords) this.#questions.answer('no');
    else if (isBusy(this.#state)) this.#handlers.cancel();
    else if (twice && this.#early === null && this.#isLineFree()) this.#handlers.openList('rewind');
    else this.#escapedAt = this.#clock.now();
  }

  #isLineFree(): boolean {
    return this.#composer.isEmpty || this.#composer.text === this.#rewound;
  }

  /** Ctrl-O: prints in full what was last printed shortened. */
  #expand(): void {
    const whole = this.#transcript.expand();
    this.print(whole === '' ? paint(this.#look, 'dim', safe`  nothing is folded`) : whole);
  }

  #takeAtList(open: OpenList, pressed: Pressed): void {
    if (open.kind === 'choices') {
      const picked = pick(open.list, pressed);
      if (picked.kind === 'taken') open.done(picked.index);
      else this.#picking = { ...open, list: picked.picker };
      return;
    }
    const taken = pressAtPoints(open.list, pressed);
    if (taken.kind === 'taken') open.done(taken);
    else this.#picking = { ...open, list: taken.list };
  }

  #takeAtQuestion(pressed: Pressed): void {
    if (this.#look.plain !== 'yes') this.#questions.take(pressed, this.#window());
    // each line arrives as a paste and an Enter
    else if (pressed.kind === 'paste') {
      this.#isLineTaken = true;
      this.#plainQuestions.take(pressed.text);
    }
  }

  #sendAnswers(answers: readonly AnsweredQuestion[]): void {
    for (const answered of answers) {
      const { question } = answered;
      // `folder`: yes, and a rule for this folder
      if (answered.answer === 'folder') this.#handlers.allowInFolder(question, answered.rule);
      else this.#handlers.answer(question, scopedAnswer(answered));
    }
  }

  #useComposed(composed: ComposerResult): void {
    if (composed.kind === 'picture') this.#handlers.pastePicture();
    if (composed.kind === 'preset') this.#handlers.nextPreset();
    if (composed.kind === 'list') this.#handlers.openList(composed.command);
    if (composed.kind !== 'submit') return;
    // `steer` joins the running turn, `followUp` begins a turn after it.
    const mode = composed.mode === 'now' ? 'steer' : 'followUp';
    const input = readTypedInput(composed.text, mode, this.#composer.commandNames);
    // The session leaves this window, where a text would not be sent any more.
    if (this.#isLeaving && input.kind !== 'command') {
      if (input.kind === 'refused') this.#warn(input.why);
      this.takeBack([composed.text]);
      return;
    }
    // The line may be an answer to an MCP server.
    if (this.#serverForms?.take(composed.text)) return;
    this.#enter(input, composed.shown);
  }

  #enter(input: TypedInput, text: string): void {
    if (input.kind === 'refused') this.#warn(`${input.why} Up brings your line back.`);
    else if (input.kind === 'say') this.#say(input, text);
    else if (input.kind !== 'nothing') {
      this.print(paintTyped(this.#look, text));
      this.#handlers.runCommand(input);
    }
    // Enter on an empty line during the wait before a retry.
    else if (this.#state.name === 'Error')
      this.#handlers.runCommand({ kind: 'command', name: 'retry', words: '' });
  }

  #say(input: Extract<TypedInput, { readonly kind: 'say' }>, text: string): void {
    const shown = paintTyped(this.#look, text);
    const waits = isBusy(this.#state);
    if (!waits) this.print(shown);
    else if (this.#look.plain === 'yes')
      this.print(safe`${lineSign(this.#look, '·')} queued: ${oneLine(text, QUEUED_COLUMNS)}`);
    this.#prompts.typed(input.text, waits ? shown : safe``);
    this.#handlers.say(input.text, input.mode);
  }

  /** Says why a typed line had no effect. */
  #warn(why: string): void {
    this.print(paint(this.#look, 'yellow', indentWords(makeSafe(why), this.#look.columns)));
  }

  /** Puts texts into the input line, one per line. */
  #join(texts: readonly string[]): void {
    this.#composer.setText(joinLines(texts));
  }

  /** Keeps a reason whose question went away. A single letter was an answer and is dropped. */
  #keepReply(reply: string): void {
    if (reply.trim().length > 1) this.#join([this.#composer.text, reply]);
  }

  /** Called when a question starts to accept answers. */
  #showQuestion(): void {
    if (this.#look.plain === 'yes') this.#plainQuestions.open();
    this.redraw();
  }

  readonly #mark = (row: Safe): Safe => paint(this.#look, 'mark', row);

  #window(): WindowSize {
    return { columns: this.#look.columns, rows: this.#rows() };
  }

  #frame(): Frame {
    const { columns } = this.#look;
    const now = this.#clock.now();
    const statusParts = {
      streamed: this.#transcript.streamed,
      typing: !this.#composer.isEmpty,
      servers: isBusy(this.#state) ? this.#servers() : [],
      coldUsd: this.#coldUsd(this.#state, now),
    };
    const workText = statusRow(this.#state, columns, now, statusParts);
    const leavingText = oneLine('leaving this session · no text is sent', columns);
    const status = paint(this.#look, 'dim', this.#isLeaving ? leavingText : workText);
    const formRow = this.#serverForms?.row ?? null;
    const queued = queuedRows(this.#state, columns).map((one) => paint(this.#look, 'dim', one));
    const above = [
      ...this.#transcript.rows(columns, now),
      ...queued,
      status,
      ...(formRow === null ? [] : [formRow]),
    ];
    if (this.#picking === null && this.#questions.current !== null) {
      const inputLine = this.#questions.takesKeys ? null : this.#inputFrame(columns);
      // Whether the row names the key for the next preset: it works in the input line only.
      const presetKey = this.#questions.takesKeys ? 'notNamed' : 'named';
      const settings = settingsRows(this.#state, this.#look, this.#window(), presetKey);
      return questionFrame(this.#questions, this.#look, this.#window(), above, inputLine, settings);
    }
    const below = this.#listOrInput(columns);
    return {
      rows: [...above, ...below.rows],
      cursor:
        below.cursor === null ? null : { ...below.cursor, row: below.cursor.row + above.length },
    };
  }

  /** The list or the input below the status. */
  #listOrInput(columns: number): Frame {
    const window = this.#window();
    if (this.#picking !== null) {
      const { rows, cursor } =
        this.#picking.kind === 'choices'
          ? pickerFrame(this.#picking.list, columns, this.#mark)
          : pointListFrame(this.#picking.list, window, this.#mark);
      const last = settingsRows(this.#state, this.#look, window, 'notNamed');
      return { rows: [...rows, ...last], cursor };
    }
    const card = this.#hasCard ? keyCard(this.#look, window) : [];
    const last = [...card, ...settingsRows(this.#state, this.#look, window)];
    return inputBox(this.#inputFrame(columns), this.#look, window, last);
  }

  /** Whether the card of keys is shown: the line holds a question mark alone. */
  get #hasCard(): boolean {
    return this.#composer.text === '?';
  }

  #inputFrame(columns: number): Frame {
    const rowsMax = Math.max(3, Math.floor(this.#rows() / 3));
    const line = this.#composer.frame(columns, rowsMax, this.#mark);
    const isBeforeFirst =
      this.#composer.isEmpty && conversationLength(this.#state.session.conversation) === 0;
    return isBeforeFirst && !this.#composer.isOpen
      ? withPlaceholder(line, this.#look, columns)
      : line;
  }
}

const joinLines = (texts: readonly string[]): string =>
  texts.filter((text) => text !== '').join('\n');

/**
 * Requests of the user to the session. The view does not wait for them; their results arrive as
 * steps.
 */
export type ViewHandlers = {
  say(text: string, mode: InputMode): void;
  cancel(): void;
  answer(question: ApprovalRequest, answer: ScopedAnswer): void;
  /** Answers with yes, and writes the rule for this folder. */
  allowInFolder(question: ApprovalRequest, rule: RuleSubject): void;
  /** Runs a slash command or a shell command. */
  runCommand(command: Extract<TypedInput, { readonly kind: 'command' | 'shell' }>): void;
  /** Stops the user's shell command; false if none runs. */
  stopUserCommand(): boolean;
  /** A text that the user took from the line, for the history. */
  keepUnsent(text: string): void;
  /** Queued texts as they were typed, without attached shell output. */
  withoutShellOutput(texts: readonly string[]): readonly string[];
  /** Inserts the clipboard's picture into the input line. */
  pastePicture(): void;
  /** Changes to the next preset. */
  nextPreset(): void;
  /** Opens the list of models, of earlier sessions, or of what can be taken back. */
  openList(command: 'model' | 'resume' | 'rewind'): void;
  /** Gives the terminal back to the shell until SIGCONT. */
  suspend(): void;
  /** `hard`: at once, and children are killed. */
  end(how: 'clean' | 'hard'): void;
};

/** Events that slash commands send. Only for these the user is told that they were ignored. */
const COMMAND_EVENTS: readonly Event['type'][] = [
  'CompactRequested',
  'RetryLast',
  'RetryNow',
  'ApproveBudget',
  'RewindRequested',
];

/** Says why the machine ignored a command; empty if it did not. */
const refusalText = ({ event, diagnostics }: Stepped, look: Look): Safe =>
  COMMAND_EVENTS.includes(event.type)
    ? joinSafe(
        diagnostics.map(({ why }) => paint(look, 'yellow', safe`  not now: ${makeSafe(why)}`)),
        safe`\n`,
      )
    : safe``;

/** An answer, and for how long it counts. */
export type ScopedAnswer = { readonly answer: ApprovalAnswer; readonly scope: ApprovalScope };

const answerText = (answer: ApprovalAnswer): string => {
  if (answer.kind === 'reply') return answer.text;
  if (answer.kind === 'allow') return 'yes';
  return answer.reason === '' ? 'no' : `no, ${answer.reason}`;
};

/** The answer with its scope, as the machine takes it. */
const scopedAnswer = (
  answered: Exclude<AnsweredQuestion, { readonly answer: 'folder' }>,
): ScopedAnswer => {
  if ('text' in answered) return { answer: { kind: 'reply', text: answered.text }, scope: 'once' };
  return answered.answer === 'no'
    ? { answer: { kind: 'deny', reason: answered.reason }, scope: 'once' }
    : { answer: { kind: 'allow' }, scope: scopeOfAnswer(answered.answer) };
};

const GRANT_COLUMNS_MAX = 100;

/** A grant in one line. */
export const grantText = (grant: Grant): string => oneLine(describeGrant(grant), GRANT_COLUMNS_MAX);
