/**
 * Decides about a call by the written rules, and by grants: answers that last longer than one call.
 *
 * 1. deny > ask > allow, regardless of their order.
 * 2. A rule that denies or asks applies if it matches any part of a call. Rules that allow must
 *    together cover every part completely.
 * 3. A word that is computed at run time may be any word of a command: a rule about commands that
 *    denies or asks then asks, and none allows. Rules about paths see only words that are known.
 * 4. An unclear text may be any command: a rule about commands or paths that denies or asks then
 *    asks, and none allows.
 *
 * From top to bottom: the written rules, which people keep in files; grants, which an answer makes
 * for the rest of a session; and the prefix of a command that a grant may cover.
 */

import { DISCARDS, isOpenPlace, isReadingBuiltin, uncoveredWord } from './command-options.js';
import type { CallFacts, JudgedCall, Needs, ParsedCommand, ToolGroup } from './judged-call.js';
import { isInside, programName, wordSet } from './paths.js';
import {
  absolutePath,
  allowsMcpTool,
  beginsWith,
  isPrivateHost,
  matchCommand,
  matchesHost,
  matchesMcpTool,
  matchesPath,
  type RuleMatch,
} from './patterns.js';
import type { CommandPlace, WrittenRule } from './presets.js';
import { findSubcommand } from './programs/git.js';

/** `sure` is `maybe` if a word that decides is known only when the command runs. */
export type WrittenDecision =
  | {
      readonly decision: 'deny' | 'ask';
      readonly rule: WrittenRule;
      readonly sure: 'yes' | 'maybe';
    }
  | { readonly decision: 'allow'; readonly rules: readonly WrittenRule[] }
  | { readonly decision: null };

/** Decides about a call by the written rules; `decision` is null if none applies. */
export const decideByWrittenRules = (
  rules: readonly WrittenRule[],
  call: JudgedCall,
  place: CommandPlace | null,
  workspace: string,
): WrittenDecision => {
  const strict = rules
    .filter(({ decision }) => decision !== 'allow')
    .map((rule) => ({ rule, match: matchRule(rule, call, workspace) }));
  const denied = strict.find(({ rule, match }) => rule.decision === 'deny' && match === 'yes');
  if (denied !== undefined) return { decision: 'deny', rule: denied.rule, sure: 'yes' };
  const asked =
    strict.find(({ match }) => match === 'yes') ?? strict.find(({ match }) => match === 'maybe');
  if (asked !== undefined)
    return { decision: 'ask', rule: asked.rule, sure: asked.match === 'yes' ? 'yes' : 'maybe' };
  const allowing = rules.filter(({ decision }) => decision === 'allow');
  const used = coverCall(allowing, call, place, workspace);
  return used === null ? { decision: null } : { decision: 'allow', rules: used };
};

/** A rule in words, for users and models. */
export const describeRule = (rule: WrittenRule): string => {
  const { decision, origin } = rule; // origin: its file and line
  const about = rule.kind === 'command' ? rule.words.join(' ') : rule.pattern;
  const kind = rule.kind === 'command' ? '' : `${rule.kind} `;
  const where = rule.from === 'folder' ? `${origin}, in this folder` : origin;
  return `${decision} ${kind}"${about}" (${where})`;
};

/** A rule of this kind. */
type RuleOf<K extends WrittenRule['kind']> = Extract<WrittenRule, { kind: K }>;

const hasKind =
  <K extends WrittenRule['kind']>(kind: K) =>
  (rule: WrittenRule): rule is RuleOf<K> =>
    rule.kind === kind;

/** A word, and its parts that a program may read as a path: `if=.env`, `@.env`, `-f.env`. */
const wordPaths = (word: string): readonly string[] => [
  word,
  ...[...word.matchAll(/[=@]|^-\w/g)].map(({ 0: mark, index }) => word.slice(index + mark.length)),
];

/**
 * Paths of a call. Every word of a shell command may be a path, so a rule may see paths that are
 * none. A program without a folder is one of the system.
 */
const callPaths = ({ facts }: JudgedCall, workspace: string): readonly string[] => {
  if (facts.shell === undefined) return facts.paths;
  const words = facts.shell.commands.flatMap(({ words: all, writes, readsFrom = [] }) => [
    ...(all[0]?.includes('/') ? all : all.slice(1)),
    ...writes,
    ...readsFrom,
  ]);
  return words
    .flatMap((word) => (word === null ? [] : wordPaths(word)))
    .filter((word) => word !== '')
    .map((word) => absolutePath(word, workspace));
};

