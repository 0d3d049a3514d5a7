/**
 * Decides from the facts of a call whether it is allowed, asked about or denied.
 *
 * Several sources have an opinion about a call (allow, ask or deny); the strictest one wins:
 * deny > ask > allow.
 *
 * 1. The preset: its first matching rule. A written `allow` turns its `ask` into `allow`, but not
 *    its `deny`, except for hosts and, with the preset `ci`, MCP tools: they are denied until a
 *    rule names them.
 * 2. Written rules: `deny` and `ask` count directly.
 * 3. Protected paths (other programs run or obey them later: git hooks, CI) and paths of
 *    credentials: they ask each time, since no rule or earlier answer covers them. The presets
 *    `plan` and `ci` deny them.
 * 4. Unclear shell texts, destructive git commands, and the deletion of the whole workspace or its
 *    history: they ask in every preset. A grant for exactly this command covers them. A rule that
 *    the user wrote by hand covers all but unclear texts. A rule that an answer wrote
 *    (`from: 'folder'`) covers neither them nor the loss of files.
 * 5. Hooks of the user ask and deny. They allow nothing.
 * 6. A tool of an MCP server whose declaration has changed since its last run asks. No rule or
 *    grant covers it.
 *
 * A grant of the session turns an `ask` into `allow`. With the preset `full` only the preset, the
 * user's own written rules and hooks count.
 *
 * From top to bottom: `decide`; the rules of the preset; built-in opinions; the opinion of the
 * preset; those of written rules, hooks and MCP servers; questions of the model; access that a
 * command is expected to need; and the sandbox level of an allowed call.
 */

import {
  type CallFacts,
  type JudgedCall,
  type McpToolName,
  type Needs,
  needsMark,
  type ParsedCommand,
  verdictReason,
  verdictsIn,
} from './judged-call.js';
import { fileLossesIn, findGitLoss, wipesWorkspace } from './losses.js';
import { isInside } from './paths.js';
import { isPrivateHost, matchesHost } from './patterns.js';
import {
  type CommandPlace,
  type Decision,
  gitTexts,
  type PolicyRule,
  type Preset,
  presetAfterPlan,
  type WrittenRule,
} from './presets.js';
import type { FileLoss } from './programs/file-losses.js';
import { pathRestore } from './programs/git-words.js';
import {
  decideByWrittenRules,
  describeRule,
  type Grant,
  type Grantable,
  grantCovers,
  type WrittenDecision,
} from './rules.js';

export type PolicyDecision = {
  readonly decision: Decision;
  readonly why: string;
  /** The rule that decided: `preset`, `grant`, `built in`, or a written rule with its location. */
  readonly by: string;
  /**
   * Which answers of the user may count for later calls: any, only one about exactly this call, or
   * none (`once`).
   */
  readonly grantable: Grantable;
};

/** The settings by which the policy decides. Sessions of older versions lack optional ones. */
export type PolicySettings = {
  /** The rules of the preset. */
  readonly rules: readonly PolicyRule[];
  readonly workspace: string;
  readonly writtenRules?: readonly WrittenRule[];
  /** `missing`: the user wants a sandbox, and none works here. */
  readonly sandbox?: SandboxLevel | 'missing';
  /**
   * A call that needs an answer: the user is asked, it is denied, or the turn ends. With a text for
   * the model (`unattended`) it is denied in place of the end.
   */
  readonly onAsk?: 'ask' | 'deny' | 'stop';
  readonly preset?: Preset;
  /** The preset before `plan`, to which an accepted plan returns. */
  readonly presetBefore?: Preset;
};

/** One verdict on a call. `unattended`: the text of the denial if no user can be asked. */
type Opinion = PolicyDecision & { readonly unattended?: string };

