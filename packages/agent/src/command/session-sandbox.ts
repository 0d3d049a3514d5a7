/**
 * The sandboxes of one session, one for each workspace in which it starts commands. This file is
 * small because each session loads it: command-sandbox.ts, which does the work, is loaded with the
 * first command. `probeSandbox` asks whether this machine can fence commands, which is to run them
 * in a sandbox.
 */

import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { cacheFolder, stateFolder } from '../platform/environment.js';
import type { SentCalls } from '../ports/tool.js';
import { type FoundPlaces, readUserPlaces } from '../secrets/user-places.js';
import type { CommandSandbox, CommandSandboxOptions } from './command-sandbox.js';
import type { EarlierCommands } from './earlier-processes.js';
import type { SandboxProbe } from './sandbox/bubblewrap.js';
import {
  recordSent,
  recordSession,
  removeFolders,
  removePrivateFolders,
} from './sandbox/session-folders.js';
import type { ProbedMachine } from './surroundings.js';
import type { WorkspaceProbeOptions } from './workspace-probe.js';

export type SessionSandboxOptions = {
  /** Pawl's environment: it names the state folders, and commands get a part of it. */
  readonly environment: ProcessEnvironment;
  /** Names of variables that the user passes to fenced commands beside the usual ones. */
  readonly passEnvironment?: readonly string[];
  /** How the machine is inspected. Sandboxes that share a view give the same function. */
  readonly viewHost?: CommandSandboxOptions['viewHost'];
  /**
   * The session, whose running commands go on if this process is killed. Without it they are
   * killed, too.
   */
  readonly sessionId?: string;
  /** The user's places. Default: those that the environment names. */
  readonly userPlaces?: FoundPlaces;
  /** Tells the user what became of protected files while a command ran. */
  readonly tellUser?: CommandSandboxOptions['tellUser'];
};

/** The sandboxes of one session. Their code is loaded with the first command. */
export type SessionSandbox = {
  /** The sandbox of a workspace: the same for all commands of the session. */
  of(workspace: string): Promise<CommandSandbox>;
  /**
   * Records that the session may start commands here. Call it before the start of one is journaled.
   */
  announce(workspace: string): void;
  /** Which calls have left this process for another program. */
  readonly sentCalls: SentCalls;
  /** Leftovers of earlier processes of the session. Null if the session can't be resumed. */
  earlier(workspace: string): Promise<EarlierCommands | null>;
  /**
   * Guards protected paths (hooks, settings that others obey) from commands that a killed process
   * has started here, if there are any.
   */
  guard(workspace: string): Promise<void>;
  /** Judges the changes of such commands if they have ended. Returns lines for the model. */
  settle(workspace: string): Promise<readonly string[]>;
  /**
   * Removes the session's private folders, those of its earlier processes too. `keepsResults`: the
   * files of commands stay, since the journal may lack results. Never rejects.
   */
  close(keepsResults?: boolean): Promise<void>;
};

const createOptions = (
  {
    environment,
    passEnvironment = [],
    viewHost,
    sessionId,
    tellUser,
    userPlaces = readUserPlaces(environment),
  }: SessionSandboxOptions,
  workspace: string,
): CommandSandboxOptions => {
  const state = stateFolder(environment);
  const name = `${process.pid}-${randomBytes(6).toString('hex')}`;
  return {
    workspace,
    environment,
    passEnvironment,
    viewHost,
    sessionFolder: path.join(state, 'sandbox', name),
    userPlaces,
    probe: async () =>
      (environment === process.env ? believed.get(workspace) : undefined) ??
      probeFence({ workspace, environment, userPlaces, cacheFolder: cacheFolder(environment) }),
    sessionId,
    outlives: sessionId !== undefined,
    tellUser,
  };
};

