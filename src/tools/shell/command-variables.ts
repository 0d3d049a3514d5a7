import type { ProcessEnvironment } from '../../base/process-environment.js';
import { MARKER } from './end-processes.js';
import { createIdentityFinder } from './git-identity.js';

/** The variables of single commands; what all have in common is in src/sandbox/command-environment.ts. */

/** Variables of one command, beside those that all commands of the session have. */
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
