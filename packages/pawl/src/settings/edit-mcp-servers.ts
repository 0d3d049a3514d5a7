/**
 * Adds and removes MCP servers in the text of a config.toml.
 *
 * 1. All other text stays as it is: comments, order, line ends; but for blank lines at the change.
 * 2. The new text is parsed. It must say what the old one said, and differ in this one server;
 *    otherwise nothing changes.
 */

import { readMcpTable } from '@pawl/agent/extensions/mcp/server-config';
import { isTable, type ParsedTable } from '@pawl/agent/platform/untrusted-input';
import {
  appendTable,
  BROKEN_TOML,
  type EditedConfig,
  isSame,
  joinBlank,
  lineSpan,
  parseOrNull,
  refused,
  type TomlFormat,
} from './edit-config.js';
import { findStatements } from './toml-keys.js';

/** The servers by name, and everything else; null if `mcp` or `mcp.servers` is not a table. */
const splitServers = (
  table: ParsedTable,
): { readonly servers: ParsedTable; readonly rest: ParsedTable } | null => {
  const { mcp = {}, ...others } = table;
  if (!isTable(mcp)) return null;
  const { servers = {}, ...rest } = mcp;
  return isTable(servers) ? { servers, rest: { ...others, mcp: rest } } : null;
};

/** Whether `after` has exactly `servers`, and otherwise says what `before` says. */
const changesOnlyServers = (
  before: ParsedTable,
  after: ParsedTable | null,
  servers: ParsedTable,
): boolean => {
  const [old, now] = [splitServers(before), after === null ? null : splitServers(after)];
  return old !== null && now !== null && isSame(now.rest, old.rest) && isSame(now.servers, servers);
};

/** `name = value` as one line: tables are written inline. */
const serializeLine = (name: string, value: unknown, format: TomlFormat): string => {
  const assign = (key: string, one: unknown): string => format.stringify({ [key]: one }).trim();
  if (!isTable(value)) return assign(name, value);
  const inside = Object.entries(value).map(([key, one]) => assign(key, one));
  return `${name} = { ${inside.join(', ')} }`;
};

/** Adds the table of a server at the end of the text. */
export const addServer = (
  text: string,
  name: string,
  server: ParsedTable,
  format: TomlFormat,
): EditedConfig => {
  const before = parseOrNull(text, format);
  if (before === null) return refused(BROKEN_TOML);
  const servers = splitServers(before)?.servers;
  if (servers === undefined) return refused('mcp and mcp.servers must be tables.');
  const taken = Object.keys(servers).find((known) => known.toLowerCase() === name.toLowerCase());
  if (taken !== undefined)
    return refused(`it already has an MCP server ${taken}. First: pawl mcp remove ${taken}`);
  const [fault] = readMcpTable({ servers: { [name]: server } }).faults;
  if (fault !== undefined) return refused(fault.text);
  const edited = appendTable(text, [
    `[mcp.servers.${name}]`,
    ...Object.entries(server).map(([key, value]) => serializeLine(key, value, format)),
  ]);
  if (!changesOnlyServers(before, parseOrNull(edited, format), { ...servers, [name]: server }))
    return refused(`it has its servers in a form that can't be extended. Add ${name} by hand.`);
  return { kind: 'edited', text: edited };
};

/**
 * Removes what the text says about a server. Comments between its lines go with it, all others
 * stay.
 */
export const removeServer = (text: string, name: string, format: TomlFormat): EditedConfig => {
  const before = parseOrNull(text, format);
  if (before === null) return refused(BROKEN_TOML);
  const servers = splitServers(before)?.servers ?? {};
  if (!Object.hasOwn(servers, name)) {
    const known = Object.keys(servers).join(', ');
    return refused(
      `it has no MCP server ${name}. ${known === '' ? 'It has none.' : `It has ${known}.`}`,
    );
  }
  let edited = '';
  let from = 0;
  let wasOurs = false;
  for (const statement of findStatements(text, format.parse)) {
    const isOurs = ['mcp', 'servers', name].every((part, index) => statement.names[index] === part);
    const [start, end] = lineSpan(text, statement);
    if (isOurs) {
      if (!wasOurs) edited += text.slice(from, start);
      from = end;
    }
    wasOurs = isOurs;
  }
  edited = joinBlank(edited, text.slice(from));
  const { [name]: _, ...others } = servers;
  if (!changesOnlyServers(before, parseOrNull(edited, format), others))
    return refused(`it names ${name} in a form that can't be cut out. Remove it by hand.`);
  return { kind: 'edited', text: edited };
};
