/**
 * `pawl mcp serve`: Pawl as a tool of other agents, over stdin and stdout.
 *
 * From top to bottom: the sessions of this process; the command; and the tools `prompt`, `sessions`
 * and `show`.
 */

import { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallToolResult,
  fromJsonSchema,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { isIgnored, type State } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Preset } from '@pawl/agent/policy/presets';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import type { Stepped, Watcher } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import { reasonText } from '@pawl/agent/session/turn';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { reserveStdout, writeError } from '@pawl/terminal/write';
import { type ExitCode, exitCodes, listenToSignals } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { openFromFlags } from '../sessions/open-session.js';
import { findSession, foldStored, userSessions } from '../sessions/stored-sessions.js';
import { type RunFlags, usageStop } from '../settings/flags.js';

/** Sessions have this long to end after the other agent has gone. */
const HARD_END_MS = 2_000;

/** The sessions that are open or being opened. */
type Running = Set<Promise<Session>>;

/**
 * Opens the session of a prompt, or rejects with the reason. Each prompt names its session, folder
 * and preset, so the flags for them don't count. `running` gets the session.
 */
const openSession = async (
  allFlags: RunFlags,
  running: Running,
  { workspace, resume, preset, watcher }: WantedSession,
): Promise<Session> => {
  if (workspace !== null && !workspace.startsWith('/'))
    throw usageStop(`The workspace ${workspace} is not an absolute path.`);
  const { resume: _, continue: last, workspace: folder, preset: flagged, ...flags } = allFlags;
  const sessionFlags: RunFlags = {
    ...flags,
    onAsk: 'deny',
    ...(workspace === null ? {} : { workspace }),
    ...(preset === null ? {} : { preset }),
  };
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  const more = {
    watcher,
    warn,
    forAgent: true, // it must not get the preset `full`
    ...(resume === null ? {} : { resume: await findSession(resume) }),
  };
  const opening = openFromFlags(sessionFlags, 'headless', more).then((one) => one.session);
  running.add(opening);
  const forget = (): void => void running.delete(opening);
  opening.then((session) => session.ended).then(forget, forget);
  return opening;
};

const closeAll = async (running: Running): Promise<void> => {
  const closing = [...running].map(async (opening) => (await opening).close());
  const closed = new AbortController();
  const limit = pause(HARD_END_MS, undefined, { signal: closed.signal });
  await Promise.race([Promise.allSettled(closing), limit]);
  closed.abort(); // the timer would hold the process
};

/** `pawl mcp serve`: over stdin and stdout, until the other agent has gone, or a signal. */
export const serveMcp = async (flags: RunFlags): Promise<number> => {
  if (process.stdin.isTTY)
    writeError(
      safe`pawl mcp serve is started by another agent and speaks with it over stdin and stdout: docs/extend/mcp.md. Ctrl-D ends it.\n`,
    );
  // From now on whatever else is printed goes to stderr.
  const writer = (await reserveStdout()).getWriter();
  const output = new Writable({
    write: (bytes: Buffer, _encoding, done) => void writer.write(bytes).then(() => done(), done),
  });
  const running: Running = new Set();
  const open: OpenWanted = (wanted) => openSession(flags, running, wanted);
  let exit: ExitCode = exitCodes.done;
  let stopListening = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    const end = (code: ExitCode): void => {
      exit = code;
      resolve();
    };
    stopListening = listenToSignals({
      interrupt: () => end(exitCodes.interrupted),
      interruptAgain: () => process.exit(exitCodes.interrupted),
      terminate: () => end(exitCodes.terminated),
    });
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    output.once('error', () => resolve()); // the reader is gone
  });
  const handle = serveStdio(() => createSessionsServer(open), {
    transport: new StdioServerTransport(process.stdin, output),
  });
  await ended;
  await handle.close();
  await closeAll(running);
  stopListening();
  return exit;
};

/**
 * What a prompt opens, and closes again: a session is a handle in the arguments, never state of a
 * connection. Nobody can be asked here. Calls that need an approval are denied, and the model goes
 * on without.
 */
type WantedSession = {
  /** Counts for a new session. */
  readonly workspace: string | null;
  readonly resume: string | null;
  /** null: a resumed session keeps its own. */
  readonly preset: Preset | null;
  readonly watcher: Watcher;
};

type OpenWanted = (wanted: WantedSession) => Promise<Session>;

type PromptInput = {
  readonly prompt: string;
  readonly workspace?: string;
  readonly sessionId?: string;
  readonly preset?: Preset;
};

const LISTED_MAX = 50;
const textSchema = (description: string): object => ({ type: 'string', minLength: 1, description });
const toolSchema = <T>(properties: Readonly<Record<string, object>>, required: readonly string[]) =>
  fromJsonSchema<T>({
    type: 'object',
    properties,
    required: [...required],
    additionalProperties: false,
  });

