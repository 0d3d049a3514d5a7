import { createExploreTool } from '../explore-tool.js';
import type { Model, Tool } from '../needs.js';

/** Code mode as a tool of the session's own model; its runs stand beside the sessions. */
export const exploreTool = (model: Model, folder: string): Tool =>
  createExploreTool(async () => {
    const [{ createAsker }, { fileAskJournals }] = await Promise.all([
      import('../ask-api.js'),
      import('../journal/ask.js'),
    ]);
    const journals = fileAskJournals({ folder });
    return { journals, asker: createAsker({ model, journals }) };
  });
