import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import type { CommandLevel } from '../../policy/call-sandbox-level.js';
import type { HistoryPurpose, RepositoryAccess } from '../../policy/commands/repository-access.js';
import type { CommandRecord } from '../launcher/command-recovery-record.js';
import type { TakenCommand } from '../launcher/launcher-pool.js';
import type { OutputReceiver } from '../launcher/spool-reader.js';
import type { HostView } from './host/host-folders.js';

/** The commands of a sandbox: types only. */

export type CommandSandboxOptions = {
  /** Real path of the folder that commands work in. */
  readonly workspace: string;
  /** Pawl's own environment, from which the variables of commands are chosen. */
  readonly environment: ProcessEnvironment;
  /** A new folder for this session alone, named PID-…, so that folders of killed sessions can be recognized. */
  readonly sessionFolder: string;
  /** Folder for the cached result of the probe, shared by all sessions. Null: no cache. */
  readonly cacheFolder: string | null;
  /** Names of variables that the user passes to commands beside the usual ones. Secrets are allowed. */
  readonly passEnvironment?: readonly string[];
  /** Files and folders that no fenced command may see: Pawl's own state and configuration. */
  readonly hidden?: readonly string[];
  /** How the machine is inspected. Sandboxes that share a view give the same function. */
  readonly viewHost?: (() => HostView) | undefined;
  /** The session, if it can be resumed. */
  readonly sessionId?: string | undefined;
  /** Running commands go on if this process is killed, and are found again by their records. */
  readonly outlives?: boolean;
};

export type CommandSpec = {
  readonly level: CommandLevel;
  /** The command reaches more than the session's level: it gets a home and /tmp of its own. Default: false. */
  readonly fresh?: boolean;
  /** Absolute path. */
  readonly program: string;
  readonly words: readonly string[];
  /** Variables of this command alone, beside those of the session. */
  readonly environment: ProcessEnvironment;
  /** For a recovery. Without it nobody will look for it. */
  readonly record?: CommandRecord | null;
  /** When it must end, in ms since boot, for a recovery. */
  readonly due?: number | null;
  /** How far it may change git folders. Default: `approved`, for programs that the user named. */
  readonly repository?: RepositoryAccess;
  /** What its words do to the history on purpose. Default: nothing. */
  readonly purpose?: HistoryPurpose;
  /** The caller observes `isGuarded` of the prepared command. Default: false. */
  readonly canBeGuarded?: boolean;
};

export type PreparedCommand = {
  readonly program: string;
  readonly words: readonly string[];
  /** The complete environment: nothing of Pawl's own is added. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder to start it in. */
  readonly folder: string;
  /** Open files that the process inherits as 3, 4, … (`stdio: ['ignore', 'pipe', 'pipe', ...descriptors]`). */
  readonly descriptors: readonly number[];
  /** The process needs one more pipe, after `descriptors`: that of its guard (packages/agent/src/platform/programs/end-with-pawl.ts). */
  readonly isGuarded: boolean;
  /** Closes `descriptors`. Call it once the spawn has succeeded or failed. */
  started(): void;
  /** Call it after the command has ended. Returns lines for the model about files set aside. Never rejects. */
  finish(): Promise<readonly string[]>;
};

/** A command that is set up and waits for its start. */
export type WaitingCommand = Pick<TakenCommand, 'ended' | 'cancelled'> & {
  /** Null of a command that an earlier process has started and that has ended. */
  readonly process: TakenCommand['process'] | null;
  /** Starts it, once. `due`: when it will be killed, in ms since boot. `to` gets stdout and stderr as one. */
  go(due: number | null, to: OutputReceiver): void;
  /** As in PreparedCommand. */
  finish(): Promise<readonly string[]>;
};

export type CommandSandbox = {
  /** Rejects with a SandboxRefusal if the command can't be fenced. */
  prepare(order: CommandSpec): Promise<PreparedCommand>;
  /** Like `prepare`, for a command that packages/agent/src/command/launcher/ set up in advance. Null: start it directly. */
  takeWaiting(order: CommandSpec): Promise<WaitingCommand | null>;
  /** The user allowed writing to this protected absolute path, so running commands don't cause it to be set aside. */
  allow(place: string): void;
  /** Judges what commands of a killed process have made. Returns lines for the model about files set aside. */
  settle(): readonly string[];
  /** Ends all commands and removes the session's home and /tmp; files that were set aside stay. Never rejects. */
  close(keepsResults?: boolean): Promise<void>;
};
