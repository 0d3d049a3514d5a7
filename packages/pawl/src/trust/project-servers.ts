import { realpath } from 'node:fs/promises';
import { expandVariables } from '@pawl/agent/extensions/mcp/expand-variables';
import { type McpServer, readServers, type StdioServer } from '@pawl/agent/extensions/mcp-servers';
import {
  type Executable,
  TRUSTED_CHARACTERS_MAX,
  type TrustStore,
} from '@pawl/agent/extensions/trust/trust-store';
import { keyVariables } from '@pawl/agent/models/provider-table';
import { isTable } from '@pawl/agent/platform/base/is-parsed-table';
import { parseBounded, whereInvalid } from '@pawl/agent/platform/base/parse-bounded-json';
import { plural } from '@pawl/agent/platform/base/plural';
import { isWithin } from '@pawl/agent/platform/files/is-within';
import { readRegular } from '@pawl/agent/platform/files/regular-file';
import { repositoryFolders } from '@pawl/agent/platform/files/repository-folders';
import { COMMAND_LEVELS } from '@pawl/agent/policy/call-sandbox-level';
import { notRunText } from './ask-trust.js';
import { namedFiles, type ProjectPlace } from './files-named-by-command.js';
import { mcpJsonFiles } from './mcp-json-files.js';
import { settleExecutables } from './project-executables.js';

/** The MCP servers that a project names in `.mcp.json`. None runs before the user has allowed exactly this server. */

const FILE_BYTES_MAX = 256 * 1024;
/** Faults of one file that are said; the others are counted. */
const FAULTS_MAX = 3;

export type ProjectServer = { readonly server: McpServer; readonly executable: Executable };
export type ProjectServers = {
  readonly servers: readonly ProjectServer[];
  readonly faults: readonly string[];
};

type Named = { readonly servers: readonly McpServer[]; readonly faults: readonly string[] };

const readFile = async (file: string, top: string): Promise<Named> => {
  const unused = (why: string): Named => ({ servers: [], faults: [`${file} is not used: ${why}`] });
  const real = await realpath(file).catch(() => null);
  if (real === null || !isWithin(real, top)) return unused('it leads out of the repository');
  const loaded = await readRegular(real, FILE_BYTES_MAX, { follow: false });
  if (loaded.kind !== 'file') return unused(loaded.kind === 'unusable' ? loaded.why : 'it is not a file');
  const text = loaded.bytes.toString('utf8');
  const parsed = parseBounded(text, { depthMax: 10, charactersMax: FILE_BYTES_MAX });
  if (parsed.kind === 'invalid')
    return unused(
      parsed.why === 'syntax'
        ? `it is not valid JSON: ${whereInvalid(text)}`
        : 'it is too large, or nested too deeply',
    );
  if (!isTable(parsed.value)) return unused('it is not a JSON object');
  const table = parsed.value.mcpServers;
  if (!isTable(table)) return unused('it has no object mcpServers');
  const { servers, faults } = readServers(table, ['mcpServers']);
  const refused = servers.filter(namesKey).map(({ name }) => `${name} wants the key of a model provider.`);
  const all = [...faults.map(({ text: why }) => why), ...refused];
  const more = all.length > FAULTS_MAX ? [`${plural(all.length - FAULTS_MAX, 'more fault')}.`] : [];
  return {
    servers: servers.filter((server) => !namesKey(server)),
    faults: [...all.slice(0, FAULTS_MAX), ...more].map((why) => `${file}: ${why}`),
  };
};

const GRANTED: Readonly<Record<McpServer['kind'], string>> = {
  stdio: [
    'granted: it runs in the sandbox, with a home of its own. It reads this folder, and nothing else of yours.',
    'granted if you choose so: the network; or to run as you, outside the sandbox.',
  ].join('\n'),
  http: 'granted: Pawl connects to this address and sends these headers.',
};
const TOOLS = 'Calls of its tools are asked about like those of your own servers.';

/** A project may name variables of the user's environment, which the question shows, but never keys of models. */
const namesKey = (server: McpServer): boolean => {
  const text = JSON.stringify(server);
  return keyVariables.some((name) => text.includes(`\${${name}`));
};