/** Decides about a call. */
export const decide = (
  settings: PolicySettings,
  grants: readonly Grant[],
  call: JudgedCall,
): PolicyDecision => {
  const rules = effectiveRules(settings);
  const place = commandPlace(settings, call);
  const written: WrittenDecision =
    // Stryker disable next-line ConditionalExpression,ObjectLiteral: a shortcut
    rules.length === 0
      ? { decision: null }
      : decideByWrittenRules(rules, call, place, settings.workspace);
  const opinions =
    call.traits.asks === undefined
      ? [
          ...builtInOpinions(settings, call, written),
          ...writtenOpinions(written),
          ...hookOpinions(call),
          presetOpinion(settings, call, written),
        ]
      : [questionOpinion(settings, call), ...hookOpinions(call)];
  const { unattended: _, ...strictest } = opinions.reduce((strictestSoFar, opinion) =>
    rank(opinion) > rank(strictestSoFar) ? opinion : strictestSoFar,
  );
  if (strictest.decision !== 'ask') return strictest;
  const { grantable } = strictest;
  // outside the sandbox a grant for commands with a prefix covers fewer options
  const reach = place === 'sandboxed' ? 'fenced' : 'widened';
  const isGranted = grants.some(
    (grant) =>
      grantCovers(grant, call, settings.workspace, reach) &&
      // a grant of the scope `shape` is one for exactly this call
      (grantable === 'any' || (grantable === 'thisCall' && grant.scope === 'shape')),
  );
  if (isGranted)
    return { ...strictest, decision: 'allow', why: 'you allowed it before', by: 'grant' };
  if ((settings.onAsk ?? 'ask') === 'ask') return strictest;
  const unattended = opinions.find((opinion) => opinion.unattended !== undefined)?.unattended;
  return unattended === undefined ? strictest : { ...strictest, decision: 'deny', why: unattended };
};

/** A denial is stricter than a question; of two questions, the one whose answer counts for less. */
const strictness: Readonly<Record<Decision, number>> = { allow: 0, ask: 1, deny: 2 };
const narrowness: Readonly<Record<Grantable, number>> = { any: 0, thisCall: 1, once: 2 };
const rank = ({ decision, grantable }: Opinion): number =>
  3 * strictness[decision] + narrowness[grantable];

/** The written rules that count: with `full` a project's do not. */
const effectiveRules = ({ writtenRules = [], preset }: PolicySettings): readonly WrittenRule[] =>
  preset === 'full' ? writtenRules.filter(({ from }) => from !== 'project') : writtenRules;

/** Questions and denials that every preset but `full` has. */
const builtInOpinions = (
  settings: PolicySettings,
  call: JudgedCall,
  written: WrittenDecision,
): readonly Opinion[] =>
  settings.preset === 'full'
    ? []
    : [
        ...protectionOpinions(settings, call),
        ...dangerOpinions(call, written, settings),
        ...declarationOpinions(call),
      ];

// ---- The rules of the preset ----

/** `*` and `*.example.com` never allow a private host; it must be named, except with `full`. */
const matchesRuleHost = (
  { decision }: PolicyRule,
  pattern: string,
  host: string,
  preset: Preset | undefined,
): boolean =>
  matchesHost(pattern, host) &&
  (decision !== 'allow' || !pattern.startsWith('*') || preset === 'full' || !isPrivateHost(host));

/**
 * Whether the rule covers the hosts of a call. A rule without hosts covers none, unless it denies.
 */
const fitsHosts = (
  rule: PolicyRule,
  { facts }: JudgedCall,
  preset: Preset | undefined,
): boolean => {
  const { hosts } = rule;
  if (hosts === undefined) return facts.hosts.length === 0 || rule.decision === 'deny';
  const fitting = facts.hosts.filter((host) =>
    hosts.some((pattern) => matchesRuleHost(rule, pattern, host, preset)),
  );
  if (rule.decision === 'allow') return fitting.length > 0 && fitting.length === facts.hosts.length;
  return fitting.length > 0;
};

/**
 * Where the shell command or MCP tool of a call runs; null for a call without one. `leaving`:
 * outside the sandbox, since it needs that; `unfenced`: the user switched the sandbox off;
 * `missing`: none works here.
 */
