/**
 * The tool `bash`: runs a command, in the foreground or as a job in the background, and reads or
 * ends jobs.
 *
 * From top to bottom: the schema; input in the form of other agents, which models have learned;
 * what a call asks for; jobs; a run, to its end or in the background; facts for the policy, such as
 * the commands in the text; and `createBashTool`. command/ runs the command, bash-result.ts makes
 * the text that the model gets, bash-recovery.ts finds commands of a killed process.
 */

import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import { type Command, type CommandRequest, startCommand } from '../command/command.js';
import { type CommandVariables, hardenedGit } from '../command/environment.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import { attempt } from '../platform/attempt.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { quoteWord } from '../policy/approval-question.js';
import { type CallFacts, type Needs, needsMark, type ShellFacts } from '../policy/judged-call.js';
import type { TreeMove } from '../policy/programs/git-moves.js';
import type { CommandFacts } from '../policy/shell/command-facts.js';
import type { ShellLookup } from '../policy/shell/shell-facts.js';
import type { AskGit, FindDiscarded, FindLosses } from '../policy/shell/unrecoverable-files.js';
import type { Job, Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  callKey,
  commandOutcome,
  createJob,
  jobStarted,
  type RunPlace,
  waitForEnd,
} from './bash-result.js';
import {
  type Aliases,
  defineTool,
  type ForeignFields,
  type InputFault,
  isGiven,
  readNumber,
  type TranslatedInput,
  wholeNumber,
  withoutFields,
} from './define-tool.js';
import { failed } from './file-change.js';

/** The shell for all commands. */
export const PROGRAM = 'bash';
const DEADLINE_MS = 120_000;
const DEADLINE_MS_MAX = 600_000;
/** A background job that ends within this time is reported like a foreground command. */
const EARLY_END_MS = 200;

const schema = v.strictObject({
  command: v.exactOptional(v.pipe(v.string(), v.minLength(1, 'must not be empty'))),
  timeoutMs: v.exactOptional(wholeNumber(1, DEADLINE_MS_MAX, `Default ${DEADLINE_MS}.`)),
  background: v.exactOptional(v.pipe(v.boolean(), v.description('Start it as a job and go on.'))),
  jobAction: v.exactOptional(
    v.pipe(v.picklist(['list', 'show', 'kill']), v.description('In place of command.')),
  ),
  jobId: v.exactOptional(v.pipe(v.string(), v.description('For show and kill.'))),
  needs: v.exactOptional(
    v.pipe(
      v.picklist(['network', 'outside', 'repository']),
      v.description(
        'Widens the sandbox (repository: .git too), if allowed. At once for what can not work ' +
          'inside (npm install: network).',
      ),
    ),
  ),
});
type Input = v.InferOutput<typeof schema>;

// ---- Input in the form of other agents ----

const ALIASES: Aliases = {
  command: ['cmd', 'script'],
  timeoutMs: ['timeout_ms'],
  background: ['run_in_background', 'is_background', 'runInBackground', 'isBackground'],
  jobAction: ['job_action'],
  jobId: ['job_id', 'bash_id', 'shell_id'],
};

/** A value in our form, or why it can't be read. */
type Reading = { readonly value: Json } | { readonly why: string };

/** A word that a shell does not pass on to a program: `&&`, `|`, `2>&1`. */
const OPERATOR = /^(?:\d*[<>].*|&>.*|[|&;]+)$/;
const BASH = /^(?:(?:\/usr)?\/bin\/)?bash$/;

/** A list of words as a command; bash with its script is the script. */
const readCommand = (command: Json): Reading => {
  if (!Array.isArray(command)) return { value: command };
  const words: readonly string[] = command.filter((word) => typeof word === 'string');
  const [program = '', flag = '', script, ...others] = words;
  if (words.length === 0 || words.length < command.length)
    return { why: 'must be one text, or a list of words' };
  if (BASH.test(program) && /^-l?c$/.test(flag) && script !== undefined && others.length === 0)
    return { value: script };
  if (words.length === 1) return { value: program };
  const operator = words.find((word) => OPERATOR.test(word));
  return operator === undefined
    ? { value: words.map(quoteWord).join(' ') }
    : { why: `is a list with ${operator}, which can be read in two ways: give one text` };
};

/** A larger number can't be seconds, since no command may run so long. */
const SECONDS_MAX = DEADLINE_MS_MAX / 1_000;

