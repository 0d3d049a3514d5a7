/**
 * What the user allowed projects to run on this machine.
 *
 * 1. An answer is bound to the project's real path, to kind and name, and to the exact content.
 *    Anything else asks again: changed content, a moved or copied folder.
 * 2. It is stored in the user's state folder, never in the project.
 * 3. What can't be read counts as not allowed.
 * 4. The caller runs the content that it passed to `judge`. It never reads a file again in between.
 *
 * From top to bottom: the types; the stored entries and `openTrust`; and a small text in numbered
 * versions, which several processes change.
 */

import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, readRegular } from '../platform/files.js';
import { isOwnOrSystem, otherWriters } from '../platform/trusted-folders.js';
import { parseBounded } from '../platform/untrusted-input.js';
import { COMMAND_LEVELS, type CommandLevel } from '../policy/decide.js';

export const TRUST_KINDS = ['mcp-server', 'hook', 'skill-script', 'formatter'] as const;
export type TrustKind = (typeof TRUST_KINDS)[number];

/** Something that a project wants to run. */
export type Executable = {
  readonly kind: TrustKind;
  /** Unique among its kind in the project. */
  readonly name: string;
  /**
   * The exact text of what would run, and of what it is granted. People read it before they allow
   * it.
   */
  readonly content: string;
  /** Where it can run: the user chooses one of these. Absent for what knows no sandbox. */
  readonly levels?: readonly CommandLevel[];
  /** It runs somewhere else, and is only used from here. */
  readonly isRemote?: true;
};

/**
 * What the stored answers say of a content. `refused`: the user refused exactly this content.
 * `before`: the content that the user allowed. `level`: the sandbox level that the user granted, if
 * there was a choice.
 */
export type TrustJudgement =
  | { readonly kind: 'trusted'; readonly level?: CommandLevel }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'changed'; readonly before: string };

export type TrustEntry = Omit<Executable, 'levels' | 'isRemote'> & {
  /** Real path. */
  readonly project: string;
  readonly answer: 'allowed' | 'refused';
  /** Where it may run. Absent if the user had no choice. */
  readonly level?: CommandLevel;
  /** Milliseconds since 1970. */
  readonly at: number;
};

export type TrustStore = {
  judge(project: string, executable: Executable): Promise<TrustJudgement>;
  /** Rejects if the answer could not be stored. */
  allow(project: string, executable: Executable, level?: CommandLevel | null): Promise<void>;
  /** Stores that the user does not want it. It is not asked for again until its content changes. */
  refuse(project: string, executable: Executable): Promise<void>;
  /**
   * Forgets an answer; false if there was none. A folder that no longer exists can be named too.
   */
  revoke(project: string, executable: Pick<Executable, 'kind' | 'name'>): Promise<boolean>;
  list(): Promise<readonly TrustEntry[]>;
};

// ---- The stored entries ----

/** Longer contents can't be allowed: a user would not read them. */
export const TRUSTED_CHARACTERS_MAX = 100_000;
const FORMAT = 1;

/** An entry as it is stored: perhaps of a kind or level that only a newer version knows. */
type StoredEntry = Omit<TrustEntry, 'kind' | 'level'> & {
  readonly kind: string;
  readonly level?: string;
};

const isText = (value: unknown): value is string => typeof value === 'string';

const isEntry = (value: unknown): value is StoredEntry => {
  if (typeof value !== 'object' || value === null) return false;
  const field = (key: keyof TrustEntry): unknown => Reflect.get(value, key);
  return (
    (['project', 'kind', 'name', 'content'] as const).every((key) => isText(field(key))) &&
    (field('level') === undefined || isText(field('level'))) &&
    (field('answer') === 'allowed' || field('answer') === 'refused') &&
    typeof field('at') === 'number'
  );
};

/** An entry of a newer version counts for nothing, and stays. */
const isKnown = (entry: StoredEntry): entry is TrustEntry =>
  TRUST_KINDS.some((kind) => kind === entry.kind) &&
  (entry.level === undefined || COMMAND_LEVELS.some((level) => level === entry.level));