export const commandPlace = (
  { sandbox = 'off' }: Pick<PolicySettings, 'sandbox'>,
  { facts }: Pick<JudgedCall, 'facts'>,
): CommandPlace | null => {
  const { shell, needs, mcp } = facts;
  if (mcp !== undefined) return 'mcpServer';
  if (shell === undefined) return null;
  // such a text has no command that could leave the sandbox
  const runsNothing =
    shell.commands.length === 0 && shell.unclear === null && shell.indirect === undefined;
  if (runsNothing) return 'sandboxed';
  if (sandbox === 'off') return 'unfenced';
  if (sandbox === 'missing') return 'missing';
  return needs === undefined || (needs === 'network' && sandbox === 'workspace+net')
    ? 'sandboxed'
    : 'leaving';
};

/** Stands for the names of files that were not looked up. */
const NOT_LOOKED_UP = 'a file that the command names';

/** Files that the command may delete or overwrite and that git could not restore, in words. */
const unrecoverableFiles = ({ facts: { shell, unrecoverable } }: JudgedCall): readonly string[] => {
  if (unrecoverable !== undefined) return unrecoverable;
  const mayLose = (loss: FileLoss): boolean => loss.kind !== 'file' || loss.isProduct !== true;
  const isLost = shell?.commands.some((command) => fileLossesIn(command).some(mayLose));
  return isLost ? [NOT_LOOKED_UP] : [];
};

/** Whether a rule of the preset fits a call. `place`: where its command runs. */
const fitsCall = (
  rule: PolicyRule,
  call: JudgedCall,
  { workspace, preset }: PolicySettings,
  place: CommandPlace | null,
): boolean => {
  if (rule.tool !== '*' && rule.tool !== call.tool) return false;
  if (rule.runs !== undefined && rule.runs !== place) return false;
  if (rule.unrecoverable !== undefined && unrecoverableFiles(call).length === 0) return false;
  const isGeneral = rule.runs === undefined && rule.tool === '*';
  // The rules of older sessions do not mention MCP servers, and must not allow their tools.
  if (place === 'mcpServer' && isGeneral && rule.decision === 'allow') return false;
  const inside = call.facts.paths.every((path) => isInside(workspace, path));
  if (rule.where !== 'anywhere' && (rule.where === 'inside') !== inside) return false;
  if (!fitsHosts(rule, call, preset)) return false;
  return rule.touches === 'anything' || (rule.touches === 'mutates') === call.traits.mutating;
};

// ---- Opinions that are built in ----

const NO_USER = 'Nobody is there to be asked.';

/** A question that rules do not answer. `advice`: for the model if no user can be asked. */
const builtInQuestion = (why: string, grantable: Grantable, advice: string): Opinion => ({
  decision: 'ask',
  why,
  by: 'built in',
  grantable,
  unattended: `${why}. ${NO_USER} ${advice}`,
});

/** Presets that deny where others ask, since nothing may change or no user is there. */
const DENYING_PRESETS = new Set<Preset | undefined>(['plan', 'ci']);

/** Protected paths and credential paths: they ask each time. */
const protectionOpinions = (
  settings: PolicySettings,
  { facts, traits }: JudgedCall,
): readonly Opinion[] => {
  const reasons: string[] = [];
  if (facts.secret?.length) reasons.push(`credentials are kept in ${facts.secret.join(', ')}`);
  const changed = traits.mutating ? (facts.protected ?? []) : [];
  if (changed.length > 0)
    reasons.push(`${changed.join(', ')} is run or obeyed later without a question`);
  return reasons.map((why) => {
    const opinion = builtInQuestion(
      why,
      'once',
      'Do without it, or end with what the user is to do.',
    );
    return DENYING_PRESETS.has(settings.preset)
      ? { ...opinion, decision: 'deny', why: `${why}: the preset ${settings.preset} denies it` }
      : opinion;
  });
};