/** `timeout` is in ms for some agents and in seconds for others: a large one has one meaning. */
const readTimeout = (timeout: Json, timeoutMs: Json | undefined): Reading => {
  const number = readNumber(timeout);
  if (typeof number !== 'number') return { why: 'is no number: give timeoutMs, in ms' };
  const inMs = number * 1_000;
  if (timeoutMs === number || timeoutMs === inMs) return { value: timeoutMs };
  if (isGiven(timeoutMs)) return { why: 'says something else than timeoutMs: give that alone' };
  if (number > SECONDS_MAX) return { value: number };
  return { why: `may be ms or seconds: give timeoutMs, in ms (${inMs} for ${number} seconds)` };
};

/** `1`, `"1"` and `"job 1"` are `job-1`. */
const readJobId = (jobId: Json): Json => {
  if (typeof jobId !== 'string' && typeof jobId !== 'number') return jobId;
  const [, number] = /^\s*(?:job[- ]?|#)?(\d{1,9})\s*$/i.exec(String(jobId)) ?? [];
  return number === undefined ? jobId : `job-${Number(number)}`;
};

/** The folder in which other agents start a command. Here it is always the workspace. */
const FOLDERS: readonly string[] = ['workdir', 'cwd', 'working_directory', 'directory', 'dir_path'];
const NEEDS_OUTSIDE = 'give needs: "outside"';
/** `same`: values that ask for nothing else than this tool does. */
const FOREIGN: ForeignFields = {
  with_escalated_permissions: { same: [false], instead: NEEDS_OUTSIDE },
  sandbox_permissions: { same: ['use_default'], instead: NEEDS_OUTSIDE },
  dangerouslyDisableSandbox: { same: [false], instead: NEEDS_OUTSIDE },
  require_user_approval: { same: 'any' },
  yield_time_ms: { same: 'any' },
  max_output_tokens: { same: 'any' },
  login: { same: 'any' },
  shell: { same: ['bash', '/bin/bash'], instead: 'commands are run by bash' },
  tty: { same: [false], instead: 'commands have no terminal' },
  restart: { same: [false], instead: 'each command has a shell of its own' },
  blocking: { same: [true], instead: 'give background: true' },
  env: { instead: 'begin the command with the variables: NAME=value command' },
  stdin: { instead: 'give it in the command, as a here-document' },
  chars: { instead: 'a job reads no input' },
  session_id: { instead: 'give jobAction and jobId' },
  task_id: { instead: 'give jobAction and jobId' },
  commands: { instead: 'join them in command, or give several calls in one reply' },
  timeout_seconds: { instead: 'give timeoutMs, in ms' },
  filter: { same: [''], instead: 'search the output that jobAction: "show" gives' },
};

const folderFaults = (input: JsonObject, workspace: string): readonly InputFault[] => {
  const isHere = (folder: Json | undefined): boolean =>
    typeof folder === 'string' && path.resolve(workspace, folder) === workspace;
  return FOLDERS.filter((name) => isGiven(input[name]) && !isHere(input[name])).map((field) => ({
    field,
    why: 'is not a field of this tool: begin the command with cd',
  }));
};

/** Which fields must stand together: those of a command, or an action on jobs and its job. */
const usageFaults = ({ command, jobAction, jobId }: JsonObject): readonly InputFault[] => {
  if (isGiven(jobAction)) {
    if (isGiven(command))
      return [{ field: 'jobAction', why: 'can not be given together with command' }];
    const needsJob = jobAction === 'show' || jobAction === 'kill';
    return needsJob && !isGiven(jobId) ? [{ field: 'jobId', why: 'is missing' }] : [];
  }
  if (command === '') return [{ field: 'command', why: 'must not be empty' }];
  if (isGiven(jobId))
    return [{ field: 'jobAction', why: 'is missing: "show" its output or "kill" the job' }];
  return isGiven(command) ? [] : [{ field: 'command', why: 'is missing' }];
};

const translate = (input: JsonObject, workspace: string): TranslatedInput => {
  const { command, timeout, jobId, ...rest } = withoutFields(input, FOLDERS);
  const faults = [...folderFaults(input, workspace)];
  const fields = new Map(Object.entries(rest));
  const add = (name: string, field: string, reading: Reading): void => {
    if ('value' in reading) fields.set(name, reading.value);
    else faults.push({ field, why: reading.why });
  };
  if (command !== undefined) add('command', 'command', readCommand(command));
  if (timeout !== undefined && isGiven(timeout))
    add('timeoutMs', 'timeout', readTimeout(timeout, rest.timeoutMs));
  if (jobId !== undefined) fields.set('jobId', readJobId(jobId));
  const translated: JsonObject = Object.fromEntries(fields);
  if (!faults.some(({ field }) => field === 'command')) faults.push(...usageFaults(translated));
  return { input: translated, faults };
};

// ---- What a call asks for ----

/** The use of the tool that an input requests. */
type BashRequest =
  | { readonly kind: 'command'; readonly command: string; readonly background: boolean }
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'kill'; readonly jobId: string }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/** Checks again what `usageFaults` does: `run` may get input that was never translated. */
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

