import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { parseBounded } from '../../../platform/base/parse-bounded-json.js';
import { readRegularSync } from '../../../platform/files/regular-file.js';
import { writePrivate } from '../../../platform/files/write-private-file.js';
import type { HttpServer } from '../../mcp-servers.js';

/**
 * The logins at MCP servers: `mcp/oauth/NAME-HASH.json` in the state folder, readable by the user alone.
 *
 * 1. The hash is of the server's address: a server that is moved in the settings needs a new login.
 * 2. Registration and tokens belong to the issuer that gave them, and are never sent to another one.
 * 3. A missing or faulty file means that there is no login.
 */

/** A login that was begun, until its redirect comes. */
export type PendingLogin = {
  readonly state: string;
  readonly verifier: string;
  readonly redirectUrl: string;
};

export type StoredLogin = {
  /** The authorization server that the rest belongs to; empty if none is known yet. */
  readonly issuer: string;
  /** The registration of Pawl there, which is bound to an address for the redirect. */
  readonly client: StoredOAuthClientInformation | null;
  readonly redirectUrl: string | null;
  readonly tokens: StoredOAuthTokens | null;
  readonly discovery: OAuthDiscoveryState | null;
  readonly pending: PendingLogin | null;
  /** Scopes that the server has asked for in addition; the next login requests them. */
  readonly wantedScope: string | null;
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

const placeOf = (stateFolder: string, { name, url }: HttpServer): string => {
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
  const loaded = readRegularSync(placeOf(stateFolder, server), BYTES_MAX);
  if (loaded.kind !== 'file') return NO_LOGIN;
  const parsed = parseBounded(loaded.bytes.toString('utf8'), { depthMax: 32, charactersMax: BYTES_MAX });
  return parsed.kind === 'ok' && isLogin(parsed.value) ? parsed.value : NO_LOGIN;
};

export const writeLogin = (stateFolder: string, server: HttpServer, login: StoredLogin): Promise<void> =>
  writePrivate(placeOf(stateFolder, server), JSON.stringify(login));

/** Forgets the login. Whether there was one. */
export const removeLogin = async (stateFolder: string, server: HttpServer): Promise<boolean> => {
  const had = readLogin(stateFolder, server).tokens !== null;
  await rm(placeOf(stateFolder, server), { force: true });
  return had;
};

/** The secrets of a login, which must not stand in a journal, a log or an output. */
export const loginSecrets = (stateFolder: string, server: HttpServer): readonly string[] => {
  const { client, tokens } = readLogin(stateFolder, server);
  const secrets = [tokens?.access_token, tokens?.refresh_token, client?.client_secret];
  return secrets.filter((secret) => typeof secret === 'string');
};
