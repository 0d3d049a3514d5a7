import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import {
  AUTHOR_PARTS,
  AUTHOR_VARIABLES,
  type AuthorPart,
  ownAuthor,
} from '../../platform/base/fallback-author.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';
import { repositoryFolders } from '../../platform/files/repository-folders.js';

/**
 * An author for commits if none is configured. Reads git's files and starts no process. In doubt it assumes that one is
 * configured and leaves the decision to git.
 */

const CONFIG_BYTES_MAX = 1024 * 1024;

// Most of these files don't exist, and a thrown error costs ten times as much as this check.
const readOrEmpty = (file: string): string =>
  existsSync(file) ? readTextOrEmptySync(file, CONFIG_BYTES_MAX) : '';

/** The folder with the repository's config. Worktrees and submodules refer to it with a file. */
const repositoryOf = (workspace: string): string | null => {
  const top = repositoryFolders(workspace).top ?? workspace;
  const place = path.join(top, '.git');
  const status = statSync(place, { throwIfNoEntry: false });
  if (status === undefined) return null;
  if (status.isDirectory()) return place;
  const own = path.resolve(
    top,
    readOrEmpty(place)
      .replace(/^gitdir:\s*/, '')
      .trim(),
  );
  return path.resolve(own, readOrEmpty(path.join(own, 'commondir')).trim());
};

const configFiles = (environment: ProcessEnvironment, workspace: string): readonly string[] => {
  const home = environment.HOME ?? '';
  const global =
    environment.GIT_CONFIG_GLOBAL === undefined
      ? [
          path.join(environment.XDG_CONFIG_HOME || path.join(home, '.config'), 'git/config'),
          path.join(home, '.gitconfig'),
        ]
      : [environment.GIT_CONFIG_GLOBAL];
  const repository = repositoryOf(workspace);
  const own = repository === null ? [] : [path.join(repository, 'config')];
  return [environment.GIT_CONFIG_SYSTEM ?? '/etc/gitconfig', ...global, ...own];
};

/** The parts that a config file sets. Includes are not followed; a file with includes counts as setting both. */
const partsIn = (config: string): readonly AuthorPart[] => {
  if (/^\s*\[\s*include/im.test(config)) return AUTHOR_PARTS;
  const sections = config
    .split(/^\s*(?=\[)/m)
    .filter((section) => /^\[\s*(user|author|committer)\s*\]/i.test(section));
  return AUTHOR_PARTS.filter((part) =>
    sections.some((section) => new RegExp(`^[^#;]*\\b${part}\\s*=`, 'im').test(section)),
  );
};

/** The configured parts; both if the repository can't be read, because git then reports the problem itself. */
const configuredParts = (environment: ProcessEnvironment, workspace: string): ReadonlySet<AuthorPart> => {
  try {
    return new Set(configFiles(environment, workspace).flatMap((file) => partsIn(readOrEmpty(file))));
  } catch {
    return new Set(AUTHOR_PARTS); // e.g. `.git` is a loop of links, or a parent folder is not accessible
  }
};

/** Variables for the parts that neither the environment nor git's files set. */
const missingIdentity = (
  environment: ProcessEnvironment,
  workspace: string,
): Readonly<Record<string, string>> => {
  const set = configuredParts(environment, workspace);
  const variables: Record<string, string> = {};
  for (const part of AUTHOR_PARTS) {
    if (set.has(part)) continue;
    for (const name of AUTHOR_VARIABLES[part]) {
      if (environment[name] === undefined) variables[name] = ownAuthor(part);
    }
  }
  return variables;
};

const NONE: Readonly<Record<string, string>> = {};

/**
 * Creates the finder for one session. It searches before each command until it finds an identity, since any command may
 * configure one. A command that configures an identity itself gets no variables.
 */
export const createIdentityFinder = (
  environment: ProcessEnvironment,
): ((workspace: string, command: string) => Readonly<Record<string, string>>) => {
  let found = false;
  return (workspace, command) => {
    if (found || /\buser\.(name|email)\b|GIT_CONFIG/.test(command)) return NONE;
    const missing = missingIdentity(environment, workspace);
    found = Object.keys(missing).length === 0;
    return missing;
  };
};