class Sandboxes implements SessionSandbox {
  readonly #options: SessionSandboxOptions;
  /** Options and sandboxes by workspace. */
  readonly #optionsByWorkspace = new Map<string, CommandSandboxOptions>();
  readonly #sandboxes = new Map<string, Promise<CommandSandbox>>();
  /** Folders of this process in which the session is recorded. */
  readonly #recorded = new Set<string>();
  #earlier: Promise<EarlierCommands> | null = null;
  #isClosed = false;
  /** After a crash, a call that never left for another program can't have taken effect. */
  readonly sentCalls: SentCalls = {
    announce: (workspace) => this.announce(workspace),
    record: (workspace, call) => {
      this.announce(workspace);
      if (this.#options.sessionId !== undefined)
        recordSent(this.#getOptions(workspace).sessionFolder, call);
    },
    find: async (workspace, call) => {
      const earlier = await this.earlier(workspace);
      if (earlier?.hasSent(call)) return 'sent';
      // Complete: no record of an earlier process is missing. Only then does a call without a
      // record count as not sent.
      return earlier?.isComplete ? 'notSent' : 'unknown';
    },
  };

  constructor(options: SessionSandboxOptions) {
    this.#options = options;
  }

  of(workspace: string): Promise<CommandSandbox> {
    this.announce(workspace);
    const known = this.#sandboxes.get(workspace);
    if (known !== undefined) return known;
    const sandbox = this.#load(workspace);
    this.#sandboxes.set(workspace, sandbox);
    // its caller hears of it, and the next one tries again
    void sandbox.catch(() => this.#sandboxes.delete(workspace));
    return sandbox;
  }

  announce(workspace: string): void {
    const { sessionId } = this.#options;
    const { sessionFolder } = this.#getOptions(workspace);
    if (sessionId === undefined || this.#isClosed || this.#recorded.has(sessionFolder)) return;
    this.#recorded.add(sessionFolder);
    recordSession(sessionFolder, sessionId);
  }

  async earlier(workspace: string): Promise<EarlierCommands | null> {
    const { sessionId } = this.#options;
    if (sessionId === undefined) return null;
    const { sessionFolder } = this.#getOptions(workspace);
    const { environment } = this.#options;
    this.#earlier ??= Promise.all([
      import('./earlier-processes.js'),
      import('../platform/find-program.js'),
    ]).then(([{ findEarlier }, { findProgram }]) =>
      findEarlier(sessionFolder, sessionId, () => findProgram('git', { environment, workspace })),
    );
    void this.#earlier.catch(() => {
      this.#earlier = null; // as in `of`
    });
    return this.#earlier;
  }

  async guard(workspace: string): Promise<void> {
    if (this.#sandboxes.has(workspace)) return;
    const { hasInterruptedGuard } = await import('./earlier-processes.js');
    const { sessionFolder: processFolder, sessionId = null } = this.#getOptions(workspace);
    const search = { processFolder, workspace, sessionId };
    if (!this.#isClosed && hasInterruptedGuard(search)) await this.of(workspace);
  }

  async settle(workspace: string): Promise<readonly string[]> {
    await this.guard(workspace);
    return (await this.#sandboxes.get(workspace))?.settle() ?? [];
  }

  async close(keepsResults = false): Promise<void> {
    this.#isClosed = true;
    // what could not be loaded has nothing to close
    const closing = [...this.#sandboxes.values()].map(async (sandbox) =>
      (await sandbox).close(keepsResults),
    );
    await Promise.allSettled(closing);
    const earlier = await this.#earlier?.catch(() => null);
    const folders = [...this.#recorded, ...(earlier?.folders() ?? [])];
    for (const folder of folders) (keepsResults ? removePrivateFolders : removeFolders)(folder);
  }

  #getOptions(workspace: string): CommandSandboxOptions {
    const options =
      this.#optionsByWorkspace.get(workspace) ?? createOptions(this.#options, workspace);
    this.#optionsByWorkspace.set(workspace, options);
    return options;
  }

  async #load(workspace: string): Promise<CommandSandbox> {
    const { createCommandSandbox } = await import('./command-sandbox.js');
    const sandbox = createCommandSandbox(this.#getOptions(workspace));
    if (this.#isClosed) await sandbox.close(false);
    return sandbox;
  }
}

/** Creates the sandboxes of a session. Costs nothing until the first command. */
export const createSessionSandbox = (options: SessionSandboxOptions): SessionSandbox =>
  new Sandboxes(options);

/**
 * Running probes with the environment of this process, by workspace. Simultaneous callers share one
 * probe.
 */
const probes = new Map<string, Promise<SandboxProbe>>();

/** What held when this process asked for a session: its commands ask no second time. */
const believed = new Map<string, SandboxProbe>();

/** Probes with the code that is needed for it. */
export const probeFence = async (
  options: Omit<WorkspaceProbeOptions, 'loadActs'>,
): Promise<SandboxProbe> => {
  const { probeWorkspace } = await import('./workspace-probe.js');
  return probeWorkspace({
    ...options,
    loadActs: async () => (await import('./fence-acts.js')).withActs,
  });
};

/**
 * Whether commands can be fenced on this machine. `kept` accepts a cached answer for the same
 * kernel and bubblewrap, or a running probe. `machine`: where it is not this one. Rejects only if
 * its code can't be loaded, for example since the program was replaced.
 */
export const probeSandbox = (
  environment: ProcessEnvironment,
  workspace: string,
  answer: 'kept' | 'fresh',
  machine?: ProbedMachine,
): Promise<SandboxProbe> => {
  const isShared = answer === 'kept' && environment === process.env;
  const running = isShared ? probes.get(workspace) : undefined;
  if (running !== undefined) return running;
  const started = probeFence({
    ...{ environment, workspace, machine },
    cacheFolder: answer === 'kept' ? cacheFolder(environment) : null,
  });
  if (!isShared) return started;
  probes.set(workspace, started);
  void started.then(
    (found) => {
      probes.delete(workspace);
      if (found.kind === 'works') believed.set(workspace, found);
      else believed.delete(workspace);
    },
    () => probes.delete(workspace), // its caller hears of it
  );
  return started;
};
