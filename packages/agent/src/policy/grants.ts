/** Grants: permissions of the user that last longer than one call. */

/**
 * What an answer allows: this call once, this exact call, commands with the prefix, or the tool (or
 * its group).
 */
export type ApprovalScope = 'once' | 'shape' | 'prefix' | 'session';

/** The calls that a grant covers: one shape, commands with a prefix, or every call of the tool. */
type GrantScope =
  | { readonly scope: 'shape'; readonly shape: string }
  | { readonly scope: 'prefix'; readonly words: readonly string[] }
  /** Every call of the tool; with a group also calls of other tools in the group. */
  | { readonly scope: 'session'; readonly group?: ToolGroup };

/** What the user allowed for the rest of the session. */
export type Grant = GrantScope & {
  readonly tool: string;
  /** The reason for which covered calls may leave the sandbox; absent: none. */
  readonly needs?: Needs;
};

import { uncoveredWord } from './command-options.js';
import type { CallFacts, JudgedCall, Needs, ParsedCommand, ToolGroup } from './judged-call.js';
import { beginsWith, programName } from './patterns.js';

/** The answers that a question may offer: any, none beyond this exact call, or only once. */
export type Grantable = 'any' | 'thisCall' | 'once';

/** Whether a permission covers what a call needs; `outside` includes the network. */
export const coversNeeds = (permission: Needs | undefined, needs: Needs | undefined): boolean =>
  needs === undefined || permission === 'outside' || permission === needs;

/** Whether a path is the folder or lies in it. */
export const liesIn = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);

/** The access outside the sandbox or workspace that a call needs; undefined if it stays inside. */
export const callNeeds = ({ needs, paths }: CallFacts, workspace: string): Needs | undefined =>
  needs ?? (paths.some((path) => !liesIn(workspace, path)) ? 'outside' : undefined);

/**
 * Whether a prefix covers a call. The command must stand alone, so that no other command hides
 * behind the prefix.
 */
const coversPrefix = (
  prefix: readonly string[],
  { facts }: JudgedCall,
  reach: 'fenced' | 'widened',
): boolean => {
  const { shell } = facts;
  if (shell === undefined || shell.unclear !== null || shell.indirect !== undefined) return false;
  const [command, ...others] = shell.commands;
  if (command === undefined || others.some(({ wrapped }) => wrapped === undefined)) return false;
  const { words, assignments, writes, runs } = command;
  if (words.includes(null) || assignments.length > 0 || writes.some((path) => path !== '/dev/null'))
    return false;
  if (runs !== undefined && runs >= prefix.length) return false;
  return beginsWith(words, prefix) && uncoveredWord(words, prefix, reach) === null;
};

const coversAsked = (grant: Grant, call: JudgedCall, reach: 'fenced' | 'widened'): boolean => {
  if (grant.scope === 'session' && grant.group !== undefined && grant.group === call.traits.group)
    return true;
  if (grant.tool !== call.tool) return false;
  switch (grant.scope) {
    case 'session':
      return true;
    case 'shape':
      return grant.shape === call.facts.shape;
    case 'prefix':
      return coversPrefix(grant.words, call, reach);
    default:
      return grant satisfies never;
  }
};

/**
 * Whether a grant allows a call that would be asked about. `widened`: the command runs with more
 * than its sandbox allows, so that a prefix covers no unknown options.
 */
export const grantCovers = (
  grant: Grant,
  call: JudgedCall,
  workspace: string,
  reach: 'fenced' | 'widened' = 'fenced',
): boolean =>
  coversNeeds(grant.needs, callNeeds(call.facts, workspace)) && coversAsked(grant, call, reach);

const grantFor = (call: JudgedCall, scope: ApprovalScope, workspace: string): Grant | null => {
  const { tool, facts, traits } = call;
  const needs = callNeeds(facts, workspace);
  const leaves = needs === undefined ? {} : { needs };
  switch (scope) {
    case 'once':
      return null;
    case 'shape':
      return { scope: 'shape', tool, shape: facts.shape, ...leaves };
    case 'prefix': {
      const words = grantablePrefix(facts);
      return words === null ? null : { scope: 'prefix', tool, words, ...leaves };
    }
    case 'session': {
      const group = traits.group === undefined ? {} : { group: traits.group };
      return { scope: 'session', tool, ...group, ...leaves };
    }
    default:
      return scope satisfies never;
  }
};

