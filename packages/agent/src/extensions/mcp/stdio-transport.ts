import type { ChildProcess } from 'node:child_process';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { atExit } from '../../platform/programs/at-exit.js';
import { guardOf } from '../../platform/programs/end-with-pawl.js';
import { startProgram } from '../../platform/programs/start-program.js';
import type { PreparedServer } from './prepare-server.js';
import type { ServerLog } from './server-log.js';

/**
 * A connection to a server that we start, by lines on its stdin and stdout.
 *
 * 1. The server gets a process group of its own. Closing ends the whole group, and so does the end of this program, also
 *    if it is killed.
 * 2. Lines that are no messages are logged and ignored, up to a limit: then the server is ended.
 */

const LINE_MAX = 32 * 1024 * 1024;
const GARBAGE_MAX = 8 * 1024 * 1024;
const LOGGED_MAX = 200;
/** After the end of its stdin, and after SIGTERM, a server has this long to end. */
const GRACE_MS = 500;
const NEWLINE = 0x0a;

export type StdioOrder = {
  /** Rejects if the server must not be started. */
  prepare(): Promise<PreparedServer>;
  readonly log: ServerLog;
  /** Aborted when nobody wants the connection any more: then the server is not started. */
  readonly signal: AbortSignal;
  /** Parses a line; throws if it is no message. */
  parse(line: string): JSONRPCMessage;
};

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #order: StdioOrder;
  #child: ChildProcess | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #garbage = 0;
  #ended: Promise<void> = Promise.resolve();
  #why: string | null = null;

  constructor(order: StdioOrder) {
    this.#order = order;
  }

  /** How the server ended, or what it did wrong; null while nothing is known. */
  get why(): string | null {
    return this.#why;
  }

  async start(): Promise<void> {
    const { log } = this.#order;
    const prepared = await this.#order.prepare();
    if (this.#order.signal.aborted) {
      prepared.started();
      await prepared.finish(() => undefined);
      throw new Error('nobody waits for the server any more');
    }
    const { program, words, folder, environment, descriptors, isGuarded } = prepared;
    const child = startProgram(program, words, {
      cwd: folder,
      env: environment,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', ...descriptors, ...(isGuarded ? (['pipe'] as const) : [])],
    });
    guardOf(child, prepared);
    prepared.started();
    this.#child = child;
    const forget = atExit(() => this.#kill('SIGKILL'));
    const { promise: ended, resolve: end } = withResolver();
    this.#ended = ended;
    child.stdin?.on('error', () => undefined); // the server is gone, which `exit` reports
    child.stdout?.on('error', () => undefined); // the same
    child.stderr?.on('error', () => undefined); // the same
    child.stdout?.on('data', (piece: Buffer) => this.#take(piece));
    child.stderr?.on('data', (piece: Buffer) => log.add(piece.toString('utf8')));
    child.once('exit', (code, signal) => {
      this.#why ??= signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
      this.#kill('SIGKILL');
      forget();
      void prepared.finish((line) => log.add(`${line}\n`)).then(end);
    });
    child.once('close', () => this.onclose?.());
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => {
        forget();
        void prepared.finish(() => undefined).then(end);
        reject(error);
      });
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) return Promise.reject(new Error('it does not read any more'));
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    child.stdin?.end();
    if (!(await this.#endsWithin(GRACE_MS))) this.#kill('SIGTERM');
    if (!(await this.#endsWithin(GRACE_MS))) this.#kill('SIGKILL');
    this.#kill('SIGKILL');
    child.stdout?.destroy();
    child.stderr?.destroy();
  }

  async #endsWithin(limitMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), limitMs);
    });
    const isOver = await Promise.race([this.#ended.then(() => true), late]);
    clearTimeout(timer);
    return isOver;
  }

  /** Signals the whole group, which may outlive the server itself. */
  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // the group has already ended
    }
  }

  #take(piece: Buffer): void {
    let rest = piece;
    for (let at = rest.indexOf(NEWLINE); at >= 0; at = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...this.#pieces, rest.subarray(0, at)]).toString('utf8');
      this.#pieces = [];
      this.#bytes = 0;
      rest = rest.subarray(at + 1);
      this.#read(line);
    }
    if (rest.length === 0) return;
    this.#pieces.push(rest);
    this.#bytes += rest.length;
    if (this.#bytes > LINE_MAX) this.#giveUp(`it sent a line of more than ${LINE_MAX} bytes`);
  }

  #read(line: string): void {
    if (line.trim() === '') return;
    let message: JSONRPCMessage;
    try {
      message = this.#order.parse(line);
    } catch {
      // rule 2: the server itself is at fault, and its log shows the line
      this.#garbage += line.length;
      this.#order.log.add(`[no message on stdout] ${line.slice(0, LOGGED_MAX)}\n`);
      if (this.#garbage > GARBAGE_MAX) this.#giveUp('it writes something else than messages to its stdout');
      return;
    }
    this.onmessage?.(message);
  }

  #giveUp(why: string): void {
    this.#why ??= why;
    this.#pieces = [];
    this.#bytes = 0;
    this.#child?.stdout?.destroy();
    this.#kill('SIGKILL');
  }
}

const withResolver = (): { readonly promise: Promise<void>; resolve(): void } => {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
};
