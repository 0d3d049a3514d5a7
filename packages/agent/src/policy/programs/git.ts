/**
 * The row of git, and one row for each of its commands: how far it changes the repository, what it
 * destroys, runs and reaches.
 */

import { listWords, namedRows, settingCommand, settingKey } from '../paths.js';
import {
  copies,
  fileText,
  hasOption,
  lossesByWords,
  products,
  type ReadLosses,
  readArguments,
} from './file-losses.js';
import {
  moveTo,
  NO_MOVE,
  type ReadMove,
  readCheckout,
  readMerge,
  readPick,
  readRebase,
  readReset,
  readRestore,
  readStash,
  readSwitch,
  UNLIKE_INDEX,
  UNLIKE_REVISION,
} from './git-moves.js';
import {
  firstOperand,
  gitCommand,
  hasGitOption,
  hasPaths,
  isOption,
  listOperands,
  makesBranch,
  mayBegin,
  onlyUnstages,
  readGitOptions,
} from './git-words.js';
import { asText, literal, NOT_KNOWN, optionTexts, textsMeaning } from './meanings.js';
import { isRemoteAddress, operandsIn } from './network.js';
import {
  type GitAccess,
  type IsRisky,
  isHarmlessOption,
  type Meaning,
  matchesOption,
  type NetworkPlace,
  type Rows,
  type Words,
} from './program.js';

/** One row. `words`: those after the command. Lists are separated by blanks. */
type Subcommand = {
  /** It only reads with such a first operand (`''`: without one), or with these words. */
  readonly reads?: RegExp | ((words: Words) => boolean);
  /** Options that neither run nor write anything. A command without any never counts as reading. */
  readonly harmless?: string;
  /** Words behind which any program may stand. */
  readonly risky?: string;
  /** What it runs; `at`: the index of the command. */
  readonly runs?: (words: Words, at: number) => Meaning;
  /** Options with which it destroys changes, or the reason to ask; null: it destroys nothing. */
  readonly destroys?: string | ((words: Words) => string | null);
  /** What it destroys is history, and no file of the working tree. */
  readonly endsHistory?: 'yes';
  /** Which files it may write. */
  readonly moves?: ReadMove;
  /** It reaches a remote. */
  readonly remote?: 'yes';
};

type Subcommands = Readonly<Record<string, Subcommand>>;

// ---- What the words of commands mean ----

/** Options of git that show differences, or choose and order commits. */
const SHOWS_CHANGES = `
  -p -u -s -w -b -a -z -M -U -S -G -W --patch --no-patch --unified --stat --numstat --shortstat
  --dirstat --summary --compact-summary --name-only --name-status --raw --minimal --patience
  --histogram --diff-algorithm --word-diff --word-diff-regex --color-words --color --no-color
  --no-ext-diff --no-textconv --no-renames --find-renames --find-copies --ignore-space-change
  --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --check --full-index --abbrev --text
  --function-context --inter-hunk-context --diff-filter --pickaxe-regex --relative --submodule
  --ignore-submodules --no-prefix`;
const CHOOSES_COMMITS = `
  -n -i -E -F -1 -g --oneline --graph --all --decorate --no-decorate --max-count --skip --since
  --until --after --before --author --committer --grep --all-match --invert-grep --format --pretty
  --reverse --no-merges --merges --first-parent --abbrev-commit --follow --date --branches --tags
  --remotes --topo-order --date-order --left-right --cherry-pick --boundary --full-history --parents
  --children --count --no-walk --walk-reflogs --not`;

const LISTS_BRANCHES =
  /^(?:-[arvl]+|--(?:all|list|remotes|verbose|show-current|contains|no-contains|merged|no-merged|points-at|sort|format|column|no-column|color|no-color|abbrev|no-abbrev)(?:=.*)?)$/;
const LISTS_TAGS =
  /^(?:-l|-n\d*|--(?:list|contains|no-contains|merged|no-merged|points-at|sort|format|column|no-column|color)(?:=.*)?)$/;

