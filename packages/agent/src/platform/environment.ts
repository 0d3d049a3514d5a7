/** Pawl in its environment: the user's folders, Pawl's version, and its name in commits. */

import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Environment variables by name, as in `process.env`. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The user's home: HOME if it is an absolute path, otherwise the one of the account. A relative
 * HOME would put files into whatever folder is current.
 */
export const homeFolder = (environment: ProcessEnvironment): string => {
  const configured = environment.HOME ?? '';
  if (isAbsolute(configured)) return configured;
  const inherited = homedir(); // reads HOME of the process
  return isAbsolute(inherited) ? inherited : userInfo().homedir;
};

/** Pawl's folder below the one that the variable names, or else below the home. */
const pawlFolder = (
  environment: ProcessEnvironment,
  variable: string,
  below: readonly string[],
): string => {
  const configured = environment[variable] ?? '';
  if (configured.startsWith('/')) return join(configured, 'pawl');
  return join(homeFolder(environment), ...below, 'pawl');
};

/**
 * Folder of the sessions: `$XDG_STATE_HOME/pawl`, otherwise `~/.local/state/pawl`. A relative XDG
 * path is ignored, as the XDG specification requires.
 */
export const stateFolder = (environment: ProcessEnvironment): string =>
  pawlFolder(environment, 'XDG_STATE_HOME', ['.local', 'state']);

/** Folder of the user's configuration: `$XDG_CONFIG_HOME/pawl`, otherwise `~/.config/pawl`. */
export const configFolder = (environment: ProcessEnvironment): string =>
  pawlFolder(environment, 'XDG_CONFIG_HOME', ['.config']);

/**
 * Folder of data that users may look into, such as worktrees: `$XDG_DATA_HOME/pawl`, otherwise
 * `~/.local/share/pawl`.
 */
export const dataFolder = (environment: ProcessEnvironment): string =>
  pawlFolder(environment, 'XDG_DATA_HOME', ['.local', 'share']);

/**
 * Folder of compiled code and of what this machine can do, which are trusted like the program
 * itself: `$XDG_CACHE_HOME/pawl`, otherwise `~/.cache/pawl`.
 */
export const cacheFolder = (environment: ProcessEnvironment): string =>
  pawlFolder(environment, 'XDG_CACHE_HOME', ['.cache']);

/** The version in package.json. A test compares the two. */
export const VERSION = '0.1.0';

/** Pawl's name and address in commits, used if the user has configured none. */
const AUTHOR = { name: 'Pawl', email: 'pawl@localhost' } as const;

export type AuthorPart = keyof typeof AUTHOR;

export const AUTHOR_PARTS: readonly AuthorPart[] = ['name', 'email'];

/** Environment variables for each part of author and committer. */
export const AUTHOR_VARIABLES: Readonly<
  Record<AuthorPart, readonly [author: string, committer: string]>
> = {
  name: ['GIT_AUTHOR_NAME', 'GIT_COMMITTER_NAME'],
  email: ['GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_EMAIL'],
};

export const fallbackAuthor = (part: AuthorPart): string => AUTHOR[part];
