import type { State } from '@pawl/agent/machine/state';
import { titleOf } from '@pawl/agent/machine/values/call-title';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { formatSeconds, harmless, type Look, oneLine, paint } from '../paint-text.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';
import { cutLine } from '../width.js';
import type { JudgedCalls } from './known-calls.js';

/** The running calls, each with its last line of output. */
export type RunningCalls = {
  see(stepped: Stepped): void;
  rows(state: State, columns: number, now: number): readonly Safe[];
  /** Time since the start of a call; null if its start was not seen. */
  tookMs(callId: string, now: number): number | null;
};

/** Characters of output to keep for each running call. */
const KEPT = 2_000;
/** Further calls are only counted. */
const CALLS_MAX = 8;

const lastLine = (text: string): Safe =>
  harmless(text)
    .split('\n')
    .findLast((line) => line.trim() !== '') ?? safe``;

export const createRunningCalls = (look: Look, calls: JudgedCalls, workspace: string): RunningCalls => {
  const startedAt = new Map<string, number>();
  const output = new Map<string, string>();
  /** The call that the model is writing now. */
  let written: { readonly tool: string; readonly length: number } | null = null;

  const callRows = (callId: string, columns: number, now: number): readonly Safe[] => {
    const call = calls.get(callId);
    if (call === undefined) return [];
    const began = startedAt.get(callId);
    const time = began === undefined ? safe`` : formatSeconds(now - began);
    const tool = makeSafe(call.tool);
    const title = oneLine(titleOf(call, workspace), columns - tool.length - time.length - 4);
    const said = lastLine(output.get(callId) ?? '');
    return [
      cutLine(
        safe`${paint(look, 'cyan', safe`▸`)} ${paint(look, 'bold', tool)} ${title} ${paint(look, 'dim', time)}`,
        columns,
      ),
      ...(said === '' ? [] : [paint(look, 'dim', cutLine(safe`    ${said}`, columns))]),
    ];
  };

  return {
    see({ event, state }) {
      if (event.type === 'ToolCallDelta') {
        const before = written?.tool === event.tool ? written.length : 0;
        written = { tool: event.tool, length: before + event.text.length };
      }
      if (state.name !== 'CallingLlm') written = null;
      if (event.type === 'LlmCompleted') {
        startedAt.clear();
        output.clear();
      }
      if (event.type === 'ToolStarted') startedAt.set(event.callId, event.at);
      if (event.type === 'ToolProgress') {
        output.set(event.callId, ((output.get(event.callId) ?? '') + event.text).slice(-KEPT));
      }
    },
    rows(state, columns, now) {
      if (written !== null) {
        const text = safe`▸ ${makeSafe(written.tool)} … ${written.length} characters`;
        return [paint(look, 'dim', cutLine(text, columns))];
      }
      if (state.name !== 'ExecutingTools') return [];
      const running = state.calls.filter((call) => call.status === 'running' || call.status === 'starting');
      const left = running.length - CALLS_MAX;
      const rows = running.slice(0, CALLS_MAX).flatMap((call) => callRows(call.judged.callId, columns, now));
      return left > 0 ? [...rows, paint(look, 'dim', safe`  … ${left} more`)] : rows;
    },
    tookMs(callId, now) {
      const began = startedAt.get(callId);
      return began === undefined ? null : now - began;
    },
  };
};
