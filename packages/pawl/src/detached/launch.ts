/**
 * Starts the process of a detached session (worker.ts), and waits for its first report: until its
 * input is stored.
 *
 * From top to bottom: the start of a process; the git worktree that a session gets if another one
 * works in its folder; and the three starts: of a prompt, of a session that was detached before,
 * and of the successor that goes on with a session of this process. The started process writes the
 * record: a successor before it waits for the end of this process, the others once it has the
 * session open. If a start fails, an earlier record of the session is put back.
 */

import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, rmSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import type { Duplex } from 'node:stream';
import { shellWord } from '@pawl/agent/command/sandbox/shell-text';
import { acquireLock, whenFree } from '@pawl/agent/journal/lock';
import { attempt } from '@pawl/agent/platform/attempt';
import { dataFolder } from '@pawl/agent/platform/environment';
import { isWithin, readTextOrEmptySync } from '@pawl/agent/platform/files';
import { NODE_PROGRAM, startProgram } from '@pawl/agent/platform/start-program';
import { firstCharacters } from '@pawl/agent/platform/text';
import type { Preset } from '@pawl/agent/policy/presets';
import { oneLine, warningText } from '@pawl/terminal/paint';
import { safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import * as v from 'valibot';
import type { Prompt } from '../headless/headless.js';
import { type ExitCode, exitCodes, Stop } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import {
  type LiveRecord,
  type LiveSession,
  type LiveStatus,
  leftCommands,
  listLive,
  type OwnWorktree,
  openLiveFolder,
  readRecord,
  removeLive,
  storableFlags,
  storeRecord,
} from '../sessions/live-records.js';
import { realWorkspace } from '../settings/connect-model.js';
import { type RunFlags, WORKER_WORD } from '../settings/flags.js';
import { type WorkReport, type WorkRequest, workReportSchema } from './worker.js';

type Launched = {
  readonly sessionId: string;
  readonly workspace: string;
  readonly preset?: Preset;
};

const LOG_BYTES_MAX = 64 * 1024;
const LAST_WORDS_MAX = 2_000;
const TITLE_MAX = 200;

const lastWords = (log: string): string =>
  readTextOrEmptySync(log, LOG_BYTES_MAX).trim().slice(-LAST_WORDS_MAX);

const diedEarly = (log: string, what: string): Stop => {
  const words = lastWords(log);
  return new Stop(
    exitCodes.internal,
    'internal',
    `The process of the session ${what} before it had confirmed your input. pawl sessions --live ` +
      `shows whether the session is there.${words === '' ? '' : `\n${words}`}`,
  );
};

const silenceText = (limitMs: number): string =>
  `said nothing for ${limitMs / 1_000} s and was killed`;

/** The error of this command for a failure that the process reports. */
const stopFrom = ({ exit, reason, message }: Extract<WorkReport, { kind: 'failed' }>): Stop =>
  new Stop(exitFrom(exit), reason, message);

const exitFrom = (code: number): ExitCode =>
  Object.values(exitCodes).find((known) => known === code) ?? exitCodes.internal;

/**
 * In this time a session is opened, with the MCP servers that it can't do without, and its input is
 * stored. Long, since a process that only is slow must not be killed.
 */
const REPORT_LIMIT_MS = 120_000;

/** The first line that the process writes, or why there is none. */
type FirstLine =
  | { readonly kind: 'line'; readonly line: string }
  | { readonly kind: 'ended' | 'silent' };

const firstLine = (channel: Duplex, limitMs: number): Promise<FirstLine> =>
  new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => resolve({ kind: 'silent' }), limitMs);
    const end = (first: FirstLine): void => {
      clearTimeout(timer);
      resolve(first);
    };
    channel.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      const length = text.indexOf('\n');
      if (length >= 0) end({ kind: 'line', line: text.slice(0, length) });
    });
    channel.once('error', () => end({ kind: 'ended' })).once('close', () => end({ kind: 'ended' }));
  });

/** Why the process of a successor has not begun. */
const explainEnd = ({ kind }: FirstLine, log: string, limitMs: number): string =>
  kind === 'silent'
    ? `its process ${silenceText(limitMs)}. ${lastWords(log)}`.trim()
    : lastWords(log) || 'its process ended at once.';

type Started = {
  readonly child: ChildProcess;
  readonly channel: Duplex;
  readonly first: FirstLine;
};

/** Starts the process and waits for its first line. One that says nothing in time is killed. */
const start = async (request: WorkRequest, cwd: string, limitMs: number): Promise<Started> => {
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
  const first = await Promise.race([firstLine(channel, limitMs), failed]);
  if (first.kind === 'silent') child.kill('SIGKILL');
  return { child, channel, first };
};

