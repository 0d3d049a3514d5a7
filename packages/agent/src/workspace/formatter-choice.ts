/** Which formatters a repository uses for a file, and whether one may apply to files that a command changes. */

import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, readTextOrEmpty } from '../platform/files.js';
import { findProgram, findRepositoryProgram, type ProgramPath } from '../platform/find-program.js';
import { repositoryFolders } from '../platform/repository-folders.js';
import { type GitPlace, locateRepository, type Repository, workWith } from './git.js';
import {
  type Fingerprint,
  isSettled,
  joinFingerprints,
  listingFingerprintOf,
} from './repository-location.js';

/**
 * Chooses the formatters that a repository uses for a file.
 *
 * 1. The nearest folder with signs counts, from the file's own up to the workspace. Formatters that are only possible
 *    count if no certain one is found.
 * 2. A formatter comes from the project's own program folders or from the PATH. Nothing is ever downloaded.
 */

type Claimed = { readonly formatter: Formatter; readonly target: FormatTarget; readonly claim: Claim };

export type ChosenFormatter = Claimed & {
  /** Whether no other formatter has signs in the same folder for such files. */
  readonly isAlone: boolean;
  readonly program: ProgramPath;
};

export const isFormattable = (file: string): boolean => formatters.some(({ files }) => files.test(file));

/** Folders with other people's files. */
const FOREIGN = /(^|\/)(node_modules|\.git|\.venv|venv|vendor)\//;

export const isForeign = (file: string, workspace: string): boolean =>
  !isWithin(file, workspace) || FOREIGN.test(path.relative(workspace, file));

const upTo = (top: string, folder: string): readonly string[] => {
  const folders: string[] = [];
  for (let place = folder; isWithin(place, top); place = path.dirname(place)) {
    folders.push(place);
    if (place === top) break;
  }
  return folders;
};

const installedAs = (
  { program, homes }: Formatter,
  file: string,
  workspace: string,
  environment: ProcessEnvironment,
): ProgramPath | null => {
  const top = repositoryFolders(workspace).top ?? workspace;
  const own = upTo(top, path.dirname(file)).flatMap((folder) => homes.map((home) => path.join(folder, home)));
  return findRepositoryProgram(own, program) ?? findProgram(program, { environment, workspace });
};

/** Looks for signs of formatters, reading each folder once. */
export class FormatterChoice {
  readonly #workspace: string;
  readonly #environment: ProcessEnvironment;
  readonly #folders = new Map<string, Promise<FormatterFolder>>();

  constructor(workspace: string, environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#environment = environment;
  }

  /** The formatters of a file: several if the same folder has signs of several. */
  async of(file: string): Promise<readonly ChosenFormatter[]> {
    const able = formatters.filter(({ files }) => files.test(file));
    const folders = upTo(this.#workspace, path.dirname(file));
    let perhaps: readonly Claimed[] = [];
    for (const folder of able.length === 0 ? [] : folders) {
      const claimed = await this.#claims(able, { file, folder, folders });
      const certain = claimed.filter(({ claim }) => claim === 'governs');
      if (certain.length > 0) return this.#installed(certain);
      if (perhaps.length === 0) perhaps = claimed;
    }
    return this.#installed(perhaps);
  }

  async #claims(able: readonly Formatter[], target: FormatTarget): Promise<readonly Claimed[]> {
    const opened = this.#folders.get(target.folder) ?? openFolder(target.folder);
    this.#folders.set(target.folder, opened);
    const claims: Claimed[] = [];
    for (const formatter of able) {
      const claim = await strongest(formatter.signs, await opened);
      if (claim !== null) claims.push({ formatter, target, claim });
    }
    return claims;
  }

  /** Drops formatters that are not installed. */
  #installed(claims: readonly Claimed[]): readonly ChosenFormatter[] {
    return claims.flatMap((claim) => {
      const { formatter, target } = claim;
      const program = installedAs(formatter, target.file, this.#workspace, this.#environment);
      return program === null ? [] : [{ ...claim, isAlone: claims.length === 1, program }];
    });
  }
}

/** Detects from a folder's files which formatters are used in it. */

