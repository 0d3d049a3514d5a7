import { symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { sourceAddress } from '../scripts/test-runner/compile.js';
import { workspacePackages } from '../scripts/workspace-packages.js';
import { type TestScope, temporaryFolder } from './temporary-folder.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** `code` imports files by paths from the root, or by absolute ones. */
export type ProgramSource = { readonly file: string } | { readonly code: string };

/**
 * Compiles a program that tests run as a process of its own, with all that it imports: to compile it again in each
 * process takes longer than most of them run. Gives the path of the compiled file, which is there until the scope ends.
 */
export const bundleProgram = async (scope: TestScope, source: ProgramSource): Promise<string> => {
  const folder = temporaryFolder(scope, 'program');
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  const outfile = path.join(folder, 'program.mjs');
  await build({
    absWorkingDir: root,
    ...('file' in source
      ? { entryPoints: [source.file] }
      : { stdin: { contents: source.code, resolveDir: root, loader: 'ts' } }),
    outfile,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    define: { 'import.meta.url': 'sourceUrl', 'import.meta.dirname': 'sourceFolder' },
    plugins: [workspacePackages(root), sourceAddress(root)],
    logLevel: 'silent',
  });
  return outfile;
};
