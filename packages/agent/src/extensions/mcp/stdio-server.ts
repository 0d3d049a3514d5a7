/**
 * A connection to a server that we start, by lines on its stdin and stdout.
 *
 * 1. The server gets a new process group. Closing ends the whole group and all other processes that
 *    the server has started, and so does the end of this program; if it is killed, only the group.
 * 2. Lines that are no messages are logged and ignored, up to a limit: then the server is ended.
 *
 * From top to bottom: the connection (`StdioTransport`); and how the server becomes a process
 * (`prepareServer`), in a sandbox if a project named it.
 */

import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { PreparedCommand } from '../../command/command-sandbox.js';
import { endTree, killNow, MARKER, type ProcessRoot } from '../../command/end-processes.js';
import { createSessionSandbox } from '../../command/session-sandbox.js';
import { attempt } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { findNamedProgram, type ProgramPath } from '../../platform/find-program.js';
import { readProcess } from '../../platform/processes.js';
import {
  atExit,
  guardedStart,
  guardPipe,
  SYSTEM_SHELL,
  startProgram,
  systemBash,
} from '../../platform/start-program.js';
import { firstCharacters } from '../../platform/text.js';
import { NotDelivered } from './fetch.js';
import type { StdioServer } from './server-config.js';
import type { ServerLog } from './server-log.js';

/** Bytes of one line. */
const LINE_MAX = 32 * 1024 * 1024;
/** Characters on stdout that are no messages, of all lines of the server. */
const GARBAGE_MAX = 8 * 1024 * 1024;
/** Characters of such a line that are logged. */
const LOGGED_MAX = 200;
/** After the end of its stdin, and after SIGTERM, a server has this long to end. */
const GRACE_MS = 500;
/** How long to wait for the end of its sandbox, in ms. */
const FINISH_MS = 5_000;
const NEWLINE = 0x0a;

type StdioOptions = {
  /** Rejects if the server must not be started. */
  prepare(): Promise<PreparedServer>;
  readonly log: ServerLog;
  /** Aborted when the connection is no longer needed: then the server is not started. */
  readonly signal: AbortSignal;
  /** Called with each message before it is sent. */
  sent(message: JSONRPCMessage): void;
  /** Parses a line; throws if it is no message. */
  parse(line: string): JSONRPCMessage;
};

/** A started server, as the MCP SDK speaks with it. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #options: StdioOptions;
  #child: ChildProcess | null = null;
  /** By which its processes are found. */
  #root: ProcessRoot | null = null;
  /** The line whose end has not come yet, and its length. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  #garbage = 0;
  #ended: Promise<void> = Promise.resolve();
  #why: string | null = null;

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  /** How the server ended, or what it did wrong; null while nothing is known. */
  get why(): string | null {
    return this.#why;
  }

  async start(): Promise<void> {
    const { log } = this.#options;
    const prepared = await this.#options.prepare();
    if (this.#options.signal.aborted) {
      prepared.started(); // closes the files that the server would have inherited
      await prepared.finish(() => undefined); // it never ran, so there is nothing to tell
      throw new Error('nobody waits for the server any more');
    }
    const { program, words, folder, environment, descriptors, isGuarded } = prepared;
    const marker = randomUUID();
    const markers = [environment[MARKER], marker].filter(Boolean).join(' ');
    const child = startProgram(program, words, {
      cwd: folder,
      env: { ...environment, [MARKER]: markers },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', ...descriptors, ...(isGuarded ? (['pipe'] as const) : [])],
    });
    guardPipe(child, prepared); // closes when Pawl ends, and then the guard ends the server
    prepared.started();
    this.#child = child;
    if (child.pid !== undefined)
      this.#root = {
        pid: child.pid,
        marker,
        startedAt: Number(readProcess(child.pid).started),
      };
    // `forget`: the end of this program need not kill the server any more.
    const forget = atExit(() => this.#killAll());
    let end: () => void = () => undefined;
    this.#ended = new Promise((resolve) => {
      end = resolve;
    });

    child.stdin?.on('error', () => undefined); // the server is gone, which `exit` reports
    child.stdout?.on('error', () => undefined); // the same
    child.stderr?.on('error', () => undefined); // the same
    child.stdout?.on('data', (piece: Buffer) => this.#take(piece));
    child.stderr?.on('data', (piece: Buffer) => log.add(piece.toString('utf8')));
    child.once('exit', (code, signal) => {
      this.#why ??=
        signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
      this.#killAll();
      this.#root = null; // its number may be used again
      forget();
      void prepared.finish((line) => log.add(`${line}\n`)).then(() => end());
    });
    child.once('close', () => this.onclose?.());

    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => {
        forget();
        void prepared.finish(() => undefined).then(() => end());
        reject(error);
      });
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) return Promise.reject(new NotDelivered('it does not read any more'));
    this.#options.sent(message);
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    child.stdin?.end();
    if (!(await this.#endsWithin(GRACE_MS))) {
      this.#kill('SIGTERM');
      await this.#endsWithin(GRACE_MS);
    }
    if (this.#root !== null) await endTree(this.#root);
    await this.#endsWithin(FINISH_MS);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }

  async #endsWithin(limitMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const timeIsUp = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), limitMs);
    });
    const hasEnded = await Promise.race([this.#ended.then(() => true), timeIsUp]);
    clearTimeout(timer);
    return hasEnded;
  }

  /** Signals the whole group of a server that has not ended. */
  #kill(signal: NodeJS.Signals): void {
    if (this.#root === null) return;
    try {
      process.kill(-this.#root.pid, signal);
    } catch {
      // the group has already ended
    }
  }

  /** Kills all that it has started, also what has left its group. */
  #killAll(): void {
    if (this.#root !== null) killNow(this.#root);
  }

  /** Divides stdout into lines. */
  #take(piece: Buffer): void {
    let rest = piece;
    for (let at = rest.indexOf(NEWLINE); at >= 0; at = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...this.#pieces, rest.subarray(0, at)]).toString('utf8');
      this.#pieces = [];
      this.#bytes = 0;
      rest = rest.subarray(at + 1);
      this.#read(line);
      if (this.#child?.stdout?.destroyed === true) return; // it was given up
    }
    if (rest.length === 0) return;
    this.#pieces.push(rest);
    this.#bytes += rest.length;
    if (this.#bytes > LINE_MAX) this.#giveUp(`it sent a line of more than ${LINE_MAX} bytes`);
  }

  /** Passes the message of a line on. */
  #read(line: string): void {
    if (line.trim() === '') return;
    let message: JSONRPCMessage;
    try {
      message = this.#options.parse(line);
    } catch {
      // the server itself is at fault, and its log shows the line
      this.#garbage += line.length;
      this.#options.log.add(`[no message on stdout] ${firstCharacters(line, LOGGED_MAX)}\n`);
      if (this.#garbage > GARBAGE_MAX)
        this.#giveUp('it writes something else than messages to its stdout');
      return;
    }
    this.onmessage?.(message);
  }

  /** Ends a server that does not keep to the protocol. */
  #giveUp(why: string): void {
    this.#why ??= why;
    this.#pieces = [];
    this.#bytes = 0;
    this.#child?.stdout?.destroy();
    this.#killAll();
  }
}

// ---- How a server becomes a process ----

/**
 * What to start.
 *
 * 1. A server of the user runs as the user has set it up, outside the sandbox. A guard, a process
 *    beside it, ends it if Pawl is killed; where there is no bash, it has none, and ends when it
 *    notices that its stdin is closed.
 * 2. A server of a project runs in a separate sandbox with the level that the user granted. If the
 *    sandbox does not work, it is not started.
 */
type PreparedServer = Omit<PreparedCommand, 'program' | 'finish'> & {
  readonly program: ProgramPath;
  /**
   * Call it once the server has ended. `tell` gets lines about files that were set aside. Never
   * rejects.
   */
  finish(tell: (line: string) => void): Promise<void>;
};

type Place = { readonly environment: ProcessEnvironment; readonly workspace: string };

type PreparedLevel = NonNullable<StdioServer['project']>['level'];

/** Prepares the start of a server. Rejects with the reason if it must not or can't be started. */
export const prepareServer = (server: StdioServer, place: Place): Promise<PreparedServer> => {
  const { level = 'off' } = server.project ?? {};
  return level === 'off'
    ? Promise.resolve(prepareUnsandboxed(server, place))
    : prepareSandboxed(server, level, place);
};

/**
 * What a server gets of our environment, as in the official package. Never a key. If this Pawl runs
 * in a command of another one, that one must find the server by its marker.
 */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR', MARKER];

const serverEnvironment = (
  { env }: StdioServer,
  environment: ProcessEnvironment,
): Record<string, string> => {
  const inherited = INHERITED.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), ...env };
};

