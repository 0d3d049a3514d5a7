/**
 * The memory of files as one call has it: what the call sees is recorded for the journal, and lines
 * count as shown while the conversation shows them. So a compaction, a rewind or a fork needs no
 * word here.
 */

import type { SeenFile } from '../machine/call.js';
import { messagesOf } from '../machine/conversation.js';
import { wholeFile } from '../machine/seen-files.js';
import type { State } from '../machine/state.js';
import type { FileMemory } from '../ports/tool.js';

/**
 * The session's memory of files. What is set in it is also noted in `seen`, by real path. `by`: the
 * call that shows the lines of a file, unless the tool says otherwise.
 */
export const recordingMemory = (
  files: FileMemory,
  seen: Map<string, SeenFile>,
  by: string,
): FileMemory => ({
  get: (path) => files.get(path),
  shown: (path) => files.shown?.(path) ?? wholeFile(by),
  hide: (callId) => files.hide?.(callId),
  wrote: (path, before, after) => files.wrote?.(path, before, after),
  ownWrite: (path) => files.ownWrite?.(path),
  addLines: (path, sha256, text) => files.addLines?.(path, sha256, text),
  recall: (path) => files.recall?.(path),
  set: (path, sha256, text, lines = wholeFile(by)) => {
    if (typeof path !== 'string' || typeof sha256 !== 'string')
      throw new TypeError(
        'files.set takes the real path of a file and the sha256 of its bytes, as texts',
      );
    files.set(path, sha256, text, lines);
    seen.set(path, { path, sha256, lines: files.shown?.(path) ?? lines });
  },
});

/** A recording memory with only those shown lines that the model has before it. */
export const presentMemory = (
  recording: ReturnType<typeof recordingMemory>,
  state: () => State,
): FileMemory => ({
  ...recording,
  shown: (path) => {
    const calls = presentCalls(state());
    return recording.shown?.(path).filter(({ by }) => calls.has(by)) ?? [];
  },
});

/** The calls with a result in the conversation, and those of the running batch that wrote. */
const presentCalls = ({ session, ...state }: State): ReadonlySet<string> => {
  const results = messagesOf(session.conversation).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'result' ? [part.callId] : [])),
  );
  const running = state.name === 'ExecutingTools' ? state.calls : [];
  const writing = running.filter(({ judged }) => judged.traits.mutating);
  return new Set([...results, ...writing.map(({ judged }) => judged.callId)]);
};
