/**
 * Builds the simulator, with the production code as it is or with a planted fault. The checkout is
 * not touched.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { replaceSource } from '../plant/fault.js';
import { workspacePackages } from '../workspace-packages.js';

export type PlantedFault = {
  /** The wrong behaviour, as a sentence. */
  readonly name: string;
  /** Path of a source, from the root of the repository. */
  readonly file: string;
  /** Texts, each of which stands in the file once, whatever its line breaks are. */
  readonly edits: readonly { readonly from: string; readonly to: string }[];
};

const root = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = path.join(root, 'node_modules/.cache/pawl-simulation');

/** The text of a file with the fault in it. Throws if the fault does not fit the file any more. */
export const planted = (text: string, { name, file, edits }: PlantedFault): string =>
  edits.reduce((left, edit) => replaceSource(left, edit, `'${name}' does not fit ${file}`), text);

/** Writes a program for one worker, the thread that runs sessions (worker.ts); returns its path. */
export const buildWorker = async (name: string, fault: PlantedFault | null): Promise<string> => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['scripts/simulation/worker.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'silent',
    plugins: [
      workspacePackages(root),
      {
        name: 'planted-fault',
        setup: ({ onLoad }) => {
          onLoad({ filter: /[\\/]packages[\\/].*\.ts$/ }, ({ path: file }) =>
            fault !== null && path.join(root, fault.file) === file
              ? { contents: planted(readFileSync(file, 'utf8'), fault), loader: 'ts' }
              : undefined,
          );
        },
      },
    ],
  });
  mkdirSync(FOLDER, { recursive: true });
  const program = path.join(FOLDER, `${name}-${process.pid}.mjs`);
  writeFileSync(program, outputFiles[0]?.contents ?? '');
  return program;
};
