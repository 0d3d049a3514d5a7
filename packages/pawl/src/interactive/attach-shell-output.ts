import { cutText } from '@pawl/agent/session/tools/truncate-output';

/** A command that the user ran with `!`, and its output for the model. */
export type ShellOutput = { readonly command: string; readonly output: string };

/** Bytes of each output for the model. */
const BYTES_MAX = 10_000;

const shorten = (output: string): string => {
  const cut = cutText(output, BYTES_MAX);
  return cut === null ? output : `${cut.head}\n… ${cut.leftOutBytes} bytes left out …\n${cut.tail}`;
};

const tell = ({ command, output }: ShellOutput): string =>
  `I ran this command myself:\n$ ${command}\n${shorten(output.trimEnd())}\n`;

/**
 * Outputs of the user's `!` commands. They are attached to the next text for the model.
 *
 * 1. Each output is sent once, before the next text.
 * 2. When a text comes back for editing, its outputs are removed from it and attached to the next text.
 */
export class ShellOutputs {
  #waiting: readonly ShellOutput[] = [];
  /** Keyed by the sent text. */
  readonly #sent = new Map<
    string,
    { readonly text: string; readonly shellOutputs: readonly ShellOutput[] }
  >();

  add(aside: ShellOutput): void {
    this.#waiting = [...this.#waiting, aside];
  }

  /** The text to send: the pending outputs, then `message`, which was made from the typed text. */
  attach(text: string, message = text): string {
    if (this.#waiting.length === 0 && message === text) return text;
    const whole = [...this.#waiting.map(tell), message].join('\n');
    this.#sent.set(whole, { text, shellOutputs: this.#waiting });
    this.#waiting = [];
    return whole;
  }

  /** The typed text, without the outputs and the skill that were attached to it. */
  detach(whole: string): string {
    const sent = this.#sent.get(whole);
    if (sent === undefined) return whole;
    this.#sent.delete(whole);
    this.#waiting = [...sent.shellOutputs, ...this.#waiting];
    return sent.text;
  }
}
