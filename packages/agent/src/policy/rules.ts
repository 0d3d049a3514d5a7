/**
 * Decides about a call by the written rules.
 *
 * 1. deny > ask > allow, regardless of their order.
 * 2. A rule that denies or asks applies if it matches any part of a call. Rules that allow must
 *    together cover every part completely.
 * 3. A word that is computed at run time matches every rule that denies or asks, and none that
 *    allows.
 */

import { uncoveredWord } from './command-options.js';
import { coversNeeds } from './grants.js';
import type { JudgedCall, ParsedCommand } from './judged-call.js';
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

type RuleOf<K extends WrittenRule['kind']> = Extract<WrittenRule, { kind: K }>;

const hasKind =
  <K extends WrittenRule['kind']>(kind: K) =>
  (rule: WrittenRule): rule is RuleOf<K> =>
    rule.kind === kind;

/**
 * Paths of a call. Every word of a shell command may be a path, so a rule may see paths that are
 * none.
 */
const callPaths = ({ facts, traits }: JudgedCall, workspace: string): readonly string[] => {
  if (facts.shell === undefined) return facts.paths;
  const words = facts.shell.commands.flatMap(({ words: all, writes }) => [
    ...all.slice(1),
    ...writes,
  ]);
  return traits.mutating
    ? words.flatMap((word) => (word === null ? [] : [absolutePath(word, workspace)]))
    : [];
};

const matchRule = (rule: WrittenRule, call: JudgedCall, workspace: string): RuleMatch => {
  const { facts, traits } = call;
  switch (rule.kind) {
    case 'command': {
      const meetings = (facts.shell?.commands ?? []).map((command) =>
        matchCommand(command, rule.words),
      );
      if (meetings.includes('yes')) return 'yes';
      return meetings.includes('maybe') ? 'maybe' : 'no';
    }
    case 'path': {
      if (rule.touches === 'reads' && traits.mutating) return 'no';
      return callPaths(call, workspace).some((path) => matchesPath(rule.pattern, path, workspace))
        ? 'yes'
        : 'no';
    }
    case 'mcp':
      return facts.mcp !== undefined && matchesMcpTool(rule.pattern, facts.mcp) ? 'yes' : 'no';
    case 'host':
      return facts.hosts.some((host) => matchesHost(rule.pattern, host)) ? 'yes' : 'no';
    default:
      return rule satisfies never;
  }
};

const HARMLESS = /^(cd|echo|printf|true|false|:|pwd|exit|wait|test|\[)$/;

/** Builtins that need no rule: they run nothing, and `cd` must stay in the workspace. */
const isHarmless = ({ words, program }: ParsedCommand): boolean => {
  const [name, folder] = words;
  if (name == null || program !== null || !HARMLESS.test(name)) return false;
  if (name !== 'cd') return true;
  return (
    folder != null && words.length === 2 && !/^[-/~]|(^|\/)\.\.(\/|$)/.test(folder) && folder !== ''
  );
};

const DISCARDS = new Set(['/dev/null', '/dev/stdout', '/dev/stderr']);

type CommandContext = {
  readonly workspace: string;
  readonly place: CommandPlace;
  readonly movesFolder: boolean;
};

const coversCommand = (
  rule: RuleOf<'command'>,
  { words, runs, program }: ParsedCommand,
  call: JudgedCall,
  { workspace, place, movesFolder }: CommandContext,
): boolean => {
  const named = rule.words.length;
  const [first = ''] = rule.words;
  if (!beginsWith(words, rule.words) || (runs !== undefined && runs >= named)) return false;
  if (place !== 'unfenced' && !coversNeeds(rule.needs, call.facts.needs)) return false;
  const isPath = first.includes('/');
  if (isPath && movesFolder && !first.startsWith('/')) return false;
  const isOfWorkspace = program !== null && `${program}/`.startsWith(`${workspace}/`);
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
  if (shell === undefined || shell.unclear !== null || shell.indirect !== undefined) return null;
  const movesFolder = shell.commands.some(({ words }) => /^(cd|pushd|popd)$/.test(words[0] ?? ''));
  const used: WrittenRule[] = [];
  for (const command of shell.commands) {
    if (command.wrapped === 'yes') continue; // its words are part of the wrapper's words
    if (command.assignments.length > 0 || command.words.includes(null)) return null;
    if (command.writes.some((path) => path === null || !DISCARDS.has(path))) return null;
    if (command.words.length === 0 || isHarmless(command)) continue;
    const rule = rules
      .filter(hasKind('command'))
      .find((one) => coversCommand(one, command, call, { workspace, place, movesFolder }));
    if (rule === undefined) return null;
    used.push(rule);
  }
  return used.length === 0 ? null : used;
};

const coverEach = <T>(
  parts: readonly T[],
  find: (part: T) => WrittenRule | undefined,
): readonly WrittenRule[] | null => {
  const used = parts.map(find);
  const known = used.filter((rule) => rule !== undefined);
  return known.length === used.length && used.length > 0 ? known : null;
};

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
  if (rules.length === 0) return { decision: null };
  const strict = rules
    .filter(({ decision }) => decision !== 'allow')
    .map((rule) => ({ rule, meeting: matchRule(rule, call, workspace) }));
  const denied = strict.find(({ rule, meeting }) => rule.decision === 'deny' && meeting === 'yes');
  if (denied !== undefined) return { decision: 'deny', rule: denied.rule, sure: 'yes' };
  const asked =
    strict.find(({ rule, meeting }) => rule.decision === 'ask' && meeting === 'yes') ??
    strict.find(({ meeting }) => meeting === 'maybe');
  if (asked !== undefined)
    return { decision: 'ask', rule: asked.rule, sure: asked.meeting === 'yes' ? 'yes' : 'maybe' };
  const allowing = rules.filter(({ decision }) => decision === 'allow');
  const used = coverCall(allowing, call, place, workspace);
  return used === null ? { decision: null } : { decision: 'allow', rules: used };
};

/** A rule in words, for users and models. */
export const describeRule = (rule: WrittenRule): string => {
  const { decision, origin } = rule;
  const about = rule.kind === 'command' ? rule.words.join(' ') : rule.pattern;
  const kind = rule.kind === 'command' ? '' : `${rule.kind} `;
  const where = rule.from === 'folder' ? `${origin}, in this folder` : origin;
  return `${decision} ${kind}"${about}" (${where})`;
};
