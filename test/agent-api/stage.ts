import { mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { openSession, type SessionOptions } from '../../src/agent-api.js';
import { memoryJournals } from '../../src/journal/memory.js';
import type { Model, Tool } from '../../src/needs.js';

/** A session in a folder of its own that is gone after the test, with its journal in memory. */
export const openHere = async (
  context: TestContext,
  model: Model,
  options: Partial<SessionOptions> & {
    readonly tools?: readonly Tool[];
    report?: (fault: Error) => void;
  } = {},
) => {
  const workspace = await realpath(await mkdtemp(path.join(os.tmpdir(), 'pawl-library-')));
  context.after(() => rm(workspace, { recursive: true, force: true }));
  const journals = memoryJournals();
  const session = await openSession({ journals, model, workspace, ...options });
  context.after(() => session.close().catch(() => undefined)); // a test may have ended it otherwise
  return { session, journals, workspace };
};
