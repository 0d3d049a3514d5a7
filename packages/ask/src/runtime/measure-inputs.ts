/** Finds and measures inputs, and verifies on resume that they are unchanged. */

import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { openRegular } from '@pawl/agent/platform/files';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { AskSettings, InputFile } from '../ports.js';
import type { InputFacts } from '../run/settings.js';

/** Maximum size of all inputs of a run together. */
export const INPUT_BYTES_MAX = 100 * 1024 * 1024;

/** An input that can't be used. The message is for the user. */
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

type MeasuredInput = { readonly file: InputFile; readonly facts: InputFacts };

/** File types by extension, as the model reads them. */
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

const describeType = (file: string): string => types[path.extname(file).toLowerCase()] ?? 'text';

const sizeText = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MB`;

const tooLarge = (file: string, bytes: number): InputError =>
  new InputError(
    'tooLarge',
    file,
    `The inputs are too large: with ${file} they have ${sizeText(bytes)}, and at most ` +
      `${sizeText(INPUT_BYTES_MAX)} fit. Ask about a part of them.`,
  );

const asInputError = (file: string, error: unknown): Error => {
  if (error instanceof InputError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new InputError('notFound', file, `There is no file ${file}.`);
  const why = error instanceof Error ? error.message : String(error);
  return new InputError('unreadable', file, `The file ${file} can't be read: ${why}.`);
};

/**
 * The real path and size of a regular file. Anything else is rejected, since a resume could not
 * read it again.
 */
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
  throw new InputError(
    'unreadable',
    file,
    `${file} is no regular file: give its text on stdin, as -.`,
  );
};

const notText = (file: string): InputError =>
  new InputError('notText', file, `${file} is not text in UTF-8: convert it first.`);

/** Hash, size and number of characters of a file, in one pass. */
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
      throw notText(file); // a fatal decoder throws only for invalid UTF-8
    }
  };
  const { file: opened } = await openRegular(real);
  // No encoding is set, so these are bytes. The stream closes the file.
  const pieces = opened.createReadStream() as AsyncIterable<Buffer>;
  for await (const piece of pieces) {
    sum.update(piece);
    bytes += piece.length;
    if (bytes > INPUT_BYTES_MAX) throw tooLarge(file, bytes);
    count(piece);
  }
  count();
  return { bytes, sha256: sum.digest('hex'), characters };
};

/** `before`: bytes of the inputs before this one. */
const measureOne = async (file: string, before: number) => {
  try {
    const { real, bytes } = await find(file);
    if (before + bytes > INPUT_BYTES_MAX) throw tooLarge(file, before + bytes);
    return { path: real, ...(await measure(file, real)) };
  } catch (error) {
    throw asInputError(file, error);
  }
};

/** An input: a file, or a text or JSON value from memory, which the journal stores. */
export type InputSource =
  /** Default name: the path, relative if it is inside the run's workspace, else absolute. */
  | { readonly path: string; readonly name?: string }
  | { readonly text: string; readonly name: string }
  /** Anything that `JSON.stringify` takes. */
  | { readonly json: unknown; readonly name: string };

/** The folder that names of files are shown relative to, and the store for texts from memory. */
type InputPlace = { readonly workspace: string; readonly blobs: Blobs };

/**
 * Checks the files without reading them. Rejects with InputError if one is missing or not a regular
 * file.
 */
export const findInputs = async (files: readonly string[]): Promise<void> => {
  for (const file of files) {
    await find(file).catch((error: unknown) => {
      throw asInputError(file, error);
    });
  }
};

const nameInput = async (file: string, workspace: string): Promise<string> => {
  const absolute = path.resolve(file);
  // the workspace may be named through a symlink
  for (const folder of [path.resolve(workspace), await realpath(workspace)]) {
    const relative = path.relative(folder, absolute);
    if (relative !== '' && relative !== '..' && !relative.startsWith(`..${path.sep}`))
      return relative;
  }
  return absolute;
};

const storeText = async (original: string, { blobs }: InputPlace, name: string, before: number) => {
  // Lone surrogates have no UTF-8 encoding.
  const text = original.replace(/\p{Surrogate}/gu, '\ufffd');
  const bytes = Buffer.byteLength(text);
  if (before + bytes > INPUT_BYTES_MAX) throw tooLarge(name, before + bytes);
  return { path: null, bytes, sha256: await blobs.put(text), characters: text.length };
};

const toJsonText = (json: unknown, name: string): string => {
  const text: string | undefined = JSON.stringify(json, null, 2);
  if (text !== undefined) return text;
  throw new InputError(
    'notText',
    name,
    `${name} is nothing that JSON can say: give a text or a JSON value.`,
  );
};

/** Measures one input. `before`: bytes of the inputs before it. */
const readSource = async (source: InputSource, place: InputPlace, before: number) => {
  if ('path' in source) {
    const name = source.name ?? (await nameInput(source.path, place.workspace));
    return { name, type: describeType(name), ...(await measureOne(source.path, before)) };
  }
  const { name } = source;
  return 'text' in source
    ? { name, type: describeType(name), ...(await storeText(source.text, place, name, before)) }
    : {
        name,
        type: 'JSON',
        ...(await storeText(toJsonText(source.json, name), place, name, before)),
      };
};

/** Makes a name unique: the second `a.txt` becomes `a.txt (2)`. */
const freshName = (name: string, taken: ReadonlySet<string>): string => {
  let fresh = name;
  for (let count = 2; taken.has(fresh); count++) fresh = `${name} (${count})`;
  return fresh;
};

/** Measures inputs in order, and gives each a unique name. Rejects with InputError. */
export const measureInputs = async (
  sources: readonly InputSource[],
  place: InputPlace,
): Promise<readonly MeasuredInput[]> => {
  const inputs: MeasuredInput[] = [];
  const taken = new Set<string>();
  let sum = 0;
  for (const source of sources) {
    const { name: preferred, type, characters, ...file } = await readSource(source, place, sum);
    const name = freshName(preferred, taken);
    taken.add(name);
    sum += file.bytes;
    inputs.push({ file, facts: { name, type, characters } });
  }
  return inputs;
};

const changed = (name: string): InputError =>
  new InputError(
    'changed',
    name,
    `The input ${name} has changed since the run began, so it can't go on: put the file back ` +
      'as it was, or ask anew.',
  );

const notStored = (name: string): InputError =>
  new InputError('changed', name, `The text of the input ${name} is no longer stored: ask anew.`);

/** Rejects with InputError if an input has changed since the run began. */
export const verifyInputs = async (
  { files, inputs }: Pick<AskSettings, 'files' | 'inputs'>,
  blobs: Blobs,
): Promise<void> => {
  for (const [index, { path: file, bytes, sha256 }] of files.entries()) {
    if (file === null) {
      if ((await blobs.get(sha256)) === undefined) throw notStored(inputs[index]?.name ?? sha256);
      continue;
    }
    const now = await measureOne(file, 0).catch((error: unknown) => {
      throw error instanceof InputError && error.kind === 'tooLarge' ? changed(file) : error;
    });
    if (now.bytes !== bytes || now.sha256 !== sha256) throw changed(file);
  }
};
