/**
 * The secrets of MCP servers: those in their settings (`serverSecrets`), all of them with those of
 * the logins, under names (`secretsByName`), and settings without secrets, for display.
 */

import type { ProcessEnvironment } from '../../platform/environment.js';
import { type SecretValue, secretValues } from '../../secrets/redactor.js';
import { expandKnown, type McpServer } from './server-config.js';
import { loginSecrets } from './stored-login.js';

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
      ...named('url', namedSecret(PLAIN_NAME, expanded.url)),
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

/**
 * The secrets in `name: value`: in an address its passwords and tokens, each as it is written and
 * decoded.
 */
const namedSecret = (name: string, value: string): readonly string[] =>
  secretValues({ [name.replace(/^-+/, '').replace(/[^\w]/g, '_')]: value }).map(
    (secret) => secret.value,
  );

const headerSecrets = (name: string, value: string): readonly string[] => {
  if (PLAIN_HEADER.test(name)) return [];
  const credential = value.replace(SCHEME, '');
  const decoded = /^Basic\s/i.test(value) ? Buffer.from(credential, 'base64').toString('utf8') : '';
  const password = decoded.slice(decoded.indexOf(':') + 1);
  const all = [credential, decoded.includes(':') ? password : ''];
  return all.filter((secret) => secret !== ''); // of an unset variable
};

const ASSIGNMENT = /^(-{0,2}\w[\w.-]*)=(.+)$/s;
/**
 * The secrets in `NAME=VALUE`, as in `env` and `docker -e`, and in `--name=VALUE`, also where the
 * value is such a text again: `--env=NAME=VALUE`.
 */
const assignedSecrets = (word: string): readonly string[] => {
  const [, name = '', value = ''] = ASSIGNMENT.exec(word) ?? [];
  const [, innerName = '', innerValue = ''] = ASSIGNMENT.exec(value) ?? [];
  const found = namedSecret(name, value);
  return found.length > 0 ? found : namedSecret(innerName, innerValue);
};

const HEADER_OPTION = /^(?:-H|--headers?)$/;

/** The secrets in `Authorization: VALUE`, also after `--header` or in `--header=…`. */
const writtenHeaderSecrets = (written: string, before: string): readonly string[] => {
  const [, assigned] = /^--headers?=(.*)$/s.exec(written) ?? [];
  const [, name = '', content = ''] = /^([\w-]+):\s*(\S.*)$/s.exec(assigned ?? written) ?? [];
  const isHeader =
    assigned !== undefined ||
    HEADER_OPTION.test(before) ||
    /^(?:authorization|cookie|x-.*)$/i.test(name);
  return isHeader ? headerSecrets(name, content) : namedSecret(name, content);
};

/** A name that is no secret's, so that only the form of a value counts. */
const PLAIN_NAME = 'argument';

/**
 * The secrets in each argument: in a header, in `NAME=VALUE`, in `--token VALUE`, or by their form.
 * The first kind that has any counts.
 */
const argumentSecrets = (args: readonly string[]): readonly (readonly string[])[] =>
  args.map((written, index) => {
    const before = args[index - 1] ?? '';
    const inHeader = writtenHeaderSecrets(written, before);
    if (inHeader.length > 0) return inHeader;
    const assigned = assignedSecrets(written);
    if (assigned.length > 0) return assigned;
    const isValue =
      /^--?[A-Za-z]/.test(before) && !before.includes('=') && !written.startsWith('-');
    return namedSecret(isValue ? before : PLAIN_NAME, written);
  });

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