/** The entries of a version; null if it is damaged. Throws if a newer Pawl has written it. */
const storedEntries = ({ text, path }: Version): readonly StoredEntry[] | null => {
  if (text === null) return [];
  const parsed = parseBounded(text, { depthMax: 8, charactersMax: BYTES_MAX });
  if (parsed.kind !== 'ok' || typeof parsed.value !== 'object' || parsed.value === null)
    return null;
  const entries: unknown = Reflect.get(parsed.value, 'entries');
  const format: unknown = Reflect.get(parsed.value, 'format');
  if (typeof format === 'number' && format > FORMAT)
    throw new Error(`a newer version of Pawl has written ${path}: use that one`);
  return format === FORMAT && Array.isArray(entries) && entries.every(isEntry) ? entries : null;
};

type Key = Pick<StoredEntry, 'project' | 'kind' | 'name'>;

const hasKey =
  (key: Key) =>
  (entry: StoredEntry): boolean =>
    entry.project === key.project && entry.kind === key.kind && entry.name === key.name;

const judgeBy = (entry: TrustEntry | undefined, content: string): TrustJudgement => {
  if (entry === undefined) return { kind: 'unknown' };
  if (entry.content === content)
    return entry.answer === 'allowed'
      ? { kind: 'trusted', ...(entry.level === undefined ? {} : { level: entry.level }) }
      : { kind: 'refused' };
  return entry.answer === 'allowed'
    ? { kind: 'changed', before: entry.content }
    : { kind: 'unknown' };
};

const damagedText = ({ path }: Version): string =>
  `${path} is damaged, so nothing counts as allowed to run. Your next answer keeps it aside ` +
  'and begins a new list.';

const storedText = (entries: readonly StoredEntry[]): string => {
  const text = `${JSON.stringify({ format: FORMAT, entries }, null, 1)}\n`;
  if (Buffer.byteLength(text) <= BYTES_MAX) return text;
  throw new Error('The list of what you allowed is full. pawl trust revoke makes room.');
};

/** Opens the answers of the user. `warn` gets each fault of the stored list once. */
export const openTrust = (stateFolder: string, warn: (text: string) => void): TrustStore => {
  const folder = join(stateFolder, 'trust');
  const warned = new Set<string>();
  const tell = (text: string): void => {
    if (!warned.has(text)) warn(text);
    warned.add(text);
  };
  const read = async (): Promise<readonly TrustEntry[]> => {
    try {
      const newest = await readNewest(folder);
      const entries = storedEntries(newest);
      if (entries === null) tell(damagedText(newest));
      return entries?.filter(isKnown) ?? [];
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      tell(`Nothing counts as allowed to run, because the list can't be read: ${why}.`);
      return [];
    }
  };
  const write = (
    change: (entries: readonly StoredEntry[]) => readonly StoredEntry[] | null,
  ): Promise<void> =>
    writeNext(folder, async (newest) => {
      const entries = storedEntries(newest);
      const next = change(entries ?? []);
      if (next !== null && entries === null) await setAside(newest);
      return next === null ? null : storedText(next);
    });
  const storeAnswer = async (
    place: string,
    { kind, name, content }: Executable,
    decision: Pick<TrustEntry, 'answer' | 'level'>,
  ): Promise<void> => {
    if (content.length > TRUSTED_CHARACTERS_MAX)
      throw new Error(
        `${name} has ${content.length} characters, at most ${TRUSTED_CHARACTERS_MAX} can be ` +
          'allowed.',
      );
    const entry = {
      project: await realpath(place),
      kind,
      name,
      content,
      ...decision,
      at: Date.now(),
    };
    await write((entries) => [...entries.filter((one) => !hasKey(entry)(one)), entry]);
  };
  return {
    async judge(place, { kind, name, content }) {
      const project = await realpath(place).catch(() => null);
      if (project === null) return { kind: 'unknown' };
      return judgeBy((await read()).find(hasKey({ project, kind, name })), content);
    },
    allow: (place, executable, level = null) =>
      storeAnswer(place, executable, { answer: 'allowed', ...(level === null ? {} : { level }) }),
    refuse: (place, executable) => storeAnswer(place, executable, { answer: 'refused' }),
    async revoke(place, { kind, name }) {
      const key = { project: await realpath(place).catch(() => place), kind, name };
      let isFound = false;
      await write((entries) => {
        isFound = entries.some(hasKey(key));
        return isFound ? entries.filter((entry) => !hasKey(key)(entry)) : null;
      });
      return isFound;
    },
    list: read,
  };
};

