/**
 * The formatters that a repository may use, and which of them formats a file.
 *
 * A sign shows that the repository uses a formatter: a configuration file, a key or a dependency in
 * package.json.
 *
 * From top to bottom: the files to format; `FormatterChoice`, which finds the formatters of a file;
 * the signs; the table of formatters; and `FormatterReach`, which decides whether a formatter may
 * apply to files that a command changes.
 */

import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, readTextOrEmptySync } from '../platform/files.js';
import { findProgram, findRepositoryProgram, type ProgramPath } from '../platform/find-program.js';
import { repositoryFolders } from '../platform/trusted-folders.js';
import { isObject, type Loose } from '../platform/untrusted-input.js';
import type { HookContext } from '../ports/hooks.js';
import { FileCache } from './file-cache.js';
import { type GitPlace, locateRepository, type Repository, workWith } from './git.js';

/** Larger configuration files count as empty. */
const SIGN_BYTES_MAX = 1024 * 1024;

/**
 * The certainty of a sign. `governs`: the repository formats such files with the formatter.
 * `perhaps`: the formatter is present, but may not be used for all files.
 */
type Claim = 'governs' | 'perhaps';

/** A file to format, and the folders of its formatter. */
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

type PossibleFormatter = {
  readonly formatter: Formatter;
  readonly target: FormatTarget;
  readonly claim: Claim;
};

export type ChosenFormatter = PossibleFormatter & {
  /** Whether no other formatter has a sign as certain in the same folder, installed or not. */
  readonly isAlone: boolean;
  readonly program: ProgramPath;
};

/** Folders with other people's files. */
const FOREIGN = /(^|\/)(node_modules|\.git|\.venv|venv|vendor)\//;

const isForeign = (file: string, workspace: string): boolean =>
  !isWithin(file, workspace) || FOREIGN.test(path.relative(workspace, file));

/** Whether the working tree had changes before the formatters run, as the phase before says. */
export const isDirtyBefore = ({ reports }: HookContext): boolean => reports.at(-1)?.dirty ?? false;

/** The files that a batch changed and that some formatter knows. */
export const filesToFormat = ({ workspace, reports, calls }: HookContext): readonly string[] => {
  // the files in the report of the phase before; without it those that the calls name
  const changed = reports.at(-1)?.changedFiles ?? calls.flatMap(({ facts }) => facts.paths);
  return [...new Set(changed)].filter(
    (file) => formatters.some(({ files }) => files.test(file)) && !isForeign(file, workspace),
  );
};

/**
 * Chooses the formatters of files. Make one for each batch, since it reads each folder once.
 *
 * The nearest folder with signs counts, from that of the file up to the workspace. Uncertain signs
 * (`perhaps`) count only without certain ones in all folders. A formatter comes from the project's
 * own program folders or from the PATH. No formatter is downloaded.
 */
export class FormatterChoice {
  readonly #workspace: string;
  readonly #environment: ProcessEnvironment;
  readonly #folders = new Map<string, SignFolder>();

  constructor(workspace: string, environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#environment = environment;
  }

  /** The formatters of a file: several if the same folder has signs of several. */
  choose(file: string): readonly ChosenFormatter[] {
    const candidates = formatters.filter(({ files }) => files.test(file));
    const folders = foldersUpTo(this.#workspace, path.dirname(file));
    let possible: readonly PossibleFormatter[] = [];
    for (const folder of candidates.length === 0 ? [] : folders) {
      const signFolder = this.#folders.get(folder) ?? openFolder(folder);
      this.#folders.set(folder, signFolder);
      const claims = candidates.flatMap((formatter) => {
        const claim = strongestClaim(formatter, signFolder);
        return claim === null ? [] : [{ formatter, claim, target: { file, folder, folders } }];
      });
      const certain = claims.filter(({ claim }) => claim === 'governs');
      if (certain.length > 0) return this.#installed(certain);
      if (possible.length === 0) possible = claims;
    }
    return this.#installed(possible);
  }

  /** Drops formatters that are not installed. */
  #installed(claims: readonly PossibleFormatter[]): readonly ChosenFormatter[] {
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

/** One of these files: only the first that exists is read. */
type FileSign = {
  readonly files: readonly string[];
  /** What its text must match. Default: any. */
  readonly matches?: RegExp;
  /** Whether its text turns the formatter off. Then no later sign in the folder counts. */
  readonly turnsOff?: (text: string) => boolean;
  /** Default: the formatter governs. `matched`: the part of the text that matched. */
  readonly claim?: (matched: string) => Claim;
};
type PackageSign =
  /** A key in package.json with the formatter's settings. */
  | { readonly key: string }
  /** A dependency in package.json. It governs if a script calls the program. */
  | { readonly dependency: string };
type Sign = FileSign | PackageSign;

const MANIFEST = 'package.json';

/** A folder that is searched for signs. */
type SignFolder = { readonly names: ReadonlySet<string>; read(name: string): string };

/** Opens a folder. An unreadable folder counts as empty. */
const openFolder = (folder: string): SignFolder => {
  const texts = new Map<string, string>();
  const read = (name: string): string => {
    const text = texts.get(name) ?? readTextOrEmptySync(path.join(folder, name), SIGN_BYTES_MAX);
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
    if (claim === 'off') return null;
    if (claim === 'governs') return claim;
    strongest ??= claim;
  }
  return strongest;
};

const claimOfFile = (
  { files, matches, turnsOff, claim }: FileSign,
  folder: SignFolder,
): Claim | 'off' | null => {
  const name = files.find((one) => folder.names.has(one));
  if (name === undefined) return null;
  const matched = matches === undefined ? '' : matches.exec(folder.read(name))?.[0];
  if (matched === undefined) return null;
  if (turnsOff?.(folder.read(name)) === true) return 'off';
  return claim?.(matched) ?? 'governs';
};

const claimOfPackage = (sign: PackageSign, text: string, program: string): Claim | null => {
  const manifest = parseManifest(text);
  if ('key' in sign) return Object.hasOwn(manifest, sign.key) ? 'governs' : null;
  const { dependencies, devDependencies, scripts } = manifest;
  const lists = (value: unknown): boolean => Object.hasOwn(asObject(value), sign.dependency);
  if (!lists(dependencies) && !lists(devDependencies)) return null;
  const call = new RegExp(`(^|[^\\w-])${program}([^\\w-]|$)`, 'm');
  const isCalled = Object.values(asObject(scripts)).some((line) => call.test(String(line)));
  return isCalled ? 'governs' : 'perhaps';
};

const asObject = (value: unknown): Loose => (isObject(value) ? value : {});

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
const withEndings = (name: string, ...each: readonly string[]): readonly string[] =>
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
    const manifest = readTextOrEmptySync(path.join(folder, 'Cargo.toml'), SIGN_BYTES_MAX);
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

/** Strings, which may look like comments, and comments. */
const STRING_OR_COMMENT = /("(?:\\.|[^"\\])*")|\/\/.*|\/\*[\s\S]*?\*\//g;

/** The formatter of one language alone may be off, too; that counts as on. */
const turnsBiomeOff = (text: string): boolean => {
  // commas within strings go, too: no string is read
  const json = text.replace(STRING_OR_COMMENT, '$1').replace(/,(?=\s*[}\]])/g, '');
  return asObject(parseManifest(json).formatter).enabled === false;
};

