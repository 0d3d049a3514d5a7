import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { readTextOrEmpty } from '../../platform/files/regular-file.js';

/** Detects from a folder's files which formatters are used in it. */

/**
 * `governs`: the repository formats such files with it. `perhaps`: it is present, but may not be used for all files.
 */
export type Claim = 'governs' | 'perhaps';

export type FormatterFolder = {
  readonly path: string;
  readonly names: ReadonlySet<string>;
  /** The text of a file in it; empty if it is missing or unreadable. */
  read(name: string): Promise<string>;
};

const SIGN_BYTES_MAX = 1024 * 1024;

/** Opens a folder. An unreadable one counts as empty. */
export const openFolder = async (folder: string): Promise<FormatterFolder> => {
  const names = new Set(await readdir(folder).catch(() => []));
  const texts = new Map<string, Promise<string>>();
  const load = (name: string): Promise<string> => readTextOrEmpty(path.join(folder, name), SIGN_BYTES_MAX);
  return {
    path: folder,
    names,
    read: (name) => {
      if (!names.has(name)) return Promise.resolve('');
      const text = texts.get(name) ?? load(name);
      texts.set(name, text);
      return text;
    },
  };
};

/** A sign that a formatter is used in a folder. */
export type Sign = {
  /** Names of the files that show it. */
  readonly files: readonly string[];
  claim(folder: FormatterFolder): Claim | null | Promise<Claim | null>;
};

/** Sign: one of these files exists. */
export const file = (...names: readonly string[]): Sign => ({
  files: names,
  claim: (folder) => (names.some((name) => folder.names.has(name)) ? 'governs' : null),
});

/** Sign: a file with this name whose text matches. */
export const text = (name: string, pattern: RegExp, claim: Claim = 'governs'): Sign => ({
  files: [name],
  claim: async (folder) => (folder.names.has(name) && pattern.test(await folder.read(name)) ? claim : null),
});

type Package = {
  readonly scripts?: unknown;
  readonly dependencies?: unknown;
  readonly devDependencies?: unknown;
};

const parsePackage = (written: string): Package => {
  try {
    const parsed: unknown = JSON.parse(written);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {}; // the package manager reports an invalid manifest
  }
};

const hasKey = (value: unknown, key: string): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key);

const MANIFEST = 'package.json';

/** Sign: a key in package.json with the formatter's settings. */
export const packageKey = (key: string): Sign => ({
  files: [MANIFEST],
  claim: async (folder) => (hasKey(parsePackage(await folder.read(MANIFEST)), key) ? 'governs' : null),
});

/** Sign: a dependency in package.json. It governs if a script calls the program. */
export const dependency = (name: string, program: string): Sign => ({
  files: [MANIFEST],
  claim: async (folder) => {
    const { dependencies, devDependencies, scripts } = parsePackage(await folder.read(MANIFEST));
    if (!hasKey(dependencies, name) && !hasKey(devDependencies, name)) return null;
    const called = new RegExp(`(^|[^\\w-])${program}([^\\w-]|$)`, 'm');
    const lines = typeof scripts === 'object' && scripts !== null ? Object.values(scripts) : [];
    return lines.some((line) => called.test(String(line))) ? 'governs' : 'perhaps';
  },
});

/** Sign: a hook of the pre-commit framework. */
export const preCommitHook = (id: string): Sign =>
  text('.pre-commit-config.yaml', new RegExp(`^[\\s-]*id:\\s*['"]?${id}['"]?\\s*(#.*)?$`, 'm'));

/** The strongest claim of the signs; null if there is none. */
export const strongest = async (signs: readonly Sign[], folder: FormatterFolder): Promise<Claim | null> => {
  let found: Claim | null = null;
  for (const sign of signs) {
    const claim = await sign.claim(folder);
    if (claim === 'governs') return claim;
    found ??= claim;
  }
  return found;
};