/** Whether a rule that denies or asks is about the call. */
const matchRule = (rule: WrittenRule, call: JudgedCall, workspace: string): RuleMatch => {
  const { facts, traits } = call;
  const otherwise = facts.shell === undefined || facts.shell.unclear === null ? 'no' : 'maybe';
  switch (rule.kind) {
    case 'command': {
      const commands = (facts.shell?.commands ?? []).flatMap((command) =>
        command.readAs === undefined ? [command] : [command, { ...command, words: command.readAs }],
      );
      const matches = commands.map((command) => matchCommand(command, rule.words));
      if (matches.includes('yes')) return 'yes';
      return matches.includes('maybe') ? 'maybe' : otherwise;
    }
    case 'path': {
      if (rule.touches === 'reads' && traits.mutating) return 'no';
      return callPaths(call, workspace).some((path) => matchesPath(rule.pattern, path, workspace))
        ? 'yes'
        : otherwise;
    }
    case 'mcp':
      return facts.mcp !== undefined && matchesMcpTool(rule.pattern, facts.mcp) ? 'yes' : 'no';
    case 'host':
      return facts.hosts.some((host) => matchesHost(rule.pattern, host)) ? 'yes' : 'no';
    default:
      return rule satisfies never;
  }
};

/**
 * Commands that need no rule: programs of the system that pass on what they get, and builtins. They
 * run nothing, and `cd` must stay in the workspace.
 */
const isHarmless = ({ words, program, filters }: ParsedCommand, workspace: string): boolean => {
  const [name, folder] = words;
  if (filters === 'yes') return program !== null && !isOpenPlace(program, workspace);
  if (program !== null || !isReadingBuiltin(words)) return false;
  if (name !== 'cd') return true;
  return words.length === 2 && !/^$|^[-/~]|(^|\/)\.\.(\/|$)/.test(folder ?? '');
};

const MOVES_FOLDER = wordSet('cd pushd popd');

/** `movesFolder`: the text has a `cd`, so relative paths may mean another folder. */
type CommandContext = {
  readonly workspace: string;
  readonly place: CommandPlace;
  readonly movesFolder: boolean;
};

/**
 * Whether a rule allows a command. It must name what a wrapper runs (`timeout 5 npm test`; `runs`
 * is the index of `npm`), a relative path counts only without `cd`, and a program of the workspace
 * only by its path: a project can give its program any name.
 */
const coversCommand = (
  rule: RuleOf<'command'>,
  { words, runs, program }: ParsedCommand,
  call: JudgedCall,
  { workspace, place, movesFolder }: CommandContext,
): boolean => {
  const ruleLength = rule.words.length;
  const [first = ''] = rule.words;
  if (!beginsWith(words, rule.words) || (runs ?? 0) >= ruleLength) return false;
  // without a sandbox a command needs no access beside it
  if (place !== 'unfenced' && !coversNeeds(rule.needs, call.facts.needs)) return false;
  const isPath = first.includes('/');
  if (isPath && movesFolder && !first.startsWith('/')) return false;
  const isOfWorkspace = `${program}/`.startsWith(`${workspace}/`);
  if (isOfWorkspace && !isPath) return false;
  return uncoveredWord(words, rule.words, place === 'sandboxed' ? 'fenced' : 'widened') === null;
};

/**
 * The rules that together allow every command of a call, one for each; null if some command is not
 * allowed.
 */
const coverCommands = (
  rules: readonly WrittenRule[],
  call: JudgedCall,
  place: CommandPlace,
  workspace: string,
): readonly WrittenRule[] | null => {
  const { shell } = call.facts;
  // `unclear`, `indirect`: it may run other commands than the known ones
  if (shell?.unclear !== null || shell.indirect !== undefined) return null;
  const movesFolder = shell.commands.some(({ words }) => MOVES_FOLDER.has(words[0] ?? ''));
  const used: WrittenRule[] = [];
  for (const command of shell.commands) {
    if (command.wrapped === 'yes') continue; // its words are part of the wrapper's words
    if (command.assignments.length > 0 || command.words.includes(null)) return null;
    if (command.writes.some((path) => !DISCARDS.has(path ?? ''))) return null;
    if (command.words.length === 0 || isHarmless(command, workspace)) continue;
    const rule = rules
      .filter(hasKind('command'))
      .find((one) => coversCommand(one, command, call, { workspace, place, movesFolder }));
    if (rule === undefined) return null;
    used.push(rule);
  }
  return used.length === 0 ? null : used;
};

/** One rule for each part; null if a part has none. */
const coverEach = <T>(
  parts: readonly T[],
  find: (part: T) => WrittenRule | undefined,
): readonly WrittenRule[] | null => {
  const used = parts.map(find);
  const known = used.filter((rule) => rule !== undefined);
  return known.length === used.length && used.length > 0 ? known : null;
};

