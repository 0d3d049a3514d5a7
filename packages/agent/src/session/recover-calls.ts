/**
 * Recovers the calls that were running when a session was interrupted (rules.md#resume-calls).
 *
 * Each call gets one ordinary ToolCompleted. If it may have run, its result says so.
 *
 * - `pure`: runs again.
 * - `probeable`: runs again if the file is as before the call; is done if the file is as after it;
 *   else lost.
 * - `opaque`: its tool finds it. It is awaited if it runs, runs if it never began, else lost.
 */

import type { Call } from '../machine/call.js';
import { collectPastFiles, type PastFiles } from '../machine/seen-files.js';
import type { State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { Journal } from '../ports/journal.js';
import type { FileHashes, FileMemory, ToolOutcome } from '../ports/tool.js';
import type { ToolRuns } from './tool-run.js';

type Running = { readonly batchId: string; readonly call: JudgedCall };

const isRunning = (call: Call): boolean => call.status === 'running';

/** The calls that were running at the end of the earlier process and still are after Resumed. */
export const runningCalls = (opened: State, resumed: State): readonly Running[] => {
  if (opened.name !== 'ExecutingTools' || resumed.name !== 'ExecutingTools') return [];
  const { batchId } = resumed;
  if (opened.batchId !== batchId) return [];
  const before = new Set(opened.calls.filter(isRunning).map(({ judged }) => judged.callId));
  return resumed.calls
    .filter((call) => isRunning(call) && before.has(call.judged.callId))
    .map(({ judged }) => ({ batchId, call: judged }));
};

const FILE_CHANGED: ToolOutcome = {
  status: 'lost',
  text: 'the file has changed since the call began: read it before you go on',
};
const NOT_RECORDED: ToolOutcome = {
  status: 'lost',
  text: 'how the file was before the call is not recorded: read it before you go on',
};

/** The call succeeded; only its text is lost. */
const TOOK_EFFECT: ToolOutcome = {
  status: 'ok',
  text: 'it had taken effect before the crash: the file is as this call leaves it',
};

const readPast = async (journal: Pick<Journal, 'read'>, upTo: number): Promise<PastFiles> => {
  // `see` takes one event after the other; `past` returns the files in them.
  const { see, past } = collectPastFiles();
  const read = await attempt(async () => {
    for await (const { seq, event } of journal.read()) {
      if (seq > upTo) return;
      see(event);
    }
  });
  // If the journal can't be read, hashes are unknown (which results report), and the model must
  // read files again.
  return read.kind === 'done' ? past() : collectPastFiles().past();
};

/**
 * Compares the file with its hashes: the call runs again (null), took effect, or is lost.
 */
const decideProbeable = async (
  { facts }: JudgedCall,
  recorded: FileHashes | undefined,
  hashFile: () => Promise<FileHashes | undefined>,
  files: FileMemory,
): Promise<ToolOutcome | null> => {
  if (recorded === undefined) return NOT_RECORDED;
  const now = (await hashFile())?.before;
  if (now === recorded.before) return null;
  if (now === undefined || now !== recorded.after) return FILE_CHANGED;
  const [path, ...others] = facts.paths;
  // The model knows the file as it is now, since its own call has written it.
  if (path !== undefined && others.length === 0) {
    files.set(path, now);
    files.wrote?.(path, recorded.before, now);
  }
  return TOOK_EFFECT;
};

/**
 * Recovers each running call by its effect class, and restores the session's memory of files.
 * Without `past` the journal is read for that, once, when the first tool runs. No tool runs before
 * `takingOver` has resolved.
 */
export const recoverCalls = (
  running: readonly Running[],
  journal: Pick<Journal, 'read' | 'seq'>,
  tools: ToolRuns,
  {
    past,
    takingOver,
  }: { readonly past: PastFiles | undefined; readonly takingOver: Promise<void> },
): void => {
  const upTo = journal.seq;
  let reading = past === undefined ? null : Promise.resolve(past);
  const readOnce = (): Promise<PastFiles> => {
    reading ??= readPast(journal, upTo);
    return reading;
  };
  tools.loadFilesWith(async (files) => {
    const { seen } = await readOnce();
    for (const { path, sha256, lines } of seen.values()) files.set(path, sha256, undefined, lines);
    await takingOver;
  });
  for (const { batchId, call } of running) {
    const { effect } = call.traits;
    if (effect === 'opaque') {
      tools.recoverOpaque(batchId, call);
      continue;
    }
    tools.recover(batchId, call, async (hashFile, files) => {
      if (effect === 'pure') return null;
      const read = await readOnce();
      const recorded = read.batchId === batchId ? read.hashes.get(call.callId) : undefined;
      return decideProbeable(call, recorded, hashFile, files);
    });
  }
};
