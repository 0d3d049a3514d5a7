/** Where this package lies, and its version. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of our package.json; works from sources and from the bundle. */
export const packageFolder = (): string => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder))
    folder = dirname(folder);
  return folder;
};

export const packageVersion = (): string => {
  const described: unknown = JSON.parse(
    readFileSync(join(packageFolder(), 'package.json'), 'utf8'),
  );
  const hasVersion = typeof described === 'object' && described !== null && 'version' in described;
  return hasVersion ? String(described.version) : 'unknown';
};
