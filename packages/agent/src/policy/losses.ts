/**
 * What a command would destroy, by its words: files, and work that git holds.
 *
 * From top to bottom: the files that the words of a command delete or overwrite, program by
 * program; whether they delete the workspace as a whole; and git. "Loss" is what git could not
 * bring back. The policy asks before a loss, and decide.ts makes the decision.
 */

import type { ParsedCommand } from './judged-call.js';
import { programName } from './paths.js';
import { absolutePath } from './patterns.js';

/*
 * ---- Files that a command deletes or overwrites ----
 *
 * Whether such a file exists, and whether git could restore it, is looked up where the call is
 * judged (packages/agent/src/policy/shell/unrecoverable-files.ts).
 *
 * A program that is missing here counts as harmless: interpreters, build tools, formatters and
 * scripts can write any file, and no text shows which.
 */

/**
 * A word that names files: a path, a pattern that expands to paths, or unknown before the command
 * runs.
 */
export type FileWord =
  | { readonly kind: 'path' | 'pattern'; readonly text: string }
  | { readonly kind: 'unknown' };

export type FileLoss =
  /**
   * The file, or everything in the folder, is deleted or overwritten. `isProduct`: what the program
   * makes, so it counts only if it is known to be there.
   */
  | { readonly kind: 'file'; readonly file: FileWord; readonly isProduct?: true }
  /** Each source is put at `to`, or into it if it is a folder. `moves`: the sources disappear. */
  | {
      readonly kind: 'copy';
      readonly sources: readonly FileWord[];
      readonly to: FileWord;
      readonly moves: boolean;
    };

/** Devices, such as /dev/null: a write to one counts as no loss. */
const DEVICE = /^\/dev\//;

/** What a command deletes or overwrites: its files, and the targets of its redirections. */
export const fileLossesIn = (command: ParsedCommand): readonly FileLoss[] => {
  const { writes, appends = [] } = command;
  const overwritten = writes.flatMap((file, index): readonly FileWord[] => {
    if (appends.includes(index) || (file !== null && DEVICE.test(file))) return [];
    return [file === null ? UNKNOWN : { kind: 'path', text: file }];
  });
  return [...fromWords(fileWords(command)), ...fileLosses(overwritten)];
};

/** The losses of a command, by the rules for its program. */
const fromWords = (words: readonly FileWord[]): readonly FileLoss[] => {
  const [program, ...rest] = words;
  if (program?.kind !== 'path') return [];
  const name = withoutPrefix(programName(program.text));
  if (name === 'shx') return fromWords(rest); // `shx rm FILE` runs its own `rm`
  return Object.hasOwn(judges, name) ? (judges[name]?.(rest) ?? []) : [];
};

/** The words of a command as names of files. */
const fileWords = ({
  words,
  patterns,
}: Pick<ParsedCommand, 'words' | 'patterns'>): readonly FileWord[] =>
  words.map((word, index): FileWord => {
    if (word !== null) return { kind: 'path', text: word };
    const pattern = patterns?.[index] ?? null;
    return pattern === null ? UNKNOWN : { kind: 'pattern', text: pattern };
  });

/** GNU programs under their names elsewhere: `grm`. */
const withoutPrefix = (name: string): string => {
  const plain = name.replace(
    /^g(?=(rm|mv|cp|ln|dd|tee|sed|sort|shuf|find|install|truncate|shred|unlink)$)/,
    '',
  );
  return plain === 'gfind' ? 'find' : plain;
};

/** The words after a program's name. */
type Args = {
  readonly options: readonly string[];
  /** Values of options that take one, by the option's name. */
  readonly values: ReadonlyMap<string, readonly FileWord[]>;
  readonly operands: readonly FileWord[];
};

const HERE: FileWord = { kind: 'path', text: '.' };
const UNKNOWN: FileWord = { kind: 'unknown' };

/** Each of the files as a loss. */
const fileLosses = (files: readonly FileWord[]): readonly FileLoss[] =>
  files.map((file) => ({ kind: 'file', file }));

/**
 * The name of the option of `valued` that ends a cluster and takes the next word: `-t` in `-rt`.
 */
const valueOption = (word: string, valued: readonly string[]): string | undefined => {
  if (word.startsWith('--'))
    return valued.find((name) => name === word || (word.length > 3 && name.startsWith(word)));
  const letter = `-${word.at(-1) ?? ''}`;
  return valued.find((name) => name === word) ?? valued.find((name) => name === letter);
};

