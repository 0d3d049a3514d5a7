import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readTextOrEmptySync } from '../../../files/regular-file.js';

/**
 * What was typed in a folder, over all sessions: history/HASH.jsonl in the state folder, one JSON object a line.
 *
 * 1. Only appended to, a line at once, so that several programs may write.
 * 2. Never larger than two files of BYTES_MAX: a full one becomes HASH.old.jsonl, in place of the one before.
 * 3. It is a convenience: what can't be read or written is left out, and never in anybody's way.
 */
export type HistoryFile = {
  /** Oldest first. */
  read(): readonly string[];
  add(text: string): void;
};

const BYTES_MAX = 512 * 1024;
/** A longer text is not kept: it is in the journal. */
const TEXT_MAX = 32 * 1024;

const textOf = (line: string): readonly string[] => {
  try {
    const entry: unknown = JSON.parse(line);
    const text = typeof entry === 'object' && entry !== null && 'text' in entry ? entry.text : null;
    return typeof text === 'string' ? [text] : [];
  } catch {
    return []; // a line that was cut off when its writer was killed
  }
};

/** None of a file that is not there yet, or can't be read: rule 3. */
const linesOf = (file: string): readonly string[] =>
  readTextOrEmptySync(file, 2 * BYTES_MAX)
    .split('\n')
    .filter(Boolean);

export const openHistory = (stateFolder: string, workspace: string): HistoryFile => {
  const folder = join(stateFolder, 'history');
  const name = createHash('sha256').update(workspace).digest('hex').slice(0, 16);
  const file = join(folder, `${name}.jsonl`);
  const old = join(folder, `${name}.old.jsonl`);
  return {
    read: () => [...linesOf(old), ...linesOf(file)].flatMap(textOf),
    add(text) {
      if (text.trim() === '' || text.length > TEXT_MAX) return;
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        const status = statSync(file, { throwIfNoEntry: false });
        if (status !== undefined && !status.isFile()) return; // a pipe would be waited for
        if ((status?.size ?? 0) > BYTES_MAX) renameSync(file, old);
        appendFileSync(file, `${JSON.stringify({ text })}\n`, { mode: 0o600 });
      } catch {
        // rule 3: the text was sent all the same
      }
    },
  };
};
