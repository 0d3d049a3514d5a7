import type { Tool } from '../needs.js';
import type { SessionNeeds } from '../runtime/equipment.js';
import type { Models } from '../runtime/models.js';

/** What one session works with, made anew for each; `tools` replace those that come with the product. */
export const equip = async (models: Models, tools: readonly Tool[] | undefined): Promise<SessionNeeds> => {
  const [{ createFileMemory }, { createJobs }, { compactionInstructions }, { createHooks }, builtin] =
    await Promise.all([
      import('../tools/file-memory.js'),
      import('../tools/jobs.js'),
      import('../prompt/compaction.js'),
      import('../workspace/hooks.js'),
      tools === undefined ? import('../tools/builtin.js') : null,
    ]);
  return {
    model: models.get,
    tools: tools ?? builtin?.builtinTools() ?? [],
    files: createFileMemory(),
    jobs: createJobs(),
    compactionInstructions,
    hooks: createHooks({ environment: process.env }),
  };
};