const addValue = (values: Map<string, FileWord[]>, name: string, value: FileWord): void => {
  values.set(name, [...(values.get(name) ?? []), value]);
};

/** Sorts the words; `valued`: options that take a value. */
const readArguments = (words: readonly FileWord[], valued: readonly string[] = []): Args => {
  const options: string[] = [];
  const values = new Map<string, FileWord[]>();
  const operands: FileWord[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? UNKNOWN;
    if (word.kind !== 'path' || !/^-./.test(word.text)) {
      operands.push(word);
      continue;
    }
    if (word.text === '--') {
      operands.push(...words.slice(at + 1));
      break;
    }
    options.push(word.text);
    const [long = '', value] = /^(--[^=]+)=(.*)$/s.exec(word.text)?.slice(1) ?? [];
    const option = valueOption(word.text, valued);
    const short = valued.find((name) => /^-[^-]$/.test(name) && word.text.startsWith(name));
    // GNU programs accept a beginning of a long option: `--suf=x` for `--suffix`
    const named = valued.find((name) => name.startsWith('--') && name.startsWith(long)) ?? long;
    if (value !== undefined) addValue(values, named, { kind: 'path', text: value });
    else if (option !== undefined) addValue(values, option, words[++at] ?? UNKNOWN);
    else if (short !== undefined)
      addValue(values, short, { kind: 'path', text: word.text.slice(2) });
  }
  return { options, values, operands };
};

/** Whether an option is present: `-f` also in `-rf`, and `--force`. */
const hasOption = (
  { options }: Pick<Args, 'options'>,
  letter: string,
  ...long: readonly string[]
): boolean =>
  options.some((option) =>
    option.startsWith('--')
      ? long.some((name) => option.length > 3 && name.startsWith(option.split('=')[0] ?? option))
      : letter !== '' && option.includes(letter),
  );

/** The losses of one program, by the words after its name. */
type Judge = (words: readonly FileWord[]) => readonly FileLoss[];

/** Every operand is lost. */
const losesOperands =
  (...valued: readonly string[]): Judge =>
  (words) =>
    fileLosses(readArguments(words, valued).operands);

/** Copies onto the last operand or the folder of `-t`. `moves`: the sources disappear. */
const copy =
  (moves: boolean, ...valued: readonly string[]): Judge =>
  (words) => {
    const args = readArguments(words, ['-t', '--target-directory', '-S', '--suffix', ...valued]);
    if (hasOption(args, 'n', '--no-clobber') && !hasOption(args, 'f', '--force')) return [];
    const folder = [
      ...(args.values.get('-t') ?? []),
      ...(args.values.get('--target-directory') ?? []),
    ].at(-1);
    const sources = folder === undefined ? args.operands.slice(0, -1) : args.operands;
    const to = folder ?? args.operands.at(-1);
    // One word that becomes several: `mv notes.txt{,.old}`.
    if (to !== undefined && to.kind !== 'path' && sources.length === 0) return fileLosses([to]);
    if (to === undefined || sources.length === 0) return [];
    // `--parents` makes the folders of each source below `to`, so its place is not looked up
    return [
      { kind: 'copy', sources: hasOption(args, '', '--parents') ? [UNKNOWN] : sources, to, moves },
    ];
  };

const install: Judge = (words) => {
  const isForFolders = words.some(
    (word) => word.kind === 'path' && /^(-[a-zA-Z]*d|--directory)/.test(word.text),
  );
  return isForFolders ? [] : copy(false, '-m', '--mode', '-o', '--owner', '-g', '--group')(words);
};

/** Without `-f` it refuses to replace a file. */
const link: Judge = (words) => {
  const args = readArguments(words, ['-t', '--target-directory', '-S', '--suffix']);
  if (!hasOption(args, 'f', '--force')) return [];
  const [only, ...others] = args.operands;
  // `ln -sf FILE` puts the link into the folder in which it runs
  const isShort = only !== undefined && others.length === 0 && args.values.size === 0;
  return isShort ? [{ kind: 'copy', sources: [only], to: HERE, moves: false }] : copy(false)(words);
};

