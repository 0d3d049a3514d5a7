/**
 * What a command may do to git folders, decided by its words alone before it runs.
 * `repositoryAccess` says how far the sandbox opens them to it, `historyPurpose` what it does to
 * the history on purpose. The tool bash asks for both; the sandbox mounts accordingly, and
 * git-history.ts puts back what was lost by accident. `treeMoves` says how git moves the working
 * tree, so that protected files among the moved ones are decided about before it starts.
 */

import type { Needs, ParsedCommand, ShellFacts } from './judged-call.js';
import { findGitLoss, gitCommand } from './losses.js';
import { programName, wordSet } from './paths.js';

/**
 * How far a command may change the git folders of the workspace, decided by its words.
 *
 * 1. `read`: git folders are read-only. `write`: they can be changed, and what they hold is kept.
 *    `writePacks`: the same, for git commands that write packs of objects.
 * 2. `approved`: the policy asked about these words because they destroy history or are unclear,
 *    and the user allowed them. Nothing is kept from them.
 * 3. A git command that is not known to read counts as one that writes packs.
 */
export type RepositoryAccess = 'read' | 'write' | 'writePacks' | 'approved';

type Words = ParsedCommand['words'];

/** The widest access last. */
const width: Readonly<Record<RepositoryAccess, number>> = {
  read: 0,
  write: 1,
  writePacks: 2,
  approved: 3,
};

/** How far a command may change git folders. */
export const repositoryAccess = (shell: ShellFacts, needs: Needs | undefined): RepositoryAccess => {
  if (shell.unclear !== null || shell.commands.some(destroysHistory)) return 'approved';
  const accesses = shell.commands.map(({ words: written, readAs: words = written }) =>
    isGit(words) ? gitAccess(words) : programAccess(words),
  );
  if (needs === 'repository') accesses.push('writePacks');
  return accesses.reduce(
    (widest, access) => (width[access] > width[widest] ? access : widest),
    'read',
  );
};

/** What the words of a command do to the history on purpose. */
export type HistoryPurpose = {
  /** They end a stash, so that it is not put back: its changes are back in the files. */
  readonly takesStash: boolean;
  /** They change where the history of a shallow clone ends. */
  readonly movesBorder: boolean;
};

/** What a text does to the history on purpose, for those who put back what was lost. */
export const historyPurpose = ({ commands }: ShellFacts): HistoryPurpose => {
  const gits = commands
    .filter(({ words }) => isGit(words))
    .map(({ words, readAs = words }) => gitCommand(readAs));
  return {
    takesStash: gits.some(
      ([command, ...rest]) => command === 'stash' && /^(?:pop|branch)$/.test(firstOperand(rest)),
    ),
    movesBorder: gits.some(
      ([command, ...rest]) =>
        /^(?:fetch|pull)$/.test(command ?? '') &&
        rest.some((word) =>
          /^--(?:depth|deepen|shallow-.*|unshallow|update-shallow)(?:=|$)/.test(word ?? ''),
        ),
    ),
  };
};

// ---- Commands of git that move the working tree ----

/**
 * Which files a command of git may write, as questions to git. `revisions`: `{}` in a question
 * stands for each of them; those that name no commit are left out. The answers are names.
 */
export type TreeMove = {
  readonly revisions: readonly string[];
  readonly questions: readonly (readonly string[])[];
};

const DIFF = ['diff', '--name-only', '--no-renames', '--no-ext-diff', '--no-textconv', '-z'];
/** Files with changes that are not committed. */
const DIRTY = [...DIFF, 'HEAD'];
const TO_REVISION = [...DIFF, 'HEAD', '{}'];
/** What a branch has changed since it left this one. */
const THEIR_CHANGES = [...DIFF, 'HEAD...{}'];
const OF_COMMIT = [
  'log',
  '--name-only',
  '--no-renames',
  '--format=',
  '-m',
  '-z',
  '--no-walk',
  '{}',
];
const OF_RANGE = OF_COMMIT.filter((word) => word !== '--no-walk');
const STASHED = [...DIFF, '{}^1', '{}'];

type ReadMove = (operands: readonly string[], words: readonly string[]) => TreeMove | 'unknown';

const moveTo = (
  revisions: readonly string[],
  ...questions: readonly (readonly string[])[]
): TreeMove => ({ revisions, questions });
const NO_MOVE = moveTo([]);

const readSwitch = (operands: readonly string[], words: readonly string[]): TreeMove => {
  const discards = words.some((word) => /^(?:-f|--force|--discard-changes)$/.test(word));
  return moveTo(operands, TO_REVISION, ...(discards ? [DIRTY] : []));
};

