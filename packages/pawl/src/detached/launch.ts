/** Starts the process of a detached session, and waits until its input is stored. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { readTextOrEmptySync } from '@pawl/agent/platform/files';
import { NODE_PROGRAM, startProgram } from '@pawl/agent/platform/start-program';
import * as v from 'valibot';
import type { Prompt } from '../headless/headless.js';
import { type ExitCode, exitCodes, Stop } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import { type RunFlags, WORKER_WORD } from '../settings/flags.js';
import { type LiveRecord, openLiveFolder, storableFlags } from './live-records.js';
import { type WorkRequest, workReportSchema } from './worker.js';

type Launched = { readonly sessionId: string; readonly workspace: string };

const LOG_BYTES_MAX = 64 * 1024;
const LAST_WORDS = 2_000;

const diedEarly = (log: string): Stop => {
  const words = readTextOrEmptySync(log, LOG_BYTES_MAX).trim().slice(-LAST_WORDS);
  return new Stop(
    exitCodes.internal,
    'internal',
    'The process of the session ended before it had confirmed your input. pawl sessions --live ' +
      `shows whether the session is there.${words === '' ? '' : `\n${words}`}`,
  );
};

const exitFrom = (code: number): ExitCode =>
  Object.values(exitCodes).find((known) => known === code) ?? exitCodes.internal;

/** The first line that the process writes; null if it ended without one. */
const firstLine = (channel: Duplex): Promise<string | null> =>
  new Promise((resolve) => {
    let text = '';
    channel.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
    });
    channel.once('error', () => resolve(null)).once('close', () => resolve(null));
  });

const start = async (request: WorkRequest, cwd: string): Promise<string | null> => {
  const log = openSync(request.log, 'wx', 0o600);
  const child = startProgram(NODE_PROGRAM, [join(packageFolder(), 'bin', 'pawl.js'), WORKER_WORD], {
    cwd,
    env: process.env,
    detached: true,
    stdio: ['pipe', log, log, 'pipe'],
  });
  closeSync(log);
  const failed = once(child, 'error').then(([error]) => {
    throw error;
  });
  child.stdin?.on('error', () => undefined); // it has ended: its line is missing, too
  child.stdin?.end(JSON.stringify(request));
  // a pipe, as asked for above
  const channel = child.stdio[3] as Duplex;
  const line = await Promise.race([firstLine(channel), failed]);
  channel.destroy();
  child.unref();
  return line;
};

/**
 * Starts the process. Resolves when the session runs and the prompt is in its journal; throws a
 * `Stop` otherwise.
 */
const launch = async (wanted: Omit<WorkRequest, 'log'>, cwd: string): Promise<Launched> => {
  const log = join(openLiveFolder(), `start-${randomBytes(6).toString('hex')}.log`);
  try {
    const line = await start({ ...wanted, log }, cwd);
    if (line === null) throw diedEarly(log);
    const report = v.parse(workReportSchema, JSON.parse(line));
    if (report.kind === 'started') return report;
    throw new Stop(exitFrom(report.exit), report.reason, report.message);
  } finally {
    rmSync(log, { force: true }); // the process has moved it, or there is no session
  }
};

/** A new session, or with `--continue` and `--resume` an old one, with a prompt. */
export const launchPrompt = (flags: RunFlags, prompt: Prompt): Promise<Launched> =>
  launch({ flags: storableFlags(flags), prompt, resume: null }, process.cwd());

/** A session that was detached before, from where it was. */
export const relaunch = ({ sessionId, flags, cwd, workspace }: LiveRecord): Promise<Launched> => {
  const { continue: _, resume: __, ...others } = flags;
  const folder = [cwd, workspace].find((one) => existsSync(one)) ?? '/';
  return launch({ flags: others, prompt: null, resume: sessionId }, folder);
};

/** A session that is not open anywhere, in a process of its own from now on. */
export const launchStored = (sessionId: string, flags: RunFlags): Promise<Launched> =>
  launch({ flags: storableFlags(flags), prompt: null, resume: sessionId }, process.cwd());