const serverFolder = ({ cwd }: StdioServer, workspace: string): string =>
  path.resolve(workspace, cwd ?? '.');

const prepareUnsandboxed = (
  server: StdioServer,
  { environment, workspace }: Place,
): PreparedServer => {
  const program = findNamedProgram(server.command, { environment, workspace });
  const bash = systemBash();
  const start =
    bash === null
      ? { program, words: server.args }
      : guardedStart({ program, words: server.args }, bash);
  return {
    ...start,
    folder: serverFolder(server, workspace),
    environment: serverEnvironment(server, environment),
    descriptors: [],
    isGuarded: bash !== null,
    started: () => undefined,
    finish: async () => undefined,
  };
};

/**
 * The start inside the sandbox, which begins in the workspace. The variables that the project chose
 * are set here and not before: `LD_PRELOAD` would be heeded by bubblewrap itself, outside the
 * sandbox. They are no words of a command either, which other users could see.
 */
const startInside = (
  { env }: StdioServer,
  folder: string,
): {
  readonly environment: Readonly<Record<string, string>>;
  readonly words: readonly string[];
} => {
  const variables = Object.entries(env).map(([name, value], index) => [
    `PAWL_SERVER_${index}`,
    `${name}=${value}`,
  ]);
  const sets = variables.map(([at]) => `export "$${at}" && unset ${at} && `).join('');
  return {
    environment: Object.fromEntries(variables),
    words: ['-c', `cd "$0" && ${sets}exec "$@"`, folder],
  };
};

const prepareSandboxed = async (
  server: StdioServer,
  level: Exclude<PreparedLevel, 'off'>,
  { environment, workspace }: Place,
): Promise<PreparedServer> => {
  const program = findNamedProgram(server.command, { environment, workspace });
  const { environment: variables, words } = startInside(server, serverFolder(server, workspace));
  const sandboxes = createSessionSandbox({ environment });
  try {
    const sandbox = await sandboxes.of(workspace);
    const prepared = await sandbox.prepare({
      level,
      environment: variables,
      program: SYSTEM_SHELL,
      words: [...words, program, ...server.args],
    });
    return {
      ...prepared,
      async finish(tell) {
        const finished = await attempt(async () => {
          for (const line of await prepared.finish()) tell(line);
        });
        const closed = await attempt(() => sandboxes.close());
        // the server has ended: the log is all that a fault can change
        for (const end of [finished, closed]) if (end.kind === 'fault') tell(end.fault.message);
      },
    };
  } catch (error) {
    await sandboxes.close();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `it can't run in the sandbox (to run it as you: pawl trust allow mcp-server ${server.name} ` +
        `--sandbox off): ${why}`,
      { cause: error },
    );
  }
};
