import { setTimeout as pause } from 'node:timers/promises';
import {
  type AuthProvider,
  InsufficientScopeError,
  OAuthError,
  refreshAuthorization,
  SdkHttpError,
} from '@modelcontextprotocol/client';
import type { ProcessEnvironment } from '../../../platform/base/process-environment-type.js';
import { attempt } from '../../../session/attempt.js';
import type { HttpServer } from '../../mcp-servers.js';
import { mcpFetch } from '../mcp-fetch.js';
import { settledClient } from './login-provider.js';
import { readLogin, type StoredLogin, writeLogin } from './login-store.js';

/**
 * The login of a session at a server: what `pawl mcp login` has stored.
 *
 * 1. A session never asks the user. Without a login, or if it has expired, the error names the command.
 * 2. Expired tokens are renewed, once for all requests that wait. Another process may have done so meanwhile: the file
 *    is read for each request.
 */
export type SessionLogin = AuthProvider & {
  /** The error in words that say what to do; other errors as they are. Keeps the scopes that a server asks for. */
  explain(error: unknown): Promise<unknown>;
};

type LoginPlace = { readonly stateFolder: string; readonly environment: ProcessEnvironment };

/** Characters of a scope (RFC 6749 3.3). The server chooses it. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E ]{1,300}$/;
/** How long the tokens of a faster process are waited for. */
const [LOOKS, LOOK_MS] = [10, 100];
const ENDED = ['invalid_grant', 'invalid_client', 'unauthorized_client'];

class StoredSessionLogin implements SessionLogin {
  readonly #server: HttpServer;
  readonly #place: LoginPlace;
  #used: string | undefined;
  #renewing: Promise<void> | null = null;

  constructor(server: HttpServer, place: LoginPlace) {
    this.#server = server;
    this.#place = place;
  }

  async token(): Promise<string | undefined> {
    this.#used = this.#read().tokens?.access_token;
    return this.#used;
  }

  onUnauthorized(): Promise<void> {
    this.#renewing ??= this.#renew(this.#used).finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async explain(error: unknown): Promise<unknown> {
    const { name } = this.#server;
    if (error instanceof InsufficientScopeError) {
      const scope = SCOPE.test(error.requiredScope ?? '') ? (error.requiredScope ?? null) : null;
      const login = this.#read();
      const wantedScope = [login.tokens?.scope, scope].filter(Boolean).join(' ');
      if (scope !== null) await this.#write({ ...login, wantedScope });
      return new Error(
        `it asks for more rights${scope === null ? '' : ` (${scope})`}: pawl mcp login ${name}`,
      );
    }
    if (error instanceof SdkHttpError && error.status === 401)
      return new Error(`it refuses the stored login: pawl mcp login ${name}`);
    return error;
  }

  async #renew(used: string | undefined): Promise<void> {
    const { name } = this.#server;
    const login = this.#read();
    const { tokens, discovery, issuer } = login;
    const { oauth } = this.#server;
    const client = oauth === undefined ? login.client : { ...settledClient(oauth), issuer };
    if (tokens === null)
      throw new Error(`it needs a login: pawl mcp login ${name}, or a header with a token`);
    if (tokens.access_token !== used) return;
    const expired = new Error(`its login has expired: pawl mcp login ${name}`);
    const isOfIssuer = client?.issuer === issuer && tokens.issuer === issuer;
    if (client === null || discovery === null || tokens.refresh_token === undefined || !isOfIssuer)
      throw expired;
    const resource = discovery.resourceMetadata?.resource;
    const { refresh_token: refreshToken } = tokens;
    const renewed = await attempt(() =>
      refreshAuthorization(discovery.authorizationServerUrl, {
        ...(discovery.authorizationServerMetadata === undefined
          ? {}
          : { metadata: discovery.authorizationServerMetadata }),
        ...(resource === undefined ? {} : { resource }),
        clientInformation: client,
        refreshToken,
        fetchFn: mcpFetch(this.#place.environment),
      }),
    );
    if (renewed.kind === 'done')
      return this.#write({ ...login, tokens: { ...tokens, ...renewed.value, issuer } });
    if (await this.#isRenewedByOther(used)) return;
    if (!(renewed.fault instanceof OAuthError)) throw renewed.fault;
    if (!ENDED.includes(renewed.fault.code))
      throw new Error(`its login can't be renewed: ${renewed.fault.message}`);
    await this.#write({ ...this.#read(), tokens: null });
    throw expired;
  }

  /**
   * Whether another process has stored newer tokens. It was faster if our refresh token has just been used up, and may
   * still be writing.
   */
  async #isRenewedByOther(used: string | undefined): Promise<boolean> {
    for (let look = 0; look < LOOKS; look++) {
      const { tokens } = this.#read();
      if (tokens !== null && tokens.access_token !== used) return true;
      await pause(LOOK_MS);
    }
    return false;
  }

  #read(): StoredLogin {
    return readLogin(this.#place.stateFolder, this.#server);
  }

  #write(login: StoredLogin): Promise<void> {
    return writeLogin(this.#place.stateFolder, this.#server, login);
  }
}

/** null: the settings of the server have a header for it. */
export const sessionLogin = (server: HttpServer, place: LoginPlace): SessionLogin | null =>
  Object.keys(server.headers).some((name) => name.toLowerCase() === 'authorization')
    ? null
    : new StoredSessionLogin(server, place);