/** For signs that don't show whether Ruff formats: it may be used for linting only. */
const perhapsRuff = (): Claim => 'perhaps';

const formatters: readonly Formatter[] = [
  {
    name: 'Biome',
    program: 'biome',
    homes: NODE_HOMES,
    files: /\.([cm]?[jt]sx?|jsonc?|css|graphql|gql)$/,
    signs: [
      { files: ['biome.json', 'biome.jsonc'], turnsOff: turnsBiomeOff },
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
          ...withEndings('.prettierrc', 'json', 'yml', 'yaml', 'json5', 'toml', ...SCRIPTS),
          ...withEndings('prettier.config', ...SCRIPTS),
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
    // it gets no path of its input, so it searches its settings from its working folder upwards
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
      { files: ['pyproject.toml'], matches: /^\s*\[\s*tool\.ruff\b/m, claim: perhapsRuff },
      { files: ['ruff.toml'], claim: perhapsRuff },
      { files: ['.ruff.toml'], claim: perhapsRuff },
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
        // up to the next table, or the end
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
 * named. A formatter with signs only elsewhere applies to files that calls name, but not to files
 * that commands change. If unsure, the answer is yes, at the cost of an unnecessary snapshot. A
 * positive answer is final.
 */
export class FormatterReach {
  readonly #now: () => number;
  /** Folders of files that calls named. */
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

  /** Remembers the folders of files that calls name. */
  remember(files: readonly string[]): void {
    if (this.#isReached) return;
    for (const file of files) this.#named.add(path.dirname(file));
    // more folders than are read: unsure
    if (this.#named.size > FOLDERS_MAX) this.#isReached = true;
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
    const signFolder = openFolder(folder);
    if (formatters.some((formatter) => strongestClaim(formatter, signFolder) !== null)) return true;
    const files = SIGN_FILES.filter((name) => signFolder.names.has(name));
    const places = [folder, ...files.map((name) => path.join(folder, name))];
    this.#without.set(folder, true, places, readAt);
    return false;
  }

  /** Folders of tracked files that may be signs; none without a repository. */
  async #trackedFolders(place: GitPlace): Promise<readonly string[]> {
    const located = await locateRepository(place);
    if (located === null) return [];
    const { indexFile } = located.location;
    const cached = this.#tracked.get(indexFile);
    if (cached !== undefined) return cached;
    const readAt = this.#now();
    const folders = await workWith(place, located, askTrackedFolders);
    this.#tracked.set(indexFile, folders, [indexFile], readAt);
    return folders;
  }
}

const LISTING_MAX = 256 * 1024 * 1024;
const SIGNS: ReadonlySet<string> = new Set(SIGN_FILES);

const askTrackedFolders = async (repository: Repository): Promise<readonly string[]> => {
  // git takes five times as long with the names as patterns
  const names = (await repository.ask(['ls-files', '-z'], { bytesMax: LISTING_MAX })).split('\0');
  const signs = names.filter((name) => SIGNS.has(name.slice(name.lastIndexOf('/') + 1)));
  return [...new Set(signs.map((name) => path.dirname(path.join(repository.top, name))))];
};
