import { existsSync, realpathSync } from 'node:fs';
import { probeSandbox } from '../../sandbox/session/session-sandbox.js';
import { consult } from '../settings/apply-config.js';
import type { Check, DoctorWorld } from './doctor-types.js';

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
            what: `commands can't be run in a sandbox here: ${probe.reason} In a terminal each is asked for, without one each is denied; pawl ask runs programs in QuickJS, which is slower`,
            repair: `${probe.repair} Or decide that they run without: sandbox = "off" in your own config.toml, sensible where a container is the fence already`,
          };
    },
  },
  {
    name: 'sandboxOff',
    level: 'note',
    look: async (world) =>
      (await isOff(world))
        ? {
            what: 'commands run without a sandbox, with all that you may do: it is switched off',
            repair: 'If that is not what you want: pawl config --origin says where it stands',
          }
        : null,
  },
];
