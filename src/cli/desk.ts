import type { Event, InputMode } from '../agent/event.js';
import type { State } from '../agent/state.js';
import type { Clock, Stepped } from '../needs.js';
import { titleOf } from '../terminal/calls.js';
import type { Choice } from '../terminal/completion.js';
import type { Composed, Composer } from '../terminal/composer.js';
import { dialogueRows } from '../terminal/dialogue.js';
import type { Frame } from '../terminal/frame.js';
import type { Key, Pressed } from '../terminal/key.js';
import type { LiveArea } from '../terminal/live-area.js';
import { openPicker, type Picker, pick, pickerFrame } from '../terminal/picker.js';
import { harmless, type Look, oneLine, paint, paintTyped } from '../terminal/print.js';
import { type Question, Questions } from '../terminal/questions.js';
import { Scroll } from '../terminal/scroll.js';
import { isBusy, statusRow } from '../terminal/status.js';
import { indentWords } from '../terminal/width.js';
import { type Answer, choices, grantedText, isShort, noAnswer, readAnswer } from './approval.js';
import { readWish, type Wish } from './slash.js';

/** What the desk asks for. Nothing of it is awaited: what comes of it is seen in the steps. */
export type DeskWishes = {
  say(text: string, mode: InputMode): void;
  cancel(): void;
  answer(batchId: string, callId: string, answer: Answer): void;
  /** A command that is not text for the model. */
  command(wish: Extract<Wish, { readonly kind: 'command' | 'shell' }>): void;
  /** Stops a command of the user's own; whether one ran. */
  stopShell(): boolean;
  /** The texts that came back from the queue, as they were typed. */
  takenBack(texts: readonly string[]): readonly string[];
  /** The picture in the clipboard is to stand in the line. */
  paste(): void;
  /** The last input is to be edited. */
  editLast(): void;
  /** What a call would change, or null. */
  foresee(question: Question): Promise<string | null> | null;
  /** Gives the terminal back to the shell until the user goes on. */
  suspend(): void;
  /** `hard`: at once, children killed. */
  end(how: 'clean' | 'hard'): void;
};

export type Furniture = {
  readonly area: LiveArea;
  readonly look: Look;
  readonly clock: Clock;
  readonly composer: Composer;
  /** Rows of the window. */
  rows(): number;
};

/** What the commands of the terminal become. */
const COMMANDS: readonly Event['type'][] = ['CompactRequested', 'RetryLast', 'RetryNow', 'ApproveBudget'];
/** Two interrupts, or two Escapes at rest, within this time mean more than one. */
const TWICE_MS = 2_000;
const ESCAPES_MS = 800;
/** Rows of a diff in a question. */
const DIFF_ROWS = 10;

type Picking = { readonly picker: Picker; done(index: number | null): void };

/**
 * Where the user sits: what is on the screen and what the keys do.
 *
 * 1. Typed text leaves the line by Enter (also if it is refused: then Up brings it back), by the user's own editing, or
 *    not at all. What waited and was not sent comes back into it.
 * 2. A question is answered only by keys that were pressed at it: see Questions.
 */
export class Desk {
  readonly #area: LiveArea;
  readonly #look: Look;
  readonly #clock: Clock;
  readonly #composer: Composer;
  readonly #rows: () => number;
  readonly #wishes: DeskWishes;
  readonly #workspace: string;
  readonly #scroll: Scroll;
  readonly #questions: Questions;
  #state: State;
  #picking: Picking | null = null;
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #escapedAt = Number.NEGATIVE_INFINITY;

