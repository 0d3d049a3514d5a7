/** The output of running calls, as updates for an editor (`RunningOutputs`). */

import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { outputContent } from './tool-calls.js';

/**
 * Characters of a running call's output that are shown: the last ones. The result has all that the
 * model gets.
 */
const SHOWN_CHARACTERS_MAX = 8_000;
/** Least time between two updates of a call. */
const UPDATE_INTERVAL_MS = 250;

type RunningOutput = { text: string; cut: boolean; timer: NodeJS.Timeout | null };

/**
 * The output of running calls. An update replaces all content of a call, so each carries the output
 * so far, cut to its end; at most four a second.
 */
export class RunningOutputs {
  readonly #push: (update: SessionUpdate) => void;
  /** By the id that the client has for the call. */
  readonly #running = new Map<string, RunningOutput>();

  constructor(push: (update: SessionUpdate) => void) {
    this.#push = push;
  }

  add(toolCallId: string, text: string): void {
    const output = this.#running.get(toolCallId) ?? { text: '', cut: false, timer: null };
    this.#running.set(toolCallId, output);
    const whole = output.text + text;
    output.cut ||= whole.length > SHOWN_CHARACTERS_MAX;
    // half a character at the cut would be no valid JSON text for the client
    output.text = whole.slice(-SHOWN_CHARACTERS_MAX).replace(/^[\uDC00-\uDFFF]/, '');
    output.timer ??= setTimeout(() => this.#show(toolCallId, output), UPDATE_INTERVAL_MS).unref();
  }

  /** The call has ended: its result follows. */
  end(toolCallId: string): void {
    const timer = this.#running.get(toolCallId)?.timer ?? null;
    if (timer !== null) clearTimeout(timer);
    this.#running.delete(toolCallId);
  }

  endAll(): void {
    for (const toolCallId of [...this.#running.keys()]) this.end(toolCallId);
  }

  #show(toolCallId: string, output: RunningOutput): void {
    output.timer = null;
    const content = outputContent(output.cut ? `…${output.text}` : output.text);
    this.#push({
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status: 'in_progress',
      content,
    });
  }
}
