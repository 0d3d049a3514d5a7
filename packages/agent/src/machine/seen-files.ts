/**
 * What calls have shown of files: which lines, and by which call. A file may be replaced as a whole
 * only while the results that show it stand in the conversation.
 */

import type { SeenFile, ShownLines } from './call.js';

/** All lines of a file, shown by one call. */
export const wholeFile = (by: string): readonly ShownLines[] => [{ by, first: 1 }];

/** The last line of a range, with a number for the end of the file. */
export const lastLine = ({ last = Number.MAX_SAFE_INTEGER }: ShownLines): number => last;

/** Both, without ranges that another one of the same call holds. */
export const joinLines = (
  known: readonly ShownLines[],
  added: readonly ShownLines[],
): readonly ShownLines[] => {
  const holds = (whole: ShownLines, part: ShownLines): boolean =>
    whole.by === part.by && whole.first <= part.first && lastLine(whole) >= lastLine(part);
  return [...known.filter((old) => !added.some((lines) => holds(lines, old))), ...added];
};

/** The ranges of lines, from 1 to `count`, that no range shows. */
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
  /** What was seen of a file last counts. */
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
