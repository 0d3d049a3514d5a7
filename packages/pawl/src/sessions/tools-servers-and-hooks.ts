import type { AgentOptions, Session } from '@pawl/agent/api/create-agent';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import type { Model } from '@pawl/agent/ports/model';
import { openHooks } from '../commands/hooks/open-hooks.js';
import type { RunFlags } from '../flags.js';
import { type Configured, keysIn } from '../settings/apply-config.js';
import { mcpJsonFiles } from '../trust/mcp-json-files.js';
import type { AllowedServers } from '../trust/project-servers.js';
import type { Place } from './defaults-by-frontend.js';

type Surroundings = {
  readonly model: Model;
  readonly stateFolder: string;
  readonly workspace: string;
  /** The session to resume; null for a new one. */
  readonly resume: string | null;
  readonly place: Place;
  readonly warn: (text: string) => void;
};

export type OptionalTools = {
  readonly options: Required<Pick<AgentOptions, 'moreTools' | 'tasks' | 'hooks'>>;
  /** null: no MCP server is configured. */
  readonly servers: SessionServers | null;
  /** Secrets in the settings of the servers, by names that say where they stand. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Connects the MCP servers, and closes them with the session. */
  attend(session: Session): void;
};

/** An editor is asked with the first prompt, so the line would only precede the question. */
const notRunTeller = ({ place, warn }: Surroundings): Surroundings['warn'] =>
  place === 'editor' ? () => undefined : warn;

/** The servers of the project's `.mcp.json` that the user has allowed. Most projects have no such file. */
const projectServers = async (own: readonly McpServer[], place: Surroundings): Promise<AllowedServers> => {
  const { stateFolder, workspace, warn } = place;
  if (mcpJsonFiles(workspace).length === 0) return { servers: [], whyNot: async () => null };
  const [{ allowedServers }, { openTrust }] = await Promise.all([
    import('../trust/project-servers.js'),
    import('@pawl/agent/extensions/trust/trust-store'),
  ]);
  return allowedServers(workspace, own, openTrust(stateFolder, warn), warn, notRunTeller(place));
};

type OpenedServers = Pick<OptionalTools, 'servers' | 'secrets'>;

const openServers = async (
  { mcpServers = [], variables = {} }: Configured,
  place: Surroundings,
): Promise<OpenedServers> => {
  const { stateFolder, workspace, warn } = place;
  const { servers: allowed, whyNot } = await projectServers(mcpServers, place);
  const servers = [...mcpServers, ...allowed];
  if (!servers.some(({ enabled }) => enabled)) return { servers: null, secrets: {} };
  const [{ openServers: openAll }, { secretsByName }, { createRedactor }, { secretsOf }] = await Promise.all([
    import('@pawl/agent/extensions/mcp/session-servers'),
    import('@pawl/agent/extensions/mcp/server-secrets'),
    import('@pawl/agent/platform/secrets/redactor'),
    import('@pawl/agent/platform/secrets/secret-variables'),
  ]);
  const environment = process.env;
  const secrets = secretsByName(servers, environment, stateFolder);
  const redactor = createRedactor(secretsOf(environment, { ...keysIn(variables), ...secrets }));
  const opened = await openAll({ servers, stateFolder, workspace, environment, warn, whyNot, redactor });
  return { servers: opened, secrets };
};

/**
 * Connecting costs this process time, so the first request goes first. In a terminal the user has to type anyway. An editor
 * opens sessions by itself, with servers that it names: they start with the first prompt.
 */
const connectSoon = (servers: SessionServers, session: Session, place: Place): void => {
  if (place === 'terminal') return void setImmediate(() => servers.connect());
  const unwatch = session.watch(({ actions }) => {
    if (!actions.some(({ type }) => type === 'SendLlmRequest')) return;
    unwatch();
    setImmediate(() => servers.connect());
  });
};

/**
 * The tools that a session has only if the user wants them. The tools of a session are frozen when it begins: a resumed
 * one may have any of these, so all of them are provided.
 */
export const optionalTools = async (
  flags: RunFlags & Configured,
  place: Surroundings,
): Promise<OptionalTools> => {
  const { explore, tasks, variables = {} } = flags;
  const { model, stateFolder } = place;
  const resumes = place.resume !== null;
  const explores =
    resumes || explore === true
      ? [(await import('../commands/ask/explore-tool.js')).exploreTool(model, stateFolder, keysIn(variables))]
      : [];
  const { servers, secrets } = await openServers(flags, place);
  return {
    options: {
      tasks: resumes || tasks === true,
      moreTools: [...explores, ...(servers?.tools ?? [])],
      hooks: await openHooks(flags, { ...place, tellNotRun: notRunTeller(place) }),
    },
    servers,
    secrets,
    attend(session) {
      if (servers === null) return;
      connectSoon(servers, session, place.place);
      const close = (): void => void servers.close();
      session.ended.then(close, close);
    },
  };
};
