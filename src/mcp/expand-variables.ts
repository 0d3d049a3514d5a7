import type { ProcessEnvironment } from '../base/process-environment.js';
import type { McpServer } from '../config/mcp-servers.js';

/** Replaces `${NAME}` and `${NAME:-default}` in the settings of a server by variables of the environment. */

export type Expanded<T extends McpServer = McpServer> =
  | { readonly kind: 'ok'; readonly server: T }
  /** Variables that are not set. */
  | { readonly kind: 'missing'; readonly names: readonly string[] };

const REFERENCE = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g;

/** The server as it is started. The values are secrets: they are never stored or shown. */
export const expandVariables = (server: McpServer, environment: ProcessEnvironment): Expanded => {
  const missing = new Set<string>();
  const expand = (text: string): string =>
    text.replace(REFERENCE, (_whole, name: string, otherwise: string | undefined) => {
      const value = environment[name] || otherwise;
      if (value === undefined) missing.add(name);
      return value ?? '';
    });
  const expandAll = (texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, expand(text)]));
  const expanded: McpServer =
    server.kind === 'http'
      ? { ...server, url: expand(server.url), headers: expandAll(server.headers) }
      : {
          ...server,
          command: expand(server.command),
          args: server.args.map(expand),
          env: expandAll(server.env),
          cwd: server.cwd === null ? null : expand(server.cwd),
        };
  return missing.size === 0 ? { kind: 'ok', server: expanded } : { kind: 'missing', names: [...missing] };
};
