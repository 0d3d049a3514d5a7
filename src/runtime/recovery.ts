import type { Call, JudgedCall } from '../agent/call.js';
import type { State } from '../agent/state.js';
import type { Journal, ToolOutcome } from '../needs.js';
import type { ToolRuns } from './tool-run.js';
import { type Attempt, attempt } from './wall.js';

/**
 * What becomes of calls that were running when a session ended without its end (2.12).
 *
 * 1. Whatever the class, the answer is one ordinary ToolCompleted; "perhaps it ran" is never silent.
 * 2. `pure` runs again. `probeable` runs again if the file is as it was before. `opaque` never runs by itself.
 */

type Running = { readonly batchId: string; readonly call: JudgedCall };

const isRunning = (call: Call): boolean => call.status === 'running';

/** The calls that were running before the session was opened again and still are after Resumed. */
export const runningCalls = (opened: State, resumed: State): readonly Running[] => {
  if (opened.name !== 'ExecutingTools' || resumed.name !== 'ExecutingTools') return [];
  const { batchId } = resumed;
  if (opened.batchId !== batchId) return [];
  const before = new Set(opened.calls.filter(isRunning).map(({ judged }) => judged.callId));
  return resumed.calls
    .filter((call) => isRunning(call) && before.has(call.judged.callId))
    .map(({ judged }) => ({ batchId, call: judged }));
};

/** The hook that does not start again by itself: to commit is not safe to repeat. */
export const interruptedHook = (resumed: State): string | null =>
  resumed.name === 'PostToolsHook' && resumed.phase === 'AutoCommitting' ? resumed.hookId : null;

/** The machine says that the outcome is unknown; the text says what is known. */
const lost = (text: string): ToolOutcome => ({ status: 'lost', text });

const COMMAND_LOST = lost(
  'the command was running when the session ended; check whether it took effect before you run it again',
);
const FILE_CHANGED = lost('the file has changed since the call began: read it before you go on');
const NOT_RECORDED = lost('how the file was before the call is not recorded: read it before you go on');

/** The hashes that ToolStarted recorded, by call. */
const hashesBefore = async (journal: Journal, batchId: string): Promise<ReadonlyMap<string, string>> => {
  const hashes = new Map<string, string>();
  for await (const { event } of journal.read()) {
    if (event.type !== 'ToolStarted' || event.batchId !== batchId || event.before === undefined) continue;
    hashes.set(event.callId, event.before);
  }
  return hashes;
};

const decideProbeable = async (before: string | undefined, look: () => Promise<string | undefined>) => {
  if (before === undefined) return NOT_RECORDED;
  return (await look()) === before ? null : FILE_CHANGED;
};

/** Settles each running call by its effect class. The journal is read once, and only where a hash can help. */
export const recoverCalls = (running: readonly Running[], journal: Journal, tools: ToolRuns): void => {
  let reading: Promise<Attempt<ReadonlyMap<string, string>>> | null = null;
  for (const { batchId, call } of running) {
    const { effect } = call.traits;
    tools.recover(batchId, call, async (look) => {
      if (effect === 'opaque') return COMMAND_LOST;
      if (effect === 'pure') return null;
      reading ??= attempt(() => hashesBefore(journal, batchId));
      const hashes = await reading;
      // a journal that can't be read again leaves the hash unknown, which is reported
      return decideProbeable(hashes.kind === 'done' ? hashes.value.get(call.callId) : undefined, look);
    });
  }
};
