import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** ripgrep as a child process. Symlinks are not followed, and nothing is changed. */

const ERROR_CHARACTERS_MAX = 2_000;

export type RipgrepEnd = {
  readonly code: number | null;
  readonly error: string;
  /** It was stopped because `take` had enough. */
  readonly more: boolean;
};

export type RipgrepOrder = {
  readonly words: readonly string[];
  readonly workspace: string;
  readonly signal: AbortSignal;
  /** Called with each line; `enough` ends the run. */
  take(line: string): 'more' | 'enough';
};

/** What every run has: hidden files count, files that an ignore file names do not, with or without a repository. */
const ALWAYS = ['--no-config', '--color=never', '--hidden', '--no-require-git', '--glob=!.git'];

const start = async (order: RipgrepOrder): Promise<RipgrepEnd> => {
  const { rgPath } = await import('@vscode/ripgrep');
  const { words, workspace, signal, take } = order;
  return new Promise((resolve, reject) => {
    const child = spawn(rgPath, [...ALWAYS, ...words], { cwd: workspace, stdio: ['ignore', 'pipe', 'pipe'] });
    const stop = (): void => {
      child.kill('SIGKILL'); // it changes nothing, so there is nothing to end in order
    };
    let more = false;
    let error = '';
    createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      if (more || take(line) === 'more') return;
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
