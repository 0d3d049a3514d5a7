import type { Setting } from './setting.js';

/** `--max-usd` of `--max-usd <amount>`; null for a setting without a flag. */
export const flagName = ({ flag }: Setting): string | null => flag?.split(' ')[0] ?? null;

/** The attribute name that the flag parser creates: `maxUsd`. Settings without a flag have one too: `firstByteMs`. */
export const attributeOf = (setting: Setting): string => {
  const name = flagName(setting)?.slice(2) ?? setting.key.split('.').at(-1) ?? setting.key;
  return name.replace(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase());
};
