/**
 * `pawl mcp serve`: Pawl as a tool of other agents, over stdin and stdout, or over HTTP on
 * loopback.
 *
 * From top to bottom: the sessions of this process; both commands; the tools `prompt`, `sessions`
 * and `show`; and the HTTP server.
 */

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallToolResult,
  createMcpHandler,
  fromJsonSchema,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { isIgnored, type State } from '@pawl/agent/machine/state';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/check-host-and-origin';
import { listenOn, readBytes, waitForDrain } from '@pawl/agent/platform/http';
import { isSameSecret } from '@pawl/agent/platform/untrusted-input';
import type { Preset } from '@pawl/agent/policy/presets';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import type { Stepped, Watcher } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import { reasonText } from '@pawl/agent/session/session';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { reserveStdout, writeError } from '@pawl/terminal/write';
import { exitCodes, listenToSignals, Stop } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { openFromFlags } from '../sessions/open-session.js';
import { findSession, foldStored, userSessions } from '../sessions/stored-sessions.js';
import { type RunFlags, usageStop } from '../settings/flags.js';

/** Sessions have this long to end after the other agent has gone. */
const HARD_END_MS = 2_000;

/**
 * `running`: the sessions that are open. Each prompt names its session, folder and preset, so the
 * flags for them don't count.
 */
const createSessionsHost = (allFlags: RunFlags, running: Set<Session>): SessionsHost => {
  const { resume: _, continue: last, workspace: folder, preset: flagged, ...flags } = allFlags;
  return {
    version: packageVersion(),
    list: userSessions,
    readState: async (sessionId) =>
      (await foldStored(await findSession(sessionId), undefined)).state, // undefined: to its end
    async open({ workspace, resume, preset, watcher }) {
      if (workspace !== null && !workspace.startsWith('/'))
        throw usageStop(`The workspace ${workspace} is not an absolute path.`);
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
      const { session } = await openFromFlags(sessionFlags, 'headless', more);
      running.add(session);
      const forget = (): void => void running.delete(session);
      session.ended.then(forget, forget);
      return session;
    },
  };
};

const closeAll = async (running: ReadonlySet<Session>): Promise<void> => {
  const closing = [...running].map((session) => session.close());
  const closed = new AbortController();
  const limit = pause(HARD_END_MS, undefined, { signal: closed.signal });
  await Promise.race([Promise.allSettled(closing), limit]);
  closed.abort(); // the timer would hold the process
};

/** `pawl mcp serve`: over stdin and stdout, until the other agent has gone. */
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
  const running = new Set<Session>();
  const host = createSessionsHost(flags, running);
  const ended = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    output.once('error', () => resolve()); // the reader is gone
  });
  const handle = serveStdio(() => createSessionsServer(host), {
    transport: new StdioServerTransport(process.stdin, output),
  });
  await ended;
  await handle.close();
  await closeAll(running);
  return exitCodes.done;
};

const PORT_MAX = 65_535;
/** A shorter token could be guessed. */
const TOKEN_LENGTH_MIN = 16;

const readPort = (value: string | true): number => {
  if (value === true) return 0;
  const port = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  if (port >= 1 && port <= PORT_MAX) return port;
  throw usageStop(`--http needs a port from 1 to ${PORT_MAX}, or none for any free one.`);
};

/** The token of PAWL_MCP_TOKEN, or a new one. */
const readToken = ({ PAWL_MCP_TOKEN: token = '' }: NodeJS.ProcessEnv): string => {
  if (token === '') return randomBytes(24).toString('base64url');
  if (token.length >= TOKEN_LENGTH_MIN && /^[\x21-\x7e]+$/.test(token)) return token;
  throw usageStop(`PAWL_MCP_TOKEN needs at least ${TOKEN_LENGTH_MIN} characters, without spaces.`);
};

/** `pawl mcp serve --http [PORT]`: until a signal. */
export const serveMcpOverHttp = async (flags: RunFlags, value: string | true): Promise<number> => {
  const [port, token] = [readPort(value), readToken(process.env)];
  const running = new Set<Session>();
  const host = createSessionsHost(flags, running);
  const opened = await attempt(() =>
    openLoopbackServer({ port, token, create: () => createSessionsServer(host) }),
  );
  if (opened.kind === 'fault')
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      `Pawl can't listen on ${port === 0 ? 'any port' : `port ${port}`}: ${opened.fault.message}`,
    );
  const { value: server } = opened;
  writeError(
    safe`Pawl is an MCP server at ${makeSafe(server.url)}. Every request needs the header\n`,
  );
  writeError(safe`Authorization: Bearer ${makeSafe(token)}\n`);
  const exit = await new Promise<number>((resolve) => {
    listenToSignals({
      interrupt: () => resolve(exitCodes.done),
      interruptAgain: () => process.exit(exitCodes.interrupted),
      terminate: () => resolve(exitCodes.terminated),
    });
  });
  await Promise.all([server.close(), closeAll(running)]);
  return exit;
};

/**
 * What the tools `prompt`, `sessions` and `show` need of this process.
 *
 * 1. Each prompt opens its session and closes it again. A session is a handle in the arguments,
 *    never state of a connection.
 * 2. Nobody can be asked here. Calls that need an approval are denied, and the model goes on
 *    without.
 */
type SessionsHost = {
  readonly version: string;
  /**
   * Rejects with the reason if the session can't be opened. `workspace` counts for a new session.
   */
  open(request: WantedSession): Promise<Session>;
  list(): Promise<readonly SessionInfo[]>;
  /** Rejects if there is no such session. */
  readState(sessionId: string): Promise<State>;
};

