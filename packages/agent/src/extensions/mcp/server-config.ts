/**
 * MCP servers as a user or a project writes them: the table `mcp.servers` of a config.toml, and
 * `mcpServers` of a project's `.mcp.json`.
 *
 * From top to bottom: the types; reading the settings (`readServers`, `readMcpTable`); and
 * variables of the environment in them (`expandVariables`).
 */

import type { ProcessEnvironment } from '../../platform/environment.js';
import {
  faultSentence,
  fieldFault,
  isTextTable,
  SWITCH,
  type TableFields,
} from '../../platform/table-fields.js';
import { firstCharacters } from '../../platform/text.js';
import { isTable, type ParsedTable } from '../../platform/untrusted-input.js';
import type { CommandLevel } from '../../policy/decide.js';

/** The settings of every server. */
type Common = {
  readonly name: string;
  /** A server that is not enabled is listed, but never started. */
  readonly enabled: boolean;
  /** A new session waits for the server if its tools are not known yet. */
  readonly required: boolean;
  /**
   * `auto`: asks the server, which costs a request. `legacy`: the handshake of 2025-11-25 and
   * before.
   */
  readonly protocol: McpProtocol;
  /** Time limit of one call. */
  readonly timeoutMs: number;
  /** Names of the tools to use, or with a `*` at the end the beginnings of names; null for all. */
  readonly tools: readonly string[] | null;
  /** Present for a server of a project, which the user has allowed. */
  readonly project?: ProjectGrant;
};

type ProjectGrant = {
  /** Real path of the folder for which it was allowed. */
  readonly folder: string;
  /** Where the server runs; of no meaning for one over HTTP. */
  readonly level: CommandLevel;
};

export type McpProtocol = 'auto' | 'legacy' | '2026-07-28';

/** Texts may contain `${NAME}`, a variable of the environment: see `mapTexts`. */
export type StdioServer = Common & {
  readonly kind: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute or from the workspace; null: the workspace. */
  readonly cwd: string | null;
};

export type HttpServer = Common & {
  readonly kind: 'http';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How Pawl is known to the authorization server. Absent: it registers itself. */
  readonly oauth?: OauthClient;
};

export type OauthClient = {
  readonly clientId: string;
  /** A variable of the environment, as `${NAME}`; absent for a client without a secret. */
  readonly clientSecret?: string;
  /** Port of the redirect on 127.0.0.1; absent: any free one. */
  readonly redirectPort?: number;
};

export type McpServer = StdioServer | HttpServer;

type Fault = { readonly keys: readonly string[]; readonly text: string };

export type ReadServers = {
  readonly servers: readonly McpServer[];
  readonly faults: readonly Fault[];
};

/** Two `_` end it in the name of a tool: `mcp__SERVER__TOOL`. */
const SERVER_NAME = /^[A-Za-z0-9]([A-Za-z0-9-]|_(?!_|$)){0,31}$/;
const SERVERS_MAX = 50;
const DEFAULT_TIMEOUT_S = 60;
const TIMEOUT_MAX_S = 24 * 60 * 60;

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((text) => typeof text === 'string');
export const isWebUrl = (text: string): boolean => /^https?:\/\/[^/]/.test(text);

const OAUTH_KEYS = ['client_id', 'client_secret', 'redirect_port'];
const PORT_MAX = 65_535;

/** Null if the value is no such table. */
const readOauth = (value: unknown): OauthClient | null => {
  if (!isTable(value) || Object.keys(value).some((key) => !OAUTH_KEYS.includes(key))) return null;
  const { client_id: clientId, client_secret: clientSecret, redirect_port: redirectPort } = value;
  if (!isText(clientId)) return null;
  const isReference = typeof clientSecret === 'string' && /^\$\{[A-Za-z_]\w*\}$/.test(clientSecret);
  if (clientSecret !== undefined && !isReference) return null;
  const isPort =
    Number.isInteger(redirectPort) && Number(redirectPort) >= 1 && Number(redirectPort) <= PORT_MAX;
  if (redirectPort !== undefined && !isPort) return null;
  return {
    clientId,
    ...(typeof clientSecret === 'string' ? { clientSecret } : {}),
    ...(redirectPort === undefined ? {} : { redirectPort: Number(redirectPort) }),
  };
};

const fields: TableFields = {
  command: { fits: isText, form: 'is the program of the server: "npx"' },
  args: { fits: isTexts, form: 'is a list of texts: ["-y", "some-server"]' },
  // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
  env: { fits: isTextTable, form: 'is a table of texts: { TOKEN = "${MY_TOKEN}" }' },
  cwd: { fits: isText, form: 'is the path of a folder: "/…"' },
  url: {
    fits: (value) => isText(value) && (isWebUrl(value) || value.startsWith('${')),
    form: 'is an http or https URL: "https://example.com/mcp"',
  },
  headers: {
    fits: isTextTable,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    form: 'is a table of texts: { Authorization = "Bearer ${MY_TOKEN}" }',
  },
  oauth: {
    fits: (value) => readOauth(value) !== null,
    form:
      // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
      'is a table: { client_id = "…", client_secret = "${MY_SECRET}", redirect_port = 8976 }; ' +
      'a secret is named by its variable',
  },
  type: {
    fits: (value) => value === 'stdio' || value === 'http' || value === 'streamable-http',
    form: 'is "stdio" or "http"; servers with the old SSE transport are not supported',
  },
  protocol: {
    fits: (value) => value === 'auto' || value === 'legacy' || value === '2026-07-28',
    form: 'is "auto", "legacy" or "2026-07-28"',
  },
  timeout: {
    fits: (value) => typeof value === 'number' && value >= 0.001 && value <= TIMEOUT_MAX_S,
    form: 'is the time limit of a call in seconds, without quotes: 60',
  },
  tools: {
    fits: isTexts,
    form: 'is a list of names of tools, or of their beginnings: ["get_issue", "list_*"]',
  },
  enabled: SWITCH,
  required: SWITCH,
};

