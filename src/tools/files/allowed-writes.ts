import { existsSync } from 'node:fs';
import path from 'node:path';
import { protectionOf } from '../../agent/policy/paths/protected-paths.js';
import { isWithin } from '../../files/is-within.js';
import type { Tool } from '../../ports/tool.js';
import type { SessionSandbox } from '../../sandbox/session/session-sandbox.js';

/** The path, and the folders that will be made for it. */
const comingWith = (place: string, workspace: string): readonly string[] => {
  const places = [place];
  for (let folder = path.dirname(place); isWithin(folder, workspace); folder = path.dirname(folder)) {
    if (folder === workspace || existsSync(folder)) break;
    places.push(folder);
  }
  return places;
};

/**
 * A tool that changes files, as commands in the background see it: a protected path that it writes was allowed by the
 * user, so the sandbox leaves it where it is.
 */
export const withAllowedWrites = (tool: Tool, sandbox: SessionSandbox): Tool => {
  const run: Tool['run'] = async (input, context) => {
    const { workspace, paths } = context;
    const kept = paths.filter((place) => protectionOf(path.relative(workspace, place)) !== null);
    for (const place of kept) {
      const commands = await sandbox.of(workspace);
      for (const one of comingWith(place, workspace)) commands.allow(one);
    }
    return tool.run(input, context);
  };
  // Not by spreading it: its schema is made when it is asked for.
  const parts = { ...Object.getOwnPropertyDescriptors(tool), run: { value: run, enumerable: true } };
  return Object.defineProperties({}, parts) as Tool; // the parts of one
};
