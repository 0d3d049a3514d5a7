/**
 * `pawl policy explain`: the decision on a command, the rule behind it, and where the command would
 * run.
 */

import type { Settings } from '@pawl/agent/machine/settings';
import type { CommandLevel, SandboxLevel } from '@pawl/agent/policy/decide';
import type { Needs, ParsedCommand } from '@pawl/agent/policy/judged-call';
import { type PolicyRule, type Preset, presetRules } from '@pawl/agent/policy/presets';
import type { Explained } from '@pawl/agent/policy/shell/explain-command';
import { probeUnlessOff, sandboxSettings } from '@pawl/agent/session/session-settings';
import { warningText } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { withConfig } from '../settings/configuration.js';
import { realWorkspace, type Warn } from '../settings/connect-model.js';
import {
  type RunFlags,
  readAllowedHosts,
  readPreset,
  readSandbox,
  usageStop,
} from '../settings/flags.js';

export type PolicyFlags = RunFlags & { readonly needs?: string; readonly json?: true };

/** Exit code of each decision. */
const decisionExits = {
  allow: exitCodes.done,
  ask: exitCodes.taskFailed,
  deny: exitCodes.notPermitted,
} as const;

const readNeeds = ({ needs }: PolicyFlags): Needs | undefined => {
  if (needs === undefined || needs === 'network' || needs === 'outside' || needs === 'repository')
    return needs;
  throw usageStop(`--needs is network, outside or repository, not ${needs}`);
};

const policySettings = async (
  flags: PolicyFlags,
  workspace: string,
  warn: Warn,
): Promise<Pick<Settings, 'rules' | 'workspace'> & Partial<Settings>> => {
  const all = await withConfig(flags, workspace, { command: 'run', resumed: false, warn });
  const preset: Preset = readPreset(all) ?? 'careful';
  const chosen: SandboxLevel | undefined = readSandbox(all) ?? undefined;
  const sandboxProbe = await probeUnlessOff(chosen, workspace, preset);
  const rules: readonly PolicyRule[] = presetRules[preset];
  const choice = chosen === undefined ? { preset } : { preset, sandbox: chosen };
  // as for a new session: what was before (the second argument) does not matter
  const { sandbox } = sandboxSettings(
    choice,
    { sandbox: 'off', preset, formatter: 'off' },
    sandboxProbe,
  );
  readAllowedHosts(all); // only to refuse a bad value
  return {
    rules,
    preset,
    workspace,
    sandbox,
    onAsk: preset === 'ci' ? 'deny' : 'ask',
    writtenRules: all.writtenRules ?? [],
  };
};

const NOTHING = 'nothing but a private /tmp and home';
const WORKSPACE = 'the workspace, a private /tmp and home';

const writableAt: Readonly<Record<CommandLevel, string>> = {
  reads: 'nothing but a private /tmp',
  'read-only': NOTHING,
  'read-only+net': NOTHING,
  workspace: WORKSPACE,
  'workspace+net': WORKSPACE,
  off: 'everything that you can write',
};

/** The sandbox of the session, and what the command could reach. */
const commandReach = (
  { level }: Explained,
  sandbox: Settings['sandbox'],
  needs: Needs | undefined,
) => ({
  sandbox: sandbox ?? 'off',
  network: level === 'off' || level.endsWith('+net') ? 'yes' : 'no',
  writable: `${writableAt[level]}${needs === 'repository' ? ', git folders' : ''}`,
});

const wordText = (word: string | null): string =>
  word === null ? '…' : /^[\w./:@%+=,-]+$/.test(word) ? word : JSON.stringify(word);

const commandText = ({ words, assignments, writes, program, wrapped }: ParsedCommand): string => {
  const text = [...assignments, ...words.map(wordText)].join(' ') || '(no words)';
  const into = writes.length === 0 ? '' : `  writes ${writes.map(wordText).join(', ')}`;
  const what = program === null ? '' : `  ${program}`;
  return `  ${wrapped === undefined ? '' : '└ '}${text}${what}${into}`;
};

/** `leaving` has several meanings: the command gets the network, git folders, or everything. */
const sandboxText = (
  { place, level }: Explained,
  { sandbox, network }: ReturnType<typeof commandReach>,
): string => {
  if (place === 'missing') return 'none works here (pawl doctor)';
  if (place !== 'leaving') return sandbox;
  if (level === 'off') return 'left';
  return `${sandbox}, left for ${network === 'yes' ? 'the network' : 'git folders'}`;
};

const explanationText = (explained: Explained, reach: ReturnType<typeof commandReach>): string => {
  const { decision, why, by, facts, unrecoverable = [] } = explained;
  return [
    `${decision}: ${why}`,
    `rule: ${by}`,
    ...(facts.unclear === null ? [] : [`unclear: ${facts.unclear}`]),
    ...(facts.indirect === undefined ? [] : [`more may run: ${facts.indirect}`]),
    facts.commands.length === 0 ? 'commands: none' : 'commands:',
    ...facts.commands.map(commandText),
    ...(unrecoverable.length === 0
      ? []
      : [`deletes or overwrites, and nothing could bring back: ${unrecoverable.join(', ')}`]),
    `sandbox: ${sandboxText(explained, reach)}; network: ${reach.network}; writable: ${reach.writable}`,
    '',
  ].join('\n');
};

/**
 * Explains one command without running it. Exit code 0 if it is allowed, 1 if the user is asked, 77
 * if it is denied.
 */
export const explainPolicy = async (
  what: string | undefined,
  text: string | undefined,
  flags: PolicyFlags,
): Promise<number> => {
  if (what !== undefined && what !== 'explain')
    throw usageStop(`There is no pawl policy ${what}, only pawl policy explain "command"`);
  if (text === undefined || text.trim() === '')
    throw usageStop('Which command? For example: pawl policy explain "npm test"');
  const warn = (message: string): void => writeError(safe`${warningText(message)}\n`);
  const needs = readNeeds(flags);
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const settings = await policySettings(flags, workspace, warn);
  const [
    { explainCommand },
    { answerOfGit, discardedByGit, lossesBeside, lossesByGit },
    { createProtectedGitFiles },
    { createLateCheckpoints },
    { readUserPlaces },
  ] = await Promise.all([
    import('@pawl/agent/policy/shell/explain-command'),
    import('@pawl/agent/workspace/uncommitted-files'),
    import('@pawl/agent/workspace/protected-git-files'),
    import('@pawl/agent/session/equipment'),
    import('@pawl/agent/secrets/user-places'),
  ]);
  const environment = process.env;
  // what they would keep; there is no session, and nothing is written
  const checkpoints = createLateCheckpoints({ workspace, sessionId: 'none', environment });
  const explained = await explainCommand(text, settings, {
    // finds the files that neither git nor checkpoints could bring back
    findLosses: lossesBeside(checkpoints, lossesByGit(environment)),
    findDiscarded: discardedByGit(environment, () => undefined),
    askGit: answerOfGit(environment),
    protectedGitFiles: createProtectedGitFiles(environment),
    userShell: environment.SHELL ?? null,
    userPlaces: readUserPlaces(environment),
    ...(needs === undefined ? {} : { needs }),
  });
  const reach = commandReach(explained, settings.sandbox, needs);
  const { facts, ...decided } = explained;
  if (flags.json)
    writeJson({ command: text, preset: settings.preset, ...decided, ...facts, reach });
  else writeOut(makeSafe(explanationText(explained, reach)));
  return decisionExits[explained.decision];
};
