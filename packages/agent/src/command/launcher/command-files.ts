import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { statOf } from '../../platform/programs/process-identity.js';
import { type CommandOrder, writeOrder } from './command-recovery-record.js';
import { type CommandStatus, type LaunchedProcess, readStatus } from './command-verdict.js';
import { createSpoolReader, type SpoolReader } from './spool-reader.js';

/**
 * The files of one command, in a folder that commands can't write to. launcher-script.ts says who writes which.
 *
 * `run`: shell text that starts the fence. `command`: shell text for the parked shell. `order`: see command-recovery-record.ts.
 * `out`, `tail.1`, `tail.2`, …, `removed`: its output, see spool-reader.ts. `status`, `claim` and `why`: see
 * command-verdict.ts. `attached`: the later agent that follows it.
 */
export type Spool = {
  readonly folder: string;
  /** Path of the file `command`, which the parked shell sees. */
  readonly command: string;
  status(): CommandStatus;
  /** Writes what to run, before the start. */
  order(command: string, order: CommandOrder): void;
  /** See spool-reader.ts. */
  read: SpoolReader['read'];
  /** Claims the command, so that it never begins. False if it has begun or the claim can't be written. */
  claim(): boolean;
  isClaimed(): boolean;
  /** Whether its process runs. Call it before `status` is read again, so that its last lines are not missed. */
  isAlive(): boolean;
  /** Records why the command will be killed. */
  killedFor(why: 'deadline' | 'cancelled'): void;
  /** The recorded reason, or an empty text. */
  why(): string;
  /** Tells the launcher of a dead agent that this process follows the command from now on. */
  attach(): void;
  close(): void;
  remove(): void;
  removeLater(): Promise<void>;
};

/** Size allocated in advance, so that a full disk can't lose an exit code. */
const STATUS_BYTES = 512;

/** Whether a change of this file is worth a look at the command. */
export const isTelling = (name: string): boolean =>
  name === 'status' || name === 'out' || name.startsWith('tail.');

const readIfThere = (file: string): string => {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // nobody has written it
  }
};

/**
 * Whether any process holds a pipe open. Unlike a process number that means the same in every pid namespace. True if
 * nobody can tell.
 */
const isPipeHeld = (file: string): boolean => {
  try {
    closeSync(openSync(file, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    return code !== 'ENXIO' && code !== 'ENOENT';
  }
};

/** `foreign`: processes of another pid namespace, so their numbers mean nothing here. */
export type ProcessView = 'own' | 'foreign';

const spoolAt = (folder: string, isFound: boolean, view: ProcessView): Spool => {
  const at = (name: string): string => path.join(folder, name);
  const command = at('command');
  const status = openSync(at('status'), 'r');
  const reader = createSpoolReader(folder, { hasGaps: isFound });
  const block = Buffer.alloc(STATUS_BYTES);
  const readNow = (): CommandStatus =>
    readStatus(block.toString('latin1', 0, readSync(status, block, 0, STATUS_BYTES, 0)));
  return {
    folder,
    command,
    status: readNow,
    isAlive() {
      const { process, alivePipe } = readNow();
      if (view === 'own') return process !== null && isRunning(process);
      return alivePipe !== null && isPipeHeld(path.join(folder, '..', alivePipe));
    },
    order(text, order) {
      // In place, because this very file is mounted for the parked shell.
      writeFileSync(command, text, { flag: 'r+' });
      writeOrder(folder, order);
    },
    read: (bytesMax, to) => reader.read(bytesMax, to),
    claim() {
      try {
        writeFileSync(at('claim'), '', { flag: 'wx' });
        return true;
      } catch {
        return false; // it has begun, or nobody can tell: then it must not be started again
      }
    },
    isClaimed: () => existsSync(at('claim')),
    killedFor(why) {
      try {
        writeFileSync(at('why'), why);
      } catch {
        // It is killed all the same; a recovery would call it lost.
      }
    },
    why: () => readIfThere(at('why')),
    attach() {
      const { started } = statOf(process.pid);
      if (started !== '') writeFileSync(at('attached'), `${process.pid} ${started}\n`);
    },
    close() {
      closeSync(status);
      reader.close();
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
    removeLater: () => rm(folder, { recursive: true, force: true }),
  };
};

/** Makes the files. `run` returns text for a shell. Throws if a file can't be made. */
export const makeSpool = (folder: string, run: (command: string) => string): Spool => {
  const at = (name: string): string => path.join(folder, name);
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(at('run'), run(at('command')));
  writeFileSync(at('command'), '');
  writeFileSync(at('status'), ' '.repeat(STATUS_BYTES));
  return spoolAt(folder, false, 'own');
};

/** The files that an earlier process made. Throws if they are gone. */
export const openSpool = (folder: string, view: ProcessView): Spool => spoolAt(folder, true, view);

/** Whether exactly this process runs. A zombie does not. */
const isRunning = ({ pid, startedAt }: LaunchedProcess): boolean => {
  const { state, started } = statOf(pid);
  return started !== '' && Number(started) === startedAt && !/[ZX]/.test(state);
};
