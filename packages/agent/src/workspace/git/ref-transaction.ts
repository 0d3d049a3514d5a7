import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { startProgram } from '../../platform/programs/start-program.js';
import { ProgramFailure } from '../run-program.js';

/**
 * Moves a ref with `git update-ref --stdin`, in two steps.
 *
 * 1. git first takes its locks and waits. So there is a moment at which we know exactly which locks it holds for us.
 * 2. If this program is killed before the second step, git reads the end of its input, changes nothing and removes its
 *    locks. It is not ended with this program, since it would then leave its locks behind.
 */

export type RefMove = {
  /** A full name, or HEAD if it is detached. */
  readonly ref: string;
  /** Null: the ref must not exist. */
  readonly from: string | null;
  readonly to: string;
  /** For the reflog. */
  readonly why: string;
};

export type RefWatcher = {
  /** Called before git takes any lock. */
  started(pid: number): void;
  /** Called while git holds its locks and has changed nothing. */
  locked(): void;
};

/** Whether git said that it has moved the ref, and what it said on stderr. */
export type RefOutcome = { readonly moved: boolean; readonly errors: string };

export type RefProgram = {
  readonly program: ProgramPath;
  /** Words before `update-ref`. */
  readonly words: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
};

const ERRORS_MAX = 4_096;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const orders = ({ ref, from, to }: RefMove): string =>
  [
    'start',
    ...(ref === 'HEAD' ? ['option no-deref'] : []),
    `update ${ref} ${to} ${from ?? '0'.repeat(to.length)}`,
    'prepare\n',
  ].join('\n');

const start = ({ program, words, folder, environment }: RefProgram, why: string): Child =>
  startProgram(program, [...words, 'update-ref', '-m', why, '--stdin'], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    // three pipes, which the general type of startProgram does not say
  }) as Child;

/** Tells `prepared` once, when git says that it holds its locks. */
const listen = (child: Child, prepared: () => void): void => {
  let said = '';
  let isPrepared = false;
  child.stdout.on('data', (piece: Buffer) => {
    if (isPrepared) return;
    said += piece.toString('latin1');
    isPrepared = said.includes('prepare: ok\n');
    if (isPrepared) prepared();
  });
};

/** Rejects only if git can't be started, or `watcher` throws: nothing has changed then. */
export const moveRef = (order: RefProgram, move: RefMove, watcher: RefWatcher): Promise<RefOutcome> =>
  new Promise((resolve, reject) => {
    const child = start(order, move.why);
    const { pid } = child;
    let errors = '';
    let fault: unknown = null;
    /** Runs a step of the watcher; its failure ends the input, so that git changes nothing. */
    const attempt = (step: () => void): void => {
      try {
        step();
      } catch (error) {
        fault = error;
        child.stdin.end();
      }
    };
    const patience = setTimeout(() => child.kill('SIGTERM'), order.deadlineMs); // git removes its locks
    child.once('error', (error) => {
      if (pid !== undefined) return; // it is running and will still end
      clearTimeout(patience);
      reject(new ProgramFailure('missing', `${order.program} can't be started: ${error.message}`));
    });
    child.stdin.on('error', () => undefined); // it ended early: its exit code tells more
    child.stderr.on('data', (piece: Buffer) => {
      if (errors.length < ERRORS_MAX) errors += piece.toString('utf8').slice(0, ERRORS_MAX - errors.length);
    });
    child.once('close', (code) => {
      clearTimeout(patience);
      if (fault !== null) reject(fault);
      else resolve({ moved: code === 0, errors: errors.trim() });
    });
    if (pid === undefined) return;
    listen(child, () =>
      attempt(() => {
        watcher.locked();
        child.stdin.end('commit\n');
      }),
    );
    attempt(() => {
      watcher.started(pid);
      child.stdin.write(orders(move));
    });
  });