/** The first names of a list, and how many others it has. */
export const firstOf = (names: readonly string[], most: number): string => {
  const more = names.length > most ? ` and ${names.length - most} more` : '';
  return `${names.slice(0, most).join(', ')}${more}`;
};

const LOST_MAX = 5;

/**
 * The work that a git command would destroy, in words. Changes of the session itself don't count.
 */
const gitLoss = (command: ParsedCommand, { discarded }: CallFacts): string | null => {
  const why = findGitLoss(command);
  // `discarded` is about commands that take paths back from git (pathRestore), and no others
  if (why === null || discarded === undefined || pathRestore(command) === null) return why;
  if (discarded.length === 0) return null;
  return `${why.replace('could be lost', 'would be lost')}: ${firstOf(discarded, LOST_MAX)}`;
};

/** Whether the user wrote all rules that allow by hand. `folder`: an answer wrote the rule. */
const isByHand = (written: WrittenDecision): boolean =>
  written.decision === 'allow' && written.rules.every(({ from }) => from !== 'folder');

/** Unclear texts, and commands that destroy work in git, the workspace or its history. */
const dangerOpinions = (
  { facts }: JudgedCall,
  written: WrittenDecision,
  { workspace }: PolicySettings,
): readonly Opinion[] => {
  const { shell } = facts;
  if (shell === undefined) return [];
  const opinions: Opinion[] = [];
  if (shell.unclear !== null)
    opinions.push(
      builtInQuestion(
        `what the command would run is not clear: ${shell.unclear}`,
        'thisCall',
        'Write it plainer: plain words, one command after the other, no text that is evaluated.',
      ),
    );
  const lost = isByHand(written)
    ? null
    : (shell.commands.map((one) => gitLoss(one, facts)).find((why) => why !== null) ??
      wipesWorkspace(shell.commands, workspace));
  if (lost !== null)
    opinions.push(
      builtInQuestion(
        lost,
        'thisCall',
        'Keep the work another way: git stash push, a branch, or undo only your changes ' +
          'with the tools for files.',
      ),
    );
  return opinions;
};

// ---- The opinion of the preset ----

const LISTED_MAX = 3;

/** The rule's reason, with the files that would be lost. */
const ruleReason = ({ why, unrecoverable }: PolicyRule, call: JudgedCall): string => {
  if (unrecoverable === undefined) return why;
  return `${why}: ${firstOf(unrecoverableFiles(call), LISTED_MAX)}`;
};

/** The texts of a rule about leaving the sandbox, for a call that is expected to need that. */
const expectedTexts = (
  rule: PolicyRule,
  { facts: { needs, expects } }: JudgedCall,
): Pick<PolicyRule, 'why' | 'unattended'> => {
  if (rule.runs !== 'leaving' || expects === undefined || needs !== expects.needs) return rule;
  const what = needs === 'network' ? 'needs the network' : 'has to run outside the sandbox';
  return { ...rule, why: `${expects.words} ${what}` };
};

/** A name of a tool that can stand in a pattern. */
const PLAIN_TOOL = /^[\w.-]{1,64}$/;

/**
 * The texts of a rule about MCP servers, with the pattern that allows the call. A project's server
 * runs in a sandbox, unless the user has chosen otherwise.
 */
const mcpTexts = (
  { why, unattended }: PolicyRule,
  { server, tool, from }: McpToolName,
): Pick<PolicyRule, 'why' | 'unattended'> => {
  const owner = from === 'project' ? 'project:' : '';
  const pattern = `${owner}${server}${PLAIN_TOOL.test(tool) ? `/${tool}` : ''}`;
  const name = (text: string): string => {
    const named = text.replace('[rules.mcp] allow', `[rules.mcp] allow = ["${pattern}"]`);
    return from === 'project' ? named.replace(/,? outside the sandbox/, '') : named;
  };
  return { why: name(why), ...(unattended === undefined ? {} : { unattended: name(unattended) }) };
};

