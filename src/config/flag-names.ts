import type { Setting } from './table.js';

/** `--max-usd <amount>` is `--max-usd`; null of a setting without a flag. */
export const flagName = ({ flag }: Setting): string | null => flag?.split(' ')[0] ?? null;

/** As the parser of flags hands it over: `maxUsd`. Also of settings without a flag: `firstByteMs`. */
export const attributeOf = (setting: Setting): string => {
  const name = flagName(setting)?.slice(2) ?? setting.key.split('.').at(-1) ?? setting.key;
  return name.replace(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase());
};
