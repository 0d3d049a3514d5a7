/**
 * Commands that an earlier process of the session started before it was killed
 * (docs/proof/reliability.md).
 *
 * When a session is resumed, `settleEarlier` lists the jobs and ends commands whose calls no longer
 * wait. The tool asks `findCommand` for each call that was interrupted.
 *
 * A call whose command lives is never unknown: the command is followed, which reads its output from
 * the beginning and waits for its end. In another pid namespace a pipe shows whether it lives, or
 * the result says that nothing shows it. There its guard ends it: a small shell beside the command
 * that looks after it. A command that has not started is claimed: then it never starts.
 *
 * A verdict says how a command stands, from its files: `neverStarted`, `running`, ended in some
 * way, `direct` (started without such files) or `unseen` (nothing shows it from here). Its `view`
 * is `foreign` in another pid namespace. A marker is a text in the environment of the command's
 * processes, by which these are found. `isFenced`: the command runs in the sandbox.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, followFound, identifyFolder } from '../command/command.js';
import type { EarlierCommands, Unreachable } from '../command/earlier-processes.js';
import { endMarked, listMarked, UNTOLD_ROUNDS_MAX } from '../command/end-processes.js';
import { type FoundCommand, isCommandAlive } from '../command/launched-command.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import { sinceBoot } from '../platform/processes.js';
import type { InterruptedCall, Jobs, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  callKey,
  commandOutcome,
  createEndedJob,
  createJob,
  describeEnd,
  jobStarted,
  type RunPlace,
  waitForEnd,
} from './bash-result.js';

const UNKNOWN =
  'the session was interrupted while this command started or ran; check whether it took ' +
  'effect before you run it again';
const UNREACHABLE: Readonly<Record<Unreachable, string>> = {
  elsewhere: 'the session ran on another machine, or this one was restarted since',
  copy: 'this is a copy of the files of the session, and the command belongs to the original',
};
const UNSEEN =
  'it ran in another pid namespace (a container, or the host of this one), and nothing shows ' +
  'from here whether it still runs';
const UNTOLD = 'the system does not tell whether it still runs';
const RECOVERED = '[Pawl was interrupted while this ran, and went on: this is the real result]';
const REPLACED = '[the workspace folder was replaced while this ran: it worked in the old one]';
const POLL_MS = 100;
/** How long to wait for the end of a command that is ended, in ms. A guard looks once a second. */
const END_MS = 5_000;

/**
 * What has to be done when a found command has ended: the history of git folders is checked
 * (`finishHistory`), and the sandbox settles what it watched. Both return notes for the model.
 */
type Recovery = Pick<EarlierCommands, 'finishHistory'> & {
  readonly sandbox: Pick<SessionSandbox, 'settle'>;
};

/** Waits for a found command as for one that this process started. */
const followCommand = (
  foundCommand: FoundCommand,
  { finishHistory, sandbox }: Recovery,
  workspace: string,
  progress: (text: string) => void,
): Command =>
  followFound(foundCommand, progress, async () => [
    ...finishHistory(),
    ...(await sandbox.settle(workspace)),
  ]);

/** The real result of a call, marked as recovered. */
const finish = async (
  foundCommand: FoundCommand,
  recovery: Recovery,
  place: RunPlace,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const { workspace } = place;
  const command = followCommand(foundCommand, recovery, workspace, (text) =>
    context.progress(text),
  );
  const outcome = commandOutcome(
    command,
    await waitForEnd(command, context),
    place,
    context.signal,
  );
  if (outcome.status === 'lost') return outcome;
  // the folder by its device and inode, since its path stays the same
  const isReplaced = foundCommand.record.workspace !== identifyFolder(workspace);
  const text = [outcome.text, ...(isReplaced ? [REPLACED] : []), RECOVERED].join('\n');
  return {
    ...outcome,
    text,
    ...(outcome.status === 'ok' ? { summary: 'recovered after a restart' } : {}),
  };
};

/** Waits for a command without files: its processes are found, but no output. */
const finishDirect = async (
  foundCommand: FoundCommand,
  { signal }: ToolContext,
): Promise<ToolOutcome> => {
  const { marker } = foundCommand.record;
  for (let untold = 0; !signal.aborted && untold < UNTOLD_ROUNDS_MAX; await sleep(POLL_MS)) {
    const pids = listMarked(marker);
    if (pids?.length === 0) return { status: 'lost', text: UNKNOWN };
    untold = pids === null ? untold + 1 : 0;
  }
  const leftovers = signal.aborted ? await endMarked(marker) : 'unseen';
  if (leftovers === 'ended')
    return { status: signal.reason === 'timedOut' ? 'timedOut' : 'cancelled', text: UNKNOWN };
  return { status: 'lost', text: leftovers === 'none' ? UNKNOWN : `${UNTOLD}: ${UNKNOWN}` };
};

const explainUnknown = (hiddenBy: Unreachable | null): string =>
  hiddenBy === null ? UNKNOWN : `${UNREACHABLE[hiddenBy]}: ${UNKNOWN}`;

