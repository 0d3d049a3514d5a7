import { randomBytes } from 'node:crypto';
import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import type { HttpServer, OauthClient } from '../../mcp-servers.js';
import { NO_LOGIN, readLogin, type StoredLogin, writeLogin } from './login-store.js';

/**
 * What the official package keeps and asks for during a login.
 *
 * 1. A login always asks the user: tokens from before are not used.
 * 2. The first thing that comes from another issuer than before replaces all that belonged to the old one.
 * 3. A client that the settings name is sent to the first issuer only: its secret must not follow the server elsewhere.
 */
export type LoginProvider = OAuthClientProvider & {
  /** The address that the user is to open; null before the package asks for it. */
  readonly address: URL | null;
  readonly stored: StoredLogin;
};

type Context = { readonly issuer: string } | undefined;

class ServerLogin implements LoginProvider {
  readonly redirectUrl: string;
  address: URL | null = null;
  stored: StoredLogin;
  readonly #stateFolder: string;
  readonly #server: HttpServer;
  #isNew = true;
  #hasTokens = false;

  constructor(stateFolder: string, server: HttpServer, redirectUrl: string, resumes: boolean) {
    this.#stateFolder = stateFolder;
    this.#server = server;
    this.redirectUrl = redirectUrl;
    this.#isNew = !resumes;
    const before = readLogin(stateFolder, server);
    // A registration is bound to its redirect.
    this.stored = before.redirectUrl === redirectUrl ? before : { ...before, client: null };
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
    await this.#keep({ pending: { state, verifier: '', redirectUrl: this.redirectUrl } });
    return state;
  }

  clientInformation(context?: Context): StoredOAuthClientInformation | undefined {
    const { oauth, name } = this.#server;
    if (oauth !== undefined && this.stored.issuer !== '' && !this.#isOf(context))
      throw new Error(
        `it names another authorization server than before, ${context?.issuer ?? ''}. If that is right: pawl mcp logout ${name}, then log in again`,
      );
    if (oauth !== undefined) return { ...settledClient(oauth), ...(context ?? {}) };
    return this.#isOf(context) ? (this.stored.client ?? undefined) : undefined;
  }

  async saveClientInformation(client: StoredOAuthClientInformation, context?: Context): Promise<void> {
    await this.#moveTo(context);
    await this.#keep({ client, redirectUrl: this.redirectUrl });
  }

  tokens(context?: Context): StoredOAuthTokens | undefined {
    return this.#hasTokens && this.#isOf(context) ? (this.stored.tokens ?? undefined) : undefined;
  }

  async saveTokens(tokens: StoredOAuthTokens, context?: Context): Promise<void> {
    await this.#moveTo(context);
    this.#hasTokens = true;
    await this.#keep({ tokens, pending: null, wantedScope: null });
  }

  redirectToAuthorization(address: URL): void {
    this.address = address;
  }

  async saveCodeVerifier(verifier: string): Promise<void> {
    const { pending } = this.stored;
    if (pending !== null) await this.#keep({ pending: { ...pending, verifier } });
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
        'its authorization server does not announce PKCE with S256, without which a login is not safe',
      );
    await this.#keep({ discovery });
  }

  /** A new login looks again which authorization server the server names. */
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#isNew ? undefined : (this.stored.discovery ?? undefined);
  }

  async invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): Promise<void> {
    if (scope === 'all') return this.#keep(NO_LOGIN);
    if (scope === 'client') return this.#keep({ client: null });
    if (scope === 'tokens') return this.#keep({ tokens: null });
    return this.#keep(scope === 'discovery' ? { discovery: null } : { pending: null });
  }

  #isOf(context: Context): boolean {
    return context === undefined || context.issuer === this.stored.issuer;
  }

  async #moveTo(context: Context): Promise<void> {
    if (context === undefined || this.#isOf(context)) return;
    await this.#keep({ issuer: context.issuer, client: null, tokens: null });
  }

  async #keep(change: Partial<StoredLogin>): Promise<void> {
    this.stored = { ...this.stored, ...change };
    await writeLogin(this.#stateFolder, this.#server, this.stored);
  }
}

/** The client that the settings name. */
export const settledClient = ({ clientId, clientSecret }: OauthClient): StoredOAuthClientInformation => ({
  client_id: clientId,
  ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
});

export type LoginProviderOptions = {
  readonly stateFolder: string;
  readonly redirectUrl: string;
  /** Whether a login that was begun before is finished. */
  readonly resumes: boolean;
};

export const createLoginProvider = (
  server: HttpServer,
  { stateFolder, redirectUrl, resumes }: LoginProviderOptions,
): LoginProvider => new ServerLogin(stateFolder, server, redirectUrl, resumes);
