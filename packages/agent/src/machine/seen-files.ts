/**
 * The files, and their lines, that the calls of a session have shown to the model or changed. They
 * are collected from the events, so a resumed session knows them.
 */

import type { SeenFile, ShownLines } from './call.js';
import type { Event } from './event.js';

// ---- Files in the events, for a resumed session ----

/** sha256 of a file before and after a call, as `ToolStarted` recorded it. */
type RecordedHashes = { readonly before: string; readonly after?: string };

/** The files that calls have read and written, and the time until which the session ran. */
export type PastFiles = {
  /** The time until which the session ran, by the last event; null if none was seen. */
  readonly lastAt: number | null;
  /** By call; only of the last batch, since only its calls can still be running. */
  readonly hashes: ReadonlyMap<string, RecordedHashes>;
  readonly batchId: string | null;
  /** The files that calls and hooks read or wrote, by real path, each as it was last seen. */
  readonly seen: ReadonlyMap<string, SeenFile>;
};

type PastFilesCollector = { see(event: Event): void; past(): PastFiles };

const NO_FILES: PastFiles = { lastAt: null, hashes: new Map(), batchId: null, seen: new Map() };

/**
 * The time until which the session ran, if this is its last event. Changed settings of a resumed
 * session do not count: if it was killed before Resumed, it has not run since the event before.
 */
export const ranUntil = (event: Event): number =>
  event.type === 'SettingsChanged' ? (event.stoppedAt ?? event.at) : event.at;

/** Collects the files from all events in order, or from those that follow `earlier`. */
export const collectPastFiles = (earlier: PastFiles = NO_FILES): PastFilesCollector => {
  const hashes = new Map(earlier.hashes);
  const seen = createSeenFiles(earlier.seen);
  let { batchId, lastAt } = earlier;
  const remember = (files: readonly SeenFile[] = [], by?: string): void => {
    for (const file of files) {
      // hooks of earlier versions name no lines: those that were shown before count
      const lines =
        file.lines ?? (by === undefined ? (seen.files.get(file.path)?.lines ?? []) : wholeFile(by));
      seen.set({ ...file, lines });
    }
  };
  return {
    see(event) {
      lastAt = ranUntil(event);
      if (event.type === 'ToolStarted') {
        if (event.batchId !== batchId) hashes.clear();
        batchId = event.batchId;
        const { callId, before, after } = event;
        seen.hide(callId); // a server may use the id of an earlier call again
        if (before !== undefined)
          hashes.set(callId, after === undefined ? { before } : { before, after });
      } else if (event.type === 'ToolCompleted') remember(event.outcome.seen, event.callId);
      else if (event.type === 'HookCompleted') remember(event.seen);
      // Stryker disable next-line ConditionalExpression: asked for the compiler
      else if (event.type === 'ShutdownRequested')
        for (const { callId, outcome } of event.outcomes ?? []) remember(outcome.seen, callId);
    },
    past: () => ({ lastAt, hashes, batchId, seen: seen.files }),
  };
};

// ---- Which lines of files calls have shown ----

// A file may be replaced as a whole only while the results that show it stand in the conversation.

/** All lines of a file, shown by one call. */
export const wholeFile = (by: string): readonly ShownLines[] => [{ by, first: 1 }];

/** The last line of a range, with a number for the end of the file. */
const lastLine = ({ last = Number.MAX_SAFE_INTEGER }: ShownLines): number => last;

/** Both lists, without present ranges that lie within an added range of the same call. */
export const joinLines = (
  present: readonly ShownLines[],
  added: readonly ShownLines[],
): readonly ShownLines[] => {
  const contains = (whole: ShownLines, part: ShownLines): boolean =>
    whole.by === part.by && whole.first <= part.first && lastLine(whole) >= lastLine(part);
  return [...present.filter((old) => !added.some((lines) => contains(lines, old))), ...added];
};

/**
 * The ranges of lines, from 1 to `count`, that no range shows. Of 10 lines with 1-3 and 6-7 shown,
 * 4-5 and 8-10 are missing.
 */
export const missingLines = (
  shown: readonly ShownLines[],
  count: number,
): readonly (readonly [first: number, last: number])[] => {
  const missing: (readonly [number, number])[] = [];
  let next = 1;
  for (const lines of [...shown].sort((one, other) => one.first - other.first)) {
    if (lines.first > count) break;
    if (lines.first > next) missing.push([next, lines.first - 1]);
    next = Math.max(next, lastLine(lines) + 1);
  }
  if (next <= count) missing.push([next, count]);
  return missing;
};

export type SeenFiles = {
  /** By real path. */
  readonly files: ReadonlyMap<string, SeenFile>;
  /** Replaces what was seen of the file before. */
  set(file: SeenFile): void;
  /** A call has shown nothing: its result was cut, or a later call has its id. */
  hide(callId: string): void;
};

export const createSeenFiles = (earlier: ReadonlyMap<string, SeenFile> = new Map()): SeenFiles => {
  const files = new Map(earlier);
  const calls = new Set<string>();
  const note = ({ lines = [] }: SeenFile): void => {
    for (const { by } of lines) calls.add(by);
  };
  for (const file of files.values()) note(file);
  return {
    files,
    set(file) {
      files.set(file.path, file);
      note(file);
    },
    hide(callId) {
      if (!calls.delete(callId)) return;
      for (const [path, file] of files)
        if (file.lines?.some(({ by }) => by === callId) === true)
          files.set(path, { ...file, lines: file.lines.filter(({ by }) => by !== callId) });
    },
  };
};
