import {
  closeSync,
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
import { type CommandStatus, type LaunchedProcess, readStatus } from './command-verdict.js';

/**
 * The files of one command, in a folder that commands can't write to. launcher-script.ts says who writes which.
 *
 * `run`: shell text that starts the fence. `command`: shell text for the parked shell. `due`: when the command is to be
 * killed, in ms since 1970; absent without a deadline. `out`, `tail.1`, `tail.2`, …: its output, in pieces. `status`,
 * `claim` and `why`: see command-verdict.ts.
 */
export type Spool = {
  readonly folder: string;
  /** Path of the file `command`, which the parked shell sees. */
  readonly command: string;
  status(): CommandStatus;
  /** Writes what to run, before the start. `due` null: no deadline. */
  order(command: string, due: number | null): void;
  /** Passes at most `bytesMax` of new output to `tell`. Returns whether more may be available at once. */
  read(bytesMax: number, tell: (bytes: Buffer) => void): boolean;
  /** Claims the command, so that it never begins. False if it has begun or the claim can't be written. */
  claim(): boolean;
  isClaimed(): boolean;
  /** Records why the command will be killed. */
  killedFor(why: 'deadline' | 'cancelled'): void;
  close(): void;
  remove(): void;
  removeLater(): Promise<void>;
};

/** Size allocated in advance, so that a full disk can't lose an exit code. */
const STATUS_BYTES = 512;
const READ_BYTES = 65_536;
/** For all spools: nothing is kept in it. Made with the first output. */
let sharedBlock: Buffer | null = null;

/** Whether a change of this file is worth a look at the command. */
export const isTelling = (name: string): boolean =>
  name === 'status' || name === 'out' || name.startsWith('tail.');

const pieceName = (number: number): string => (number === 0 ? 'out' : `tail.${number}`);

/** Reads the pieces of output in order and removes each one that was read, except the first. */
const createReader = (folder: string) => {
  let number = 0;
  let open: number | null = null;
  /** The first piece is made when the launcher sets the command up, or never, without room on the disk. */
  const opened = (): number | null => {
    const first = path.join(folder, pieceName(0));
    if (open === null && existsSync(first)) open = openSync(first, 'r');
    return open;
  };
  const nextPiece = (): boolean => {
    const next = path.join(folder, pieceName(number + 1));
    if (!existsSync(next)) return false;
    if (open !== null) closeSync(open);
    if (number > 0) rmSync(path.join(folder, pieceName(number)), { force: true });
    open = openSync(next, 'r');
    number += 1;
    return true;
  };
  const readOnce = (tell: (bytes: Buffer) => void): number => {
    const from = opened();
    if (from === null) return 0;
    sharedBlock ??= Buffer.alloc(READ_BYTES);
    const block = sharedBlock;
    const length = readSync(from, block);
    if (length > 0) tell(Buffer.from(block.subarray(0, length)));
    return length;
  };
  return {
    read(bytesMax: number, tell: (bytes: Buffer) => void): boolean {
      let left = bytesMax;
      while (left > 0) {
        // The next piece is begun when this one is complete: look for it first.
        const isNext = existsSync(path.join(folder, pieceName(number + 1)));
        const length = readOnce(tell);
        left -= length;
        if (length === 0 && !(isNext && nextPiece())) return false;
      }
      return true;
    },
    close() {
      if (open !== null) closeSync(open);
    },
  };
};

/** Makes the files. `run` returns text for a shell. Throws if a file can't be made. */
export const makeSpool = (folder: string, run: (command: string) => string): Spool => {
  const at = (name: string): string => path.join(folder, name);
  mkdirSync(folder, { mode: 0o700 });
  const command = at('command');
  writeFileSync(at('run'), run(command));
  writeFileSync(command, '');
  writeFileSync(at('status'), ' '.repeat(STATUS_BYTES));
  const status = openSync(at('status'), 'r');
  const reader = createReader(folder);
  const block = Buffer.alloc(STATUS_BYTES);
  return {
    folder,
    command,
    status: () => readStatus(block.toString('latin1', 0, readSync(status, block, 0, STATUS_BYTES, 0))),
    order(text, due) {
      // In place, because this very file is mounted for the parked shell.
      writeFileSync(command, text, { flag: 'r+' });
      if (due !== null) writeFileSync(at('due'), String(due));
    },
    read: reader.read,
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
    close() {
      closeSync(status);
      reader.close();
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
    removeLater: () => rm(folder, { recursive: true, force: true }),
  };
};

/** Indexes of the fields after the name in /proc/PID/stat. */
const START_TIME = 19;
const STATE = 0;

/** Whether exactly this process runs. A zombie does not. */
export const isRunning = ({ pid, startedAt }: LaunchedProcess): boolean => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    return Number(fields[START_TIME]) === startedAt && !/[ZX]/.test(fields[STATE] ?? 'X');
  } catch {
    return false; // no process has this number
  }
};
