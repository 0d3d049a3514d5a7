import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type HeldFolder, holdFolder } from '../../files/open-folder.js';
import { ripgrepProgram } from '../../programs/ripgrep.js';
import { startProgram } from '../../programs/start-program.js';

/**
 * ripgrep as a child process. Symlinks are not followed, and nothing is changed.
 *
 * It works by paths, so a process that exchanges folders while it runs can make it look elsewhere: what it finds is
 * looked at again below a held folder before anybody sees it.
 */

const ERROR_CHARACTERS_MAX = 2_000;
/** A longer one is cut there. */
const RECORD_CHARACTERS_MAX = 1_000_000;

export type RipgrepEnd = {
  readonly code: number | null;
  /** About the pattern or a glob; empty where files could not be read. */
  readonly error: string;
  /** It was stopped because `take` had enough. */
  readonly more: boolean;
};

export type RipgrepOrder = {
  readonly words: readonly string[];
  readonly folder: HeldFolder;
  readonly signal: AbortSignal;
  /** Record separator: a line break, or NUL (`--null` with `--files`). */
  readonly end: '\n' | '\0';
  /** Called with each record; `enough` ends the run. */
  take(record: string): 'more' | 'enough';
};

/**
 * What every run has: hidden files count, files that an ignore file names do not, with or without a repository. Messages
 * about files would name some that lie elsewhere, if folders are exchanged.
 */
const ALWAYS = [
  ...['--no-config', '--color=never', '--hidden', '--no-require-git', '--glob=!.git'],
  ...['--no-messages', '--no-ignore-messages'],
];

/** Calls `take` with each record; a line break inside a record is none of ours to interpret. */
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
      child.kill('SIGKILL'); // it changes nothing, so there is nothing to end in order
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

/** Runs ripgrep until it ends, `take` has enough, or it is stopped. Rejects when it can't be started, with what to do. */
export const runRipgrep = (order: RipgrepOrder): Promise<RipgrepEnd> =>
  start(order).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `ripgrep can't be started: ${why} Install it again with the package, optional dependencies included.`,
    );
  });

/** Names below a folder that no ignore file names, relative to it. */
export const listFiles = (order: Pick<RipgrepOrder, 'folder' | 'signal' | 'take'>): Promise<RipgrepEnd> =>
  runRipgrep({ ...order, words: ['--files', '--null'], end: '\0' });

/** Works in a folder that policy has allowed; null where its path leads elsewhere by now, or to no folder. */
export const withFolder = async <T>(
  real: string,
  work: (folder: HeldFolder) => Promise<T>,
): Promise<T | null> => {
  const held = await holdFolder(real).catch(() => null); // null: it may not be entered
  if (held?.kind !== 'held') return null;
  try {
    return await work(held.folder);
  } finally {
    await held.folder.close();
  }
};
