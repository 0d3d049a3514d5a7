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
  fileText,
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

import {
  anyWord,
  isWholeOption,
  type Meaning,
  matchesOption,
  type Rows,
  type Words,
} from './program.js';

// ---- Deleting, moving and writing ----

const INSTALL_VALUED = '-t -S -m --mode -o --owner -g --group';
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
  const isShort =
    only !== undefined &&
    others.length === 0 &&
    listValues(args, '-t --target-directory').length === 0;
  return isShort
    ? [{ kind: 'copy', sources: [only], to: HERE, moves: false }]
    : copies(words, false);
};

/** Options of rsync that take a value. */
const RSYNC_VALUED = `
  -e --rsh -f --filter --exclude-from --include-from --files-from --log-file
  --partial-dir --backup-dir --compare-dest --copy-dest --link-dest -B -T --temp-dir --max-size
  --min-size --bwlimit --timeout --chmod --chown --rsync-path --suffix --info --out-format
  --max-delete --port -M`;
const rsync: ReadLosses = (words) => {
  const args = readArguments(words, RSYNC_VALUED);
  if (args.operands.length < 2 || hasOption(args, '-n --dry-run')) return [];
  const changed = args.options.includes('--remove-source-files')
    ? args.operands
    : args.operands.slice(-1);
  // `host:path` lies elsewhere
  return fileLosses(changed.filter((word) => !/^[^/]+:/.test(fileText(word))));
};

/** `of=FILE` */
const dd: ReadLosses = (words) =>
  words.flatMap((word) => {
    if (word.kind === 'unknown') return fileLosses([word]);
    const file = /^of=(.+)/s.exec(word.text)?.[1];
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
    risky: '-e --rsh --rsync-path --files-from --log-file --write-batch --only-write-batch',
  },
  'dd gdd': { losses: dd },
  'tee gtee': {
    losses: overwrites,
    risky: (word) => word !== '/dev/null' && !/^-[aip]+$/.test(word),
  },
  sponge: { losses: overwrites },
};

// ---- Editing ----

/** The files of an editor: its operands, after the script if no option carries one. */
const editedFiles = ({ options, operands }: Arguments, script: RegExp): readonly FileWord[] =>
  options.some((option) => script.test(option)) ? operands : operands.slice(1);

/** The lines to which a command of `sed` applies. */
const SED_ADDRESS = /^(\d+|\$|\/[^/\n\\]*\/)(,(\d+|\$|\/[^/\n\\]*\/))?/;

/**
 * Whether a script can only print, delete, quit and replace. `s///e` runs its result, `w` writes
 * files.
 */
