import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { Duplex, Writable } from 'node:stream';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { SYSTEM_SHELL, startProgram } from '../../platform/programs/start-program.js';
import { makeSpool } from './command-files.js';
import { COMMAND_INSIDE, openParkedShell, PARKED_SHELL } from './command-shell-scripts.js';
import { followCommand, type ParkedCommand } from './follow-command.js';
import { LAUNCHER_SCRIPT } from './launcher-script.js';
import { shellWord, shellWords } from './shell-quote.js';

/** A running launcher and its one parked or started command. */

export type CommandFence = {
  readonly bwrap: ProgramPath;
  /** Arguments for bubblewrap up to its last mount. The filter is expected at descriptor 3. */
  readonly words: readonly string[];
  /** Arguments between the mounts and the program. */
  readonly seals: readonly string[];
  /** Path of the system-call filter; null if there is none. */
  readonly filter: string | null;
  /** Shell text that runs inside before the command, and ends the shell if the command must not start. */
  readonly check?: string;
};

/** A command without a fence, as the leader of a session and group of its own. */
export type OpenStart = { readonly setsid: ProgramPath };

/** What a command is parked behind. */
export type Enclosure = CommandFence | OpenStart;

export type LauncherOptions = {
  /** A folder for the files of commands, which only Pawl writes to. It is created. */
  readonly folder: string;
  /** The system's dd. */
  readonly copier: ProgramPath;
  /** Wraps a program so that it inherits no descriptor above `last`. Throws if that is impossible. */
  readonly closingOthers: (program: ProgramPath, words: readonly string[], last: number) => Start;
  /** Size of the first and of each further piece of output, in reads of at most 64 kB. */
  readonly pieces?: readonly [first: number, more: number];
  /** False: don't use file change notifications. */
  readonly watches?: boolean;
  /** Running commands go on if this process is killed: somebody will look for them. Default: false. */
  readonly outlives?: boolean;
};

type Start = { readonly program: ProgramPath; readonly words: readonly string[] };

export type LauncherProcess = {
  /**
   * Parks a command behind this fence. The previous one must have ended or been discarded. Throws if the disk is full.
   */
  park(enclosure: Enclosure, number: number): ParkedCommand;
  /** Discards the parked command. */
  discard(): void;
  readonly isAlive: boolean;
  /** Kills the launcher and its command. Resolves when none of its processes can write to its folder any more. */
  kill(): Promise<void>;
};

/** Descriptors of the launcher: one that closes when Pawl ends, and one for orders. */
const LIFE = 3;
const ORDERS = 4;

/** How long to wait for a process that the system can't end, in ms. */
const KILLED_MS = 2_000;

/** Pieces of at most 32 MB and 8 MB. */
const PIECES = [512, 128] as const;

const runText = (enclosure: Enclosure, command: string): string => {
  if ('setsid' in enclosure)
    return `exec ${shellWords([enclosure.setsid, ...openParkedShell(command)])} 2>&1 8>&-\n`;
  const { bwrap, words, seals, filter } = enclosure;
  const all = [...words, '--ro-bind', command, COMMAND_INSIDE, ...seals, '--', ...PARKED_SHELL];
  return [
    ...(filter === null ? [] : [`exec 3<${shellWord(filter)}`]),
    `exec ${shellWord(bwrap)} $sync ${shellWords(all)} 2>&1`,
    '',
  ].join('\n');
};

/** In ms: without a fence a process that the command has detached may hold its output open. */
const HELD_OPEN_MS = 100;
const drainingOf = (enclosure: Enclosure) => ('setsid' in enclosure ? { drainingMs: HELD_OPEN_MS } : {});

const streamAt = (child: ChildProcess, descriptor: number): Writable => {
  const stream = child.stdio[descriptor];
  if (!(stream instanceof Writable)) throw new Error(`descriptor ${descriptor} is no pipe`);
  // A broken pipe needs no handling: `exit` reports that the launcher has ended.
  stream.on('error', () => undefined);
  // A waiting launcher must not keep our process alive.
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
  return stream;
};

/**
 * Ends all processes of the launcher and resolves when they are gone. They hold the other end of `life` open. At our
 * word one of them kills the group, and `life` closes with the last one.
 */
const whenGone = (life: Writable): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, KILLED_MS);
    life.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    if (life instanceof Duplex) life.resume();
    life.end('end\n');
  });

export const startLauncher = (options: LauncherOptions): LauncherProcess => {
  const { folder, copier, pieces = PIECES, watches = true, outlives = false } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const words = [
    '-c',
    LAUNCHER_SCRIPT,
    'pawl-launcher',
    copier,
    ...pieces.map(String),
    outlives ? 'keep' : 'end',
    `alive-${randomBytes(6).toString('hex')}`,
  ];
  const start = options.closingOthers(SYSTEM_SHELL, words, ORDERS);
  const child = startProgram(start.program, start.words, {
    cwd: folder,
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  child.unref();
  const orders = streamAt(child, ORDERS);
  const life = streamAt(child, LIFE);
  let isAlive = true;
  let gone: Promise<void> | null = null;
  let current: { readonly command: ParkedCommand; readonly number: number } | null = null;
  const over = (): void => {
    isAlive = false;
    current?.command.orphaned();
  };
  child.once('error', over);
  child.once('exit', over);
  const send = (line: string): void => void orders.write(`${line}\n`);
  return {
    get isAlive() {
      return isAlive;
    },
    park(enclosure, number) {
      const spool = makeSpool(path.join(folder, String(number)), (command) => runText(enclosure, command));
      const toCommand = (words: string): void => {
        const [word = '', ...rest] = words.split(' ');
        send([word, number, ...rest].join(' '));
      };
      const command = followCommand(spool, toCommand, { watches, ...drainingOf(enclosure) });
      current = { command, number };
      send(`p ${number}`);
      return command;
    },
    discard() {
      if (current !== null) send(`x ${current.number}`);
    },
    kill() {
      isAlive = false;
      orders.destroy();
      gone ??= whenGone(life);
      return gone;
    },
  };
};
