import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { type Command, type CommandRequest, startCommand } from '../command/command.js';
import { type CommandVariables, hardenedGit } from '../command/environment.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import type { CallFacts, Needs, ShellFacts } from '../policy/judged-call.js';
import type { FindDiscarded, FindLosses } from '../policy/shell/unrecoverable-files.js';
import type { Job, Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  callKey,
  commandOutcome,
  createJob,
  jobStarted,
  type RunPlace,
  waitForEnd,
} from './bash-result.js';
import { defineTool, readCommandShape } from './define-tool.js';
import { failed } from './file-change.js';

/** The shell for all commands. */
export const PROGRAM = 'bash';
const DEADLINE_MS = 120_000;
const DEADLINE_MS_MAX = 600_000;
/** A background job that ends within this time is reported like a foreground command. */
const EARLY_END_MS = 200;

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
  needs: v.exactOptional(
    v.pipe(
      v.picklist(['network', 'outside', 'repository']),
      v.description(
        'Widens the sandbox (repository: .git too), if allowed. Only if the command fails inside.',
      ),
    ),
  ),
});
type Input = v.InferOutput<typeof schema>;

/** The use of the tool that an input requests. */
type BashRequest =
  | { readonly kind: 'command'; readonly command: string; readonly background: boolean }
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'kill'; readonly jobId: string }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

const parseRequest = ({ command, background = false, jobAction, jobId }: Input): BashRequest => {
  const invalid = (field: string, why: string): BashRequest => ({ kind: 'invalid', field, why });
  if (command !== undefined) {
    if (jobAction !== undefined)
      return invalid('jobAction', 'can not be given together with command');
    return command.includes('\0')
      ? invalid('command', 'holds a NUL character')
      : { kind: 'command', command, background };
  }
  if (jobAction === undefined) return invalid('command', 'is missing');
  if (jobAction === 'list') return { kind: 'list' };
  return jobId === undefined ? invalid('jobId', 'is missing') : { kind: jobAction, jobId };
};

const showJob = (job: Job): string => `${job.jobId}: ${job.status()}: ${job.command}`;

const useJob = async (
  request: Exclude<BashRequest, { kind: 'command' | 'invalid' }>,
  { jobs }: ToolContext,
): Promise<ToolOutcome> => {
  const list = jobs.list().map(showJob).join('\n') || 'There are no jobs.';
  if (request.kind === 'list') return { status: 'ok', text: list };
  const job = jobs.get(request.jobId);
  if (job === undefined) return failed(`There is no job ${request.jobId}. ${list}`);
  if (request.kind === 'kill') await job.kill();
  const droppedBytes = job.droppedBytes?.() ?? 0;
  const text = `${job.output()}\n[${showJob(job)}]`;
  return { status: 'ok', text, ...(droppedBytes === 0 ? {} : { droppedBytes }) };
};

type Shell = {
  /** Pawl's environment; its PATH finds the shell. */
  readonly environment: ProcessEnvironment;
  readonly variables: CommandVariables;
  readonly sandbox: SessionSandbox;
  readonly findLosses: FindLosses;
  readonly findDiscarded: FindDiscarded;
  readonly sessionMark: string;
};

/** `jobId`: null of a foreground command. */
type RunOptions = Pick<CommandRequest, 'command' | 'deadlineMs'> &
  Required<Pick<CommandRequest, 'git'>> & { readonly jobId: string | null };

const start = (
  shell: Shell,
  { command, deadlineMs, git, jobId }: RunOptions,
  context: ToolContext,
): Command => {
  const { workspace, sandbox: level, widened } = context;
  const isOpenByRule = widened === 'unasked' && level === 'off';
  const marker = `${shell.sessionMark}:${context.callId}`;
  return startCommand({
    sandbox: () => shell.sandbox.of(workspace),
    ownEnvironment: shell.environment,
    environment: {
      ...shell.variables(workspace, command, marker),
      ...(isOpenByRule ? hardenedGit(shell.environment) : {}),
    },
    program: PROGRAM,
    level,
    fresh: widened !== undefined,
    command,
    git,
    workspace,
    deadlineMs,
    progress: (text) => (jobId === null ? context.progress(text) : undefined),
    record: { call: callKey(context), marker, job: jobId === null ? null : { jobId, command } },
  });
};

const commandPlace = (shell: Shell, { sandbox: level, workspace }: ToolContext): RunPlace => ({
  level,
  workspace,
  home: shell.environment.HOME ?? '',
});

const runInBackground = async (
  shell: Shell,
  { command: text, git }: Pick<RunOptions, 'command' | 'git'>,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const place = commandPlace(shell, context);
  let early: Promise<ToolOutcome | null> = Promise.resolve(null);
  const { jobId } = context.jobs.add((id) => {
    const command = start(shell, { command: text, git, deadlineMs: null, jobId: id }, context);
    early = command.ended.then((end) => commandOutcome(command, end, place, context.signal));
    return createJob(id, text, command, place);
  });
  return (await Promise.race([early, sleep(EARLY_END_MS, null)])) ?? jobStarted(jobId);
};

const runToEnd = async (
  shell: Shell,
  options: Omit<RunOptions, 'jobId'>,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const command = start(shell, { ...options, jobId: null }, context);
  const end = await waitForEnd(command, context);
  return commandOutcome(command, end, commandPlace(shell, context), context.signal);
};

/** Facts for the policy. Reading or ending a job affects nothing outside. */
const requestFacts = (
  request: Exclude<BashRequest, { kind: 'invalid' }>,
  needs: Needs | undefined,
): Pick<CallFacts, 'argv' | 'shape' | 'needs'> => {
  if (request.kind !== 'command') return { argv: [], shape: requestTitle(request) };
  const argv = [request.command];
  return needs === undefined
    ? { argv, shape: request.command }
    : { argv, shape: `${request.command} (needs: ${needs})`, needs };
};