/** Options of rsync that take a value. */
const RSYNC_VALUED = [
  '-e',
  '--rsh',
  '-f',
  '--filter',
  '--exclude',
  '--include',
  '--exclude-from',
  '--include-from',
  '--files-from',
  '--log-file',
  '--partial-dir',
  '--backup-dir',
  '--compare-dest',
  '--link-dest',
  '-B',
  '-T',
  '--temp-dir',
  '--max-size',
  '--min-size',
  '--bwlimit',
  '--timeout',
  '--chmod',
  '--rsync-path',
];
const rsync: Judge = (words) => {
  const args = readArguments(words, RSYNC_VALUED);
  const to = args.operands.at(-1);
  if (to === undefined || args.operands.length < 2 || hasOption(args, 'n', '--dry-run')) return [];
  const isRemote = to.kind === 'path' && /^([^/]+:|rsync:)/.test(to.text);
  const sources = args.options.includes('--remove-source-files') ? args.operands.slice(0, -1) : [];
  return fileLosses(isRemote ? sources : [...sources, to]);
};

/** `of=FILE` */
const dd: Judge = (words) =>
  words.flatMap((word) => {
    if (word.kind === 'unknown') return fileLosses([word]);
    const file = /^of=(.+)$/s.exec(word.text)?.[1];
    return file === undefined ? [] : fileLosses([{ kind: word.kind, text: file }]);
  });

/** `tee`, `sponge`: they overwrite their operands unless they append. */
const overwrite: Judge = (words) => {
  const args = readArguments(words);
  return hasOption(args, 'a', '--append') ? [] : fileLosses(args.operands);
};

/** An editor in place: its operands, after the script if no option carries one. */
const editInPlace =
  (
    inPlace: (args: Args) => boolean,
    valued: readonly string[],
    script = /^(-[a-zA-Z]*[efE]|--expression|--file)/,
  ): Judge =>
  (words) => {
    const args = readArguments(words, valued);
    if (!inPlace(args)) return [];
    const carriesScript = args.options.some((option) => script.test(option));
    return fileLosses(carriesScript ? args.operands : args.operands.slice(1));
  };

const sed = editInPlace(
  (args) => args.options.some((option) => /^(-[nErsuz]*i|--in-place)/.test(option)),
  ['-e', '-f', '-l', '--expression', '--file', '--line-length'],
);
const perl = editInPlace(
  (args) => args.options.some((option) => /^-[acnlpsuwW0-7]*i/.test(option)),
  ['-e', '-E'],
);
const awk = editInPlace(
  ({ values }) =>
    [...(values.get('-i') ?? []), ...(values.get('--include') ?? [])].some(
      (value) => value.kind !== 'path' || value.text.startsWith('inplace'),
    ),
  ['-i', '--include', '-f', '--file', '-v', '--assign', '-F', '--field-separator'],
  /^(-f|--file)/,
);
const yq = editInPlace(
  (args) => hasOption(args, 'i', '--inplace', '--in-place'),
  ['-o', '-p'],
  /^--from-file/,
);

/** Programs that name the file they write by an option. */
const output =
  (...names: readonly string[]): Judge =>
  (words) => {
    const { values } = readArguments(words, names);
    return fileLosses(names.flatMap((name) => values.get(name) ?? []));
  };

/** Files that a program makes. */
const products = (files: readonly (FileWord | undefined)[]): readonly FileLoss[] =>
  files.flatMap((file) =>
    file === undefined ? [] : [{ kind: 'file', file, isProduct: true } as const],
  );

/** Programs whose option names the file that they make. */
const product =
  (...names: readonly string[]): Judge =>
  (words) => {
    const { values } = readArguments(words, names);
    return products(names.flatMap((name) => values.get(name) ?? []));
  };

/** Programs that make the operand at this place: the second of `uniq IN OUT`, the last at -1. */
const operandMade =
  (at: number, ...valued: readonly string[]): Judge =>
  (words) => {
    const { operands } = readArguments(words, valued);
    return products(operands.slice(1).length === 0 && at !== 0 ? [] : [operands.at(at)]);
  };

const SUFFIX = /\.(gz|bz2|xz|zst|lz4|lzma|Z)$/;

/** `gzip -f FILE` deletes FILE, and replaces FILE.gz; the same the other way round. */
const compress =
  (suffix: string): Judge =>
  (words) => {
    const args = readArguments(words);
    if (hasOption(args, 'c', '--stdout', '--to-stdout') || hasOption(args, 't', '--test'))
      return [];
    if (!hasOption(args, 'f', '--force')) return [];
    const others = args.operands.map((file): FileWord => {
      if (file.kind !== 'path') return UNKNOWN;
      const text = SUFFIX.test(file.text) ? file.text.replace(SUFFIX, '') : file.text + suffix;
      return { kind: 'path', text };
    });
    return products([...args.operands, ...others]);
  };

