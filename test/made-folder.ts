import { cpSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { removeFolderSync } from './temporary-folder.js';

const made = new Map<string, string>();

/**
 * Fills a folder with what `make` puts into one. The first call with a key runs it, each other one
 * of this process copies: a copy costs a tenth of the programs that make a repository.
 */
export const fillFolder = (folder: string, key: string, make: (folder: string) => void): void => {
  const known = made.get(key);
  const source = known ?? path.join(mkdtempSync(path.join(tmpdir(), 'pawl-made-')), 'made');
  if (known === undefined) {
    process.once('exit', () => removeFolderSync(path.dirname(source)));
    mkdirSync(source);
    make(source);
    made.set(key, source);
  }
  const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true } as const;
  cpSync(source, folder, options);
};