/** Options that make no pattern of a name: git makes a branch or a tag of it. */
const LOOKS = /^(?:-[rva]+|--(?:sort|format|column|no-column|color|no-color|abbrev|no-abbrev).*)$/;

/** `git branch` and `git tag` list unless they get a name and no option that makes it a pattern. */
const lists = (words: Words, options: RegExp): boolean =>
  words.every((word) => !isOption(word) || options.test(word ?? '')) &&
  (words.every(isOption) || words.some((word) => isOption(word) && !LOOKS.test(word ?? '')));

const LOST = 'changes that were not committed could be lost';
const UNNAMED = 'commits that nothing names could be lost';

const rewritesHistory = (): string => 'it rewrites the history';

const PUSH_FORCES =
  '-f -d --force --force-with-lease --force-if-includes --mirror --prune --delete';

// ---- The rows ----

/**
 * They change nothing: the configuration is read-only for every command, `init` and `clone` make
 * another repository.
 */
const READING: Subcommands = {
  [`
      annotate archive check-attr check-mailmap check-ref-format cherry column config diff-files
      diff-index format-patch get-tar-commit-id help init mailinfo mailsplit patch-id
      range-diff request-pull show-branch show-index stripspace var verify-commit verify-pack
      verify-tag version whatchanged`]: {},
  status: {
    harmless: `
      -s -b -u -uno -uall --short --branch --porcelain --long --ignored --untracked-files`,
  },
  log: { harmless: `-L ${CHOOSES_COMMITS} ${SHOWS_CHANGES}` },
  diff: { harmless: `--cached --staged --merge-base --quiet --exit-code ${SHOWS_CHANGES}` },
  show: { harmless: `${CHOOSES_COMMITS} ${SHOWS_CHANGES}` },
  'rev-list': { harmless: `--objects --disk-usage ${CHOOSES_COMMITS}` },
  shortlog: { harmless: `-s -e --summary --numbered --email ${CHOOSES_COMMITS}` },
  'diff-tree': { harmless: `-r -t --root --no-commit-id ${SHOWS_CHANGES}` },
  blame: { harmless: '-L -w -s -l -t -e -M -C -p --porcelain --line-porcelain --date --abbrev' },
  grep: {
    harmless: `
      -n -i -l -L -c -w -v -h -H -E -F -P -G -e -A -B -C -W -q -o -r -a -I --line-number
      --ignore-case --files-with-matches --count --cached --untracked --heading --break --and --or
      --not --all-match --column --no-color --color --max-depth --show-function`,
  },
  'ls-files': {
    harmless: `
      -c -d -m -o -i -s -u -k -z -t -v -x -X --cached --deleted --modified --others --ignored
      --stage --unmerged --killed --exclude-standard --exclude --full-name --error-unmatch --eol`,
  },
  'ls-tree': { harmless: '-r -d -t -l -z --name-only --long --full-name --full-tree --abbrev' },
  'rev-parse': {
    harmless: `
      -q --verify --quiet --short --abbrev-ref --symbolic --symbolic-full-name --show-toplevel
      --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --all --branches
      --tags --remotes --is-inside-work-tree --is-inside-git-dir --is-bare-repository`,
  },
  'cat-file': { harmless: '-p -t -s -e' },
  describe: { harmless: '--tags --all --always --long --abbrev --dirty --match --exact-match' },
  'merge-base': { harmless: '-a --all --is-ancestor --fork-point --octopus --independent' },
  'for-each-ref': {
    harmless: '--format --sort --count --points-at --merged --no-merged --contains',
  },
  'show-ref': { harmless: '-s -d -q --head --heads --tags --hash --verify --abbrev' },
  'name-rev': { harmless: '--tags --refs --name-only --always' },
  'check-ignore': { harmless: '-v -q -n --verbose --quiet --non-matching --no-index' },
  'count-objects': { harmless: '-v -H --verbose --human-readable' },
  'ls-remote': { harmless: '-h -t -q --heads --tags --refs --quiet --symref', remote: 'yes' },
  clone: {
    harmless: `
      -b -q -v --branch --depth --single-branch --no-single-branch --no-tags --no-checkout --quiet
      --verbose --progress --bare`,
    risky: '-u',
  },
  difftool: {
    risky: '-t --tool --extcmd',
    runs: (words) => textsMeaning(optionTexts(words, '-x', '--extcmd'), 'git difftool'),
  },
};

