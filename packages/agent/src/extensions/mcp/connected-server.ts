import {
  type CallToolResult,
  Client,
  deserializeMessage,
  type ElicitRequestParams,
  type GetPromptResult,
  type JsonSchemaValidator,
  type jsonSchemaValidator,
  type Prompt,
  ProtocolError,
  type ReadResourceResult,
  type Resource,
  StreamableHTTPClientTransport,
  type Tool,
  type Transport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import type { JsonObject } from '../../machine/message.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { VERSION } from '../../platform/base/version.js';
import type { HttpServer, McpProtocol, McpServer, StdioServer } from '../mcp-servers.js';
import { mcpFetch } from './mcp-fetch.js';
import { type SessionLogin, sessionLogin } from './oauth/session-login.js';
import { prepareServer } from './prepare-server.js';
import type { ServerAnswer } from './questions/server-question.js';
import type { ServerLog } from './server-log.js';
import { StdioTransport } from './stdio-transport.js';

/** A connected server, by the official package. This file is loaded when the first server is connected. */

export type CallOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (text: string) => void;
  /** Called when the server is connected, before the call is sent to it. */
  readonly onSend?: () => void;
  /** The time limit of the call stands still until this resolves. */
  readonly whileAsking?: <T>(asked: Promise<T>) => Promise<T>;
};

export type ConnectedServer = {
  readonly tools: readonly Tool[];
  call(tool: string, input: JsonObject, options: CallOptions): Promise<CallToolResult>;
  /** Asks for prompts and resources, of which a server may have none. */
  listOffers(signal: AbortSignal): Promise<RemoteOffers>;
  getPrompt(
    name: string,
    given: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<GetPromptResult>;
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>;
  /** Why the connection ended; null while nothing is known. */
  why(): string | null;
  close(): Promise<void>;
};

export type RemoteOffers = { readonly prompts: readonly Prompt[]; readonly resources: readonly Resource[] };

export type ServerPlace = {
  readonly environment: ProcessEnvironment;
  /** Absolute. */
  readonly workspace: string;
  readonly stateFolder: string;
  readonly log: ServerLog;
};

export type ConnectOptions = ServerPlace & {
  readonly signal: AbortSignal;
  readonly onTools: (tools: readonly Tool[]) => void;
  /** Called when the server says that its prompts or resources have changed. */
  readonly onOffersChanged: () => void;
  /** A server wants to ask the user something. The signal is aborted when it takes its question back. */
  readonly onQuestion: (params: ElicitRequestParams, signal: AbortSignal) => Promise<ServerAnswer>;
  readonly onClose: () => void;
};

/** The deadlines are the session's own: it aborts the signal of a call. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const PAGES_MAX = 64;

const stdioTransport = (
  server: StdioServer,
  { environment, workspace, log, signal }: ConnectOptions,
): StdioTransport =>
  new StdioTransport({
    prepare: () => prepareServer(server, { environment, workspace }),
    log,
    signal,
    parse: (line) => deserializeMessage(line),
  });

/** A stream that was cut off is resumed after at most this time, in ms, also if its server names a longer one. */
const RESUMED_AFTER_MS = 2_000;

const httpTransport = (
  { url, headers }: HttpServer,
  { environment }: ServerPlace,
  login: SessionLogin | null,
): Transport =>
  new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: mcpFetch(environment),
    reconnectionScheduler(reconnect, delayMs) {
      const timer = setTimeout(reconnect, Math.min(delayMs, RESUMED_AFTER_MS));
      return () => clearTimeout(timer);
    },
    ...(login === null ? {} : { authProvider: login }),
  });

const modeOf = (protocol: McpProtocol): VersionNegotiationMode =>
  protocol === '2026-07-28' ? { pin: protocol } : protocol;

/** Its type promises data of a type that only the schema knows; the package's callers look only at `valid`. */
const acceptAll: jsonSchemaValidator['getValidator'] =
  <T>(): JsonSchemaValidator<T> =>
  (input) => ({ valid: true, data: input as T, errorMessage: undefined });

