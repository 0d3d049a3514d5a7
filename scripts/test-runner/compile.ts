/**
 * Compiles test files and what they import in one go: to compile them in each of their processes
 * costs more than most of the tests.
 *
 * 1. A compiled file believes that it lies where its source lies: `import.meta.url` and
 *    `import.meta.dirname` name the source.
 * 2. Code that several files share becomes a file of its own, so that a process loads each module
 *    once.
 * 3. Programs of packages/ask/src/environments are those of dist, where the bundle has put them:
 *    from their sources each thread would begin with a compiler.
 * 4. Guards and moves keep their names, whichever files are compiled together.
 * 5. Shell scripts that lie beside a module are part of it: other users, as whom some tests run,
 *    can't read the sources.
 * 6. Packages stay outside: they are found through node_modules, in which the folder lies.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { withShellScripts } from '../inline-shell-scripts.js';
import { workspacePackages } from '../workspace-packages.js';
import { GUARD, isUnitTest, unitProgram } from './tier.js';

export type CompiledTests = {
  /** The compiled file of a test file. */
  readonly programOf: (file: string) => string;
  /** Those that can share a process: see tier.ts. */
  readonly unitTests: readonly string[];
  /**
   * A program that runs these unit tests, one file after the other; each is a suite with the name
   * of the file.
   */
  readonly unitProgramOf: (files: readonly string[]) => string;
  /** The address of the reporter, for --test-reporter. */
  readonly reporter: string;
  readonly remove: () => void;
};

const CACHE = 'node_modules/.cache/pawl-tests';
/** Finds the programs of packages/ask/src/environments beside itself, or below dist. */
const PROGRAM_FILE = path.normalize('packages/ask/src/environments/bundled-program-file.ts');
const REPORTER = fileURLToPath(new URL('reporter.ts', import.meta.url));

/** Guards and moves: traces, edges and fingerprints hold their names. */
const NAMED = /\/(agent\/src\/machine|ask\/src\/run)\/moves\//;
const EXPORTED = /^export (?:const|function) (\w+)/gm;

/**
 * Gives exported functions their names back: the compiler numbers equal names of modules that come
 * into one file, and which do depends on the files of a run. `keepNames` would cost a call for each
 * closure that is made; this is one call for each function of a module, once.
 */
const withNames = (file: string, text: string): string => {
  if (!NAMED.test(file)) return text;
  const names = [...text.matchAll(EXPORTED)].map(([, name]) => name).join();
  return `${text}
for (const [name, value] of Object.entries({ ${names} }))
  if (typeof value === 'function') Object.defineProperty(value, 'name', { value: name });`;
};

/** Compiled code finds its own files beside its source. */
export const sourceAddress = (root: string): Plugin => ({
  name: 'source-address',
  setup(builder) {
    builder.onLoad({ filter: /\.ts$/, namespace: 'file' }, ({ path: file }) => {
      const text = withShellScripts(file, readFileSync(file, 'utf8'));
      if (!text.includes('import.meta')) return { contents: withNames(file, text), loader: 'ts' };
      const isOfPrograms = file.endsWith(PROGRAM_FILE);
      const url = JSON.stringify(
        pathToFileURL(isOfPrograms ? path.resolve(root, 'packages/pawl/dist/index.js') : file).href,
      );
      // On the first line, so that the others keep their numbers.
      const addresses = `const sourceUrl = ${url}, sourceFolder = ${JSON.stringify(path.dirname(file))};`;
      return { contents: `${addresses}${text}`, loader: 'ts' };
    });
  },
});

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
};

/** Folders of runs that were killed: each is named after its process. */
const removeAbandoned = (root: string): void => {
  const folder = path.join(root, CACHE);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (!isRunning(Number(name))) rmSync(path.join(folder, name), { recursive: true, force: true });
  }
};

/**
 * Compiles these test files, relative to `root`, into a folder of this process. Throws where one
 * does not compile.
 */
export const compileTests = async (
  root: string,
  files: readonly string[],
): Promise<CompiledTests> => {
  removeAbandoned(root);
  const folder = path.join(root, CACHE, String(process.pid));
  mkdirSync(folder, { recursive: true });
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const programOf = (file: string): string => path.join(folder, file.replace(/\.ts$/, '.mjs'));
  // the file that forbids unit tests to start programs
  const guard = existsSync(path.join(root, GUARD)) ? [GUARD] : [];
  const compiled = async () => {
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: [
        ...[...new Set([...files, ...guard])].map((file) => ({
          in: file,
          out: file.replace(/\.ts$/, ''),
        })),
        { in: REPORTER, out: 'test-reporter' },
      ],
      outdir: folder,
      chunkNames: 'shared/[name]-[hash]',
      bundle: true,
      splitting: true,
      packages: 'external',
      format: 'esm',
      outExtension: { '.js': '.mjs' }, // a folder below node_modules has no package.json that says so
      platform: 'node',
      target: 'node20',
      sourcemap: 'linked',
      sourcesContent: false,
      metafile: true,
      define: { 'import.meta.url': 'sourceUrl', 'import.meta.dirname': 'sourceFolder' },
      plugins: [workspacePackages(root), sourceAddress(root)],
      logLevel: 'silent',
    });
    return metafile;
  };
  const metafile = await compiled().catch((error: unknown) => {
    remove();
    throw error;
  });
  let unitPrograms = 0;
  return {
    programOf,
    unitTests: files.filter((file) => isUnitTest(metafile, file)),
    unitProgramOf: (chosen) => {
      unitPrograms += 1;
      const program = path.join(folder, `unit-tests-${unitPrograms}.mjs`);
      writeFileSync(program, unitProgram(chosen, programOf, guard.length > 0));
      return program;
    },
    reporter: pathToFileURL(path.join(folder, 'test-reporter.mjs')).href,
    remove,
  };
};
