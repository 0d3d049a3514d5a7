import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { parseBounded } from '../../base/bounded-json.js';
import { type McpServer, readServers } from '../../config/mcp-servers.js';
import { isWithin } from '../../files/is-within.js';
import { readRegular } from '../../files/regular-file.js';
import { repositoryFolders } from '../../files/repository-folders.js';
import { keyVariables } from '../../providers/provider-table.js';
import type { Executable, TrustStore } from '../../trust/trust-store.js';
import { notRunText } from './ask-trust.js';
import { mcpJsonFiles } from './mcp-json-files.js';
import { settleExecutables } from './project-executables.js';

/** The MCP servers that a project names in `.mcp.json`. None runs before the user has allowed exactly this server. */

const FILE_BYTES_MAX = 256 * 1024;
/** Larger files are not hashed: a server is rarely one. */
const PROGRAM_BYTES_MAX = 4 * 1024 * 1024;

export type ProjectServer = { readonly server: McpServer; readonly executable: Executable };
export type ProjectServers = {
  readonly servers: readonly ProjectServer[];
  readonly faults: readonly string[];
};

type Table = Readonly<Record<string, unknown>>;
const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type Named = { readonly servers: readonly McpServer[]; readonly faults: readonly string[] };

const readFile = async (file: string, top: string): Promise<Named> => {
  const unused = (why: string): Named => ({ servers: [], faults: [`${file} is not used: ${why}`] });
  const real = await realpath(file).catch(() => null);
  if (real === null || !isWithin(real, top)) return unused('it leads out of the repository');
  const loaded = await readRegular(real, FILE_BYTES_MAX, { follow: false });
  if (loaded.kind !== 'file') return unused(loaded.kind === 'unusable' ? loaded.why : 'it is not a file');
  const text = loaded.bytes.toString('utf8');
  const parsed = parseBounded(text, { depthMax: 10, charactersMax: FILE_BYTES_MAX });
  if (parsed.kind === 'invalid' || !isTable(parsed.value)) return unused('it is not valid JSON');
  const table = parsed.value.mcpServers;
  if (!isTable(table)) return unused('it has no object mcpServers');
  const { servers, faults } = readServers(table, ['mcpServers']);
  const refused = servers.filter(namesKey).map(({ name }) => `${name} wants the key of a model provider.`);
  return {
    servers: servers.filter((server) => !namesKey(server)),
    faults: [...faults.map(({ text: why }) => why), ...refused].map((why) => `${file}: ${why}`),
  };
};

/** One line for each argument that is a file of the project: if its content changes, the user is asked again. */
const programFiles = async (
  server: McpServer,
  workspace: string,
  top: string,
): Promise<readonly string[]> => {
  if (server.kind === 'http') return [];
  const lines: string[] = [];
  for (const word of [server.command, ...server.args]) {
    const real = await realpath(path.resolve(server.cwd ?? workspace, word)).catch(() => null);
    if (real === null || !isWithin(real, top)) continue;
    const loaded = await readRegular(real, PROGRAM_BYTES_MAX, { follow: false });
    if (loaded.kind !== 'file') continue;
    const hash = createHash('sha256').update(loaded.bytes).digest('hex').slice(0, 32);
    lines.push(`file of the project: ${path.relative(workspace, real)} (sha256 ${hash})`);
  }
  return lines;
};

const GRANTED: Readonly<Record<McpServer['kind'], string>> = {
  stdio: 'granted: it runs as you, outside the sandbox, with the network.',
  http: 'granted: Pawl connects to this address and sends these headers.',
};
const TOOLS = 'Calls of its tools are asked about like those of your own servers.';

/** A project may name variables of the user's environment, which the question shows, but never keys of models. */
const namesKey = (server: McpServer): boolean => {
  const text = JSON.stringify(server);
  return keyVariables.some((name) => text.includes(`\${${name}`));
};

const executableOf = async (server: McpServer, workspace: string, top: string): Promise<Executable> => ({
  kind: 'mcp-server',
  name: server.name,
  content: [
    JSON.stringify(server, null, 2),
    ...(await programFiles(server, workspace, top)),
    GRANTED[server.kind],
    TOOLS,
  ].join('\n'),
});

/** Of equal names the nearest file wins. Reads files only. */
export const readProjectServers = async (workspace: string): Promise<ProjectServers> => {
  const top = repositoryFolders(workspace).folders.at(-1) ?? workspace;
  const byName = new Map<string, ProjectServer>();
  const faults: string[] = [];
  for (const file of mcpJsonFiles(workspace)) {
    const named = await readFile(file, top);
    faults.push(...named.faults);
    for (const server of named.servers.filter(({ enabled }) => enabled))
      if (!byName.has(server.name))
        byName.set(server.name, { server, executable: await executableOf(server, workspace, top) });
  }
  return { servers: [...byName.values()], faults };
};

export const serverSource = async (workspace: string): Promise<readonly Executable[]> =>
  (await readProjectServers(workspace)).servers.map(({ executable }) => executable);

/**
 * The servers of the project that the user has allowed, without those whose names the user's own servers have. One line
 * says what is not run.
 */
export const allowedServers = async (
  workspace: string,
  own: readonly McpServer[],
  trust: TrustStore,
  warn: (text: string) => void,
): Promise<readonly McpServer[]> => {
  const { servers, faults } = await readProjectServers(workspace);
  for (const fault of faults) warn(fault);
  const others = servers.filter(({ server }) => !own.some(({ name }) => name === server.name));
  const { allowed, open } = await settleExecutables(trust, workspace, [
    async () => others.map(({ executable }) => executable),
  ]);
  const text = notRunText(open);
  if (text !== null) warn(text);
  return others.filter(({ executable }) => allowed.includes(executable)).map(({ server }) => server);
};
