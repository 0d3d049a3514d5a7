import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { Job, Tool, ToolContext, ToolOutcome } from '../needs.js';
import { failed } from './change.js';
import { type CommandEnd, type RunningCommand, startCommand } from './command.js';
import type { CommandEnvironment } from './environment.js';
import { defineTool } from './schema.js';

/** The shell that commands are given to. */
export const PROGRAM = 'bash';
const DEADLINE_MS = 120_000;
const DEADLINE_MS_MAX = 600_000;
/** A background job that ends sooner is reported as what it is: a command that ended. */
const EARLY_END_MS = 200;
/** Of bash's own message about a command that it can't parse. */
const JOINED_IN_MESSAGE = /`exec 2>&1; /g;

const schema = v.strictObject({
  command: v.exactOptional(v.pipe(v.string(), v.minLength(1, 'must not be empty'))),
  timeoutMs: v.exactOptional(
    v.pipe(
      v.number(),
      v.integer('must be a whole number'),
      v.minValue(1, 'must be at least 1'),
      v.maxValue(DEADLINE_MS_MAX, `must be at most ${DEADLINE_MS_MAX}`),
      v.description(`Default ${DEADLINE_MS}.`),
    ),
  ),
  background: v.exactOptional(v.pipe(v.boolean(), v.description('Start it as a job and go on.'))),
  jobAction: v.exactOptional(
    v.pipe(v.picklist(['list', 'show', 'kill']), v.description('In place of command.')),
  ),
  jobId: v.exactOptional(v.pipe(v.string(), v.description('For show and kill.'))),
});
type Input = v.InferOutput<typeof schema>;

/** Input of which exactly one way to use the tool is set. */
type Wish =
  | { readonly kind: 'command'; readonly command: string; readonly background: boolean }
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'kill'; readonly jobId: string }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

const wishOf = ({ command, background = false, jobAction, jobId }: Input): Wish => {
  const invalid = (field: string, why: string): Wish => ({ kind: 'invalid', field, why });
  if (command !== undefined) {
    if (jobAction !== undefined) return invalid('jobAction', 'can not be given together with command');
    return command.includes('\0')
      ? invalid('command', 'holds a NUL character')
      : { kind: 'command', command, background };
  }
  if (jobAction === undefined) return invalid('command', 'is missing');
  if (jobAction === 'list') return { kind: 'list' };
  return jobId === undefined ? invalid('jobId', 'is missing') : { kind: jobAction, jobId };
};

const seconds = (durationMs: number): string => `${(durationMs / 1000).toFixed(1)} s`;

const describeEnd = ({ how, durationMs }: CommandEnd): string => {
  switch (how.kind) {
    case 'exited':
      return `exit code ${how.code}, ${seconds(durationMs)}`;
    case 'killed':
      return `ended by ${how.signal}, ${seconds(durationMs)}`;
    case 'notStarted':
      return `not started: ${how.why}`;
    default:
      return how satisfies never;
  }
};

const leftoverLines: Readonly<Record<CommandEnd['leftovers'], readonly string[]>> = {
  none: [],
  ended: ['[processes that it left in the background were ended; to keep one, use background: true]'],
  detached: ['[a process that it detached still runs]'],
};

const outputOf = (running: RunningCommand): string => {
  const text = running.output.text().replace(JOINED_IN_MESSAGE, '`').trimEnd();
  return text === '' ? '(no output)' : text;
};

/** How a foreground command ended, for the model: output first, then one line that says how. */
const outcomeOf = (running: RunningCommand, end: CommandEnd, signal: AbortSignal): ToolOutcome => {
  const show = (line: string): string =>
    [outputOf(running), `[${line}]`, ...leftoverLines[end.leftovers]].join('\n');
  if (signal.aborted) {
    const timedOut = signal.reason === 'timedOut';
    const why = timedOut ? 'timed out' : 'cancelled';
    const text = show(
      `${why} after ${seconds(end.durationMs)}: it was stopped with all it had started; what it did until then stands`,
    );
    return { status: timedOut ? 'timedOut' : 'cancelled', text };
  }
  const done = end.how.kind === 'exited' && end.how.code === 0;
  return { status: done ? 'ok' : 'failed', text: show(describeEnd(end)) };
};

