import { existsSync, realpathSync } from 'node:fs';
import { probeSandbox } from '@pawl/agent/command/sandbox/session/session-sandbox';
import { consult } from '../../settings/apply-config.js';
import type { Check, DoctorWorld } from './check-context.js';

/** Checks of the sandbox for the agent's commands. */

const workspaceOf = ({ workspace }: DoctorWorld): string =>
  existsSync(workspace) ? realpathSync(workspace) : workspace;

const isOff = async (world: DoctorWorld): Promise<boolean> => {
  const { resolved } = await consult(workspaceOf(world), world.environment, {});
  return resolved.find(({ setting }) => setting.key === 'sandbox')?.value === 'off';
};

export const sandboxChecks: readonly Check[] = [
  {
    name: 'sandboxMissing',
    level: 'fault',
    look: async (world) => {
      if (await isOff(world)) return null;
      const probe = await probeSandbox(world.environment, workspaceOf(world), 'fresh');
      return probe.kind === 'works'
        ? null
        : {
            what: `commands can't be run in a sandbox here: ${probe.reason} In a terminal Pawl asks before each command, without one it denies them; pawl ask runs programs in QuickJS, which is slower`,
            repair: `${probe.repair} Or turn the sandbox off, for example inside a container: sandbox = "off" in your own config.toml`,
          };
    },
  },
  {
    name: 'sandboxOff',
    level: 'note',
    look: async (world) =>
      (await isOff(world))
        ? {
            what: 'commands run without a sandbox and can do all that you can do: the sandbox is off',
            repair: 'To turn it on again: pawl config --origin names the file that turns it off',
          }
        : null,
  },
];
