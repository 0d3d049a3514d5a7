import { existsSync } from 'node:fs';
import path from 'node:path';
import { protectionInWorkspace } from '../../agent/policy/paths/mark-sensitive-paths.js';
import { isWithin } from '../../files/is-within.js';
import type { Tool } from '../../ports/tool.js';
import type { SessionSandbox } from '../../sandbox/session/session-sandbox.js';

/** The path, and the folders that must be created for it. */
const withNewFolders = (place: string, workspace: string): readonly string[] => {
  const places = [place];
  for (let folder = path.dirname(place); isWithin(folder, workspace); folder = path.dirname(folder)) {
    if (folder === workspace || existsSync(folder)) break;
    places.push(folder);
  }
  return places;
};

/**
 * Wraps a tool that changes files, for background commands: when it writes a protected path, the user has allowed that,
 * so the sandbox keeps the file in place.
 */
export const withAllowedWrites = (tool: Tool, sandbox: SessionSandbox): Tool => {
  const run: Tool['run'] = async (input, context) => {
    const { workspace, paths } = context;
    const kept = paths.filter((place) => protectionInWorkspace(workspace, place) !== null);
    for (const place of kept) {
      const commands = await sandbox.of(workspace);
      for (const one of withNewFolders(place, workspace)) commands.allow(one);
    }
    return tool.run(input, context);
  };
  // A spread would evaluate the schema, which is created on first use.
  const parts = { ...Object.getOwnPropertyDescriptors(tool), run: { value: run, enumerable: true } };
  return Object.defineProperties({}, parts) as Tool; // the descriptors are those of a Tool
};
