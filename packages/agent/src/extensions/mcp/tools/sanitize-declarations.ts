import type { Tool as RemoteTool } from '@modelcontextprotocol/client';
import { safeSchema } from '../../../models/tool-schema.js';
import type { McpServer } from '../../mcp-servers.js';
import type { OfferedTool } from './declare-to-model.js';

/**
 * The tools that a server offers, made safe to declare. Of equal names the first counts. A tool that its server runs only
 * as a task is left out: a call of it can't succeed.
 */

const DESCRIPTION_MAX = 2_000;
const TOOLS_MAX = 1_000;
const NAME_MAX = 200;

export type Offered = {
  readonly tools: readonly OfferedTool[];
  /** What was changed, one line a tool. */
  readonly notes: readonly string[];
  /** Names of the tools that were left out because their server runs them only as tasks. */
  readonly needTasks: readonly string[];
};

export const offeredTools = (remote: readonly RemoteTool[]): Offered => {
  const notes: string[] = [];
  const byName = new Map<string, RemoteTool>();
  for (const tool of remote)
    if (tool.name.length <= NAME_MAX && !byName.has(tool.name)) byName.set(tool.name, tool);
  const all = [...byName.values()].slice(0, TOOLS_MAX);
  const needsTask = ({ execution }: RemoteTool): boolean => execution?.taskSupport === 'required';
  const needTasks = all.filter(needsTask).map(({ name }) => name);
  for (const name of needTasks) notes.push(`${name}: left out, since the server runs it only as a task`);
  const named = all.filter((tool) => !needsTask(tool));
  const tools = named.map(({ name, title, description = title ?? '', inputSchema, annotations }) => {
    const { schema, note } = safeSchema(inputSchema, 'kept');
    if (note !== null) notes.push(`${name}: ${note}`);
    if (description.length > DESCRIPTION_MAX) notes.push(`${name}: its description is cut`);
    const declared = { name, description: description.slice(0, DESCRIPTION_MAX), inputSchema: schema };
    return annotations?.readOnlyHint === true ? { ...declared, isReadOnly: true as const } : declared;
  });
  return { tools: tools.toSorted((one, next) => (one.name < next.name ? -1 : 1)), notes, needTasks };
};

/** The tools that the server's settings ask for. */
export const wantedTools = (
  { tools: patterns }: McpServer,
  offered: readonly OfferedTool[],
): readonly OfferedTool[] => {
  if (patterns === null) return offered;
  const fits = (name: string): boolean =>
    patterns.some((pattern) =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
    );
  return offered.filter(({ name }) => fits(name));
};