/** The first fault of a server's table; null if it is right. */
const findFault = (
  name: string,
  raw: ParsedTable,
): readonly [key: string | null, text: string] | null => {
  const fault = fieldFault(raw, fields, 'an MCP server');
  if (fault !== null) return fault;
  if (!SERVER_NAME.test(name))
    return [
      null,
      'needs a name of at most 32 letters, digits, - and _, without two _ in a row or one at its end',
    ];
  const isStdio = raw.command !== undefined;
  const isHttp = raw.url !== undefined;
  if (isStdio === isHttp) return [null, 'needs either command or url'];
  if (raw.type !== undefined && (raw.type === 'stdio') !== isStdio)
    return ['type', `belongs to a server with a ${isStdio ? 'url' : 'command'}`];
  const foreign = ['args', 'env', 'cwd'].find((key) => raw[key] !== undefined);
  if (isHttp && foreign !== undefined) return [foreign, 'belongs to a server with a command'];
  const ofUrl = ['headers', 'oauth'].find((key) => raw[key] !== undefined);
  if (isStdio && ofUrl !== undefined) return [ofUrl, 'belongs to a server with a url'];
  return null;
};

const readServer = (name: string, raw: ParsedTable): McpServer => {
  const isHttp = raw.url !== undefined;
  const common = {
    name,
    enabled: raw.enabled !== false,
    required: raw.required === true,
    // A stdio server is not asked, since many never answer that; over HTTP it is one quick
    // request.
    protocol: (raw.protocol ?? (isHttp ? 'auto' : 'legacy')) as McpProtocol, // checked by findFault
    tools: (raw.tools ?? null) as readonly string[] | null, // checked by findFault
    timeoutMs: Math.round(1_000 * Number(raw.timeout ?? DEFAULT_TIMEOUT_S)),
  };
  const texts = (key: string): Readonly<Record<string, string>> => ({
    ...(raw[key] as Readonly<Record<string, string>> | undefined), // checked by findFault
  });
  const oauth = readOauth(raw.oauth);
  if (isHttp)
    return {
      ...common,
      kind: 'http',
      url: String(raw.url),
      headers: texts('headers'),
      ...(oauth === null ? {} : { oauth }),
    };
  return {
    ...common,
    kind: 'stdio',
    command: String(raw.command),
    args: (raw.args ?? []) as readonly string[], // checked by findFault
    env: texts('env'),
    cwd: raw.cwd === undefined ? null : String(raw.cwd),
  };
};

const noServers = (keys: readonly string[], text: string): ReadServers => ({
  servers: [],
  faults: [{ keys, text }],
});

/**
 * Reads a table of servers by their names. `above`: the keys of the table, for messages. Faulty
 * servers are ignored.
 */
export const readServers = (table: unknown, above: readonly string[]): ReadServers => {
  const where = (keys: readonly string[]): string => firstCharacters(keys.join('.'), 80);
  if (!isTable(table)) return noServers(above, `${where(above)} is a table.`);
  const servers: McpServer[] = [];
  const faults: Fault[] = [];
  for (const [name, raw] of Object.entries(table)) {
    const keys = [...above, name];
    const fault = isTable(raw) ? findFault(name, raw) : ([null, 'is a table'] as const);
    if (fault === null)
      servers.push(readServer(name, raw as ParsedTable)); // a table, since it has no fault
    else {
      const at = fault[0] === null ? keys : [...keys, fault[0]];
      faults.push({ keys: at, text: faultSentence(where(at), fault[1]) });
    }
  }
  if (servers.length <= SERVERS_MAX) return { servers, faults };
  return noServers(above, `${where(above)} has more than ${SERVERS_MAX} servers: none is used.`);
};

/** The table `mcp` of a config.toml. */
export const readMcpTable = (table: unknown): ReadServers => {
  if (!isTable(table)) return noServers(['mcp'], 'mcp is a table: [mcp.servers.NAME].');
  const other = Object.keys(table).find((key) => key !== 'servers');
  if (other !== undefined) {
    const text = `there is no mcp.${firstCharacters(other, 60)}. A server is a table:`;
    return noServers(['mcp', other], `${text} [mcp.servers.NAME].`);
  }
  return table.servers === undefined
    ? { servers: [], faults: [] }
    : readServers(table.servers, ['mcp', 'servers']);
};

// ---- `${NAME}` and `${NAME:-default}`: variables of the environment in the settings ----

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

/** An empty variable counts as one that is not set. */
const expand = (
  server: McpServer,
  environment: ProcessEnvironment,
  onMissing: (name: string) => void,
): McpServer =>
  mapTexts(server, (text) =>
    text.replace(REFERENCE, (_whole, name: string, otherwise: string | undefined) => {
      const value = environment[name] || otherwise;
      if (value === undefined) onMissing(name);
      return value ?? '';
    }),
  );

/** The server as it is started. The values are secrets: they are never stored or shown. */
export const expandVariables = (server: McpServer, environment: ProcessEnvironment): Expanded => {
  const missing = new Set<string>();
  const expanded = expand(server, environment, (name) => missing.add(name));
  return missing.size === 0
    ? { kind: 'ok', server: expanded }
    : { kind: 'missing', names: [...missing] };
};

/** The server with the variables that are set; others become empty. */
export const expandKnown = (server: McpServer, environment: ProcessEnvironment): McpServer =>
  expand(server, environment, () => undefined);
