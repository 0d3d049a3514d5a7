/**
 * Speaks with a server, by the official MCP SDK: `connectServer` connects it and asks for its
 * tools. connection.ts decides when that happens, and loads this file with the first connection.
 *
 * From top to bottom: the types; the transport (stdio or HTTP) and the client of the SDK;
 * `connectServer`; and the login of a session, which is renewed but never asked for.
 */

import {
  type AuthProvider,
  type CallToolResult,
  Client,
  type ElicitRequestParams,
  type FetchLike,
  type GetPromptResult,
  InsufficientScopeError,
  type JsonSchemaValidator,
  type jsonSchemaValidator,
  OAuthError,
  type Prompt,
  ProtocolError,
  parseJSONRPCMessage,
  type ReadResourceResult,
  type Resource,
  refreshAuthorization,
  SdkError,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Tool,
  type Transport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { attempt } from '../../platform/attempt.js';
import { type ProcessEnvironment, VERSION } from '../../platform/environment.js';
import { mcpFetch } from './fetch.js';
import type { ServerAnswer } from './question.js';
import type { HttpServer, McpProtocol, McpServer, StdioServer } from './server-config.js';
import type { ServerLog } from './server-log.js';
import { type ListMethod, ServerMessages } from './server-messages.js';
import { prepareServer, StdioTransport } from './stdio-server.js';
import { changeLogin, configuredClient, readLogin, type StoredLogin } from './stored-login.js';

export type CallOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (text: string) => void;
  /** Called by the connection when the server is connected, before the call is sent to it. */
  readonly onSend?: () => void;
  /** The time limit of the call stands still until this resolves. */
  readonly whileAsking?: <T>(asked: Promise<T>) => Promise<T>;
};

/** A server while it is connected. */
export type ConnectedServer = {
  readonly tools: readonly Tool[];
  call(tool: string, input: JsonObject, options: CallOptions): Promise<CallToolResult>;
  /** Asks for prompts and resources, of which a server may have none. */
  listOffers(signal: AbortSignal): Promise<RemoteOffers>;
  getPrompt(
    name: string,
    args: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<GetPromptResult>;
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>;
  /** The members of its lists that can't be used, one line each. */
  leftOut(): readonly string[];
  /** Why the connection ended; null while nothing is known. */
  why(): string | null;
  close(): Promise<void>;
};

export type RemoteOffers = {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
};

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
  /**
   * A server wants to ask the user something. The signal is aborted when it takes its question
   * back.
   */
  readonly onQuestion: (params: ElicitRequestParams, signal: AbortSignal) => Promise<ServerAnswer>;
  readonly onClose: () => void;
};

/** The session sets the deadlines, and aborts the signal of a call. */
const until = (signal: AbortSignal) => ({ signal, timeout: 2 ** 31 - 1 });
/** Pages of a list that are asked for. */
const PAGES_MAX = 64;

const stdioTransport = (
  server: StdioServer,
  { environment, workspace, log, signal }: ConnectOptions,
  messages: ServerMessages,
): StdioTransport =>
  new StdioTransport({
    prepare: () => prepareServer(server, { environment, workspace }),
    log,
    signal,
    sent: (message) => messages.sent(message),
    parse: (line) => parseJSONRPCMessage(messages.read(JSON.parse(line))),
  });

/**
 * A stream that was cut off is resumed after at most this time, in ms, also if its server names a
 * longer one.
 */
const RESUMED_AFTER_MS = 2_000;

const httpTransport = (
  { url, headers }: HttpServer,
  { environment }: ServerPlace,
  login: SessionLogin | null,
  messages: ServerMessages,
): Transport =>
  new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: watchRefusals(mcpFetch(environment, messages), login),
    reconnectionScheduler(reconnect, delayMs) {
      const timer = setTimeout(reconnect, Math.min(delayMs, RESUMED_AFTER_MS));
      return () => clearTimeout(timer);
    },
    ...(login === null ? {} : { authProvider: login }),
  });

const negotiationMode = (protocol: McpProtocol): VersionNegotiationMode =>
  protocol === '2026-07-28' ? { pin: protocol } : protocol;

const acceptAll: jsonSchemaValidator['getValidator'] =
  <T>(): JsonSchemaValidator<T> =>
  // Only the schema knows the type `T`; the package's callers look only at `valid`.
  (input) => ({ valid: true, data: input as T, errorMessage: undefined });

const progressText = (
  progress: number,
  total: number | undefined,
  message: string | undefined,
): string =>
  `${progress}${total === undefined ? '' : `/${total}`}${message === undefined ? '' : ` ${message}`}\n`;

