/**
 * Changes a config.toml that people write. From top to bottom: its text; the file on the disk.
 *
 * 1. One process at a time reads, changes and writes the file: a lock beside the real file says
 *    whose turn it is.
 * 2. The file is replaced whole. It stays as it is if an editor has changed it meanwhile.
 */

import { existsSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { acquireLock, isHeldElsewhere, type Lock, whenFree } from '@pawl/agent/journal/lock';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemFault } from '@pawl/agent/platform/files';
import { isTable, type ParsedTable } from '@pawl/agent/platform/untrusted-input';
import { decodeFile, hashLoaded, loadFile, replaceFile } from '@pawl/agent/tools/files';
import { CONFIG_BYTES_MAX } from './configuration.js';
import type { TomlStatement } from './toml-keys.js';

/** The functions of the TOML parser, which is loaded late. */
export type TomlFormat = {
  parse(text: string): ParsedTable;
  stringify(table: object): string;
};

export type EditedConfig =
  | { readonly kind: 'edited'; readonly text: string }
  /** `why`: for the user, the second half of a sentence about the file. */
  | { readonly kind: 'refused'; readonly why: string };

export const refused = (why: string): EditedConfig => ({ kind: 'refused', why });

export const parseOrNull = (text: string, { parse }: TomlFormat): ParsedTable | null => {
  try {
    return parse(text);
  } catch {
    return null; // the caller says so; `pawl doctor` names the line
  }
};

export const BROKEN_TOML = 'it has an error, which pawl doctor names. Repair it first.';

/**
 * Equal values. Tables of the parser have no prototype, so they equal no other objects for Node.
 */
export const isSame = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((value, index) => isSame(value, other[index]));
  if (!isTable(one) || !isTable(other)) return isDeepStrictEqual(one, other);
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  );
};

/** The whole lines of a statement, with a comment behind it. */
export const lineSpan = (
  text: string,
  { start, end }: TomlStatement,
): readonly [from: number, to: number] => {
  const next = text.indexOf('\n', end);
  return [text.lastIndexOf('\n', start - 1) + 1, next < 0 ? text.length : next + 1];
};

/** The text with a table at its end, after a blank line. `lines`: those of the table. */
export const appendTable = (text: string, lines: readonly string[]): string => {
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n';
  const above = text === '' ? '' : `${text.replace(/(\r?\n)*$/, '')}${lineEnd}${lineEnd}`;
  return `${above}${lines.join(lineEnd)}${lineEnd}`;
};

/** Joins the texts before and behind a cut, without a second blank line. */
export const joinBlank = (before: string, behind: string): string => {
  if (before !== '' && !/(^|\n)\r?\n$/.test(before)) return before + behind;
  return behind === '' ? before.replace(/\r?\n$/, '') : before + behind.replace(/^\r?\n/, '');
};

/** The TOML parser is loaded with the first change. */
const loadFormat = async (): Promise<TomlFormat> => {
  const { parse, stringify } = await import('smol-toml');
  return { parse: (text) => parse(text), stringify: (table) => stringify(table) };
};

/** A change takes milliseconds: whoever holds the lock for longer hangs. */
const LOCK_MS = 10_000;

/** Waits for the turn of this process. Returns the lock, or the reason why there is none. */
const takeTurn = async (file: string): Promise<Lock | string> => {
  const taken = await attempt(() => whenFree(() => acquireLock(`${file}.lock`), LOCK_MS));
  if (taken.kind === 'done') return taken.value;
  const { fault } = taken;
  if (isHeldElsewhere(fault))
    return `another Pawl has been changing it for ${LOCK_MS / 1_000} seconds.`;
  // the advice of its text is about journals
  return `${systemFault(fault.cause ?? fault, file)}.`;
};

/** The file behind symlinks; it may be missing. */
const realFile = async (file: string): Promise<string> =>
  existsSync(file) ? realpath(file) : join(await realpath(dirname(file)), basename(file));

const changeReal = async (
  real: string,
  edit: (text: string, format: TomlFormat) => EditedConfig,
): Promise<EditedConfig> => {
  const loaded = await loadFile(real);
  const hash = hashLoaded(loaded); // null for what is there but can't be read as a file
  if (hash === null)
    return refused(loaded.kind === 'unreadable' ? `${loaded.why}.` : 'it is a folder.');
  const decoded = loaded.kind === 'file' ? decodeFile(loaded.bytes) : null;
  if (decoded !== null && (decoded.kind !== 'text' || decoded.encoding !== 'utf8'))
    return refused('it is not text in UTF-8 without a byte order mark.');
  const text = decoded?.text ?? '';
  const edited = edit(text, await loadFormat());
  if (edited.kind === 'refused' || edited.text === text) return edited;
  const bytes = Buffer.from(edited.text);
  if (bytes.length > CONFIG_BYTES_MAX)
    return refused(`it would have more than ${CONFIG_BYTES_MAX} bytes.`);
  const written = await replaceFile(real, bytes, hash); // only if the file still has this hash
  if (written.kind === 'changedMeanwhile')
    return refused('another program has just changed it. Try again.');
  if (written.kind === 'elsewhere') return refused('its folder has just been moved. Try again.');
  return written.kind === 'failed' ? refused(`${written.why}.`) : edited;
};

/**
 * Changes the file, and makes it if it is missing; a symlink stays one, and its target is changed.
 * Never rejects.
 */
export const changeConfigFile = async (
  file: string,
  edit: (text: string, format: TomlFormat) => EditedConfig,
): Promise<EditedConfig> => {
  const folder = await attempt(() => mkdir(dirname(file), { recursive: true, mode: 0o700 }));
  if (folder.kind === 'fault') return refused(`its folder can't be made: ${folder.fault.message}.`);
  const real = await attempt(() => realFile(file));
  if (real.kind === 'fault') return refused(`${real.fault.message}.`);
  const turn = await takeTurn(real.value);
  if (typeof turn === 'string') return refused(turn);
  try {
    const changed = await attempt(() => changeReal(real.value, edit));
    return changed.kind === 'done' ? changed.value : refused(`${changed.fault.message}.`);
  } finally {
    await turn.release();
  }
};
