import { existsSync } from 'node:fs';
import path from 'node:path';
import { isOfOtherUser, repositoryFolders } from '@pawl/agent/platform/repository-folders';

/**
 * The `.mcp.json` files of a project, nearest first. Those of another user above the workspace are
 * skipped.
 */
export const mcpJsonFiles = (workspace: string): readonly string[] =>
  repositoryFolders(workspace)
    .folders.map((folder) => path.join(folder, '.mcp.json'))
    .filter((file) => existsSync(file) && !isOfOtherUser(file, workspace));