/** They write refs, the index and loose objects, but no packs. */
const WRITING: Subcommands = {
  [`
      citool commit-tree gui merge-file merge-tree mktag mktree mv pack-refs replace rerere
      sparse-checkout stage symbolic-ref update-index write-tree`]: {},
  add: { harmless: '-A -u -v --all --update --verbose' },
  am: { moves: () => 'unknown' },
  apply: {
    reads: (words) =>
      !words.some((word) => word === null || word === '-3') &&
      !hasGitOption(words, '-N --index --cached --3way --intent-to-add'),
    destroys: (words) =>
      hasGitOption(words, '-R --reverse') &&
      !hasGitOption(words, '--check --stat --numstat --summary --cached')
        ? LOST
        : null,
  },
  bisect: {
    reads: /^(?:log|view|visualize)$/,
    risky: 'run visualize view',
    runs: (words, at) =>
      words[at + 1] === 'run' && words.length > at + 2
        ? { commands: [words.slice(at + 2)], startsAt: at + 2 }
        : {},
  },
  branch: {
    reads: (words) => lists(words, LISTS_BRANCHES),
    harmless: '-a -r -v --list --all --remotes --show-current --merged --no-merged',
    destroys: (words) =>
      hasGitOption(words, '-D') ||
      (hasGitOption(words, '-d --delete') && hasGitOption(words, '-f --force'))
        ? 'commits that are on no other branch could be lost'
        : null,
    endsHistory: 'yes',
  },
  checkout: {
    destroys: (words) =>
      hasGitOption(words, '-f -p -m --force --patch --merge --pathspec-from-file', /[bB].*/) ||
      hasPaths(words) ||
      // of two operands one names files, unless they make a branch from a commit
      (listOperands(words).length > 1 && !makesBranch(words))
        ? LOST
        : null,
    moves: readCheckout,
  },
  'checkout-index': { destroys: '-f --force', moves: () => moveTo([], UNLIKE_INDEX) },
  'cherry-pick revert': { moves: readPick },
  clean: {
    destroys: (words) =>
      // even without -f: the user's configuration may not require it
      hasGitOption(words, '-n --dry-run', /e.*/)
        ? null
        : 'files that git does not know could be lost',
  },
  commit: {
    harmless: `
      -m -a -s -v -q --message --all --signoff --quiet --verbose --amend --no-edit --allow-empty`,
  },
  fsck: { reads: (words) => !words.includes(null) && !hasGitOption(words, '--lost-found') },
  'hash-object': { reads: (words) => !words.includes(null) && !hasGitOption(words, '-w') },
  merge: { moves: readMerge },
  notes: { reads: /^(?:|list|show)$/ },
  push: {
    harmless: `
      -u -v -q -n --set-upstream --tags --follow-tags --dry-run --verbose --quiet --all`,
    destroys: (words) =>
      hasGitOption(words, PUSH_FORCES) ||
      // `+BRANCH` forces, `:BRANCH` deletes
      words.some((word) => /^(?:\+|:.)/.test(word ?? ''))
        ? 'commits of others could be lost'
        : null,
    endsHistory: 'yes',
    remote: 'yes',
  },
  'read-tree': {
    destroys: '-u --reset',
    moves: (operands, words) =>
      hasGitOption(words, '-u') ? moveTo(operands, UNLIKE_REVISION) : NO_MOVE,
  },
  rebase: {
    runs: (words) => textsMeaning(optionTexts(words, '-x', '--exec'), 'git rebase'),
    moves: readRebase,
  },
  reflog: {
    reads: /^(?!(?:expire|delete|drop|write)$)/,
    harmless: `${CHOOSES_COMMITS} ${SHOWS_CHANGES}`,
    destroys: (words) =>
      mayBegin(words, 'expire delete drop')
        ? 'the way back to earlier commits would be lost'
        : null,
    endsHistory: 'yes',
  },
  reset: { destroys: '--hard --merge --keep', moves: readReset },
  restore: {
    destroys: (words) => (onlyUnstages(words) ? null : LOST),
    moves: readRestore,
  },
  rm: { destroys: '-f --force' },
  stash: {
    reads: ([action]) => action === 'list' || action === 'show',
    harmless: SHOWS_CHANGES,
    destroys: ([action]) =>
      action === null || action === 'drop' || action === 'clear'
        ? 'what was stashed would be lost'
        : null,
    endsHistory: 'yes',
    moves: readStash,
  },
  switch: { destroys: '-f -m --force --merge --discard-changes', moves: readSwitch },
  tag: {
    reads: (words) => lists(words, LISTS_TAGS),
    harmless: '-l -n --list --contains --merged --no-merged --points-at --sort --format',
  },
  'update-ref': {
    destroys: (words) => (hasGitOption(words, '-d --stdin') ? UNNAMED : null),
    endsHistory: 'yes',
  },
  worktree: {
    reads: /^list$/,
    harmless: '--porcelain -v',
    destroys: (words) =>
      mayBegin(words, 'remove') && hasGitOption(words, '-f --force') ? LOST : null,
  },
};

