import type { CallFacts } from '../../call.js';
import { isSecretPath } from './credential-paths.js';
import { protectionOfFile } from './protected-paths.js';

/** Marks the protected and secret paths among those that a call touches. */

const relativeTo = (workspace: string, path: string): string | null => {
  const base = workspace.endsWith('/') ? workspace : `${workspace}/`;
  if (path === workspace) return '';
  return path.startsWith(base) ? path.slice(base.length) : null;
};

/**
 * Adds protected, secret and outside paths to the facts of a call. The workspace's own path does not count. Paths that the
 * tool has found to be protected stay so.
 */
export const markSensitivePaths = (facts: CallFacts, workspace: string, home: string): CallFacts => {
  const named = facts.protected ?? [];
  const guarded = facts.paths.filter(
    (path) => named.includes(path) || protectionOfFile(relativeTo(workspace, path) ?? path) !== null,
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
