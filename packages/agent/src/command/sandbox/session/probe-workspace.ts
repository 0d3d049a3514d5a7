import { findProgram, searchPrograms } from '../../../platform/programs/find-program.js';
import { probeArguments } from '../bubblewrap-arguments.js';
import type { CommandSandboxOptions } from '../command-sandbox-types.js';
import { hostMounts } from '../host/host-folders.js';
import { notInstalled, notLinux, type Probed, probeBubblewrap } from '../sandbox-probe.js';
import { commandFilter } from '../system-calls/command-system-calls.js';
import { unfitWorkspace } from './unfit-workspace.js';

/** Whether commands of a workspace can be fenced. Apart from the sandbox, which is loaded with the first command. */

const ELSEWHERE = 'Start Pawl in a folder of the project, or use --sandbox off.';

/** Never rejects. */
export const probeWorkspace = async (options: CommandSandboxOptions): Promise<Probed> => {
  const { environment, workspace, cacheFolder, hidden = [] } = options;
  if (process.platform !== 'linux') return notLinux();
  const unfit = unfitWorkspace({ workspace, environment, hidden });
  if (unfit !== null) return { kind: 'missing', reason: unfit, repair: ELSEWHERE };
  const bwrap = findProgram('bwrap', { environment, workspace });
  if (bwrap === null) return notInstalled(searchPrograms({ environment, workspace }).whyNot('bwrap'));
  const filter = commandFilter(process.arch, { local: true });
  const isFiltered = filter !== null;
  return probeBubblewrap(
    { bwrap, filter, words: (features) => probeArguments(features, hostMounts(), isFiltered) },
    cacheFolder,
  );
};