const requestTitle = (request: BashRequest): string => {
  switch (request.kind) {
    case 'command':
      return request.command;
    case 'list':
      return 'list jobs';
    case 'show':
    case 'kill':
      return `${request.kind} ${request.jobId}`;
    case 'invalid':
      return '';
    default:
      return request satisfies never;
  }
};

/** Facts of a call that runs no command. */
const NO_COMMAND: ShellFacts = { commands: [], unclear: null };

/** What the command would run. Loads the shell grammar with the first command. */
const readFacts = async (
  command: string,
  workspace: string,
  { environment }: Shell,
): Promise<ShellFacts> => {
  const { shellFacts, commandFinder } = await import('../policy/shell/shell-facts.js');
  const find = commandFinder(environment.PATH ?? '', workspace);
  return shellFacts(command, find, environment.SHELL ?? null);
};

/** Why a part of a message in the command would run and be lost; null if none would. */
const findMessageFault = async (
  command: string,
  workspace: string,
  { environment }: Shell,
): Promise<string | null> => {
  if (!/`|\$\(/.test(command)) return null;
  const [{ messageFault }, { commandFinder }] = await Promise.all([
    import('../policy/shell/message-substitutions.js'),
    import('../policy/shell/shell-facts.js'),
  ]);
  return messageFault(command, commandFinder(environment.PATH ?? '', workspace));
};

/** What the command would run and lose. */
const commandFacts = async (
  command: string,
  needs: Needs | undefined,
  workspace: string,
  shell: Shell,
): Promise<Pick<CallFacts, 'shell' | 'unrecoverable' | 'discarded' | 'expects'>> => {
  const [facts, { unrecoverableFiles, discardedFiles }, { expectedNeeds }] = await Promise.all([
    readFacts(command, workspace, shell),
    import('../policy/shell/unrecoverable-files.js'),
    import('../policy/shell/expected-needs.js'),
  ]);
  const unrecoverable = await unrecoverableFiles(facts, workspace, shell.findLosses);
  const discarded = await discardedFiles(facts, workspace, shell.findDiscarded);
  const expects = needs === undefined ? expectedNeeds(command, facts, workspace) : null;
  return {
    shell: facts,
    ...(unrecoverable === null ? {} : { unrecoverable }),
    ...(discarded === null ? {} : { discarded }),
    ...(expects === null ? {} : { expects }),
  };
};

/** What the words of a command say about git folders. Unfenced, nothing depends on it. */
const gitAccess = async (
  shell: Shell,
  command: string,
  { needs }: Input,
  { sandbox, workspace }: ToolContext,
): Promise<RunOptions['git']> => {
  if (sandbox === 'off') return {};
  const [{ repositoryAccess, historyPurpose }, facts] = await Promise.all([
    import('../policy/repository-access.js'),
    readFacts(command, workspace, shell),
  ]);
  return { repository: repositoryAccess(facts, needs), purpose: historyPurpose(facts) };
};

const runCommand = async (
  shell: Shell,
  { command, background }: Extract<BashRequest, { kind: 'command' }>,
  input: Input,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const git = await gitAccess(shell, command, input, context);
  return background
    ? runInBackground(shell, { command, git }, context)
    : runToEnd(shell, { command, git, deadlineMs: input.timeoutMs ?? DEADLINE_MS }, context);
};

export const createBashTool = (shell: Shell): Tool =>
  defineTool({
    name: 'bash',
    description:
      'Runs a bash command in the workspace: no terminal, no input, output kept also when it ' +
      'fails or times out. What it leaves in the background is ended; for servers and ' +
      'watchers use background: true, then jobAction. Unless switched off, commands run in a ' +
      'sandbox: the workspace can be written, the rest only read, no network, no secrets; ' +
      '/tmp and HOME are private and kept for the session; fresh with network or outside.',
    schema,
    shape: readCommandShape,
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: DEADLINE_MS },
    async judge(input, workspace) {
      const request = parseRequest(input);
      if (request.kind === 'invalid') return request;
      const isCommand = request.kind === 'command';
      const why = isCommand ? await findMessageFault(request.command, workspace, shell) : null;
      if (why !== null) return { kind: 'invalid', field: 'command', why };
      const facts = {
        paths: [workspace],
        hosts: [],
        ...requestFacts(request, input.needs),
        ...(isCommand
          ? await commandFacts(request.command, input.needs, workspace, shell)
          : { shell: NO_COMMAND }),
        ...(isCommand && request.background ? ({ background: 'yes' } as const) : {}),
      };
      return {
        kind: 'ok',
        facts,
        ...(input.timeoutMs === undefined ? {} : { deadlineMs: input.timeoutMs }),
      };
    },
    title: (input) => requestTitle(parseRequest(input)),
    announce: (workspace) => shell.sandbox.announce(workspace),
    async findInterrupted(input, context) {
      const isCommand = parseRequest(input).kind === 'command';
      // Showing and ending jobs can be repeated.
      if (!isCommand) return { kind: 'neverBegan' };
      const { findCommand } = await import('./bash-recovery.js');
      return findCommand(shell.sandbox, shell.environment.HOME ?? '', context);
    },
    async run(input, context) {
      const request = parseRequest(input);
      switch (request.kind) {
        case 'command':
          return runCommand(shell, request, input, context);
        case 'list':
        case 'show':
        case 'kill':
          return useJob(request, context);
        case 'invalid':
          return failed(`${request.field} ${request.why}`);
        default:
          return request satisfies never;
      }
    },
  });
