import assert from 'node:assert/strict';
import type { McpServer } from '../../../packages/agent/src/extensions/mcp/server-config.js';
import { serverSecrets } from '../../../packages/agent/src/extensions/mcp/server-secrets.js';
import {
  openServers,
  type ServersOptions,
  type SessionServers,
} from '../../../packages/agent/src/extensions/mcp/session-servers.js';
import { storeTools } from '../../../packages/agent/src/extensions/mcp/tool.js';
import type { Tool, ToolOutcome } from '../../../packages/agent/src/ports/tool.js';
import { createRedactor } from '../../../packages/agent/src/secrets/redactor.js';
import { atEnd, type TestScope, temporaryFolder } from '../../temporary-folder.js';
import { type TestContext, testContext } from './tool-context.js';

/** Opens the servers of a session, as a session does. */

export type Opened = {
  readonly session: SessionServers;
  readonly warnings: readonly string[];
  /** Resolves with the first warning that contains the text. */
  warned(text: string): Promise<string>;
  tool(name: string): Tool;
};

export type Place = { readonly stateFolder: string; readonly workspace: string };

export const placeIn = (scope: TestScope): Place => ({
  stateFolder: temporaryFolder(scope, 'mcp-state'),
  workspace: temporaryFolder(scope, 'mcp-work'),
});

export const openSession = async (
  scope: TestScope,
  place: Place,
  servers: readonly McpServer[],
  more: Partial<Pick<ServersOptions, 'startMs' | 'answerMs' | 'environment' | 'whyNot'>> = {},
): Promise<Opened> => {
  const warnings: string[] = [];
  const waiting: (() => void)[] = [];
  const session = await openServers({
    servers,
    environment: { PATH: process.env.PATH },
    whyNot: async () => null,
    ...place,
    ...more,
    redactor: createRedactor(
      servers.flatMap((server) => serverSecrets(server, more.environment ?? {})),
    ),
    warn(text) {
      warnings.push(text);
      for (const look of waiting) look();
    },
  });
  atEnd(scope, () => session.close());
  return {
    session,
    warnings,
    warned: (text) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = warnings.find((warning) => warning.includes(text));
          if (found !== undefined) resolve(found);
        };
        waiting.push(look);
        look();
      }),
    tool(name) {
      const found = session.tools.find((tool) => tool.name === name);
      assert.ok(
        found,
        `${name} is not declared: ${session.tools.map((tool) => tool.name).join(' ')}`,
      );
      return found;
    },
  };
};

/** Opens a session that fills the cache, and one that declares from it. */
export const openTwice = async (
  scope: TestScope,
  servers: readonly McpServer[],
): Promise<Opened> => {
  const place = placeIn(scope);
  const first = await openSession(scope, place, servers);
  first.session.connect();
  await Promise.all(servers.map(({ name }) => first.warned(`${name} is new`)));
  await first.session.close();
  return openSession(scope, place, servers);
};

/** Opens a session that knows these tools of its servers already. */
export const openKnown = async (
  scope: TestScope,
  servers: readonly McpServer[],
  names: readonly string[],
  more: Partial<Pick<ServersOptions, 'startMs' | 'whyNot'>> = {},
): Promise<Opened & Place> => {
  const place = placeIn(scope);
  const tools = names.map((name) => ({ name, description: 'D', inputSchema: { type: 'object' } }));
  for (const server of servers) await storeTools(place.stateFolder, server, tools);
  return { ...(await openSession(scope, place, servers, more)), ...place };
};

export const run = (
  tool: Tool,
  input = {},
  context: TestContext = testContext(),
): Promise<ToolOutcome> => tool.run(input, context);
