/**
 * Programs of the environments in which `pawl ask` runs code that a model has written. They run in
 * a separate process or thread, so they are separate files in dist/environments/.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type BuildOptions, build, type Metafile } from 'esbuild';

const SOURCES = 'packages/ask/src/environments/sandboxed';
const WORKER = 'packages/ask/src/environments/quickjs/quickjs-worker.ts';

type Programs = {
  readonly files: readonly { readonly path: string; readonly contents: Uint8Array }[];
  readonly inputs: readonly string[];
};

/** Programs that are not TypeScript are copied unchanged. */
const copied = (root: string): Programs['files'] =>
  readdirSync(path.join(root, SOURCES), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .map((file) => ({
      path: path.join(
        root,
        'packages/pawl/dist/environments',
        path.relative(path.join(root, SOURCES), file),
      ),
      contents: readFileSync(file),
    }));

/** The programs, where there are any under `root`. */
export const environmentPrograms = async (
  root: string,
  common: BuildOptions & { readonly write: false; readonly metafile: true },
): Promise<Programs> => {
  if (!existsSync(path.join(root, WORKER))) return { files: [], inputs: [] };
  const { outputFiles, metafile }: { outputFiles: Programs['files']; metafile: Metafile } =
    await build({
      ...common,
      entryPoints: [WORKER],
      outfile: 'packages/pawl/dist/environments/quickjs-worker.js',
      format: 'esm',
      keepNames: false,
      inject: [],
    });
  return { files: [...outputFiles, ...copied(root)], inputs: Object.keys(metafile.inputs) };
};
