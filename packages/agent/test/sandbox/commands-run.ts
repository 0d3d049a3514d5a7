import type { HostView } from '../../src/command/sandbox/host.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import type { CommandLevel } from '../../src/policy/decide.js';
import { createJobs, type ToolOutcome } from '../../src/ports/tool.js';
import { commandTool } from '../../src/tools/builtin-tools.js';
import { createFileMemory } from '../../src/tools/file-change.js';

/** The command tool as a session has it, without a session. */

export type Order = {
  /** Real path. */
  readonly workspace: string;
  readonly command: string;
  readonly level: CommandLevel;
  /** What the agent's own environment would be. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly viewHost?: () => HostView;
};

const never = new AbortController().signal;

/** Runs one command to its end in a session of its own; what is private to that session is gone afterwards. */
export const runCommand = async ({ command, ...order }: Order): Promise<ToolOutcome> => {
  const [outcome] = await runCommands({ ...order, commands: [command] });
  if (outcome === undefined) throw new Error('no command ran');
  return outcome;
};

/** Runs commands one after another in one session. */
export const runCommands = async ({
  workspace,
  commands,
  level,
  environment = process.env,
  viewHost,
}: Omit<Order, 'command'> & { readonly commands: readonly string[] }): Promise<
  readonly ToolOutcome[]
> => {
  const sandbox = createSessionSandbox({ environment, viewHost });
  const tool = commandTool({ environment, sandbox });
  const run = (command: string): Promise<ToolOutcome> =>
    tool.run(
      { command },
      {
        workspace,
        batchId: 'batch',
        callId: 'call',
        paths: [workspace],
        hosts: [],
        sandbox: level,
        signal: never,
        force: never,
        files: createFileMemory(),
        jobs: createJobs(),
        left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
        blobs: { get: async () => undefined, put: async () => '' },
        progress: () => undefined,
      },
    );
  const outcomes: ToolOutcome[] = [];
  try {
    for (const command of commands) outcomes.push(await run(command));
    return outcomes;
  } finally {
    await sandbox.close();
  }
};
