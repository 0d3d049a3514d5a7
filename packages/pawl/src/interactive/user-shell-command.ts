import { createJobs } from '@pawl/agent/command/job-registry';
import {
  createSessionSandbox,
  type SessionSandbox,
} from '@pawl/agent/command/sandbox/session/session-sandbox';
import { keyVariables } from '@pawl/agent/models/provider-table';
import type { Blobs } from '@pawl/agent/ports/journal';
import { createFileMemory } from '@pawl/agent/tools/file-memory';

/** The user's own shell command (`!command`). The same code runs it as the model's commands. */
export type UserCommand = {
  /** The output and how the command ended. Never rejects. */
  readonly ended: Promise<string>;
  stop(): void;
};

/** Grace period in ms between the stop and the kill. */
const GRACE_MS = 2_000;
let count = 0;

/** The user's commands get all environment variables, including secrets, except the keys of model providers. */
const ownSandbox = (): SessionSandbox => {
  const own = process.env;
  const passEnvironment = Object.keys(own).filter((name) => !keyVariables.includes(name));
  return createSessionSandbox({ environment: own, passEnvironment });
};

export const startUserCommand = (
  command: string,
  workspace: string,
  blobs: Blobs,
  progress: (text: string) => void,
): UserCommand => {
  const stopping = new AbortController();
  const forcing = new AbortController();
  count += 1;
  const callId = `own-${count}`;
  const run = async (): Promise<string> => {
    const { runCommand } = await import('@pawl/agent/tools/builtin-tools');
    const outcome = await runCommand({ environment: process.env, sandbox: ownSandbox() }, command, {
      workspace,
      callId,
      batchId: 'own',
      paths: [workspace],
      hosts: [],
      sandbox: 'off',
      blobs,
      progress,
      signal: stopping.signal,
      force: forcing.signal,
      files: createFileMemory(),
      jobs: createJobs(),
      left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
    });
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
