import { cutText } from '../runtime/cut.js';

/** Commands that the user ran by `!`, on their way to the model. */
export type Aside = { readonly command: string; readonly output: string };

/** What of an output goes to the model. */
const BYTES_MAX = 10_000;

const shorten = (output: string): string => {
  const cut = cutText(output, BYTES_MAX);
  return cut === null ? output : `${cut.head}\n… ${cut.leftOutBytes} bytes left out …\n${cut.tail}`;
};

const tell = ({ command, output }: Aside): string =>
  `I ran this command myself:\n$ ${command}\n${shorten(output.trimEnd())}\n`;

/**
 * 1. What was run goes out once, before the next text that is sent.
 * 2. A text that comes back to be edited comes without it, and it waits again.
 */
export class Asides {
  #waiting: readonly Aside[] = [];
  /** By the text as it was sent. */
  readonly #sent = new Map<string, { readonly text: string; readonly asides: readonly Aside[] }>();

  add(aside: Aside): void {
    this.#waiting = [...this.#waiting, aside];
  }

  /** The text as it is to be sent. */
  attach(text: string): string {
    if (this.#waiting.length === 0) return text;
    const whole = [...this.#waiting.map(tell), text].join('\n');
    this.#sent.set(whole, { text, asides: this.#waiting });
    this.#waiting = [];
    return whole;
  }

  /** The text as it was typed, of one that was sent and comes back. */
  detach(whole: string): string {
    const sent = this.#sent.get(whole);
    if (sent === undefined) return whole;
    this.#sent.delete(whole);
    this.#waiting = [...sent.asides, ...this.#waiting];
    return sent.text;
  }
}
