import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { ProcessEnvironment } from '../../base/process-environment.js';
import { configFolder, stateFolder } from '../../base/state-folder.js';
import type { CommandSandbox, CommandSandboxOptions, SandboxProbe } from '../command-sandbox.js';

export type SessionSandboxOptions = {
  /** Pawl's own environment: it names the state folders, and commands get a part of it. */
  readonly environment: ProcessEnvironment;
  /** Names of variables that the user passes to fenced commands beside the usual ones. */
  readonly passEnvironment?: readonly string[];
};

/** The sandboxes of one session. Their code is loaded with the first command. */
export type SessionSandbox = {
  /** The sandbox of a workspace: the same for all commands of the session. */
  of(workspace: string): Promise<CommandSandbox>;
  /** Removes the session's private folders. Never rejects. */
  close(): Promise<void>;
};

const optionsOf = (
  { environment, passEnvironment = [] }: SessionSandboxOptions,
  workspace: string,
): CommandSandboxOptions => {
  const state = stateFolder(environment);
  const name = `${process.pid}-${randomBytes(6).toString('hex')}`;
  return {
    workspace,
    environment,
    passEnvironment,
    sessionFolder: path.join(state, 'sandbox', name),
    cacheFolder: state,
    hidden: [state, configFolder(environment)],
  };
};

/** Creates the sandboxes of a session. Costs nothing until the first command. */
export const createSessionSandbox = (options: SessionSandboxOptions): SessionSandbox => {
  const sandboxes = new Map<string, Promise<CommandSandbox>>();
  let isClosed = false;
  const load = async (workspace: string): Promise<CommandSandbox> => {
    const { createCommandSandbox } = await import('../command-sandbox.js');
    const sandbox = createCommandSandbox(optionsOf(options, workspace));
    if (isClosed) await sandbox.close();
    return sandbox;
  };
  return {
    of(workspace) {
      const sandbox = sandboxes.get(workspace) ?? load(workspace);
      sandboxes.set(workspace, sandbox);
      return sandbox;
    },
    async close() {
      isClosed = true;
      const all = await Promise.all(sandboxes.values());
      await Promise.all(all.map((sandbox) => sandbox.close()));
    },
  };
};

/** Running probes with the environment of this process, by workspace. Simultaneous callers share one probe. */
const probes = new Map<string, Promise<SandboxProbe>>();

const probeNow = async (
  environment: ProcessEnvironment,
  workspace: string,
  answer: 'kept' | 'fresh',
): Promise<SandboxProbe> => {
  const { createCommandSandbox } = await import('../command-sandbox.js');
  const options = optionsOf({ environment }, workspace);
  const cacheFolder = answer === 'kept' ? options.cacheFolder : null;
  return createCommandSandbox({ ...options, cacheFolder }).probe();
};

/**
 * Whether commands can be fenced on this machine. `kept` accepts a cached answer for the same kernel and bubblewrap, or
 * a running probe. Never rejects.
 */
export const probeSandbox = (
  environment: ProcessEnvironment,
  workspace: string,
  answer: 'kept' | 'fresh',
): Promise<SandboxProbe> => {
  if (answer === 'fresh' || environment !== process.env) return probeNow(environment, workspace, answer);
  const running = probes.get(workspace);
  if (running !== undefined) return running;
  const probe = probeNow(environment, workspace, answer).finally(() => probes.delete(workspace));
  probes.set(workspace, probe);
  return probe;
};
