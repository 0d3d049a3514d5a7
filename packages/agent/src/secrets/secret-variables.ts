/**
 * Which environment variables hold secrets, and how they leave the environment that other processes
 * can read.
 */

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { keyVariables } from '../models/provider-table.js';
import type { ProcessEnvironment } from '../platform/environment.js';

/**
 * Recognizes environment variables that hold secrets.
 *
 * 1. The keys of the providers in packages/agent/src/models/provider-table.ts are included.
 * 2. Others are recognized by name (GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY, PGPASSWORD) or by value:
 *    an address with a password, a token of a known form.
 */

/** Names that no pattern covers, which hold a secret or give access to one. */
const NAMED: ReadonlySet<string> = new Set([
  ...keyVariables,
  'AWS_ACCESS_KEY_ID',
  'AZURE_CLIENT_ID',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'BOTO_CONFIG',
  'CLOUDSDK_CONFIG',
  'KUBECONFIG',
  'DOCKER_AUTH_CONFIG',
  'COMPOSER_AUTH',
  'NETRC',
  'MYSQL_PWD',
  'REDISCLI_AUTH',
  'SSHPASS',
  'SSH_AUTH_SOCK',
  'SSH_AGENT_PID',
  'GPG_AGENT_INFO',
  'GNOME_KEYRING_CONTROL',
  'KRB5CCNAME',
  'XAUTHORITY',
  'SLACK_WEBHOOK_URL',
  'DISCORD_WEBHOOK_URL',
  'SENTRY_DSN',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
]);

/**
 * Of those, variables that only lead to a secret: a socket, a file, an id. Their values are not
 * redacted in output.
 */
const WAYS =
  /^(AWS_ACCESS_KEY_ID|AZURE_CLIENT_ID|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|GNOME_KEYRING_CONTROL|KRB5CCNAME|XAUTHORITY|NETRC|KUBECONFIG|CLOUDSDK_CONFIG|BOTO_CONFIG|GOOGLE_APPLICATION_CREDENTIALS)$/;

const SECRET_WORD =
  /(?:^|_)(?:[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY)S?|API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|MASTER_?KEY|ACCOUNT_?KEY|AUTH_?KEY|LICENSE_?KEY|SSH_?KEY|DEPLOY_?KEY|ADMIN_?KEY|SERVICE_?KEY|PASS|PWD|PAT|JWT|BEARER|COOKIE|AUTH|AUTHTOKEN|KEY)(?:_|$)/;
/**
 * Endings of names that describe a secret instead of holding one: its length, its file, its limit.
 */
const ABOUT =
  /(?:_(?:FILE|FILES|PATH|DIR|FOLDER|HOME|LENGTH|SIZE|LIMIT|MAX|MIN|COUNT|TTL|EXPIRY|EXPIRES|EXPIRES_IN|TIMEOUT|NAME|TYPE|METHOD|URL|URI|HOST|PORT|ENABLED|MODE|PROVIDER|DOMAIN|AUDIENCE|ISSUER|SOCK|REQUIRE|PROMPT|ALGORITHM|REGION|VERSION|ENDPOINT|HELPER)|(?:^|_)(?:MAX|MIN|NUM|TOTAL)_TOKENS?)$/;
/** Names with a secret word that mean something else, such as the programs in *ASKPASS*. */
const HARMLESS =
  /^(?:PWD|OLDPWD|INIT_CWD|PUBLIC_KEY|.*_PUBLIC_KEY|CACHE_KEY|PRIMARY_KEY|SORT_KEY|KEYBOARD.*|.*_KEYBOARD|XDG_.*|.*ASKPASS.*|GPG_KEY|MAX_.*_TOKENS|.*_MAX_TOKENS|TOKENIZERS_.*|PASSWORD_STORE_.*|COOKIECUTTER_.*)$/;
/**
 * npm's credentials, named after a registry's address: `npm_config_//registry.example/:_authToken`.
 */
const NPM_AUTH = /^npm_config_.*(?:_auth|_authtoken|_password|:_\w+)$/i;

