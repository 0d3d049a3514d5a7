/**
 * Rows of programs that read, search, change, pack and convert files. `Program` in program.ts says
 * what the fields of a row mean. `filters` is tried on all words, each behind a blank. Files that
 * an archive or a patch names are no losses: no word shows them.
 */

import { isGenerated, wordSet } from '../paths.js';
import {
  type Arguments,
  copies,
  type FileLoss,
  type FileWord,
  fileLosses,
  HERE,
  hasOption,
  listValues,
  lossesByWords,
  products,
  productsInScript,
  type ReadLosses,
  readArguments,
  UNKNOWN,
} from './file-losses.js';

import { anyWord, type Meaning, matchesOption, type Rows, type Words } from './program.js';

// ---- Deleting, moving and writing ----

const INSTALL_VALUED = '-t --target-directory -S --suffix -m --mode -o --owner -g --group';
const install: ReadLosses = (words) =>
  hasOption(readArguments(words, INSTALL_VALUED), '-d --directory')
    ? []
    : copies(words, false, INSTALL_VALUED);

/** Without `-f` it refuses to replace a file. */
const link: ReadLosses = (words) => {
  const args = readArguments(words, '-t --target-directory -S --suffix');
  if (!hasOption(args, '-f --force')) return [];
  const [only, ...others] = args.operands;
  // `ln -sf FILE` puts the link into the folder in which it runs
  const isShort = only !== undefined && others.length === 0 && args.values.size === 0;
  return isShort
    ? [{ kind: 'copy', sources: [only], to: HERE, moves: false }]
    : copies(words, false);
};

/** Options of rsync that take a value. */
const RSYNC_VALUED = `
  -e --rsh -f --filter --exclude --include --exclude-from --include-from --files-from --log-file
  --partial-dir --backup-dir --compare-dest --link-dest -B -T --temp-dir --max-size --min-size
  --bwlimit --timeout --chmod --rsync-path`;
const rsync: ReadLosses = (words) => {
  const args = readArguments(words, RSYNC_VALUED);
  const to = args.operands.at(-1);
  if (to === undefined || args.operands.length < 2 || hasOption(args, '-n --dry-run')) return [];
  const isRemote = to.kind === 'path' && /^([^/]+:|rsync:)/.test(to.text);
  const sources = args.options.includes('--remove-source-files') ? args.operands.slice(0, -1) : [];
  return fileLosses(isRemote ? sources : [...sources, to]);
};

/** `of=FILE` */
const dd: ReadLosses = (words) =>
  words.flatMap((word) => {
    if (word.kind === 'unknown') return fileLosses([word]);
    const file = /^of=(.+)$/s.exec(word.text)?.[1];
    return file === undefined ? [] : fileLosses([{ kind: word.kind, text: file }]);
  });

/** `tee`, `sponge`: they overwrite their operands unless they append. */
const overwrites: ReadLosses = (words) => {
  const args = readArguments(words);
  return hasOption(args, '-a --append') ? [] : fileLosses(args.operands);
};

const CHANGING: Rows = {
  'rm grm unlink gunlink': { losses: { operands: '' }, deletes: 'always' },
  'srm trash trash-put del-cli': { losses: { operands: '' }, deletes: 'always' },
  'shred gshred': { losses: { operands: '-n --iterations -s --size' }, deletes: 'always' },
  rimraf: { losses: { operands: '--tmp --max-retries --retry-delay' }, deletes: 'always' },
  'truncate gtruncate': { losses: { operands: '-s --size -r --reference' } },
  'mv gmv': { losses: (words) => copies(words, true), deletes: 'always' },
  'cp gcp': { losses: (words) => copies(words, false) },
  'install ginstall': { losses: install },
  'ln gln': { losses: link },
  rsync: {
    losses: rsync,
    deletes: (words) => words.some((word) => word?.startsWith('--del') === true),
    risky: '-e --rsh --rsync-path --files-from --log-file --write-batch',
  },
  'dd gdd': { losses: dd },
  'tee gtee': {
    losses: overwrites,
    risky: (word) => word !== '/dev/null' && !/^-[aip]+$/.test(word),
  },
  sponge: { losses: overwrites },
};

