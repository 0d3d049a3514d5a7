/**
 * The logins at MCP servers (OAuth), in `mcp/oauth/NAME-HASH.json` of the state folder, readable by
 * the user alone.
 *
 * 1. The hash is of the server's address: a server that is moved in the settings needs a new login.
 * 2. Registration and tokens belong to the authorization server that has issued them, and are never
 *    sent to another one.
 * 3. A missing or faulty file means that there is no login. One that the system does not let us
 *    read is not replaced.
 * 4. A process that changes it holds the lock beside it, from reading to writing. A refresh token
 *    is used once: many authorization servers end the login of whoever sends it twice.
 */

import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { acquireLock, whenFree } from '../../journal/lock.js';
import { attempt, attemptNow } from '../../platform/attempt.js';
import { readRegularSync, writePrivate } from '../../platform/files.js';
import { isJsonObject, parseBounded } from '../../platform/untrusted-input.js';
import type { HttpServer, OauthClient } from './server-config.js';

/** A pending login, until its redirect comes. */
type PendingLogin = {
  readonly state: string;
  /** The secret of PKCE, which proves that the same program began the login. */
  readonly verifier: string;
  readonly redirectUrl: string;
  /** What this login has stored already. Absent: that stands beside, if there were no tokens. */
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
   * The scopes that the next login requests: those of the last one, and those whose lack made the
   * server refuse a request since. Null: nothing was refused.
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
  if (!isJsonObject(value)) return false;
  const { issuer, client, redirectUrl, tokens, discovery, pending } = value;
  const { wantedScope, askedScope = null } = value;
  return (
    typeof issuer === 'string' &&
    [redirectUrl, wantedScope, askedScope].every(
      (one) => one === null || typeof one === 'string',
    ) &&
    [client, tokens, discovery, pending].every((one) => one === null || isJsonObject(one))
  );
};

/** Throws if the system does not let us read the file. */
const loadLogin = (file: string): StoredLogin => {
  const loaded = readRegularSync(file, BYTES_MAX);
  if (loaded.kind === 'unusable') throw new Error(`its login can't be read: ${loaded.why}`);
  if (loaded.kind !== 'file') return NO_LOGIN;
  const parsed = parseBounded(loaded.bytes.toString('utf8'), {
    depthMax: 32,
    charactersMax: BYTES_MAX,
  });
  return parsed.kind === 'ok' && isLogin(parsed.value) ? parsed.value : NO_LOGIN;
};

export const readLogin = (stateFolder: string, server: HttpServer): StoredLogin => {
  const loaded = attemptNow(() => loadLogin(loginPath(stateFolder, server)));
  return loaded.kind === 'done' ? loaded.value : NO_LOGIN; // whoever needs it asks for a new one
};

/** How long another process may take to change the login, in ms. */
const LOCK_WAIT_MS = 40_000;

/** Works while no other process changes the login. */
const underLock = async <T>(file: string, work: () => Promise<T>): Promise<T> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const locked = await attempt(() => whenFree(() => acquireLock(`${file}.lock`), LOCK_WAIT_MS));
  if (locked.kind === 'fault') {
    const { fault } = locked;
    throw new Error(`its login can't be changed: ${fault.message}`, { cause: fault });
  }
  try {
    return await work();
  } finally {
    await locked.value.release();
  }
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
    const changed = await change(loadLogin(file));
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
  const { access_token: access, refresh_token: refresh, id_token: identity } = tokens ?? {};
  const secrets = [access, refresh, identity, pending?.verifier, ...clients];
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
