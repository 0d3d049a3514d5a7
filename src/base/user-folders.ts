import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ProcessEnvironment } from './process-environment-type.js';

const folderOf = (environment: ProcessEnvironment, variable: string, below: readonly string[]): string => {
  const configured = environment[variable] ?? '';
  if (configured.startsWith('/')) return join(configured, 'pawl');
  const home = environment.HOME ?? '';
  return join(home === '' ? homedir() : home, ...below, 'pawl');
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