/** The rules that together allow a call; null if a part of it is not allowed. */
const coverCall = (
  rules: readonly WrittenRule[],
  call: JudgedCall,
  place: CommandPlace | null,
  workspace: string,
): readonly WrittenRule[] | null => {
  const { facts, traits } = call;
  const { mcp } = facts;
  if (mcp !== undefined)
    return coverEach([mcp], (tool) =>
      rules.filter(hasKind('mcp')).find(({ pattern }) => allowsMcpTool(pattern, tool)),
    );
  if (place !== null) return coverCommands(rules, call, place, workspace);
  if (facts.hosts.length > 0) {
    if (traits.mutating) return null;
    return coverEach(facts.hosts, (host) =>
      // `*` and `*.example.com` never allow a private host: it must be named.
      rules
        .filter(hasKind('host'))
        .find(
          ({ pattern }) =>
            matchesHost(pattern, host) && !(pattern.startsWith('*') && isPrivateHost(host)),
        ),
    );
  }
  return coverEach(facts.paths, (path) =>
    rules
      .filter(hasKind('path'))
      .find(
        (rule) =>
          (rule.touches === 'anything' || !traits.mutating) &&
          matchesPath(rule.pattern, path, workspace),
      ),
  );
};

// ---- Grants: permissions of the user that last longer than one call ----

/**
 * What an answer allows: this call once, this exact call, commands with the prefix, or the tool (or
 * its group).
 */
export type ApprovalScope = 'once' | 'shape' | 'prefix' | 'session';

/**
 * The calls that a grant covers: one shape (the text of exactly this call), commands with a prefix,
 * or every call of the tool.
 */
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

/** The answers that a question may offer: any, none beyond this exact call, or only once. */
export type Grantable = 'any' | 'thisCall' | 'once';

/** Whether a permission covers what a call needs; `outside` includes the network. */
const coversNeeds = (permission: Needs | undefined, needs: Needs | undefined): boolean =>
  needs === undefined || permission === 'outside' || permission === needs;

/** The access outside the sandbox or workspace that a call needs; undefined if it stays inside. */
export const callNeeds = ({ needs, paths }: CallFacts, workspace: string): Needs | undefined =>
  needs ?? (paths.some((path) => !isInside(workspace, path)) ? 'outside' : undefined);

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
  if (shell?.unclear !== null || shell.indirect !== undefined) return false;
  const [command, ...others] = shell.commands;
  if (command === undefined || others.some(({ wrapped }) => wrapped === undefined)) return false;
  const { words, assignments, writes, runs } = command;
  if (words.includes(null) || assignments.length > 0 || writes.some((path) => path !== '/dev/null'))
    return false;
  if ((runs ?? 0) >= prefix.length) return false;
  return beginsWith(words, prefix) && uncoveredWord(words, prefix, reach) === null;
};

/** Whether a grant is about the call, whatever access the call needs. */
const isAbout = (grant: Grant, call: JudgedCall, reach: 'fenced' | 'widened'): boolean => {
  const isOfTool = grant.tool === call.tool;
  switch (grant.scope) {
    case 'session':
      return isOfTool || (grant.group !== undefined && grant.group === call.traits.group);
    case 'shape':
      return isOfTool && grant.shape === call.facts.shape;
    case 'prefix':
      return isOfTool && coversPrefix(grant.words, call, reach);
    default:
      return grant satisfies never;
  }
};

/**
 * Whether a grant allows a call that would be asked about. `fenced`: a command stays in the
 * sandbox. `widened`: it runs with more than that allows, so that a prefix covers no unknown
 * options.
 */
export const grantCovers = (
  grant: Grant,
  call: JudgedCall,
  workspace: string,
  reach: 'fenced' | 'widened' = 'fenced',
): boolean =>
  coversNeeds(grant.needs, callNeeds(call.facts, workspace)) && isAbout(grant, call, reach);

/** The grant of a scope; null if there is none. */
const grantFor = (call: JudgedCall, scope: ApprovalScope, workspace: string): Grant | null => {
  const { tool, facts, traits } = call;
  const needs = callNeeds(facts, workspace);
  const access = needs === undefined ? {} : { needs };
  switch (scope) {
    case 'once':
      return null;
    case 'shape':
      return { scope: 'shape', tool, shape: facts.shape, ...access };
    case 'prefix': {
      const words = grantablePrefix(facts);
      return words === null ? null : { scope: 'prefix', tool, words, ...access };
    }
    case 'session': {
      const group = traits.group === undefined ? {} : { group: traits.group };
      return { scope: 'session', tool, ...group, ...access };
    }
    default:
      return scope satisfies never;
  }
};

