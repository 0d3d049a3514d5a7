/**
 * `pawl mcp list`, `test`, `add`, `remove`, `login`, `logout` and `serve`. Values of variables and
 * headers are never shown.
 *
 * From top to bottom: the list and the test; `runMcp`, which chooses; login and logout; and adding
 * and removing in the user's config.toml.
 */

import { createInterface } from 'node:readline';
import { type Connection, createConnection } from '@pawl/agent/extensions/mcp/connection';
import { declaredName, offeredTools, selectTools } from '@pawl/agent/extensions/mcp/declare-tools';
import type { LoginResult } from '@pawl/agent/extensions/mcp/log-in';
import { safeOffers } from '@pawl/agent/extensions/mcp/offers';
import {
  expandVariables,
  type HttpServer,
  type McpServer,
  readServers,
} from '@pawl/agent/extensions/mcp/server-config';
import { serverSecrets, shownStart } from '@pawl/agent/extensions/mcp/server-secrets';
import { removeLogin } from '@pawl/agent/extensions/mcp/stored-login';
import { readTools, storeOffers, storeTools } from '@pawl/agent/extensions/mcp/tool';
import { attempt } from '@pawl/agent/platform/attempt';
import { openBrowser } from '@pawl/agent/platform/start-program';
import { plural } from '@pawl/agent/platform/text';
import { oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import type { AllowedServers } from '../sessions/project-trust.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import { mcpJsonFiles, userFile, withConfig } from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import { changeConfigFile, type EditedConfig, type TomlFormat } from '../settings/edit-config.js';
import { addServer, removeServer } from '../settings/edit-mcp-servers.js';
import { type RunFlags, usageStop } from '../settings/flags.js';

export type McpFlags = RunFlags & NewServerFlags;

/** What the subcommands work with. */
type McpContext = {
  readonly workspace: string;
  readonly stateFolder: string;
  /** Those of the user's config.toml, and those of the project that the user has allowed. */
  readonly servers: readonly McpServer[];
  /** Why a server must not be started now; null if it may. */
  readonly whyNot: AllowedServers['whyNot'];
};

const LINE_CHARACTERS_MAX = 300;
/** The first start of a server may download it. */
const START_MS = 120_000;
/** Time limit for the lists of prompts and resources. */
const OFFERS_MS = 20_000;

const NO_SERVERS =
  'No MCP servers. To add one: pawl mcp add NAME -- COMMAND ARGS, or pawl mcp add NAME --url URL';

const NONE_ENABLED = 'No MCP server is enabled. To test one all the same: pawl mcp test NAME';

const say = (text: string): void => writeOut(safe`${oneLine(text, LINE_CHARACTERS_MAX)}\n`);
const complain = (text: string): void => writeError(safe`${oneLine(text, LINE_CHARACTERS_MAX)}\n`);

/** Complains of what is wrong in files of the project, and of servers that are not allowed. */
const readContext = async (flags: McpFlags): Promise<McpContext> => {
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  // without flags: those of this command say nothing about servers that are configured
  const { mcpServers: servers = [] } = await withConfig({}, workspace, {
    command: 'run',
    resumed: false,
    warn,
  });
  const stateFolder = openStateFolder(process.env);
  const context = { workspace, stateFolder, servers, whyNot: async () => null };
  if (mcpJsonFiles(workspace).length === 0) return context;
  const [{ allowedServers }, { openTrust }] = await Promise.all([
    import('../sessions/project-trust.js'),
    import('@pawl/agent/extensions/trust'),
  ]);
  const trust = openTrust(stateFolder, complain);
  const allowed = await allowedServers(workspace, servers, trust, complain);
  return { ...context, servers: [...servers, ...allowed.servers], whyNot: allowed.whyNot };
};

const list = async ({ servers, stateFolder }: McpContext): Promise<number> => {
  for (const server of servers) {
    // as they were stored when the server was last connected
    const known = readTools(stateFolder, server);
    const tools =
      known === null
        ? `tools not known: a session waits at most 5 s for them, or pawl mcp test ${server.name}`
        : plural(selectTools(server, known).length, 'tool'); // those that its settings choose
    say(`${server.name}  ${shownStart(server)}  ${server.enabled ? tools : 'not enabled'}`);
  }
  if (servers.length === 0) complain(NO_SERVERS);
  return exitCodes.done;
};

/**
 * Shows what a server offers beside tools (prompts, and the number of resources), and keeps it for
 * the next session.
 */
const testOffers = async (connection: Connection, stateFolder: string): Promise<void> => {
  const { server } = connection;
  const offers = safeOffers(await connection.listOffers(AbortSignal.timeout(OFFERS_MS)));
  await storeOffers(stateFolder, server, offers);
  for (const { name, description } of offers.prompts)
    say(`- /${declaredName(server.name, name)}${description === '' ? '' : `: ${description}`}`);
  const [first] = offers.resources;
  if (first !== undefined)
    say(`- ${plural(offers.resources.length, 'resource')}, such as @${server.name}:${first.uri}`);
};

/** Connects to a server, shows its tools and keeps them for the next session. Whether it worked. */
const testServer = async (
  server: McpServer,
  { workspace, stateFolder, whyNot }: McpContext,
): Promise<boolean> => {
  const connection = createConnection(server, {
    environment: process.env,
    workspace,
    stateFolder,
    whyNot,
    startMs: START_MS,
  });
  try {
    // in a form that is safe to declare; `notes` name what was changed or left out
    const { tools, notes, leftOut } = offeredTools(await connection.listTools());
    await storeTools(stateFolder, server, tools);
    const selected = selectTools(server, tools);
    const others = tools.length - selected.length;
    say(
      `${server.name}: ` +
        `${plural(selected.length, 'tool')}${others === 0 ? '' : `, ${others} more not wanted`}`,
    );
    for (const { name, description } of selected)
      say(`- ${name}${description === '' ? '' : `: ${description}`}`);
    for (const note of [...notes, ...leftOut]) complain(`- ${note}`);
    await testOffers(connection, stateFolder);
    for (const line of connection.leftOut()) complain(`- ${line}`);
    return true;
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
    return false;
  } finally {
    await connection.close();
  }
};

const test = async (context: McpContext, name: string | undefined): Promise<number> => {
  const { servers } = context;
  const chosen = servers.filter((server) =>
    name === undefined ? server.enabled : server.name === name,
  );
  if (name !== undefined && chosen.length === 0) throw unknownServer(name, servers);
  if (chosen.length === 0) complain(servers.length === 0 ? NO_SERVERS : NONE_ENABLED);
  let worked = true;
  for (const server of chosen) worked = (await testServer(server, context)) && worked;
  return worked ? exitCodes.done : exitCodes.unavailable;
};

/** Adds or removes a server of the user's file. */
const change = async (
  what: 'add' | 'remove',
  name: string | undefined,
  words: readonly string[],
  flags: McpFlags,
): Promise<number> => {
  const usage = { add: 'add NAME -- COMMAND ARGS, or add NAME --url URL', remove: 'remove NAME' }[
    what
  ];
  if (name === undefined || (what === 'remove' && words.length > 0))
    throw usageStop(`It is written as: pawl mcp ${usage}.`);
  for (const line of what === 'add'
    ? await addToFile(name, words, flags)
    : await removeFromFile(name))
    say(line);
  return exitCodes.done;
};

/** `pawl mcp`: `what` is the subcommand, and `words` are those behind the name of the server. */
export const runMcp = async (
  what = 'list',
  name: string | undefined,
  words: readonly string[],
  flags: McpFlags,
): Promise<number> => {
  if (what === 'add' || what === 'remove') return change(what, name, words, flags);
  if (what === 'login') return runLogin(name, words, await readContext(flags));
  if (words.length > 0) throw usageStop(`pawl mcp ${what} takes no more than one name.`);
  switch (what) {
    case 'list':
      if (name !== undefined)
        throw usageStop('pawl mcp list takes no name. pawl mcp test NAME tests one server.');
      return list(await readContext(flags));
    case 'serve':
      if (name !== undefined) throw usageStop('pawl mcp serve takes no name.');
      return (await import('../editor/mcp-server.js')).serveMcp(flags);
    case 'logout':
      return runLogout(name, await readContext(flags));
    case 'test':
      return test(await readContext(flags), name);
    default:
      throw usageStop(
        `pawl mcp has list, test, add, remove, login, logout and serve, not '${what}'.`,
      );
  }
};

const unknownServer = (name: string, servers: readonly McpServer[]): Stop => {
  const known = servers.map((server) => server.name).join(', ');
  return usageStop(
    `There is no MCP server ${name}. ` +
      `${known === '' ? 'None is configured.' : `There are ${known}.`}`,
  );
};

// `pawl mcp login NAME [ADDRESS]` and `pawl mcp logout NAME`

/** A user has this long to log in. */
const LOGIN_MS = 10 * 60 * 1_000;
/** Time limit for a step of a login in which no user takes part. */
const ANSWER_MS = 60_000;

const findHttpServer = (name: string, { servers }: McpContext): HttpServer => {
  const server = servers.find((one) => one.name === name);
  if (server === undefined) throw unknownServer(name, servers);
  if (server.kind === 'http') return server;
  throw usageStop(
    `The MCP server ${name} is a program: it has no login of this kind. Its env can hold a token.`,
  );
};

/** The next line that the user types, unless the signal is aborted before. */
const typedLine = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    const lines = createInterface({ input: process.stdin });
    lines.once('line', (line) => {
      lines.close();
      resolve(line);
    });
    signal.addEventListener('abort', () => lines.close(), { once: true });
  });

