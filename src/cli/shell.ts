import type { Blobs } from '../needs.js';
import { createFileMemory } from '../tools/file-memory.js';
import { createJobs } from '../tools/jobs.js';

/** A command of the user's own (`!command`): the bash tool runs it, with all that it keeps to. */
export type Shell = {
  /** Resolves with the output and how it ended; it does not reject. */
  readonly ended: Promise<string>;
  stop(): void;
};

/** How long a command that was stopped has to end. */
const GRACE_MS = 2_000;
let count = 0;

export const startShell = (
  command: string,
  workspace: string,
  blobs: Blobs,
  progress: (text: string) => void,
): Shell => {
  const stopping = new AbortController();
  const forcing = new AbortController();
  count += 1;
  const callId = `own-${count}`;
  const run = async (): Promise<string> => {
    const { commandTool } = await import('../tools/builtin.js');
    const outcome = await commandTool().run(
      { command },
      {
        ...{ workspace, callId, paths: [workspace], hosts: [], blobs, progress },
        ...{ signal: stopping.signal, force: forcing.signal },
        ...{ files: createFileMemory(), jobs: createJobs(), left: () => ({ usd: null, tokens: null }) },
      },
    );
    return outcome.text;
  };
  return {
    ended: run().catch((error: unknown) => (error instanceof Error ? error.message : String(error))),
    stop() {
      stopping.abort('cancelled');
      setTimeout(() => forcing.abort('cancelled'), GRACE_MS).unref();
    },
  };
};