/** To a branch, or paths: from a revision before them, or from the index. */
const readCheckout: ReadMove = (operands, words) => {
  const dashes = words.indexOf('--');
  const begins = words.some((word) => /^-[bBdtl]|^--(?:orphan|detach|track)/.test(word));
  if (dashes < 0 && (operands.length < 2 || begins)) {
    const move = readSwitch(operands, words);
    return moveTo(move.revisions, ...move.questions, [...DIFF, '--', ...operands]);
  }
  const [first, ...others] = operands;
  const count = words.slice(0, dashes).filter((word) => !isOption(word)).length;
  const isFirst = dashes < 0 || count > 0;
  const paths = isFirst ? others : operands;
  return isFirst && first !== undefined
    ? moveTo([first], [...DIFF, '{}', '--', ...paths], [...DIFF, '--', ...operands])
    : moveTo([], [...DIFF, '--', ...paths]);
};

const readMerge: ReadMove = (operands, words) => {
  if (words.includes('--abort')) return moveTo(['ORIG_HEAD'], TO_REVISION, DIRTY);
  if (words.some((word) => /^--(?:continue|quit)$/.test(word))) return NO_MOVE;
  return moveTo(operands.length === 0 ? ['@{upstream}'] : operands, THEIR_CHANGES);
};

const readRebase: ReadMove = (operands, words) => {
  const goesOn = words.some((word) => /^--(?:continue|skip|abort|quit)$/.test(word));
  const revisions = goesOn ? ['ORIG_HEAD', 'REBASE_HEAD'] : operands;
  return moveTo(
    revisions.length === 0 ? ['@{upstream}'] : revisions,
    TO_REVISION,
    [...DIFF, '{}...HEAD'],
    ...(goesOn ? [DIRTY] : []),
  );
};

/** `cherry-pick` and `revert`: the changes of commits. */
const readPick: ReadMove = (operands, words) => {
  if (words.some((word) => /^--(?:continue|skip|abort|quit)$/.test(word)))
    return moveTo(['CHERRY_PICK_HEAD', 'REVERT_HEAD', 'ORIG_HEAD'], OF_COMMIT, DIRTY);
  const ranges = operands.filter((word) => word.includes('..'));
  const questions = ranges.map((range) => [...OF_RANGE.slice(0, -1), range]);
  return moveTo(operands, OF_COMMIT, ...questions);
};

const readReset: ReadMove = (operands, words) => {
  const movesFiles = words.some((word) => /^--(?:hard|merge|keep)$/.test(word));
  return movesFiles
    ? moveTo(operands.length === 0 ? ['HEAD'] : operands, [...DIFF, '{}'])
    : NO_MOVE;
};

const readStash: ReadMove = ([action = 'push', name], words) => {
  const saves = /^(?:push|save)$/.test(action);
  if (!saves && !/^(?:pop|apply|branch)$/.test(action)) return NO_MOVE;
  if (saves) {
    const others = ['ls-files', '--others', '-z'];
    const takesNew = words.some((word) => /^(?:-u|-a|--all|--include-untracked)$/.test(word));
    return moveTo([], DIRTY, ...(takesNew ? [others] : []));
  }
  const entry = name === undefined || action === 'branch' ? 'stash@{0}' : name;
  return moveTo([/^\d+$/.test(entry) ? `stash@{${entry}}` : entry], STASHED);
};

/** Files that are not as the index has them, by paths. */
const readRestore: ReadMove = (operands, words) => {
  const sources = words.flatMap((word, at) => {
    if (word.startsWith('--source=')) return [word.slice('--source='.length)];
    return word === '-s' || word === '--source' ? [words[at + 1] ?? ''] : [];
  });
  return words.includes('--staged') && !words.includes('--worktree')
    ? NO_MOVE
    : moveTo(sources, [...DIFF, '--', ...operands], [...DIFF, '{}', '--', ...operands]);
};

/** What each command writes. Of a pull, and of patches, it is not known before. */
const moves: Readonly<Record<string, ReadMove>> = {
  am: () => 'unknown',
  checkout: readCheckout,
  'checkout-index': () => moveTo([], DIFF),
  'cherry-pick': readPick,
  merge: readMerge,
  pull: (_, words) => (words.includes('--help') ? NO_MOVE : 'unknown'),
  'read-tree': (operands, words) =>
    words.includes('-u') ? moveTo(operands, TO_REVISION) : NO_MOVE,
  rebase: readRebase,
  reset: readReset,
  restore: readRestore,
  revert: readPick,
  stash: readStash,
  switch: readSwitch,
};

