/** `pawl hooks list`: your own hooks, and those of the project, with what they may do. */

import type { HookDeclaration } from '@pawl/agent/extensions/hooks/hook-config';
import { openTrust } from '@pawl/agent/extensions/trust';
import { stateFolder } from '@pawl/agent/platform/environment';
import { oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { allowedHooks } from '../sessions/project-trust.js';
import { withConfig } from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import { usageStop } from '../settings/flags.js';

export type HooksFlags = { readonly workspace?: string };

/** Columns of a line. `pawl trust allow hook NAME` shows the whole command. */
const LINE_MAX = 300;

/** `level`: where a hook runs that names no sandbox. */
const hookLine = (hook: HookDeclaration, whose: string, level: string): string => {
  const tools = hook.tools === null ? '' : ` (${hook.tools.join(', ')})`;
  const command = typeof hook.command === 'string' ? hook.command : hook.command.join(' ');
  return (
    `${hook.name} (${whose}) on ${hook.on.join(', ')}${tools}, sandbox ` +
    `${hook.sandbox ?? level}: ${command}`
  );
};

export const runHooks = async (what = 'list', flags: HooksFlags): Promise<number> => {
  if (what !== 'list') throw usageStop(`pawl hooks has list, not '${what}'.`);
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const warn = (text: string): void => writeError(safe`pawl: ${makeSafe(text)}\n`);
  const configured = await withConfig({}, workspace, { command: 'run', resumed: false, warn });
  const { userHooks = [], projectHooks = [] } = configured;
  const trust = openTrust(stateFolder(process.env), warn);
  const ignore = (): void => undefined; // of a hook that is not run, the lines below say so
  const { env } = process;
  const allowed = await allowedHooks(workspace, projectHooks, trust, warn, env, ignore);
  const print = (text: string): void => writeOut(safe`${oneLine(text, LINE_MAX)}\n`);
  for (const hook of userHooks)
    print(hookLine(hook, hook.enabled ? 'yours' : 'yours, not enabled', 'off'));
  for (const { declaration: hook } of projectHooks) {
    const isAllowed = allowed.some(({ name }) => name === hook.name);
    const state = isAllowed ? 'allowed' : `not run: pawl trust allow hook ${hook.name}`;
    print(hookLine(hook, `project, ${hook.enabled ? state : 'not enabled'}`, 'workspace'));
  }
  if (userHooks.length + projectHooks.length === 0)
    writeError(safe`No hooks. docs/extend/user-hooks.md says how to set one up.\n`);
  return exitCodes.done;
};
