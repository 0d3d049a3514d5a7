import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Preset } from '../agent/settings.js';
import type { Clock } from '../needs.js';
import { attempt } from '../runtime/wall.js';

/** The branch that is checked out, if the workspace is the top of a repository and on a branch. */
const readBranch = async (workspace: string): Promise<string | undefined> => {
  const head = await attempt(() => readFile(path.join(workspace, '.git', 'HEAD'), 'utf8'));
  // a folder without a repository has no branch, and neither has one whose repository can't be read
  return head.kind === 'done' ? /^ref: refs\/heads\/(.+)\n?$/.exec(head.value)?.[1] : undefined;
};

type Place = { readonly workspace: string; readonly preset: Preset; readonly clock: Clock };

/** What the model is told from now on; what of it could not be used is reported. */
export const instruct = async (
  { workspace, preset, clock }: Place,
  report: (fault: Error) => void,
): Promise<string> => {
  const [{ instructionsFor }, { loadAgentsFiles }] = await Promise.all([
    import('../prompt/instructions.js'),
    import('../prompt/agents-files.js'),
  ]);
  const [{ files, warnings }, gitBranch] = await Promise.all([
    loadAgentsFiles(workspace),
    readBranch(workspace),
  ]);
  for (const warning of warnings) report(new Error(warning));
  return instructionsFor({
    workspace,
    platform: process.platform,
    dateIso: new Date(clock.now()).toISOString().slice(0, 10),
    agentsFiles: files,
    preset,
    ...(gitBranch === undefined ? {} : { gitBranch }),
  });
};