const progressText = (progress: number, total: number | undefined, message: string | undefined): string =>
  `${progress}${total === undefined ? '' : `/${total}`}${message === undefined ? '' : ` ${message}`}\n`;

const createClient = (server: McpServer, options: ConnectOptions): Client => {
  const client = new Client(
    { name: 'pawl', version: VERSION },
    {
      capabilities: { elicitation: { form: {}, url: {} } },
      versionNegotiation: { mode: modeOf(server.protocol) },
      listMaxPages: PAGES_MAX,
      // Results are for the model. One that does not fit the server's own schema is shown all the same.
      jsonSchemaValidator: {
        getValidator: acceptAll,
      },
      listChanged: {
        tools: {
          onChanged: (error, tools) =>
            error === null && tools !== null ? options.onTools(tools) : undefined,
        },
        prompts: { autoRefresh: false, onChanged: () => options.onOffersChanged() },
        resources: { autoRefresh: false, onChanged: () => options.onOffersChanged() },
      },
    },
  );
  client.onclose = options.onClose;
  client.setRequestHandler('elicitation/create', async ({ params }, context) => {
    const answer = await options.onQuestion(params, context.mcpReq.signal);
    if (answer.action !== 'accept') return { action: answer.action };
    return params.mode === 'url'
      ? { action: 'accept' }
      : { action: 'accept', content: { ...answer.content } };
  });
  return client;
};

const listOffers = async (client: Client, signal: AbortSignal): Promise<RemoteOffers> => {
  const { prompts, resources } = client.getServerCapabilities() ?? {};
  const asked = { signal, timeout: NO_TIMEOUT_MS };
  return {
    prompts: prompts === undefined ? [] : (await client.listPrompts(undefined, asked)).prompts,
    resources: resources === undefined ? [] : (await client.listResources(undefined, asked)).resources,
  };
};

/** Connects to a server and asks for its tools. Rejects if it can't be started or does not answer. */
export const connectServer = async (server: McpServer, options: ConnectOptions): Promise<ConnectedServer> => {
  const client = createClient(server, options);
  const stdio = server.kind === 'stdio' ? stdioTransport(server, options) : null;
  const login = server.kind === 'http' ? sessionLogin(server, options) : null;
  const transport = stdio ?? httpTransport(server as HttpServer, options, login); // the other kind
  const explain = async (error: unknown): Promise<unknown> => (login === null ? error : login.explain(error));
  const { signal } = options;
  const why = (): string | null => stdio?.why ?? null;
  try {
    await client.connect(transport, { signal, timeout: NO_TIMEOUT_MS });
    const { tools } = await client.listTools(undefined, { signal, timeout: NO_TIMEOUT_MS });
    return {
      tools,
      why,
      close: () => client.close(),
      listOffers: (asking) => listOffers(client, asking),
      getPrompt: (name, given, asking) =>
        client.getPrompt({ name, arguments: { ...given } }, { signal: asking, timeout: NO_TIMEOUT_MS }),
      readResource: (uri, asking) => client.readResource({ uri }, { signal: asking, timeout: NO_TIMEOUT_MS }),
      async call(tool, input, { signal: ofCall, onProgress }) {
        try {
          return await client.callTool(
            { name: tool, arguments: { ...input } },
            {
              signal: ofCall,
              timeout: NO_TIMEOUT_MS,
              onprogress: ({ progress, total, message }) =>
                onProgress(progressText(progress, total, message)),
            },
          );
        } catch (error) {
          throw await explain(error);
        }
      },
    };
  } catch (error) {
    await transport.close();
    // What the server itself answered says more than that it has ended since.
    const reason = error instanceof ProtocolError ? null : why();
    throw reason === null ? await explain(error) : new Error(reason, { cause: error });
  }
};
