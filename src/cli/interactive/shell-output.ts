import { cutText } from '../../runtime/tools/truncate-output.js';

/** A command that the user ran with `!`, and its output for the model. */
export type ShellOutput = { readonly command: string; readonly output: string };

/** Bytes of one output that the model gets. */
const BYTES_MAX = 10_000;

const shorten = (output: string): string => {
  const cut = cutText(output, BYTES_MAX);
  return cut === null ? output : `${cut.head}\n… ${cut.leftOutBytes} bytes left out …\n${cut.tail}`;
};

const tell = ({ command, output }: ShellOutput): string =>
  `I ran this command myself:\n$ ${command}\n${shorten(output.trimEnd())}\n`;

/**
 * Outputs of the user's own commands, attached to the next text for the model.
 *
 * 1. Each output is sent once, in front of the next text.
 * 2. A text that comes back for editing comes without its outputs; they wait for the next one.
 */
export class ShellOutputs {
  #waiting: readonly ShellOutput[] = [];
  /** Keyed by the text as it was sent. */
  readonly #sent = new Map<
    string,
    { readonly text: string; readonly shellOutputs: readonly ShellOutput[] }
  >();

  add(aside: ShellOutput): void {
    this.#waiting = [...this.#waiting, aside];
  }

  /** The text to send: the waiting outputs, then what was typed. */
  attach(text: string): string {
    if (this.#waiting.length === 0) return text;
    const whole = [...this.#waiting.map(tell), text].join('\n');
    this.#sent.set(whole, { text, shellOutputs: this.#waiting });
    this.#waiting = [];
    return whole;
  }

  /** A sent text without its outputs, as it was typed. */
  detach(whole: string): string {
    const sent = this.#sent.get(whole);
    if (sent === undefined) return whole;
    this.#sent.delete(whole);
    this.#waiting = [...sent.shellOutputs, ...this.#waiting];
    return sent.text;
  }
}
