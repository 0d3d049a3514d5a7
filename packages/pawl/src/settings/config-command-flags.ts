import { flagOf, type RunFlags } from '../flags.js';
import { settings } from './setting-table.js';

export type ConfigFlags = RunFlags & { readonly origin?: true };

/** The flags of `pawl config`: its own, and those of settings, whose effect it shows. */
export const configFlags: readonly (readonly [string, string])[] = [
  ['--origin', 'name the source of each value, and the values it overrules'],
  ['--json', 'as JSON lines'],
  ['--workspace <folder>', 'the folder whose settings to print (default: this one)'],
  ...settings.filter(({ flag, key }) => flag !== null && !key.includes('.')).map(({ key }) => flagOf(key)),
];
