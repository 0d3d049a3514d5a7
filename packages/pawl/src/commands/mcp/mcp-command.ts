import { type Connection, createConnection } from '@pawl/agent/extensions/mcp/connection';
import { offersOf } from '@pawl/agent/extensions/mcp/offers/offered-prompts-and-resources';
import { shownStart } from '@pawl/agent/extensions/mcp/server-secrets';
import { declaredName } from '@pawl/agent/extensions/mcp/tools/declare-to-model';
import { offeredTools, wantedTools } from '@pawl/agent/extensions/mcp/tools/sanitize-declarations';
import { readTools, storeOffers, storeTools } from '@pawl/agent/extensions/mcp/tools/tool-cache';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import { plural } from '@pawl/agent/platform/base/plural';
import { oneLine } from '@pawl/terminal/paint-text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../../exit-codes.js';
import { type RunFlags, usageStop } from '../../flags.js';
import { openStateFolder } from '../../sessions/make-state-folder.js';
import { withConfig } from '../../settings/apply-config.js';
import { realWorkspace } from '../../settings/connect-model.js';
import { mcpJsonFiles } from '../../trust/mcp-json-files.js';
import type { NewServerFlags } from './change-servers.js';

/** `pawl mcp list`, `test`, `add`, `remove`, `login`, `logout` and `serve`. Values of variables and headers are never shown. */

export type McpFlags = RunFlags & NewServerFlags & { readonly http?: string | true };

type Place = {
  readonly workspace: string;
  readonly stateFolder: string;
  readonly servers: readonly McpServer[];
};

const LINE_MAX = 300;
/** The first start of a server may download it. */
const START_MS = 120_000;
/** Time limit for the lists of prompts and resources. */
const OFFERS_MS = 20_000;

const say = (text: string): void => writeOut(safe`${oneLine(text, LINE_MAX)}\n`);
const complain = (text: string): void => writeError(safe`${oneLine(text, LINE_MAX)}\n`);

const placeOf = async (flags: McpFlags): Promise<Place> => {
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  const { mcpServers = [] } = await withConfig({}, workspace, { command: 'run', resumed: false, warn });
  return { workspace, stateFolder: openStateFolder(process.env), servers: mcpServers };
};

/** With the servers of the project that the user has allowed. */
const allPlaceOf = async (flags: McpFlags): Promise<Place> => {
  const place = await placeOf(flags);
  if (mcpJsonFiles(place.workspace).length === 0) return place;
  const [{ allowedServers }, { openTrust }] = await Promise.all([
    import('../../trust/project-servers.js'),
    import('@pawl/agent/extensions/trust/trust-store'),
  ]);
  const trust = openTrust(place.stateFolder, complain);
  const { servers } = await allowedServers(place.workspace, place.servers, trust, complain);
  return { ...place, servers: [...place.servers, ...servers] };
};

/** Names what is wrong in files of the project: otherwise a server would be missing without a reason. */
const tellFileFaults = async (workspace: string): Promise<void> => {
  if (mcpJsonFiles(workspace).length === 0) return;
  const { readProjectServers } = await import('../../trust/project-servers.js');
  for (const fault of (await readProjectServers(workspace)).faults) complain(fault);
};

const list = async ({ servers, stateFolder, workspace }: Place): Promise<number> => {
  for (const server of servers) {
    const known = readTools(stateFolder, server);
    const tools =
      known === null
        ? `tools not known: pawl mcp test ${server.name}`
        : plural(wantedTools(server, known).length, 'tool');
    say(`${server.name}  ${shownStart(server)}  ${server.enabled ? tools : 'not enabled'}`);
  }
  if (servers.length === 0)
    complain('No MCP servers. To add one: pawl mcp add NAME -- COMMAND ARGS, or pawl mcp add NAME --url URL');
  await tellFileFaults(workspace);
  return exitCodes.done;
};