/** `tar cf FILE`, `tar -czf FILE`, `tar -c --file=FILE`. */
const tar: Judge = (words) => {
  const [first, ...rest] = words;
  const cluster = first?.kind === 'path' && /^[a-zA-Z]+$/.test(first.text) ? first.text : '';
  if (cluster !== '') return /[cru]/.test(cluster) && /f/.test(cluster) ? products([rest[0]]) : [];
  const args = readArguments(words, ['-f', '--file']);
  const makes = hasOption(args, 'c', '--create') || hasOption(args, 'r', '--append');
  return makes ? products(['-f', '--file'].flatMap((name) => args.values.get(name) ?? [])) : [];
};

/** `split FILE PREFIX` and `csplit -f PREFIX` make many files with a prefix. */
const pieces =
  (usual: string, readPrefix: (words: readonly FileWord[]) => FileWord | undefined): Judge =>
  (words) => {
    const prefix = readPrefix(words) ?? { kind: 'path', text: usual };
    return prefix.kind === 'path'
      ? products([{ kind: 'pattern', text: `${prefix.text.replace(/[\\*?[\]{}]/g, '\\$&')}*` }])
      : products([prefix]);
  };

/** Names of files that a script writes: `print > "FILE"` of awk, `w FILE` of sed. */
const writtenIn =
  (pattern: RegExp): Judge =>
  (words) =>
    words.flatMap((word) =>
      word.kind === 'path'
        ? products(
            [...word.text.matchAll(pattern)].map(([, text = '']) => ({ kind: 'path', text })),
          )
        : [],
    );

const both =
  (...judges: readonly Judge[]): Judge =>
  (words) =>
    judges.flatMap((judge) => judge(words));

/** Names of what builds, tests and package managers make again. Ignored by git they are no loss. */
const GENERATED =
  /^(node_modules|bower_components|dist|build|out|target|coverage|htmlcov|storybook-static|__pycache__|venv|\.(next|nuxt|svelte-kit|turbo|parcel-cache|cache|pytest_cache|mypy_cache|ruff_cache|tox|nox|venv|eggs|gradle|nyc_output|DS_Store|coverage|eslintcache)|.+\.(egg-info|pyc|pyo|o|obj|class|tsbuildinfo))$/;

/** Whether a path, or a folder above it, has the name of something generated. */
export const isGenerated = (path: string): boolean =>
  path.split('/').some((part) => GENERATED.test(part));

