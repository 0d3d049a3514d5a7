/**
 * The builds and checks of `npm test`, each a program of its own.
 */

import { spawn } from 'node:child_process';
import path from 'node:path';

/**
 * A step that is a program: what it prints is shown when it has ended, so that steps can run at the
 * same time.
 */
export type Check = {
  readonly title: string;
  readonly program: string;
  readonly words: readonly string[];
};

const ownBin = (name: string): string => path.join('node_modules', '.bin', name);
const script = (file: string): readonly string[] => ['--import', 'tsx', `scripts/${file}`];

/** The tests start what these build. */
export const BUILDS: readonly Check[] = [
  { title: 'bundle', program: process.execPath, words: script('bundle.ts') },
  { title: 'declarations', program: process.execPath, words: script('declarations.ts') },
  { title: 'papers', program: process.execPath, words: script('papers.ts') },
];

/** Several checkers work out the same types; the other core has tests to run. */
const ONE_CHECKER: readonly string[] = ['--checkers', '1'];

/** They look at the sources alone. */
export const CHECKS: readonly Check[] = [
  {
    title: 'types',
    program: ownBin('tsc'),
    words: ['-b', 'tsconfig.json', 'packages/inspector/src/page', ...ONE_CHECKER],
  },
  {
    title: 'format and lint',
    program: ownBin('biome'),
    words: ['check', '--error-on-warnings', '.'],
  },
  { title: 'house rules', program: process.execPath, words: script('tidy.ts') },
  { title: 'dead exports', program: ownBin('knip'), words: ['--no-progress', '--no-config-hints'] },
];

/** Runs it in `root` and prints what it said; whether it ended with 0. */
export const runCheck = (root: string, { title, program, words }: Check): Promise<boolean> =>
  new Promise((resolve) => {
    const startedAtMs = performance.now();
    const child = spawn(program, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes) => printed.push(bytes));
    const end = (code: number | null, why = ''): void => {
      const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
      process.stdout.write(Buffer.concat(printed));
      console.log(`${code === 0 ? '✔' : '✖'} ${title}: ${seconds} s${why}`);
      if (code !== 0)
        console.log(`'${title}' failed: ${path.relative(root, program)} ${words.join(' ')}`);
      resolve(code === 0);
    };
    child.once('error', (error) => end(null, `, ${error.message}`));
    child.once('close', (code) => end(code));
  });