/** They write packs of objects. */
const PACKING: Subcommands = {
  [`
      bundle credential daemon fast-export fast-import index-pack maintenance multi-pack-index
      pack-objects quiltimport receive-pack repack send-email send-pack svn unpack-objects
      upload-pack`]: {},
  fetch: {
    harmless: `
      -p -t -v -q -f --all --prune --tags --no-tags --depth --unshallow --verbose --quiet --force
      --dry-run --progress`,
    remote: 'yes',
  },
  'filter-branch': {
    risky: `
      --setup --tree-filter --index-filter --msg-filter --env-filter --commit-filter
      --parent-filter --tag-name-filter`,
    destroys: rewritesHistory,
    endsHistory: 'yes',
  },
  'for-each-repo': {
    runs: (words, at) => ({
      commands: [['git', ...words.slice(at + 1).filter((word) => !word?.startsWith('--'))]],
    }),
  },
  gc: {
    destroys: (words) =>
      hasGitOption(words, '--prune') && !words.includes('--prune=never') ? UNNAMED : null,
    endsHistory: 'yes',
  },
  mergetool: { risky: '-t --tool' },
  prune: {
    destroys: (words) => (hasGitOption(words, '-n --dry-run') ? null : UNNAMED),
    endsHistory: 'yes',
  },
  pull: {
    harmless: `
      -r -v -q --rebase --ff-only --no-rebase --tags --prune --autostash --verbose --quiet --depth`,
    moves: (_, words) => (words.includes('--help') ? NO_MOVE : 'unknown'),
    remote: 'yes',
  },
  remote: { reads: /^(?:|show|get-url)$/, harmless: '-v --verbose' },
  submodule: {
    reads: /^(?:|status|summary)$/,
    risky: 'foreach',
    runs: (words, at) => {
      const each = words.indexOf('foreach', at);
      if (each === -1) return {};
      let from = each + 1;
      while (words[from]?.startsWith('-')) from++;
      return asText(words, from, 'git submodule foreach');
    },
    destroys: (words) =>
      mayBegin(words, 'update deinit foreach') && hasGitOption(words, '-f --force') ? LOST : null,
  },
};

/** Commands that git itself does not have, so that an alias may have their name. */
const ADDED: Subcommands = {
  'filter-repo': { destroys: rewritesHistory, endsHistory: 'yes' },
};

/** All rows, by how far they change the repository. A name stands in one of them. */
export const SUBCOMMAND_ROWS = [
  ['read', READING],
  ['write', WRITING],
  ['writePacks', PACKING],
  [undefined, ADDED],
] as const;

