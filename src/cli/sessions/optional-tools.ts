import type { AgentOptions } from '../../api/create-agent.js';
import type { Model } from '../../ports/model.js';
import type { RunFlags } from '../flags.js';

type Place = { readonly model: Model; readonly stateFolder: string; readonly resumes: boolean };

/**
 * The tools that a session has only if the user wants them. The tools of a session are frozen when it begins: a resumed
 * one may have any of these, so all of them are provided.
 */
export const optionalTools = async (
  { explore, tasks }: RunFlags,
  { model, stateFolder, resumes }: Place,
): Promise<Required<Pick<AgentOptions, 'moreTools' | 'tasks'>>> => ({
  tasks: resumes || tasks === true,
  moreTools:
    resumes || explore === true
      ? [(await import('../ask/explore-tool.js')).exploreTool(model, stateFolder)]
      : [],
});
