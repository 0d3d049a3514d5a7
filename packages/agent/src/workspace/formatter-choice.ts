import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, readTextOrEmptySync } from '../platform/files.js';
import { findProgram, findRepositoryProgram, type ProgramPath } from '../platform/find-program.js';
import { repositoryFolders } from '../platform/repository-folders.js';
import { type GitPlace, locateRepository, type Repository, workWith } from './git.js';
import { FileCache } from './repository-location.js';

/**
 * Which formatters a repository uses for a file.
 *
 * The nearest folder with signs counts, from that of the file up to the workspace. Formatters that
 * are only possible count if there is no certain one. A formatter comes from the project's own
 * program folders or from the PATH. Nothing is ever downloaded.
 */

/**
 * `governs`: the repository formats such files with it. `perhaps`: it is present, but may not be
 * used for all files.
 */
type Claim = 'governs' | 'perhaps';

type FormatTarget = {
  /** Real absolute path. */
  readonly file: string;
  /**
   * The folder with the formatter's signs. The command runs there, unless it runs beside the file.
   */
  readonly folder: string;
  /** Folders from that of the file up to the workspace. */
  readonly folders: readonly string[];
};

type Claimed = {
  readonly formatter: Formatter;
  readonly target: FormatTarget;
  readonly claim: Claim;
};

export type ChosenFormatter = Claimed & {
  /** Whether no other formatter has signs in the same folder for such files. */
  readonly isAlone: boolean;
  readonly program: ProgramPath;
};

export const isFormattable = (file: string): boolean =>
  formatters.some(({ files }) => files.test(file));

/** Folders with other people's files. */
const FOREIGN = /(^|\/)(node_modules|\.git|\.venv|venv|vendor)\//;

export const isForeign = (file: string, workspace: string): boolean =>
  !isWithin(file, workspace) || FOREIGN.test(path.relative(workspace, file));

/** Chooses formatters for files, reading each folder once. */
export class FormatterChoice {
  readonly #workspace: string;
  readonly #environment: ProcessEnvironment;
  readonly #folders = new Map<string, SignFolder>();

  constructor(workspace: string, environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#environment = environment;
  }