type FoundSubcommand = Subcommand & { readonly access: GitAccess | undefined };
let subcommands: ReadonlyMap<string, FoundSubcommand> | undefined;

/** The commands with their rows. Made when the first command of git is judged. */
const listSubcommands = (): ReadonlyMap<string, FoundSubcommand> => {
  subcommands ??= new Map(
    SUBCOMMAND_ROWS.flatMap(([access, rows]) =>
      namedRows(rows).map(([name, row]) => [name, { access, ...row }] as const),
    ),
  );
  return subcommands;
};

/** The row of a command of git. */
export const findSubcommand = (name: string | null | undefined): FoundSubcommand | undefined =>
  listSubcommands().get(name ?? '');

/** Commands that reach a remote. */
export const listRemoteCommands = (): readonly string[] =>
  [...listSubcommands()].flatMap(([name, { remote }]) => (remote === undefined ? [] : [name]));

// ---- Questions about a command of git ----

/** Whether this is a command of git itself. Any other may be an alias. */
export const isGitCommand = (name: string): boolean => findSubcommand(name)?.access !== undefined;

/** How far a command of git changes the repository. One that is not known writes packs. */
const gitAccess = (words: Words): GitAccess => {
  const [command, ...rest] = gitCommand(words);
  if (command === undefined) return 'read';
  const { access = 'writePacks', reads } = findSubcommand(command) ?? {};
  const isReading = typeof reads === 'function' ? reads(rest) : reads?.test(firstOperand(rest));
  return isReading === true ? 'read' : access;
};

/** What a command of git would destroy, as the reason to ask; null if nothing. */
const gitDestroys = (words: Words): string | null => {
  const [command, ...rest] = gitCommand(words);
  if (command === null) return 'which command of git it is, is known only when it runs';
  const { destroys } = findSubcommand(command) ?? {};
  if (typeof destroys === 'function') return destroys(rest);
  return destroys !== undefined && hasGitOption(rest, destroys) ? LOST : null;
};

// ---- The row of git ----

/** The command that an alias on the command line stands for: `git -c alias.p=push p`. */
const aliasMeaning = (words: Words, settings: readonly string[], at: number): Meaning => {
  const name = words[at];
  const prefix = `alias.${name ?? ''}=`.toLowerCase();
  const value = settings
    .findLast((setting) => setting.toLowerCase().startsWith(prefix))
    ?.slice(prefix.length);
  if (value === undefined) return {};
  const rest = words.slice(at + 1);
  // it may stand for another alias
  const others = settings.filter((one) => !one.toLowerCase().startsWith(prefix));
  const before = ['git', ...others.flatMap((one) => ['-c', one])];
  if (!value.startsWith('!'))
    return { commands: [[...before, ...value.trim().split(/\s+/), ...rest]] };
  const more = literal(rest)?.join(' ');
  return more === undefined
    ? { unclear: `what git runs is ${NOT_KNOWN}` }
    : { texts: [`${value.slice(1)} ${more}`] };
};

const gitRuns = (words: Words): Meaning => {
  const { settings, at, unclear: setting } = readGitOptions(words);
  if (setting !== undefined) return { unclear: setting };
  const alias = aliasMeaning(words, settings, at);
  const run = findSubcommand(words[at])?.runs?.(words, at) ?? {};
  const programs = settings.flatMap((one) => {
    const [name = '', ...value] = one.split('=');
    const key = settingKey(name);
    const command = settingCommand(key, value.join('='));
    return command === null || key.startsWith('alias.') ? [] : [command];
  });
  const texts = [...(alias.texts ?? []), ...(run.texts ?? []), ...programs];
  const commands = [...(alias.commands ?? []), ...(run.commands ?? [])];
  const unclear = alias.unclear ?? run.unclear;
  return {
    ...(texts.length === 0 ? {} : { texts }),
    ...(commands.length === 0 ? {} : { commands }),
    ...(run.startsAt === undefined ? {} : { startsAt: run.startsAt }),
    ...(unclear === undefined ? {} : { unclear }),
  };
};

