/**
 * The secrets of MCP servers: those in their settings (`serverSecrets`), all of them under names
 * (`secretsByName`), settings without secrets, for display, and the stored logins (`readLogin`,
 * `changeLogin`).
 */

import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { acquireLock, type Lock, whenFree } from '../../journal/lock.js';
import { attempt } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { readRegularSync, writePrivate } from '../../platform/files.js';
import { parseBounded } from '../../platform/untrusted-input.js';
import { type SecretValue, secretValues } from '../../secrets/redactor.js';
import { expandKnown, type HttpServer, type McpServer, type OauthClient } from './server-config.js';

/**
 * The secrets in the settings of a server, which must not stand in a journal, a log or an output:
 * tokens in `env`, `headers`, the arguments and the address. Their names say where they come from:
 * `docs.headers.Authorization`.
 *
 * 1. A header counts as secret unless its name says what it is. A variable or an argument counts if
 *    its name or its form is that of a secret.
 * 2. Values are those with the variables of the environment in them.
 */
export const serverSecrets = (
  server: McpServer,
  environment: ProcessEnvironment,
): readonly SecretValue[] => {
  const expanded = expandKnown(server, environment); // unset variables become empty
  const named = (where: string, values: readonly string[]): readonly SecretValue[] =>
    values.map((value) => ({ name: `${server.name}.${where}`, value }));
  if (expanded.kind === 'http') {
    const headers = Object.entries(expanded.headers);
    return [
      ...headers.flatMap(([name, value]) => named(`headers.${name}`, headerSecrets(name, value))),
      ...named('url', urlSecrets(expanded.url)),
      ...named('oauth.client_secret', [expanded.oauth?.clientSecret ?? ''].filter(Boolean)),
    ];
  }
  const variables = Object.entries(expanded.env);
  return [
    ...variables.flatMap(([name, value]) => named(`env.${name}`, namedSecret(name, value))),
    ...argumentSecrets(expanded.args).flatMap((values) => named('args', values)),
  ];
};

/** Headers that say how to answer, and hold no secret. */
const PLAIN_HEADER =
  /^(?:accept(?:-.*)?|content-type|user-agent|cache-control|origin|referer|mcp-.*|x-request-id)$/i;
/** In front of the secret of a header. */
const SCHEME = /^(?:Bearer|Basic|Token|ApiKey|Digest)\s+/i;

/** The secret in `name: value`, if there is one. */
const namedSecret = (name: string, value: string): readonly string[] =>
  secretValues({ [name.replace(/^-+/, '').replace(/[^\w]/g, '_')]: value }).map(
    (secret) => secret.value,
  );

const headerSecrets = (name: string, value: string): readonly string[] => {
  if (PLAIN_HEADER.test(name)) return [];
  const credential = value.replace(SCHEME, '');
  const decoded = /^Basic\s/i.test(value) ? Buffer.from(credential, 'base64').toString('utf8') : '';
  const password = decoded.slice(decoded.indexOf(':') + 1);
  return [credential, ...(decoded.includes(':') && password !== '' ? [password] : [])];
};

/**
 * The secret part of each argument: `--token=PART`, `--token PART`, `Authorization: PART`, or one
 * of a known form.
 */
const argumentSecrets = (args: readonly string[]): readonly (readonly string[])[] =>
  args.map((written, index) => {
    const [, name, value] = /^(--?[\w.-]+)=(.+)$/s.exec(written) ?? [];
    if (name !== undefined && value !== undefined) return namedSecret(name, value);
    const [, header, content] = /^([\w-]+):\s*(\S.*)$/s.exec(written) ?? [];
    if (
      header !== undefined &&
      content !== undefined &&
      /^(?:authorization|cookie|x-.*)$/i.test(header)
    )
      return headerSecrets(header, content);
    const before = args[index - 1] ?? '';
    const isValue =
      /^--?[A-Za-z]/.test(before) && !before.includes('=') && !written.startsWith('-');
    return namedSecret(isValue ? before : 'argument', written);
  });

const urlSecrets = (address: string): readonly string[] => {
  if (!URL.canParse(address)) return [];
  const { searchParams } = new URL(address);
  const inQuery = [...searchParams].flatMap(([name, value]) => namedSecret(name, value));
  return [...namedSecret('address', address), ...inQuery];
};

/** The secrets of all servers and of the logins at them, by names that are all different. */
export const secretsByName = (
  servers: readonly McpServer[],
  environment: ProcessEnvironment,
  stateFolder: string,
): Readonly<Record<string, string>> => {
  const byName: Record<string, string> = {};
  const listSecrets = (server: McpServer): readonly SecretValue[] => [
    ...serverSecrets(server, environment),
    ...(server.kind === 'http' ? loginSecrets(stateFolder, server) : []).map((value) => ({
      name: `${server.name}.login`,
      value,
    })),
  ];
  for (const { name, value } of servers.flatMap(listSecrets)) {
    let free = name;
    for (let number = 2; Object.hasOwn(byName, free); number++) free = `${name}.${number}`;
    byName[free] = value;
  }
  return byName;
};

// ---- Settings as they are shown ----

const HIDDEN = '…';
/** A value that is only a reference to a variable is no secret itself. */
const isReference = (value: string): boolean => /^\$\{\w+\}$/.test(value);

const hide = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => !isReference(secret))
    .reduce((shown, secret) => shown.replaceAll(secret, HIDDEN), text);

/** The program or the address of a server as the settings have them, without secrets. */
export const shownStart = (server: McpServer): string => {
  if (server.kind === 'http')
    return server.url.replace(/\?.*$/s, `?${HIDDEN}`).replace(/^(\w+:\/\/)[^/]*@/, `$1${HIDDEN}@`);
  const secrets = argumentSecrets(server.args);
  return [
    server.command,
    ...server.args.map((word, index) => hide(word, secrets[index] ?? [])),
  ].join(' ');
};