/**
 * How the commands of a text move the working tree. `unknown`: one may write any file, since its
 * words are computed, or since commits that come meanwhile decide.
 */
export const treeMoves = ({ commands }: ShellFacts): readonly TreeMove[] | 'unknown' => {
  const read: TreeMove[] = [];
  let fetches = false;
  for (const { words } of commands) {
    if (!isGit(words)) continue;
    const [command, ...rest] = gitCommand(words);
    fetches ||= command === 'fetch';
    const readMove = command != null && Object.hasOwn(moves, command) ? moves[command] : undefined;
    if (readMove === undefined) continue;
    const known = rest.filter((word) => word !== null);
    const operands = known.filter((word) => word === '-' || !isOption(word));
    const named = operands.map((word) => (word === '-' ? '@{-1}' : word)); // the branch before
    const move = known.length < rest.length ? 'unknown' : readMove(named, known);
    if (move === 'unknown' || (fetches && move.questions.length > 0)) return 'unknown';
    read.push(move);
  }
  return read.filter(({ questions }) => questions.length > 0);
};

// ---- git itself ----

/**
 * `config` too: the configuration is read-only for every command. `init` and `clone` make another
 * repository.
 */
const READS = wordSet(
  'annotate archive blame cat-file check-attr check-ignore check-mailmap check-ref-format ' +
    'cherry clone column config ' +
    'count-objects describe diff diff-files diff-index diff-tree difftool for-each-ref ' +
    'format-patch fsck get-tar-commit-id ' +
    'grep help init log ls-files ls-remote ls-tree mailinfo mailsplit merge-base name-rev ' +
    'patch-id range-diff request-pull ' +
    'rev-list rev-parse shortlog show show-branch show-index show-ref status stripspace var ' +
    'verify-commit verify-pack ' +
    'verify-tag version whatchanged',
);
/** Commands that write refs, the index and loose objects, but no packs. */
const WRITES = wordSet(
  'add am apply bisect branch checkout checkout-index cherry-pick citool clean commit ' +
    'commit-tree gui hash-object merge ' +
    'merge-file merge-tree mktag mktree mv notes pack-refs push read-tree rebase reflog ' +
    'replace rerere reset restore ' +
    'revert rm sparse-checkout stage stash switch symbolic-ref tag update-index update-ref ' +
    'worktree write-tree',
);

/** Commands of git beside those, which can be hidden by no alias either. */
const OTHERS = wordSet(
  'bundle credential daemon fast-export fast-import fetch filter-branch gc index-pack ' +
    'maintenance mergetool multi-pack-index pack-objects prune pull quiltimport receive-pack ' +
    'remote repack rev-parse send-email send-pack submodule svn unpack-objects upload-pack',
);
/** Whether this is a command of git itself. Any other may be an alias. */
export const isGitCommand = (name: string): boolean =>
  READS.has(name) || WRITES.has(name) || OTHERS.has(name);

const isGit = ([program]: Words): boolean => program != null && programName(program) === 'git';
const isOption = (word: string | null): boolean => word?.startsWith('-') === true;
/** The first word that is no option. */
const firstOperand = (words: Words): string => words.find((word) => !isOption(word)) ?? '';

const LISTS_BRANCHES =
  /^(?:-[arvl]+|--(?:all|list|remotes|verbose|show-current|contains|no-contains|merged|no-merged|points-at|sort|format|column|no-column|color|no-color|abbrev)(?:=.*)?)$/;
const LISTS_TAGS =
  /^(?:-l|-n\d*|--(?:list|contains|no-contains|merged|no-merged|points-at|sort|format|column|no-column|color)(?:=.*)?)$/;

/** `git branch` and `git tag` list unless they get a name and no option that makes it a pattern. */
const lists = (words: Words, options: RegExp): boolean =>
  words.every((word) => !isOption(word) || options.test(word ?? '')) &&
  (words.every(isOption) ||
    words.some((word) => isOption(word) && !/^(?:-[rva]+|--sort.*)$/.test(word ?? '')));

