import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readTextOrEmptySync } from '@pawl/agent/platform/files/regular-file';

/**
 * The texts typed in a folder, across sessions: history/HASH.jsonl in the state folder, one JSON object per line.
 *
 * 1. Lines are appended in one write each, so several programs can write at once.
 * 2. At most two files of BYTES_MAX: a full file replaces HASH.old.jsonl.
 * 3. History is a convenience. Faults while reading or writing are ignored.
 */
export type HistoryFile = {
  /** Oldest first. */
  read(): readonly string[];
  add(text: string): void;
};

const BYTES_MAX = 512 * 1024;
/** Longer texts are not stored here. The journal has them. */
const TEXT_MAX = 32 * 1024;

const textOf = (line: string): readonly string[] => {
  try {
    const entry: unknown = JSON.parse(line);
    const text = typeof entry === 'object' && entry !== null && 'text' in entry ? entry.text : null;
    return typeof text === 'string' ? [text] : [];
  } catch {
    return []; // a line whose writer was killed
  }
};

/** No lines if the file is missing or unreadable (rule 3). */
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
        if (status !== undefined && !status.isFile()) return; // opening a pipe would block
        if ((status?.size ?? 0) > BYTES_MAX) renameSync(file, old);
        appendFileSync(file, `${JSON.stringify({ text })}\n`, { mode: 0o600 });
      } catch {
        // rule 3: the text itself was sent
      }
    },
  };
};