  constructor({ area, look, clock, composer, rows }: Furniture, wishes: DeskWishes, state: State) {
    this.#area = area;
    this.#look = look;
    this.#clock = clock;
    this.#composer = composer;
    this.#rows = rows;
    this.#wishes = wishes;
    this.#state = state;
    this.#workspace = state.session.settings.workspace;
    this.#scroll = new Scroll(look, this.#workspace);
    this.#questions = new Questions(clock, {
      foresee: (question) => wishes.foresee(question),
      open: (question) => this.#opened(question),
      unanswered: (reply) => this.#keepReply(reply),
    });
  }

  get state(): State {
    return this.#state;
  }

  print(text: string): void {
    this.#area.print(text);
  }

  /** Lets the user choose; null if nothing was chosen. In a plain terminal the list is printed, and null comes at once. */
  pick(title: string, all: readonly Choice[]): Promise<number | null> {
    if (this.#look.plain === 'yes') {
      this.print([title, ...all.map(({ text, about }) => `  ${text}  ${about}`)].join('\n'));
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

  /** Draws again: time has passed, or the window has changed. */
  redraw(): void {
    this.#area.draw(() => this.#frame());
  }

  take(pressed: Pressed): void {
    this.#questions.notice();
    if (pressed.kind !== 'key' || !this.#takeEverywhere(pressed.key)) {
      if (this.#picking !== null) this.#takeAtPicker(this.#picking, pressed);
      else if (this.#questions.asked !== null) this.#takeAtQuestion(this.#questions.asked, pressed);
      else this.#composed(this.#composer.take(pressed));
    }
    this.redraw();
  }

  /** Ctrl-C, or the signal. */
  interrupt(): void {
    const twice = this.#clock.now() - this.#interruptedAt < TWICE_MS;
    this.#interruptedAt = this.#clock.now();
    if (twice) this.#wishes.end('hard');
    else if (this.#picking !== null) this.#picking.done(null);
    else if (this.#wishes.stopShell()) this.print(paint(this.#look, 'dim', '  stopped'));
    else if (isBusy(this.#state)) this.#wishes.cancel();
    else if (!this.#composer.isEmpty) this.#composer.setText('');
    else this.print(paint(this.#look, 'dim', 'Ctrl-C again ends; so does Ctrl-D.'));
    this.redraw();
  }

  see(stepped: Stepped): void {
    this.#state = stepped.state;
    const text = this.#scroll.see(stepped);
    if (text !== '') this.print(text);
    this.#tellRefused(stepped);
    this.#questions.see(stepped);
    for (const action of stepped.actions) {
      if (action.type === 'RestoreQueue') this.#takeBack(this.#wishes.takenBack(action.texts));
    }
    this.redraw();
  }

  /** Keys that mean the same wherever the user is. */
  #takeEverywhere(key: Key): boolean {
    if (key.name === 'escape') this.#escape();
    else if (!key.control || key.alt) return false;
    else if (key.name === 'c') this.interrupt();
    else if (key.name === 'z') this.#wishes.suspend();
    else if (key.name === 'o') this.#expand();
    else if (key.name !== 'd' || !this.#composer.isEmpty || this.#questions.replied !== '') return false;
    else this.#wishes.end('clean');
    return true;
  }

  #escape(): void {
    const twice = this.#clock.now() - this.#escapedAt < ESCAPES_MS;
    this.#escapedAt = Number.NEGATIVE_INFINITY;
    if (this.#picking !== null) this.#picking.done(null);
    else if (this.#composer.isOpen) this.#composer.escape();
    else if (this.#wishes.stopShell()) this.print(paint(this.#look, 'dim', '  stopped'));
    else if (isBusy(this.#state)) this.#wishes.cancel();
    else if (twice) this.#wishes.editLast();
    else this.#escapedAt = this.#clock.now();
  }

  #expand(): void {
    const whole = this.#scroll.expand();
    this.print(whole === '' ? paint(this.#look, 'dim', '  nothing is folded') : whole);
  }

  #takeAtPicker({ picker, done }: Picking, pressed: Pressed): void {
    const picked = pick(picker, pressed);
    if (picked.kind === 'taken') done(picked.index);
    else this.#picking = { picker: picked.picker, done };
  }

  #takeAtQuestion(question: Question, pressed: Pressed): void {
    if (pressed.kind === 'paste' || pressed.key.name !== 'enter') this.#questions.take(pressed);
    else this.#answer(question);
  }

  #answer(question: Question): void {
    const replied = this.#questions.replied;
    const read = readAnswer(replied);
    if (read !== null) {
      this.#wishes.answer(question.batchId, question.call.callId, read);
      const granted = grantedText(question.call, read.scope, titleOf(question.call, this.#workspace));
      if (granted !== '') this.print(paint(this.#look, 'dim', oneLine(granted, this.#look.columns)));
      this.#questions.next();
    } else if (/^\s*d(iff)?\s*$/i.test(replied)) {
      this.#questions.clearReply();
      this.print(this.#asked(question, Number.POSITIVE_INFINITY).join('\n'));
    } else {
      this.#advise(noAnswer(question.call, replied));
      if (isShort(replied)) this.#questions.clearReply();
    }
  }

  #composed(composed: Composed): void {
    if (composed.kind === 'paste') this.#wishes.paste();
    if (composed.kind !== 'submit') return;
    const wish = readWish(composed.text, composed.mode === 'now' ? 'steer' : 'followUp');
    if (wish.kind === 'refused') this.#advise(`${wish.why} Up brings your line back.`);
    if (wish.kind === 'refused' || wish.kind === 'nothing') return;
    this.print(paintTyped(this.#look, composed.shown));
    if (wish.kind === 'say') this.#wishes.say(wish.text, wish.mode);
    else this.#wishes.command(wish);
  }

  /** Says why nothing came of what was typed. */
  #advise(why: string): void {
    this.print(paint(this.#look, 'yellow', indentWords(harmless(why), this.#look.columns)));
  }

  #takeBack(texts: readonly string[]): void {
    // A line that can't be seen is no place to give them back to.
    if (this.#look.plain === 'yes') this.print(`· not sent: ${harmless(texts.join('\n'))}`);
    else this.#join([...texts, this.#composer.text]);
  }

  /** Puts texts into the line, below each other. */
  #join(texts: readonly string[]): void {
    this.#composer.setText(texts.filter((text) => text !== '').join('\n'));
  }

  /** An answer that was being typed when its question went away; one letter was meant for that alone. */
  #keepReply(reply: string): void {
    if (reply.trim().length > 1) this.#join([this.#composer.text, reply]);
  }

  /** A command that the machine has no use for now is not swallowed. */
  #tellRefused({ event, diagnostics }: Stepped): void {
    if (!COMMANDS.includes(event.type)) return;
    for (const { why } of diagnostics) this.print(paint(this.#look, 'yellow', `  not now: ${why}`));
  }

  /** A question may be answered from now on. */
  #opened(question: Question): void {
    this.#picking?.done(null); // it would cover the question
    if (this.#look.plain === 'yes') this.print(this.#asked(question, DIFF_ROWS).join('\n'));
    this.redraw();
  }

  #asked(question: Question, diffMax: number): readonly string[] {
    const { call, why } = question;
    const { foreseen: diff, more } = this.#questions;
    const about = { tool: call.tool, title: titleOf(call, this.#workspace), why, diff, more };
    return dialogueRows({ ...about, choices: choices(call) }, this.#look, this.#look.columns, diffMax);
  }

  #frame(): Frame {
    const { columns } = this.#look;
    const now = this.#clock.now();
    const status = paint(this.#look, 'dim', statusRow(this.#state, columns, now));
    const above = [...this.#scroll.rows(columns, now), status];
    const below = this.#below(columns);
    return {
      rows: [...above, ...below.rows],
      cursor: below.cursor === null ? null : { ...below.cursor, row: below.cursor.row + above.length },
    };
  }

  /** What the keys are for now. */
  #below(columns: number): Frame {
    const mark = (row: string): string => paint(this.#look, 'mark', row);
    if (this.#picking !== null) return pickerFrame(this.#picking.picker, columns, mark);
    const question = this.#questions.asked;
    if (question === null)
      return this.#composer.frame(columns, Math.max(3, Math.floor(this.#rows() / 3)), mark);
    const asked = this.#asked(question, Math.min(DIFF_ROWS, Math.max(2, this.#rows() - 14)));
    const reply = this.#questions.frame(columns);
    const cursor = reply.cursor === null ? null : { ...reply.cursor, row: reply.cursor.row + asked.length };
    return { rows: [...asked, ...reply.rows], cursor };
  }
}
