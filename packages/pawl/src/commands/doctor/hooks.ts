import { existsSync, realpathSync } from 'node:fs';
import { consult } from '../../settings/apply-config.js';
import type { Check } from './check-context.js';

/** A check of the user's own hooks, without running them. */

export const hookChecks: readonly Check[] = [
  {
    name: 'hookUnusable',
    level: 'fault',
    look: async (world) => {
      const workspace = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
      const { userHooks } = await consult(workspace, world.environment, {});
      if (userHooks.length === 0) return null;
      const { programFault } = await import('@pawl/agent/extensions/user-hooks/hook-program');
      const place = { workspace, environment: world.environment };
      const faults = userHooks.flatMap(({ name, command, enabled }) => {
        const fault = enabled ? programFault({ command, folder: null }, place) : null;
        return fault === null ? [] : [`${name}: ${fault}`];
      });
      if (faults.length === 0) return null;
      return {
        what: `Hooks can't be run: ${faults.join('; ')}`,
        repair: 'Correct them in your config.toml, or write enabled = false. Then: pawl hooks list',
      };
    },
  },
];