// ---- Jobs ----

const showJob = (job: Job): string => `${job.jobId}: ${job.status()}: ${job.command}`;

/** Lists, shows or ends jobs. */
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
  return { status: 'ok', text, isLog: true, ...(droppedBytes === 0 ? {} : { droppedBytes }) };
};

// ---- A run ----

/**
 * Protected files that git tracks. Other programs run or obey such files (hooks, CI, settings), so
 * the sandbox makes them read-only: a checkout leaves the old ones in place and goes on.
 *
 * 1. Before a command is judged, `find` names those that git would write. They join the `paths` of
 *    the call, so the policy decides about them; once the call is allowed, it may write them.
 * 2. `beforeCommand` returns a function for the end of the command: it finds those that git could
 *    not write, and the result names them.
 * 3. While there are any, `beforeCommand` refuses commands that could commit the old ones.
 */
export type ProtectedGitFiles = {
  /**
   * Real paths of those that these moves of the working tree change, and of those that git could
   * not write before. If the moves are unknown, all.
   */
  find(workspace: string, moves: readonly TreeMove[] | 'unknown'): Promise<readonly string[]>;
  /**
   * Only for a command that may change the repository. `writable`: those that it may write. Returns
   * why it must not run, or the function for its end.
   */
  beforeCommand(workspace: string, writable: readonly string[]): Promise<string | FindUnwritten>;
};

/** Names the protected files that git could not write, in words for the result; null: none. */
type FindUnwritten = () => Promise<string | null>;

/** What all commands of a session share. */
type Shell = {
  /** Pawl's environment; its PATH finds the shell. */
  readonly environment: ProcessEnvironment;
  /** Gives the environment of one command. */
  readonly variables: CommandVariables;
  readonly sandbox: SessionSandbox;
  /** Finds files that git could not restore. */
  readonly findLosses: FindLosses;
  /** Finds changes that `git restore` of paths would discard. */
  readonly findDiscarded: FindDiscarded;
  /** Tells how git reads words: aliases, and names that may be branches or files. */
  readonly askGit: AskGit;
  readonly protectedGitFiles: ProtectedGitFiles;
  /** In the environment of all commands of this process, so that their processes can be found. */
  readonly sessionMark: string;
};

const runCommand = async (
  shell: Shell,
  { command, background }: Extract<BashRequest, { kind: 'command' }>,
  input: Input,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const git = await gitAccess(shell, command, input, context);
  const { workspace } = context;
  const { repository = 'read', writable = [] } = git;
  const allowed =
    repository === 'read' ? null : await shell.protectedGitFiles.beforeCommand(workspace, writable);
  if (typeof allowed === 'string') return { ...failed(allowed), ran: 'no' };
  const findUnwritten = allowed;
  if (background) return runInBackground(shell, { command, git }, findUnwritten, context);
  const deadlineMs = input.timeoutMs ?? DEADLINE_MS;
  const outcome = await runInForeground(shell, { command, git, deadlineMs }, context);
  return withUnwritten(outcome, await lookAfter(findUnwritten));
};

/** A look that fails costs no outcome: the next command looks again. */
const lookAfter = async (findUnwritten: FindUnwritten | null): Promise<string | null> => {
  const looked = await attempt(() => findUnwritten?.() ?? null);
  return looked.kind === 'done' ? looked.value : null;
};

const withUnwritten = (outcome: ToolOutcome, unwritten: string | null): ToolOutcome =>
  unwritten === null ? outcome : { ...outcome, text: `${outcome.text}\n${unwritten}` };

