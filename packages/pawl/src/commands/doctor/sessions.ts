import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { sessionsFolder } from '@pawl/agent/journal/paths-and-durable-writes';
import { checkHolder, describeSelf, readHolder } from '@pawl/agent/journal/write/lock-owner';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import { loadAgentsFiles } from '@pawl/agent/session/prompt/agents-files';
import type { Check, DoctorWorld } from './check-context.js';

/** Checks of sessions: open elsewhere, torn journal tails, instruction files that can't be used. */

const filesOf = ({ environment }: DoctorWorld, suffix: RegExp): readonly string[] => {
  const folder = sessionsFolder(stateFolder(environment));
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => suffix.test(name))
    .map((name) => path.join(folder, name));
};

export const sessionChecks: readonly Check[] = [
  {
    name: 'sessionOpen',
    level: 'note',
    look: async (world) => {
      const self = await describeSelf(world.platform);
      for (const file of filesOf(world, /\.lock$/)) {
        const holder = await readHolder(file);
        if (holder === undefined || holder.pid === process.pid) continue;
        if ((await checkHolder(file, holder, self)) !== 'unknown') continue;
        const id = path.basename(file, '.lock');
        return {
          what: `the session ${id} is open in another process (${holder.pid} on ${holder.host})`,
          repair: `End it there before you continue it here: kill ${holder.pid}. If you can't reach it: pawl --resume ${id} --take-over`,
        };
      }
      return null;
    },
  },
  {
    name: 'tornTails',
    level: 'note',
    look: (world) => {
      const torn = filesOf(world, /\.torn-\d+$/);
      return torn.length === 0
        ? null
        : {
            what: `${torn.length} journal ends were cut off in the middle of writing and kept aside`,
            repair: `They contain nothing that was acknowledged. You can delete them: ${torn[0]}`,
          };
    },
  },
  {
    name: 'instructionsUnused',
    level: 'note',
    look: async ({ workspace }) => {
      if (!existsSync(workspace)) return null;
      const { warnings } = await loadAgentsFiles(workspace);
      return warnings.length === 0
        ? null
        : {
            what: warnings.join('; '),
            repair: 'Shorten AGENTS.md, or make it a readable file of the repository',
          };
    },
  },
];
