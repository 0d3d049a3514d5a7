/**
 * Policy rules: those of presets, of which the first match decides, and written ones, which people
 * keep in files.
 */

import type { Needs } from './judged-call.js';

export type Decision = 'allow' | 'ask' | 'deny';

/**
 * Where a shell command runs: in the sandbox, outside because the command needs that, without a
 * sandbox because the user switched it off, or because none works here. A call to a tool of an MCP
 * server runs in that server.
 */
export type CommandPlace = 'sandboxed' | 'leaving' | 'unfenced' | 'missing' | 'mcpServer';

/** One rule of a preset. The first that matches decides. */
export type PolicyRule = {
  readonly decision: Decision;
  /** A tool's name, or `*`. */
  readonly tool: string;
  /** `inside`: every path lies in the workspace; `outside`: some path does not; `anywhere`. */
  readonly where: 'inside' | 'outside' | 'anywhere';
  readonly touches: 'reads' | 'mutates' | 'anything';
  /** Host patterns of the call; absent: the call reaches no host, or the rule denies. */
  readonly hosts?: readonly string[];
  /**
   * The rule applies to commands in this place. Only such a rule, or one with the tool's name,
   * allows an MCP call.
   */
  readonly runs?: CommandPlace;
  /** The rule applies to commands that may delete or overwrite files that git could not restore. */
  readonly unrecoverable?: 'yes';
  readonly why: string;
  /**
   * For a rule that asks: the text for the model if no user can be asked and the call is denied.
   */
  readonly unattended?: string;
};

/** The subject of a written rule. */
export type RuleSubject =
  /**
   * Commands that begin with these words. An allowed one may leave the sandbox only for `needs`.
   */
  | { readonly kind: 'command'; readonly words: readonly string[]; readonly needs?: Needs }
  /** Paths that match the pattern. `reads`: only calls that change nothing. */
  | { readonly kind: 'path'; readonly pattern: string; readonly touches: 'reads' | 'anything' }
  | { readonly kind: 'host'; readonly pattern: string }
  /** Tools of MCP servers. */
  | { readonly kind: 'mcp'; readonly pattern: string };

/** A rule from a configuration file. deny > ask > allow, regardless of their order. */
export type WrittenRule = RuleSubject & {
  readonly decision: Decision;
  /** The file and line of the rule. */
  readonly origin: string;
  /**
   * `project`: a project's file has the rule. `folder`: the user's file has it for this folder, as
   * the answer to a question writes it. Absent: the user's file has it for all folders.
   */
  readonly from?: 'project' | 'folder';
};

/**
 * `full`: no sandbox, and no question or denial but by the user's own rules and hooks. For
 * containers and virtual machines (docs/set-up/permissions.md).
 */
export type Preset = 'plan' | 'careful' | 'auto' | 'ci' | 'full';

/**
 * The preset that follows an accepted plan: the one before `plan`. A plan never leads to `full`.
 */
export const presetAfterPlan = (before: Preset | undefined): 'careful' | 'auto' | 'ci' =>
  before === 'auto' || before === 'ci' ? before : 'careful';

/** A rule about every call, but for its limits. */
const rule = (
  decision: Decision,
  limits: Partial<PolicyRule> & Pick<PolicyRule, 'why'>,
): PolicyRule => ({
  decision,
  tool: '*',
  where: 'anywhere',
  touches: 'anything',
  ...limits,
});

// Texts for the model, if a call is denied because no user can be asked.
const NO_USER = 'and nobody is there to be asked';
const STAY =
  `the command leaves the sandbox, ${NO_USER}. Do without: use what is installed and what the ` +
  'workspace holds, run it without needs, or end with what the user is to run.';
const STAY_INSIDE =
  `the path lies outside the workspace, ${NO_USER}. Do without it, or end with what the user is ` +
  'to do.';
const NO_HOST =
  `the host was not allowed by name, ${NO_USER}. Do without it; the user can allow it with ` +
  '--allow-hosts.';
const NO_SANDBOX =
  'commands run in a sandbox, and none works here: pawl doctor tells the user why and what to do, ' +
  'or the user decides for --sandbox off. Go on with the tools for files.';

const NO_MCP =
  `an MCP server would do it outside the sandbox, ${NO_USER}. Do without it; the user can allow ` +
  'it with a rule: [rules.mcp] allow.';

// Rules and reasons that several presets share.
const SANDBOXED = rule('allow', { runs: 'sandboxed', why: 'nothing leaves the sandbox' });
const LOSES =
  'the preset careful asks before a command deletes or overwrites what could not be taken back';
const LEAVES = 'it leaves the sandbox';
const CHANGES_GIT = 'it changes git folders';
const STAY_OFF_GIT =
  `the command changes git folders, ${NO_USER}. Do without: run git itself, or end with what ` +
  'the user is to run.';

const MCP = 'an MCP server does it, outside the sandbox';
const MISSING = 'there is no sandbox here that would hold it';
const FULL = 'the preset full allows everything that no rule of yours forbids';

const OUTSIDE = 'the path lies outside the workspace';
const outside = (decision: 'ask' | 'deny', unattended?: string): PolicyRule =>
  rule(decision, {
    where: 'outside',
    why: OUTSIDE,
    ...(unattended === undefined ? {} : { unattended }),
  });
