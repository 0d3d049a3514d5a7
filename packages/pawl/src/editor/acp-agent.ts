/**
 * The agent's side of the Agent Client Protocol (ACP), version 1. The client is an editor.
 *
 * From top to bottom: the requests of one connection, and `serveClient`; the sessions that are open
 * for it; the errors that it gets; the MCP servers that it names; and updates that must not precede
 * an answer.
 */

import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  type AgentApp,
  type AgentContext,
  type AnyMessage,
  agent,
  type InitializeRequest,
  type InitializeResponse,
  type JsonRpcId,
  type SessionInfo as ListedSession,
  type ListSessionsResponse,
  type McpServer,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type Stream,
} from '@agentclientprotocol/sdk';
import {
  type McpServer as ConfiguredServer,
  type ReadServers,
  readServers,
} from '@pawl/agent/extensions/mcp/server-config';
import { attempt } from '@pawl/agent/platform/attempt';
import { pathErrorText } from '@pawl/agent/platform/text';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { workspaceRefusal } from '@pawl/agent/session/create-agent';
import { errorEnding, exitCodes } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import type { RunFlags } from '../settings/flags.js';
import { AcpSession, BadOption, TurnFailed } from './acp-session.js';
import { BadPrompt } from './prompt-blocks.js';
import type { Client, ClientFeatures } from './session-updates.js';

const initializeResponse = (): InitializeResponse => ({
  protocolVersion: PROTOCOL_VERSION,
  agentInfo: { name: 'pawl', title: 'Pawl', version: packageVersion() },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    mcpCapabilities: { http: true, sse: false },
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
  },
  authMethods: [],
});

const readFeatures = ({ clientCapabilities }: InitializeRequest): ClientFeatures => {
  const { session, elicitation } = clientCapabilities ?? {};
  return {
    notices: session?.notices !== undefined && session.notices !== null,
    compaction: session?.compaction !== undefined && session.compaction !== null,
    forms: elicitation?.form !== undefined && elicitation.form !== null,
  };
};

type OpeningRequest = {
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[] | undefined;
  readonly additionalDirectories?: readonly string[] | undefined;
};

/** Opens a session, and says which wishes of the client are not fulfilled. */
const openAndWarn = async (
  { cwd, mcpServers = [], additionalDirectories = [] }: OpeningRequest,
  open: (wanted: WantedSession) => Promise<AcpSession>,
): Promise<AcpSession> => {
  const { servers, faults } = readEditorServers(mcpServers);
  const session = await open({ cwd, servers });
  for (const { text } of faults) session.tell(`An MCP server of the editor is not used: ${text}`);
  if (additionalDirectories.length > 0)
    session.tell(
      `Pawl works in one folder, ${session.workspace}. Not added: ` +
        `${additionalDirectories.join(', ')}.`,
    );
  return session;
};

export type AcpConnection = {
  /** Resolves when the client has gone, with the reason. */
  readonly closed: Promise<unknown>;
  /** Resolves when the client has gone and all sessions are closed. */
  readonly ended: Promise<void>;
  /** Ends the connection, as if the client had gone. */
  close(): void;
};

/** State that the handlers of one connection share. */
type ConnectionState = {
  readonly sessions: AcpSessions;
  features: ClientFeatures;
  /** Calls `then` after the answer to this request was written. */
  afterAnswer(id: JsonRpcId, then: () => void): void;
};

/** The answer for an opened session; what the session has to say is sent after it. */
const answerThenAnnounce = (
  connected: ConnectionState,
  session: AcpSession,
  requestId: JsonRpcId,
): AcpSession['settings'] => {
  connected.afterAnswer(requestId, () => session.announce());
  return session.settings;
};

const addOpenings = (app: AgentApp, connected: ConnectionState): AgentApp => {
  const { sessions } = connected;
  const toClient = ({ client }: { readonly client: AgentContext }): Client => ({
    context: client,
    features: connected.features,
  });
  return app
    .onRequest('initialize', ({ params }) => {
      connected.features = readFeatures(params);
      return initializeResponse();
    })
    .onRequest(
      'session/new',
      handler(async (request) => {
        const session = await openAndWarn(request.params, (opening) =>
          sessions.create(toClient(request), opening),
        );
        return {
          sessionId: session.id,
          ...answerThenAnnounce(connected, session, request.requestId),
        };
      }),
    )
    .onRequest(
      'session/load',
      handler(async (request) => {
        const { sessionId } = request.params;
        const session = await openAndWarn(request.params, (opening) =>
          sessions.find(toClient(request), { ...opening, sessionId, shows: 'conversation' }),
        );
        await session.replay();
        return answerThenAnnounce(connected, session, request.requestId);
      }),
    )
    .onRequest(
      'session/resume',
      handler(async (request) => {
        const { sessionId } = request.params;
        const session = await openAndWarn(request.params, (opening) =>
          sessions.find(toClient(request), { ...opening, sessionId, shows: 'nothing' }),
        );
        return answerThenAnnounce(connected, session, request.requestId);
      }),
    );
};

