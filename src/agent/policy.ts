import type { JudgedCall } from './call.js';
import { hostFits, isPrivateHost } from './hosts.js';
import type { Decision, Grant, Rule, Settings } from './settings.js';

/** Rules x judged call -> allow, ask or deny. The first rule that fits decides; what no rule fits is denied. */
export type PolicyDecision = { readonly decision: Decision; readonly why: string };

const liesIn = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);

/** `*` and `*.example.com` never allow a private host: it must be named. */
const means = (rule: Rule, pattern: string, host: string): boolean =>
  hostFits(pattern, host) && (rule.decision !== 'allow' || !pattern.startsWith('*') || !isPrivateHost(host));

/** A rule that names no hosts is not about calls that reach one, unless it denies. */
const fitsHosts = (rule: Rule, { facts }: JudgedCall): boolean => {
  const { hosts } = rule;
  if (hosts === undefined) return facts.hosts.length === 0 || rule.decision === 'deny';
  const fitting = facts.hosts.filter((host) => hosts.some((pattern) => means(rule, pattern, host)));
  if (rule.decision === 'allow') return fitting.length > 0 && fitting.length === facts.hosts.length;
  return fitting.length > 0;
};

const fits = (rule: Rule, call: JudgedCall, workspace: string): boolean => {
  if (rule.tool !== '*' && rule.tool !== call.tool) return false;
  const inside = call.facts.paths.every((path) => liesIn(workspace, path));
  if (rule.where !== 'anywhere' && (rule.where === 'inside') !== inside) return false;
  if (!fitsHosts(rule, call)) return false;
  return rule.touches === 'anything' || (rule.touches === 'mutates') === call.traits.mutating;
};

const covers = (grant: Grant, call: JudgedCall): boolean =>
  grant.tool === call.tool && (grant.scope === 'session' || grant.shape === call.facts.shape);

/** What the policy says of a call; a grant turns `ask` into `allow`, never `deny`. */
export const decide = (
  settings: Pick<Settings, 'rules' | 'workspace'>,
  grants: readonly Grant[],
  call: JudgedCall,
): PolicyDecision => {
  const rule = settings.rules.find((candidate) => fits(candidate, call, settings.workspace));
  if (rule === undefined) return { decision: 'deny', why: 'no rule allows it' };
  if (rule.decision !== 'ask') return { decision: rule.decision, why: rule.why };
  const granted = grants.some((grant) => covers(grant, call));
  return granted ? { decision: 'allow', why: 'you allowed it before' } : { decision: 'ask', why: rule.why };
};
