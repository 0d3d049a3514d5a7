import type { CallFacts } from '../../machine/call.js';
import { isSecretPath } from './credential-paths.js';
import { type Protection, protectionOf, protectionOfFile } from './protected-paths.js';

/** Marks the protected and secret paths among those that a call touches. */

const relativeTo = (workspace: string, path: string): string | null => {
  const base = workspace.endsWith('/') ? workspace : `${workspace}/`;
  if (path === workspace) return '';
  return path.startsWith(base) ? path.slice(base.length) : null;
};

/**
 * The protection of a file by its name in the workspace. The workspace's own name counts where a protected path begins with
 * it: in a workspace `.github` the folder `workflows` is protected.
 */
export const protectionInWorkspace = (workspace: string, path: string): Protection | null => {
  const inside = relativeTo(workspace, path);
  if (inside === null) return protectionOfFile(path);
  const own = workspace.split('/').at(-1) ?? '';
  const found = protectionOfFile(inside);
  if (found !== null || inside === '' || protectionOf(own) !== null) return found;
  return protectionOf(`${own}/${inside}`);
};

/**
 * Adds protected, secret and outside paths to the facts of a call. The workspace's own path does not count. Paths that the
 * tool has found to be protected stay so.
 */
export const markSensitivePaths = (facts: CallFacts, workspace: string, home: string): CallFacts => {
  const named = facts.protected ?? [];
  const guarded = facts.paths.filter(
    (path) => named.includes(path) || protectionInWorkspace(workspace, path) !== null,
  );
  const secret = facts.paths.filter(
    (path) => relativeTo(workspace, path) === null && isSecretPath(path, home),
  );
  const leaves =
    facts.needs === undefined && facts.paths.some((path) => relativeTo(workspace, path) === null);
  return {
    ...facts,
    ...(leaves ? ({ needs: 'outside' } as const) : {}),
    ...(guarded.length === 0 ? {} : { protected: guarded }),
    ...(secret.length === 0 ? {} : { secret }),
  };
};