const showAddress = (address: string): void => writeOut(safe`${makeSafe(address)}\n`);

const runLoginFlow = async (
  server: HttpServer,
  address: string | undefined,
  { stateFolder, workspace }: McpContext,
): Promise<LoginResult> => {
  const { beginLogin, finishLogin, logIn } = await import('@pawl/agent/extensions/mcp/log-in');
  const environment = process.env;
  const options = { stateFolder, environment };
  // the user acts before or after this command, not during it
  const shortly = { ...options, signal: AbortSignal.timeout(ANSWER_MS) };
  if (address !== undefined) return finishLogin(server, address, shortly);
  if (!process.stdin.isTTY || !process.stderr.isTTY) return beginLogin(server, shortly);
  return logIn(
    server,
    { ...options, signal: AbortSignal.timeout(LOGIN_MS) },
    {
      show(opened) {
        writeError(
          safe`Open this address in a browser. If the browser then finds no page, paste the address of that page here.\n`,
        );
        showAddress(opened);
        openBrowser(opened, environment, workspace);
      },
      typed: typedLine,
      refuse: (why) => writeError(safe`Not taken: ${makeSafe(why)}.\n`),
    },
  );
};

const runLogin = async (
  name: string | undefined,
  [address, ...more]: readonly string[],
  context: McpContext,
): Promise<number> => {
  if (name === undefined || more.length > 0)
    throw usageStop("It is written as: pawl mcp login NAME, or pawl mcp login NAME 'ADDRESS'.");
  const expanded = expandVariables(findHttpServer(name, context), process.env);
  if (expanded.kind === 'missing')
    throw usageStop(`${expanded.names.join(', ')} is not set in the environment.`);
  // expanding keeps the kind
  const login = await attempt(() => runLoginFlow(expanded.server as HttpServer, address, context));
  if (login.kind === 'fault')
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      oneLine(`Not logged in at ${name}: ${login.fault.message}`, LINE_CHARACTERS_MAX),
    );
  const result = login.value;
  if (result.kind === 'unneeded') writeError(safe`${makeSafe(name)} asks for no login.\n`);
  if (result.kind === 'done')
    writeError(
      safe`Logged in at ${makeSafe(name)}. Connect it now: pawl mcp test ${makeSafe(name)}\n`,
    );
  if (result.kind !== 'begun') return exitCodes.done;
  showAddress(result.address);
  writeError(
    safe`Open this address in a browser. The browser is then sent to a page that it does not find: finish with the address of that page: pawl mcp login ${makeSafe(name)} 'ADDRESS'\n`,
  );
  return exitCodes.notPermitted; // not yet logged in
};

