import type { JudgedCall } from '../agent/call.js';
import type { Event, InputMode } from '../agent/event.js';
import type { State } from '../agent/state.js';
import type { Clock, Stepped } from '../needs.js';
import { type Answer, choices, readAnswer } from './approval.js';
import { titleOf } from './calls.js';
import type { Typed } from './keys.js';
import { emptyLine, type Line, pasted, submitted, typed as typeKey, withText } from './line-editor.js';
import type { LiveArea } from './live-area.js';
import { harmless, type Look, oneLine, paint } from './print.js';
import { readWish, type Wish } from './slash.js';
import { isBusy, statusLine } from './status.js';
import { createStory, type Story, wholeOf } from './story.js';

/** What the desk asks for. Nothing of it is awaited: what comes of it is seen in the steps. */
export type DeskWishes = {
  say(text: string, mode: InputMode): void;
  cancel(): void;
  answer(batchId: string, callId: string, answer: Answer): void;
  /** A command that is not text for the model. */
  command(wish: Wish): void;
  /** Gives the terminal back to the shell until the user goes on. */
  suspend(): void;
  /** `hard`: at once, children killed. */
  end(how: 'clean' | 'hard'): void;
};

type Question = { readonly batchId: string; readonly call: JudgedCall; readonly why: string };

/** What the commands of the terminal become. */
const COMMANDS: readonly Event['type'][] = ['CompactRequested', 'RetryLast', 'RetryNow', 'ApproveBudget'];
/** Quiet time before keys count as an answer. */
const QUIET_MS = 300;
/** Two interrupts within this time end the program. */
const TWICE_MS = 2_000;

/**
 * Where the user sits: what is on the screen and what the keys do.
 *
 * 1. Typed text leaves the line by Enter (also if it is refused: then Up brings it back), by the user's own editing, or not at all.
 * 2. A question is answered only by keys pressed after it stood on the screen and the keyboard was quiet for a moment;
 *    what is typed earlier goes on into the user's own line.
 */
export class Desk {
  readonly #area: LiveArea;
  readonly #look: Look;
  readonly #clock: Clock;
  readonly #wishes: DeskWishes;
  readonly #workspace: string;
  readonly #story: Story;
  #state: State;
  #line: Line = emptyLine();
  #reply: Line = emptyLine();
  #questions: readonly Question[] = [];
  /** Rule 2: the first question stands on the screen and may be answered. */
  #armed = false;
  #lastKeyAt = 0;
  #shownAt = 0;
  #interruptedAt = Number.NEGATIVE_INFINITY;

  constructor(area: LiveArea, look: Look, clock: Clock, wishes: DeskWishes, state: State) {
    this.#area = area;
    this.#look = look;
    this.#clock = clock;
    this.#wishes = wishes;
    this.#state = state;
    this.#workspace = state.session.settings.workspace;
    this.#story = createStory(look, this.#workspace);
  }

  get state(): State {
    return this.#state;
  }

  print(text: string): void {
    this.#area.print(text);
  }

