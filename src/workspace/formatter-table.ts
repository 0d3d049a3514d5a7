import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { dependency, file, packageKey, preCommitHook, type Sign, text } from './formatter-signs.js';

/**
 * The formatters that are known: how a repository shows that it uses one, for which files, and how it is called.
 *
 * Every command reads a file's text from its input and prints it formatted, and looks for its settings by the file's
 * path, which exists: so a formatter that hangs or breaks can't harm the file. What its settings or its ignore files
 * leave out it prints as it is.
 */

export type Target = {
  /** Real absolute path. */
  readonly file: string;
  /** The folder where the formatter showed that it is used; the command runs there unless `runs` says otherwise. */
  readonly folder: string;
  /** From the file's folder up to the workspace. */
  readonly folders: readonly string[];
};

export type Formatter = {
  readonly name: string;
  readonly program: string;
  /** Folders of a project where its program lies. It is looked for on the PATH after these. */
  readonly homes: readonly string[];
  readonly files: RegExp;
  readonly signs: readonly Sign[];
  readonly runs: 'where it is used' | 'beside the file';
  words(target: Target): readonly string[] | Promise<readonly string[]>;
};

const NODE_HOMES = ['node_modules/.bin'];
const PYTHON_HOMES = ['.venv/bin', 'venv/bin'];
const BIOME_OFF = /"formatter"\s*:\s*\{[^{}]*"enabled"\s*:\s*false/;
const BLACK_EXCLUDES = /^\s*(extend-)?exclude\s*=/m;

const exists = (place: string): Promise<boolean> =>
  readFile(place).then(
    () => true,
    () => false,
  );

/** Prettier looks for its ignore files where it runs only: those of all folders are named. */
const prettierWords = async ({ file: name, folders }: Target): Promise<readonly string[]> => {
  const ignoring: string[] = [];
  for (const folder of folders) {
    for (const own of ['.prettierignore', '.gitignore']) {
      if (await exists(path.join(folder, own))) ignoring.push('--ignore-path', path.join(folder, own));
    }
  }
  return ['--stdin-filepath', name, '--ignore-unknown', ...ignoring];
};

/** The edition is in the manifest, and in the workspace's where that one says so; rustfmt alone takes the oldest. */
const rustfmtWords = async ({ folders }: Target): Promise<readonly string[]> => {
  for (const folder of folders) {
    const manifest = await readFile(path.join(folder, 'Cargo.toml'), 'utf8').catch(() => '');
    const edition = /^\s*edition\s*=\s*"(\d{4})"/m.exec(manifest)?.[1];
    if (edition !== undefined) return ['--edition', edition];
  }
  return [];
};

export const formatters: readonly Formatter[] = [
  {
    name: 'Biome',
    program: 'biome',
    homes: NODE_HOMES,
    files: /\.([cm]?[jt]sx?|jsonc?|css|graphql|gql)$/,
    signs: [
      async (folder) => {
        const named = ['biome.json', 'biome.jsonc'].find((name) => folder.names.has(name));
        if (named === undefined) return null;
        return BIOME_OFF.test(await folder.read(named)) ? null : 'governs';
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
    // of text from its input it knows no path: its settings are looked for from here upwards
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
      // it may be there for its lints alone
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
      async (folder) => {
        const written = await folder.read('pyproject.toml');
        const section = /^\s*\[\s*tool\.black\s*\]([\s\S]*?)(?=^\s*\[|(?![\s\S]))/m.exec(written)?.[1];
        if (section === undefined) return null;
        // what it leaves out in a project it does not leave out of its input
        return BLACK_EXCLUDES.test(section) ? 'perhaps' : 'governs';
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
