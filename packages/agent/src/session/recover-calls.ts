/**
 * Settles calls that were running when a session was interrupted (docs/rules.md#resume-calls).
 *
 * 1. In every class the answer is one ordinary ToolCompleted. If a call may have run, its result
 *    says so.
 * 2. `pure` runs again. `probeable` runs again if the file is as it was before, and is done if the
 *    file is as the call leaves it. The tool looks for an `opaque` one: it is awaited, or runs if
 *    it had not started, or is unknown.
 */

import type { Call } from '../machine/call.js';
import { collectPastFiles, type PastFiles } from '../machine/carried-session.js';
import type { State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { Journal } from '../ports/journal.js';
import type { FileHashes, FileMemory, ToolOutcome } from '../ports/tool.js';
import type { ToolRuns } from './tool-run.js';

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

/** The status says that the outcome is unknown; the text says what is known. */
const lost = (text: string): ToolOutcome => ({ status: 'lost', text });

const FILE_CHANGED = lost('the file has changed since the call began: read it before you go on');
const NOT_RECORDED = lost(
  'how the file was before the call is not recorded: read it before you go on',
);

/** The call succeeded; only its text is lost. */
const TOOK_EFFECT: ToolOutcome = {
  status: 'ok',
  text: 'it had taken effect before the crash: the file is as this call leaves it',
};

const readPast = async (journal: Pick<Journal, 'read'>, upTo: number): Promise<PastFiles> => {
  const { see, past } = collectPastFiles();
  const read = await attempt(async () => {
    for await (const { seq, event } of journal.read()) {
      if (seq > upTo) return;
      see(event);
    }
  });
  // If the journal can't be read again, hashes are unknown, which is reported, and files must be
  // read again.
  return read.kind === 'done' ? past() : collectPastFiles().past();
};

/**
 * Compares the file with its hashes: a call runs again, took effect, or is lost. One that changed
 * nothing may run again.
 */
const decideProbeable = async (
  { facts }: JudgedCall,
  recorded: FileHashes | undefined,
  look: () => Promise<FileHashes | undefined>,
  files: FileMemory,
): Promise<ToolOutcome | null> => {
  if (recorded === undefined) return NOT_RECORDED;
  const now = (await look())?.before;
  if (now === recorded.before) return null;
  if (now === undefined || now !== recorded.after) return FILE_CHANGED;
  const [path, ...others] = facts.paths;
  if (path !== undefined && others.length === 0) files.set(path, now);
  return TOOK_EFFECT;
};

/**
 * Settles each running call by its effect class, and restores the session's memory of files.
 * Without `known` the journal is read for that once, when the first tool runs. No tool runs before
 * `takingOver` has resolved.
 */
export const recoverCalls = (
  running: readonly Running[],
  journal: Pick<Journal, 'read' | 'seq'>,
  tools: ToolRuns,
  {
    known,
    takingOver,
  }: { readonly known: PastFiles | undefined; readonly takingOver: Promise<void> },
): void => {
  const upTo = journal.seq;
  let reading = known === undefined ? null : Promise.resolve(known);
  const readOnce = (): Promise<PastFiles> => {
    reading ??= readPast(journal, upTo);
    return reading;
  };
  tools.recallWith(async (files) => {
    const { seen } = await readOnce();
    for (const [path, sha256] of seen) files.set(path, sha256);
    await takingOver;
  });
  for (const { batchId, call } of running) {
    const { effect } = call.traits;
    if (effect === 'opaque') {
      tools.recoverOpaque(batchId, call);
      continue;
    }
    tools.recover(batchId, call, async (look, files) => {
      if (effect === 'pure') return null;
      const past = await readOnce();
      const recorded = past.batchId === batchId ? past.hashes.get(call.callId) : undefined;
      return decideProbeable(call, recorded, look, files);
    });
  }
};