/**
 * `governs`: the repository formats such files with it. `perhaps`: it is present, but may not be used for all files.
 */
type Claim = 'governs' | 'perhaps';

type FormatterFolder = {
  readonly path: string;
  readonly names: ReadonlySet<string>;
  /** The text of a file in it; empty if it is missing or unreadable. */
  read(name: string): Promise<string>;
};

const SIGN_BYTES_MAX = 1024 * 1024;

/** Opens a folder. An unreadable one counts as empty. */
const openFolder = async (folder: string): Promise<FormatterFolder> => {
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
type Sign = {
  /** Names of the files that show it. */
  readonly files: readonly string[];
  claim(folder: FormatterFolder): Claim | null | Promise<Claim | null>;
};

/** Sign: one of these files exists. */
const file = (...names: readonly string[]): Sign => ({
  files: names,
  claim: (folder) => (names.some((name) => folder.names.has(name)) ? 'governs' : null),
});

/** Sign: a file with this name whose text matches. */
const text = (name: string, pattern: RegExp, claim: Claim = 'governs'): Sign => ({
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
const packageKey = (key: string): Sign => ({
  files: [MANIFEST],
  claim: async (folder) => (hasKey(parsePackage(await folder.read(MANIFEST)), key) ? 'governs' : null),
});

/** Sign: a dependency in package.json. It governs if a script calls the program. */
const dependency = (name: string, program: string): Sign => ({
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
const preCommitHook = (id: string): Sign =>
  text('.pre-commit-config.yaml', new RegExp(`^[\\s-]*id:\\s*['"]?${id}['"]?\\s*(#.*)?$`, 'm'));

/** The strongest claim of the signs; null if there is none. */
const strongest = async (signs: readonly Sign[], folder: FormatterFolder): Promise<Claim | null> => {
  let found: Claim | null = null;
  for (const sign of signs) {
    const claim = await sign.claim(folder);
    if (claim === 'governs') return claim;
    found ??= claim;
  }
  return found;
};

/**
 * The supported formatters: the signs that a repository uses one, the files it formats, and its command line.
 *
 * Every command reads the file's text from stdin and prints the formatted text, so a formatter that hangs or fails
 * can't harm the file. It finds its settings by the file's path. It prints ignored files unchanged.
 */

export type FormatTarget = {
  /** Real absolute path. */
  readonly file: string;
  /** The folder with the formatter's signs. The command runs there unless `runs` says otherwise. */
  readonly folder: string;
  /** Folders from the file's own up to the workspace. */
  readonly folders: readonly string[];
};

type Formatter = {
  readonly name: string;
  readonly program: string;
  /** Folders of a project that may contain the program. The PATH comes after these. */
  readonly homes: readonly string[];
  readonly files: RegExp;
  readonly signs: readonly Sign[];
  readonly runs: 'where it is used' | 'beside the file';
  words(target: FormatTarget): readonly string[] | Promise<readonly string[]>;
};

const NODE_HOMES = ['node_modules/.bin'];
const PYTHON_HOMES = ['.venv/bin', 'venv/bin'];
const MANIFEST_BYTES_MAX = 1024 * 1024;
const BIOME_FILES = ['biome.json', 'biome.jsonc'];
const BIOME_OFF = /"formatter"\s*:\s*\{[^{}]*"enabled"\s*:\s*false/;
const BLACK_EXCLUDES = /^\s*(extend-)?exclude\s*=/m;

const exists = (place: string): Promise<boolean> =>
  stat(place).then(
    () => true,
    () => false,
  );

/** Passes the ignore files of all folders, since Prettier reads only those of its working folder. */
const prettierWords = async ({ file: name, folders }: FormatTarget): Promise<readonly string[]> => {
  const ignoring: string[] = [];
  for (const folder of folders) {
    for (const own of ['.prettierignore', '.gitignore']) {
      if (await exists(path.join(folder, own))) ignoring.push('--ignore-path', path.join(folder, own));
    }
  }
  return ['--stdin-filepath', name, '--ignore-unknown', ...ignoring];
};

/** Passes the edition of the nearest manifest that names one. By default rustfmt uses the oldest edition. */
const rustfmtWords = async ({ folders }: FormatTarget): Promise<readonly string[]> => {
  for (const folder of folders) {
    const manifest = await readTextOrEmpty(path.join(folder, 'Cargo.toml'), MANIFEST_BYTES_MAX);
    const edition = /^\s*edition\s*=\s*"(\d{4})"/m.exec(manifest)?.[1];
    if (edition !== undefined) return ['--edition', edition];
  }
  return [];
};

const formatters: readonly Formatter[] = [
  {
    name: 'Biome',
    program: 'biome',
    homes: NODE_HOMES,
    files: /\.([cm]?[jt]sx?|jsonc?|css|graphql|gql)$/,
    signs: [
      {
        files: BIOME_FILES,
        claim: async (folder) => {
          const named = BIOME_FILES.find((name) => folder.names.has(name));
          if (named === undefined) return null;
          return BIOME_OFF.test(await folder.read(named)) ? null : 'governs';
        },
      },
      dependency('@biomejs/biome', 'biome'),
    ],
    runs: 'where it is used',
    words: ({ file: name }) => ['format', `--stdin-file-path=${name}`],
  },
  {
    name: 'Prettier',
    program: 'prettier',
    homes: NODE_HOMES,
    files:
      /\.([cm]?[jt]sx?|json[5c]?|css|scss|less|html?|vue|svelte|astro|mdx?|markdown|ya?ml|graphql|gql|hbs)$/,
    signs: [
      file(
        '.prettierrc',
        ...['json', 'yml', 'yaml', 'json5', 'toml', 'js', 'cjs', 'mjs', 'ts', 'cts', 'mts'].map(
          (ending) => `.prettierrc.${ending}`,
        ),
        ...['js', 'cjs', 'mjs', 'ts', 'cts', 'mts'].map((ending) => `prettier.config.${ending}`),
      ),
      packageKey('prettier'),
      dependency('prettier', 'prettier'),
    ],
    runs: 'where it is used',
    words: prettierWords,
  },
  {
    name: 'gofmt',
    program: 'gofmt',
    homes: [],
    files: /\.go$/,
    signs: [file('go.mod', 'go.work')],
    runs: 'where it is used',
    words: () => [],
  },
  {
    name: 'rustfmt',
    program: 'rustfmt',
    homes: [],
    files: /\.rs$/,
    signs: [file('Cargo.toml', 'rustfmt.toml', '.rustfmt.toml')],
    // rustfmt does not know the path of its input: it searches its settings from this folder upwards
    runs: 'beside the file',
    words: rustfmtWords,
  },
  {
    name: 'Ruff',
    program: 'ruff',
    homes: PYTHON_HOMES,
    files: /\.pyi?$/,
    signs: [
      text('pyproject.toml', /^\s*\[\s*tool\.ruff\.format\s*\]/m),
      text('ruff.toml', /^\s*\[\s*format\s*\]/m),
      text('.ruff.toml', /^\s*\[\s*format\s*\]/m),
      preCommitHook('ruff-format'),
      // Ruff may be used for linting only
      text('pyproject.toml', /^\s*\[\s*tool\.ruff\b/m, 'perhaps'),
      text('ruff.toml', /^/, 'perhaps'),
      text('.ruff.toml', /^/, 'perhaps'),
    ],
    runs: 'where it is used',
    words: ({ file: name }) => ['format', '--no-cache', '--force-exclude', '--stdin-filename', name, '-'],
  },
  {
    name: 'Black',
    program: 'black',
    homes: PYTHON_HOMES,
    files: /\.pyi?$/,
    signs: [
      {
        files: ['pyproject.toml'],
        claim: async (folder) => {
          const written = await folder.read('pyproject.toml');
          const section = /^\s*\[\s*tool\.black\s*\]([\s\S]*?)(?=^\s*\[|(?![\s\S]))/m.exec(written)?.[1];
          if (section === undefined) return null;
          // Black's exclusions do not apply to stdin
          return BLACK_EXCLUDES.test(section) ? 'perhaps' : 'governs';
        },
      },
      preCommitHook('black'),
    ],
    runs: 'where it is used',
    words: ({ file: name }) => ['--quiet', '--stdin-filename', name, '-'],
  },
  {
    name: 'clang-format',
    program: 'clang-format',
    homes: [],
    files: /\.(c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inl|m|mm|cu|cuh|proto)$/,
    signs: [file('.clang-format', '_clang-format')],
    runs: 'where it is used',
    words: ({ file: name }) => [`--assume-filename=${name}`, '--style=file', '--fallback-style=none'],
  },
];

/**
 * Decides whether a formatter may apply to files that a command changes below the workspace. Only then is a snapshot of
 * the tree worth its cost.
 *
 * 1. Signs are searched in the workspace, in tracked folders, and in folders of files that calls have named. A
 *    formatter with signs only elsewhere is used for files that calls name, but not for files that commands change.
 * 2. In doubt the answer is yes, at the cost of a needless snapshot. A positive answer is final.
 * 3. Nothing is read again while the index and the files have not changed.
 */

const SIGNS = formatters.flatMap(({ signs }) => signs);
const SIGN_FILES = [...new Set(SIGNS.flatMap(({ files }) => files))];
const TRACKED = [
  ...['--no-literal-pathspecs', 'ls-files', '-z', '--'],
  ...SIGN_FILES.map((name) => `:(top,glob)**/${name}`),
];
/** Maximum number of folders to read: rule 2. */
const FOLDERS_MAX = 200;

type Tracked = { readonly fingerprint: string; readonly folders: readonly string[] };

export class FormatterReach {
  readonly #now: () => number;
  readonly #named = new Set<string>();
  #tracked: Tracked | null = null;
  /** Folders without a sign, with their fingerprints. */
  readonly #without = new Map<string, { readonly places: readonly string[]; readonly fingerprint: string }>();
  #found = false;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Records the absolute paths of files that calls name. */
  name(files: readonly string[]): void {
    for (const file of files) if (this.#named.size < FOLDERS_MAX) this.#named.add(path.dirname(file));
  }

  /** Whether a formatter may apply. Rejects if git fails. */
  async isReached(place: GitPlace): Promise<boolean> {
    if (this.#found) return true;
    const { workspace } = place;
    const tracked = await this.#trackedFolders(place);
    const folders = [...new Set([workspace, ...tracked, ...this.#named])].filter((folder) =>
      isWithin(folder, workspace),
    );
    this.#found = folders.length > FOLDERS_MAX;
    for (const folder of folders) this.#found ||= await this.#hasSign(folder);
    return this.#found;
  }

  async #hasSign(folder: string): Promise<boolean> {
    const known = this.#without.get(folder);
    if (known !== undefined && fingerprintOfAll(known.places).text === known.fingerprint) return false;
    const at = this.#now();
    const opened = await openFolder(folder);
    const own = SIGN_FILES.filter((name) => opened.names.has(name));
    const places = [folder, ...own.map((name) => path.join(folder, name))];
    const fingerprint = fingerprintOfAll(places);
    if ((await strongest(SIGNS, opened)) !== null) return true;
    if (isSettled(fingerprint, at)) this.#without.set(folder, { places, fingerprint: fingerprint.text });
    else this.#without.delete(folder);
    return false;
  }

  /** Folders with tracked files that may be signs; empty without a repository. */
  async #trackedFolders(place: GitPlace): Promise<readonly string[]> {
    const opened = await locateRepository(place);
    if (opened === null) return [];
    const at = this.#now();
    const fingerprint = listingFingerprintOf(opened.location.indexFile);
    if (this.#tracked?.fingerprint === fingerprint.text) return this.#tracked.folders;
    const folders = await workWith(place, opened, trackedFolders);
    this.#tracked = isSettled(fingerprint, at) ? { fingerprint: fingerprint.text, folders } : null;
    return folders;
  }
}

const fingerprintOfAll = (places: readonly string[]): Fingerprint =>
  joinFingerprints(places.map(listingFingerprintOf));

const trackedFolders = async (repository: Repository): Promise<readonly string[]> => {
  const names = (await repository.ask(TRACKED)).split('\0').filter((name) => name !== '');
  return [...new Set(names.map((name) => path.dirname(path.join(repository.top, name))))];
};
