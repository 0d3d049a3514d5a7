import path from 'node:path';
import { fileJournals } from '../../packages/agent/src/journal/file-store.js';
import { agentMachine } from '../../packages/agent/src/journal/journaled-agent-machine.js';
import { systemClock } from '../../packages/agent/src/platform/clock.js';
import { newSessionId } from '../../packages/agent/src/session/equipment.js';
import { createRuntime } from '../../packages/agent/src/session/runtime.js';
import { createFileMemory } from '../../packages/agent/src/tools/file-change.js';
import { createJobs } from '../../packages/agent/src/tools/jobs.js';
import { lastingSessions } from '../../packages/serve/src/node-runtime.js';
import type { MakeNodeRuntime } from './node-under-test.js';

/** The runtime inside one process, with journals on disk, as the runtime of a node. */

export const makeLocalNode: MakeNodeRuntime = async ({ model, tools, hooks, settingsFor }, folder) => {
  const runtime = createRuntime({
    journals: fileJournals({ folder: path.join(folder, 'journals') }),
    clock: systemClock,
    machine: agentMachine.fingerprint,
    equip: async () => ({
      model: () => model,
      tools,
      files: createFileMemory(),
      jobs: createJobs(),
      compactionInstructions: () => 'Summarise.',
      hooks,
    }),
    newSessionId: () => newSessionId(systemClock),
    random: Math.random,
    report: () => undefined,
  });
  const node = lastingSessions(runtime, async ({ workspace }) => ({
    settings: settingsFor(workspace),
    instructions: 'Be brief.',
  }));
  return {
    runtime: { ...node, endsWithNode: true, open: async (sessionId) => void (await runtime.open(sessionId)) },
    stop: async () => undefined, // the node has closed its sessions
  };
};