/**
 * The grant that an answer makes; null if it allows once, or would not cover this call. Whether the
 * session has a sandbox is not known here.
 */
export const createGrant = (
  call: JudgedCall,
  scope: ApprovalScope,
  workspace: string,
  grantable: Grantable = 'any',
): Grant | null => {
  if (grantable === 'once' || (grantable === 'thisCall' && scope !== 'shape')) return null;
  const grant = grantFor(call, scope, workspace);
  const reach = call.facts.needs === undefined ? 'fenced' : 'widened';
  return grant !== null && grantCovers(grant, call, workspace, reach) ? grant : null;
};

/*
 * ---- The prefix that a grant for a command would cover ----
 *
 * A prefix lets any further words run without a question. So it is offered only for one plain
 * command, and never for programs whose further words name another program, or what is deleted. A
 * command of git that reaches a remote must name it.
 */

/** Programs that run their arguments or have irreversible effects. */
const NEVER = wordSet(
  `bash sh dash zsh ksh fish csh tcsh ash busybox env sudo doas su pkexec runuser setsid nohup nice ionice time timeout stdbuf
  xargs parallel watch find fd exec eval command builtin source . trap script expect unshare chroot nsenter bwrap flock strace gdb ltrace
  nodejs deno bun tsx ts-node luajit awk gawk mawk nawk sed ed ex vi vim nvim emacs R Rscript julia osascript groovy scala kotlin
  ghc runghc swift tclsh wish npx pnpx bunx uvx pipx dlx corepack ssh scp sftp rsync nc ncat netcat socat telnet ftp curl wget http
  https aria2c openssl rm rmdir shred dd truncate mkfs mount umount chmod chown chgrp kill killall pkill mv cp ln tee install tar
  unzip docker podman nerdctl kubectl helm systemctl crontab at batch screen tmux make ninja cmake gradle`,
);

/** The same, whatever version the name ends with: `python3.12`. */
const INTERPRETER = /^(python|pypy|ruby|perl|php|node|lua|java)[\d.]*$/;

/** Programs with subcommands: a prefix must include the subcommand. */
const WITH_COMMANDS = wordSet(
  'git npm pnpm yarn cargo go pip pip3 uv poetry gh glab dotnet mvn bundle gem composer mix ' +
    'rustup brew apt apt-get dnf yum apk conda terraform',
);
/** Subcommands whose next word names what runs: `npm run lint`. */
const NAMING = new Set(['run', 'run-script', 'tool']);
/** A word that names what runs, and one that names a remote of git: no address, no path. */
const NAMED = /^[\w./:][\w./:-]*$/;
const REMOTE = /^\w[\w-]*$/;
/** Words after which anything may run. */
const RUNS_ANYTHING = wordSet('exec x dlx create init filter-branch bisect difftool mergetool');

/** A word that can be a subcommand. */
const SUBCOMMAND = /^[A-Za-z][\w:-]*$/;

/** The prefix of one command; null if it is none that may be offered. */
const prefixWords = ({ words }: ParsedCommand): readonly string[] | null => {
  const [program, first, second] = words;
  if (typeof program !== 'string' || program === '') return null;
  const name = programName(program);
  if (NEVER.has(name) || INTERPRETER.test(name)) return null;
  if (!WITH_COMMANDS.has(name)) {
    return typeof first === 'string' && SUBCOMMAND.test(first) ? [program, first] : [program];
  }
  if (typeof first !== 'string' || !SUBCOMMAND.test(first) || RUNS_ANYTHING.has(first)) return null;
  const isRemote = name === 'git' && findSubcommand(first)?.remote === 'yes';
  if (!isRemote && !NAMING.has(first)) return [program, first];
  return (isRemote ? REMOTE : NAMED).test(second ?? '') ? [program, first, second ?? ''] : null;
};

/** The words that a lasting answer about the command covers; null if none is offered. */
export const grantablePrefix = ({
  shell,
  protected: protectedPaths = [],
}: CallFacts): readonly string[] | null => {
  if (shell?.unclear !== null || shell.indirect !== undefined) return null;
  const [command, ...others] = shell.commands;
  if (command === undefined || others.length > 0 || protectedPaths.length > 0) return null;
  // Without these the words alone determine what the command does.
  const { assignments, writes } = command;
  const isPlain = assignments.length === 0 && writes.every((file) => file === '/dev/null');
  return isPlain ? prefixWords(command) : null;
};