/** What git moves or writes as a file. The rows of its commands have what else it destroys. */
const gitLosses: ReadLosses = (words) => {
  const behind = (name: string, some = words): typeof words | null => {
    const at = some.findIndex((word) => fileText(word) === name);
    return at === -1 ? null : some.slice(at + 1);
  };
  const moved = behind('mv');
  if (moved !== null)
    return hasOption(readArguments(moved), '-n --dry-run') ? [] : copies(moved, true);
  const bundled = behind('create', behind('bundle') ?? []);
  if (bundled !== null) return products(readArguments(bundled).operands.slice(0, 1));
  const merged = behind('merge-file');
  if (merged !== null) {
    const args = readArguments(merged, '-L --marker-size');
    return hasOption(args, '-p --stdout') ? [] : products(args.operands.slice(0, 1));
  }
  // `-o` of other commands names no file: `ls-files -o`, `grep -o`, `status -uno`
  const isFile = ['archive', 'format-patch', 'index-pack'].some((name) => behind(name) !== null);
  return lossesByWords({ writes: isFile ? '-o --output' : '--output' }, words);
};

const RISKY = `
  -c -O -x --output --ext-diff --textconv --open-files-in-pager --exec --exec-path --config-env
  --upload-pack --receive-pack --no-index --template --git-dir --work-tree --namespace --paginate
  --edit`;

const isRisky: IsRisky = (word, words) =>
  matchesOption(word, RISKY) ||
  [...listSubcommands()].some(
    ([name, { risky }]) =>
      risky !== undefined &&
      words.includes(name) &&
      (matchesOption(word, risky) || listWords(risky).includes(word)),
  );

/** Options of git itself, before its command, with which it still reads. */
const READS_ITSELF = listWords('-C -P --no-pager --no-optional-locks --literal-pathspecs');

/** Whether git only reads: each of its options must be known to. */
const gitReads = (words: readonly string[]): boolean => {
  const { at } = readGitOptions(words);
  const [before, rest] = [words.slice(1, at), words.slice(at)];
  const end = rest.indexOf('--');
  const [command] = rest;
  const { harmless, remote } = findSubcommand(command) ?? {};
  return (
    harmless !== undefined &&
    remote === undefined &&
    command !== 'clone' &&
    gitAccess(words) === 'read' &&
    before.every((word, index) => before[index - 1] === '-C' || READS_ITSELF.includes(word)) &&
    rest
      .slice(0, end === -1 ? undefined : end)
      .every((word) => !/^[-+]./.test(word) || isHarmlessOption(word, harmless)) &&
    // the two dashes may be the value of an option, which ends nothing
    (end === -1 || !rest.slice(end + 1).some((word) => word.startsWith('-')))
  );
};

/** What git does by the network, in words; null if nothing. */
const gitByNetwork = (words: Words, { remotes }: NetworkPlace): string | null => {
  const [command, ...rest] = gitCommand(words);
  if (rest.includes('--help') || rest.includes('-h')) return null;
  if (command === 'clone') return operandsIn(rest).some(isRemoteAddress) ? 'git clone' : null;
  if (command === 'submodule')
    return rest.includes('update') && remotes().some(isRemoteAddress)
      ? 'git submodule update'
      : null;
  // options before the subcommand may name another repository
  if (findSubcommand(command)?.remote === undefined || words[1] !== command) return null;
  const [remote = ''] = operandsIn(rest);
  const addresses = /[/:]/.test(remote) ? [remote] : remotes();
  return addresses.some(isRemoteAddress) ? `git ${command}` : null;
};

export const GIT_PROGRAM: Rows = {
  git: {
    runs: gitRuns,
    losses: gitLosses,
    reads: gitReads,
    destroys: gitDestroys,
    repository: gitAccess,
    risky: isRisky,
    harmless: (subcommand) => findSubcommand(subcommand)?.harmless,
    network: gitByNetwork,
    messages: /^(?:-[a-zA-Z]*m|--message)$/,
  },
};