/** The roots of `find -delete`, and the files that `-fprint` and its like write. */
const find: Judge = (words) => {
  const texts = words.map((word) => (word.kind === 'unknown' ? null : word.text));
  const written = texts.flatMap((text, index) =>
    text !== null && /^-f(print0?|printf|ls)$/.test(text) ? [words[index + 1] ?? UNKNOWN] : [],
  );
  if (!texts.includes('-delete')) return fileLosses(written);
  const nameAt = texts.findIndex((text) => text === '-name' || text === '-iname');
  // `find` goes from left to right: a name behind `-delete` spares nothing
  const isNarrow = nameAt >= 0 && nameAt < texts.indexOf('-delete');
  const pattern = isNarrow ? words[nameAt + 1] : undefined;
  const isAlternative = texts.some((text) => text !== null && /^(-or?|,|!|-not)$/.test(text));
  // `-name '*.pyc'`: a star stands for any text, and all that is deleted is made again
  const deletesGenerated =
    pattern?.kind === 'path' && !isAlternative && isGenerated(pattern.text.replace(/^\*/, 'x'));
  if (deletesGenerated) return fileLosses(written);
  // the folders stand before the first test or action
  const end = texts.findIndex(
    (text) => text !== null && /^([-(!]|,$)/.test(text) && !/^-[HLP]$/.test(text),
  );
  const roots = words
    .slice(0, end)
    .filter(({ kind }, index) => kind !== 'path' || !/^-[HLP]$/.test(texts[index] ?? ''));
  return fileLosses([...written, ...(roots.length === 0 ? [HERE] : roots)]);
};

/** Here only what git moves or writes as a file. `gitJudges` below has what else it destroys. */
const git: Judge = (words) => {
  const find = (name: string): number =>
    words.findIndex((word) => word.kind === 'path' && word.text === name);
  if (find('mv') >= 0) return copy(true)(words.slice(find('mv') + 1));
  if (find('bundle') >= 0 && find('create') >= 0)
    return products(readArguments(words.slice(find('create') + 1)).operands.slice(0, 1));
  if (find('merge-file') >= 0)
    return products(readArguments(words.slice(find('merge-file') + 1)).operands.slice(0, 1));
  return output('-o', '--output')(words);
};

const SPLIT_VALUED = ['-a', '-b', '-C', '-l', '-n', '-t', '--bytes', '--lines', '--number'];
const PATCH_VALUED = ['-p', '-d', '-i', '-o', '-r', '-B', '-F', '-z', '--input', '--strip'];
const FFMPEG_VALUED = ['-i', '-f', '-t', '-ss', '-c', '-r', '-s', '-vf', '-af', '-map', '-crf'];

const judges: Readonly<Record<string, Judge>> = {
  rm: losesOperands(),
  unlink: losesOperands(),
  srm: losesOperands(),
  shred: losesOperands('-n', '--iterations', '-s', '--size'),
  rimraf: losesOperands('--tmp', '--max-retries', '--retry-delay'),
  trash: losesOperands(),
  'trash-put': losesOperands(),
  'del-cli': losesOperands(),
  truncate: losesOperands('-s', '--size', '-r', '--reference'),
  ed: losesOperands('-p', '--prompt'),
  red: losesOperands('-p', '--prompt'),
  ex: losesOperands('-c', '-S', '-u', '-t', '--cmd'),
  mv: copy(true),
  cp: copy(false),
  install,
  ln: link,
  rsync,
  dd,
  tee: overwrite,
  sponge: overwrite,
  sed: both(sed, writtenIn(/(?:^|[/;{}\n\d$, ])[gpiI\d]*w\s*([^\s;}]+)/g)),
  perl,
  ruby: perl,
  awk: both(awk, writtenIn(/>\s*"([^"]+)"/g)),
  gawk: both(awk, writtenIn(/>\s*"([^"]+)"/g)),
  mawk: writtenIn(/>\s*"([^"]+)"/g),
  yq,
  find,
  git,
  sort: output('-o', '--output'),
  shuf: output('-o', '--output'),
  curl: output('-o', '--output', '-D', '--dump-header', '-c', '--cookie-jar'),
  wget: output('-O', '--output-document', '-o', '--output-file'),
  openssl: output('-out'),
  pandoc: output('-o', '--output'),
  uniq: operandMade(1, '-f', '-s', '-w', '--skip-fields', '--skip-chars', '--check-chars'),
  xxd: operandMade(1, '-c', '-g', '-l', '-o', '-s', '-n', '-cols', '-len', '-seek'),
  gzip: compress('.gz'),
  gunzip: compress('.gz'),
  bzip2: compress('.bz2'),
  bunzip2: compress('.bz2'),
  xz: compress('.xz'),
  unxz: compress('.xz'),
  zstd: both(compress('.zst'), product('-o')),
  lz4: compress('.lz4'),
  tar,
  bsdtar: tar,
  zip: operandMade(0, '-x', '-i', '-b', '-P', '-s', '-t', '-n'),
  '7z': operandMade(1),
  split: pieces('x', (words) => readArguments(words, SPLIT_VALUED).operands[1]),
  csplit: pieces('xx', (words) =>
    readArguments(words, ['-f', '--prefix', '-n', '-b']).values.get('-f')?.at(-1),
  ),
  patch: both(product('-o', '--output', '-r', '--reject-file'), operandMade(0, ...PATCH_VALUED)),
  sqlite3: operandMade(0, '-cmd', '-init', '-separator', '-nullvalue'),
  ffmpeg: operandMade(-1, ...FFMPEG_VALUED),
  convert: operandMade(-1),
  magick: operandMade(-1),
  sox: operandMade(-1),
  qpdf: operandMade(-1),
  pdftotext: operandMade(1, '-f', '-l', '-r', '-x', '-y'),
  gpg: product('-o', '--output'),
  iconv: product('-o', '--output'),
  dot: product('-o'),
  xmllint: product('-o', '--output'),
  pg_dump: product('-f', '--file'),
  mysqldump: product('-r', '--result-file'),
  esbuild: product('--outfile'),
  tree: product('-o'),
  ...Object.fromEntries(
    ['gcc', 'g++', 'cc', 'c++', 'clang', 'clang++', 'ld', 'as', 'rustc', 'go', 'gfortran'].map(
      (name) => [name, product('-o')],
    ),
  ),
};

