import type { TestContext } from 'node:test';
import { memoryJournals } from '../../../packages/agent/src/journal/memory-store.js';
import type { Model } from '../../../packages/agent/src/ports/model.js';
import type { Tool } from '../../../packages/agent/src/ports/tool.js';
import {
  openSession,
  type SessionOptions,
} from '../../../packages/agent/src/session/create-agent.js';
import { temporaryFolder } from '../../temporary-folder.js';

/** A session in a folder of its own that is gone after the test, with its journal in memory. */
export const openHere = async (
  context: TestContext,
  model: Model,
  options: Partial<SessionOptions> & {
    readonly tools?: readonly Tool[];
    report?: (fault: Error) => void;
  } = {},
) => {
  const workspace = temporaryFolder(context, 'library');
  const journals = memoryJournals();
  const session = await openSession({ journals, model, workspace, ...options });
  context.after(() => session.close().catch(() => undefined)); // a test may have ended it otherwise
  return { session, journals, workspace };
};
