/**
 * A plugin of esbuild that puts scripts into the modules that read them, since a bundle has no
 * files beside its modules.
 */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/** How a module reads a script that lies beside it: one for a shell, the text of a thread, or rules. */
const READ =
  /readFileSync\(new URL\('\.\/([\w-]+\.(?:sh|cjs|sbpl))', import\.meta\.url\), 'utf8'\)/g;
const COMMENT_LINES = /^ *#.*\n/gm;

/**
 * Scripts, without comments of shells, in place of the calls that read them beside their module.
 */
export const withShellScripts = (file: string, text: string): string =>
  text.replace(READ, (_, name: string) => {
    const script = readFileSync(path.join(path.dirname(file), name), 'utf8');
    return JSON.stringify(script.replace(COMMENT_LINES, ''));
  });

/** A bundle holds the scripts of its modules. */
export const inlineShellScripts: Plugin = {
  name: 'inline-shell-scripts',
  setup(builder) {
    builder.onLoad(
      { filter: /agent[\\/]src[\\/](?:command|workspace)[\\/].*\.ts$/ },
      ({ path: file }) => {
        const text = readFileSync(file, 'utf8');
        const contents = withShellScripts(file, text);
        return contents === text ? undefined : { contents, loader: 'ts' };
      },
    );
  },
};
