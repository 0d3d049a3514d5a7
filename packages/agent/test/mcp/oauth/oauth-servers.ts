import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { anyInput } from '../../../../../test/kit/mcp/test-servers.js';
import { atEnd, type TestScope } from '../../../../../test/temporary-folder.js';
import { type HttpServer, readServers } from '../../../src/extensions/mcp/server-config.js';

/** A strict authorization server, and an MCP server that wants its tokens; both on loopback in this process. */

const bodyOf = async (incoming: IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer); // a stream without an encoding
  return Buffer.concat(pieces).toString('utf8');
};

const serve = async (
  scope: TestScope,
  answer: (incoming: IncomingMessage, outgoing: ServerResponse, url: URL) => Promise<void>,
): Promise<string> => {
  const http = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', `http://${incoming.headers.host}`);
    answer(incoming, outgoing, url).catch((error: unknown) =>
      outgoing.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  atEnd(scope, () => {
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`; // it listens on a port
};

const json = (outgoing: ServerResponse, status: number, value: unknown): void => {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

type Grant = {
  readonly client: string;
  readonly redirect: string;
  readonly challenge: string;
  readonly scope: string;
};

export type AuthorizationServer = {
  readonly issuer: string;
  /** Requests by path, in order. */
  readonly seen: string[];
  /** Access tokens that are valid now, with their scopes. */
  readonly valid: Map<string, string>;
  readonly clients: Map<string, readonly string[]>;
  /** Lets all access tokens expire. */
  expire(): void;
  /** Forgets refresh tokens too. */
  revoke(): void;
  refuses: boolean;
  /** Fields of the metadata that replace the usual ones; undefined leaves one out. */
  metadata: object;
  /** Called with each request for tokens; then none is answered. */
  silent: (() => void) | null;
  /** Each renewal waits for it. */
  beforeRenewal: () => Promise<void>;
  /** The scopes that renewals have asked for. */
  readonly renewed: (string | null)[];
};

/** `registered`: a client with a secret. Then no other can be registered. */
export const authorizationServer = async (
  scope: TestScope,
  registered: {
    readonly id: string;
    readonly secret: string;
    readonly redirect: string;
  } | null = null,
): Promise<AuthorizationServer> => {
  const codes = new Map<string, Grant>();
  const refreshTokens = new Map<string, { readonly client: string; readonly scope: string }>();
  const issue = (client: string, granted: string): object => {
    const [access, refresh] = [`at-${randomUUID()}`, `rt-${randomUUID()}`];
    server.valid.set(access, granted);
    refreshTokens.set(refresh, { client, scope: granted });
    return {
      access_token: access,
      refresh_token: refresh,
      token_type: 'Bearer',
      expires_in: 60,
      scope: granted,
    };
  };
  /** The answer of the token endpoint: new tokens, or the name of an error. */
  const exchange = (form: URLSearchParams): object | string => {
    const client = form.get('client_id') ?? '';
    if (!server.clients.has(client)) return 'invalid_client';
    if (registered !== null && form.get('client_secret') !== registered.secret)
      return 'invalid_client';
    if (form.get('grant_type') === 'refresh_token') {
      const known = refreshTokens.get(form.get('refresh_token') ?? '');
      refreshTokens.delete(form.get('refresh_token') ?? '');
      server.renewed.push(form.get('scope'));
      if (known?.client === client) return issue(client, known.scope);
      server.revoke(); // a token that is used twice was stolen
      return 'invalid_grant';
    }
    const grant = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '');
    const fits = grant?.client === client && grant.redirect === form.get('redirect_uri');
    if (grant === undefined || !fits || grant.challenge !== verifier.digest('base64url'))
      return 'invalid_grant';
    return issue(client, grant.scope);
  };
  const token = async (form: URLSearchParams, outgoing: ServerResponse): Promise<void> => {
    if (form.get('grant_type') === 'refresh_token') await server.beforeRenewal();
    const given = exchange(form);
    if (typeof given === 'string') json(outgoing, 400, { error: given });
    else json(outgoing, 200, given);
  };
  const authorize = (given: URLSearchParams, outgoing: ServerResponse): void => {
    const [client, redirect] = [given.get('client_id') ?? '', given.get('redirect_uri') ?? ''];
    if (!server.clients.get(client)?.includes(redirect))
      return void outgoing.writeHead(400).end('unknown redirect');
    const back = new URL(redirect);
    back.searchParams.set('state', given.get('state') ?? '');
    back.searchParams.set('iss', issuer);
    if (server.refuses) back.searchParams.set('error', 'access_denied');
    else {
      const code = randomUUID();
      const granted = given.get('scope') ?? 'read';
      codes.set(code, {
        client,
        redirect,
        challenge: given.get('code_challenge') ?? '',
        scope: granted,
      });
      back.searchParams.set('code', code);
    }
    outgoing.writeHead(302, { location: back.href }).end();
  };
  const issuer = await serve(scope, async (incoming, outgoing, url) => {
    server.seen.push(url.pathname);
    if (url.pathname === '/.well-known/oauth-authorization-server')
      return json(outgoing, 200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        ...(registered === null ? { registration_endpoint: `${issuer}/register` } : {}),
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: [
          registered === null ? 'none' : 'client_secret_post',
        ],
        authorization_response_iss_parameter_supported: true,
        ...server.metadata,
      });
    if (url.pathname === '/register' && registered === null) {
      const metadata = JSON.parse(await bodyOf(incoming));
      const id = `client-${server.clients.size + 1}`;
      server.clients.set(id, metadata.redirect_uris);
      return json(outgoing, 201, { ...metadata, client_id: id });
    }
    if (url.pathname === '/authorize') return authorize(url.searchParams, outgoing);
    if (url.pathname === '/token' && server.silent !== null) return server.silent();
    if (url.pathname === '/token')
      return token(new URLSearchParams(await bodyOf(incoming)), outgoing);
    outgoing.writeHead(404).end();
  });
  const server: AuthorizationServer = {
    issuer,
    seen: [],
    valid: new Map(),
    clients: new Map(registered === null ? [] : [[registered.id, [registered.redirect]]]),
    refuses: false,
    metadata: {},
    silent: null,
    beforeRenewal: async () => undefined,
    renewed: [],
    expire: () => server.valid.clear(),
    revoke() {
      server.valid.clear();
      refreshTokens.clear();
    },
  };
  return server;
};

export type GuardedServer = {
  readonly settings: HttpServer;
  /** The tokens that were sent to it. */
  readonly tokens: string[];
  /** The authorization server that it names and believes. */
  issuedBy: AuthorizationServer;
  /** The scope that calls of tools need; null for none. */
  callScope: string | null;
  /** Each refusal of a token waits for it. */
  beforeRefusal: () => Promise<void>;
};

/** An MCP server with one tool, `act`. */
export const guardedServer = async (
  scope: TestScope,
  issuedBy: AuthorizationServer,
): Promise<GuardedServer> => {
  const handler = createMcpHandler(() => {
    const mcp = new McpServer({ name: 'test', version: '1' });
    mcp.registerTool('act', { inputSchema: anyInput() }, async () => ({
      content: [{ type: 'text', text: 'acted' }],
    }));
    return mcp;
  });
  const challenge = (outgoing: ServerResponse, status: number, more: string): void =>
    void outgoing
      .writeHead(status, {
        'www-authenticate': `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"${more}`,
      })
      .end();
  const base = await serve(scope, async (incoming, outgoing, url) => {
    if (url.pathname === '/.well-known/oauth-protected-resource/mcp')
      return json(outgoing, 200, {
        resource: `${base}/mcp`,
        authorization_servers: [guarded.issuedBy.issuer],
        scopes_supported: ['read'],
      });
    if (url.pathname !== '/mcp') return void outgoing.writeHead(404).end();
    const token = incoming.headers.authorization?.replace('Bearer ', '') ?? '';
    if (token !== '') guarded.tokens.push(token);
    const granted = guarded.issuedBy.valid.get(token);
    const body = await bodyOf(incoming);
    if (granted === undefined) {
      await guarded.beforeRefusal();
      return challenge(outgoing, 401, '');
    }
    const { callScope } = guarded;
    if (
      callScope !== null &&
      body.includes('"tools/call"') &&
      !granted.split(' ').includes(callScope)
    )
      return challenge(outgoing, 403, `, error="insufficient_scope", scope="${callScope}"`);
    const headers = Object.entries(incoming.headers).map(([key, value]) => [key, String(value)]);
    const { method = 'GET' } = incoming;
    const init = { method, headers: Object.fromEntries(headers), ...(body === '' ? {} : { body }) };
    const response = await handler.fetch(new Request(url, init));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    for await (const piece of response.body ?? []) outgoing.write(piece);
    outgoing.end();
  });
  atEnd(scope, () => handler.close());
  const [settings] = readServers({ web: { url: `${base}/mcp` } }, []).servers;
  const guarded: GuardedServer = {
    settings: settings as HttpServer,
    tokens: [],
    issuedBy,
    callScope: null, // it has a url
    beforeRefusal: async () => undefined,
  };
  return guarded;
};

/** What a browser does whose user agrees: it follows the redirect. Resolves with the text of the last page. */
export const browse = async (address: string): Promise<string> => (await fetch(address)).text();
