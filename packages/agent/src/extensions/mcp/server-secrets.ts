import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { type SecretValue, secretValues } from '../../platform/secrets/secret-variables.js';
import type { McpServer } from '../mcp-servers.js';
import { expandKnown } from './expand-variables.js';
import { loginSecrets } from './oauth/login-store.js';

/**
 * The secrets in the settings of a server, which must not stand in a journal, a log or an output: tokens in `env`,
 * `headers`, the arguments and the address.
 *
 * 1. A header counts as secret unless its name says what it is. A variable or an argument counts if its name or its form
 *    is that of a secret.
 * 2. Values are those with the variables of the environment in them.
 */

/** Headers that say how to answer, and hold no secret. */
const PLAIN_HEADER =
  /^(?:accept(?:-.*)?|content-type|user-agent|cache-control|origin|referer|mcp-.*|x-request-id)$/i;
const SCHEME = /^(?:Bearer|Basic|Token|ApiKey|Digest)\s+/i;

/** The secret in `name: value`, if there is one. */
const namedSecret = (name: string, value: string): readonly string[] =>
  secretValues({ [name.replace(/^-+/, '').replace(/[^\w]/g, '_')]: value }).map((secret) => secret.value);

const headerSecrets = (name: string, value: string): readonly string[] => {
  if (PLAIN_HEADER.test(name)) return [];
  const credential = value.replace(SCHEME, '');
  const decoded = /^Basic\s/i.test(value) ? Buffer.from(credential, 'base64').toString('utf8') : '';
  const password = decoded.slice(decoded.indexOf(':') + 1);
  return [credential, ...(decoded.includes(':') && password !== '' ? [password] : [])];
};

/** The secret part of each argument: `--token=PART`, `--token PART`, `Authorization: PART`, or one of a known form. */
const argumentSecrets = (args: readonly string[]): readonly (readonly string[])[] =>
  args.map((written, index) => {
    const [, name, value] = /^(--?[\w.-]+)=(.+)$/s.exec(written) ?? [];
    if (name !== undefined && value !== undefined) return namedSecret(name, value);
    const [, header, content] = /^([\w-]+):\s*(\S.*)$/s.exec(written) ?? [];
    if (header !== undefined && content !== undefined && /^(?:authorization|cookie|x-.*)$/i.test(header))
      return headerSecrets(header, content);
    const before = args[index - 1] ?? '';
    const isValue = /^--?[A-Za-z]/.test(before) && !before.includes('=') && !written.startsWith('-');
    return namedSecret(isValue ? before : 'argument', written);
  });

const urlSecrets = (address: string): readonly string[] => {
  if (!URL.canParse(address)) return [];
  const { searchParams } = new URL(address);
  const inQuery = [...searchParams].flatMap(([name, value]) => namedSecret(name, value));
  return [...namedSecret('address', address), ...inQuery];
};

/** The secrets of a server, under names that say where they come from: `docs.headers.Authorization`. */
export const secretsOfServer = (
  server: McpServer,
  environment: ProcessEnvironment,
): readonly SecretValue[] => {
  const expanded = expandKnown(server, environment);
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

/** The secrets of all servers and of the logins at them, by names that are all different. */
export const secretsByName = (
  servers: readonly McpServer[],
  environment: ProcessEnvironment,
  stateFolder: string,
): Readonly<Record<string, string>> => {
  const byName: Record<string, string> = {};
  const secretsOf = (server: McpServer): readonly SecretValue[] => [
    ...secretsOfServer(server, environment),
    ...(server.kind === 'http' ? loginSecrets(stateFolder, server) : []).map((value) => ({
      name: `${server.name}.login`,
      value,
    })),
  ];
  for (const { name, value } of servers.flatMap(secretsOf)) {
    let free = name;
    for (let number = 2; Object.hasOwn(byName, free); number++) free = `${name}.${number}`;
    byName[free] = value;
  }
  return byName;
};

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
  return [server.command, ...server.args.map((word, index) => hide(word, secrets[index] ?? []))].join(' ');
};
