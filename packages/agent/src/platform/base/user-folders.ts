import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { ProcessEnvironment } from './process-environment-type.js';

/**
 * The user's home: HOME if it is an absolute path, otherwise the one of the account. A relative HOME would put files
 * into whatever folder is current.
 */
export const homeFolder = (environment: ProcessEnvironment): string => {
  const configured = environment.HOME ?? '';
  if (isAbsolute(configured)) return configured;
  const inherited = homedir(); // reads HOME of the process
  return isAbsolute(inherited) ? inherited : userInfo().homedir;
};

const folderOf = (environment: ProcessEnvironment, variable: string, below: readonly string[]): string => {
  const configured = environment[variable] ?? '';
  if (configured.startsWith('/')) return join(configured, 'pawl');
  return join(homeFolder(environment), ...below, 'pawl');
};

/**
 * Folder of the sessions: `$XDG_STATE_HOME/pawl`, otherwise `~/.local/state/pawl`. A relative XDG path is ignored, as
 * the XDG specification requires.
 */
export const stateFolder = (environment: ProcessEnvironment): string =>
  folderOf(environment, 'XDG_STATE_HOME', ['.local', 'state']);

/** Folder of the user's configuration: `$XDG_CONFIG_HOME/pawl`, otherwise `~/.config/pawl`. */
export const configFolder = (environment: ProcessEnvironment): string =>
  folderOf(environment, 'XDG_CONFIG_HOME', ['.config']);

/** Folder of data that users may look into, such as worktrees: `$XDG_DATA_HOME/pawl`, otherwise `~/.local/share/pawl`. */
export const dataFolder = (environment: ProcessEnvironment): string =>
  folderOf(environment, 'XDG_DATA_HOME', ['.local', 'share']);