const runLogout = async (name: string | undefined, context: McpContext): Promise<number> => {
  if (name === undefined) throw usageStop('It is written as: pawl mcp logout NAME.');
  const existed = await removeLogin(context.stateFolder, findHttpServer(name, context));
  writeError(
    existed
      ? safe`Logged out at ${makeSafe(name)}: Pawl has forgotten its tokens.\n`
      : safe`There was no login at ${makeSafe(name)}.\n`,
  );
  return exitCodes.done;
};

// `pawl mcp add` and `pawl mcp remove`: change the servers in the user's config.toml

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

/** Changes the user's file; throws a `Stop` that says why it could not. */
const changeFile = async (
  file: string,
  edit: (text: string, format: TomlFormat) => EditedConfig,
): Promise<void> => {
  const changed = await changeConfigFile(file, edit);
  if (changed.kind === 'edited') return;
  const message = `${file} is not changed: ${changed.why}`;
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

const readPairs = (
  lines: readonly string[],
  form: RegExp,
  example: string,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = form.exec(line) ?? [];
      // The line itself may hold a secret, so it is not repeated.
      if (name === undefined || value === undefined)
        throw usageStop(`It is written as ${example}.`);
      return [name, value];
    }),
  );

const PORT_MAX = 65_535;

/** The setting `oauth`; null without its flags. */
const oauthTable = ({
  url,
  oauthClientId,
  oauthClientSecret,
  oauthRedirectPort,
}: NewServerFlags): Readonly<Record<string, unknown>> | null => {
  const [flag] = [
    ...(oauthClientId === undefined ? [] : ['--oauth-client-id']),
    ...(oauthClientSecret === undefined ? [] : ['--oauth-client-secret']),
    ...(oauthRedirectPort === undefined ? [] : ['--oauth-redirect-port']),
  ];
  if (flag === undefined) return null;
  if (url === undefined) throw usageStop(`${flag} is for a server with --url.`);
  if (oauthClientId === undefined) throw usageStop(`${flag} needs --oauth-client-id too.`);
  // The secret itself may stand there, so it is not repeated.
  if (oauthClientSecret !== undefined && !/^\$\{[A-Za-z_]\w*\}$/.test(oauthClientSecret))
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    throw usageStop("A secret is named by its variable: --oauth-client-secret '${MY_SECRET}'.");
  const port = /^\d{1,5}$/.test(oauthRedirectPort ?? '') ? Number(oauthRedirectPort) : 0;
  if (oauthRedirectPort !== undefined && (port < 1 || port > PORT_MAX))
    throw usageStop(`--oauth-redirect-port is a number from 1 to ${PORT_MAX}.`);
  return {
    client_id: oauthClientId,
    ...(oauthClientSecret === undefined ? {} : { client_secret: oauthClientSecret }),
    ...(oauthRedirectPort === undefined ? {} : { redirect_port: port }),
  };
};

