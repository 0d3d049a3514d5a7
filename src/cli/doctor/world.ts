import { execFile } from 'node:child_process';

/** What the doctor looks at, so that a test can put something else in its place. */

export type Ran = { readonly code: number; readonly text: string };

export type World = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** As `process.versions.node` has it. */
  readonly nodeVersion: string;
  readonly platform: string;
  /** Null where the system has no users by number. */
  readonly userId: number | null;
  /** As it was given: it need not be there. */
  readonly workspace: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether somebody watches in a terminal. */
  readonly isTerminal: boolean;
  /** Whether servers may be asked. */
  readonly online: boolean;
  /** The model that is meant; null for the one that is set. */
  readonly model: string | null;
};

export type Found = {
  /** One line: what is wrong. */
  readonly what: string;
  /** What to do about it. */
  readonly repair: string;
};

export type Check = {
  readonly name: string;
  /** `fault`: something does not work; `note`: something works otherwise than many expect. */
  readonly level: 'fault' | 'note';
  /** What was found, or null if all is well. */
  look(world: World): Promise<Found | null> | Found | null;
};

const LIMIT_MS = 10_000;

/** Runs a program by its name, as the agent would find it; null if there is none. Both outputs in one text. */
export const runProgram = (
  { environment }: World,
  program: string,
  words: readonly string[],
  folder?: string,
): Promise<Ran | null> =>
  new Promise((resolve) => {
    const options = {
      env: { ...environment },
      timeout: LIMIT_MS,
      ...(folder === undefined ? {} : { cwd: folder }),
    };
    execFile(program, words, options, (error, stdout, stderr) => {
      const text = `${stdout}${stderr}`.trim();
      if (error === null) return resolve({ code: 0, text });
      if (error.code === 'ENOENT' || error.code === 'EACCES') return resolve(null);
      resolve({ code: typeof error.code === 'number' ? error.code : 1, text: text || error.message });
    });
  });

/** Whether a version `a.b.c` is at least another. */
export const isAtLeast = (version: string, wanted: string): boolean => {
  const [have, need] = [version, wanted].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (have?.[index] ?? 0) - (need?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
};

/** The first version number in a text; null if there is none. */
export const versionIn = (text: string): string | null => /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? null;