/** The reason of a rule, and the text if no user can be asked, in words that fit the call. */
const textsFor = (rule: PolicyRule, call: JudgedCall): Pick<PolicyRule, 'why' | 'unattended'> => {
  const { needs, mcp } = call.facts;
  if (rule.runs === 'leaving' && needs === 'repository') return gitTexts(rule);
  if (rule.runs === 'mcpServer' && mcp !== undefined) return mcpTexts(rule, mcp);
  return expectedTexts(rule, call);
};

/** The preset's first fitting rule, unless a written rule allows the call instead. */
const presetOpinion = (
  settings: PolicySettings,
  call: JudgedCall,
  written: WrittenDecision,
): Opinion => {
  const place = commandPlace(settings, call);
  const rule = settings.rules.find((candidate) => fitsCall(candidate, call, settings, place));
  const by = `preset${settings.preset === undefined ? '' : ` ${settings.preset}`}`;
  if (rule === undefined)
    return { decision: 'deny', why: 'no rule allows it', by, grantable: 'any' };
  const { decision } = rule;
  const texts = textsFor(rule, call);
  const { unattended } = texts;
  const why = ruleReason({ ...rule, ...texts }, call);
  // Hosts, and MCP tools with `ci`, are denied until a written rule names them.
  const waitsForName =
    rule.hosts !== undefined || (rule.runs === 'mcpServer' && settings.preset === 'ci');
  const isOpen = decision === 'ask' || (decision === 'deny' && waitsForName);
  // a rule that an answer wrote does not cover the loss of files
  const isCovered = isByHand(written) || unrecoverableFiles(call).length === 0;
  if (written.decision === 'allow' && isOpen && isCovered) {
    const rules = [...new Set(written.rules.map(describeRule))].join(', ');
    return {
      decision: 'allow',
      why: `a rule of yours allows it: ${rules}`,
      by: rules,
      grantable: 'any',
    };
  }
  return {
    decision,
    why,
    by,
    grantable: 'any',
    ...(unattended === undefined ? {} : { unattended }),
  };
};

// ---- Opinions of written rules, hooks and MCP servers ----

const writtenOpinions = (written: WrittenDecision): readonly Opinion[] => {
  if (written.decision !== 'deny' && written.decision !== 'ask') return [];
  const rule: WrittenRule = written.rule;
  const by = describeRule(rule);
  const maybe =
    written.sure === 'maybe'
      ? `which command it is, is known only when it runs; it may be the one of `
      : '';
  return [{ decision: written.decision, why: `${maybe}a rule: ${by}`, by, grantable: 'any' }];
};

/** Hooks ask and deny, and allow nothing. The answer counts for one call only. */
const hookOpinions = ({ hooks }: JudgedCall): readonly Opinion[] =>
  verdictsIn(hooks)
    .filter(({ decision }) => decision !== 'allow')
    .map((verdict) => ({
      decision: verdict.decision,
      why: `the hook ${verdict.hook}: ${verdictReason(verdict)}`,
      by: `hook ${verdict.hook}`,
      grantable: 'once',
    }));

/**
 * A tool whose declaration by its MCP server has changed. The runtime forgets the change when the
 * call runs, so one approval is enough.
 */
const declarationOpinions = ({ facts: { mcp } }: JudgedCall): readonly Opinion[] =>
  mcp?.declaration !== 'changed'
    ? []
    : [
        builtInQuestion(
          `the MCP server ${mcp.server} describes its tool ${mcp.tool} otherwise than when ` +
            'it last ran, so no rule covers this call',
          'once',
          'Do without it. The user can allow one call in a terminal; from then on the rules ' +
            'hold again.',
        ),
      ];

// ---- Questions of the model ----

/** A question of the model: no rule, grant or preset answers it. Hooks may deny it. */
const QUESTION: Opinion = {
  decision: 'ask',
  why: 'the model asks you',
  by: 'built in',
  grantable: 'once',
  unattended: 'nobody is there to ask. Decide yourself, and say in your answer what you assumed.',
};

