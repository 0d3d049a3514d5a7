import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { outputContent } from './tool-calls.js';

/** Characters of a running call's output that are shown: the last ones. The result has all that the model gets. */
const SHOWN_CHARACTERS_MAX = 8_000;
/** Least time between two updates of a call. */
const INTERVAL_MS = 250;

type Output = { text: string; cut: boolean; timer: NodeJS.Timeout | null };

/**
 * The output of running calls. An update replaces all content of a call, so each carries the output so far, cut to its
 * end; at most four a second.
 */
export class ToolProgress {
  readonly #push: (update: SessionUpdate) => void;
  readonly #running = new Map<string, Output>();

  constructor(push: (update: SessionUpdate) => void) {
    this.#push = push;
  }

  add(callId: string, text: string): void {
    const output = this.#running.get(callId) ?? { text: '', cut: false, timer: null };
    this.#running.set(callId, output);
    const whole = output.text + text;
    output.cut ||= whole.length > SHOWN_CHARACTERS_MAX;
    output.text = whole.slice(-SHOWN_CHARACTERS_MAX);
    output.timer ??= setTimeout(() => this.#show(callId, output), INTERVAL_MS).unref();
  }

  /** The call has ended: its result follows. */
  end(callId: string): void {
    const timer = this.#running.get(callId)?.timer ?? null;
    if (timer !== null) clearTimeout(timer);
    this.#running.delete(callId);
  }

  endAll(): void {
    for (const callId of [...this.#running.keys()]) this.end(callId);
  }

  #show(callId: string, output: Output): void {
    output.timer = null;
    const content = outputContent(output.cut ? `…${output.text}` : output.text);
    this.#push({ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'in_progress', content });
  }
}
