import { existsSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  addServer,
  type EditedConfig,
  removeServer,
  type TomlFormat,
} from '@pawl/agent/extensions/edit-mcp-servers';
import { secretsOfServer } from '@pawl/agent/extensions/mcp/server-secrets';
import { readServers } from '@pawl/agent/extensions/mcp-servers';
import { attempt } from '@pawl/agent/session/attempt';
import { replaceFile } from '@pawl/agent/tools/files/atomic-write';
import { decodeFile, hashLoaded, loadFile } from '@pawl/agent/tools/files/file-text';
import { exitCodes, Stop } from '../../exit-codes.js';
import { usageStop } from '../../flags.js';
import { CONFIG_BYTES_MAX, userFile } from '../../settings/load.js';

/** `pawl mcp add` and `pawl mcp remove`: change the servers in the user's config.toml. */

export type NewServerFlags = {
  readonly url?: string;
  /** `Name: value` */
  readonly header?: readonly string[];
  /** `NAME=value` */
  readonly env?: readonly string[];
  readonly oauthClientId?: string;
  /** `${NAME}` */
  readonly oauthClientSecret?: string;
  readonly oauthRedirectPort?: string;
};

/** The TOML parser is loaded with the first change. */
const loadFormat = async (): Promise<TomlFormat> => {
  const { parse, stringify } = await import('smol-toml');
  return { parse: (text) => parse(text), stringify: (table) => stringify(table) };
};

const refuse = (file: string, why: string): never => {
  throw new Stop(exitCodes.configuration, 'configuration', `${file} is not changed: ${why}`);
};

/** Changes the file; a symlink stays one, and its target is changed. */
const changeFile = async (file: string, change: (text: string) => EditedConfig): Promise<void> => {
  const made = await attempt(() => mkdir(dirname(file), { recursive: true, mode: 0o700 }));
  if (made.kind === 'fault') refuse(file, `its folder can't be made: ${made.fault.message}.`);
  const real = existsSync(file) ? await realpath(file) : join(await realpath(dirname(file)), basename(file));
  const loaded = await loadFile(real);
  const hash = hashLoaded(loaded);
  if (hash === null) return refuse(file, loaded.kind === 'unreadable' ? `${loaded.why}.` : 'it is a folder.');
  const decoded = loaded.kind === 'file' ? decodeFile(loaded.bytes) : null;
  if (decoded !== null && (decoded.kind !== 'text' || decoded.encoding !== 'utf8'))
    return refuse(file, 'it is not text in UTF-8 without a byte order mark.');
  const edited = change(decoded?.text ?? '');
  if (edited.kind === 'refused') return refuse(file, edited.why);
  const bytes = Buffer.from(edited.text);
  if (bytes.length > CONFIG_BYTES_MAX) refuse(file, `it would have more than ${CONFIG_BYTES_MAX} bytes.`);
  const written = await replaceFile(real, bytes, hash);
  if (written.kind === 'changedMeanwhile') refuse(file, 'another program has just changed it. Try again.');
  if (written.kind === 'elsewhere') refuse(file, 'its folder has just been moved. Try again.');
  if (written.kind === 'failed') refuse(file, `${written.why}.`);
};

const pairsOf = (lines: readonly string[], form: RegExp, example: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = form.exec(line) ?? [];
      // The line itself may hold a secret, so it is not repeated.
      if (name === undefined || value === undefined) throw usageStop(`It is written as ${example}.`);
      return [name, value];
    }),
  );

/** The setting `oauth`; null without its flags. */
const oauthTable = ({
  url,
  oauthClientId,
  oauthClientSecret,
  oauthRedirectPort,
}: NewServerFlags): Readonly<Record<string, unknown>> | null => {
  if ([oauthClientId, oauthClientSecret, oauthRedirectPort].every((flag) => flag === undefined)) return null;
  if (url === undefined) throw usageStop('--oauth-client-id is for a server with --url.');
  if (oauthClientId === undefined) throw usageStop('--oauth-client-id is missing: a login needs it.');
  // The secret itself may stand there, so it is not repeated.
  if (oauthClientSecret !== undefined && !/^\$\{[A-Za-z_]\w*\}$/.test(oauthClientSecret))
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    throw usageStop("A secret is named by its variable: --oauth-client-secret '${MY_SECRET}'.");
  if (oauthRedirectPort !== undefined && !/^\d{1,5}$/.test(oauthRedirectPort))
    throw usageStop('--oauth-redirect-port is a number from 1 to 65535.');
  return {
    client_id: oauthClientId,
    ...(oauthClientSecret === undefined ? {} : { client_secret: oauthClientSecret }),
    ...(oauthRedirectPort === undefined ? {} : { redirect_port: Number(oauthRedirectPort) }),
  };
};

const tableOf = (words: readonly string[], flags: NewServerFlags): Readonly<Record<string, unknown>> => {
  const { url, header = [], env = [] } = flags;
  const [command, ...args] = words;
  if ((command === undefined) === (url === undefined))
    throw usageStop('A server has a program or an address: pawl mcp add NAME -- COMMAND ARGS, or --url URL.');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
  const headers = pairsOf(header, /^([\w-]+):\s*(.+)$/s, "--header 'Authorization: Bearer ${MY_TOKEN}'");
  // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
  const variables = pairsOf(env, /^(\w+)=(.*)$/s, "--env 'TOKEN=${MY_TOKEN}'");
  if (url !== undefined && env.length > 0) throw usageStop('--env is for a server with a command.');
  if (url === undefined && header.length > 0) throw usageStop('--header is for a server with --url.');
  const oauth = oauthTable(flags);
  return {
    ...(url === undefined ? { command } : { url }),
    ...(args.length === 0 ? {} : { args }),
    ...(header.length === 0 ? {} : { headers }),
    ...(env.length === 0 ? {} : { env: variables }),
    ...(oauth === null ? {} : { oauth }),
  };
};

/** Whether a secret stands in the settings themselves, without a reference to a variable. */
const holdsSecret = (name: string, table: object): boolean => {
  const [server] = readServers({ [name]: table }, []).servers;
  return server !== undefined && secretsOfServer(server, {}).some(({ value }) => value.trim() !== '');
};

/** Adds a server to the user's file. Returns what to tell the user. */
export const addToFile = async (
  name: string,
  words: readonly string[],
  flags: NewServerFlags,
): Promise<readonly string[]> => {
  const file = userFile(process.env);
  const table = tableOf(words, flags);
  const format = await loadFormat();
  await changeFile(file, (text) => addServer(text, name, table, format));
  const nextStep =
    'oauth' in table
      ? `Log in: pawl mcp login ${name}`
      : `Connect it now, and show its tools: pawl mcp test ${name}`;
  return [
    `Added ${name} to ${file}. ${nextStep}`,
    ...(holdsSecret(name, table)
      ? [
          // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
          'The file now holds a secret. To keep secrets out of it, write ${NAME}: a variable of your environment.',
        ]
      : []),
  ];
};

/** Removes a server from the user's file. Returns what to tell the user. */
export const removeFromFile = async (name: string): Promise<readonly string[]> => {
  const file = userFile(process.env);
  const format = await loadFormat();
  await changeFile(file, (text) => removeServer(text, name, format));
  return [`Removed ${name} from ${file}. Open sessions keep it until they end.`];
};
