import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isOwnOrSystem, otherWriters } from '../../platform/files/file-ownership.js';
import { readRegular } from '../../platform/files/regular-file.js';

/**
 * A small text that several processes change, in a folder of its own.
 *
 * 1. Version 7 is the file `7.json`. The highest version counts; the lower ones are removed.
 * 2. A version appears at once and complete, by a hard link, and only if nobody else has written it.
 * 3. A writer that was overtaken reads the newest version and tries again. So no change of another process is lost, and
 *    a killed process leaves no lock behind.
 */

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
export const BYTES_MAX = 16 * 1024 * 1024;
/** Each retry means that another process has written meanwhile. */
const TRIES_MAX = 1_000;
/** File systems without hard links. */
const NO_LINKS: readonly unknown[] = ['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'];

export type Version = {
  /** 0: nothing was written yet. */
  readonly number: number;
  readonly path: string;
  /** Null if there is no text: nothing was written yet, or it was set aside. */
  readonly text: string | null;
};

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

const pathOf = (folder: string, number: number): string => join(folder, `${number}.json`);

/** The number of a version, or of the version that a temporary or damaged file belongs to. */
const numberOf = (name: string): number => Number(/^(\d{1,15})\./.exec(name)?.[1] ?? 0);

const highest = (names: readonly string[]): number =>
  Math.max(0, ...names.filter((name) => /^\d{1,15}\.(json|damaged)$/.test(name)).map(numberOf));

const namesIn = (folder: string): Promise<readonly string[]> =>
  readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });

/** The newest version. Throws if it can't be read, or if other users could have written it. */
export const readNewest = async (folder: string): Promise<Version> => {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const names = await namesIn(folder);
    const number = highest(names);
    const path = pathOf(folder, number);
    if (!names.includes(`${number}.json`)) return { number, path, text: null };
    const loaded = await readRegular(path, BYTES_MAX);
    if (loaded.kind === 'absent') continue; // a newer version has replaced it
    if (loaded.kind === 'folder') throw new Error(`${path} is a folder`);
    if (loaded.kind === 'unusable') throw new Error(`${path}: ${loaded.why}`);
    if (!isOwnOrSystem(loaded.status) || otherWriters(loaded.status) !== 'none')
      throw new Error(`${path} belongs to another user, or others may write to it`);
    return { number, path, text: loaded.bytes.toString('utf8') };
  }
  throw new Error(`${folder} is changed by other processes again and again`);
};

const writeWhole = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'wx', FILE_MODE);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
};

/** Writes a version (rule 2); false if another process has written it, or a newer one. */
const create = async (folder: string, number: number, text: string): Promise<boolean> => {
  const path = pathOf(folder, number);
  const draft = join(folder, `${number}.${randomUUID()}.tmp`);
  try {
    await writeWhole(draft, text);
    await link(draft, path).catch(async (error: unknown) => {
      if (!NO_LINKS.includes(codeOf(error))) throw error;
      await writeFile(path, text, { flag: 'wx', mode: FILE_MODE });
    });
  } catch (error) {
    // ENOENT: a writer of a newer version has removed our draft.
    if (codeOf(error) === 'EEXIST' || codeOf(error) === 'ENOENT') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return highest(await namesIn(folder)) === number;
};

/** Removes lower versions and drafts that killed processes left. What is damaged stays. */
const removeLower = async (folder: string, number: number): Promise<void> => {
  const isOld = (name: string): boolean =>
    (name.endsWith('.json') && numberOf(name) < number) ||
    (name.endsWith('.tmp') && numberOf(name) <= number);
  for (const name of (await namesIn(folder)).filter(isOld)) await rm(join(folder, name), { force: true });
};

/** Keeps a version aside that nobody can read. Its number stays taken, so that no lower version counts again. */
export const setAside = (version: Version): Promise<void> =>
  rename(version.path, version.path.replace(/json$/, 'damaged')).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error; // another process was faster
  });

/**
 * Writes the next version. `change` gets the newest version, perhaps more than once, and gives the new text; null leaves
 * it as it is. Throws if nothing could be written; the old version then still counts.
 */
export const writeNext = async (
  folder: string,
  change: (newest: Version) => Promise<string | null>,
): Promise<void> => {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const newest = await readNewest(folder);
    const text = await change(newest);
    if (text === null) return;
    if (!(await create(folder, newest.number + 1, text))) continue;
    await removeLower(folder, newest.number + 1);
    return;
  }
  throw new Error(`${folder} is changed by other processes again and again`);
};