/** `git`: what the command may do to git folders. `jobId`: null for a foreground command. */
type RunOptions = Pick<CommandRequest, 'command' | 'deadlineMs'> &
  Required<Pick<CommandRequest, 'git'>> & { readonly jobId: string | null };

const start = (
  shell: Shell,
  { command, deadlineMs, git, jobId }: RunOptions,
  context: ToolContext,
): Command => {
  const { workspace, sandbox: level, widened } = context;
  // A rule lets it run without the sandbox, and the user is not asked. So git runs no hooks: an
  // earlier command in the sandbox may have put them there.
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
    fresh: widened !== undefined, // it gets an empty home folder and /tmp
    command,
    git,
    workspace,
    deadlineMs,
    progress: (text) => (jobId === null ? context.progress(text) : undefined),
    record: { call: callKey(context), marker, job: jobId === null ? null : { jobId, command } },
  });
};

/** What has run and where, for the hints in its result. */
const commandPlace = (
  shell: Shell,
  command: string,
  { sandbox: level, workspace, widened, unattended }: ToolContext,
): RunPlace => ({
  command,
  level,
  workspace,
  isWidened: widened !== undefined,
  unattended: unattended === true,
  home: shell.environment.HOME ?? '',
});

/** Starts a job. Its result is the command's, if that ends at once. */
const runInBackground = async (
  shell: Shell,
  { command: text, git }: Pick<RunOptions, 'command' | 'git'>,
  findUnwritten: FindUnwritten | null, // null: the command can't change the repository
  context: ToolContext,
): Promise<ToolOutcome> => {
  if (context.signal.aborted)
    return { status: 'cancelled', ran: 'no', text: 'Cancelled before the command started.' };
  const place = commandPlace(shell, text, context);
  let early: Promise<ToolOutcome | null> = Promise.resolve(null);
  let unwritten: Promise<string | null> = Promise.resolve(null);
  // `add` calls this at once, so both are set below
  const { jobId } = context.jobs.add((id) => {
    const command = start(shell, { command: text, git, deadlineMs: null, jobId: id }, context);
    const job = createJob(id, command, place);
    early = command.ended.then((end) => commandOutcome(command, end, place, context.signal));
    unwritten = command.ended.then(() => lookAfter(findUnwritten));
    return job;
  });
  const outcome = await Promise.race([early, sleep(EARLY_END_MS, null)]);
  // after a later end, `beforeCommand` refuses the next command and names the files that are left
  return outcome === null ? jobStarted(jobId) : withUnwritten(outcome, await unwritten);
};

const runInForeground = async (
  shell: Shell,
  options: Omit<RunOptions, 'jobId'>,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const command = start(shell, { ...options, jobId: null }, context);
  const end = await waitForEnd(command, context);
  const place = commandPlace(shell, options.command, context);
  return commandOutcome(command, end, place, context.signal);
};

// ---- Facts for the policy ----

/**
 * Facts of a call without its command. Reading or ending a job affects nothing outside. `shape` is
 * the key of an answer that is kept for equal calls.
 */