/** The server as it is started; as it is written if a variable is missing, since it can't be started then. */
const startedAs = (server: StdioServer): StdioServer => {
  const expanded = expandVariables(server, process.env);
  return expanded.kind === 'ok' && expanded.server.kind === 'stdio' ? expanded.server : server;
};

/** What the user would allow; null if nobody would read it. */
const executableOf = async (server: McpServer, place: ProjectPlace): Promise<Executable | null> => {
  const files = server.kind === 'http' ? [] : await namedFiles(startedAs(server), place);
  if (files === null) return null;
  const content = [JSON.stringify(server, null, 2), ...files, GRANTED[server.kind], TOOLS].join('\n');
  if (content.length > TRUSTED_CHARACTERS_MAX) return null;
  const executable = { kind: 'mcp-server', name: server.name, content } as const;
  return server.kind === 'http'
    ? { ...executable, isRemote: true }
    : { ...executable, levels: COMMAND_LEVELS };
};

const placeOf = (workspace: string): ProjectPlace => ({
  workspace,
  top: repositoryFolders(workspace).folders.at(-1) ?? workspace,
  environment: process.env,
});

/** `Docs` must not stand beside the user's `docs`. */
const nameKey = ({ name }: McpServer): string => name.toLowerCase();

/** Of equal names the nearest file wins. Reads files only. */
export const readProjectServers = async (workspace: string): Promise<ProjectServers> => {
  const place = placeOf(workspace);
  const byName = new Map<string, ProjectServer | null>();
  const faults: string[] = [];
  for (const file of mcpJsonFiles(workspace)) {
    const named = await readFile(file, place.top);
    faults.push(...named.faults);
    for (const server of named.servers.filter(({ enabled }) => enabled)) {
      if (byName.has(nameKey(server))) continue;
      const executable = await executableOf(server, place);
      byName.set(nameKey(server), executable === null ? null : { server, executable });
      if (executable === null)
        faults.push(`${file}: ${server.name} has more settings than anybody would read.`);
    }
  }
  return { servers: [...byName.values()].filter((one) => one !== null), faults };
};

export const serverSource = async (workspace: string): Promise<readonly Executable[]> =>
  (await readProjectServers(workspace)).servers.map(({ executable }) => executable);

export type AllowedServers = {
  readonly servers: readonly McpServer[];
  /**
   * Why a server must not be started now; null if it may. Its files can change while a session runs. The model itself could
   * change them, and would leave the sandbox with the next start.
   */
  whyNot(server: McpServer): Promise<string | null>;
};

/**
 * The servers of the project that the user has allowed, without those whose names the user's own servers have.
 * `tellNotRun` gets one line for those that wait for an answer.
 */
export const allowedServers = async (
  workspace: string,
  own: readonly McpServer[],
  trust: TrustStore,
  warn: (text: string) => void,
  tellNotRun: (text: string) => void = warn,
): Promise<AllowedServers> => {
  const { servers, faults } = await readProjectServers(workspace);
  for (const fault of faults) warn(fault);
  const others = servers.filter(({ server }) => !own.some((one) => nameKey(one) === nameKey(server)));
  const { allowed, open } = await settleExecutables(trust, workspace, [
    async () => others.map(({ executable }) => executable),
  ]);
  const text = notRunText(open);
  if (text !== null) tellNotRun(text);
  const { top: folder } = placeOf(workspace);
  const kept = others.flatMap(({ server, executable }) => {
    const found = allowed.find((one) => one.executable === executable);
    if (found === undefined) return [];
    const project = { folder, level: found.level ?? COMMAND_LEVELS[0] };
    return [{ server, executable, started: { ...server, project } }];
  });
  return {
    servers: kept.map(({ started }) => started),
    async whyNot(server) {
      const found = kept.find(({ started }) => started === server);
      if (found === undefined) return null;
      const now = await executableOf(found.server, placeOf(workspace));
      return now?.content === found.executable.content
        ? null
        : 'its files have changed since you allowed it. The next session asks again, or pawl trust allows it';
    },
  };
};
