/**
 * The one place where processes are started.
 *
 * A program is an absolute path that find-program.ts has checked, or one of the constants below. No
 * shell is involved.
 */

import {
  type ChildProcess,
  type ChildProcessByStdio,
  execFile,
  type SpawnOptions,
  type SpawnOptionsWithStdioTuple,
  type StdioNull,
  type StdioPipe,
  spawn,
  spawnSync,
} from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Duplex, type Readable } from 'node:stream';
import type { ProcessEnvironment } from './environment.js';
import { type ProgramPath, searchPrograms } from './find-program.js';

/** The Node that runs us. */
// Trusted as it is: it already runs us.
export const NODE_PROGRAM = process.execPath as ProgramPath;

/** The system's shell, at its path on every POSIX system. */
// A fixed path in a folder of the system.
export const SYSTEM_SHELL = '/bin/sh' as ProgramPath;

/** The system's bash; null if it is not at its usual paths. */
export const systemBash = (): ProgramPath | null => {
  const found = ['/bin/bash', '/usr/bin/bash'].find((file) => existsSync(file));
  // Fixed paths in folders of the system.
  return found === undefined ? null : (found as ProgramPath);
};

type Start = {
  (
    program: ProgramPath,
    words: readonly string[],
    options: Omit<SpawnOptionsWithStdioTuple<StdioNull, StdioPipe, StdioPipe>, 'shell'>,
  ): ChildProcessByStdio<null, Readable, Readable>;
  (
    program: ProgramPath,
    words: readonly string[],
    options: Omit<SpawnOptions, 'shell'>,
  ): ChildProcess;
};

/** A stream for a process that could not be started. */
const endedStream = (): Duplex =>
  new Duplex({
    read() {
      this.push(null);
    },
    write: (_piece, _encoding, done) => done(),
  });

/**
 * Adds the missing streams: if no more files can be opened, Node returns a child without streams
 * before its `error` event.
 */
const withStreams = (child: ChildProcess, { stdio }: Omit<SpawnOptions, 'shell'>): ChildProcess => {
  // Its type claims that they always exist.
  if ((child.stdio as ChildProcess['stdio'] | undefined) !== undefined) return child;
  const kinds = Array.isArray(stdio) ? stdio : [stdio, stdio, stdio];
  const streams = kinds.map((kind) => (kind === 'pipe' ? endedStream() : null));
  const [stdin = null, stdout = null, stderr = null] = streams;
  return Object.assign(child, { stdio: streams, stdin, stdout, stderr });
};

/**
 * Like `spawn` of node:child_process, but every failure to start is an `error` event of the child.
 */
export const startProgram: Start = (
  program: ProgramPath,
  words: readonly string[],
  options: Omit<SpawnOptions, 'shell'>,
) =>
  // The streams depend on `options`, as the overloads above declare.
  withStreams(spawn(program, words, { ...options, shell: false }), options) as ChildProcessByStdio<
    null,
    Readable,
    Readable
  >;

type AskProgramOptions = {
  readonly environment: ProcessEnvironment;
  /** The program's PATH. Scripts need it, for example for `#!/usr/bin/env bash`. */
  readonly searchPath: readonly string[];
  readonly folder?: string;
  /** In milliseconds. Default: no limit. */
  readonly timeoutMs?: number;
};

type ProgramAnswer = {
  /** Exit code; 1 if a signal ended it. */
  readonly code: number;
  readonly output: string;
  readonly errors: string;
  /** What went wrong, in a few words; null if the exit code is 0. */
  readonly fault: string | null;
};

const NOT_STARTED = new Set(['ENOENT', 'EACCES', 'EPERM', 'ENOEXEC', 'ENOTDIR']);

const withPath = (
  environment: AskProgramOptions['environment'],
  searchPath: readonly string[],
): NodeJS.ProcessEnv => ({ ...environment, PATH: searchPath.join(path.delimiter) });

/**
 * Runs a program to its end and returns its output, which must be small. Null if it can't be
 * started. Never rejects.
 */
export const askProgram = (
  program: ProgramPath,
  words: readonly string[],
  { environment, searchPath, folder, timeoutMs = 0 }: AskProgramOptions,
): Promise<ProgramAnswer | null> =>
  new Promise((resolve) => {
    const options = {
      encoding: 'utf8' as const,
      env: withPath(environment, searchPath),
      timeout: timeoutMs,
      ...(folder === undefined ? {} : { cwd: folder }),
    };
    execFile(program, words, options, (error, output, errors) => {
      if (error === null) return resolve({ code: 0, output, errors, fault: null });
      if (typeof error.code === 'string' && NOT_STARTED.has(error.code)) return resolve(null);
      const code = typeof error.code === 'number' ? error.code : 1;
      resolve({ code, output, errors, fault: error.message });
    });
  });

/** Like `askProgram`, but blocks until the program has ended. */
export const askProgramSync = (
  program: ProgramPath,
  words: readonly string[],
  { environment, searchPath, folder }: AskProgramOptions,
): ProgramAnswer | null => {
  const ran = spawnSync(program, words, {
    encoding: 'utf8',
    env: withPath(environment, searchPath),
    shell: false,
    ...(folder === undefined ? {} : { cwd: folder }),
  });
  if (ran.error !== undefined) return null;
  const fault =
    ran.status === 0 ? null : `it ended with ${ran.signal ?? `exit code ${ran.status}`}`;
  return { code: ran.status ?? 1, output: ran.stdout, errors: ran.stderr, fault };
};

/** Clean-up duties for the exit of this program. */

const duties = new Set<() => void>();

const doAll = (): void => {
  for (const duty of duties) duty();
};

/** Registers a synchronous duty; the returned function cancels it. */
export const atExit = (duty: () => void): (() => void) => {
  if (duties.size === 0) process.once('exit', doAll);
  duties.add(duty);
  return () => {
    duties.delete(duty);
    if (duties.size === 0) process.off('exit', doAll);
  };
};

/**
 * Opens an address in the user's browser, where there is a screen. A convenience: the address is
 * also printed, so faults are ignored.
 */
export const openBrowser = (
  address: string,
  environment: ProcessEnvironment,
  workspace: string,
): void => {
  const isMac = process.platform === 'darwin';
  if (!isMac && !environment.DISPLAY && !environment.WAYLAND_DISPLAY) return;
  const opener = searchPrograms({ environment, workspace }).find(isMac ? 'open' : 'xdg-open');
  if (opener === null) return;
  const child = startProgram(opener, [address], {
    cwd: '/',
    env: { ...environment },
    detached: true,
    stdio: 'ignore',
  });
  child.once('error', () => undefined); // the address stands in the terminal
  child.unref();
};
