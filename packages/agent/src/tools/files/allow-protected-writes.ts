import { existsSync } from 'node:fs';
import path from 'node:path';
import type { createNamedPlaces } from '../../command/sandbox/protected/configured-places.js';
import type { SessionSandbox } from '../../command/sandbox/session/session-sandbox.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { isWithin } from '../../platform/files/is-within.js';
import { protectionInWorkspace } from '../../policy/paths/mark-sensitive-paths.js';
import type { Tool } from '../../ports/tool.js';

/** The path, and the folders that must be created for it. */
const withNewFolders = (place: string, workspace: string): readonly string[] => {
  const places = [place];
  for (let folder = path.dirname(place); isWithin(folder, workspace); folder = path.dirname(folder)) {
    if (folder === workspace || existsSync(folder)) break;
    places.push(folder);
  }
  return places;
};

type Named = (workspace: string, place: string) => Promise<boolean>;

/** Whether git's configuration names a path of the workspace, or a folder above it. */
const createNamed = (environment: ProcessEnvironment): Named => {
  const readers = new Map<string, ReturnType<typeof createNamedPlaces>>();
  return async (workspace, place) => {
    const { createNamedPlaces } = await import('../../command/sandbox/protected/configured-places.js');
    const read = readers.get(workspace) ?? createNamedPlaces(workspace, environment);
    readers.set(workspace, read);
    return read().some((named) => isWithin(place, named.path));
  };
};

const withNamedPaths =
  (tool: Tool, isNamed: Named): Tool['judge'] =>
  async (input, workspace) => {
    const judged = await tool.judge(input, workspace);
    if (judged.kind === 'invalid') return judged;
    const named: string[] = [];
    for (const place of judged.facts.paths) if (await isNamed(workspace, place)) named.push(place);
    return named.length === 0 ? judged : { ...judged, facts: { ...judged.facts, protected: named } };
  };

/**
 * Wraps a tool that changes files. It asks about files that git's configuration names, as about other protected paths.
 * And when it writes a protected path, the user has allowed that, so the sandbox keeps the file in place while commands
 * run in the background.
 */
export const withAllowedWrites = (
  tool: Tool,
  sandbox: SessionSandbox,
  environment: ProcessEnvironment,
): Tool => {
  const isNamed = createNamed(environment);
  const run: Tool['run'] = async (input, context) => {
    const { workspace, paths } = context;
    const kept: string[] = [];
    for (const place of paths) {
      const isKept = protectionInWorkspace(workspace, place) !== null;
      if (isKept || (await isNamed(workspace, place))) kept.push(place);
    }
    for (const place of kept) {
      const commands = await sandbox.of(workspace);
      for (const one of withNewFolders(place, workspace)) commands.allow(one);
    }
    return tool.run(input, context);
  };
  // A spread would evaluate the schema, which is created on first use.
  const parts = {
    ...Object.getOwnPropertyDescriptors(tool),
    judge: { value: withNamedPaths(tool, isNamed), enumerable: true },
    run: { value: run, enumerable: true },
  };
  return Object.defineProperties({}, parts) as Tool; // the descriptors are those of a Tool
};