/** Shows the prompts and the number of resources, and keeps them for the next session. */
const testOffers = async (connection: Connection, stateFolder: string): Promise<void> => {
  const { server } = connection;
  const offers = offersOf(await connection.listOffers(AbortSignal.timeout(OFFERS_MS)));
  await storeOffers(stateFolder, server, offers);
  for (const { name, description } of offers.prompts)
    say(`- /${declaredName(server.name, name)}${description === '' ? '' : `: ${description}`}`);
  const [first] = offers.resources;
  if (first !== undefined)
    say(`- ${plural(offers.resources.length, 'resource')}, such as @${server.name}:${first.uri}`);
};

/** Connects to a server, shows its tools and keeps them for the next session. Whether it worked. */
const testServer = async (server: McpServer, { workspace, stateFolder }: Place): Promise<boolean> => {
  const connection = createConnection(server, {
    environment: process.env,
    workspace,
    stateFolder,
    startMs: START_MS,
  });
  try {
    const { tools, notes } = offeredTools(await connection.listTools());
    await storeTools(stateFolder, server, tools);
    const wanted = wantedTools(server, tools);
    const left = tools.length - wanted.length;
    say(`${server.name}: ${plural(wanted.length, 'tool')}${left === 0 ? '' : `, ${left} more not wanted`}`);
    for (const { name, description } of wanted)
      say(`- ${name}${description === '' ? '' : `: ${description}`}`);
    for (const note of notes) complain(`- ${note}`);
    await testOffers(connection, stateFolder);
    return true;
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
    return false;
  } finally {
    await connection.close();
  }
};

const test = async (place: Place, name: string | undefined): Promise<number> => {
  const { servers } = place;
  const chosen = servers.filter((server) => (name === undefined ? server.enabled : server.name === name));
  if (name !== undefined && chosen.length === 0) {
    const known = servers.map((server) => server.name).join(', ');
    throw usageStop(
      `There is no MCP server ${name}. ${known === '' ? 'None is configured.' : `There are ${known}.`}`,
    );
  }
  if (chosen.length === 0)
    complain('No MCP servers. To add one: pawl mcp add NAME -- COMMAND ARGS, or pawl mcp add NAME --url URL');
  let worked = true;
  for (const server of chosen) worked = (await testServer(server, place)) && worked;
  return worked ? exitCodes.done : exitCodes.unavailable;
};

/** Adds or removes a server of the user's file. */
const change = async (
  what: 'add' | 'remove',
  name: string | undefined,
  words: readonly string[],
  flags: McpFlags,
): Promise<number> => {
  const usage = { add: 'add NAME -- COMMAND ARGS, or add NAME --url URL', remove: 'remove NAME' }[what];
  if (name === undefined || (what === 'remove' && words.length > 0))
    throw usageStop(`It is written as: pawl mcp ${usage}.`);
  const { addToFile, removeFromFile } = await import('./change-servers.js');
  for (const line of what === 'add' ? await addToFile(name, words, flags) : await removeFromFile(name))
    say(line);
  return exitCodes.done;
};

const serve = async ({ http, ...flags }: McpFlags): Promise<number> => {
  const { serveMcp, serveMcpOverHttp } = await import('./serve-command.js');
  return http === undefined ? serveMcp(flags) : serveMcpOverHttp(flags, http);
};

/** `words`: those behind the name. */
export const runMcp = async (
  what = 'list',
  name: string | undefined,
  words: readonly string[],
  flags: McpFlags,
): Promise<number> => {
  if (what === 'add' || what === 'remove') return change(what, name, words, flags);
  if (what === 'login' && words.length <= 1)
    return (await import('./login-command.js')).runLogin(name, words[0], await allPlaceOf(flags));
  if (words.length > 0) throw usageStop(`pawl mcp ${what} takes no more than one name.`);
  switch (what) {
    case 'list':
      if (name !== undefined)
        throw usageStop('pawl mcp list takes no name. pawl mcp test NAME tests one server.');
      return list(await placeOf(flags));
    case 'serve':
      if (name !== undefined) throw usageStop('pawl mcp serve takes no name.');
      return serve(flags);
    case 'logout':
      return (await import('./login-command.js')).runLogout(name, await allPlaceOf(flags));
    case 'test':
      return test(await placeOf(flags), name);
    default:
      throw usageStop(`pawl mcp has list, test, add, remove, login, logout and serve, not '${what}'.`);
  }
};
