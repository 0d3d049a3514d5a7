import path from 'node:path';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import { systemClock } from '@pawl/agent/platform/clock';
import { createJobs } from '@pawl/agent/ports/tool';
import { newSessionId } from '@pawl/agent/session/equipment';
import { LocalRuntime } from '@pawl/agent/session/runtime';
import { createFileMemory } from '@pawl/agent/tools/file-change';
import { lastingSessions } from '../src/node-runtime.js';
import type { MakeNodeRuntime } from './node-under-test.js';

/** The runtime inside one process, with journals on disk, as the runtime of a node. */

export const makeLocalNode: MakeNodeRuntime = async (
  { model, tools, hooks, settingsFor },
  folder,
) => {
  const runtime = new LocalRuntime({
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
    runtime: {
      ...node,
      endsWithNode: true,
      open: async (sessionId) => void (await runtime.open(sessionId)),
    },
    stop: async () => undefined, // the node has closed its sessions
  };
};