/** The model proposes a plan outside of the preset `plan`. */
const PLAN_ELSEWHERE: Opinion = {
  decision: 'deny',
  why: 'a plan is proposed in the preset plan only. Do the work.',
  by: 'built in',
  grantable: 'once',
};

const questionOpinion = (
  { preset, presetBefore }: PolicySettings,
  { traits, reply }: JudgedCall,
): Opinion => {
  if (traits.asks !== 'plan') return QUESTION;
  // an accepted plan has a reply, and has left the preset already
  if (preset !== 'plan' && reply === undefined) return PLAN_ELSEWHERE;
  return {
    ...QUESTION,
    why: `a yes goes on in preset ${presetAfterPlan(presetBefore)}`,
    unattended: 'nobody is there to accept a plan. Give the plan as your answer, and end.',
  };
};

// ---- Access that a command is expected to need ----

/** The call as the model wrote it: without needs that were added because its words need them. */
const withoutExpectedNeeds = (call: JudgedCall): JudgedCall => {
  const { expects, needs, ...facts } = call.facts;
  if (expects === undefined || needs !== expects.needs) return call;
  const mark = needsMark(needs);
  const shape = facts.shape.endsWith(mark) ? facts.shape.slice(0, -mark.length) : facts.shape;
  return { ...call, facts: { ...facts, expects, shape } };
};

/**
 * The call with its expected needs, if a rule or an earlier answer allows them, or the user can be
 * asked. Otherwise the call without them, so that it runs in the sandbox.
 */
export const withExpectedNeeds = (
  settings: PolicySettings,
  grants: readonly Grant[],
  call: JudgedCall,
): JudgedCall => {
  const { expects } = call.facts;
  const asWritten = withoutExpectedNeeds(call);
  if (expects === undefined || commandPlace(settings, asWritten) !== 'sandboxed') return call;
  const { needs } = expects;
  const shape = `${asWritten.facts.shape}${needsMark(needs)}`;
  const widened = { ...asWritten, facts: { ...asWritten.facts, needs, shape } };
  if (commandPlace(settings, widened) !== 'leaving') return asWritten;
  const { decision, why } = decide(settings, grants, widened);
  // a question for another reason comes first: the one about access would not mention that reason
  const inside = decide(settings, grants, asWritten);
  if (inside.decision === 'ask' && inside.why !== why) return asWritten;
  const willBeAsked = decision === 'ask' && (settings.onAsk ?? 'ask') === 'ask';
  return decision === 'allow' || willBeAsked ? widened : asWritten;
};

// ---- The sandbox level of an allowed call ----

/**
 * What commands may change and reach: the workspace, also the network, nothing (read-only), or
 * everything.
 */
export type SandboxLevel = 'workspace' | 'workspace+net' | 'read-only' | 'off';

/** The sandbox level of one command; the strictest first. */
export const COMMAND_LEVELS = [
  'read-only',
  'read-only+net',
  'workspace',
  'workspace+net',
  'off',
] as const;
/** `reads`: that of a command that only reads. Nothing but the session's /tmp can be written. */
export type CommandLevel = (typeof COMMAND_LEVELS)[number] | 'reads';

const withNetwork: Readonly<Record<SandboxLevel, CommandLevel>> = {
  'read-only': 'read-only+net',
  workspace: 'workspace+net',
  'workspace+net': 'workspace+net',
  off: 'off',
};

/**
 * The sandbox level of an allowed call. Old sessions have no setting, since they had no sandbox.
 * With a missing sandbox only calls that the user approved get here.
 */
export const levelOfCall = (
  setting: SandboxLevel | 'missing' | undefined,
  needs: Needs | undefined,
): CommandLevel => {
  if (setting === undefined || setting === 'off' || setting === 'missing' || needs === 'outside')
    return 'off';
  return needs === 'network' ? withNetwork[setting] : setting;
};
