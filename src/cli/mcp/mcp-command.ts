import { plural } from '../../base/plural.js';
import type { McpServer } from '../../config/mcp-servers.js';
import { createConnection } from '../../mcp/connection.js';
import { offeredTools, wantedTools } from '../../mcp/offered-tools.js';
import { readTools, storeTools } from '../../mcp/tool-cache.js';
import { oneLine } from '../../terminal/print.js';
import { makeSafe, safe } from '../../terminal/safe-text.js';
import { writeError, writeOut } from '../../terminal/write.js';
import { exitCodes } from '../exit-codes.js';
import { type RunFlags, usageStop } from '../flags.js';
import { openStateFolder } from '../sessions/make-state-folder.js';
import { withConfig } from '../settings/apply-config.js';
import { realWorkspace } from '../settings/connect-model.js';

/** `pawl mcp list`, `pawl mcp test [NAME]` and `pawl mcp serve`. Values of variables and headers are never shown. */

export type McpFlags = RunFlags;

type Place = {
  readonly workspace: string;
  readonly stateFolder: string;
  readonly servers: readonly McpServer[];
};

const LINE_MAX = 300;
/** The first start of a server may download it. */
const START_MS = 120_000;

const say = (text: string): void => writeOut(safe`${oneLine(text, LINE_MAX)}\n`);
const complain = (text: string): void => writeError(safe`${oneLine(text, LINE_MAX)}\n`);

const placeOf = async (flags: McpFlags): Promise<Place> => {
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  const { mcpServers = [] } = await withConfig({}, workspace, { command: 'run', resumed: false, warn });
  return { workspace, stateFolder: openStateFolder(process.env), servers: mcpServers };
};

/** The program or the address, as the settings have them: a reference to a variable stays one. */
const startOf = (server: McpServer): string =>
  server.kind === 'http' ? server.url.replace(/\?.*$/, '?…') : [server.command, ...server.args].join(' ');

const list = ({ servers, stateFolder }: Place): number => {
  for (const server of servers) {
    const known = readTools(stateFolder, server);
    const tools =
      known === null
        ? `tools not known: pawl mcp test ${server.name}`
        : plural(wantedTools(server, known).length, 'tool');
    say(`${server.name}  ${startOf(server)}  ${server.enabled ? tools : 'not enabled'}`);
  }
  if (servers.length === 0) complain('No MCP servers. docs/mcp.md says how to set one up.');
  return exitCodes.done;
};

/** Connects to a server, shows its tools and keeps them for the next session. Whether it worked. */
const testServer = async (server: McpServer, { workspace, stateFolder }: Place): Promise<boolean> => {
  const connection = createConnection(server, {
    ...{ environment: process.env, workspace, stateFolder, startMs: START_MS },
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
  if (chosen.length === 0) complain('No MCP servers. docs/mcp.md says how to set one up.');
  let worked = true;
  for (const server of chosen) worked = (await testServer(server, place)) && worked;
  return worked ? exitCodes.done : exitCodes.unavailable;
};

export const runMcp = async (what = 'list', name: string | undefined, flags: McpFlags): Promise<number> => {
  if (what === 'list') {
    if (name !== undefined)
      throw usageStop('pawl mcp list takes no name. pawl mcp test NAME tests one server.');
    return list(await placeOf(flags));
  }
  if (what === 'serve') {
    if (name !== undefined) throw usageStop('pawl mcp serve takes no name.');
    return (await import('./serve-command.js')).serveMcp(flags);
  }
  if (what !== 'test') throw usageStop(`pawl mcp has list, test and serve, not '${what}'.`);
  return test(await placeOf(flags), name);
};