const jobOf = (jobId: string, command: string, running: RunningCommand): Job => {
  let end: CommandEnd | undefined;
  void running.ended.then((ended) => {
    end = ended;
  });
  return {
    jobId,
    command,
    status: () => (end === undefined ? 'running' : describeEnd(end)),
    output: () => outputOf(running),
    kill: async () => {
      running.kill();
      await running.ended;
    },
  };
};

const showJob = (job: Job): string => `${job.jobId}: ${job.status()}: ${job.command}`;

const useJob = async (
  wish: Exclude<Wish, { kind: 'command' | 'invalid' }>,
  { jobs }: ToolContext,
): Promise<ToolOutcome> => {
  const list = jobs.list().map(showJob).join('\n') || 'There are no jobs.';
  if (wish.kind === 'list') return { status: 'ok', text: list };
  const job = jobs.get(wish.jobId);
  if (job === undefined) return failed(`There is no job ${wish.jobId}. ${list}`);
  if (wish.kind === 'kill') await job.kill();
  return { status: 'ok', text: `${job.output()}\n[${showJob(job)}]` };
};

type Shell = { readonly environment: CommandEnvironment; readonly sessionMark: string };

const begin = (
  shell: Shell,
  command: string,
  context: ToolContext,
  progress: (text: string) => void,
): RunningCommand => {
  const marker = `${shell.sessionMark}:${context.callId}`;
  const environment = shell.environment(context.workspace, command, marker);
  return startCommand({
    program: PROGRAM,
    command,
    workspace: context.workspace,
    environment,
    marker,
    progress,
  });
};

const runInBackground = async (shell: Shell, command: string, context: ToolContext): Promise<ToolOutcome> => {
  const running = begin(shell, command, context, () => undefined);
  const job = context.jobs.add((jobId) => jobOf(jobId, command, running));
  const early = await Promise.race([running.ended, sleep(EARLY_END_MS, null)]);
  if (early !== null) return outcomeOf(running, early, context.signal);
  return {
    status: 'ok',
    text: `Started ${job.jobId} in the background. See or kill it with jobAction and jobId.`,
  };
};

const runToEnd = async (shell: Shell, command: string, context: ToolContext): Promise<ToolOutcome> => {
  const running = begin(shell, command, context, (text) => context.progress(text));
  const stop = (): void => running.stop();
  const kill = (): void => running.kill();
  context.signal.addEventListener('abort', stop, { once: true });
  context.force.addEventListener('abort', kill, { once: true });
  if (context.signal.aborted) stop();
  if (context.force.aborted) kill();
  const end = await running.ended;
  context.signal.removeEventListener('abort', stop);
  context.force.removeEventListener('abort', kill);
  return outcomeOf(running, end, context.signal);
};

/** The shell of one session. */
export const createBashTool = (shell: Shell): Tool =>
  defineTool({
    name: 'bash',
    description:
      'Runs a bash command in the workspace: no terminal, no input, output kept also when it fails or times out. What it leaves in the background is ended; for servers and watchers use background: true, then jobAction.',
    schema,
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: DEADLINE_MS },
    async judge(input, workspace) {
      const wish = wishOf(input);
      if (wish.kind === 'invalid') return wish;
      const shape =
        wish.kind === 'command' ? wish.command : `${wish.kind} ${'jobId' in wish ? wish.jobId : 'jobs'}`;
      const facts = {
        argv: wish.kind === 'command' ? [wish.command] : [],
        paths: [workspace],
        hosts: [],
        shape,
      };
      return { kind: 'ok', facts, ...(input.timeoutMs === undefined ? {} : { deadlineMs: input.timeoutMs }) };
    },
    async run(input, context) {
      const wish = wishOf(input);
      switch (wish.kind) {
        case 'command':
          return wish.background
            ? runInBackground(shell, wish.command, context)
            : runToEnd(shell, wish.command, context);
        case 'list':
        case 'show':
        case 'kill':
          return useJob(wish, context);
        case 'invalid':
          return failed(`${wish.field} ${wish.why}`);
        default:
          return wish satisfies never;
      }
    },
  });
