import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { InputFile } from '../../needs-recursive.js';
import type { InputFacts } from '../../recursive/settings.js';

/** Inputs: found, measured, and found unchanged again. Their text never goes through here but to be counted. */

/** All inputs of a run together. */
export const INPUT_BYTES_MAX = 100 * 1024 * 1024;

/** What is wrong with an input, for the user: `kind` tells it, `path` names it. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly kind: 'notFound' | 'folder' | 'notText' | 'tooLarge' | 'changed' | 'unreadable';
  readonly path: string;

  constructor(kind: InputError['kind'], file: string, message: string) {
    super(message);
    this.kind = kind;
    this.path = file;
  }
}

export type Input = { readonly file: InputFile; readonly facts: InputFacts };

/** What a file's name says of its text, in the model's words. */
const types: Readonly<Record<string, string>> = {
  '.json': 'JSON',
  '.jsonl': 'JSON lines',
  '.ndjson': 'JSON lines',
  '.csv': 'CSV',
  '.tsv': 'tab-separated values',
  '.md': 'Markdown',
  '.html': 'HTML',
  '.xml': 'XML',
  '.yaml': 'YAML',
  '.yml': 'YAML',
};

const typeOf = (file: string): string => types[path.extname(file).toLowerCase()] ?? 'text';

const sizeText = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MB`;

const tooLarge = (file: string, bytes: number): InputError =>
  new InputError(
    'tooLarge',
    file,
    `The inputs are too large: with ${file} they have ${sizeText(bytes)}, and at most ${sizeText(INPUT_BYTES_MAX)} fit. Ask about a part of them.`,
  );

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

const asInputError = (file: string, error: unknown): Error => {
  if (error instanceof InputError) return error;
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') {
    return new InputError('notFound', file, `There is no file ${file}.`);
  }
  const why = error instanceof Error ? error.message : String(error);
  return new InputError('unreadable', file, `The file ${file} can't be read: ${why}.`);
};

/** The real path and size of a regular file; anything else is refused, since it could not be read again. */
const find = async (file: string): Promise<{ readonly real: string; readonly bytes: number }> => {
  const real = await realpath(file);
  const facts = await stat(real);
  if (facts.isFile()) return { real, bytes: facts.size };
  if (facts.isDirectory()) {
    throw new InputError(
      'folder',
      file,
      `${file} is a folder: name the files in it, for example ${path.join(file, '*')}.`,
    );
  }
  throw new InputError('unreadable', file, `${file} is no regular file: give its text on stdin, as -.`);
};

const notText = (file: string): InputError =>
  new InputError('notText', file, `${file} is not text in UTF-8: convert it first.`);

/** Sum, size and characters of a file in one pass. */
const measure = async (
  file: string,
  real: string,
): Promise<Omit<InputFile, 'path'> & { readonly characters: number }> => {
  const sum = createHash('sha256');
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let [bytes, characters] = [0, 0];
  const count = (piece?: Buffer): void => {
    try {
      characters += decoder.decode(piece, { stream: piece !== undefined }).length;
    } catch {
      throw notText(file); // nothing is lost: what the decoder says is just that
    }
  };
  // no encoding is set, so these are bytes
  const pieces = createReadStream(real) as AsyncIterable<Buffer>;
  for await (const piece of pieces) {
    if (piece.includes(0)) throw notText(file);
    sum.update(piece);
    bytes += piece.length;
    if (bytes > INPUT_BYTES_MAX) throw tooLarge(file, bytes);
    count(piece);
  }
  count();
  return { bytes, sha256: sum.digest('hex'), characters };
};

const measureOne = async (file: string, name: string, before: number): Promise<Input> => {
  try {
    const { real, bytes: found } = await find(file);
    if (before + found > INPUT_BYTES_MAX) throw tooLarge(file, before + found);
    const { characters, ...measured } = await measure(file, real);
    return { file: { path: real, ...measured }, facts: { name, type: typeOf(name), characters } };
  } catch (error) {
    throw asInputError(file, error);
  }
};

/** An input and what the model is told it is called; its file's name, if nothing else. */
export type InputSource = { readonly path: string; readonly name?: string };

/** Finds the files without reading them: rejects with InputError where one is missing, or no file of text. */
export const findInputs = async (sources: readonly InputSource[]): Promise<void> => {
  for (const { path: file } of sources) {
    await find(file).catch((error: unknown) => {
      throw asInputError(file, error);
    });
  }
};

/** Measures inputs in their order. Rejects with InputError. */
export const measureInputs = async (sources: readonly InputSource[]): Promise<readonly Input[]> => {
  const inputs: Input[] = [];
  let bytes = 0;
  for (const source of sources) {
    const input = await measureOne(source.path, source.name ?? path.basename(source.path), bytes);
    inputs.push(input);
    bytes += input.file.bytes;
  }
  return inputs;
};

/** Rejects with InputError unless every file holds what it held when the run began. */
export const verifyInputs = async (files: readonly InputFile[]): Promise<void> => {
  for (const { path: file, bytes, sha256 } of files) {
    const now = await measureOne(file, file, 0);
    if (now.file.bytes === bytes && now.file.sha256 === sha256) continue;
    throw new InputError(
      'changed',
      file,
      `The input ${file} has changed since the run began, so it can't go on: put the file back as it was, or ask anew.`,
    );
  }
};
