import type { Call, JudgedCall, SeenFile } from '../agent/call.js';
import type { Event } from '../agent/event.js';
import type { State } from '../agent/state.js';
import type { Journal } from '../ports/journal.js';
import type { FileHashes, FileMemory, ToolOutcome } from '../ports/tool.js';
import { attempt } from './attempt.js';
import type { ToolRuns } from './tools/tool-run.js';

/**
 * Settles calls that were running when a session was interrupted (docs/rules.md#resume-calls).
 *
 * 1. Whatever the class, the answer is one ordinary ToolCompleted; "perhaps it ran" is never silent.
 * 2. `pure` runs again. `probeable` runs again if the file is as it was before, and is done if the file is as the call
 *    leaves it. `opaque` never runs by itself.
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

/** As ok as if its end had been reported; only its own words are lost. */
const TOOK_EFFECT: ToolOutcome = {
  status: 'ok',
  text: 'it had taken effect before the crash: the file is as this call leaves it',
};

/** What the journal tells of files. */
type Past = {
  /** What ToolStarted recorded, by batch and call. */
  readonly hashes: Map<string, FileHashes>;
  /** sha256 of the files that calls and hooks read or wrote, by real path: what was seen last counts. */
  readonly seen: Map<string, string>;
};

const keyOf = (batchId: string, callId: string): string => `${batchId} ${callId}`;

/** Files whose content an event tells: what a call read or wrote, what a formatter rewrote. */
const seenIn = (event: Event): readonly SeenFile[] => {
  if (event.type === 'ToolCompleted') return event.outcome.seen ?? [];
  return event.type === 'HookCompleted' ? (event.seen ?? []) : [];
};

const collectPast = async (journal: Journal, upTo: number, { hashes, seen }: Past): Promise<void> => {
  for await (const { seq, event } of journal.read()) {
    if (seq > upTo) return;
    if (event.type === 'ToolStarted' && event.before !== undefined) {
      const { before, after } = event;
      const key = keyOf(event.batchId, event.callId);
      hashes.set(key, after === undefined ? { before } : { before, after });
    }
    for (const { path, sha256 } of seenIn(event)) seen.set(path, sha256);
  }
};

const readPast = async (journal: Journal, upTo: number): Promise<Past> => {
  const past: Past = { hashes: new Map(), seen: new Map() };
  const collected = await attempt(() => collectPast(journal, upTo, past));
  // a journal that can't be read again leaves hashes unknown, which is reported, and files to be read anew
  return collected.kind === 'done' ? past : { hashes: new Map(), seen: new Map() };
};

/** Rule 2. A call that leaves the file as it was may run again, too. */
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
 * Settles each running call by its effect class, and lets the session remember the files it saw. The journal is read
 * once, when the first tool runs.
 */
export const recoverCalls = (running: readonly Running[], journal: Journal, tools: ToolRuns): void => {
  const upTo = journal.seq;
  let reading: Promise<Past> | null = null;
  const readOnce = (): Promise<Past> => {
    reading ??= readPast(journal, upTo);
    return reading;
  };
  tools.recallWith(async (files) => {
    const { seen } = await readOnce();
    for (const [path, sha256] of seen) files.set(path, sha256);
  });
  for (const { batchId, call } of running) {
    const { effect } = call.traits;
    tools.recover(batchId, call, async (look, files) => {
      if (effect === 'opaque') return COMMAND_LOST;
      if (effect === 'pure') return null;
      const { hashes } = await readOnce();
      return decideProbeable(call, hashes.get(keyOf(batchId, call.callId)), look, files);
    });
  }
};