// ---- A small text that several processes change, in a separate folder ----

/*
 * 1. Version 7 is the file `7.json`. The highest version counts; the lower ones are removed.
 * 2. A version appears at once and complete, by a hard link, and only if no other process has
 *    written it. Where the file system has no hard links, it is written in place.
 * 3. A writer that was overtaken reads the newest version and tries again. So no change of another
 *    process is lost, and a killed process leaves no lock behind.
 */

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const BYTES_MAX = 16 * 1024 * 1024;
/** Each retry means that another process has written meanwhile. */
const TRIES_MAX = 1_000;
/** File systems without hard links. */
const NO_LINKS: readonly unknown[] = ['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'];

type Version = {
  /** 0: nothing was written yet. */
  readonly number: number;
  readonly path: string;
  /** Null if there is no text: nothing was written yet, or it was set aside. */
  readonly text: string | null;
};

const versionPath = (folder: string, number: number): string => join(folder, `${number}.json`);

/** The number of a version, or of the version that a temporary or damaged file belongs to. */
const versionNumber = (name: string): number => Number(/^(\d{1,15})\./.exec(name)?.[1] ?? 0);

/** The highest number that is taken; 0 for none. */
const highest = (names: readonly string[]): number =>
  Math.max(
    0,
    ...names.filter((name) => /^\d{1,15}\.(json|damaged)$/.test(name)).map(versionNumber),
  );

const entryNames = (folder: string): Promise<readonly string[]> =>
  readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });

/** The newest version. Throws if it can't be read, or if other users could have written it. */
export const readNewest = async (folder: string): Promise<Version> => {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const names = await entryNames(folder);
    const number = highest(names);
    const path = versionPath(folder, number);
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

/**
 * Writes a version; false if another process has written it, or a newer one.
 */
const create = async (folder: string, number: number, text: string): Promise<boolean> => {
  const path = versionPath(folder, number);
  const draft = join(folder, `${number}.${randomUUID()}.tmp`);
  try {
    await writeWhole(draft, text);
    await link(draft, path).catch(async (error: unknown) => {
      if (!NO_LINKS.includes(errorCode(error))) throw error;
      await writeFile(path, text, { flag: 'wx', mode: FILE_MODE });
    });
  } catch (error) {
    // ENOENT: a writer of a newer version has removed our draft.
    if (errorCode(error) === 'EEXIST' || errorCode(error) === 'ENOENT') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  // The number may have been free because the writer of a newer version had removed its file, or
  // without hard links a reader has taken the half-written version for a damaged one.
  const names = await entryNames(folder);
  return highest(names) === number && names.includes(`${number}.json`);
};

/** Removes lower versions, and drafts of killed processes. What is damaged stays. */
const removeLower = async (folder: string, number: number): Promise<void> => {
  const isOld = (name: string): boolean =>
    (name.endsWith('.json') && versionNumber(name) < number) ||
    (name.endsWith('.tmp') && versionNumber(name) <= number);
  for (const name of (await entryNames(folder)).filter(isOld))
    await rm(join(folder, name), { force: true });
};

/**
 * Moves an unreadable version aside. Its number stays taken, so that no lower version counts again.
 */
const setAside = (version: Version): Promise<void> =>
  rename(version.path, version.path.replace(/json$/, 'damaged')).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error; // another process was faster
  });

/**
 * Writes the next version. `change` gets the newest version, perhaps more than once, and gives the
 * new text; null leaves it as it is. Throws if nothing could be written; the old version then still
 * counts.
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