const createClient = (server: McpServer, options: ConnectOptions): Client => {
  const client = new Client(
    { name: 'pawl', version: VERSION },
    {
      capabilities: { elicitation: { form: {}, url: {} } },
      versionNegotiation: { mode: negotiationMode(server.protocol) },
      listMaxPages: PAGES_MAX,
      // Results are for the model. One that does not fit the server's schema is shown all the same.
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

/** Asks for prompts and for resources. If one list fails, the other is there all the same. */
const listOffers = async (
  client: Client,
  messages: ServerMessages,
  signal: AbortSignal,
): Promise<RemoteOffers> => {
  const { prompts, resources } = client.getServerCapabilities() ?? {};
  const asked = until(signal);
  const list = async <T>(
    method: ListMethod,
    capability: object | undefined,
    ask: () => Promise<readonly T[]>,
  ): Promise<readonly T[]> => {
    if (capability === undefined) return [];
    const listed = await attempt(ask);
    if (listed.kind === 'done') return listed.value;
    if (!(listed.fault instanceof ProtocolError)) throw listed.fault;
    messages.refused(method, listed.fault.message);
    return [];
  };
  return {
    prompts: await list(
      'prompts/list',
      prompts,
      async () => (await client.listPrompts(undefined, asked)).prompts,
    ),
    resources: await list(
      'resources/list',
      resources,
      async () => (await client.listResources(undefined, asked)).resources,
    ),
  };
};

/**
 * Connects to a server and asks for its tools. Rejects if it can't be started or does not answer.
 */
export const connectServer = async (
  server: McpServer,
  options: ConnectOptions,
): Promise<ConnectedServer> => {
  const client = createClient(server, options);
  const messages = new ServerMessages();
  const stdio = server.kind === 'stdio' ? stdioTransport(server, options, messages) : null;
  const login = server.kind === 'http' ? sessionLogin(server, options) : null;
  const transport = stdio ?? httpTransport(server as HttpServer, options, login, messages); // the other kind
  const explained = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      throw login === null ? error : await login.explain(error);
    }
  };
  const { signal } = options;
  const why = (): string | null => stdio?.why ?? null;
  try {
    await client.connect(transport, until(signal));
    const { tools } = await client.listTools(undefined, until(signal));
    return {
      tools,
      why,
      leftOut: () => messages.leftOut(),
      close: () => client.close(),
      listOffers: (asking) => explained(listOffers(client, messages, asking)),
      getPrompt: (name, args, asking) =>
        explained(client.getPrompt({ name, arguments: { ...args } }, until(asking))),
      readResource: (uri, asking) => explained(client.readResource({ uri }, until(asking))),
      call: (tool, input, { signal: ofCall, onProgress }) =>
        explained(
          client.callTool(
            { name: tool, arguments: { ...input } },
            {
              ...until(ofCall),
              onprogress: ({ progress, total, message }) =>
                onProgress(progressText(progress, total, message)),
            },
          ),
        ),
    };
  } catch (error) {
    // If we end the server ourselves, its end is no reason: only what was known before counts.
    const before = why();
    await attempt(() => transport.close()); // the error is what failed first
    const isKnown = error instanceof ProtocolError || error instanceof SdkError;
    const reason = error instanceof ProtocolError ? null : (before ?? (isKnown ? null : why()));
    if (reason !== null) throw new Error(reason, { cause: error });
    return explained(Promise.reject(error));
  }
};

// ---- The login of a session ----

/**
 * The login of a session at a server: what `pawl mcp login` has stored.
 *
 * 1. A session never asks the user. Without a login, or if it has expired, the error names the
 *    command.
 * 2. Expired tokens are renewed, once for all requests that wait, in all processes: whoever does it
 *    holds the lock of the login, and reads it again under the lock. The file is read for each
 *    request.
 */
type SessionLogin = AuthProvider & {
  /**
   * The error in words that say what to do; other errors as they are. Keeps the scopes that a
   * server asks for.
   */
  explain(error: unknown): Promise<unknown>;
  /** Remembers the token that a response has refused: a later request may have another one. */
  refused(response: Response, headers: Headers): void;
};

type LoginPlace = { readonly stateFolder: string; readonly environment: ProcessEnvironment };

const watchRefusals =
  (send: FetchLike, login: SessionLogin | null): FetchLike =>
  async (url, init) => {
    const response = await send(url, init);
    if (response.status === 401) login?.refused(response, new Headers(init?.headers));
    return response;
  };

/** Characters of a scope (RFC 6749 3.3). The server chooses it. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E ]{1,300}$/;
/** Time limit for renewing tokens, in ms. */
const RENEWAL_MS = 20_000;
/** Errors of a login that can't be renewed any more. */
const ENDED = ['invalid_grant', 'invalid_client', 'unauthorized_client'];

class StoredSessionLogin implements SessionLogin {
  readonly #server: HttpServer;
  readonly #place: LoginPlace;
  readonly #refused = new WeakMap<Response, string>();
  #renewing: Promise<void> | null = null;

  constructor(server: HttpServer, place: LoginPlace) {
    this.#server = server;
    this.#place = place;
  }

  /** The SDK asks for it before each request. */
  async token(): Promise<string | undefined> {
    return this.#read().tokens?.access_token;
  }

  refused(response: Response, headers: Headers): void {
    this.#refused.set(response, headers.get('authorization')?.replace('Bearer ', '') ?? '');
  }

  /** The SDK calls it when the server has refused the token, and then repeats the request. */
  onUnauthorized({ response }: { readonly response: Response }): Promise<void> {
    this.#renewing ??= this.#renew(this.#refused.get(response)).finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async explain(error: unknown): Promise<unknown> {
    const { name } = this.#server;
    if (error instanceof InsufficientScopeError) {
      const scope = SCOPE.test(error.requiredScope ?? '') ? (error.requiredScope ?? null) : null;
      // The next `pawl mcp login` asks for the old rights and all that were missing since.
      if (scope !== null)
        await this.#change(async (login) => {
          const { wantedScope, tokens, askedScope } = login;
          const scopes = [wantedScope, tokens?.scope || askedScope, scope].filter(Boolean);
          return { ...login, wantedScope: [...new Set(scopes.join(' ').split(' '))].join(' ') };
        });
      return new Error(
        `it asks for more rights${scope === null ? '' : ` (${scope})`}: pawl mcp login ${name}`,
      );
    }
    if (error instanceof SdkHttpError && error.status === 401)
      return new Error(`it refuses the stored login: pawl mcp login ${name}`);
    return error;
  }

  /** Renews the tokens, unless another one than theirs was refused: then they are new. */
  async #renew(refused: string | undefined): Promise<void> {
    const { name } = this.#server;
    let ended = false;
    const needed = new Error(`it needs a login: pawl mcp login ${name}, or a header with a token`);
    if (this.#read().tokens === null) throw needed;
    await this.#change(async (login) => {
      if (login.tokens === null) throw needed;
      if (login.tokens.access_token !== refused) return null; // another process was faster
      const renewed = await attempt(() => this.#requestTokens(login));
      if (renewed.kind === 'done') return { ...login, tokens: renewed.value };
      const { fault } = renewed;
      if (!(fault instanceof OAuthError)) throw fault;
      if (!ENDED.includes(fault.code))
        throw new Error(`its login can't be renewed: ${fault.message}`);
      ended = true;
      return { ...login, tokens: null };
    });
    if (ended) throw this.#expired();
  }

  #expired(): Error {
    return new Error(`its login has expired: pawl mcp login ${this.#server.name}`);
  }

  /** Asks the authorization server for new tokens. */
  async #requestTokens({ tokens, discovery, issuer, ...login }: StoredLogin): Promise<LoginTokens> {
    const { oauth } = this.#server;
    const client = oauth === undefined ? login.client : { ...configuredClient(oauth), issuer };
    const refreshToken = tokens?.refresh_token;
    // Tokens are sent only to the authorization server that has issued them.
    const isOfIssuer = client?.issuer === issuer && tokens?.issuer === issuer;
    if (client === null || discovery === null || refreshToken === undefined || !isOfIssuer)
      throw this.#expired();
    const resource = discovery.resourceMetadata?.resource;
    const metadata = discovery.authorizationServerMetadata;
    const scope = renewedScope(tokens?.scope, login.askedScope);
    const send = mcpFetch(this.#place.environment);
    const renewed = await refreshAuthorization(discovery.authorizationServerUrl, {
      ...(metadata === undefined ? {} : { metadata }),
      ...(resource === undefined ? {} : { resource }),
      ...(scope === null ? {} : { scope }),
      clientInformation: client,
      refreshToken,
      fetchFn: (url, init) => send(url, { ...init, signal: AbortSignal.timeout(RENEWAL_MS) }),
    });
    return { ...tokens, ...renewed, issuer };
  }

  #read(): StoredLogin {
    return readLogin(this.#place.stateFolder, this.#server);
  }

  #change(change: (login: StoredLogin) => Promise<StoredLogin | null>): Promise<void> {
    return changeLogin(this.#place.stateFolder, this.#server, change);
  }
}

type LoginTokens = NonNullable<StoredLogin['tokens']>;

/**
 * The scope to ask for when tokens are renewed; null for none. Some authorization servers give a
 * token for something else if none is named. It must not be more than was granted; whether
 * `offline_access` was, many do not say. `asked`: by the login; undefined if that is not known.
 */
const renewedScope = (
  granted: string | undefined,
  asked: string | null | undefined,
): string | null => {
  if (asked === null) return null;
  const words = (granted || asked || '').split(' ').filter(Boolean);
  const isOffline = asked?.split(' ').includes(OFFLINE) === true && !words.includes(OFFLINE);
  return [...words, ...(isOffline ? [OFFLINE] : [])].join(' ') || null;
};
const OFFLINE = 'offline_access';

/** null: the settings of the server have a header for it. */
const sessionLogin = (server: HttpServer, place: LoginPlace): SessionLogin | null =>
  Object.keys(server.headers).some((name) => name.toLowerCase() === 'authorization')
    ? null
    : new StoredSessionLogin(server, place);
