/**
 * `pawl mcp login`: asks the user in the browser to let Pawl use a server, by OAuth.
 *
 * The user opens an address of the authorization server (the issuer). After a yes, the browser is
 * sent back to an address on this computer: the redirect. It has the `state` of the login, a random
 * text that shows to which login it belongs.
 *
 * From top to bottom: `logIn`, which waits for the redirect, and `beginLogin` and `finishLogin`,
 * with which the user copies it; the steps of a login (`ServerLogin`); the server that waits for
 * the redirect; and what the official MCP package stores and asks for (`StoredLoginProvider`).
 */

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  auth,
  Client,
  type FetchLike,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { attempt } from '../../platform/attempt.js';
import { type ProcessEnvironment, VERSION } from '../../platform/environment.js';
import { isLoopback } from '../../platform/http.js';
import { isSameSecret } from '../../platform/untrusted-input.js';
import { mcpFetch } from './fetch.js';
import type { HttpServer } from './server-config.js';
import {
  changeLogin,
  configuredClient,
  NO_LOGIN,
  readLogin,
  type StoredLogin,
} from './stored-login.js';

export type LoginResult =
  /** The server has accepted the login. */
  | { readonly kind: 'done' }
  /** The server asks for none. */
  | { readonly kind: 'unneeded' }
  /**
   * The user opens the address; `finishLogin` takes the address that the browser is then sent to.
   */
  | { readonly kind: 'begun'; readonly address: string };

export type LoginOptions = {
  readonly stateFolder: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
};

export type LoginDialogue = {
  /** Shows the address to the user. */
  show(address: string): void;
  /**
   * Resolves with an address that the user has copied from the browser, if the redirect did not
   * reach this machine; never after the last one. Absent: no user is there to copy one.
   */
  readonly typed?: (signal: AbortSignal) => Promise<string>;
  /** Says why a typed address is not taken. The user may type another one. */
  refuse?(why: string): void;
};

/** How many logins in a row a server may ask for. */
const ROUNDS_MAX = 3;

const WRONG_ADDRESS =
  'this address does not belong to the login that was begun last. Copy the whole address';

/** Logs in, and waits for the user. Rejects with the reason if it fails. */
export const logIn = async (
  server: HttpServer,
  options: LoginOptions,
  dialogue: LoginDialogue,
): Promise<LoginResult> => {
  const { stateFolder } = options;
  const listener = await openRedirectListener(
    readLogin(stateFolder, server).redirectUrl,
    server.oauth?.redirectPort ?? null,
  );
  try {
    const { redirectUrl } = listener;
    const provider = new StoredLoginProvider(server, { stateFolder, redirectUrl, isBegun: false });
    const login = new ServerLogin(server, options, provider);
    let state = await login.begin();
    if (state === 'accepted') return { kind: 'unneeded' };
    for (let round = 0; round < ROUNDS_MAX; round++) {
      await login.finish(await receive(provider, listener, options, dialogue));
      state = await login.connect();
      if (state === 'accepted') return { kind: 'done' };
    }
    throw new Error(`it still asks for a login after ${ROUNDS_MAX} of them`);
  } finally {
    listener.close();
  }
};

/** Begins a login without waiting for anybody. */
export const beginLogin = async (
  server: HttpServer,
  options: LoginOptions,
): Promise<LoginResult> => {
  const { stateFolder } = options;
  // No server listens there: the user copies the address that the browser is sent to.
  const port = server.oauth?.redirectPort;
  const stored = port === undefined ? readLogin(stateFolder, server).redirectUrl : null;
  const redirectUrl = stored ?? `http://127.0.0.1:${port ?? 33418}${CALLBACK_PATH}`;
  const provider = new StoredLoginProvider(server, { stateFolder, redirectUrl, isBegun: false });
  const state = await new ServerLogin(server, options, provider).begin();
  return state === 'accepted'
    ? { kind: 'unneeded' }
    : { kind: 'begun', address: loginAddress(provider) };
};