const READS = rule('allow', { where: 'inside', touches: 'reads', why: 'reading is allowed' });

/** Allows what stays in the workspace. */
const allowsInside = (preset: Preset): PolicyRule =>
  rule('allow', { where: 'inside', why: `the preset ${preset} allows the workspace` });

/**
 * The reason of the rule of `allowHosts`, by which it is recognized: rules have no id, and those
 * of stored sessions could not get one.
 */
const HOST_ALLOWED = 'the host is allowed';
const isAllowedHostsRule = ({ why }: PolicyRule): boolean => why === HOST_ALLOWED;

const hostsNotAllowed = (preset: Preset): PolicyRule =>
  rule('deny', {
    hosts: ['*'],
    why: `the preset ${preset} reaches only hosts that were allowed by name`,
  });

/** Puts a rule in front that lets read-only tools reach these hosts. It replaces an earlier one. */
export const allowHosts = (
  rules: readonly PolicyRule[],
  hosts: readonly string[],
): readonly PolicyRule[] => {
  const others = rules.filter((one) => !isAllowedHostsRule(one));
  if (hosts.length === 0) return others;
  return [
    rule('allow', { where: 'inside', touches: 'reads', hosts, why: HOST_ALLOWED }),
    ...others,
  ];
};

/** The hosts that `allowHosts` allowed. */
export const allowedHosts = (rules: readonly PolicyRule[]): readonly string[] =>
  rules.find(isAllowedHostsRule)?.hosts ?? [];

/** Whether a reason says no more than the needs of its call do. */
export const isNeedsReason = (why: string): boolean => [LEAVES, CHANGES_GIT, OUTSIDE].includes(why);

/**
 * The texts of a rule about leaving the sandbox, for a call that stays inside and changes git
 * folders.
 */
export const gitTexts = ({
  why,
  unattended,
}: PolicyRule): Pick<PolicyRule, 'why' | 'unattended'> => ({
  why: why.replace(LEAVES, CHANGES_GIT),
  ...(unattended === undefined
    ? {}
    : { unattended: unattended === STAY ? STAY_OFF_GIT : unattended }),
});

/** The rules of each preset. Calls without a matching rule are denied. */
export const presetRules: Readonly<Record<Preset, readonly PolicyRule[]>> = {
  plan: [
    SANDBOXED,
    rule('deny', { runs: 'leaving', why: `${LEAVES}, and the preset plan never does` }),
    rule('deny', {
      runs: 'unfenced',
      why: 'the preset plan only reads, and without a sandbox nothing keeps a command from writing',
    }),
    rule('ask', { runs: 'missing', why: MISSING, unattended: NO_SANDBOX }),
    rule('deny', { runs: 'mcpServer', why: `${MCP}, and the preset plan only reads` }),
    outside('deny'),
    READS,
    rule('deny', { touches: 'mutates', why: 'the preset plan only reads' }),
    hostsNotAllowed('plan'),
  ],
  careful: [
    rule('ask', { runs: 'sandboxed', unrecoverable: 'yes', why: LOSES }),
    SANDBOXED,
    rule('ask', { runs: 'leaving', why: LEAVES }),
    rule('ask', {
      runs: 'unfenced',
      why: 'the preset careful asks before a command without a sandbox',
    }),
    rule('ask', { runs: 'missing', why: MISSING, unattended: NO_SANDBOX }),
    rule('ask', { runs: 'mcpServer', why: MCP, unattended: NO_MCP }),
    outside('ask'),
    READS,
    rule('ask', {
      where: 'inside',
      touches: 'mutates',
      why: 'the preset careful asks before changes',
    }),
    rule('ask', {
      where: 'inside',
      hosts: ['*'],
      why: 'the preset careful asks before it reaches a host',
    }),
  ],
  auto: [
    SANDBOXED,
    rule('ask', { runs: 'leaving', why: LEAVES, unattended: STAY }),
    rule('allow', {
      runs: 'unfenced',
      why: 'the preset auto allows commands, and the sandbox is off',
    }),
    rule('ask', { runs: 'missing', why: MISSING, unattended: NO_SANDBOX }),
    rule('ask', { runs: 'mcpServer', why: MCP, unattended: NO_MCP }),
    outside('ask', STAY_INSIDE),
    allowsInside('auto'),
    rule('ask', { hosts: ['*'], why: 'the host was not allowed by name', unattended: NO_HOST }),
  ],
  ci: [
    SANDBOXED,
    rule('deny', { runs: 'leaving', why: `${LEAVES}, and the preset ci never does` }),
    rule('allow', {
      runs: 'unfenced',
      why: 'the preset ci allows commands, and the sandbox is off',
    }),
    rule('deny', { runs: 'missing', why: `${MISSING}. ${NO_SANDBOX}` }),
    rule('deny', {
      runs: 'mcpServer',
      why: `${MCP}, and the preset ci wants a rule for it: [rules.mcp] allow`,
    }),
    outside('deny'),
    allowsInside('ci'),
    hostsNotAllowed('ci'),
  ],
  full: [
    rule('allow', { why: FULL }),
    rule('allow', { hosts: ['*'], why: FULL }),
    rule('allow', { runs: 'mcpServer', why: FULL }),
  ],
};
