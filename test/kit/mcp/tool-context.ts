import { levelOfCall } from '../../../packages/agent/src/policy/decide.js';
import type { Blobs } from '../../../packages/agent/src/ports/journal.js';
import { createJobs, type ToolContext } from '../../../packages/agent/src/ports/tool.js';
import { createFileMemory } from '../../../packages/agent/src/tools/file-change.js';

/** The context of one call of an MCP tool, with its progress and blobs for the test to look at. */
export type TestContext = ToolContext & {
  readonly shown: string[];
  readonly kept: Map<string, string>;
};

export const testContext = (signal: AbortSignal = new AbortController().signal): TestContext => {
  const shown: string[] = [];
  const kept = new Map<string, string>();
  const blobs: Blobs = {
    async put(text) {
      const key = `blob${kept.size + 1}`;
      kept.set(key, text);
      return key;
    },
    get: async (key) => kept.get(key),
  };
  return {
    workspace: '/',
    callId: 'c1',
    batchId: 'b1',
    paths: [],
    hosts: [],
    sandbox: levelOfCall('workspace', undefined),
    signal,
    force: new AbortController().signal,
    files: createFileMemory(),
    jobs: createJobs(),
    left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
    progress: (text) => void shown.push(text),
    blobs,
    shown,
    kept,
  };
};