const KNOWN_FORM =
  /^(?:sk-[\w-]{16,}|gh[opusr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|npm_\w{20,}|hf_\w{20,}|pypi-[\w-]{20,}|dop_v1_\w{32,}|[rs]k_(?:live|test)_\w{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*)$/;

/** Proxies, which programs need to reach anything. Their passwords are still redacted in output. */
const PROXY = /^(?:https?|all|ftp|no)_proxy$/i;

/** The password in an address, `scheme://user:password@host`; null if there is none. */
const passwordIn = (value: string): string | null => {
  const [, password] = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:([^\s/@]+)@/i.exec(value) ?? [];
  return password ?? null;
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not a valid escape: keep the text
  }
};

const isSecretName = (name: string): boolean => {
  if (NAMED.has(name) || NPM_AUTH.test(name)) return true;
  const upper = name.toUpperCase();
  return SECRET_WORD.test(upper) && !ABOUT.test(upper) && !HARMLESS.test(upper);
};

const isSecret = (name: string, value: string): boolean =>
  isSecretName(name) || KNOWN_FORM.test(value.trim()) || passwordIn(value) !== null;

/**
 * Names of the variables that a command must not inherit: keys, tokens, passwords, and sockets of
 * agents that hold them. Proxies with a password are not among them, since nothing can be reached
 * without them.
 */
export const secretVariables = (environment: ProcessEnvironment): readonly string[] =>
  Object.entries(environment)
    .filter(([name, value]) => value !== undefined && !PROXY.test(name) && isSecret(name, value))
    .map(([name]) => name);

export type SecretValue = {
  /** The variable that holds it. */
  readonly name: string;
  readonly value: string;
};

/** Values that must not be shown; of an address only the password. */
export const secretValues = (environment: ProcessEnvironment): readonly SecretValue[] =>
  Object.entries(environment).flatMap(([name, whole]): readonly SecretValue[] => {
    const value = whole?.trim() ?? '';
    if (value === '' || WAYS.test(name) || !isSecret(name, value)) return [];
    const password = passwordIn(value);
    if (password === null) return [{ name, value }];
    return [...new Set([password, decoded(password)])].map((one) => ({ name, value: one }));
  });

/** The secrets of an environment, and `known` ones. */
export const findSecrets = (
  environment: ProcessEnvironment,
  known: Readonly<Record<string, string>>,
): readonly SecretValue[] => [
  ...Object.entries(known).map(([name, value]) => ({ name, value })),
  ...secretValues(environment),
];

/**
 * Removes secrets from `/proc/PID/environ`.
 *
 * The kernel shows there the environment that a process was started with, whatever the process has
 * changed since. Any process of the same user may read it, so an unfenced command could find the
 * keys that its own environment lacks. So the bytes in our own memory are overwritten, after the
 * variables were copied.
 *
 * 1. `process.env` keeps every value.
 * 2. Nothing is written unless the memory holds exactly the expected bytes.
 * 3. It is best effort: on other systems, or without /proc, nothing happens. It does not protect
 *    against processes that may read our memory (root, or a debugger if the system allows one).
 */

/** Index in /proc/self/stat, counted after the name, of the environment's address (field 50). */
const ENVIRONMENT_START = 47;

type Entry = { readonly name: string; readonly bytes: Buffer; readonly at: number };

const parseEntries = (block: Buffer): readonly Entry[] => {
  const entries: Entry[] = [];
  for (let at = 0; at < block.length; ) {
    const end = block.indexOf(0, at);
    const stop = end < 0 ? block.length : end;
    const bytes = block.subarray(at, stop);
    const sign = bytes.indexOf('=');
    if (sign > 0) entries.push({ name: bytes.toString('latin1', 0, sign), bytes, at });
    at = stop + 1;
  }
  return entries;
};

/** Moves a variable to new memory, which the C library allocates for every value that is set. */
const moveAway = (name: string, environment: NodeJS.ProcessEnv): void => {
  const value = environment[name];
  if (value !== undefined) environment[name] = value;
};

const overwrite = (memory: number, address: number, { name, bytes }: Entry): void => {
  const there = Buffer.alloc(bytes.length);
  readSync(memory, there, 0, there.length, address);
  if (!there.equals(bytes)) return; // other bytes than expected are never written over
  const from = name.length + 1;
  const length = bytes.length - from;
  writeSync(memory, Buffer.alloc(length), 0, length, address + from);
};

/** Call it once, before anything keeps references to the environment. Never throws. */
export const hideEnvironment = (): void => {
  if (process.platform !== 'linux') return;
  // also includes proxies with a password
  const held = secretValues(process.env).map(({ name }) => name);
  const names = new Set([...secretVariables(process.env), ...held]);
  if (names.size === 0) return;
  let memory: number | null = null;
  try {
    const status = readFileSync('/proc/self/stat', 'latin1');
    const start = Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[ENVIRONMENT_START]);
    const entries = parseEntries(readFileSync('/proc/self/environ')).filter(({ name }) =>
      names.has(name),
    );
    memory = openSync('/proc/self/mem', 'r+');
    for (const entry of entries) {
      const value = process.env[entry.name];
      moveAway(entry.name, process.env);
      overwrite(memory, start + entry.at, entry);
      // If the C library did not move it, restore it from our copy.
      if (value !== undefined && process.env[entry.name] !== value) process.env[entry.name] = value;
    }
  } catch {
    // Without /proc the environment stays as it was.
  } finally {
    if (memory !== null) closeSync(memory);
  }
};
