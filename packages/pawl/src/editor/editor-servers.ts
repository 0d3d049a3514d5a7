import type { McpServer as EditorServer } from '@agentclientprotocol/sdk';
import { type ReadServers, readServers } from '@pawl/agent/extensions/mcp-servers';

/** The MCP servers that an editor gives to a session, in the form of those in a configuration file. */

const NAME_CHARACTERS_MAX = 32;

/** A name for tools: `GitHub (work)` becomes `GitHub-work`. */
const nameOf = ({ name }: EditorServer): string =>
  name
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/_{2,}/g, '_')
    .replace(/^[_-]+/, '')
    .slice(0, NAME_CHARACTERS_MAX)
    .replace(/[_-]+$/, '');

const textsOf = (list: readonly { readonly name: string; readonly value: string }[]): object =>
  Object.fromEntries(list.map(({ name, value }) => [name, value]));

const tableOf = (server: EditorServer): object => {
  if ('command' in server) return { command: server.command, args: server.args, env: textsOf(server.env) };
  return { type: server.type, url: server.url, headers: textsOf(server.headers) };
};

/** A server that can't be used is a fault; of two with the same name the last one counts. */
export const readEditorServers = (given: readonly EditorServer[]): ReadServers =>
  readServers(Object.fromEntries(given.map((server) => [nameOf(server), tableOf(server)])), ['mcpServers']);
