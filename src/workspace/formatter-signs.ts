import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** What a folder says about the formatters that are used in it. */

/** `governs`: the repository formats such files with it. `perhaps`: it is there, but need not be used for all files. */
export type Claim = 'governs' | 'perhaps';

export type Folder = {
  readonly path: string;
  readonly names: ReadonlySet<string>;
  /** The text of a file in it; empty of one that is not there or can't be read. */
  read(name: string): Promise<string>;
};

const SIGN_BYTES_MAX = 1024 * 1024;

/** A folder that can't be read says nothing. */
export const openFolder = async (folder: string): Promise<Folder> => {
  const names = new Set(await readdir(folder).catch(() => []));
  const texts = new Map<string, Promise<string>>();
  const load = async (name: string): Promise<string> => {
    const text = await readFile(path.join(folder, name), 'utf8').catch(() => '');
    return text.length > SIGN_BYTES_MAX ? '' : text;
  };
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

/** A reason to think that a formatter is used in a folder, or null. */
export type Sign = (folder: Folder) => Claim | null | Promise<Claim | null>;

/** Any of these files. */
export const file =
  (...names: readonly string[]): Sign =>
  (folder) =>
    names.some((name) => folder.names.has(name)) ? 'governs' : null;

/** A file of this name whose text fits. */
export const text =
  (name: string, pattern: RegExp, claim: Claim = 'governs'): Sign =>
  async (folder) =>
    folder.names.has(name) && pattern.test(await folder.read(name)) ? claim : null;

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
    return {}; // whoever installs the package hears of it
  }
};

const hasKey = (value: unknown, key: string): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key);

/** A key of package.json, where the formatter has its settings. */
export const packageKey =
  (key: string): Sign =>
  async (folder) =>
    hasKey(parsePackage(await folder.read('package.json')), key) ? 'governs' : null;

/** A dependency in package.json: used for certain where a script calls it. */
export const dependency =
  (name: string, program: string): Sign =>
  async (folder) => {
    const { dependencies, devDependencies, scripts } = parsePackage(await folder.read('package.json'));
    if (!hasKey(dependencies, name) && !hasKey(devDependencies, name)) return null;
    const called = new RegExp(`(^|[^\\w-])${program}([^\\w-]|$)`, 'm');
    const lines = typeof scripts === 'object' && scripts !== null ? Object.values(scripts) : [];
    return lines.some((line) => called.test(String(line))) ? 'governs' : 'perhaps';
  };

/** A hook of the framework pre-commit. */
export const preCommitHook = (id: string): Sign =>
  text('.pre-commit-config.yaml', new RegExp(`^[\\s-]*id:\\s*['"]?${id}['"]?\\s*(#.*)?$`, 'm'));

/** What the strongest of the signs says. */
export const strongest = async (signs: readonly Sign[], folder: Folder): Promise<Claim | null> => {
  let found: Claim | null = null;
  for (const sign of signs) {
    const claim = await sign(folder);
    if (claim === 'governs') return claim;
    found ??= claim;
  }
  return found;
};