// ---- The workspace as a whole ----

/** Git's own folder, or the part of it that holds commits. */
const REPOSITORY = /^\.git(\/(objects|refs|logs|packed-refs|HEAD|index)(\/.*)?)?$/;
const EVERYTHING = /^(\.\/)*(\*\*?|\{\*,\.\*\}|\.\*)\/?$/;

/** Whether a loss of this file is a loss of the workspace or its history. */
const isWhole = (file: FileWord, workspace: string): boolean => {
  if (file.kind === 'unknown') return false;
  if (file.kind === 'pattern') return EVERYTHING.test(file.text);
  const path = absolutePath(file.text, workspace);
  if (path === '/' || `${workspace}/`.startsWith(`${path}/`)) return true;
  return path.startsWith(`${workspace}/`) && REPOSITORY.test(path.slice(workspace.length + 1));
};

const DELETES = /^(g?rm|rimraf|srm|trash|trash-put|del-cli|mv|find|gfind|rsync|shred|unlink)$/;
/** Options of `find` that are no tests: with these alone it deletes everything in the folder. */
const FIND_EVERYTHING = /^(-delete|-depth|-d|-H|-L|-P|-xdev|-mount|-mindepth|-maxdepth|\d+)$/;

/** Whether `find` has a test, so that it does not delete everything. */
const narrows = ({ words }: ParsedCommand): boolean =>
  words
    .slice(1)
    .some((word) => word === null || (word.startsWith('-') && !FIND_EVERYTHING.test(word)));

/** Whether a command goes to a folder below, so that `.` and `*` are no longer the workspace. */
const goesBelow = ({ words }: ParsedCommand): boolean =>
  words[0] === 'cd' &&
  words.length === 2 &&
  /^[^-./~]/.test(words[1] ?? '') &&
  !/(^|\/)\.\.?(\/|$)/.test(words[1] ?? '');

/** Why commands would delete the workspace as a whole or its history; null if they do not. */
export const wipesWorkspace = (
  commands: readonly ParsedCommand[],
  workspace: string,
): string | null => {
  for (const [index, command] of commands.entries()) {
    const name = programName(command.words[0] ?? '');
    if (!DELETES.test(name) || commands.slice(0, index).some(goesBelow)) continue;
    if (/^g?find$/.test(name) && narrows(command)) continue;
    if (name === 'rsync' && !command.words.some((word) => word?.startsWith('--del') === true))
      continue;
    const files = fileLossesIn({ ...command, writes: [] }).flatMap((loss) => {
      if (loss.kind === 'file') return [loss.file];
      return loss.moves ? loss.sources : [];
    });
    const whole = files.find((file) => isWhole(file, workspace));
    if (whole !== undefined) return 'the workspace as a whole, or its history, would be lost';
  }
  return null;
};

// ---- Git commands that discard work for good: every preset but `full` asks about them ----

/** What is asked about a command of git: its words, and how git reads them. */
type GitCommand = Pick<ParsedCommand, 'words' | 'readAs' | 'undoes'>;

/** What a git command would destroy, as the reason to ask; null if nothing. */
export const findGitLoss = ({
  words: written,
  readAs: words = written,
  undoes,
}: GitCommand): string | null => {
  const [first] = words;
  // it deletes only what the command before it has made, so nothing is lost
  if (undoes === 'previous') return null;
  if (first == null || programName(first) !== 'git') return null;
  const [command, ...rest] = gitCommand(words);
  if (command === null) return 'which command of git it is, is known only when it runs';
  return Object.hasOwn(gitJudges, command ?? '')
    ? (gitJudges[command ?? '']?.(rest) ?? null)
    : null;
};

type Words = readonly (string | null)[];

/** Git's own options whose value is the next word. */
const VALUED = new Set([
  '-C',
  '-c',
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--exec-path',
  '--config-env',
  '--super-prefix',
]);

/** The words after git's own options, beginning with its subcommand. */
export const gitCommand = (words: Words): Words => {
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at])
    at += VALUED.has(word) ? 2 : 1;
  return words.slice(at);
};

/**
 * Whether the words have an option. `''`: it has no such form. A word computed at run time counts
 * as none. Git accepts any beginning of a long option that fits no other one.
 */
