import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type HeldFolder, holdFolder } from '../../platform/files/open-folder.js';
import { ripgrepProgram } from '../../platform/programs/bundled-ripgrep.js';
import { startProgram } from '../../platform/programs/start-program.js';

/**
 * Runs ripgrep as a child process. It follows no symlinks and changes nothing.
 *
 * ripgrep opens files by path, so a process that replaces folders meanwhile can redirect it. Its results are therefore
 * verified below a held folder before anybody sees them.
 */

const ERROR_CHARACTERS_MAX = 2_000;
/** Longer records are cut here. */
const RECORD_CHARACTERS_MAX = 1_000_000;

export type RipgrepEnd = {
  readonly code: number | null;
  /** About the pattern or a glob; empty if only some files were unreadable. */
  readonly error: string;
  /** Stopped because `take` had enough. */
  readonly more: boolean;
};

export type RipgrepOrder = {
  readonly words: readonly string[];
  readonly folder: HeldFolder;
  readonly signal: AbortSignal;
  /** Record separator: a line break, or NUL (`--null` with `--files`). */
  readonly end: '\n' | '\0';
  /** Called for each record. `enough` ends the run. */
  take(record: string): 'more' | 'enough';
};

/**
 * Options of every run: hidden files count; ignore files apply with or without a repository. Messages about single files
 * are off, since they could name files outside if folders are replaced.
 */
const ALWAYS = [
  ...['--no-config', '--color=never', '--hidden', '--no-require-git', '--glob=!.git'],
  ...['--no-messages', '--no-ignore-messages'],
];

/** Calls `take` for each record. A line break inside a record has no meaning here. */
const readRecords = (output: Readable, end: string, take: (record: string) => void): void => {
  const decoder = new StringDecoder('utf8');
  let open = '';
  const add = (text: string): void => {
    open = (open + text).slice(0, RECORD_CHARACTERS_MAX);
  };
  output.on('data', (bytes: Buffer) => {
    const [first = '', ...rest] = decoder.write(bytes).split(end);
    add(first);
    for (const next of rest) {
      take(open);
      open = '';
      add(next);
    }
  });
  output.on('end', () => {
    add(decoder.end());
    if (open !== '') take(open);
  });
};

const start = async (order: RipgrepOrder): Promise<RipgrepEnd> => {
  const program = await ripgrepProgram();
  const { words, folder, signal, take, end } = order;
  return new Promise((resolve, reject) => {
    const child = startProgram(program, [...ALWAYS, ...words], {
      cwd: folder.reach,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const stop = (): void => {
      child.kill('SIGKILL'); // it changes nothing, so it needs no time to end
    };
    let more = false;
    let error = '';
    readRecords(child.stdout, end, (record) => {
      if (more || take(record) === 'more') return;
      more = true;
      stop();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      error = (error + text).slice(0, ERROR_CHARACTERS_MAX);
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    child.once('error', reject);
    child.once('close', (code) => {
      signal.removeEventListener('abort', stop);
      resolve({ more, code, error: error.trim() });
    });
  });
};

/** Runs ripgrep until it ends, `take` has enough, or it is aborted. Rejects with advice if it can't be started. */
export const runRipgrep = (order: RipgrepOrder): Promise<RipgrepEnd> =>
  start(order).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `ripgrep can't be started: ${why} Install it again with the package, optional dependencies included.`,
    );
  });

/** Relative names of the files below a folder that no ignore file excludes. */
export const listFiles = (order: Pick<RipgrepOrder, 'folder' | 'signal' | 'take'>): Promise<RipgrepEnd> =>
  runRipgrep({ ...order, words: ['--files', '--null'], end: '\0' });

/** Runs `work` in an allowed folder; null if its path now leads elsewhere or to no folder. */
export const withFolder = async <T>(
  real: string,
  work: (folder: HeldFolder) => Promise<T>,
): Promise<T | null> => {
  const held = await holdFolder(real).catch(() => null); // null: access denied
  if (held?.kind !== 'held') return null;
  try {
    return await work(held.folder);
  } finally {
    await held.folder.close();
  }
};
