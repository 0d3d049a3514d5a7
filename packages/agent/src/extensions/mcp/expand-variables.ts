import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import type { McpServer, OauthClient } from '../mcp-servers.js';

/** Replaces `${NAME}` and `${NAME:-default}` in the settings of a server by variables of the environment. */

export type Expanded<T extends McpServer = McpServer> =
  | { readonly kind: 'ok'; readonly server: T }
  /** Variables that are not set. */
  | { readonly kind: 'missing'; readonly names: readonly string[] };

const REFERENCE = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g;

const mapSecret = (oauth: OauthClient, change: (text: string) => string): OauthClient =>
  oauth.clientSecret === undefined ? oauth : { ...oauth, clientSecret: change(oauth.clientSecret) };

/** The server with each of its texts replaced. */
const mapTexts = (server: McpServer, change: (text: string) => string): McpServer => {
  const changeAll = (texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, change(text)]));
  return server.kind === 'http'
    ? {
        ...server,
        url: change(server.url),
        headers: changeAll(server.headers),
        ...(server.oauth === undefined ? {} : { oauth: mapSecret(server.oauth, change) }),
      }
    : {
        ...server,
        command: change(server.command),
        args: server.args.map(change),
        env: changeAll(server.env),
        cwd: server.cwd === null ? null : change(server.cwd),
      };
};

/** The server as it is started. The values are secrets: they are never stored or shown. */
export const expandVariables = (server: McpServer, environment: ProcessEnvironment): Expanded => {
  const missing = new Set<string>();
  const expanded = mapTexts(server, (text) =>
    text.replace(REFERENCE, (_whole, name: string, otherwise: string | undefined) => {
      const value = environment[name] || otherwise;
      if (value === undefined) missing.add(name);
      return value ?? '';
    }),
  );
  return missing.size === 0 ? { kind: 'ok', server: expanded } : { kind: 'missing', names: [...missing] };
};

/** The server with the variables that are set; others become empty. */
export const expandKnown = (server: McpServer, environment: ProcessEnvironment): McpServer =>
  mapTexts(server, (text) =>
    text.replace(
      REFERENCE,
      (_whole, name: string, otherwise: string | undefined) => environment[name] || otherwise || '',
    ),
  );