  /** The formatters of a file: several if the same folder has signs of several. */
  of(file: string): readonly ChosenFormatter[] {
    const able = formatters.filter(({ files }) => files.test(file));
    const folders = foldersUpTo(this.#workspace, path.dirname(file));
    let possible: readonly Claimed[] = [];
    for (const folder of able.length === 0 ? [] : folders) {
      const opened = this.#folders.get(folder) ?? openFolder(folder);
      this.#folders.set(folder, opened);
      const claims = able.flatMap((formatter) => {
        const claim = strongestClaim(formatter, opened);
        return claim === null ? [] : [{ formatter, claim, target: { file, folder, folders } }];
      });
      const certain = claims.filter(({ claim }) => claim === 'governs');
      if (certain.length > 0) return this.#installed(certain);
      if (possible.length === 0) possible = claims;
    }
    return this.#installed(possible);
  }

  /** Drops formatters that are not installed. */
  #installed(claims: readonly Claimed[]): readonly ChosenFormatter[] {
    const workspace = this.#workspace;
    const top = repositoryFolders(workspace).top ?? workspace;
    return claims.flatMap((claim) => {
      const { program: name, homes } = claim.formatter;
      const folders = foldersUpTo(top, path.dirname(claim.target.file));
      const places = folders.flatMap((folder) => homes.map((home) => path.join(folder, home)));
      const program =
        findRepositoryProgram(places, name) ??
        findProgram(name, { environment: this.#environment, workspace });
      return program === null ? [] : [{ ...claim, isAlone: claims.length === 1, program }];
    });
  }
}

const foldersUpTo = (top: string, folder: string): readonly string[] => {
  const folders: string[] = [];
  for (let place = folder; isWithin(place, top); place = path.dirname(place)) {
    folders.push(place);
    if (place === top) break;
  }
  return folders;
};

// ---- Signs that a formatter is used in a folder ----

/** One of these files: the first that exists counts. */
type FileSign = {
  readonly files: readonly string[];
  /** What its text must match. Default: any. */
  readonly matches?: RegExp;
  /** What its text must not match. */
  readonly without?: RegExp;
  /** Default: it governs. `matched`: the part of the text that matched. */
  readonly claim?: (matched: string) => Claim;
};
type PackageSign =
  /** A key in package.json with the formatter's settings. */
  | { readonly key: string }
  /** A dependency in package.json. It governs if a script calls the program. */
  | { readonly dependency: string };
type Sign = FileSign | PackageSign;

const MANIFEST = 'package.json';
const TEXT_BYTES_MAX = 1024 * 1024;

type SignFolder = { readonly names: ReadonlySet<string>; read(name: string): string };

/** Opens a folder. An unreadable one counts as empty. */
const openFolder = (folder: string): SignFolder => {
  const texts = new Map<string, string>();
  const read = (name: string): string => {
    const text = texts.get(name) ?? readTextOrEmptySync(path.join(folder, name), TEXT_BYTES_MAX);
    texts.set(name, text);
    return text;
  };
  try {
    return { names: new Set(readdirSync(folder)), read };
  } catch {
    return { names: new Set(), read: () => '' };
  }
};

/** The strongest claim of a formatter's signs; null if there is none. */
const strongestClaim = ({ signs, program }: Formatter, folder: SignFolder): Claim | null => {
  let strongest: Claim | null = null;
  for (const sign of signs) {
    const claim =
      'files' in sign
        ? claimOfFile(sign, folder)
        : claimOfPackage(sign, folder.read(MANIFEST), program);
    if (claim === 'governs') return claim;
    strongest ??= claim;
  }
  return strongest;
};

const claimOfFile = (
  { files, matches, without, claim }: FileSign,
  folder: SignFolder,
): Claim | null => {
  const name = files.find((one) => folder.names.has(one));
  if (name === undefined) return null;
  const matched = matches === undefined ? '' : matches.exec(folder.read(name))?.[0];
  if (matched === undefined || without?.test(folder.read(name)) === true) return null;
  return claim?.(matched) ?? 'governs';
};

const claimOfPackage = (sign: PackageSign, text: string, program: string): Claim | null => {
  const manifest = parseManifest(text);
  if ('key' in sign) return Object.hasOwn(manifest, sign.key) ? 'governs' : null;
  const { dependencies, devDependencies, scripts } = manifest;
  const has = (value: unknown): boolean => Object.hasOwn(asObject(value), sign.dependency);
  if (!has(dependencies) && !has(devDependencies)) return null;
  const call = new RegExp(`(^|[^\\w-])${program}([^\\w-]|$)`, 'm');
  const isCalled = Object.values(asObject(scripts)).some((line) => call.test(String(line)));
  return isCalled ? 'governs' : 'perhaps';
};

const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  // any object that is not null can be read by name
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

const parseManifest = (text: string): Readonly<Record<string, unknown>> => {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return {}; // absent, or the package manager reports it as invalid
  }
};

// ---- The supported formatters ----

/**
 * A formatter: the signs that a repository uses it, the files it formats, and its command line.
 *
 * Every command reads the file's text from stdin and prints the formatted text, so a formatter that
 * hangs or fails can't harm the file. It finds its settings by the file's path. It prints ignored
 * files unchanged.
 */
export type Formatter = {
  readonly name: string;
  readonly program: string;
  /** Folders of a project that may contain the program. The PATH comes after these. */
  readonly homes: readonly string[];
  readonly files: RegExp;
  readonly signs: readonly Sign[];
  /** It runs beside the file, not in the folder with its signs. */
  readonly runsBesideFile?: true;
  args(target: FormatTarget): readonly string[];
};

const NODE_HOMES = ['node_modules/.bin'];
const PYTHON_HOMES = ['.venv/bin', 'venv/bin'];
const endings = (name: string, ...each: readonly string[]): readonly string[] =>
  each.map((ending) => `${name}.${ending}`);
const SCRIPTS = ['js', 'cjs', 'mjs', 'ts', 'cts', 'mts'];

/** The ignore files of all folders, since Prettier reads only those of its working folder. */
const prettierIgnores = (folders: readonly string[]): readonly string[] =>
  folders
    .flatMap((folder) => [path.join(folder, '.prettierignore'), path.join(folder, '.gitignore')])
    .filter((file) => existsSync(file))
    .flatMap((file) => ['--ignore-path', file]);

/**
 * The edition of the nearest manifest that names one. By default rustfmt uses the oldest edition.
 */
const rustEdition = (folders: readonly string[]): readonly string[] => {
  for (const folder of folders) {
    const manifest = readTextOrEmptySync(path.join(folder, 'Cargo.toml'), TEXT_BYTES_MAX);
    const edition = /^\s*edition\s*=\s*"(\d{4})"/m.exec(manifest)?.[1];
    if (edition !== undefined) return ['--edition', edition];
  }
  return [];
};

/** A hook of the pre-commit framework. */
const preCommitHook = (id: string): FileSign => ({
  files: ['.pre-commit-config.yaml'],
  matches: new RegExp(`^[\\s-]*id:\\s*['"]?${id}['"]?\\s*(#.*)?$`, 'm'),
});

/** Ruff may be used for linting only. */
const perhaps = (): Claim => 'perhaps';

const formatters: readonly Formatter[] = [
  {
    name: 'Biome',
    program: 'biome',
    homes: NODE_HOMES,
    files: /\.([cm]?[jt]sx?|jsonc?|css|graphql|gql)$/,
    signs: [
      {
        files: ['biome.json', 'biome.jsonc'],
        without: /"formatter"\s*:\s*\{[^{}]*"enabled"\s*:\s*false/,
      },
      { dependency: '@biomejs/biome' },
    ],
    args: ({ file }) => ['format', `--stdin-file-path=${file}`],
  },
  {
    name: 'Prettier',
    program: 'prettier',
    homes: NODE_HOMES,
    files:
      /\.([cm]?[jt]sx?|json[5c]?|css|scss|less|html?|vue|svelte|astro|mdx?|markdown|ya?ml|graphql|gql|hbs)$/,
    signs: [
      {
        files: [
          '.prettierrc',
          ...endings('.prettierrc', 'json', 'yml', 'yaml', 'json5', 'toml', ...SCRIPTS),
          ...endings('prettier.config', ...SCRIPTS),
        ],
      },
      { key: 'prettier' },
      { dependency: 'prettier' },
    ],
    args: ({ file, folders }) => [
      ...['--stdin-filepath', file, '--ignore-unknown'],
      ...prettierIgnores(folders),
    ],
  },
  {
    name: 'gofmt',
    program: 'gofmt',
    homes: [],
    files: /\.go$/,
    signs: [{ files: ['go.mod', 'go.work'] }],
    args: () => [],
  },
  {
    name: 'rustfmt',
    program: 'rustfmt',
    homes: [],
    files: /\.rs$/,
    signs: [{ files: ['Cargo.toml', 'rustfmt.toml', '.rustfmt.toml'] }],
    // it does not know the path of its input: it searches its settings from its folder upwards
    runsBesideFile: true,
    args: ({ folders }) => rustEdition(folders),
  },
  {
    name: 'Ruff',
    program: 'ruff',
    homes: PYTHON_HOMES,
    files: /\.pyi?$/,
    signs: [
      { files: ['pyproject.toml'], matches: /^\s*\[\s*tool\.ruff\.format\s*\]/m },
      { files: ['ruff.toml'], matches: /^\s*\[\s*format\s*\]/m },
      { files: ['.ruff.toml'], matches: /^\s*\[\s*format\s*\]/m },
      preCommitHook('ruff-format'),
      { files: ['pyproject.toml'], matches: /^\s*\[\s*tool\.ruff\b/m, claim: perhaps },
      { files: ['ruff.toml'], claim: perhaps },
      { files: ['.ruff.toml'], claim: perhaps },
    ],
    args: ({ file }) => ['format', '--no-cache', '--force-exclude', '--stdin-filename', file, '-'],
  },
  {
    name: 'Black',
    program: 'black',
    homes: PYTHON_HOMES,
    files: /\.pyi?$/,
    signs: [
      {
        files: ['pyproject.toml'],
        matches: /^\s*\[\s*tool\.black\s*\][\s\S]*?(?=^\s*\[|(?![\s\S]))/m,
        // Black's exclusions do not apply to stdin
        claim: (section) => (/^\s*(extend-)?exclude\s*=/m.test(section) ? 'perhaps' : 'governs'),
      },
      preCommitHook('black'),
    ],
    args: ({ file }) => ['--quiet', '--stdin-filename', file, '-'],
  },
  {
    name: 'clang-format',
    program: 'clang-format',
    homes: [],
    files: /\.(c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inl|m|mm|cu|cuh|proto)$/,
    signs: [{ files: ['.clang-format', '_clang-format'] }],
    args: ({ file }) => [`--assume-filename=${file}`, '--style=file', '--fallback-style=none'],
  },
];

// ---- Whether a formatter may apply to files that a command changes ----

const SIGN_FILES = [
  ...new Set(
    formatters.flatMap(({ signs }) => signs).flatMap((sign) => ('files' in sign ? sign.files : [])),
  ),
  MANIFEST,
];
/** Maximum number of folders to read. */
const FOLDERS_MAX = 200;

/**
 * Decides whether a formatter may apply to files that a command changes below the workspace. Only
 * then is a snapshot of the tree worth its cost.
 *
 * Signs are searched in the workspace, in tracked folders, and in folders of files that calls have
 * named. A formatter with signs only elsewhere is used for files that calls name, but not for files
 * that commands change. In doubt the answer is yes, at the cost of a needless snapshot. A positive
 * answer is final.
 */
export class FormatterReach {
  readonly #now: () => number;
  readonly #named = new Set<string>();
  /** Tracked folders with files that may be signs. */
  readonly #tracked: FileCache<readonly string[]>;
  /** Folders without a sign. */
  readonly #without: FileCache<true>;
  #isReached = false;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#tracked = new FileCache(now, 'listings');
    this.#without = new FileCache(now, 'listings');
  }

  /** Records the absolute paths of files that calls name. */
  name(files: readonly string[]): void {
    for (const file of files)
      if (this.#named.size < FOLDERS_MAX) this.#named.add(path.dirname(file));
  }

  /** Whether a formatter may apply. Rejects if git fails. */
  async isReached(place: GitPlace): Promise<boolean> {
    if (this.#isReached) return true;
    const { workspace } = place;
    const all = new Set([workspace, ...(await this.#trackedFolders(place)), ...this.#named]);
    const folders = [...all].filter((folder) => isWithin(folder, workspace));
    this.#isReached =
      folders.length > FOLDERS_MAX || folders.some((folder) => this.#hasSign(folder));
    return this.#isReached;
  }

  #hasSign(folder: string): boolean {
    if (this.#without.get(folder) === true) return false;
    const readAt = this.#now();
    const opened = openFolder(folder);
    if (formatters.some((formatter) => strongestClaim(formatter, opened) !== null)) return true;
    const files = SIGN_FILES.filter((name) => opened.names.has(name));
    const places = [folder, ...files.map((name) => path.join(folder, name))];
    this.#without.set(folder, true, places, readAt);
    return false;
  }

  /** Empty without a repository. */
  async #trackedFolders(place: GitPlace): Promise<readonly string[]> {
    const located = await locateRepository(place);
    if (located === null) return [];
    const { indexFile } = located.location;
    const known = this.#tracked.get(indexFile);
    if (known !== undefined) return known;
    const readAt = this.#now();
    const folders = await workWith(place, located, askTrackedFolders);
    this.#tracked.set(indexFile, folders, [indexFile], readAt);
    return folders;
  }
}

const askTrackedFolders = async (repository: Repository): Promise<readonly string[]> => {
  const patterns = SIGN_FILES.map((name) => `:(top,glob)**/${name}`);
  const args = ['--no-literal-pathspecs', 'ls-files', '-z', '--', ...patterns];
  const names = (await repository.ask(args)).split('\0').filter((name) => name !== '');
  return [...new Set(names.map((name) => path.dirname(path.join(repository.top, name))))];
};
