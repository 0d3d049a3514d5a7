/**
 * What a command may do to git folders, decided by its words alone before it runs.
 * `repositoryAccess` says how far the sandbox opens them to it, `historyPurpose` what it does to
 * the history on purpose. The tool bash asks for both; the sandbox mounts accordingly, and
 * git-history.ts puts back what was lost by accident. `treeMoves` says how git moves the working
 * tree, so that protected files among the moved ones are decided about before it starts.
 */

import type { Needs, ParsedCommand, ShellFacts } from './judged-call.js';
import { findGitLoss } from './losses.js';
import { programName } from './paths.js';
import { findSubcommand } from './programs/git.js';
import type { TreeMove } from './programs/git-moves.js';
import { gitCommand, isOption } from './programs/git-words.js';
import type { GitAccess, Words } from './programs/program.js';
import { findRow, isGit } from './programs/program-table.js';

/**
 * How far a command may change the git folders of the workspace, decided by its words.
 *
 * 1. `read`: git folders are read-only. `write`: they can be changed, and what they hold is kept.
 *    `writePacks`: the same, for git commands that write packs of objects.
 * 2. `approved`: the policy asked about these words because they destroy history or are unclear,
 *    and the user allowed them. Nothing is kept from them.
 * 3. A git command that is not known to read counts as one that writes packs.
 */
export type RepositoryAccess = GitAccess | 'approved';

/** The widest access last. */
const CHANGES = ['write', 'writePacks'] as const;

/** How far a command may change git folders. */
export const repositoryAccess = (shell: ShellFacts, needs: Needs | undefined): RepositoryAccess => {
  if (shell.unclear !== null || shell.commands.some(destroysHistory)) return 'approved';
  const accesses = shell.commands.map(({ words, readAs = words }) => commandAccess(readAs));
  if (needs === 'repository') accesses.push('writePacks');
  return CHANGES.findLast((access) => accesses.includes(access)) ?? 'read';
};

/** What the words of a command do to the history on purpose. */
export type HistoryPurpose = {
  /** They end a stash, so that it is not put back: its changes are back in the files. */
  readonly takesStash: boolean;
  /** They change where the history of a shallow clone ends. */
  readonly movesBorder: boolean;
  /** The user allowed them to delete history. */
  readonly deletes?: 'any';
};

/** What a text does to the history on purpose, for those who put back what was lost. */
export const historyPurpose = ({ commands }: ShellFacts): HistoryPurpose => {
  const gits = commands
    .filter(({ words }) => isGit(words))
    .map(({ words, readAs = words }) => gitCommand(readAs));
  return {
    takesStash: gits.some(
      ([command, action]) => command === 'stash' && (action === 'pop' || action === 'branch'),
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

/**
 * How the commands of a text move the working tree. `unknown`: one may write any file, since its
 * words are computed, or since commits that come meanwhile decide.
 */
export const treeMoves = ({ commands }: ShellFacts): readonly TreeMove[] | 'unknown' => {
  const read: TreeMove[] = [];
  let fetches = false;
  for (const { words, readAs = words } of commands) {
    if (!isGit(words)) continue;
    const [command, ...rest] = gitCommand(readAs);
    fetches ||= command === 'fetch';
    const readMove = findSubcommand(command)?.moves;
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

/** Tasks that leave the repository alone. */
const EVERYDAY =
  /^(?:a|add|all|audit|bench|build|cache|check|ci|clean|compile|config|coverage|cover|create|dedupe|dev|dlx|docs?|e2e|exec|fmt|format|get|help|i|info|init|install|link|lint|list|ls|outdated|pack|ping|prefix|preview|remove|rm|root|search|serve|set|start|t|test|tests|tsc|typecheck|type-check|types|uninstall|unit|unlink|up|update|upgrade|view|watch|why|x)(?:[:._-].*)?$/;
/** Names of scripts that work on the repository. */
const WORK_ON_REPOSITORY =
  /(?:release|publish|deploy|version|bump|changelog|commit|branch|merge|rebase|backport|cherry|stash|worktree|submodule|tag|git|hook)/i;

const isEveryday = (word: string | null): boolean => EVERYDAY.test(word ?? '');

/** How far a command changes the repository, by its program and the names of scripts and tasks. */
const commandAccess = (words: Words): GitAccess => {
  const [program, ...rest] = words;
  const access = findRow(program)?.repository;
  const targets = rest.filter((word) => !/^-|=/.test(word ?? ''));
  if (typeof access === 'function') return access(words);
  if (access === 'runsGit') return 'writePacks';
  if (access === 'targets') return targets.every(isEveryday) ? 'read' : 'write';
  if (access === 'task') {
    const task = targets.find((word) => word !== 'run' && word !== 'run-script');
    return task === undefined || isEveryday(task) ? 'read' : 'write';
  }
  const isFile = program?.includes('/') === true && !/^\/(?:usr\/|s?bin\/|opt\/)/.test(program);
  const scripts = isFile ? [programName(program)] : targets.slice(0, access === 'script' ? 2 : 0);
  const isNamed = (word: string | null): boolean =>
    word !== null && /^[\w./@+-]+$/.test(word) && WORK_ON_REPOSITORY.test(programName(word));
  return scripts.some(isNamed) ? 'write' : 'read';
};

/**
 * Whether a command destroys history, by its words. Others that the policy asks about destroy files
 * of the working tree, and no history.
 */
const destroysHistory = (command: ParsedCommand): boolean => {
  if (findGitLoss(command) === null) return false;
  const [name] = gitCommand(command.readAs ?? command.words);
  const row = findSubcommand(name);
  return row === undefined || row.endsHistory !== undefined; // it may be any command
};
