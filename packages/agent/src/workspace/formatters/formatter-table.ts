import { stat } from 'node:fs/promises';
import path from 'node:path';
import { readTextOrEmpty } from '../../platform/files/regular-file.js';
import { dependency, file, packageKey, preCommitHook, type Sign, text } from './formatter-detection.js';

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

export type Formatter = {
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

export const formatters: readonly Formatter[] = [
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