/** How a command stands that was running when the session was interrupted. */
export const findCommand = async (
  sandbox: SessionSandbox,
  place: RunPlace,
  context: ToolContext,
): Promise<InterruptedCall> => {
  const earlier = await sandbox.earlier(context.workspace);
  // null: such a session can't be resumed, so it left no records
  if (earlier === null) return { kind: 'unknown', text: UNKNOWN };
  const foundCommand = earlier.commands.findLast(({ record }) => record.call === callKey(context));
  if (foundCommand === undefined) {
    // every process of the session has left its records here, and none has this call
    if (earlier.isComplete) return { kind: 'neverBegan' };
    return { kind: 'unknown', text: explainUnknown(earlier.hiddenBy) };
  }
  // `due`: its deadline, on the clock that counts since the start of the machine
  const leftMs = foundCommand.due === null ? null : foundCommand.due - sinceBoot();
  // once we have claimed its start, it never begins; if another was faster, it runs
  if (foundCommand.verdict().kind === 'neverStarted' && foundCommand.claim())
    return { kind: 'neverBegan' };
  const { kind } = foundCommand.verdict();
  if (kind === 'direct')
    return { kind: 'found', leftMs, finish: () => finishDirect(foundCommand, context) };
  if (kind === 'unseen') return { kind: 'unknown', text: `${UNSEEN}: ${UNKNOWN}` };
  const { job } = foundCommand.record;
  if (job !== null)
    return { kind: 'found', leftMs: null, finish: async () => jobStarted(job.jobId) };
  const isRunning = kind === 'running';
  const { finishHistory } = earlier;
  const recovery = { finishHistory, sandbox };
  return {
    kind: 'found',
    leftMs,
    isRunning,
    finish: () => finish(foundCommand, recovery, place, context),
  };
};

/**
 * Resolves once the job can be read. A job that has ended is read to its end first, or it would
 * seem to run.
 */
const restoreJob = async (
  foundCommand: FoundCommand,
  recovery: Recovery,
  { workspace, ...about }: EarlierPlace,
  jobs: Jobs,
): Promise<void> => {
  const { job, isFenced } = foundCommand.record;
  if (job === null) return;
  const hasEnded = foundCommand.verdict().kind !== 'running';
  const command = followCommand(foundCommand, recovery, workspace, () => undefined);
  // the exact level is not recorded; hints about the sandbox need only this much
  const level = isFenced ? 'workspace' : 'off';
  const place = { command: job.command, level, workspace, ...about } as const;
  jobs.restore(createJob(job.jobId, command, place));
  if (hasEnded) await command.ended;
};

/** Lists a job with nothing but files: it can be read, and there is nothing to kill. */
const restoreEndedJob = (foundCommand: FoundCommand, why: string, jobs: Jobs): void => {
  const { job, startedAt } = foundCommand.record;
  const { exitCode, endedAt, hasBegun } = foundCommand.readStatus();
  if (job === null || !hasBegun) return;
  const durationMs = Math.max(0, (endedAt ?? startedAt) - startedAt);
  const end =
    exitCode === null
      ? `unknown (${why})`
      : describeEnd({ how: { kind: 'exited', code: exitCode }, durationMs });
  jobs.restore(createEndedJob(job, end, (to) => foundCommand.readOutput(to)));
};

/** Ends a command whose call no longer waits. */
const endFound = async (
  foundCommand: FoundCommand,
  { finishHistory }: Pick<Recovery, 'finishHistory'>,
): Promise<void> => {
  if (foundCommand.verdict().kind === 'direct')
    return void (await endMarked(foundCommand.record.marker));
  const command = followFound(
    foundCommand,
    () => undefined,
    async () => finishHistory(),
  );
  command.kill();
  // one that can't be ended does not hold up the session
  await Promise.race([command.ended, sleep(END_MS, undefined, { ref: false })]);
};

type EarlierPlace = Required<Pick<RunPlace, 'workspace' | 'home' | 'unattended'>>;

/**
 * Lists the jobs of earlier processes, and ends commands whose calls no longer wait. `waited`: the
 * calls that are being recovered.
 */
export const settleEarlier = async (
  sandbox: SessionSandbox,
  jobs: Jobs,
  place: EarlierPlace,
  waited: readonly string[],
): Promise<void> => {
  const { workspace } = place;
  const {
    commands = [],
    elsewhere = [],
    finishHistory = () => [],
  } = (await sandbox.earlier(workspace)) ?? {};
  // these first: where two processes gave the same number, the job of this machine counts
  for (const { command, why } of elsewhere) restoreEndedJob(command, UNREACHABLE[why], jobs);
  const restoring: Promise<void>[] = [];
  let isFollowed = false; // a call that is waited for
  for (const foundCommand of commands) {
    const { job, call } = foundCommand.record;
    const { kind } = foundCommand.verdict();
    const hasFiles = kind !== 'neverStarted' && kind !== 'direct';
    if (kind === 'unseen') {
      restoreEndedJob(foundCommand, UNSEEN, jobs);
    } else if (job !== null && hasFiles) {
      restoring.push(restoreJob(foundCommand, { sandbox, finishHistory }, place, jobs));
    } else if (waited.includes(call)) {
      isFollowed ||= hasFiles;
    } else if (isCommandAlive(foundCommand) || kind === 'direct') {
      await endFound(foundCommand, { finishHistory });
    }
  }
  await Promise.all(restoring);
  // of commands that had ended before Pawl was killed; a call that is followed does it at its end
  if (!isFollowed) finishHistory();
  // protected files (hooks, settings) are watched while restored jobs run
  await sandbox.guard(workspace);
};