/** Finishes a pending login, with the address that the browser was sent to. */
export const finishLogin = async (
  server: HttpServer,
  address: string,
  options: LoginOptions,
): Promise<LoginResult> => {
  const { stateFolder } = options;
  const { pending } = readLogin(stateFolder, server);
  if (pending === null) throw new Error(`no login was begun. First: pawl mcp login ${server.name}`);
  const parameters = parseRedirect(address, pending.state);
  if (parameters === null) throw new Error(WRONG_ADDRESS);
  const { redirectUrl } = pending;
  const provider = new StoredLoginProvider(server, { stateFolder, redirectUrl, isBegun: true });
  const login = new ServerLogin(server, options, provider);
  await login.finish(parameters);
  if ((await login.connect()) === 'accepted') return { kind: 'done' };
  throw new Error('it still asks for a login');
};

// ---- The steps of a login ----

/** Characters of the address that the user is to open. */
const ADDRESS_MAX = 8_000;

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const stop = (): void => reject(new Error('the login was not finished in time'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });

/**
 * The requests of a login: they end with it, and those of a server elsewhere go to no address that
 * is written as one of this computer. A public name that DNS leads here is not recognized.
 */
export const loginFetch = (
  server: Pick<HttpServer, 'url'>,
  { environment, signal }: Pick<LoginOptions, 'environment' | 'signal'>,
): FetchLike => {
  const send = mcpFetch(environment);
  return async (url, init = {}) => {
    if (isLoopback(url) && !isLoopback(server.url))
      throw new Error(`it names ${new URL(url).origin} for its login, which is this computer`);
    const signals =
      init.signal === undefined || init.signal === null ? [signal] : [init.signal, signal];
    return send(url, { ...init, signal: AbortSignal.any(signals) });
  };
};

/** The address for the user. The server chooses it, so it must be one of the web. */
const loginAddress = ({ address }: StoredLoginProvider): string => {
  if (address === null) throw new Error('it asks for a login, but names no address for it');
  if (address.protocol !== 'https:' && address.protocol !== 'http:')
    throw new Error('it names an address for its login that is not one of the web');
  if (address.href.length > ADDRESS_MAX)
    throw new Error('it names an address for its login that is too long');
  return address.href;
};

/** The parameters of an address that has the state of the login; null for any other text. */
const parseRedirect = (text: string, state: string): URLSearchParams | null => {
  if (!URL.canParse(text.trim())) return null;
  const { searchParams } = new URL(text.trim());
  return isSameSecret(searchParams.get('state'), state) ? searchParams : null;
};

/** One login at a server. */
class ServerLogin {
  readonly #server: HttpServer;
  readonly #options: LoginOptions;
  readonly #provider: StoredLoginProvider;

  constructor(server: HttpServer, options: LoginOptions, provider: StoredLoginProvider) {
    this.#server = server;
    this.#options = options;
    this.#provider = provider;
  }