  /** Draws the status again: time has passed, or the window has changed. */
  redraw(): void {
    const status = paint(this.#look, 'dim', statusLine(this.#state, this.#clock.now()));
    const [question] = this.#questions;
    if (question === undefined || !this.#armed) {
      this.#area.draw(status, '> ', this.#line.text, this.#line.cursor);
      return;
    }
    const asked = oneLine(choices(question.call), this.#look.columns - 2);
    this.#area.draw(status, `${asked}\n? `, this.#reply.text, this.#reply.cursor);
  }

  take(pressed: Typed): void {
    this.#lastKeyAt = this.#clock.now();
    const [question] = this.#questions;
    if (pressed.kind === 'interrupt') this.#interrupt();
    else if (pressed.kind === 'suspend') this.#wishes.suspend();
    else if (pressed.kind === 'end') {
      if (this.#line.text === '') this.#wishes.end('clean');
    } else if (pressed.kind === 'escape') {
      if (isBusy(this.#state)) this.#wishes.cancel();
    } else if (question !== undefined && this.#armed) this.#takeAtQuestion(question, pressed);
    else this.#takeAtLine(pressed);
    this.redraw();
  }

  see(stepped: Stepped): void {
    this.#state = stepped.state;
    for (const piece of this.#story(stepped)) {
      if (piece.kind === 'stream') this.#area.stream(piece.text);
      else if (piece.kind === 'lines') this.#area.print(wholeOf(piece));
      else this.#area.print(paint(this.#look, 'dim', '(that reply broke off and does not count)'));
    }
    if (stepped.path.some((edge) => edge.from === 'CallingLlm' && edge.to !== 'CallingLlm')) {
      this.#area.endStream();
    }
    this.#tellRefused(stepped);
    this.#follow(stepped);
    this.redraw();
  }

  /** A command that the machine has no use for now is not swallowed. */
  #tellRefused({ event, diagnostics }: Stepped): void {
    if (!COMMANDS.includes(event.type)) return;
    for (const { why } of diagnostics) this.print(paint(this.#look, 'yellow', `  not now: ${why}`));
  }

  #follow(stepped: Stepped): void {
    for (const action of stepped.actions) {
      if (action.type === 'RequestApproval') this.#keepQuestions([...this.#questions, action]);
      if (action.type === 'WithdrawApproval') {
        const { callId } = action;
        this.#keepQuestions(this.#questions.filter((question) => question.call.callId !== callId));
      }
      if (action.type === 'RestoreQueue') this.#takeBack(action.texts);
    }
    if (this.#state.name !== 'ExecutingTools') this.#keepQuestions([]);
  }

  #takeBack(texts: readonly string[]): void {
    const all = [...texts, this.#line.text].filter((text) => text !== '');
    this.#line = withText(this.#line, all.join('\n'));
  }

  #keepQuestions(kept: readonly Question[]): void {
    const same = kept[0] === this.#questions[0];
    this.#questions = kept;
    if (!same) this.#ask();
  }

  #ask(): void {
    this.#armed = false;
    this.#reply = emptyLine();
    const [question] = this.#questions;
    if (question === undefined) return;
    const { call, why } = question;
    const title = oneLine(titleOf(call, this.#workspace), this.#look.columns - 20);
    this.print(paint(this.#look, 'yellow', `? ${call.tool} ${title}\n  ${harmless(why)}`));
    this.#shownAt = this.#clock.now();
    this.#waitForQuiet(question);
  }

  #waitForQuiet(question: Question): void {
    const left = Math.max(this.#shownAt, this.#lastKeyAt) + QUIET_MS - this.#clock.now();
    if (left > 0) {
      this.#clock.after(left, () => this.#waitForQuiet(question));
      return;
    }
    if (this.#questions[0] !== question) return;
    this.#armed = true;
    this.redraw();
  }

  #takeAtQuestion(question: Question, pressed: Typed): void {
    if (pressed.kind === 'enter') {
      this.#answer(question);
      return;
    }
    if (pressed.kind === 'key') this.#reply = typeKey(this.#reply, pressed.key);
    if (pressed.kind === 'paste') this.#reply = pasted(this.#reply, pressed.text);
  }

  #answer(question: Question): void {
    const read = readAnswer(this.#reply.text);
    if (read === null) {
      this.print(paint(this.#look, 'dim', `  ${choices(question.call)}`));
      return;
    }
    this.#wishes.answer(question.batchId, question.call.callId, read);
    this.#keepQuestions(this.#questions.slice(1));
  }

  #takeAtLine(pressed: Typed): void {
    if (pressed.kind === 'enter') this.#submit('steer');
    if (pressed.kind === 'later') this.#submit('followUp');
    if (pressed.kind === 'key') this.#line = typeKey(this.#line, pressed.key);
    if (pressed.kind === 'paste') this.#line = pasted(this.#line, pressed.text);
  }

  #submit(mode: InputMode): void {
    const wish = readWish(this.#line.text, mode);
    this.#line = submitted(this.#line);
    if (wish.kind === 'refused') {
      this.print(paint(this.#look, 'yellow', `${wish.why}\n  Up brings your line back.`));
      return;
    }
    if (wish.kind === 'nothing') return;
    if (wish.kind !== 'say') {
      this.#wishes.command(wish);
      return;
    }
    this.print(`${paint(this.#look, 'bold', '> ')}${harmless(wish.text)}`);
    this.#wishes.say(wish.text, wish.mode);
  }

  #interrupt(): void {
    const twice = this.#clock.now() - this.#interruptedAt < TWICE_MS;
    this.#interruptedAt = this.#clock.now();
    if (twice) {
      this.#wishes.end('hard');
      return;
    }
    if (isBusy(this.#state)) {
      this.#wishes.cancel();
      return;
    }
    if (this.#line.text !== '') this.#line = withText(this.#line, '');
    else this.print(paint(this.#look, 'dim', 'Ctrl-C again ends; so does Ctrl-D.'));
  }
}
