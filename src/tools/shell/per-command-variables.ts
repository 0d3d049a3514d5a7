import type { ProcessEnvironment } from '../../base/process-environment-type.js';
import { MARKER } from './end-processes.js';
import { createIdentityFinder } from './git-identity.js';

/** Variables of single commands. src/sandbox/command-environment.ts has the ones that all commands share. */

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
