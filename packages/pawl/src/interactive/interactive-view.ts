import type { State } from '@pawl/agent/machine/state';
import { isSoonAfter } from '@pawl/agent/platform/base/is-soon-after';
import type { Clock } from '@pawl/agent/ports/clock';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import type { Frame } from '@pawl/terminal/frame-type';
import type { Choice } from '@pawl/terminal/input/completion';
import type { Composer, ComposerResult } from '@pawl/terminal/input/composer';
import type { Key, Pressed } from '@pawl/terminal/input/key';
import type { LiveArea } from '@pawl/terminal/live-area';
import { type Look, paint, paintTyped } from '@pawl/terminal/paint-text';
import { type AnsweredQuestion, Questions } from '@pawl/terminal/questions/approval-questions';
import { openPicker, type Picker, pick, pickerFrame } from '@pawl/terminal/questions/picker';
import { questionFrame } from '@pawl/terminal/questions/question-frame';
import type { WindowSize } from '@pawl/terminal/questions/reading-window';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { isBusy, statusRow } from '@pawl/terminal/status-row';
import { Transcript } from '@pawl/terminal/transcript/transcript';
import { indentWords } from '@pawl/terminal/width';
import type { RecentTurns } from '../sessions/open-for-resume.js';
import { readTypedInput } from '../slash/command-table-and-parser.js';
import { refusalText } from './ignored-command-text.js';
import { ServerForms } from './mcp-server-forms.js';
import { createPlainQuestions, type PlainQuestions } from './plain-questions.js';
import { scopedAnswer } from './read-approval-answer.js';
import { renderRecentTurns } from './resumed-transcript.js';
import type { ViewHandlers } from './view-handler-types.js';

export type ViewParts = {
  readonly area: LiveArea;
  readonly look: Look;
  readonly clock: Clock;
  readonly composer: Composer;
  /** Rows of the window. */
  rows(): number;
};

/** Two interrupts, or two Escapes at rest, within this time have their own meaning. */
const TWICE_MS = 2_000;
const ESCAPES_MS = 800;

type OpenPicker = { readonly picker: Picker; done(index: number | null): void };

/**
 * The screen of one session: what it shows, and which part receives each key.
 *
 * 1. Typed text leaves the input line only on Enter or by the user's edits. Up brings back a refused line. Queued text
 *    that was not sent returns to the line.
 * 2. Only keys pressed at a question answer it (see Questions).
 */
export class InteractiveView {
  readonly #area: LiveArea;
  readonly #look: Look;
  readonly #clock: Clock;
  readonly #composer: Composer;
  readonly #rows: () => number;
  readonly #handlers: ViewHandlers;
  readonly #workspace: string;
  readonly #transcript: Transcript;
  readonly #questions: Questions;
  readonly #plainQuestions: PlainQuestions;
  /** Questions of MCP servers. */
  readonly serverForms: ServerForms;
  #state: State;
  #picking: OpenPicker | null = null;
  /** Texts sent while the session worked. Each is printed when its event arrives, below the output before it. */
  #sent: readonly Safe[] = [];
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #escapedAt = Number.NEGATIVE_INFINITY;

