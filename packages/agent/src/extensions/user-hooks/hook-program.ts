import { homedir } from 'node:os';
import path from 'node:path';
import type { SessionSandbox } from '../../command/sandbox/session/session-sandbox.js';
import type { SandboxLevel } from '../../machine/settings.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import {
  findRepositoryProgram,
  type ProgramPath,
  searchPrograms,
} from '../../platform/programs/find-program.js';
import { SYSTEM_SHELL } from '../../platform/programs/start-program.js';
import { type ProgramEnd, ProgramFailure, runProgram } from '../../workspace/run-program.js';
import { HookFault, OUTPUT_BYTES_MAX } from './read-hook-answer.js';

/** Runs the command of a hook, at its sandbox level, with its input on stdin. */

export type HookPlace = {
  /** Real path; commands run in it. */
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  readonly sandbox: SessionSandbox;
};

export type HookCommand = {
  readonly name: string;
  readonly command: string | readonly string[];
  readonly level: SandboxLevel;
  readonly timeoutMs: number;
  /** The project's folder, from which paths with a slash are read; null for a hook of the user. */
  readonly folder: string | null;
};

/** Time for output that is under way when the hook has ended. */
const LEFT_OPEN_MS = 200;

const findNamed = (
  word: string,
  { folder }: Pick<HookCommand, 'folder'>,
  place: Omit<HookPlace, 'sandbox'>,
): ProgramPath => {
  const whole = word.startsWith('~/') ? path.join(place.environment.HOME || homedir(), word.slice(2)) : word;
  if (whole.includes('/')) {
    if (!path.isAbsolute(whole) && folder === null)
      throw new HookFault(`its program ${word} is a relative path. Write the whole path`);
    const file = path.resolve(folder ?? '/', whole);
    // The user has named or allowed exactly this program.
    const named = findRepositoryProgram([path.dirname(file)], path.basename(file));
    if (named !== null) return named;
    throw new HookFault(`there is no program ${file}, or it may not be executed`);
  }
  const programs = searchPrograms(place);
  const found = programs.find(whole);
  if (found !== null) return found;
  const why = programs.whyNot(whole);
  throw new HookFault(`there is no program ${whole}${why === null ? ' in PATH' : `: ${why}`}`);
};

const startOf = (
  hook: Pick<HookCommand, 'command' | 'folder'>,
  place: Omit<HookPlace, 'sandbox'>,
): { readonly program: ProgramPath; readonly words: readonly string[] } => {
  if (typeof hook.command === 'string') return { program: SYSTEM_SHELL, words: ['-c', hook.command] };
  const [first = '', ...words] = hook.command;
  return { program: findNamed(first, hook, place), words };
};

/** Why the program of a hook can't be started; null if it is there. */
export const programFault = (
  hook: Pick<HookCommand, 'command' | 'folder'>,
  place: Omit<HookPlace, 'sandbox'>,
): string | null => {
  try {
    startOf(hook, place);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

/** Rejects with a HookFault, or with a ProgramFailure, if the hook did not end by itself. */
export const runHookProgram = async (
  hook: HookCommand,
  input: string,
  place: HookPlace,
  signal: AbortSignal,
): Promise<ProgramEnd> => {
  const start = startOf(hook, place);
  const sandbox = await place.sandbox.of(place.workspace);
  const prepared = await sandbox
    .prepare({ level: hook.level, environment: { PAWL_HOOK: hook.name }, canBeGuarded: true, ...start })
    .catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      throw new HookFault(`it can't be run in the sandbox: ${why}`);
    });
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  const running = runProgram({
    // bubblewrap, the shell or the program that was found above
    program: prepared.program as ProgramPath,
    words,
    environment,
    folder,
    descriptors,
    isGuarded,
    title: 'it',
    input,
    leftOpenMs: LEFT_OPEN_MS,
    bytesMax: OUTPUT_BYTES_MAX,
    atMax: 'fail',
    deadlineMs: hook.timeoutMs,
    signal,
  });
  prepared.started();
  try {
    return await running;
  } finally {
    await prepared.finish();
  }
};

export const faultText = (error: unknown): string => {
  if (error instanceof HookFault || error instanceof ProgramFailure) return error.message;
  return `it failed: ${error instanceof Error ? error.message : String(error)}`;
};