const hasGitOption = (words: Words, short: string, ...long: readonly string[]): boolean =>
  words.some((word) => {
    if (word === null || word === undefined) return false;
    if (word.startsWith('--')) {
      const [name = ''] = word.split('=');
      return name.length > 2 && long.some((option) => option.startsWith(name));
    }
    return short !== '' && /^-[a-zA-Z]+$/.test(word) && word.includes(short);
  });

/** The words before `--` that are no options. */
export const operandsBeforeDashes = (words: Words): Words => {
  const end = words.indexOf('--');
  return (end < 0 ? words : words.slice(0, end)).filter(
    (word) => word === null || !word.startsWith('-'),
  );
};

/** A word that names no branch and no commit, so that git takes it for a path. */
const isSurePath = (word: string | null): boolean =>
  word !== null && /^\.{1,2}(\/|$)|^\/|\/$|[*?[\\]|^:[/(!]/.test(word);

/** Whether words of `git checkout` surely name files: something after `--`, `.` or `:/`. */
const hasPaths = (words: Words): boolean => {
  const end = words.indexOf('--');
  return (end >= 0 && end < words.length - 1) || operandsBeforeDashes(words).some(isSurePath);
};

/** Whether `git checkout` makes a branch: then no operand is a path. */
export const makesBranch = (words: Words): boolean =>
  hasGitOption(words, 'b', '--orphan') ||
  hasGitOption(words, 'B', '--track') ||
  hasGitOption(words, 't', '--detach') ||
  hasGitOption(words, 'd', '');

const lost = 'changes that were not committed could be lost';
/** What a subcommand would lose, as the reason to ask; null if nothing. */
const gitJudges: Readonly<Record<string, (words: Words) => string | null>> = {
  reset: (words) => (hasGitOption(words, '', '--hard', '--merge', '--keep') ? lost : null),
  clean: (words) =>
    hasGitOption(words, 'n', '--dry-run') ||
    !(hasGitOption(words, 'f', '--force') || words.includes(null))
      ? null
      : 'files that git does not know could be lost',
  checkout: (words) =>
    hasGitOption(words, 'f', '--force') ||
    hasGitOption(words, 'p', '--patch', '--pathspec-from-file') ||
    hasPaths(words) ||
    // of two operands one names files, unless they make a branch from a commit
    (operandsBeforeDashes(words).length > 1 && !makesBranch(words))
      ? lost
      : null,
  apply: (words) =>
    hasGitOption(words, 'R', '--reverse') &&
    !hasGitOption(words, '', '--check', '--stat', '--numstat', '--summary', '--cached')
      ? lost
      : null,
  submodule: (words) =>
    /^(update|deinit|foreach)$/.test(words[0] ?? '') && hasGitOption(words, 'f', '--force')
      ? lost
      : null,
  restore: (words) =>
    hasGitOption(words, 'S', '--staged') && !hasGitOption(words, 'W', '--worktree') ? null : lost,
  switch: (words) => (hasGitOption(words, 'f', '--force', '--discard-changes') ? lost : null),
  stash: (words) =>
    words[0] === 'drop' || words[0] === 'clear' ? 'what was stashed would be lost' : null,
  branch: (words) =>
    hasGitOption(words, 'D', '') ||
    (hasGitOption(words, 'd', '--delete') && hasGitOption(words, 'f', '--force'))
      ? 'commits that are on no other branch could be lost'
      : null,
  push: (words) =>
    hasGitOption(
      words,
      'f',
      '--force',
      '--force-with-lease',
      '--force-if-includes',
      '--mirror',
      '--prune',
      '--delete',
    ) ||
    hasGitOption(words, 'd', '') ||
    // `+BRANCH` forces, `:BRANCH` deletes
    words.some((word) => word !== null && /^(\+|:.)/.test(word))
      ? 'commits of others could be lost'
      : null,
  'filter-branch': () => 'it rewrites the history',
  'filter-repo': () => 'it rewrites the history',
  reflog: (words) =>
    words[0] === 'expire' || words[0] === 'delete'
      ? 'the way back to earlier commits would be lost'
      : null,
  gc: (words) =>
    hasGitOption(words, '', '--prune') && !words.includes('--prune=never')
      ? 'commits that nothing names could be lost'
      : null,
  prune: () => 'commits that nothing names could be lost',
  worktree: (words) => (words[0] === 'remove' && hasGitOption(words, 'f', '--force') ? lost : null),
  'update-ref': (words) =>
    hasGitOption(words, 'd', '--stdin') ? 'commits that nothing names could be lost' : null,
  'read-tree': (words) => (hasGitOption(words, 'u', '--reset') ? lost : null),
  'checkout-index': (words) => (hasGitOption(words, 'f', '--force') ? lost : null),
  rm: (words) => (hasGitOption(words, 'f', '--force') ? lost : null),
};

/** Paths that a command takes back from the index or from HEAD. */
export type PathRestore = {
  /** `:/` is the whole repository. */
  readonly paths: readonly string[];
  readonly from: 'index' | 'HEAD';
  /** The folder of `git -C FOLDER`, to which the paths are joined already. */
  readonly folder?: string;
};

/** Reads the options that change nothing else than where the paths come from; null for others. */
const readRestore = (words: readonly string[]): PathRestore | null => {
  const operands: string[] = [];
  let from: PathRestore['from'] = 'index';
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '--') {
      operands.push(...words.slice(at + 1));
      break;
    }
    if (/^(-S|--staged|--source=HEAD)$/.test(word)) from = 'HEAD';
    else if ((word === '-s' || word === '--source') && words[at + 1] === 'HEAD') {
      from = 'HEAD';
      at++;
    } else if (word.startsWith('-') && !/^(-q|--quiet|-W|--worktree)$/.test(word)) return null;
    else if (!word.startsWith('-')) operands.push(word);
  }
  return operands.length === 0 ? null : { paths: operands, from };
};