// ---- Editing ----

/** The operands of an editor in place, after the script if no option carries one. */
const editedInPlace = (
  args: Arguments,
  script = /^(-[a-zA-Z]*[efE]|--expression|--file)/,
): readonly FileLoss[] => {
  const carriesScript = args.options.some((option) => script.test(option));
  return fileLosses(carriesScript ? args.operands : args.operands.slice(1));
};

const sedLosses: ReadLosses = (words) => {
  const args = readArguments(words, '-e -f -l --expression --file --line-length');
  const isInPlace = args.options.some((option) => /^(-[aElnrsuz]*[iI]|--i)/.test(option));
  return [
    ...(isInPlace ? editedInPlace(args) : []),
    ...productsInScript(words, /(?:^|[/;{}\n\d$, ])[gpiI\d]*w\s*([^\s;}]+)/g),
  ];
};

const awkLosses: ReadLosses = (words) => {
  const args = readArguments(words, '-i --include -f --file -v --assign -F --field-separator');
  const isInPlace = listValues(args, '-i --include').some(
    (value) => value.kind !== 'path' || value.text.startsWith('inplace'),
  );
  return [
    ...(isInPlace ? editedInPlace(args, /^(-f|--file)/) : []),
    ...productsInScript(words, />\s*"([^"]+)"/g),
  ];
};

const yqLosses: ReadLosses = (words) => {
  const args = readArguments(words, '-o -p');
  return hasOption(args, '-i --inplace --in-place') ? editedInPlace(args, /^--from-file/) : [];
};

/** `perl` and `ruby`. */
const perlLosses: ReadLosses = (words) => {
  const args = readArguments(words, '-e -E');
  return args.options.some((option) => /^-[acnlpsuwW0-7]*i/.test(option))
    ? editedInPlace(args)
    : [];
};

/** Options of `sed` that neither run nor write anything. */
const SED_OPTION =
  /^(-[nErsuz]+|-e|--(quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug|expression))$/;
/** The lines to which a command of `sed` applies. */
const SED_ADDRESS = /^(\d+|\$|\/[^/\n\\]*\/)?(,(\d+|\$|\/[^/\n\\]*\/))?/;

/**
 * Whether a script can only print, delete, quit and replace. `s///e` runs its result, `w` writes
 * files.
 */