/** The grant that an answer makes; null if it allows once, or would not cover this call. */
export const createGrant = (
  call: JudgedCall,
  scope: ApprovalScope,
  workspace: string,
  grantable: Grantable = 'any',
): Grant | null => {
  if (grantable === 'once' || (grantable === 'thisCall' && scope !== 'shape')) return null;
  const grant = grantFor(call, scope, workspace);
  return grant !== null && grantCovers(grant, call, workspace) ? grant : null;
};

/**
 * The prefix that a grant for a command would cover, or null if none is offered.
 *
 * A prefix lets any further words run without a question. So it is offered only for one plain
 * command, and never if the further words decide what runs, what is deleted or where something is
 * sent.
 */

/** Programs that run their arguments or have irreversible effects. */
const NEVER = new Set(
  `bash sh dash zsh ksh fish csh tcsh ash busybox env sudo doas su pkexec runuser setsid nohup nice ionice time timeout stdbuf
  xargs parallel watch find fd exec eval command builtin source . trap script expect unshare chroot nsenter bwrap flock strace gdb ltrace
  python python2 python3 pypy pypy3 node nodejs deno bun tsx ts-node ruby perl php lua luajit awk gawk mawk nawk sed ed ex vi vim nvim emacs
  R Rscript julia osascript java groovy scala kotlin ghc runghc swift tclsh wish
  npx pnpx bunx uvx pipx dlx corepack ssh scp sftp rsync nc ncat netcat socat telnet ftp curl wget http https aria2c openssl
  rm rmdir shred dd truncate mkfs mount umount chmod chown chgrp kill killall pkill mv cp ln tee install tar unzip
  docker podman nerdctl kubectl helm systemctl crontab at batch screen tmux make ninja cmake gradle`
    .split(/\s+/)
    .filter((name) => name !== ''),
);

/** Programs with subcommands: a prefix must include the subcommand. */
const WITH_COMMANDS = new Set(
  (
    'git npm pnpm yarn cargo go pip pip3 uv poetry gh glab dotnet mvn bundle gem composer mix ' +
    'rustup brew apt apt-get dnf yum apk conda terraform'
  )
    .split(/\s+/)
    .filter((name) => name !== ''),
);
/** Subcommands whose next word names what runs: `npm run lint`. */
const NAMING = new Set(['run', 'run-script', 'exec', 'x', 'tool']);
/** Words after which anything may run. */
const RUNS_ANYTHING = new Set([
  'exec',
  'x',
  'dlx',
  'create',
  'init',
  'filter-branch',
  'bisect',
  'difftool',
  'mergetool',
]);

const SUBCOMMAND = /^[A-Za-z][\w:-]*$/;

const prefixWords = ({ words }: ParsedCommand): readonly string[] | null => {
  const [program, first, second] = words;
  if (typeof program !== 'string' || program === '') return null;
  const name = programName(program);
  if (NEVER.has(name) || /^(python|pypy|ruby|perl|php|node|lua|java)[\d.]*$/.test(name))
    return null;
  if (!WITH_COMMANDS.has(name)) {
    return typeof first === 'string' && SUBCOMMAND.test(first) ? [program, first] : [program];
  }
  if (typeof first !== 'string' || !SUBCOMMAND.test(first) || RUNS_ANYTHING.has(first)) return null;
  if (!NAMING.has(first)) return [program, first];
  return typeof second === 'string' && /^[\w:./-]+$/.test(second) && !second.startsWith('-')
    ? [program, first, second]
    : null;
};

/** The words that a lasting answer about the command covers; null if none is offered. */
export const grantablePrefix = ({
  shell,
  protected: guarded = [],
}: CallFacts): readonly string[] | null => {
  if (shell === undefined || shell.unclear !== null || shell.indirect !== undefined) return null;
  const [command, ...others] = shell.commands;
  if (command === undefined || others.length > 0 || guarded.length > 0) return null;
  // Without these the words alone determine what the command does.
  const { assignments, writes } = command;
  const isPlain = assignments.length === 0 && writes.every((file) => file === '/dev/null');
  return isPlain ? prefixWords(command) : null;
};