/** Where the process writes its stderr until it knows the id of its session. */
const newLog = (): string => join(openLiveFolder(), `start-${randomBytes(6).toString('hex')}.log`);

/**
 * Starts the process. Resolves when the session runs and the prompt is in its journal; throws a
 * `Stop` otherwise.
 */
const launch = async (
  wanted: Omit<WorkRequest, 'log'>,
  cwd: string,
  limitMs = REPORT_LIMIT_MS,
): Promise<Launched> => {
  const log = newLog();
  try {
    const { child, channel, first } = await start({ ...wanted, log }, cwd, limitMs);
    // It goes on without this process.
    channel.destroy();
    child.unref();
    // Only a new session gets a worktree. It is removed if no session runs in it.
    const { worktree } = wanted;
    if (first.kind !== 'line') {
      if (worktree !== undefined) await releaseUnlisted(worktree);
      throw diedEarly(log, first.kind === 'silent' ? silenceText(limitMs) : 'ended');
    }
    const report = v.parse(workReportSchema, JSON.parse(first.line));
    if (report.kind === 'started') return report;
    if (report.kind === 'failed' && worktree !== undefined) await releaseIfUnneeded(worktree);
    throw report.kind === 'failed' ? stopFrom(report) : diedEarly(log, 'ended');
  } finally {
    rmSync(log, { force: true }); // the process has moved it, or there is no session
  }
};

const loadWorktrees = () => import('@pawl/agent/workspace/session-worktrees');

const withoutTimeLimit = () => ({ environment: process.env, signal: new AbortController().signal });

/** Removes the worktree, or resolves with why it stays. */
const releaseIfUnneeded = async ({
  repository,
  path,
  commit,
}: OwnWorktree): Promise<string | null> => {
  const { releaseWorktree } = await loadWorktrees();
  return releaseWorktree({ repository, path, ...withoutTimeLimit() }, commit);
};

/** Removes the worktree of a session that never began, if nothing would be lost by it. */
const releaseUnlisted = async (worktree: OwnWorktree): Promise<void> => {
  const isListed = (await listLive()).some(({ record }) => record.worktree?.path === worktree.path);
  if (!isListed) await releaseIfUnneeded(worktree);
};

/**
 * Removes the worktree that was made for a session that is over, if nothing would be lost by it.
 * `live`: before it was ended. Resolves with text for the user: how to go on, and what became of
 * the worktree.
 */
export const endWorktree = async (live: LiveSession): Promise<string> => {
  const { sessionId, worktree } = live.record;
  const toGoOn = `To go on with it: pawl --resume ${sessionId}`;
  if (worktree === undefined || !(await (await loadWorktrees()).hasWorktree(worktree.path)))
    return `${toGoOn}\n`;
  const { repository, path } = worktree;
  const isShared = (await listLive()).some(
    ({ record }) => record.sessionId !== sessionId && isWithin(record.workspace, path),
  );
  const unsafe = leftCommands(live) ? 'a command that ran may still run in it' : null;
  const shared = isShared ? 'another detached session works in it' : null;
  const why = unsafe ?? shared ?? (await releaseIfUnneeded(worktree));
  const fromRepository = shellWord(repository);
  if (why === null)
    return (
      `Its worktree ${path} held nothing that the repository lacks, and was removed. ${toGoOn} ` +
      `--workspace ${fromRepository}\n`
    );
  return (
    `${toGoOn}\nIts worktree ${path} is kept: ${oneLine(why, Number.POSITIVE_INFINITY)}. To ` +
    `remove it with all that is in it: git -C ${fromRepository} worktree remove --force ` +
    `${shellWord(path)}\n`
  );
};

/** Statuses of sessions that work in their folder, or will again. */
const WORKING: readonly LiveStatus[] = ['runs', 'starting', 'died', 'failed'];

/**
 * A worktree of the repository around the folder, at its commit, for a session of its own. Null
 * where there is no commit to begin with.
 */
const makeWorktree = async (
  workspace: string,
): Promise<{ readonly folder: string; readonly worktree: OwnWorktree } | null> => {
  const [{ locateRepository }, { addWorktree, resolveCommit }] = await Promise.all([
    import('@pawl/agent/workspace/git'),
    loadWorktrees(),
  ]);
  const { environment, signal } = withoutTimeLimit();
  const located = await locateRepository({ workspace, environment, signal });
  if (located === null) return null;
  const { top } = located.location;
  const folder = join(dataFolder(environment), 'worktrees');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(realpathSync(folder), `${basename(top)}-${randomBytes(6).toString('hex')}`);
  const place = { repository: top, path, environment, signal };
  const commit = await resolveCommit(place, 'HEAD');
  if (commit === null) return null;
  await addWorktree(place, commit);
  const inside = join(path, relative(top, workspace));
  const worktree = { repository: top, path, commit };
  return { folder: existsSync(inside) ? inside : path, worktree };
};