// ---- The stored logins (OAuth) ----

/*
 * They are in `mcp/oauth/NAME-HASH.json` of the state folder, readable by the user alone.
 *
 * 1. The hash is of the server's address: a server that is moved in the settings needs a new login.
 * 2. Registration and tokens belong to the authorization server that has issued them, and are never
 *    sent to another one.
 * 3. A missing or faulty file means that there is no login.
 * 4. A process that changes it holds the lock beside it, from reading to writing. A refresh token
 *    is used once: many authorization servers end the login of whoever sends it twice.
 */

/** A pending login, until its redirect comes. */
type PendingLogin = {
  readonly state: string;
  /** The secret of PKCE, which proves that the same program began the login. */
  readonly verifier: string;
  readonly redirectUrl: string;
  /** What it has brought already. Absent: that is stored beside, if there were no tokens. */
  readonly begun?: Pick<StoredLogin, 'client' | 'discovery' | 'askedScope'>;
};

export type StoredLogin = {
  /** The authorization server that the rest belongs to; empty if none is known yet. */
  readonly issuer: string;
  /** The registration of Pawl there, which is bound to an address for the redirect. */
  readonly client: StoredOAuthClientInformation | null;
  /** The address that the registration is bound to. */
  readonly redirectUrl: string | null;
  readonly tokens: StoredOAuthTokens | null;
  /** What the server and its authorization server say of themselves. */
  readonly discovery: OAuthDiscoveryState | null;
  readonly pending: PendingLogin | null;
  /**
   * The scopes that the next login requests: those of the last login, and those for whose lack the
   * server has refused a request since. Null: nothing was refused.
   */
  readonly wantedScope: string | null;
  /**
   * The scopes that the last login has asked for; null if it named none. Absent: not known, since
   * an earlier version has stored the login.
   */
  readonly askedScope?: string | null;
};

export const NO_LOGIN: StoredLogin = {
  issuer: '',
  client: null,
  redirectUrl: null,
  tokens: null,
  discovery: null,
  pending: null,
  wantedScope: null,
};

const BYTES_MAX = 1024 * 1024;

const loginPath = (stateFolder: string, { name, url }: HttpServer): string => {
  const hash = createHash('sha256').update(url).digest('hex').slice(0, 24);
  return join(stateFolder, 'mcp', 'oauth', `${name}-${hash}.json`);
};

const isLogin = (value: unknown): value is StoredLogin => {
  if (typeof value !== 'object' || value === null) return false;
  const fits = (key: keyof StoredLogin, type: 'object' | 'string'): boolean =>
    key in value && (Reflect.get(value, key) === null || typeof Reflect.get(value, key) === type);
  return (
    fits('issuer', 'string') &&
    fits('redirectUrl', 'string') &&
    fits('wantedScope', 'string') &&
    fits('client', 'object') &&
    fits('tokens', 'object') &&
    fits('discovery', 'object') &&
    fits('pending', 'object')
  );
};

export const readLogin = (stateFolder: string, server: HttpServer): StoredLogin => {
  const loaded = readRegularSync(loginPath(stateFolder, server), BYTES_MAX);
  if (loaded.kind !== 'file') return NO_LOGIN;
  const parsed = parseBounded(loaded.bytes.toString('utf8'), {
    depthMax: 32,
    charactersMax: BYTES_MAX,
  });
  return parsed.kind === 'ok' && isLogin(parsed.value) ? parsed.value : NO_LOGIN;
};

/** How long another process may take to change the login, and the pauses between looks, in ms. */
const LOCK_WAIT_MS = 40_000;

/** Works while no other process changes the login. */
const underLock = async <T>(file: string, work: () => Promise<T>): Promise<T> => {
  const lock = await lockLogin(file);
  try {
    return await work();
  } finally {
    await lock.release();
  }
};

const lockLogin = async (file: string): Promise<Lock> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const locked = await attempt(() => whenFree(() => acquireLock(`${file}.lock`), LOCK_WAIT_MS));
  if (locked.kind === 'done') return locked.value;
  const { fault } = locked;
  throw new Error(`its login can't be changed: ${fault.message}`, { cause: fault });
};

/**
 * Changes the login while no other process does. `change` gets it as it is stored then, and what it
 * returns is stored; null leaves it as it is.
 */
export const changeLogin = async (
  stateFolder: string,
  server: HttpServer,
  change: (login: StoredLogin) => Promise<StoredLogin | null>,
): Promise<void> => {
  const file = loginPath(stateFolder, server);
  await underLock(file, async () => {
    const changed = await change(readLogin(stateFolder, server));
    if (changed !== null) await writePrivate(file, JSON.stringify(changed));
  });
};

/** Forgets the login. Resolves with whether there was one. */
export const removeLogin = async (stateFolder: string, server: HttpServer): Promise<boolean> => {
  const file = loginPath(stateFolder, server);
  return underLock(file, async () => {
    const had = readLogin(stateFolder, server).tokens !== null;
    await rm(file, { force: true });
    return had;
  });
};

/** The secrets of a login, which must not stand in a journal, a log or an output. */
export const loginSecrets = (stateFolder: string, server: HttpServer): readonly string[] => {
  const { client, tokens, pending } = readLogin(stateFolder, server);
  const clients = [client, pending?.begun?.client].map((one) => one?.client_secret);
  const secrets = [tokens?.access_token, tokens?.refresh_token, ...clients];
  return secrets.filter((secret) => typeof secret === 'string');
};

/** The client that the settings name. */
export const configuredClient = ({
  clientId,
  clientSecret,
}: OauthClient): StoredOAuthClientInformation => ({
  client_id: clientId,
  ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
});