const addSessionRequests = (app: AgentApp, { sessions }: ConnectionState): AgentApp =>
  app
    .onRequest(
      'session/list',
      handler(({ params }) => sessions.list(params.cwd ?? null, params.cursor ?? null)),
    )
    .onRequest(
      'session/close',
      handler(async ({ params }) => {
        await sessions.close(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      'session/delete',
      handler(async ({ params }) => {
        await sessions.delete(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      'session/set_mode',
      handler(async ({ params }) => {
        await sessions.get(params.sessionId).changePreset(params.modeId);
        return {};
      }),
    )
    .onRequest(
      'session/set_config_option',
      handler(async ({ params }) => {
        const session = sessions.get(params.sessionId);
        await session.changeOption(params.configId, String(params.value));
        return { configOptions: session.settings.configOptions ?? [] };
      }),
    )
    .onRequest(
      'session/prompt',
      handler(({ params, signal }) => sessions.get(params.sessionId).prompt(params.prompt, signal)),
    )
    .onNotification('session/cancel', ({ params }) => sessions.cancel(params.sessionId));

type AcpStreams = {
  readonly output: WritableStream<Uint8Array>;
  readonly input: ReadableStream<Uint8Array>;
};

/** Serves one client until it goes. `flags`: of its sessions. */
export const serveClient = (flags: RunFlags, { output, input }: AcpStreams): AcpConnection => {
  const sessions = new AcpSessions(flags);
  const { stream, afterAnswer } = hookAnswers(ndJsonStream(output, input));
  const features = { notices: false, compaction: false, forms: false };
  const connected: ConnectionState = { sessions, features, afterAnswer };
  const app = addSessionRequests(addOpenings(agent({ name: 'pawl' }), connected), connected);
  const connection = app.connect(stream);
  const closed = connection.closed.then((): unknown => connection.signal.reason);
  return { closed, ended: closed.then(() => sessions.closeAll()), close: () => connection.close() };
};

// The sessions that are open for one client.

/** Parameters that can't be used. The message is for the user. */
class BadParameters extends Error {}

/** No session has this id. */
class UnknownSession extends Error {
  readonly sessionId: string;

  constructor(sessionId: string) {
    super(`There is no session ${sessionId}.`);
    this.sessionId = sessionId;
  }
}

const PAGE_SESSIONS = 50;

/** Folder and MCP servers, as the client names them. */
type WantedSession = { readonly cwd: string; readonly servers: readonly ConfiguredServer[] };
/** The part of a reopened session that the client wants to see. */
type ShownPart = 'conversation' | 'nothing';
type StoredSession = WantedSession & {
  readonly sessionId: string;
  readonly workspace: string;
  readonly shows: ShownPart;
};

/** The real path of a workspace. Throws BadParameters if it is not an absolute path of a folder. */
const realWorkspace = async (folder: string): Promise<string> => {
  if (!path.isAbsolute(folder))
    throw new BadParameters(`cwd must be an absolute path, not '${folder}'.`);
  const place = await attempt(async () => ({
    real: await realpath(folder),
    status: await stat(folder),
  }));
  if (place.kind === 'fault')
    throw new BadParameters(
      `cwd can't be opened: ${pathErrorText(place.fault) ?? place.fault.message}.`,
    );
  if (!place.value.status.isDirectory()) throw new BadParameters(`cwd must be a folder: ${folder}`);
  return place.value.real;
};

/**
 * As `realWorkspace`, for a session: also throws where other programs would obey what the agent
 * writes.
 */
const sessionWorkspace = async (folder: string): Promise<string> => {
  const real = await realWorkspace(folder);
  const refusal = workspaceRefusal(real, process.env);
  if (refusal !== null) throw new BadParameters(refusal);
  return real;
};

/**
 * Whether a session is listed. One without a title has never had a prompt: there is nothing to
 * open.
 */
const isListed = (info: SessionInfo, workspace: string | null): boolean =>
  info.kind === 'agent' &&
  info.unreadable === undefined &&
  info.title !== '' &&
  (workspace === null || info.workspace === workspace);

const listedSession = ({ sessionId, workspace, title, changedAt }: SessionInfo): ListedSession => ({
  sessionId,
  cwd: workspace,
  title,
  updatedAt: new Date(changedAt).toISOString(),
});

/** The sessions that are open for one client. */
class AcpSessions {
  readonly #flags: RunFlags;
  readonly #open = new Map<string, AcpSession>();
  /** Openings of stored sessions that are under way: a second one joins the first. */
  readonly #opening = new Map<string, Promise<AcpSession>>();
  /** Openings of any kind, so that none outlives `closeAll`. */
  readonly #begun = new Set<Promise<AcpSession>>();
  #isClosed = false;

  constructor(flags: RunFlags) {
    this.#flags = flags;
  }

  /** Throws an UnknownSession if it is not open here. */
  get(sessionId: string): AcpSession {
    const session = this.#open.get(sessionId);
    if (session === undefined) throw new UnknownSession(sessionId);
    return session;
  }

  async create(client: Client, { cwd, servers }: WantedSession): Promise<AcpSession> {
    const workspace = await sessionWorkspace(cwd);
    return this.#begin(() =>
      AcpSession.open(this.#flags, client, { workspace, servers, resume: null }),
    );
  }

  /** Opens a stored session. One that is open for this client already is returned. */
  async find(client: Client, request: Omit<StoredSession, 'workspace'>): Promise<AcpSession> {
    const { sessionId, cwd, servers } = request;
    const workspace = await sessionWorkspace(cwd);
    const isKnown = this.#open.has(sessionId) || this.#opening.has(sessionId);
    const session = await this.#findOpen(client, { ...request, workspace });
    if (session.workspace !== workspace) throw wrongFolder(sessionId, session.workspace, cwd);
    if (isKnown && servers.length > 0)
      session.tell('The session is open already: it keeps the MCP servers it was opened with.');
    return session;
  }

  /** Cancels the turn of a session. One that is not open has none. */
  cancel(sessionId: string): void {
    this.#open.get(sessionId)?.cancel();
  }

  /** Closes a session, after its opening. One that is not open is closed already. */
  async close(sessionId: string): Promise<void> {
    await this.#opening.get(sessionId)?.catch(() => undefined); // that request tells its fault
    const session = this.#open.get(sessionId);
    this.#open.delete(sessionId);
    await session?.close();
  }

  /** Deletes a stored session. One that is open for this client is closed first. */
  async delete(sessionId: string): Promise<void> {
    await this.close(sessionId);
    await storedJournals().delete(sessionId);
  }

  /** Closes all sessions, also those that are still being opened; opens no more. Never rejects. */
  async closeAll(): Promise<void> {
    this.#isClosed = true;
    const late = [...this.#begun].map((begun) => begun.then(({ id }) => this.close(id)));
    const open = [...this.#open.keys()].map((sessionId) => this.close(sessionId));
    await Promise.allSettled([...late, ...open]);
  }

  /**
   * A page of the stored sessions, newest first. The cursor is the last session of the page before.
   */
  async list(cwd: string | null, cursor: string | null): Promise<ListSessionsResponse> {
    const workspace = cwd === null ? null : await realWorkspace(cwd);
    const sessions: ListedSession[] = [];
    let isPast = cursor === null;
    for await (const info of storedJournals().list()) {
      if (isPast && isListed(info, workspace)) {
        const last = sessions.at(-1);
        if (last !== undefined && sessions.length === PAGE_SESSIONS)
          return { sessions, nextCursor: last.sessionId };
        sessions.push(listedSession(info));
      }
      if (info.sessionId === cursor) isPast = true;
    }
    if (isPast) return { sessions };
    throw new BadParameters(
      'The cursor is of another list. List the sessions again from the start.',
    );
  }

  async #findOpen(client: Client, request: StoredSession): Promise<AcpSession> {
    const { sessionId } = request;
    const known = this.#open.get(sessionId) ?? this.#opening.get(sessionId);
    if (known !== undefined) return known;
    const opening = this.#begin(() => this.#openStored(client, request));
    this.#opening.set(sessionId, opening);
    try {
      return await opening;
    } finally {
      this.#opening.delete(sessionId);
    }
  }

  #openStored(
    client: Client,
    { sessionId, workspace, servers, shows }: StoredSession,
  ): Promise<AcpSession> {
    // A session goes on in the folder of its journal, which must be the one that the client names.
    const accept = async (recorded: string): Promise<void> => {
      const real = await attempt(() => realpath(recorded));
      if (real.kind === 'fault' || real.value !== workspace)
        throw wrongFolder(sessionId, recorded, workspace);
    };
    const resume = { id: sessionId, accept, shows };
    return AcpSession.open(this.#flags, client, { workspace, servers, resume });
  }

  async #begin(open: () => Promise<AcpSession>): Promise<AcpSession> {
    if (this.#isClosed) throw new BadParameters('The connection is closed.');
    const opening = open();
    this.#begun.add(opening);
    try {
      const session = await opening;
      this.#open.set(session.id, session);
      void session.ended.then(() => {
        if (this.#open.get(session.id) === session) this.#open.delete(session.id);
      });
      return session;
    } finally {
      this.#begun.delete(opening);
    }
  }
}

const wrongFolder = (sessionId: string, recorded: string, cwd: string): BadParameters =>
  new BadParameters(
    `The session ${sessionId} works in ${recorded}, not in ${cwd}. Open that folder in the ` +
      'editor. ' +
      `If it has moved: pawl --resume ${sessionId} --workspace ${cwd}`,
  );

// The errors of requests. Their messages are for the user.

const AUTH_REQUIRED = -32000;
const NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const INTERNAL = -32603;

/** Errors with words for the user. `data` says the kind of a failed turn. */
const errorFor = (error: unknown): RequestError => {
  if (error instanceof RequestError) return error;
  const isRefusal = [BadParameters, BadPrompt, BadOption].some((kind) => error instanceof kind);
  if (isRefusal && error instanceof Error) return new RequestError(INVALID_PARAMS, error.message);
  if (error instanceof UnknownSession)
    return new RequestError(NOT_FOUND, error.message, { sessionId: error.sessionId });
  if (error instanceof TurnFailed)
    return new RequestError(INTERNAL, error.message, { kind: error.error, message: error.message });
  const { exit, reason, message } = errorEnding(error);
  if (exit === exitCodes.configuration)
    return new RequestError(AUTH_REQUIRED, message, { kind: reason, message });
  if (reason === 'notFound') return new RequestError(NOT_FOUND, message);
  return new RequestError(INTERNAL, message, { kind: reason, message });
};

type Request<Params> = {
  readonly params: Params;
  readonly client: AgentContext;
  readonly requestId: JsonRpcId;
  readonly signal: AbortSignal;
};

/** A handler of requests, whose errors have a code and words. */
const handler =
  <Params, Answer>(answer: (request: Request<Params>) => Answer | Promise<Answer>) =>
  async (request: Request<Params>): Promise<Answer> => {
    try {
      return await answer(request);
    } catch (error) {
      throw errorFor(error);
    }
  };

// The MCP servers that an editor gives to a session, in the form of those in a configuration file.

const NAME_CHARACTERS_MAX = 32;

/** A name for tools: `GitHub (work)` becomes `GitHub-work`. */
const serverName = ({ name }: McpServer): string =>
  name
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/_{2,}/g, '_')
    .replace(/^[_-]+/, '')
    .slice(0, NAME_CHARACTERS_MAX)
    .replace(/[_-]+$/, '');

/** The servers by their names for tools. A name that another server has already gets a number. */
const nameServers = (servers: readonly McpServer[]): ReadonlyMap<string, McpServer> => {
  const named = new Map<string, McpServer>();
  for (const server of servers) {
    const short = serverName(server);
    const isTaken = (name: string) => (named.get(name)?.name ?? server.name) !== server.name;
    let name = short;
    for (let number = 2; isTaken(name); number++)
      name = `${short.slice(0, NAME_CHARACTERS_MAX - 3)}-${number}`;
    named.set(name, server);
  }
  return named;
};

const serverTexts = (list: readonly { readonly name: string; readonly value: string }[]): object =>
  Object.fromEntries(list.map(({ name, value }) => [name, value]));

const serverTable = (server: McpServer): object => {
  if ('command' in server)
    return { command: server.command, args: server.args, env: serverTexts(server.env) };
  return { type: server.type, url: server.url, headers: serverTexts(server.headers) };
};

/** A server that can't be used is a fault; of two with the same name the last one counts. */
export const readEditorServers = (servers: readonly McpServer[]): ReadServers =>
  readServers(
    Object.fromEntries([...nameServers(servers)].map(([name, one]) => [name, serverTable(one)])),
    ['mcpServers'],
  );

// Updates that must not precede an answer: a client does not know the session before.

type HookedStream = {
  readonly stream: Stream;
  /** Calls `then` after the answer to this request was written. */
  afterAnswer(id: JsonRpcId, then: () => void): void;
};

/**
 * Watches the messages that are sent, so that something can follow an answer and never precede it.
 */
const hookAnswers = ({ readable, writable }: Stream): HookedStream => {
  const waiting = new Map<JsonRpcId, () => void>();
  const writer = writable.getWriter();
  const write = async (message: AnyMessage): Promise<void> => {
    await writer.write(message);
    if (!('id' in message) || 'method' in message) return;
    const then = waiting.get(message.id);
    waiting.delete(message.id);
    then?.();
  };
  return {
    stream: { readable, writable: new WritableStream({ write }) },
    afterAnswer: (id, then) => void waiting.set(id, then),
  };
};
