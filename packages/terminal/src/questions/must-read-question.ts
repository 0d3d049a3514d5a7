import type { Clock } from '@pawl/agent/ports/clock';
import type { Frame } from '../frame-type.js';
import type { Pressed } from '../input/key.js';
import { type Look, oneLine, paint } from '../paint-text.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';
import { cutLine, wrapWords } from '../width.js';
import { ArmingDelay } from './arming-delay.js';
import { contentRows } from './question-rows.js';
import { isSameSize, ReadingWindow, type WindowSize } from './reading-window.js';

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

export const ALLOW: readonly YesKey[] = [{ key: 'y', means: 'allow' }];

/** `later`: no answer was given. */
export type ContentAnswer = YesKey | 'no' | 'later';

type Handlers = { answered(answer: ContentAnswer): void; changed(): void };

/** A narrower window could cut rows off. */
const COLUMNS_MIN = 20;

/**
 * A question about a text that the user must have seen.
 *
 * 1. Keys answer only after the question was visible and the keyboard was quiet for a moment.
 * 2. A yes counts only after every row was on the screen, at the current size of the window.
 */
export class ContentQuestion {
  readonly #asked: ContentToRead;
  readonly #handlers: Handlers;
  readonly #arming: ArmingDelay;
  readonly #reading = new ReadingWindow();
  #advice = '';
  #drawn: WindowSize | null = null;

  constructor(asked: ContentToRead, clock: Clock, handlers: Handlers) {
    this.#asked = asked;
    this.#handlers = handlers;
    const changed = (): void => handlers.changed();
    this.#arming = new ArmingDelay(clock, { isTyping: () => false, shown: changed, armed: changed });
  }

  /** Shows the question after a quiet moment. */
  open(): void {
    this.#arming.begin();
  }

  /** Call only to draw: the rows count as read. */
  frame(look: Look, window: WindowSize): Frame {
    if (this.#arming.phase === 'hidden') return { rows: [], cursor: null };
    if (this.#drawn !== null && !isSameSize(this.#drawn, window)) this.#advice = ''; // about the old size
    this.#drawn = window;
    const { title } = this.#asked;
    const head = safe`${paint(look, 'yellow', safe`?`)} ${paint(look, 'bold', oneLine(title, window.columns - 3))}`;
    const all = this.rows(look, window.columns);
    const height = Math.max(1, window.rows - 2 - this.#footHeight(all.length, window));
    const top = this.#reading.show(all.length, height, window);
    return { rows: [head, ...all.slice(top, top + height), ...this.#foot(look, window)], cursor: null };
  }

  /** All rows below the title. */
  rows(look: Look, columns: number): readonly Safe[] {
    const { content, kind, meaning } = this.#asked;
    const below = wrapWords(makeSafe(meaning), columns - 4).map((row) => safe`  ${paint(look, 'dim', row)}`);
    return [...contentRows(content, kind, look, columns), ...below];
  }

  /** The rows that the keys take at most, so that the height of the text does not change while it is read. */
  #footHeight(total: number, { columns }: WindowSize): number {
    return wrapWords(this.#keys(total), columns - 3).length;
  }

  #foot(look: Look, { columns }: WindowSize): readonly Safe[] {
    if (this.#advice !== '')
      return [paint(look, 'yellow', cutLine(safe`  ${makeSafe(this.#advice)}`, columns - 1))];
    if (this.#arming.phase !== 'armed') return [paint(look, 'dim', safe`  read it first`)];
    return wrapWords(this.#keys(this.#reading.left), columns - 3).map(
      (row) => safe`  ${paint(look, 'dim', row)}`,
    );
  }

  /** `left`: rows below the window. */
  #keys(left: number): Safe {
    const more = left > 0 ? safe`↓ ${left} more ${left === 1 ? safe`row` : safe`rows`} · ` : safe``;
    const { yes = ALLOW } = this.#asked;
    const others =
      yes.length > 1 ? 'n never · Escape later' : 'n never run this · Escape ask again next time';
    return safe`${more}${makeSafe([...yes.map(({ key, means }) => `${key} ${means}`), others].join(' · '))}`;
  }

  take(pressed: Pressed, window: WindowSize): void {
    this.#arming.keyPressed();
    this.#advice = '';
    if (pressed.kind === 'paste') this.#advice = 'answer with one key; the paste was ignored';
    else this.#takeKey(pressed.key.name === '' ? pressed.key.text : pressed.key.name, window);
    this.#handlers.changed();
  }

  #takeKey(key: string, window: WindowSize): void {
    if (this.#reading.takeKey(key)) return;
    if (key === 'escape') this.#handlers.answered('later');
    else if (this.#arming.phase !== 'armed') this.#advice = 'this is a new question: read it first';
    else if (/^n$/i.test(key)) this.#handlers.answered('no');
    else this.#sayYes(key, window);
  }

  #sayYes(typed: string, window: WindowSize): void {
    const yes = (this.#asked.yes ?? ALLOW).find(({ key }) => key === typed.toLowerCase());
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
