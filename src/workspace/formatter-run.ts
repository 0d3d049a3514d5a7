import path from 'node:path';
import type { Chosen } from './formatter-choice.js';
import type { Target } from './formatter-table.js';
import { ProgramFailure, runProgram } from './program.js';

/** One run of a formatter over a text. */

/**
 * `leaves`: it does not want the file. `refuses`: it says that it can't format this text. `broken`: it can't be
 * started, hangs, or prints without end, whatever the text.
 */
export type Formatted =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'leaves' }
  | { readonly kind: 'refuses' | 'broken'; readonly why: string };

export type FormatterWorld = {
  /** Of the formatters' processes. */
  readonly environment: Readonly<Record<string, string>>;
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

/** The text as the formatter has it. Rejects only when `world.signal` is aborted. */
export const formatText = async (
  { formatter, target, program }: Chosen,
  text: string,
  { environment, runMs, signal }: FormatterWorld,
): Promise<Formatted> => {
  try {
    const { code, output, errors } = await runProgram({
      ...{ program, words: await formatter.words(target), title: formatter.name },
      folder: formatter.runs === 'beside the file' ? path.dirname(target.file) : target.folder,
      ...{ environment, input: text, bytesMax: ROOM_BYTES + 4 * Buffer.byteLength(text), atMax: 'fail' },
      ...{ deadlineMs: runMs, signal },
    });
    if (code !== 0) return { kind: 'refuses', why: shortened(errors) };
    const printed = output.toString('utf8');
    return printed.trim() === '' && text.trim() !== '' ? { kind: 'leaves' } : { kind: 'text', text: printed };
  } catch (error) {
    if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
    return { kind: error.kind === 'refused' ? 'refuses' : 'broken', why: error.message };
  }
};

/** The name that a file has for people: relative to the workspace. */
export const shownTarget = ({ file }: Target, workspace: string): string => path.relative(workspace, file);