  /** Begins the login. Resolves with `accepted` if the server needs none. */
  async begin(): Promise<'accepted' | 'asked'> {
    // `wantedScope`: the rights of the last login, and those that a refused request lacked.
    // `connect` would ask for the usual rights only, and such requests would be refused again.
    const { wantedScope, tokens } = readLogin(this.#options.stateFolder, this.#server);
    if (wantedScope === null || tokens === null) return this.connect();
    const outcome = await auth(this.#provider, {
      serverUrl: this.#server.url,
      scope: wantedScope,
      forceReauthorization: true,
      fetchFn: loginFetch(this.#server, this.#options),
    });
    return outcome === 'REDIRECT' ? 'asked' : this.connect();
  }

  /** Connects to the server: whether it accepts the login, or asks for one. */
  async connect(): Promise<'accepted' | 'asked'> {
    const { signal } = this.#options;
    const client = new Client(
      { name: 'pawl', version: VERSION },
      { versionNegotiation: { mode: 'auto' } },
    );
    const tried = await attempt(async () => {
      await client.connect(this.#transport(), { signal });
      await client.listTools(undefined, { signal });
    });
    await attempt(() => client.close()); // nothing is lost: it was only a try
    if (tried.kind === 'done') return 'accepted';
    if (tried.fault instanceof UnauthorizedError) return 'asked';
    throw tried.fault;
  }

  /** Exchanges what the redirect brought for tokens, which the provider stores. */
  finish(parameters: URLSearchParams): Promise<void> {
    return this.#transport().finishAuth(parameters);
  }

  #transport(): StreamableHTTPClientTransport {
    return new StreamableHTTPClientTransport(new URL(this.#server.url), {
      authProvider: this.#provider,
      requestInit: { headers: { ...this.#server.headers } },
      fetch: loginFetch(this.#server, this.#options),
    });
  }
}

/** Waits for the redirect, or for an address that the user types. */
const receive = async (
  provider: StoredLoginProvider,
  listener: RedirectListener,
  { signal }: LoginOptions,
  { show, typed, refuse }: LoginDialogue,
): Promise<URLSearchParams> => {
  const state = provider.stored.pending?.state ?? '';
  const ended = new AbortController();
  // Without `typed` it never ends, and only the redirect does.
  const byHand = async (): Promise<URLSearchParams> => {
    for (;;) {
      const text = await (typed?.(ended.signal) ?? new Promise<never>(() => undefined));
      const redirect = parseRedirect(text, state);
      if (redirect !== null) return redirect;
      if (text.trim() !== '') refuse?.(WRONG_ADDRESS);
    }
  };
  const received = listener.receive(state);
  show(loginAddress(provider));
  try {
    return await Promise.race([received, byHand(), rejectOnAbort(signal)]);
  } finally {
    ended.abort();
  }
};

// ---- The server that waits for the redirect ----

/**
 * Waits on 127.0.0.1 for the redirect of a login.
 *
 * 1. Only a request with the state of the login counts. Anybody on this machine, and any web page,
 *    can send others: they are answered and forgotten.
 * 2. The host of a request must be ours, so that no foreign name leads here.
 */
type RedirectListener = {
  /** `http://127.0.0.1:PORT/callback` */
  readonly redirectUrl: string;
  /** Resolves with the parameters of the redirect that has this state. */
  receive(state: string): Promise<URLSearchParams>;
  close(): void;
};

const CALLBACK_PATH = '/callback';

const answer = (outgoing: ServerResponse, status: number, words: string): void => {
  outgoing.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  outgoing.end(`<!doctype html><title>Pawl</title><p>${words}</p>`);
};

/** Resolves with the fault; null if the server listens. */
const listen = (server: Server, port: number): Promise<NodeJS.ErrnoException | null> =>
  new Promise((resolve) => {
    server.once('error', resolve);
    server.listen(port, '127.0.0.1', () => resolve(null));
  });

/**
 * Listens at the address of an earlier login if that is free, since registrations are bound to it.
 * `only`: the one port that counts, since the user has registered it.
 */
export const openRedirectListener = async (
  earlier: string | null,
  only: number | null = null,
): Promise<RedirectListener> => {
  let expected: { readonly state: string; take(redirect: URLSearchParams): void } | null = null;
  /** The state of the redirect that was taken last: it is taken once. */
  let taken: string | null = null;
  const handleRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const url = URL.canParse(incoming.url ?? '', 'http://127.0.0.1')
      ? new URL(incoming.url ?? '', 'http://127.0.0.1')
      : null;
    const host = new URL(redirectUrl).host;
    if (
      url === null ||
      url.pathname !== CALLBACK_PATH ||
      incoming.method !== 'GET' ||
      incoming.headers.host !== host
    ) {
      answer(outgoing, 404, 'There is nothing here.');
    } else if (taken !== null && isSameSecret(url.searchParams.get('state'), taken)) {
      answer(outgoing, 400, 'This address was used already. Pawl takes it once.');
    } else if (expected === null || !isSameSecret(url.searchParams.get('state'), expected.state)) {
      answer(outgoing, 400, 'This does not belong to the login that Pawl is waiting for.');
    } else {
      const refused = url.searchParams.has('error');
      answer(outgoing, 200, refused ? 'The login was refused.' : 'Done. Go back to Pawl.');
      taken = expected.state;
      expected.take(url.searchParams);
      expected = null;
    }
  };
  const server = createServer(handleRequest);
  const port = earlier !== null && URL.canParse(earlier) ? Number(new URL(earlier).port) : 0;
  const first = await listen(server, only ?? port);
  if (first !== null && only !== null)
    throw new Error(
      `port ${only} on 127.0.0.1, which your settings name for the redirect, ` +
        (first.code === 'EADDRINUSE' ? 'is in use' : `can't be used: ${first.message}`),
    );
  if (first !== null && (await listen(server, 0)) !== null)
    throw new Error('no port on 127.0.0.1 can be used for the redirect of the login');
  const { port: bound } = server.address() as AddressInfo; // it listens on a port
  const redirectUrl = `http://127.0.0.1:${bound}${CALLBACK_PATH}`;
  return {
    redirectUrl,
    receive: (state) =>
      new Promise((resolve) => {
        expected = { state, take: resolve };
      }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
};

// ---- What the official package stores and asks for ----

/** The issuer that a callback is about; undefined if the package names none. */
type Context = { readonly issuer: string } | undefined;

type LoginProviderOptions = {
  readonly stateFolder: string;
  readonly redirectUrl: string;
  /** `beginLogin` has begun it, and it is to be finished. False: it is a new one. */
  readonly isBegun: boolean;
};

/**
 * The callbacks of the package during a login, over the stored login.
 *
 * The package calls discoveryState, saveDiscoveryState, clientInformation, saveClientInformation
 * for a new registration, state, saveCodeVerifier and redirectToAuthorization; after the redirect
 * discoveryState, clientInformation, codeVerifier and saveTokens.
 *
 * 1. A login always asks the user: tokens from before are not used.
 * 2. The first thing that comes from another issuer than before replaces all that belonged to the
 *    old one.
 * 3. A client that the settings name is sent to the first issuer only: its secret must not follow
 *    the server elsewhere.
 * 4. A login that is not finished changes nothing of the one before, at the same issuer. Sessions
 *    renew the tokens of before with their own client and discovery, so until the new tokens come
 *    what this login learns is stored beside them, in `pending.begun`.
 */
class StoredLoginProvider implements OAuthClientProvider {
  readonly redirectUrl: string;
  /** The address that the user is to open; null before the package asks for it. */
  address: URL | null = null;
  stored: StoredLogin;
  readonly #stateFolder: string;
  readonly #server: HttpServer;
  /** No answer of this login has come yet: what is stored may be of another issuer. */
  #isNew: boolean;
  /** The stored tokens are those of this login. */
  #hasTokens = false;

  constructor(server: HttpServer, { stateFolder, redirectUrl, isBegun }: LoginProviderOptions) {
    this.#stateFolder = stateFolder;
    this.#server = server;
    this.redirectUrl = redirectUrl;
    this.#isNew = !isBegun;
    const before = readLogin(stateFolder, server);
    const { begun, redirectUrl: asked } = before.pending ?? {};
    // A registration is bound to its redirect.
    if (begun !== undefined && asked === redirectUrl)
      this.stored = { ...before, ...begun, redirectUrl };
    else this.stored = before.redirectUrl === redirectUrl ? before : { ...before, client: null };
  }

  get clientMetadata(): OAuthClientMetadata {
    return {
      client_name: 'Pawl',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method:
        this.#server.oauth?.clientSecret === undefined ? 'none' : 'client_secret_basic',
      application_type: 'native',
    };
  }

  async state(): Promise<string> {
    const state = randomBytes(32).toString('base64url');
    // The package then calls `saveCodeVerifier`.
    await this.#store({ pending: { state, verifier: '', redirectUrl: this.redirectUrl } });
    return state;
  }

  clientInformation(context?: Context): StoredOAuthClientInformation | undefined {
    const { oauth, name } = this.#server;
    if (oauth !== undefined && this.stored.issuer !== '' && !this.#isOf(context))
      throw new Error(
        `it names another authorization server than before, ${context?.issuer ?? ''}. If ` +
          `that is right: pawl mcp logout ${name}, then log in again`,
      );
    if (oauth !== undefined) return { ...configuredClient(oauth), ...(context ?? {}) };
    return this.#isOf(context) ? (this.stored.client ?? undefined) : undefined;
  }

  async saveClientInformation(
    client: StoredOAuthClientInformation,
    context?: Context,
  ): Promise<void> {
    await this.#moveTo(context);
    await this.#store({ client, redirectUrl: this.redirectUrl });
  }

  tokens(context?: Context): StoredOAuthTokens | undefined {
    return this.#hasTokens && this.#isOf(context) ? (this.stored.tokens ?? undefined) : undefined;
  }

  async saveTokens(tokens: StoredOAuthTokens, context?: Context): Promise<void> {
    await this.#moveTo(context);
    this.#hasTokens = true;
    await this.#store({ tokens, pending: null, wantedScope: null });
  }

  async redirectToAuthorization(address: URL): Promise<void> {
    this.address = address;
    // Some authorization servers want it again when the tokens are renewed.
    await this.#store({ askedScope: address.searchParams.get('scope') });
  }

  async saveCodeVerifier(verifier: string): Promise<void> {
    const { pending } = this.stored;
    if (pending !== null) await this.#store({ pending: { ...pending, verifier } });
  }

  codeVerifier(): string {
    const { pending } = this.stored;
    if (pending === null) throw new Error('no login was begun');
    return pending.verifier;
  }

  async saveDiscoveryState(discovery: OAuthDiscoveryState): Promise<void> {
    this.#isNew = false;
    // The specification of MCP says so: without PKCE a stolen code is a login.
    const methods = discovery.authorizationServerMetadata?.code_challenge_methods_supported;
    if (discovery.authorizationServerMetadata !== undefined && methods?.includes('S256') !== true)
      throw new Error(
        'its authorization server does not announce PKCE with S256, without which a login is ' +
          'not safe',
      );
    await this.#store({ discovery });
  }

  /** A new login looks again which authorization server the server names. */
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#isNew ? undefined : (this.stored.discovery ?? undefined);
  }

  async invalidateCredentials(
    scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery',
  ): Promise<void> {
    if (scope === 'all') return this.#store({ ...NO_LOGIN, issuer: this.stored.issuer }); // rule 3
    if (scope === 'client') return this.#store({ client: null });
    if (scope === 'tokens') return this.#store({ tokens: null });
    return this.#store(scope === 'discovery' ? { discovery: null } : { pending: null });
  }

  /** Whether the stored login belongs to this issuer. */
  #isOf(context: Context): boolean {
    return context === undefined || context.issuer === this.stored.issuer;
  }

  /** Forgets what belongs to another issuer (rule 2). */
  async #moveTo(context: Context): Promise<void> {
    if (context === undefined || this.#isOf(context)) return;
    await this.#store({ issuer: context.issuer, client: null, tokens: null });
  }

  async #store(change: Partial<StoredLogin>): Promise<void> {
    await changeLogin(this.#stateFolder, this.#server, async (before) => {
      // A session may have renewed the tokens meanwhile: the old ones must not come back.
      this.stored = { ...this.stored, tokens: before.tokens, ...change };
      const { issuer, pending, client, discovery, askedScope } = this.stored;
      // no tokens are to be kept: they are those of this login, or of another issuer
      if (before.tokens === null || this.#hasTokens || before.issuer !== issuer) return this.stored;
      const begun = { client, discovery, ...(askedScope === undefined ? {} : { askedScope }) };
      // null: nothing is stored, since no login is pending
      return pending === null ? null : { ...before, pending: { ...pending, begun } };
    });
  }
}
