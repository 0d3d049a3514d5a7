import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../e2e/pawl.js';

/**
 * Ends the real program at a chosen step: kill-points.c counts what the program does to files, and starts of processes.
 * The program has no part in it.
 */

/** How the program ends, or what fails from the step on. */
export const ENDINGS = {
  kill: { KILL_SIGNAL: '9' },
  int: { KILL_SIGNAL: '2' },
  quit: { KILL_SIGNAL: '3' },
  term: { KILL_SIGNAL: '15' },
  hangUp: { KILL_SIGNAL: '1' },
  usr1: { KILL_SIGNAL: '10' },
  fullDisk: { KILL_ERROR: '28' },
  brokenDisk: { KILL_ERROR: '5' },
  fewDescriptors: { KILL_ERROR: '24' },
} as const;
export type Ending = keyof typeof ENDINGS;

export type KillPoint = {
  readonly ending: Ending;
  /** Number of the step, from 1. */
  readonly at: number;
  /** `half`: a write leaves half of its bytes. */
  readonly when: 'before' | 'half' | 'after';
};

export type Step = { readonly number: number; readonly name: string; readonly place: string };

/** Compiles the library into `folder`; its path. */
export const buildKillPoints = (folder: string): string => {
  const library = join(folder, 'kill-points.so');
  const source = join(root, 'packages/pawl/test/torture/kill-points.c');
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  return library;
};

/** Variables for a program whose steps below `folder` are counted. */
export const killEnvironment = (
  library: string,
  folder: string,
  log: string,
  point: KillPoint | null,
): NodeJS.ProcessEnv => ({
  LD_PRELOAD: library,
  KILL_FOLDER: folder,
  KILL_LOG: log,
  ...(point === null
    ? {}
    : { ...ENDINGS[point.ending], KILL_AT: String(point.at), KILL_WHEN: point.when }),
});

export const readSteps = (log: string): readonly Step[] =>
  (existsSync(log) ? readFileSync(log, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [number = '0', name = '', ...place] = line.split(' ');
      return { number: Number(number), name, place: place.join(' ') };
    });