const say = (words: string, isError = false): CallToolResult => ({
  content: [{ type: 'text', text: words }],
  ...(isError ? { isError } : {}),
});

/** The result of the work; an error becomes a failed result. */
const answer = async (work: () => Promise<CallToolResult>): Promise<CallToolResult> => {
  const done = await attempt(work);
  return done.kind === 'done' ? done.value : say(done.fault.message, true);
};

/** Tells the caller of each model reply and each tool, if it asked for progress. */
const progressWatcher = (context: ServerContext): Watcher => {
  const request = context.mcpReq;
  const token = request._meta?.progressToken;
  let progress = 0;
  const tell = (message: string): void => {
    if (token === undefined) return;
    progress += 1;
    const params = { progressToken: token, progress, message };
    // A caller that is gone misses nothing.
    request.notify({ method: 'notifications/progress', params }).catch(() => undefined);
  };
  return (stepped: Stepped) => {
    const { event } = stepped;
    if (isIgnored(stepped)) return;
    if (event.type === 'LlmCompleted') tell('the model has replied');
    if (event.type === 'ToolCompleted') tell(`a tool has ended: ${event.outcome.status}`);
  };
};

const runPrompt = async (
  open: OpenWanted,
  { prompt, preset, ...place }: PromptInput,
  context: ServerContext,
): Promise<CallToolResult> => {
  const [workspace, sessionId] = [place.workspace ?? null, place.sessionId ?? null];
  if ((workspace === null) === (sessionId === null))
    return say('Give either workspace, for a new session, or sessionId, to continue one.', true);
  const session = await open({
    workspace,
    resume: sessionId,
    watcher: progressWatcher(context),
    preset: preset ?? (sessionId === null ? 'plan' : null),
  });
  try {
    const done = await session.prompt(prompt, { signal: context.mcpReq.signal });
    const { ok, text, reason, usage } = done;
    const { id } = session;
    const bound = usage.atLeast ? { costAtLeast: true } : {};
    const about = {
      sessionId: id,
      ok,
      text,
      reason: reason.kind,
      costUsd: usage.costUsd,
      ...bound,
    };
    // many callers show their model the texts alone
    const said = ok
      ? { content: [...say(text).content, ...say(`[sessionId: ${id}]`).content] }
      : say(`The turn of session ${id} ended without an answer: ${reasonText(reason)}`, true);
    return { ...said, structuredContent: about };
  } finally {
    // the answer was paid for: it is handed on
    const closed = await attempt(() => session.close());
    if (closed.kind === 'fault') writeError(safe`${makeSafe(closed.fault.message)}\n`);
  }
};

const partText = (part: Message['parts'][number]): readonly string[] => {
  if (part.type === 'text') return [part.text];
  if (part.type === 'call') return [`[calls ${part.tool}]`];
  return part.type === 'result' ? [`[${part.tool}: ${part.text.length} characters]`] : [];
};

const showText = (state: State): string =>
  messagesOf(state.session.conversation)
    .map(({ role, parts }) => `${role}: ${parts.flatMap(partText).join('\n')}`)
    .join('\n\n');

const listText = (all: readonly SessionInfo[]): string =>
  all
    .slice(0, LISTED_MAX)
    .map(({ sessionId, workspace, title }) => `${sessionId}  ${workspace}  ${title}`)
    .join('\n');

/** The server of one connection. */
const createSessionsServer = (open: OpenWanted): McpServer => {
  const server = new McpServer({ name: 'pawl', version: packageVersion() });
  const promptInput = toolSchema<PromptInput>(
    {
      prompt: textSchema('What the agent is to do.'),
      workspace: textSchema('Absolute path of the folder to work in, for a new session.'),
      sessionId: textSchema('The session to continue.'),
      preset: {
        type: 'string',
        enum: ['plan', 'careful', 'auto', 'ci'],
        description:
          'What it may do: plan (default) only reads; auto and ci change files and run ' +
          'sandboxed commands.',
      },
    },
    ['prompt'],
  );
  const description =
    'Gives a task to Pawl, a coding agent, and waits for its answer. The answer names the ' +
    'session, which can be continued.';
  server.registerTool('prompt', { description, inputSchema: promptInput }, (input, context) =>
    answer(() => runPrompt(open, input, context)),
  );
  server.registerTool(
    'sessions',
    {
      description: 'Lists the newest sessions: id, folder, first words.',
      inputSchema: toolSchema<object>({}, []),
    },
    () => answer(async () => say(listText(await userSessions()) || 'There are no sessions.')),
  );
  const showInput = toolSchema<{ readonly sessionId: string }>(
    { sessionId: textSchema('The session to show.') },
    ['sessionId'],
  );
  server.registerTool(
    'show',
    { description: 'Shows the conversation of a session.', inputSchema: showInput },
    ({ sessionId }) =>
      answer(async () => {
        const folded = await foldStored(await findSession(sessionId), undefined); // to its end
        return say(showText(folded.state));
      }),
  );
  return server;
};