type WantedSession = {
  readonly workspace: string | null;
  readonly resume: string | null;
  /** null: a resumed session keeps its own. */
  readonly preset: Preset | null;
  readonly watcher: Watcher;
};

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
  host: SessionsHost,
  { prompt, preset, ...place }: PromptInput,
  context: ServerContext,
): Promise<CallToolResult> => {
  const [workspace, sessionId] = [place.workspace ?? null, place.sessionId ?? null];
  if ((workspace === null) === (sessionId === null))
    return say('Give either workspace, for a new session, or sessionId, to continue one.', true);
  const session = await host.open({
    workspace,
    resume: sessionId,
    watcher: progressWatcher(context),
    preset: preset ?? (sessionId === null ? 'plan' : null),
  });
  try {
    const {
      ok,
      text: words,
      reason,
      usage,
    } = await session.prompt(prompt, { signal: context.mcpReq.signal });
    const about = {
      sessionId: session.id,
      ok,
      text: words,
      reason: reason.kind,
      costUsd: usage.costUsd,
    };
    const shown = ok
      ? words
      : `The turn of session ${session.id} ended without an answer: ${reasonText(reason)}`;
    return { ...say(shown, !ok), structuredContent: about };
  } finally {
    await session.close();
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

/** The server of one connection or request. */
const createSessionsServer = (host: SessionsHost): McpServer => {
  const server = new McpServer({ name: 'pawl', version: host.version });
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
    answer(() => runPrompt(host, input, context)),
  );
  server.registerTool(
    'sessions',
    {
      description: 'Lists the newest sessions: id, folder, first words.',
      inputSchema: toolSchema<object>({}, []),
    },
    () => answer(async () => say(listText(await host.list()) || 'There are no sessions.')),
  );
  const showInput = toolSchema<{ readonly sessionId: string }>(
    { sessionId: textSchema('The session to show.') },
    ['sessionId'],
  );
  server.registerTool(
    'show',
    { description: 'Shows the conversation of a session.', inputSchema: showInput },
    ({ sessionId }) => answer(async () => say(showText(await host.readState(sessionId)))),
  );
  return server;
};

/**
 * An MCP server over HTTP for programs of this machine.
 *
 * 1. It listens on 127.0.0.1 only. A request needs the token.
 * 2. Host and Origin must be ours, so that no web page reaches it under a foreign name or from a
 *    browser.
 * 3. A caller that goes away cancels its request.
 */
type LoopbackServer = {
  /** `http://127.0.0.1:PORT/mcp` */
  readonly url: string;
  close(): Promise<void>;
};

type LoopbackOptions = {
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  /** Makes the server of one request. */
  readonly create: () => McpServer;
};

const MCP_PATH = '/mcp';
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const CONNECTIONS_MAX = 64;

type Refusal = { readonly status: number; readonly why: string };

/** Why a request is not answered; null if it is. */
const findRefusal = (
  { url, headers }: IncomingMessage,
  port: number,
  token: string,
): Refusal | null => {
  const foreign = foreignHeader(headers, loopbackHosts(port));
  if (foreign === 'host') return { status: 403, why: 'the host is not this one' };
  if (foreign === 'origin') return { status: 403, why: 'requests of web pages are not answered' };
  if (!isSameSecret(headers.authorization, `Bearer ${token}`))
    return { status: 401, why: 'the token is missing or wrong' };
  return url === MCP_PATH ? null : { status: 404, why: `there is only ${MCP_PATH}` };
};

const refuse = (outgoing: ServerResponse, { status, why }: Refusal): void => {
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    connection: 'close',
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
  });
  outgoing.end(JSON.stringify({ error: why }));
};

const send = async (response: Response, outgoing: ServerResponse): Promise<void> => {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  for await (const piece of response.body ?? []) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(piece)) await waitForDrain(outgoing);
  }
  outgoing.end();
};

export const openLoopbackServer = async ({
  port,
  token,
  create,
}: LoopbackOptions): Promise<LoopbackServer> => {
  const handler = createMcpHandler(create, { maxRequestBodySize: BODY_BYTES_MAX });
  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    // `boundPort` is known once the server listens (below), before any request.
    const refusal = findRefusal(incoming, boundPort, token);
    if (refusal !== null) return refuse(outgoing, refusal);
    const body = await readBytes(incoming, BODY_BYTES_MAX);
    if (body === null) return refuse(outgoing, { status: 413, why: 'the request is too large' });
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    const { method = 'GET' } = incoming;
    const headers = Object.entries(incoming.headers).map(
      ([name, value]) => [name, String(value)] as const,
    );
    // throws for what no request may be, such as a GET with a body
    const request = attemptNow(
      () =>
        new Request(`http://127.0.0.1:${boundPort}${MCP_PATH}`, {
          method,
          headers: Object.fromEntries(headers),
          signal: gone.signal,
          ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
        }),
    );
    if (request.kind === 'fault')
      return refuse(outgoing, { status: 400, why: 'the request can not be read' });
    await send(await handler.fetch(request.value), outgoing);
  };
  const server = createServer((incoming, outgoing) => {
    attempt(() => respond(incoming, outgoing)).then(({ kind }) => {
      if (kind === 'done') return;
      // The caller is gone, or its answer failed: only it loses something.
      if (outgoing.headersSent) outgoing.destroy();
      else refuse(outgoing, { status: 500, why: 'the request failed' });
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
  const boundPort = await listenOn(server, { host: '127.0.0.1', port });
  return {
    url: `http://127.0.0.1:${boundPort}${MCP_PATH}`,
    async close() {
      server.close();
      await handler.close();
      server.closeAllConnections();
    },
  };
};