const serverTable = (
  words: readonly string[],
  flags: NewServerFlags,
): Readonly<Record<string, unknown>> => {
  const { url, header = [], env = [] } = flags;
  const [command, ...args] = words;
  if ((command === undefined) === (url === undefined))
    throw usageStop(
      'A server has a program or an address: pawl mcp add NAME -- COMMAND ARGS, or --url URL.',
    );
  const headers = readPairs(
    header,
    /^([\w-]+):\s*(.+)$/s,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    "--header 'Authorization: Bearer ${MY_TOKEN}'",
  );
  // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
  const variables = readPairs(env, /^(\w+)=(.*)$/s, "--env 'TOKEN=${MY_TOKEN}'");
  if (url !== undefined && env.length > 0) throw usageStop('--env is for a server with a command.');
  if (url === undefined && header.length > 0)
    throw usageStop('--header is for a server with --url.');
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
  // without an environment a reference to a variable is empty
  return server !== undefined && serverSecrets(server, {}).some(({ value }) => value.trim() !== '');
};

/** Adds a server to the user's file. Returns what to tell the user. */
export const addToFile = async (
  name: string,
  words: readonly string[],
  flags: NewServerFlags,
): Promise<readonly string[]> => {
  const file = userFile(process.env);
  const table = serverTable(words, flags);
  await changeFile(file, (text, format) => addServer(text, name, table, format));
  const nextStep =
    'oauth' in table
      ? `Log in: pawl mcp login ${name}`
      : `Connect it now, and show its tools: pawl mcp test ${name}`;
  return [
    `Added ${name} to ${file}. ${nextStep}`,
    ...(holdsSecret(name, table)
      ? [
          // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
          'The file now holds a secret. To keep secrets out of it, write ${NAME}: a variable ' +
            'of your environment.',
        ]
      : []),
  ];
};

/** Removes a server from the user's file. Returns what to tell the user. */
export const removeFromFile = async (name: string): Promise<readonly string[]> => {
  const file = userFile(process.env);
  await changeFile(file, (text, format) => removeServer(text, name, format));
  return [`Removed ${name} from ${file}. Open sessions keep it until they end.`];
};
