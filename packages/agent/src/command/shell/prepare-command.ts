import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { statusOf } from '../../platform/files/entry-status.js';
import { type ProgramPath, searchPrograms } from '../../platform/programs/find-program.js';
import type { CommandLevel } from '../../policy/call-sandbox-level.js';
import type { CommandRecord } from '../launcher/command-recovery-record.js';
import { reportingLeftovers } from '../launcher/command-shell-scripts.js';
import type {
  CommandSandbox,
  CommandSpec,
  PreparedCommand,
  WaitingCommand,
} from '../sandbox/command-sandbox-types.js';
import { SandboxRefusal } from '../sandbox/sandbox-refusal.js';

/** From a request for a shell command to one that can be started. */

/** Joins both outputs, so that lines keep their order. */
const JOINED = 'exec 2>&1; ';

export type CommandRequest = {
  readonly sandbox: () => Promise<CommandSandbox>;
  readonly level: CommandLevel;
  /** It reaches more than the session's level. */
  readonly fresh: boolean;
  /** Name of the shell. It is located on the PATH of `ownEnvironment`. */
  readonly program: string;
  readonly ownEnvironment: ProcessEnvironment;
  readonly command: string;
  readonly workspace: string;
  /** What its words say about git folders. */
  readonly git?: Pick<CommandSpec, 'repository' | 'purpose'>;
  /** Variables for this command only. */
  readonly environment: ProcessEnvironment;
  /** Time limit in ms, or null. The caller enforces it; it is stored for a recovery after a crash. */
  readonly deadlineMs: number | null;
  /** Stored for a recovery as well. Its marker is also in the environment of all processes of the command. */
  readonly record: Pick<CommandRecord, 'call' | 'marker' | 'job'>;
  progress(text: string): void;
};

export type Prepared =
  | { readonly kind: 'ready'; readonly prepared: PreparedCommand }
  | { readonly kind: 'waiting'; readonly prepared: WaitingCommand }
  | { readonly kind: 'refused'; readonly why: string };

const findShell = ({ program, ownEnvironment, workspace }: CommandRequest): ProgramPath | string => {
  const programs = searchPrograms({ environment: ownEnvironment, workspace });
  const refused = programs.whyNot(program);
  const why = refused === null ? `is missing; install ${program}` : `is not used: ${refused}`;
  return programs.find(program) ?? `${program} ${why}`;
};

/** `quick`: by the launcher, if possible. */
export type StartMode = 'quick' | 'direct';

/** Device and inode: a folder that was replaced has the same path, and others. */
export const identityOf = (folder: string): string => {
  const status = statusOf(folder);
  return status === null ? 'gone' : `${status.dev}:${status.ino}`;
};

const recordOf = ({ record, level, workspace }: CommandRequest, startedAt: number): CommandRecord => ({
  ...record,
  startedAt,
  isFenced: level !== 'off',
  workspace: identityOf(workspace),
});

/** After any failure here, nothing was started. */
export const prepareCommand = async (
  order: CommandRequest,
  startedAt: number,
  way: StartMode,
): Promise<Prepared> => {
  const { level, fresh, environment, command } = order;
  const shell = findShell(order);
  if (!shell.startsWith('/')) return { kind: 'refused', why: shell };
  const words = ['-c', `${JOINED}${command}`];
  try {
    const sandbox = await order.sandbox();
    const { deadlineMs } = order;
    const due = deadlineMs === null ? null : startedAt + deadlineMs;
    const record = recordOf(order, startedAt);
    if (way === 'quick') {
      const spec = { ...order.git, level, fresh, environment, program: shell, words, record };
      const waiting = await sandbox.takeWaiting(spec);
      if (waiting !== null) return { kind: 'waiting', prepared: waiting };
    }
    const shown = level === 'off' ? { program: shell, words } : reportingLeftovers(shell, words);
    const spec = { ...order.git, level, fresh, environment, record, due, ...shown, canBeGuarded: true };
    return { kind: 'ready', prepared: await sandbox.prepare(spec) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: 'refused', why: error instanceof SandboxRefusal ? `the sandbox: ${why}` : why };
  }
};
