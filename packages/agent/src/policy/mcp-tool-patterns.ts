import type { McpToolName } from '../machine/call.js';

/**
 * Patterns of rules for tools of MCP servers: `github` is every tool of the server, `github/get_issue` is one tool, and
 * `github/get_*` is every tool whose name begins so. `project:github` is only a server that a project names.
 *
 * A project chooses the names of its servers. So a pattern without `project:` never allows one of their tools; it denies
 * them, and asks about them.
 */

const PROJECT = 'project:';
const PATTERN = /^(project:)?[A-Za-z0-9_-]+(\/[^\s/*]*\*?)?$/;

/** Whether the text is a pattern. */
export const isMcpPattern = (text: string): boolean => PATTERN.test(text) && !text.endsWith('/');

const matchesName = (pattern: string, { server, tool }: McpToolName): boolean => {
  const slash = pattern.indexOf('/');
  if (slash < 0) return pattern === server;
  if (pattern.slice(0, slash) !== server) return false;
  const wanted = pattern.slice(slash + 1);
  return wanted.endsWith('*') ? tool.startsWith(wanted.slice(0, -1)) : tool === wanted;
};

/** Whether a rule that denies or asks is about the tool. */
export const matchesMcpTool = (pattern: string, tool: McpToolName): boolean =>
  pattern.startsWith(PROJECT)
    ? tool.from === 'project' && matchesName(pattern.slice(PROJECT.length), tool)
    : matchesName(pattern, tool);

/** Whether a rule that allows is about the tool. */
export const allowsMcpTool = (pattern: string, tool: McpToolName): boolean =>
  pattern.startsWith(PROJECT) === (tool.from === 'project') && matchesMcpTool(pattern, tool);
