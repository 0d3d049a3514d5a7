/**
 * The grammar of the shell and what reads it: files of their own in dist/shell/, since they are
 * loaded late and by path.
 */

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const FILES = [
  'web-tree-sitter/web-tree-sitter.cjs',
  'web-tree-sitter/web-tree-sitter.wasm',
  'tree-sitter-bash/tree-sitter-bash.wasm',
];

/** The files for dist/ and the packages they come from; empty if the sources need none. */
export const shellGrammar = (
  root: string,
): {
  readonly files: readonly { readonly path: string; readonly contents: Uint8Array }[];
  readonly inputs: readonly string[];
} => {
  if (!existsSync(path.join(root, 'packages/agent/src/policy/shell')))
    return { files: [], inputs: [] };
  const inputs = FILES.map((file) => path.join('node_modules', file));
  const files = inputs.map((input) => ({
    path: path.join(root, 'packages/pawl/dist/shell', path.basename(input)),
    contents: readFileSync(path.join(root, input)),
  }));
  return { files, inputs };
};
