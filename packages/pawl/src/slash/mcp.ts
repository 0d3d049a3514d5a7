import type { ConnectionStatus } from '@pawl/agent/extensions/mcp/connection';
import type { ServerStatus } from '@pawl/agent/extensions/mcp/session-servers';
import { plural } from '@pawl/agent/platform/base/plural';
import { harmless, oneLine } from '@pawl/terminal/paint-text';
import { type Command, NotNow } from './command-context.js';

/** `/mcp`: the MCP servers of the session, the tools of one, and connecting again. */

const WHY_MAX = 300;

const stateText = (connection: ConnectionStatus): string => {
  switch (connection.kind) {
    case 'off':
      return 'not connected yet';
    case 'connecting':
    case 'connected':
      return connection.kind;
    case 'failed':
      return `failed: ${oneLine(connection.why, WHY_MAX)}`;
  }
};

const rowOf = ({ name, connection, tools, declined }: ServerStatus): string => {
  const asked = declined === 0 ? '' : `  ${plural(declined, 'question')} declined`;
  return `  ${name}  ${plural(tools.length, 'tool')}  ${stateText(connection)}${asked}`;
};

const HINT = `  /mcp NAME lists the tools of one; /mcp connect tries again what failed. Tools that a server has changed, and
  changes of your config.toml, come with a new session: /clear`;

export const mcp: Command = async ({ view, servers }, words) => {
  const say = (text: string): void => view.print(harmless(text));
  if (servers === null) return say('  No MCP servers. In a shell: pawl mcp add NAME -- COMMAND ARGS');
  if (words === '') return say([...servers.status().map(rowOf), HINT].join('\n'));
  if (words === 'connect') {
    await servers.reconnect();
    return say(servers.status().map(rowOf).join('\n'));
  }
  const all = servers.status();
  const found = all.find(({ name }) => name.toLowerCase() === words.toLowerCase());
  if (found === undefined)
    throw new NotNow(`There is no MCP server ${words}. There are ${all.map(({ name }) => name).join(', ')}.`);
  say([rowOf(found), ...found.tools.map((tool) => `    ${oneLine(tool, WHY_MAX)}`)].join('\n'));
};
