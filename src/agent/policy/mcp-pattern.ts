import type { McpToolName } from '../call.js';

/**
 * Patterns of rules for tools of MCP servers: `github` is every tool of the server, `github/get_issue` is one tool, and
 * `github/get_*` is every tool whose name begins so.
 */

const PATTERN = /^[A-Za-z0-9_-]+(\/[^\s/*]*\*?)?$/;

/** Whether the text is a pattern. */
export const isMcpPattern = (text: string): boolean => PATTERN.test(text) && !text.endsWith('/');

export const matchesMcpTool = (pattern: string, { server, tool }: McpToolName): boolean => {
  const slash = pattern.indexOf('/');
  if (slash < 0) return pattern === server;
  if (pattern.slice(0, slash) !== server) return false;
  const wanted = pattern.slice(slash + 1);
  return wanted.endsWith('*') ? tool.startsWith(wanted.slice(0, -1)) : tool === wanted;
};