const warn = (text: string): void => writeError(safe`${warningText(text)}\n`);

type Chosen = { readonly flags: RunFlags; readonly worktree?: OwnWorktree };

/** The flags with the folder of a worktree, if another detached session works in the folder. */
const chooseFolder = async (flags: RunFlags): Promise<Chosen> => {
  const { sameFolder, resume, continue: last } = flags;
  if (sameFolder || last || resume !== undefined) return { flags };
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const isShared = (await listLive()).some(
    ({ record, status }) => record.workspace === workspace && WORKING.includes(status),
  );
  if (!isShared) return { flags };
  const made = await attempt(() => makeWorktree(workspace));
  if (made.kind === 'fault')
    throw new Stop(
      exitCodes.cannotWrite,
      'cannotWrite',
      `Another detached session works in ${workspace}, and no git worktree can be made for this ` +
        `one: ${made.fault.message} To work in the same folder: --same-folder`,
    );
  if (made.value !== null) {
    warn(
      `Another detached session works in ${workspace}, so this one works in a worktree of its own, ` +
        'at the last commit: what is not committed is not in it.',
    );
    const { folder, worktree } = made.value;
    return { flags: { ...flags, workspace: folder }, worktree };
  }
  warn(
    `Another detached session works in ${workspace} too. There is no git commit for a worktree, so ` +
      'they share the folder.',
  );
  return { flags };
};

/** Longer than a start may take. */
const LOCK_WAIT_MS = 1.2 * REPORT_LIMIT_MS;

/** One start at a time: two that begin together see each other. */
const oneAtATime = async <T>(work: () => Promise<T>): Promise<T> => {
  const path = join(openLiveFolder(), 'launch.lock');
  const lock = await whenFree(() => acquireLock(path), LOCK_WAIT_MS);
  try {
    return await work();
  } finally {
    await lock.release();
  }
};

/**
 * A new session, or with `--continue` and `--resume` an old one, with a prompt. Its process has
 * `limitMs` to confirm the input.
 */
export const launchPrompt = (
  flags: RunFlags,
  prompt: Prompt,
  limitMs?: number,
): Promise<Launched> =>
  oneAtATime(async () => {
    const { flags: chosen, ...more } = await chooseFolder(flags);
    const title = firstCharacters(prompt.typed, TITLE_MAX);
    const own = storableFlags(chosen);
    const request = { flags: own, prompt, resume: null, title, begins: 'now', ...more } as const;
    return launch(request, process.cwd(), limitMs);
  });

/** A session that was detached before, from where it was. */
export const relaunch = (record: LiveRecord): Promise<Launched> => {
  const { sessionId, cwd, workspace, title, flags } = record;
  const folder = [cwd, workspace].find((one) => existsSync(one)) ?? '/';
  return launch({ flags, prompt: null, resume: sessionId, title, begins: 'now' }, folder);
};

/** A process that goes on with a session as soon as this process has ended. */
export type Successor = {
  /** Resolves if it ends before. */
  readonly ended: Promise<unknown>;
  /** The session stays here. */
  cancel(): Promise<void>;
};

/**
 * Starts the process that goes on with a session of this one. Resolves when it waits for the end of
 * this process; throws a `Stop` otherwise, and then nothing has changed.
 */
export const startSuccessor = async (
  sessionId: string,
  flags: RunFlags,
  title: string,
  limitMs = REPORT_LIMIT_MS,
): Promise<Successor> => {
  const log = newLog();
  const earlier = await readRecord(sessionId);
  const request = { prompt: null, resume: sessionId, begins: 'afterLauncher', log } as const;
  const whole = {
    ...request,
    flags: storableFlags(flags),
    title: firstCharacters(title, TITLE_MAX),
  };
  const { child, first } = await start(whole, process.cwd(), limitMs);
  const cancel = async (): Promise<void> => {
    child.kill('SIGKILL');
    if (earlier === null) await removeLive(sessionId, 'record');
    else await storeRecord(earlier);
    rmSync(log, { force: true });
  };
  const report = first.kind === 'line' ? v.parse(workReportSchema, JSON.parse(first.line)) : null;
  if (report?.kind === 'waits') return { ended: once(child, 'exit'), cancel };
  const stop =
    report?.kind === 'failed'
      ? stopFrom(report)
      : new Stop(exitCodes.internal, 'internal', explainEnd(first, log, limitMs));
  await cancel();
  throw stop;
};
