import { type ChildProcess, spawn } from 'node:child_process';
import { createOutput, type Output } from './output.js';
import {
  askToEnd,
  endLeftovers,
  endTree,
  type Family,
  type Root,
  rememberFamily,
  watchOver,
} from './processes.js';

/**
 * A shell command as a process.
 *
 * 1. One process is started, the leader of its own group; it gets no terminal and no input.
 * 2. It has ended when the shell has: a daemon that holds the output open is waited for HELD_OPEN_MS, no longer.
 * 3. After its end nothing of its group runs. If it was stopped, nothing that belongs to it runs at all.
 */

const HELD_OPEN_MS = 100;
/** Both outputs into one, so that lines keep their order. */
const JOINED = 'exec 2>&1; ';

export type CommandEnd = {
  readonly how:
    | { readonly kind: 'exited'; readonly code: number }
    | { readonly kind: 'killed'; readonly signal: string }
    | { readonly kind: 'notStarted'; readonly why: string };
  readonly durationMs: number;
  /** `ended`: the command left processes behind, which were ended. `detached`: one left the group and lives. */
  readonly leftovers: 'none' | 'ended' | 'detached';
};

export type RunningCommand = {
  readonly output: Output;
  readonly ended: Promise<CommandEnd>;
  /** Asks it to end; when the shell has ended, so does everything else. */
  stop(): void;
  /** Ends all of it at once. */
  kill(): void;
};

export type CommandOrder = {
  /** The shell, as found on the PATH. */
  readonly program: string;
  readonly command: string;
  readonly workspace: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly marker: string;
  progress(text: string): void;
};

const howItEnded = (code: number | null, signal: NodeJS.Signals | null): CommandEnd['how'] =>
  code === null ? { kind: 'killed', signal: signal ?? 'a signal' } : { kind: 'exited', code };

const whyNotStarted = (error: Error, program: string): CommandEnd['how'] => {
  const missing = 'code' in error && error.code === 'ENOENT';
  const why = missing
    ? `${program} or the workspace is missing; install ${program}, or look at the workspace`
    : error.message;
  return { kind: 'notStarted', why };
};

type ShellEnd = { readonly how: CommandEnd['how']; readonly heldOpen: boolean };

/** Resolves when the shell has ended and its output is closed or was waited for. */
const shellEnd = (child: ChildProcess, program: string): Promise<ShellEnd> =>
  new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ how: whyNotStarted(error, program), heldOpen: false });
    });
    child.once('exit', (code, signal) => {
      const how = howItEnded(code, signal);
      const patience = setTimeout(() => resolve({ how, heldOpen: true }), HELD_OPEN_MS);
      child.once('close', () => {
        clearTimeout(patience);
        resolve({ how, heldOpen: false });
      });
    });
  });

/** A command that was started, and who belonged to it when it was stopped (null: it was not). */
type Life = { readonly root: Root; family: Family | null; swept: Promise<void> };

/** Keeps invariant 3 after the shell has ended. */
const clearUp = async (life: Life, heldOpen: boolean): Promise<CommandEnd['leftovers']> => {
  if (life.family === null) {
    if (endLeftovers(life.root)) return 'ended';
    return heldOpen ? 'detached' : 'none';
  }
  await endTree(life.root, life.family);
  await life.swept;
  return 'none';
};

export const startCommand = (order: CommandOrder): RunningCommand => {
  const startedAt = performance.now();
  const output = createOutput((text) => order.progress(text));
  const child = spawn(order.program, ['-c', `${JOINED}${order.command}`], {
    cwd: order.workspace,
    env: order.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => output.add(bytes));
  let life: Life | null =
    child.pid === undefined
      ? null
      : { root: { pid: child.pid, marker: order.marker }, family: null, swept: Promise.resolve() };
  const release = life === null ? () => undefined : watchOver(life.root);

  const finish = async ({ how, heldOpen }: ShellEnd): Promise<CommandEnd> => {
    const leftovers = life === null ? 'none' : await clearUp(life, heldOpen);
    life = null; // the pid may be another process's from now on
    child.stdout.destroy();
    child.stderr.destroy();
    output.finish();
    release();
    return { how, leftovers, durationMs: performance.now() - startedAt };
  };

  return {
    output,
    ended: shellEnd(child, order.program).then(finish),
    stop() {
      if (life === null || life.family !== null) return;
      life.family = rememberFamily(life.root);
      askToEnd(life.root);
    },
    kill() {
      if (life === null) return;
      life.family ??= rememberFamily(life.root);
      life.swept = endTree(life.root, life.family);
    },
  };
};
