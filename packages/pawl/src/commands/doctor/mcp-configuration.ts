import { existsSync, realpathSync } from 'node:fs';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import { consult } from '../../settings/apply-config.js';
import type { Check, DoctorWorld } from './check-context.js';

/** A check of the MCP servers, without starting them. */

const faultOf = async (
  server: McpServer,
  { environment, workspace }: DoctorWorld,
): Promise<string | null> => {
  const [{ expandVariables }, { findServerProgram }] = await Promise.all([
    import('@pawl/agent/extensions/mcp/expand-variables'),
    import('@pawl/agent/extensions/mcp/find-server-program'),
  ]);
  const expanded = expandVariables(server, environment);
  if (expanded.kind === 'missing') return `${expanded.names.join(', ')} is not set`;
  if (expanded.server.kind === 'http') return null;
  try {
    findServerProgram(expanded.server.command, { environment, workspace });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

export const mcpChecks: readonly Check[] = [
  {
    name: 'mcpServerUnusable',
    level: 'fault',
    look: async (world) => {
      const workspace = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
      const { mcpServers } = await consult(workspace, world.environment, {});
      const faults: string[] = [];
      for (const server of mcpServers.filter(({ enabled }) => enabled)) {
        const fault = await faultOf(server, { ...world, workspace });
        if (fault !== null) faults.push(`${server.name}: ${fault}`);
      }
      if (faults.length === 0) return null;
      return {
        what: `MCP servers can't be started: ${faults.join('; ')}`,
        repair: 'Correct them in your config.toml, or write enabled = false. Then: pawl mcp test',
      };
    },
  },
];
