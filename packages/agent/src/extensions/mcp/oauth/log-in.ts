import {
  auth,
  Client,
  type FetchLike,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { isSameSecret } from '../../../platform/base/compare-secrets.js';
import type { ProcessEnvironment } from '../../../platform/base/process-environment-type.js';
import { VERSION } from '../../../platform/base/version.js';
import { attempt } from '../../../session/attempt.js';
import type { HttpServer } from '../../mcp-servers.js';
import { mcpFetch } from '../mcp-fetch.js';
import { createLoginProvider, type LoginProvider } from './login-provider.js';
import { readLogin } from './login-store.js';
import { openRedirectListener, type RedirectListener } from './redirect-listener.js';

/** `pawl mcp login`: asks the user in the browser to let Pawl use a server, by OAuth. */

export type LoginResult =
  /** The server has accepted the login. */
  | { readonly kind: 'done' }
  /** The server asks for none. */
  | { readonly kind: 'unneeded' }
  /** The user opens the address; `finishLogin` takes the address that the browser is then sent to. */
  | { readonly kind: 'begun'; readonly address: string };

export type LoginOptions = {
  readonly stateFolder: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
};

export type LoginDialogue = {
  /** Shows the address to the user. */
  show(address: string): void;
  /** Resolves with an address that the user has copied from the browser, if the redirect did not reach this machine. */
  readonly typed?: (signal: AbortSignal) => Promise<string>;
};

const ROUNDS_MAX = 3;
const ADDRESS_MAX = 8_000;

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const stop = (): void => reject(new Error('the login was not finished in time'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });

const LOOPBACK =
  /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0|\[::\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])\.?$/;
const isLoopback = (address: string | URL): boolean => LOOPBACK.test(new URL(address).hostname);

/**
 * The requests of a login: they end with it, and those of a server elsewhere reach no program of this computer, whatever its
 * metadata name.
 */
export const loginFetch = (
  server: Pick<HttpServer, 'url'>,
  { environment, signal }: Pick<LoginOptions, 'environment' | 'signal'>,
): FetchLike => {
  const send = mcpFetch(environment);
  return async (url, init = {}) => {
    if (isLoopback(url) && !isLoopback(server.url))
      throw new Error(`it names ${new URL(url).origin} for its login, which is this computer`);
    const signals = init.signal === undefined || init.signal === null ? [signal] : [init.signal, signal];
    return send(url, { ...init, signal: AbortSignal.any(signals) });
  };
};

/** The address for the user. The server chooses it, so it must be one of the web. */
const addressOf = ({ address }: LoginProvider): string => {
  if (address === null) throw new Error('it asks for a login, but names no address for it');
  if (address.protocol !== 'https:' && address.protocol !== 'http:')
    throw new Error('it names an address for its login that is not one of the web');
  if (address.href.length > ADDRESS_MAX)
    throw new Error('it names an address for its login that is too long');
  return address.href;
};

/** The parameters of an address that has the state of the login; null for any other text. */
const parametersIn = (text: string, state: string): URLSearchParams | null => {
  if (!URL.canParse(text.trim())) return null;
  const { searchParams } = new URL(text.trim());
  return isSameSecret(searchParams.get('state'), state) ? searchParams : null;
};

class ServerLogin {
  readonly #server: HttpServer;
  readonly #options: LoginOptions;
  readonly #provider: LoginProvider;

  constructor(server: HttpServer, options: LoginOptions, provider: LoginProvider) {
    this.#server = server;
    this.#options = options;
    this.#provider = provider;
  }

  /** Begins the login. Resolves with `unneeded` or `done` if the server accepts us as we are. */
  async begin(): Promise<'accepted' | 'asked'> {
    const { wantedScope, tokens } = readLogin(this.#options.stateFolder, this.#server);
    if (wantedScope === null || tokens === null) return this.connect();
    const begun = await auth(this.#provider, {
      serverUrl: this.#server.url,
      scope: wantedScope,
      forceReauthorization: true,
      fetchFn: loginFetch(this.#server, this.#options),
    });
    return begun === 'REDIRECT' ? 'asked' : this.connect();
  }

  /** Connects to the server: whether it accepts the login, or asks for one. */
  async connect(): Promise<'accepted' | 'asked'> {
    const { signal } = this.#options;
    const client = new Client({ name: 'pawl', version: VERSION }, { versionNegotiation: { mode: 'auto' } });
    const tried = await attempt(async () => {
      await client.connect(this.#transport(), { signal });
      await client.listTools(undefined, { signal });
    });
    await attempt(() => client.close()); // nothing is lost: it was only a try
    if (tried.kind === 'done') return 'accepted';
    if (tried.fault instanceof UnauthorizedError) return 'asked';
    throw tried.fault;
  }

  /** Takes what the browser was sent back with. */
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
  provider: LoginProvider,
  listener: RedirectListener,
  { signal }: LoginOptions,
  { show, typed }: LoginDialogue,
): Promise<URLSearchParams> => {
  const state = provider.stored.pending?.state ?? '';
  const over = new AbortController();
  const byHand = async (): Promise<URLSearchParams> => {
    for (;;) {
      const text = await (typed?.(over.signal) ?? new Promise<never>(() => undefined));
      const found = parametersIn(text, state);
      if (found !== null) return found;
    }
  };
  const received = listener.receive(state);
  show(addressOf(provider));
  try {
    return await Promise.race([received, byHand(), aborted(signal)]);
  } finally {
    over.abort();
  }
};

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
    const provider = createLoginProvider(server, { stateFolder, redirectUrl, resumes: false });
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
export const beginLogin = async (server: HttpServer, options: LoginOptions): Promise<LoginResult> => {
  const { stateFolder } = options;
  // Nobody listens there: the user copies the address that the browser is sent to.
  const port = server.oauth?.redirectPort;
  const redirectUrl =
    port === undefined
      ? (readLogin(stateFolder, server).redirectUrl ?? 'http://127.0.0.1:33418/callback')
      : `http://127.0.0.1:${port}/callback`;
  const provider = createLoginProvider(server, { stateFolder, redirectUrl, resumes: false });
  const state = await new ServerLogin(server, options, provider).begin();
  return state === 'accepted' ? { kind: 'unneeded' } : { kind: 'begun', address: addressOf(provider) };
};

/** Finishes a login that was begun, with the address that the browser was sent to. */
export const finishLogin = async (
  server: HttpServer,
  address: string,
  options: LoginOptions,
): Promise<LoginResult> => {
  const { stateFolder } = options;
  const { pending } = readLogin(stateFolder, server);
  if (pending === null) throw new Error(`no login was begun. First: pawl mcp login ${server.name}`);
  const parameters = parametersIn(address, pending.state);
  if (parameters === null)
    throw new Error('this address does not belong to the login that was begun last. Copy the whole address');
  const provider = createLoginProvider(server, {
    stateFolder,
    redirectUrl: pending.redirectUrl,
    resumes: true,
  });
  const login = new ServerLogin(server, options, provider);
  await login.finish(parameters);
  if ((await login.connect()) === 'accepted') return { kind: 'done' };
  throw new Error('it still asks for a login');
};