const requestFacts = (
  request: Exclude<BashRequest, { kind: 'invalid' }>,
  needs: Needs | undefined,
): Pick<CallFacts, 'argv' | 'shape' | 'needs'> => {
  if (request.kind !== 'command') return { argv: [], shape: requestTitle(request) };
  const argv = [request.command];
  return needs === undefined
    ? { argv, shape: request.command }
    : { argv, shape: `${request.command}${needsMark(needs)}`, needs };
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

/** Finds the programs that commands name. */
const loadFinder = async ({ environment }: Shell, workspace: string): Promise<ShellLookup> => {
  const { commandFinder } = await import('../policy/shell/shell-facts.js');
  return commandFinder(environment.PATH ?? '', workspace);
};

/** What a command would run that nobody has judged: one that the user types. */
const readFacts = async (command: string, workspace: string, shell: Shell): Promise<ShellFacts> => {
  const { shellFacts } = await import('../policy/shell/shell-facts.js');
  const find = await loadFinder(shell, workspace);
  return shellFacts(command, find, shell.environment.SHELL ?? null);
};

/**
 * Why a part of a message in the command, as of `git commit -m`, would run and be lost: bash runs
 * backticks and `$(...)` in it. Null if none would.
 */
const findMessageFault = async (
  command: string,
  workspace: string,
  shell: Shell,
): Promise<string | null> => {
  if (!/`|\$\(/.test(command)) return null;
  const { messageFault } = await import('../policy/shell/message-substitutions.js');
  return messageFault(command, await loadFinder(shell, workspace));
};

/** What the command would run and lose. */
const lookUp = async (
  command: string,
  needs: Needs | undefined,
  workspace: string,
  shell: Shell,
): Promise<CommandFacts> => {
  const { commandFacts } = await import('../policy/shell/command-facts.js');
  const { environment, findLosses, findDiscarded, askGit, protectedGitFiles } = shell;
  const lookups = { findLosses, findDiscarded, askGit, protectedGitFiles };
  const find = await loadFinder(shell, workspace);
  const userShell = environment.SHELL ?? null;
  return commandFacts(command, needs, workspace, { ...lookups, find, userShell });
};

/**
 * Where a call changes no file. A call that asks for more than the sandbox gives is taken by its
 * word: it is to have an effect.
 */
const whenReading = async (
  kind: Exclude<BashRequest['kind'], 'invalid'>,
  { shell = NO_COMMAND, needs, expects }: Pick<CallFacts, 'shell' | 'needs' | 'expects'>,
  workspace: string,
): Promise<'always' | 'fenced' | null> => {
  if (kind !== 'command') return kind === 'kill' ? null : 'always';
  if (needs !== undefined || expects !== undefined) return null;
  const { onlyReads } = await import('../policy/command-options.js');
  return onlyReads(shell, workspace) ? 'fenced' : null;
};

/**
 * What the words of a command say about git folders: how far it may change them, and whether it
 * deletes history on purpose (others are put back). Only a sandbox has use for it.
 */
const gitAccess = async (
  shell: Shell,
  command: string,
  { needs }: Input,
  { sandbox, workspace, paths, shell: judged }: ToolContext,
): Promise<RunOptions['git']> => {
  if (sandbox === 'off') return {};
  const { repositoryAccess, historyPurpose } = await import('../policy/repository-access.js');
  const facts = judged ?? (await readFacts(command, workspace, shell));
  const repository = repositoryAccess(facts, needs);
  const [, ...writable] = paths; // as `CommandFacts` says: the protected files behind the workspace
  return {
    repository,
    ...(repository === 'read' ? {} : { purpose: historyPurpose(facts) }),
    writable,
  };
};

// ---- The tool ----

export const createBashTool = (shell: Shell): Tool =>
  defineTool({
    name: 'bash',
    description:
      'Runs a bash command in the workspace; its output is kept also when it fails. To look ' +
      'into files, search and read are cheaper. What it leaves in the background is ended; for ' +
      'servers and watchers use background: true, then jobAction. Unless switched off, ' +
      'commands run in a sandbox: the workspace can be written, the rest only read, no ' +
      "network, no secrets; /tmp, HOME and localhost are the session's own, others with " +
      'network or outside.',
    schema,
    aliases: ALIASES,
    foreign: FOREIGN,
    translate,
    // opaque: after a crash no file shows whether the command took effect
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: DEADLINE_MS },
    async judge(input, workspace) {
      const request = parseRequest(input);
      if (request.kind === 'invalid') return request;
      const isCommand = request.kind === 'command';
      const why = isCommand ? await findMessageFault(request.command, workspace, shell) : null;
      if (why !== null) return { kind: 'invalid', field: 'command', why };
      const facts = {
        hosts: [],
        ...requestFacts(request, input.needs),
        ...(isCommand
          ? await lookUp(request.command, input.needs, workspace, shell)
          : { paths: [workspace], shell: NO_COMMAND }),
        ...(isCommand && request.background ? ({ background: 'yes' } as const) : {}),
      };
      const reads = await whenReading(request.kind, facts, workspace);
      return {
        kind: 'ok',
        facts,
        ...(reads === null ? {} : { reads }),
        ...(input.timeoutMs === undefined ? {} : { deadlineMs: input.timeoutMs }),
      };
    },
    title: (input) => requestTitle(parseRequest(input)),
    announce: (workspace) => shell.sandbox.announce(workspace),
    async findInterrupted(input, context) {
      const request = parseRequest(input);
      // showing and ending jobs can be repeated
      if (request.kind !== 'command') return { kind: 'neverBegan' };
      const { findCommand } = await import('./bash-recovery.js');
      return findCommand(shell.sandbox, commandPlace(shell, request.command, context), context);
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