  constructor({ area, look, clock, composer, rows }: ViewParts, handlers: ViewHandlers, state: State) {
    this.#area = area;
    this.#look = look;
    this.#clock = clock;
    this.#composer = composer;
    this.#rows = rows;
    this.#handlers = handlers;
    this.#state = state;
    this.#workspace = state.session.settings.workspace;
    this.#transcript = new Transcript(look, this.#workspace);
    this.#transcript.startFrom(state);
    this.#questions = new Questions(clock, {
      open: () => this.#opened(),
      answered: (answers) => this.#answered(answers),
      unanswered: (reply) => this.#keepReply(reply),
      isTyping: () => !composer.isEmpty,
      changed: () => {
        this.#picking?.done(null); // the list would cover the question
        this.redraw();
      },
    });
    this.serverForms = new ServerForms(look, (text) => {
      this.print(text);
      this.redraw();
    });
    this.#plainQuestions = createPlainQuestions(this.#questions, look, (text) => this.print(text));
  }

  get state(): State {
    return this.#state;
  }

  print(text: Safe): void {
    this.#area.print(text);
  }

  /** Index of the user's choice, or null. A plain terminal only prints the list and returns null. */
  pick(title: string, all: readonly Choice[]): Promise<number | null> {
    if (this.#look.plain === 'yes') {
      this.print(makeSafe([title, ...all.map(({ text, about }) => `  ${text}  ${about}`)].join('\n')));
      return Promise.resolve(null);
    }
    this.#picking?.done(null);
    return new Promise((resolve) => {
      const done = (index: number | null): void => {
        this.#picking = null;
        resolve(index);
      };
      this.#picking = { picker: openPicker(title, all), done };
      this.redraw();
    });
  }

  /** Draws the live area again, for a new time or a new window size. */
  redraw(): void {
    this.#area.draw(() => this.#frame());
  }

  take(pressed: Pressed): void {
    this.#questions.keyPressed();
    if (pressed.kind !== 'key' || !this.#takeEverywhere(pressed.key)) {
      if (this.#picking !== null) this.#takeAtPicker(this.#picking, pressed);
      else if (this.#questions.takesKeys) this.#takeAtQuestion(pressed);
      else this.#composed(this.#composer.take(pressed));
    }
    this.redraw();
  }

  /** Ctrl-C, or the signal. */
  interrupt(): void {
    const twice = isSoonAfter(this.#interruptedAt, this.#clock.now(), TWICE_MS);
    this.#interruptedAt = this.#clock.now();
    if (twice) this.#handlers.end('hard');
    else if (this.#picking !== null) this.#picking.done(null);
    else if (this.#handlers.stopUserCommand()) this.print(paint(this.#look, 'dim', safe`  stopped`));
    else if (isBusy(this.#state)) this.#handlers.cancel();
    else if (!this.#composer.isEmpty) this.#composer.setText('');
    else this.print(paint(this.#look, 'dim', safe`Press Ctrl-C again or Ctrl-D to leave.`));
    this.redraw();
  }

  /** Prints the last turns of a resumed session. */
  showRecentTurns(past: RecentTurns): void {
    const text = renderRecentTurns(past, this.#transcript, this.#look);
    if (text !== '') this.print(text);
  }

  see(stepped: Stepped): void {
    this.#state = stepped.state;
    if (stepped.event.type === 'UserInput') this.#printSent();
    const text = this.#transcript.see(stepped);
    if (text !== '') this.print(text);
    const refusal = refusalText(stepped, this.#look);
    if (refusal !== '') this.print(refusal);
    this.#questions.see(stepped);
    for (const action of stepped.actions) {
      if (action.type === 'RestoreQueue') this.takeBack(this.#handlers.withoutShellOutput(action.texts));
    }
    this.redraw();
  }

  /** Handles keys that mean the same in the input line, a list and a question. */
  #takeEverywhere(key: Key): boolean {
    if (key.name === 'escape') this.#escape();
    else if (!key.control || key.alt) return false;
    else if (key.name === 'c') this.interrupt();
    else if (key.name === 'z') this.#handlers.suspend();
    else if (key.name === 'o') this.#expand();
    else if (key.name !== 'd' || !this.#composer.isEmpty || this.#questions.replied !== '') return false;
    else this.#handlers.end('clean');
    return true;
  }

  #escape(): void {
    const twice = isSoonAfter(this.#escapedAt, this.#clock.now(), ESCAPES_MS);
    this.#escapedAt = Number.NEGATIVE_INFINITY;
    if (this.#picking !== null) this.#picking.done(null);
    else if (this.#composer.isOpen) this.#composer.escape();
    else if (this.#handlers.stopUserCommand()) this.print(paint(this.#look, 'dim', safe`  stopped`));
    else if (isBusy(this.#state)) this.#handlers.cancel();
    else if (twice) this.#handlers.editLast();
    else this.#escapedAt = this.#clock.now();
  }

  #expand(): void {
    const whole = this.#transcript.expand();
    this.print(whole === '' ? paint(this.#look, 'dim', safe`  nothing is folded`) : whole);
  }

  #takeAtPicker({ picker, done }: OpenPicker, pressed: Pressed): void {
    const picked = pick(picker, pressed);
    if (picked.kind === 'taken') done(picked.index);
    else this.#picking = { picker: picked.picker, done };
  }

  #takeAtQuestion(pressed: Pressed): void {
    if (this.#look.plain !== 'yes') this.#questions.take(pressed, this.#window());
    else if (pressed.kind === 'paste') this.#plainQuestions.take(pressed.text); // each line arrives as a paste and an Enter
  }

  #answered(answers: readonly AnsweredQuestion[]): void {
    for (const answered of answers) {
      const { batchId, call } = answered.question;
      this.#handlers.answer(batchId, call.callId, scopedAnswer(answered));
    }
  }

  #composed(composed: ComposerResult): void {
    if (composed.kind === 'paste') this.#handlers.pastePicture();
    if (composed.kind !== 'submit' || this.serverForms.take(composed.text)) return;
    const mode = composed.mode === 'now' ? 'steer' : 'followUp';
    const wish = readTypedInput(composed.text, mode, this.#composer.commandNames);
    if (wish.kind === 'refused') this.#warn(`${wish.why} Up brings your line back.`);
    // Enter on an empty line during the wait before a retry.
    const retriesNow = wish.kind === 'nothing' && this.#state.name === 'Error';
    if (retriesNow) this.#handlers.runCommand({ kind: 'command', name: 'retry', words: '' });
    if (wish.kind === 'refused' || wish.kind === 'nothing') return;
    const shown = paintTyped(this.#look, composed.shown);
    if (wish.kind === 'say' && isBusy(this.#state)) this.#sent = [...this.#sent, shown];
    else this.print(shown);
    if (wish.kind === 'say') this.#handlers.say(wish.text, wish.mode);
    else this.#handlers.runCommand(wish);
  }

  /** Prints the oldest of the sent texts. */
  #printSent(): void {
    const [first, ...more] = this.#sent;
    this.#sent = more;
    if (first !== undefined) this.print(first);
  }

  /** Says why a typed line had no effect. */
  #warn(why: string): void {
    this.print(paint(this.#look, 'yellow', indentWords(makeSafe(why), this.#look.columns)));
  }

  /** Puts texts that were not sent into the input line. In a plain terminal nobody sees that line, so they are printed. */
  takeBack(texts: readonly string[]): void {
    if (this.#look.plain === 'yes') this.print(safe`· not sent: ${makeSafe(texts.join('\n'))}`);
    else this.#join([...texts, this.#composer.text]);
  }

  /** Puts texts into the input line, one per line. */
  #join(texts: readonly string[]): void {
    this.#composer.setText(texts.filter((text) => text !== '').join('\n'));
  }

  /** Keeps a reason whose question went away. A single letter was an answer and is dropped. */
  #keepReply(reply: string): void {
    if (reply.trim().length > 1) this.#join([this.#composer.text, reply]);
  }

  /** Called when a question starts to accept answers. */
  #opened(): void {
    if (this.#look.plain === 'yes') this.#plainQuestions.open();
    this.redraw();
  }

  #window(): WindowSize {
    return { columns: this.#look.columns, rows: this.#rows() };
  }

  #frame(): Frame {
    const { columns } = this.#look;
    const now = this.#clock.now();
    const seen = { streamed: this.#transcript.streamed, typing: !this.#composer.isEmpty };
    const status = paint(this.#look, 'dim', statusRow(this.#state, columns, now, seen));
    const { row } = this.serverForms;
    const above = [...this.#transcript.rows(columns, now), status, ...(row === null ? [] : [row])];
    if (this.#picking === null && this.#questions.current !== null) {
      const line = this.#questions.takesKeys ? null : this.#below(columns);
      return questionFrame(this.#questions, this.#look, this.#window(), above, line);
    }
    const below = this.#below(columns);
    return {
      rows: [...above, ...below.rows],
      cursor: below.cursor === null ? null : { ...below.cursor, row: below.cursor.row + above.length },
    };
  }

  /** The list or input line below the status. */
  #below(columns: number): Frame {
    const mark = (row: Safe): Safe => paint(this.#look, 'mark', row);
    if (this.#picking !== null) return pickerFrame(this.#picking.picker, columns, mark);
    return this.#composer.frame(columns, Math.max(3, Math.floor(this.#rows() / 3)), mark);
  }
}