/** Commands that read with some words. */
const readsWith: Readonly<Record<string, (words: Words) => boolean>> = {
  apply: (words) =>
    !words.some((word) => word === null || /^(?:--index|--cached|-3|--3way)$/.test(word)),
  bisect: (words) => /^(?:log|view|visualize)$/.test(firstOperand(words)),
  branch: (words) => lists(words, LISTS_BRANCHES),
  'hash-object': (words) => !words.some((word) => word === null || word === '-w'),
  notes: (words) => /^(?:|list|show)$/.test(firstOperand(words)),
  reflog: (words) => !/^(?:expire|delete|drop|write)$/.test(firstOperand(words)),
  remote: (words) => /^(?:|show|get-url)$/.test(firstOperand(words)),
  stash: (words) => /^(?:list|show)$/.test(firstOperand(words)),
  submodule: (words) => /^(?:|status|summary)$/.test(firstOperand(words)),
  tag: (words) => lists(words, LISTS_TAGS),
  worktree: (words) => firstOperand(words) === 'list',
};

/** How far a command of git changes the repository. */
export const gitAccess = (words: Words): RepositoryAccess => {
  const [command, ...rest] = gitCommand(words);
  if (command === undefined) return 'read';
  if (command === null) return 'writePacks';
  if (
    READS.has(command) ||
    (Object.hasOwn(readsWith, command) && readsWith[command]?.(rest) === true)
  )
    return 'read';
  return WRITES.has(command) ? 'write' : 'writePacks';
};

// ---- Other programs ----

/** Programs that run git to change the repository. */
const RUNS_GIT = wordSet(
  'auto-changelog bump-my-version bump2version bumpversion changeset cz czg cog gh gitui ' +
    'glab hub husky jj lazygit lefthook ' +
    'lerna lint-staged pre-commit release-it semantic-release standard-version tbump tig ' +
    'commit-and-tag-version',
);
/** Programs that run the targets that they are told. */
const TARGET_RUNNERS = wordSet('doit gmake inv invoke just make mage rake task');
/** Programs whose first word is a task of their own or a script of the project. */
const PACKAGE_MANAGERS = wordSet('bun deno npm pnpm yarn');
/** Tasks that leave the repository alone. */
const EVERYDAY =
  /^(?:a|add|all|audit|bench|build|cache|check|ci|clean|compile|config|coverage|cover|create|dedupe|dev|dlx|docs?|e2e|exec|fmt|format|get|help|i|info|init|install|link|lint|list|ls|outdated|pack|ping|prefix|preview|remove|rm|root|search|serve|set|start|t|test|tests|tsc|typecheck|type-check|types|uninstall|unit|unlink|up|update|upgrade|view|watch|why|x)(?:[:._-].*)?$/;
/** Interpreters: the name of the script says what it does. */
const INTERPRETER =
  /^(?:sh|bash|dash|zsh|node|tsx|ts-node|python[\d.]*|ruby|perl|php|source|\.|npx|uv|poetry)$/;
/** Names of scripts that work on the repository. */
const WORK_ON_REPOSITORY =
  /(?:release|publish|deploy|version|bump|changelog|commit|branch|merge|rebase|backport|cherry|stash|worktree|submodule|tag|git|hook)/i;

const isEveryday = (word: string | null): boolean => word !== null && EVERYDAY.test(word);

/**
 * How far any other program changes the repository, by its name and the names of scripts and tasks.
 */
const programAccess = (words: Words): RepositoryAccess => {
  const [program, ...rest] = words;
  const name = programName(program ?? '');
  if (RUNS_GIT.has(name) || name.startsWith('git-')) return 'writePacks';
  const targets = rest.filter((word) => word === null || !/^-|=/.test(word));
  if (TARGET_RUNNERS.has(name)) return targets.every(isEveryday) ? 'read' : 'write';
  if (PACKAGE_MANAGERS.has(name)) {
    const task = targets.find((word) => word !== 'run' && word !== 'run-script');
    return task === undefined || isEveryday(task) ? 'read' : 'write';
  }
  const isScript = program?.includes('/') === true && !/^\/(?:usr\/|s?bin\/|opt\/)/.test(program);
  const scripts = isScript ? [name] : INTERPRETER.test(name) ? targets.slice(0, 2) : [];
  const isNamed = (word: string | null): boolean =>
    word !== null && /^[\w./@+-]+$/.test(word) && WORK_ON_REPOSITORY.test(programName(word));
  return scripts.some(isNamed) ? 'write' : 'read';
};

/**
 * Those of the commands that the policy asks about that destroy history; the others destroy files
 * of the working tree, and no history.
 */
const DESTROYS_HISTORY = wordSet(
  'branch filter-branch filter-repo gc prune push reflog stash update-ref',
);

/** Whether a command destroys history, by its words. */
const destroysHistory = (command: ParsedCommand): boolean => {
  const { words, readAs = words } = command;
  const [name] = findGitLoss(command) === null ? [] : gitCommand(readAs);
  return name === null || (name !== undefined && DESTROYS_HISTORY.has(name));
};
