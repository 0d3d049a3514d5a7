import type { CallFacts, JudgedCall, Needs } from '../machine/call.js';
import type { ApprovalScope } from '../machine/event.js';
import type { Grant } from '../machine/settings.js';
import { beginsWith } from './commands/command-patterns.js';
import { grantablePrefix } from './commands/grantable-prefix.js';
import { uncoveredWord } from './commands/harmless-options.js';

/** Grants: permissions of the user that last longer than one call. */

/** The answers that a question may offer: any, none beyond this exact call, or only once. */
export type Grantable = 'any' | 'thisCall' | 'once';

/** Whether granted access covers the wanted access; `outside` includes the network. */
export const coversNeeds = (granted: Needs | undefined, wanted: Needs | undefined): boolean =>
  wanted === undefined || granted === 'outside' || granted === wanted;

const liesIn = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);

/** The access outside the sandbox or workspace that a call needs; undefined if it stays inside. */
export const needsOf = ({ needs, paths }: CallFacts, workspace: string): Needs | undefined =>
  needs ?? (paths.some((path) => !liesIn(workspace, path)) ? 'outside' : undefined);

/** Whether a prefix covers a call. The command must stand alone, so that no other command hides behind the prefix. */
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
 * Whether a grant allows a call that would be asked about. `widened`: the command runs with more than its sandbox allows,
 * so that a prefix covers no unknown options.
 */
export const grantCovers = (
  grant: Grant,
  call: JudgedCall,
  workspace: string,
  reach: 'fenced' | 'widened' = 'fenced',
): boolean => coversNeeds(grant.needs, needsOf(call.facts, workspace)) && coversAsked(grant, call, reach);

const grantFor = (call: JudgedCall, scope: ApprovalScope, workspace: string): Grant | null => {
  const { tool, facts, traits } = call;
  const needs = needsOf(facts, workspace);
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
export const grantOf = (
  call: JudgedCall,
  scope: ApprovalScope,
  workspace: string,
  grantable: Grantable = 'any',
): Grant | null => {
  if (grantable === 'once' || (grantable === 'thisCall' && scope !== 'shape')) return null;
  const grant = grantFor(call, scope, workspace);
  return grant !== null && grantCovers(grant, call, workspace) ? grant : null;
};