const isHarmlessScript = (script: string): boolean => {
  const command = script.replace(SED_ADDRESS, '');
  if (/^[pdq]$/.test(command)) return true;
  // without escapes, of which none may be the delimiter
  return /^s([/|#,:@])((?!\1).)*\1((?!\1).)*\1[gpiI\d]*$/s.test(
    command.replace(/(?<!^s)\\./gs, ''),
  );
};

/** Cuts `-i` from what may follow it in the same word: the suffix of copies, which are no options. */
const cutSuffix = (words: readonly FileWord[], inPlace: RegExp): readonly FileWord[] =>
  words.map((word) =>
    word.kind === 'path' ? { kind: 'path', text: inPlace.exec(word.text)?.[0] ?? word.text } : word,
  );

const SED_IN_PLACE = /^-[aEnrsuz]*[iI]/;
const sedLosses: ReadLosses = (words) => {
  const args = readArguments(
    cutSuffix(words, SED_IN_PLACE),
    '-e -f -l --expression --file --line-length',
  );
  const isInPlace = args.options.some(
    (option) => SED_IN_PLACE.test(option) || option.startsWith('--i'),
  );
  const files = editedFiles(args, /^(-[a-zA-Z]*[ef]|--(e|fi))/);
  const scripts = [
    ...listValues(args, '-e --expression'),
    ...args.operands.slice(0, args.operands.length - files.length),
  ].filter((word) => !isHarmlessScript(fileText(word)));
  return [
    ...(isInPlace ? fileLosses(files) : []),
    ...productsInScript(scripts, /(?:^|[/|#:@!;{}\n\d$, ])[gpiI\d]*w\s*([^\s;}]+)/g),
  ];
};

const awkLosses: ReadLosses = (words) => {
  const args = readArguments(
    words,
    '-i --include -f --file -e --source -v --assign -F --field-separator',
  );
  const isInPlace = listValues(args, '-i --include').some(
    (value) => value.kind !== 'path' || value.text.startsWith('inplace'),
  );
  return [
    ...(isInPlace ? fileLosses(editedFiles(args, /^(-[a-zA-Z]*[ef]|--(fil|so))/)) : []),
    ...productsInScript(words, />\s*"([^"]+)"/g),
  ];
};

const yqLosses: ReadLosses = (words) => {
  const args = readArguments(words, '-o -p --from-file');
  if (!hasOption(args, '-i --inplace --in-place')) return [];
  // `yq -iP FILE` has no script
  return fileLosses(args.operands.length === 1 ? args.operands : editedFiles(args, /--from-file/));
};

const PERL_IN_PLACE = /^-[acglnpsuwW0-7]*i/;
/** `perl` and `ruby`. */
const perlLosses: ReadLosses = (words) => {
  const args = readArguments(cutSuffix(words, PERL_IN_PLACE), '-e -E -M -m -I -r');
  return args.options.some((option) => PERL_IN_PLACE.test(option))
    ? fileLosses(editedFiles(args, /^-\w*[eE]/))
    : [];
};

/** Options of `sed` that neither run nor write anything. */
const SED_OPTION =
  /^(-[nErsuz]+|-e|--(quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug|expression))$/;
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
    reads: (words) => words.every((word) => !/^-[^Fv]/.test(word) && !isRiskyInAwk(word)),
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
      makesOperand: {
        at: 0,
        valued: `
        -p -d -i -o -r -B -F -z -D --input --strip --directory --output --reject-file --fuzz`,
      },
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
  const texts = words.map(fileText);
  const written = texts.flatMap((text, index) =>
    /^-f(print0?|printf|ls)$/.test(text) ? [words[index + 1] ?? UNKNOWN] : [],
  );
  if (!texts.includes('-delete')) return fileLosses(written);
  // `find` goes from left to right: a name behind `-delete` spares nothing
  const before = texts.slice(0, texts.indexOf('-delete'));
  const nameAt = before.findIndex((text) => text === '-name' || text === '-iname');
  const pattern = nameAt < 0 ? undefined : words[nameAt + 1];
  const isAlternative = texts.some((text) => /^(-or?|,|!|-not)$/.test(text));
  // `-name '*.pyc'`: all that is deleted is made again
  const deletesGenerated = pattern?.kind === 'path' && !isAlternative && isGenerated(pattern.text);
  if (deletesGenerated) return fileLosses(written);
  // the folders stand behind the options, before the first test or action
  const start = texts.findIndex(
    (text, index) => !FIND_OPTION.test(text) && texts[index - 1] !== '-D',
  );
  const end = texts.findIndex((text, index) => index >= start && /^([-(!]|,$)/.test(text));
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
  words.every((word, index, all) => {
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
    if (!options.test(word ?? '')) return [];
    const rest = words.slice(index + 1);
    const end = rest.findIndex(
      (one, at) => one === ';' || (program === 'find' && one === '+' && rest[at - 1] === '{}'),
    );
    return [withPlaceholder(end < 0 ? rest : rest.slice(0, end), '{}')];
  });
  const startsAt = words.findIndex((word) => options.test(word ?? '')) + 1;
  return commands.length === 0 ? {} : { commands, startsAt };
};

const FD_RUNS = /^(-[HIusigFalLp01q]*[xX]|--exec|--exec-batch)$/;

/** `-Hx COMMAND`; the command may also stand in the same word: `-xCOMMAND`, `--exec=COMMAND`. */
const fdRuns = (words: Words): Meaning => {
  let isInCommand = false;
  for (const word of words) {
    if (isInCommand) isInCommand = word !== ';';
    else if (/^(-[HIusigFalLp01q]*[xX].|--exec(-batch)?=)/s.test(word ?? ''))
      return { unclear: 'fd runs what stands in its option', mayStartAt: 1 };
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
    runs: (words) => runsAfter(words, /^-(exec|ok)(dir)?$/, 'find'),
    risky: '-delete -exec -execdir -ok -okdir',
    losses: findLosses,
    deletes: findsAll,
  },
  'fd fdfind': {
    reads: 'always',
    runs: fdRuns,
    risky: '-x -X --exec-batch',
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
    risky: '-r',
    losses: {
      makesOperand: { at: 1, valued: '-c -g -l -o -s -n -R -cols -len -seek -groupsize -name' },
    },
  },
  tree: { reads: 'always', risky: '-R', losses: { makes: '-o' } },
  'bat batcat': { risky: '--pager --config-file' },
  man: { risky: '-P -H -C --pager --html --config-file' },
  fzf: { risky: '--preview --bind --listen --history' },
};

// ---- Packing and converting ----

const SUFFIX = /\.(gz|bz2|xz|zst|lz4|lzma|Z)$/;

/**
 * `gzip -f FILE` deletes FILE, and replaces FILE.gz; the same the other way round. `deletes`: the
 * option without which the program keeps FILE.
 */
const compressed = (
  words: readonly FileWord[],
  usual: string,
  deletes?: string,
): readonly FileLoss[] => {
  const args = readArguments(words, '-S --suffix -D');
  const staysThere = hasOption(args, '-c -t --stdout --to-stdout --test');
  if (staysThere || !hasOption(args, '-f --force')) return [];
  const named = listValues(args, '-S --suffix').at(-1) ?? { kind: 'path', text: usual };
  const others = args.operands.map((file): FileWord => {
    if (file.kind !== 'path' || named.kind !== 'path') return UNKNOWN;
    const plain = file.text.replace(/\.t(gz|bz2?|xz|zst)$/, '.tar').replace(SUFFIX, '');
    return { kind: 'path', text: plain === file.text ? plain + named.text : plain };
  });
  const isKept = deletes === undefined ? hasOption(args, '-k --keep') : !hasOption(args, deletes);
  return products([...(isKept ? [] : args.operands), ...others]);
};

/** `tar cf FILE`, `tar -czf FILE`, `tar -c --file=FILE`. */
const tarLosses: ReadLosses = (words) => {
  const [first, ...rest] = words;
  const cluster = fileText(first);
  if (/^[a-zA-Z]+$/.test(cluster))
    return /[cruA]/.test(cluster) && /f/.test(cluster) ? products([rest[0]]) : [];
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
  const args = readArguments(words, '-f --prefix -b');
  const prefix = listValues(args, '-f --prefix').at(-1);
  return pieces(prefix ?? { kind: 'path', text: 'xx' });
};

/** `7z a ARCHIVE FILES`; other commands only read the archive. */
const archived: ReadLosses = (words) => {
  const [command, archive] = readArguments(words).operands;
  return /^(a|d|rn|u)$/.test(fileText(command)) ? products([archive]) : [];
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
    risky: '-T --test --unzip-command',
    losses: { makesOperand: { at: 0, valued: '-x -i -b -P -s -t -n' } },
  },
  unzip: { risky: '-d -o' },
  '7z': { losses: archived },
  'gzip gunzip': { losses: (words) => compressed(words, '.gz') },
  'bzip2 bunzip2': { losses: (words) => compressed(words, '.bz2') },
  'xz unxz': { losses: (words) => compressed(words, '.xz') },
  zstd: {
    losses: (words) => {
      const made = lossesByWords({ makes: '-o' }, words);
      return made.length > 0 ? made : compressed(words, '.zst', '--rm');
    },
  },
  lz4: { losses: (words) => compressed(words, '.lz4', '--rm') },
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
  'convert ffmpeg magick sox qpdf': { losses: { makesOperand: { at: -1 } } },
  pdftotext: {
    losses: {
      makesOperand: {
        at: 1,
        valued: '-f -l -r -x -y -W -H -fixed -enc -eol -opw -upw -colspacing',
      },
    },
  },
  'gpg iconv xmllint': { losses: { makes: '-o --output' } },
  pandoc: { losses: { writes: '-o --output' } },
  dot: { losses: { makes: '-o' } },
  openssl: {
    risky: (word) => isWholeOption(word, '-engine -out -keyout -CAserial -writerand -config'),
    losses: { writes: '-out -keyout -CAserial -writerand' },
  },
  pg_dump: { losses: { makes: '-f --file' } },
  mysqldump: { losses: { makes: '-r --result-file' } },
};

export const FILE_PROGRAMS = [CHANGING, EDITING, READING, PACKING];