const isHarmlessScript = (script: string): boolean => {
  const command = script.replace(SED_ADDRESS, '');
  if (/^[pdq]$/.test(command)) return true;
  const delimiter = /^s([/|#,:@])/.exec(command)?.[1];
  if (delimiter === undefined || /[\n;{}]/.test(command)) return false;
  const parts = command.replace(/\\./gs, '').split(delimiter);
  return parts.length === 4 && /^[gpiI\d]*$/.test(parts[3] ?? '');
};

/** Whether a word of `sed` may run a program or write a file. */
const isRiskyInSed = (word: string, words: Words, index: number): boolean => {
  const isOption = (one: string | null | undefined): boolean => one?.startsWith('-') === true;
  if (isOption(word)) return !SED_OPTION.test(word);
  const before = words[index - 1];
  if (before === '-e' || before === '--expression') return !isHarmlessScript(word);
  const hasScriptOption = words.some((one) => one === '-e' || one === '--expression');
  // without such an option the first operand is the script
  const isFirstOperand = words.findIndex((one, at) => at > 0 && !isOption(one)) === index;
  return !hasScriptOption && isFirstOperand && !isHarmlessScript(word);
};

const isRiskyInAwk = (word: string): boolean =>
  /system|getline|[|>]|^-[dDEfiloWp]|^--(d|e|fil|i|lo|pr)|@/.test(word);

const EDITING: Rows = {
  'sed gsed': {
    reads: 'always',
    risky: isRiskyInSed,
    losses: sedLosses,
  },
  'awk gawk mawk': {
    // only a separator, a variable and a program without an effect
    reads: (words) => words.slice(1).every((word) => !/^-[^Fv]/.test(word) && !isRiskyInAwk(word)),
    risky: isRiskyInAwk,
    losses: awkLosses,
  },
  yq: {
    risky: '-i --inplace --in-place -s --split-exp',
    losses: yqLosses,
  },
  'perl ruby': {
    repository: 'script',
    losses: perlLosses,
  },
  patch: {
    losses: {
      makes: '-o --output -r --reject-file',
      makesOperand: { at: 0, valued: '-p -d -i -o -r -B -F -z --input --strip' },
    },
  },
  ed: { risky: anyWord, losses: { operands: '-p --prompt' } },
  red: { losses: { operands: '-p --prompt' } },
  ex: { risky: anyWord, losses: { operands: '-c -S -u -t --cmd' } },
  'vi vim view nvim nano': { risky: (word) => /^[+-]/.test(word) },
  'less more emacs': { risky: anyWord },
};

// ---- Looking and searching ----

/** The roots of `find -delete`, and the files that `-fprint` and its like write. */
const findLosses: ReadLosses = (words) => {
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
  // the folders stand behind the options, before the first test or action
  const start = texts.findIndex(
    (text, index) => !FIND_OPTION.test(text ?? '') && texts[index - 1] !== '-D',
  );
  const end = texts.findIndex((text, index) => index >= start && /^([-(!]|,$)/.test(text ?? ''));
  const roots = words.slice(start, end);
  return fileLosses([...written, ...(roots.length === 0 ? [HERE] : roots)]);
};

/** Options of `find` that stand before the folders. */
const FIND_OPTION = /^-([dEfHLPsxX]+|O\d|D|-)$/;

/** Words of `find` that are no tests: with these alone it deletes everything in the folder. */
const FIND_EVERYTHING = wordSet(`
  -delete -depth -xdev -mount -mindepth -maxdepth -true -a -and -noleaf -follow -daystart -warn
  -nowarn -ignore_readdir_race -print -print0 -printf -ls -fprint -fprint0 -fprintf -fls`);

/** Whether `find` has no test but for files (`-type f`), so that it deletes everything. */
const findsAll = (words: Words): boolean =>
  words.slice(1).every((word, index, all) => {
    if (word === null || !word.startsWith('-')) return true;
    if (FIND_OPTION.test(word) || FIND_EVERYTHING.has(word)) return true;
    return word === '-type' && /f/.test(all[index + 1] ?? '');
  });

/**
 * Replaces words that contain the placeholder by null, since their value is known only at run time.
 */
export const withPlaceholder = (words: Words, placeholder: string): Words =>
  words.map((word) => (word?.includes(placeholder) ? null : word));

/** The commands after `-exec` and similar options: `;` ends one, with `find` also `{} +`. */
const runsAfter = (words: Words, options: RegExp, program: 'find' | 'fd'): Meaning => {
  const commands = words.flatMap((word, index): readonly Words[] => {
    if (word === null || !options.test(word)) return [];
    const rest = words.slice(index + 1);
    const end = rest.findIndex(
      (one, at) => one === ';' || (program === 'find' && one === '+' && rest[at - 1] === '{}'),
    );
    return [withPlaceholder(end < 0 ? rest : rest.slice(0, end), '{}')];
  });
  const runs = words.findIndex((word) => word !== null && options.test(word)) + 1;
  return commands.length === 0 ? {} : { commands, runs };
};

const FD_RUNS = /^(-[HIusigFalLp01q]*[xX]|--exec|--exec-batch)$/;

/** `-Hx COMMAND`; the command may also stand in the same word: `-xCOMMAND`, `--exec=COMMAND`. */
const fdRuns = (words: Words): Meaning => {
  let isInCommand = false;
  for (const word of words) {
    if (isInCommand) isInCommand = word !== ';';
    else if (/^(-[HIusigFalLp01q]*[xX].|--exec(-batch)?=)/s.test(word ?? ''))
      return { unclear: 'fd runs what stands in its option', mayRun: 1 };
    else isInCommand = FD_RUNS.test(word ?? '');
  }
  return runsAfter(words, FD_RUNS, 'fd');
};

const LINES = /^ (?:head|tail)( -\d+| -[nc] ?[+-]?\d+| -[qv])*$/;

const READING: Rows = {
  [`
      ls grep egrep fgrep stat du df pwd basename dirname realpath readlink which uname whoami id
      ps pgrep cmp comm cut tr nl column md5sum sha1sum sha256sum cksum od hexdump strings tac rev
      seq sleep true false echo nproc uptime free fold fmt paste join expand unexpand base64 b2sum
      sha224sum sha384sum sha512sum sum zcat`]: {
    reads: 'always',
  },
  cat: { reads: 'always', filters: /^ cat( -[AbenstuvET]+)*$/ },
  'head tail': { reads: 'always', filters: LINES },
  wc: { reads: 'always', filters: /^ wc( -[clmwL]+)*$/ },
  'sort gsort': {
    reads: 'always',
    filters: /^ sort( -[bdfghiMnrRuV]+)*$/,
    risky: '-T --compress-program --files0-from --temporary-directory',
    losses: { writes: '-o --output' },
  },
  uniq: {
    reads: 'always',
    filters: /^ uniq( -[cdiu]+)*$/,
    losses: {
      makesOperand: { at: 1, valued: '-f -s -w --skip-fields --skip-chars --check-chars' },
    },
  },
  'shuf gshuf': { reads: 'always', losses: { writes: '-o --output' } },
  'find gfind': {
    reads: 'always',
    runs: (words) => runsAfter(words, /^(-exec|-execdir|-ok|-okdir|--exec|--exec-batch)$/, 'find'),
    risky: '-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls',
    losses: findLosses,
    deletes: findsAll,
  },
  'fd fdfind': {
    reads: 'always',
    runs: fdRuns,
    risky: '-x -X --exec --exec-batch',
  },
  rg: { reads: 'always', risky: '--pre --hostname-bin --search-zip -z' },
  ag: { risky: '--pager -z' },
  ack: { risky: '--pager --ackrc' },
  file: { reads: 'always', risky: '-C -m --compile --magic-file' },
  date: {
    reads: 'always',
    risky: (word) =>
      /^\d/.test(word) || (!word.startsWith('-I') && matchesOption(word, '-s -f --set --file')),
  },
  diff: { reads: 'always', risky: '-l --paginate' },
  jq: { reads: 'always', risky: '-f -L --from-file --library-path' },
  xxd: {
    reads: 'always',
    risky: '-r -revert',
    losses: { makesOperand: { at: 1, valued: '-c -g -l -o -s -n -cols -len -seek' } },
  },
  tree: { reads: 'always', risky: '-o -R', losses: { makes: '-o' } },
  'bat batcat': { risky: '--pager --config-file' },
  man: { risky: '-P -H -C --pager --html --config-file' },
  fzf: { risky: '--preview --bind --listen --history' },
};

// ---- Packing and converting ----

const SUFFIX = /\.(gz|bz2|xz|zst|lz4|lzma|Z)$/;

/** `gzip -f FILE` deletes FILE, and replaces FILE.gz; the same the other way round. */
const compressed = (words: readonly FileWord[], usual: string): readonly FileLoss[] => {
  const args = readArguments(words, '-S --suffix -o -D');
  const staysThere = hasOption(args, '-c -t --stdout --to-stdout --test');
  if (staysThere || !hasOption(args, '-f --force')) return [];
  const named = listValues(args, '-S --suffix').at(-1) ?? { kind: 'path', text: usual };
  const suffix = named.kind === 'path' ? named.text : usual;
  const others = args.operands.map((file): FileWord => {
    if (file.kind !== 'path') return UNKNOWN;
    const text = SUFFIX.test(file.text) ? file.text.replace(SUFFIX, '') : file.text + suffix;
    return { kind: 'path', text };
  });
  return products([...args.operands, ...others]);
};

/** `tar cf FILE`, `tar -czf FILE`, `tar -c --file=FILE`. */
const tarLosses: ReadLosses = (words) => {
  const [first, ...rest] = words;
  const cluster = first?.kind === 'path' && /^[a-zA-Z]+$/.test(first.text) ? first.text : '';
  if (cluster !== '') return /[cru]/.test(cluster) && /f/.test(cluster) ? products([rest[0]]) : [];
  const args = readArguments(words, '-f --file');
  const isMade = hasOption(
    args,
    '-c -r -u -A --create --append --update --catenate --concatenate --delete',
  );
  return isMade ? products(listValues(args, '-f --file')) : [];
};

/** `split FILE PREFIX` and `csplit -f PREFIX` make many files with a prefix. */
const pieces = (prefix: FileWord): readonly FileLoss[] =>
  prefix.kind === 'path'
    ? products([{ kind: 'pattern', text: `${prefix.text.replace(/[\\*?[\]{}]/g, '\\$&')}*` }])
    : products([prefix]);

const SPLIT_VALUED = `
  -a -b -C -l -n -t --bytes --lines --number --line-bytes --suffix-length --additional-suffix
  --separator --filter`;
const splitLosses: ReadLosses = (words) => {
  const { operands } = readArguments(words, SPLIT_VALUED);
  return pieces(operands[1] ?? { kind: 'path', text: 'x' });
};

const csplitLosses: ReadLosses = (words) => {
  const args = readArguments(words, '-f --prefix -n --digits -b --suffix-format');
  const prefix = listValues(args, '-f --prefix').at(-1);
  return pieces(prefix ?? { kind: 'path', text: 'xx' });
};

const PACKING: Rows = {
  'tar bsdtar': {
    // the first word may have its letters without a hyphen: `tar xPf FILE`
    risky: (word, _words, index) =>
      (index === 1 && /^[a-zA-Z]*[IFPC]/.test(word)) ||
      matchesOption(
        word,
        `
        -I -F --to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command
        --info-script --new-volume-script --absolute-names -P -C --directory`,
      ),
    losses: tarLosses,
  },
  zip: {
    risky: '-T --test --unzip-command -TT',
    losses: { makesOperand: { at: 0, valued: '-x -i -b -P -s -t -n' } },
  },
  unzip: { risky: '-d -o' },
  '7z': { losses: { makesOperand: { at: 1 } } },
  'gzip gunzip': { losses: (words) => compressed(words, '.gz') },
  'bzip2 bunzip2': { losses: (words) => compressed(words, '.bz2') },
  'xz unxz': { losses: (words) => compressed(words, '.xz') },
  zstd: {
    losses: (words) => [...compressed(words, '.zst'), ...lossesByWords({ makes: '-o' }, words)],
  },
  lz4: { losses: (words) => compressed(words, '.lz4') },
  split: {
    risky: '--filter',
    losses: splitLosses,
  },
  csplit: {
    losses: csplitLosses,
  },
  sqlite3: {
    risky: (word) =>
      /^\s*\.|\n\s*\.|writefile|load_extension|\bedit\s*\(/i.test(word) ||
      matchesOption(word, '-cmd -init'),
    losses: { makesOperand: { at: 0, valued: '-cmd -init -separator -nullvalue' } },
  },
  ffmpeg: {
    losses: { makesOperand: { at: -1, valued: '-i -f -t -ss -c -r -s -vf -af -map -crf' } },
  },
  'convert magick sox qpdf': { losses: { makesOperand: { at: -1 } } },
  pdftotext: { losses: { makesOperand: { at: 1, valued: '-f -l -r -x -y' } } },
  'gpg iconv xmllint': { losses: { makes: '-o --output' } },
  pandoc: { losses: { writes: '-o --output' } },
  dot: { losses: { makes: '-o' } },
  openssl: {
    risky: '-engine -out -keyout -CAserial -writerand -config',
    losses: { writes: '-out -keyout -CAserial -writerand' },
  },
  pg_dump: { losses: { makes: '-f --file' } },
  mysqldump: { losses: { makes: '-r --result-file' } },
};

export const FILE_PROGRAMS = [CHANGING, EDITING, READING, PACKING];
