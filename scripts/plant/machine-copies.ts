/**
 * Copies of the machine in memory, each with at most one planted fault, bundled with everything
 * that checks it: random walks and the explorer (checks.ts), and the tests of the machine.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { context, type Plugin } from 'esbuild';
import type { Test } from '../mutation/one-by-one.js';
import { workspacePackages } from '../workspace-packages.js';
import type * as checks from './checks.js';
import { type Fault, replaceSource } from './fault.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Takes the place of `node:test`: it only collects the tests, to be run one by one. */
const standIn = path.join(root, 'scripts/mutation/one-by-one.ts');

/** The tests whose rows have names, as `cases-tools` or `rules-calls`. */
const CASES = 'packages/agent/test/machine';
const caseFiles = readdirSync(path.join(root, CASES))
  .filter((file) => /^(cases|rules)-.*\.test\.ts$/.test(file) && !file.includes('random'))
  .map((file) => file.replace('.test.ts', ''));

/** The exports of a bundle. Files are loaded on demand and add their tests to `tests`. */
type Bundle = typeof checks & {
  readonly tests: Test[];
  readonly files: Readonly<Record<string, () => Promise<unknown>>>;
};

/** The checks of a copy: checks.ts, and the tests of the case files. */
export type MachineCopy = typeof checks & {
  readonly files: readonly string[];
  /**
   * The tests of a file. Throws if there is no such file, or it fails already when it is loaded.
   */
  readonly testsOf: (file: string) => Promise<readonly Test[]>;
};

/** The text of a file with a fault in it. Throws if the fault does not fit the file any more. */
export const planted = (text: string, { name, file, edits }: Fault): string =>
  edits.reduce((left, edit) => replaceSource(left, edit, `'${name}' does not fit ${file}`), text);

export type MachineCopies = {
  /**
   * The machine with a fault, or as it is. Throws if the fault does not apply, or what comes of it
   * does not run.
   */
  readonly build: (fault: Fault | null) => Promise<MachineCopy>;
  readonly close: () => Promise<void>;
};

export const openMachineCopies = async (): Promise<MachineCopies> => {
  let fault: Fault | null = null;
  const sources: Plugin = {
    name: 'sources',
    setup: ({ onLoad, onResolve }) => {
      onResolve({ filter: /^node:test$/ }, () => ({ path: standIn }));
      onLoad({ filter: /[\\/]packages[\\/]agent[\\/].*\.ts$/ }, ({ path: file }) => {
        const isTarget = fault !== null && path.join(root, fault.file) === file;
        if (fault === null || !isTarget) return undefined;
        return { contents: planted(readFileSync(file, 'utf8'), fault), loader: 'ts' };
      });
    },
  };
  const building = await context({
    absWorkingDir: root,
    stdin: {
      contents: [
        `export const files = {`,
        ...caseFiles.map((file) => `'${file}': () => import('./${CASES}/${file}.test.ts'),`),
        `};`,
        `export { tests } from '${standIn}';`,
        `export * from './scripts/plant/checks.ts';`,
      ].join('\n'),
      resolveDir: root,
    },
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    packages: 'external',
    keepNames: true,
    plugins: [workspacePackages(root), sources],
    logLevel: 'silent',
  });
  return {
    build: async (wanted) => {
      fault = wanted; // the plugin plants it during the rebuild
      const { outputFiles } = await building.rebuild();
      return load(outputFiles[0]?.text ?? '');
    },
    close: () => building.dispose(),
  };
};

/** Runs a bundle as a module of its own. */
const load = (code: string): MachineCopy => {
  const module = { exports: {} };
  const run = new Function('module', 'exports', 'require', 'placeOnTest', code);
  run(module, module.exports, createRequire(import.meta.url), { file: '' });
  // The bundle's entry exports exactly this.
  const { tests, files, ...looks } = module.exports as Bundle;
  const loaded = new Map<string, readonly Test[]>();
  const testsOf = async (file: string): Promise<readonly Test[]> => {
    const before = loaded.get(file);
    if (before !== undefined) return before;
    const open = files[file];
    if (open === undefined) throw new Error(`there is no file of cases '${file}'`);
    tests.length = 0;
    await open();
    const found = [...tests];
    loaded.set(file, found);
    return found;
  };
  return { ...looks, files: Object.keys(files), testsOf };
};
