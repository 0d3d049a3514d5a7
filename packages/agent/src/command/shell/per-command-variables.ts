import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { MARKER } from './end-processes.js';
import { createIdentityFinder } from './git-identity.js';

/** Variables of single commands. packages/agent/src/command/sandbox/command-environment.ts has the ones that all commands share. */

/** Variables of one command, in addition to the shared ones. */
export type CommandVariables = (workspace: string, command: string, marker: string) => ProcessEnvironment;

export const createCommandVariables = (own: ProcessEnvironment): CommandVariables => {
  const outer = own[MARKER] === undefined ? '' : `${own[MARKER]} `;
  const identity = createIdentityFinder(own);
  return (workspace, command, marker) => ({
    ...identity(workspace, command),
    PWD: workspace,
    [MARKER]: `${outer}${marker}`,
  });
};

/**
 * Settings of git for a command that a rule lets out of the sandbox: git runs no hook and no watcher of a repository that
 * a fenced command could have prepared, and enters no submodule. Transports, credentials and signatures stay the user's.
 */
const HARDENED_GIT = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['safe.bareRepository', 'explicit'],
  ['protocol.ext.allow', 'never'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['status.submoduleSummary', 'false'],
] as const;

/** The variables that give git these settings, after those that the user's own environment gives it. */
export const hardenedGit = (own: ProcessEnvironment): ProcessEnvironment => {
  const before = Number(own.GIT_CONFIG_COUNT ?? 0) || 0;
  const settings = HARDENED_GIT.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${before + index}`, key],
    [`GIT_CONFIG_VALUE_${before + index}`, value],
  ]);
  return { ...Object.fromEntries(settings), GIT_CONFIG_COUNT: String(before + HARDENED_GIT.length) };
};
