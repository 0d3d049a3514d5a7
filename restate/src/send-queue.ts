/**
 * Sends the inputs of one session in the order in which they came: those that wait for an answer go
 * together.
 */

import type { Input } from 'pawl/engine';
import type { AppliedEvent } from './apply-events.js';

type Waiting = {
  readonly input: Input;
  resolve(sent: { readonly seq: number }): void;
  reject(error: Error): void;
};

const TOGETHER_MAX = 64;
/**
 * Characters of texts that go together. The engine has a limit for one message, and each input
 * below it must pass.
 */
const TOGETHER_LENGTH_MAX = 1_000_000;

const textLength = (input: Input): number => (input.type === 'UserInput' ? input.text.length : 0);

export class SendQueue {
  readonly #send: (inputs: readonly Input[]) => Promise<readonly AppliedEvent[]>;
  readonly #waiting: Waiting[] = [];
  #isSending = false;

  constructor(send: (inputs: readonly Input[]) => Promise<readonly AppliedEvent[]>) {
    this.#send = send;
  }

  get isIdle(): boolean {
    return !this.#isSending;
  }

  add(input: Input): Promise<{ readonly seq: number }> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      if (!this.#isSending) void this.#drain();
    });
  }

  /** At least one. An input that its sender may send again goes alone, with a key of its own. */
  #countTogether(): number {
    let length = 0;
    const tooMany = this.#waiting.findIndex(({ input }, index) => {
      length += textLength(input);
      const isAlone =
        input.clientRequestId !== undefined ||
        this.#waiting[index - 1]?.input.clientRequestId !== undefined;
      return index > 0 && (isAlone || index >= TOGETHER_MAX || length > TOGETHER_LENGTH_MAX);
    });
    return tooMany === -1 ? this.#waiting.length : tooMany;
  }

  async #drain(): Promise<void> {
    this.#isSending = true;
    await Promise.resolve(); // inputs of the same moment go together
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0, this.#countTogether());
      try {
        const results = await this.#send(together.map(({ input }) => input));
        for (const [index, one] of together.entries()) settle(one, results[index]);
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        for (const { reject } of together) reject(error); // each sender gets the error
      }
    }
    this.#isSending = false;
  }
}

const settle = ({ resolve, reject }: Waiting, result: AppliedEvent | undefined): void => {
  if (result === undefined) reject(new Error('the session has ended, and the input had no effect'));
  else if ('refused' in result) reject(new TypeError(result.refused));
  else resolve({ seq: result.seq });
};
