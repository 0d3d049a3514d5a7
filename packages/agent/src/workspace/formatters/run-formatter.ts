import path from 'node:path';
import type { CommandSandbox, PreparedCommand } from '../../command/sandbox/command-sandbox-types.js';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { SYSTEM_SHELL } from '../../platform/programs/start-program.js';
import { type ProgramEnd, ProgramFailure, runProgram } from '../run-program.js';
import type { ChosenFormatter } from './formatter-choice.js';
import type { FormatTarget } from './formatter-table.js';

/** Runs a formatter over a text. */

/**
 * `leaves`: the formatter ignores the file. `refuses`: it can't format this text. `broken`: it can't be started, hangs,
 * or prints too much, whatever the text.
 */
export type FormatterResult =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'leaves' }
  | { readonly kind: 'refuses' | 'broken'; readonly why: string };

export type FormatterRuntime = {
  /** Variables of formatter processes, beside those of all commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly sandbox: CommandSandbox;
  /** `read-only`, or `off` if the user has turned the sandbox off. */
  readonly level: 'read-only' | 'off';
  readonly runMs: number;
  readonly signal: AbortSignal;
};

const ROOM_BYTES = 1024 * 1024;
const WHY_LINES = 5;
const WHY_CHARACTERS = 500;

const shortened = (errors: string): string => {
  const lines = errors.split('\n').filter((line) => line.trim() !== '');
  const text = lines.slice(0, WHY_LINES).join('\n').slice(0, WHY_CHARACTERS);
  return text === '' ? 'it did not say why' : text;
};

/** Error of the shell that could not start the formatter. */
const NOT_STARTED = /^sh: \d+: (exec|cd): /;

/** Changes the folder first, since the sandbox starts programs in the workspace. */
const inFolder = (folder: string, program: ProgramPath, words: readonly string[]) => ({
  program: SYSTEM_SHELL,
  words: ['-c', 'cd "$1" && shift && exec "$@"', 'sh', folder, program, ...words],
});

/** Prepares a run. Rejects with a ProgramFailure if it can't be fenced; nothing was started then. */
const prepareRun = async (chosen: ChosenFormatter, world: FormatterRuntime): Promise<PreparedCommand> => {
  const { formatter, target, program } = chosen;
  const folder = formatter.runs === 'beside the file' ? path.dirname(target.file) : target.folder;
  const { sandbox, level, environment } = world;
  try {
    const command = inFolder(folder, program, await formatter.words(target));
    return await sandbox.prepare({ level, environment, canBeGuarded: true, ...command });
  } catch (error) {
    throw new ProgramFailure('missing', `${formatter.name} can't be run in the sandbox: ${String(error)}`);
  }
};

const runFormatter = async (
  chosen: ChosenFormatter,
  text: string,
  world: FormatterRuntime,
): Promise<ProgramEnd> => {
  const prepared = await prepareRun(chosen, world);
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  const running = runProgram({
    // bubblewrap, the shell or the formatter, all found by find-program.ts
    program: prepared.program as ProgramPath,
    words,
    environment,
    folder,
    descriptors,
    isGuarded,
    title: chosen.formatter.name,
    input: text,
    bytesMax: ROOM_BYTES + 4 * Buffer.byteLength(text),
    atMax: 'fail',
    deadlineMs: world.runMs,
    signal: world.signal,
  });
  prepared.started();
  try {
    return await running;
  } finally {
    await prepared.finish();
  }
};

/** Formats a text. Rejects only if `world.signal` is aborted. */
export const formatText = async (
  chosen: ChosenFormatter,
  text: string,
  world: FormatterRuntime,
): Promise<FormatterResult> => {
  try {
    const { code, output, errors } = await runFormatter(chosen, text, world);
    if (NOT_STARTED.test(errors)) return { kind: 'broken', why: `${chosen.program} can't be started` };
    if (code !== 0) return { kind: 'refuses', why: shortened(errors) };
    const printed = output.toString('utf8');
    return printed.trim() === '' && text.trim() !== '' ? { kind: 'leaves' } : { kind: 'text', text: printed };
  } catch (error) {
    if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
    return { kind: error.kind === 'refused' ? 'refuses' : 'broken', why: error.message };
  }
};

/** The name of a file for people, relative to the workspace. */
export const shownTarget = ({ file }: FormatTarget, workspace: string): string =>
  path.relative(workspace, file);