/**
 * The paths of `git checkout`: what follows `--`, else its operands, if the first is surely a path.
 * Null for other forms, and for a commit that is not HEAD.
 */
const readPaths = (words: readonly string[]): PathRestore | null => {
  const end = words.indexOf('--');
  const before = end < 0 ? words : words.slice(0, end);
  const options = before.filter((word) => word.startsWith('-'));
  const operands = before.filter((word) => !word.startsWith('-'));
  if (!options.every((option) => /^(-q|--quiet|-f|--force|--no-progress)$/.test(option)))
    return null;
  const isFromHead = operands[0] === 'HEAD';
  const named = isFromHead ? operands.slice(1) : operands;
  const paths = end < 0 ? named : words.slice(end + 1);
  const from = isFromHead ? 'HEAD' : 'index';
  if (end >= 0) return paths.length === 0 || named.length > 0 ? null : { paths, from };
  if (paths.length > 0) return isSurePath(paths[0] ?? null) ? { paths, from } : null;
  const isForced = options.some((option) => /^(-f|--force)$/.test(option));
  return isForced ? { paths: [':/'], from: 'HEAD' } : null;
};

const HARD = /^(--hard|-q|--quiet|HEAD)$/;

const joinPath = (folder: string, file: string): string =>
  folder === '' || file.startsWith('/') ? file : `${folder}/${file}`;

/** The folder of `git -C FOLDER`, empty without one; null if other options stand there. */
export const folderBefore = (words: readonly string[]): string | null => {
  let folder = '';
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (word === '-C') folder = joinPath(folder, words[++at] ?? '');
    else if (word !== '--no-pager' && word !== '-P') return null;
  }
  return folder;
};

/**
 * What `git restore PATH`, `git checkout PATH`, `git checkout HEAD PATH`, `git checkout .`, `git
 * checkout -f` and `git reset --hard` take back; null for every other command and form.
 */
export const pathRestore = ({
  words: written,
  readAs = written,
}: GitCommand): PathRestore | null => {
  const known = readAs.filter((word) => word !== null);
  if (known.length < readAs.length || known[0] !== 'git') return null;
  const [command, ...rest] = known.slice(known.length - gitCommand(known).length);
  const folder = folderBefore(known.slice(1, known.length - rest.length - 1));
  // patterns of git's own, and words with a meaning of their own
  if (folder === null || rest.some((word) => /^:|[*?[\\]/.test(word))) return null;
  const restored = readCommand(command, rest);
  if (restored === null || folder === '') return restored;
  const inFolder = (one: string): string => (one === ':/' ? one : joinPath(folder, one));
  return { ...restored, paths: restored.paths.map(inFolder), folder };
};

const readCommand = (command: string | undefined, rest: readonly string[]): PathRestore | null => {
  if (command === 'restore') return readRestore(rest);
  if (command === 'checkout') return readPaths(rest);
  const isHard = rest.includes('--hard') && rest.every((word) => HARD.test(word));
  return command === 'reset' && isHard ? { paths: [':/'], from: 'HEAD' } : null;
};
