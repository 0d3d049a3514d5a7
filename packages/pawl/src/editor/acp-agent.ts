import {
  type AgentApp,
  type AgentContext,
  agent,
  type InitializeRequest,
  type InitializeResponse,
  type JsonRpcId,
  type McpServer,
  ndJsonStream,
  PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk';
import type { AcpSession } from './acp-session.js';
import { AcpSessions } from './acp-sessions.js';
import { readEditorServers } from './editor-servers.js';
import type { AcpHost } from './host-interface.js';
import type { Client } from './replay-into-outbox.js';
import { answering } from './request-errors.js';
import { hookAnswers } from './run-after-response.js';
import type { ClientFeatures } from './session-updates.js';

/** The agent's side of the Agent Client Protocol, version 1: its requests, on one connection. */

const initialized = (version: string): InitializeResponse => ({
  protocolVersion: PROTOCOL_VERSION,
  agentInfo: { name: 'pawl', title: 'Pawl', version },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    mcpCapabilities: { http: true, sse: false },
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
  },
  authMethods: [],
});

const featuresOf = ({ clientCapabilities }: InitializeRequest): ClientFeatures => {
  const { session, elicitation } = clientCapabilities ?? {};
  return {
    notices: session?.notices !== undefined && session.notices !== null,
    compaction: session?.compaction !== undefined && session.compaction !== null,
    forms: elicitation?.form !== undefined && elicitation.form !== null,
  };
};

type Opening = {
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[] | undefined;
  readonly additionalDirectories?: readonly string[] | undefined;
};

/** Opens a session, and says which wishes of the client are not fulfilled. */
const openWith = async (
  { cwd, mcpServers = [], additionalDirectories = [] }: Opening,
  open: (wanted: Parameters<AcpSessions['create']>[1]) => Promise<AcpSession>,
): Promise<AcpSession> => {
  const { servers, faults } = readEditorServers(mcpServers);
  const session = await open({ cwd, servers });
  for (const { text } of faults) session.tell(`An MCP server of the editor is not used: ${text}`);
  if (additionalDirectories.length > 0)
    session.tell(
      `Pawl works in one folder, ${session.workspace}. Not added: ${additionalDirectories.join(', ')}.`,
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

/** What the handlers of one connection share. */
type Connected = {
  readonly host: AcpHost;
  readonly sessions: AcpSessions;
  features: ClientFeatures;
  afterAnswer(id: JsonRpcId, then: () => void): void;
};

/** The answer for an opened session; what the session has to say is sent after it. */
const answerWith = (
  connected: Connected,
  session: AcpSession,
  requestId: JsonRpcId,
): AcpSession['settings'] => {
  connected.afterAnswer(requestId, () => session.announce());
  return session.settings;
};

const addOpenings = (app: AgentApp, connected: Connected): AgentApp => {
  const { host, sessions } = connected;
  const clientOf = ({ client }: { readonly client: AgentContext }): Client => ({
    context: client,
    features: connected.features,
  });
  return app
    .onRequest('initialize', ({ params }) => {
      connected.features = featuresOf(params);
      return initialized(host.version);
    })
    .onRequest(
      'session/new',
      answering(host, async (request) => {
        const session = await openWith(request.params, (wanted) =>
          sessions.create(clientOf(request), wanted),
        );
        return { sessionId: session.id, ...answerWith(connected, session, request.requestId) };
      }),
    )
    .onRequest(
      'session/load',
      answering(host, async (request) => {
        const { sessionId } = request.params;
        const session = await openWith(request.params, (wanted) =>
          sessions.find(clientOf(request), { ...wanted, sessionId, shows: 'conversation' }),
        );
        await session.replay();
        return answerWith(connected, session, request.requestId);
      }),
    )
    .onRequest(
      'session/resume',
      answering(host, async (request) => {
        const { sessionId } = request.params;
        const session = await openWith(request.params, (wanted) =>
          sessions.find(clientOf(request), { ...wanted, sessionId, shows: 'nothing' }),
        );
        return answerWith(connected, session, request.requestId);
      }),
    );
};

const addOthers = (app: AgentApp, { host, sessions }: Connected): AgentApp =>
  app
    .onRequest(
      'session/list',
      answering(host, ({ params }) => sessions.list(params.cwd ?? null, params.cursor ?? null)),
    )
    .onRequest(
      'session/close',
      answering(host, async ({ params }) => {
        await sessions.close(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      'session/delete',
      answering(host, async ({ params }) => {
        await sessions.delete(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      'session/set_mode',
      answering(host, async ({ params }) => {
        await sessions.get(params.sessionId).changePreset(params.modeId);
        return {};
      }),
    )
    .onRequest(
      'session/set_config_option',
      answering(host, async ({ params }) => {
        const session = sessions.get(params.sessionId);
        await session.changeOption(params.configId, String(params.value));
        return { configOptions: session.settings.configOptions ?? [] };
      }),
    )
    .onRequest(
      'session/prompt',
      answering(host, ({ params, signal }) => sessions.get(params.sessionId).prompt(params.prompt, signal)),
    )
    .onNotification('session/cancel', ({ params }) => sessions.cancel(params.sessionId));

export type AcpStreams = {
  readonly output: WritableStream<Uint8Array>;
  readonly input: ReadableStream<Uint8Array>;
};

/** Serves one client until it goes. */
export const serveClient = (host: AcpHost, { output, input }: AcpStreams): AcpConnection => {
  const sessions = new AcpSessions(host);
  const { stream, afterAnswer } = hookAnswers(ndJsonStream(output, input));
  const features = { notices: false, compaction: false, forms: false };
  const connected: Connected = { host, sessions, features, afterAnswer };
  const app = addOthers(addOpenings(agent({ name: 'pawl' }), connected), connected);
  const connection = app.connect(stream);
  const closed = connection.closed.then((): unknown => connection.signal.reason);
  return { closed, ended: closed.then(() => sessions.closeAll()), close: () => connection.close() };
};
