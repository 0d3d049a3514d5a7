import { createInterface } from 'node:readline';
import { ripgrepProgram } from '@pawl/agent/platform/programs/bundled-ripgrep';
import { startProgram } from '@pawl/agent/platform/programs/start-program';
import { type Choice, ranked } from '@pawl/terminal/input/completion';

/** The files of a workspace, for the completion of `@`. */

const FILES_MAX = 20_000;
/** An older list is read again on the next use. */
const FRESH_MS = 5_000;

const LISTING = ['--files', '--no-config', '--hidden', '--no-require-git', '--glob=!.git'];

/** Relative paths of up to FILES_MAX files that are not ignored, unsorted. Stops when `signal` does. */
const listFiles = async (workspace: string, signal: AbortSignal): Promise<readonly string[]> => {
  const program = await ripgrepProgram();
  return new Promise((resolve, reject) => {
    const child = startProgram(program, LISTING, { cwd: workspace, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stderr.resume(); // messages about unreadable files don't matter here
    const stop = (): void => void child.kill('SIGKILL'); // it changes nothing
    const files: string[] = [];
    createInterface({ input: child.stdout }).on('line', (file) => {
      if (files.length < FILES_MAX) files.push(file);
      else stop();
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    child.once('error', reject);
    child.once('close', () => {
      signal.removeEventListener('abort', stop);
      if (signal.aborted) reject(new Error('the list of files is not wanted any more'));
      else resolve(files);
    });
  });
};

/** The files and all folders that contain them. Folders end with a slash. */
const withFolders = (files: readonly string[]): readonly string[] => {
  const folders = new Set<string>();
  for (const file of files) {
    for (let at = file.indexOf('/'); at >= 0; at = file.indexOf('/', at + 1))
      folders.add(file.slice(0, at + 1));
  }
  return [...folders, ...files].sort();
};

export type WorkspaceFiles = (words: string, signal: AbortSignal) => Promise<readonly Choice[]>;

export const createWorkspaceFiles = (workspace: string): WorkspaceFiles => {
  let listed: { readonly at: number; readonly choices: readonly Choice[] } | null = null;
  return async (words, signal) => {
    if (listed === null || performance.now() - listed.at > FRESH_MS) {
      const files = withFolders(await listFiles(workspace, signal));
      listed = { at: performance.now(), choices: files.map((text) => ({ text, about: '' })) };
    }
    return ranked(words, listed.choices);
  };
};
