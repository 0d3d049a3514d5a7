import type { Needs } from '../machine/call.js';
import type { SandboxLevel, Settings } from '../machine/settings.js';

/** The sandbox level of one command; the strictest first. */
export const COMMAND_LEVELS = ['read-only', 'read-only+net', 'workspace', 'workspace+net', 'off'] as const;
export type CommandLevel = (typeof COMMAND_LEVELS)[number];

const withNetwork: Readonly<Record<SandboxLevel, CommandLevel>> = {
  'read-only': 'read-only+net',
  workspace: 'workspace+net',
  'workspace+net': 'workspace+net',
  off: 'off',
};

/**
 * The sandbox level of an allowed call. Old sessions have no setting, since they had no sandbox. With a missing sandbox
 * only calls that the user approved get here.
 */
export const levelOfCall = (setting: Settings['sandbox'], needs: Needs | undefined): CommandLevel => {
  if (setting === undefined || setting === 'off' || setting === 'missing' || needs === 'outside')
    return 'off';
  return needs === 'network' ? withNetwork[setting] : setting;
};
