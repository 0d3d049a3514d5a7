/**
 * Bundles the program into packages/pawl/dist/: one file an entry, what they share and what is
 * loaded late as chunks.
 *
 * 1. Names of functions are kept: they are the labels of the diagram.
 * 2. dist/machine.js reaches nothing of Node, so that it runs in a browser.
 * 3. A file is replaced as a whole and only when it changed: a program that runs meanwhile is not
 *    disturbed.
 *
 * From top to bottom: plugins of esbuild; the program; what an entry loads at once; writing; and
 * `bundle`.
 */

import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';
import { environmentPrograms } from './environment-programs.js';
import { inlineShellScripts } from './inline-shell-scripts.js';
import { inspectorPage } from './inspector-page.js';
import { buildProtocols, lateBuiltins, latePackages, packagesLateInside } from './late-modules.js';
import { mergeBuiltinImports } from './merge-builtin-imports.js';
import { shellGrammar } from './shell-grammar.js';
import { thirdParty } from './third-party.js';
import { workspacePackages } from './workspace-packages.js';

const ENTRIES: Readonly<Record<string, string>> = {
  index: 'packages/pawl/src/index.ts',
  machine: 'packages/pawl/src/machine.ts',
  testing: 'packages/pawl/src/testing.ts',
  telemetry: 'packages/pawl/src/telemetry.ts',
  engine: 'packages/serve/src/engine.ts',
};
const DIST = 'packages/pawl/dist';
/** Stays a dependency: it carries a binary for each platform. */
const EXTERNAL = ['@vscode/ripgrep'];
/** The library takes its user's own: it holds what the user's program registered there. */
const OF_THE_USER = ['@opentelemetry/api'];

/**
 * CommonJS in an ES module bundle has no `require`: where a bundled package requires a module of
 * Node's, it asks the process for it. No banner with `createRequire` is needed, which would end up
 * in dist/machine.js too.
 */
const requireBuiltins: Plugin = {
  name: 'require-builtins',
  setup(builder) {
    builder.onResolve({ filter: /^(node:)?[a-z_/]+$/ }, ({ path: name, kind }) => {
      const bare = name.replace(/^node:/, '');
      if (kind !== 'require-call' || !builtinModules.includes(bare)) return undefined;
      return { path: `node:${bare}`, namespace: 'builtin' };
    });
    builder.onLoad({ filter: /./, namespace: 'builtin' }, ({ path: name }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(name)});`,
    }));
  },
};

/**
 * Zod's messages in fifty languages are 300 kB that nobody here reads; English is what it starts
 * with.
 */
const englishOnly: Plugin = {
  name: 'english-only',
  setup(builder) {
    builder.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, ({ path: file }) => ({
      contents: `export { default as en } from './en.js';`,
      resolveDir: path.dirname(file),
    }));
  },
};

const PROGRAM = 'packages/pawl/src/main.ts';

/** Options that both builds share. */
const common = (root: string) =>
  ({
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    target: 'node20',
    keepNames: true,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    // Otherwise a crash would print half the program as its source line.
    lineLimit: 160,
    external: EXTERNAL,
    plugins: [workspacePackages(root), inlineShellScripts, requireBuiltins, englishOnly],
    metafile: true as const,
    write: false as const,
    logLevel: 'silent',
  }) satisfies BuildOptions;

/**
 * The program as one CommonJS file, which bin/code-cache.js can keep compiled; parts that are
 * imported late are still run late. Its first line names its content. Our own code is bundled
 * first, with the names of functions kept; then the packages join it, whose functions need no
 * names, since keeping one costs a call for each closure that is made.
 */
const buildProgram = async (root: string) => {
  if (!existsSync(path.join(root, PROGRAM))) return [];
  const own = await build({
    ...common(root),
    entryPoints: [PROGRAM],
    format: 'esm',
    packages: 'external',
    define: { 'import.meta.url': 'bundleUrl' },
  });
  const ownText = mergeBuiltinImports(own.outputFiles[0]?.text ?? '');
  const joined = {
    ...common(root),
    format: 'cjs',
    keepNames: false,
    minifyIdentifiers: true,
    charset: 'ascii', // bin/code-cache.js reads it as such
    // What is not bundled is required: an import() of a script that is run by hand prints a warning
    // of Node's. Signs of other alphabets can't be escaped in a tagged template: such templates
    // become calls with plain strings.
    supported: { 'dynamic-import': false, 'template-literal': false },
  } satisfies BuildOptions;
  const protocols = await buildProtocols(ownText, joined);
  const { outputFiles, metafile } = await build({
    ...joined,
    stdin: { contents: ownText, resolveDir: root, sourcefile: PROGRAM },
    outfile: `${DIST}/cli.cjs`,
    plugins: [lateBuiltins, latePackages(ownText), packagesLateInside(ownText), ...joined.plugins],
    banner: { js: "const bundleUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error('esbuild gave no program');
  if (/[^\0-\x7f]/.test(output.text))
    throw new Error('the program is not ASCII, and would be read as if it were');
  const name = createHash('sha256').update(output.contents).digest('hex').slice(0, 16);
  const program = { path: output.path, contents: `//${name}\n${output.text}`, metafile };
  return protocols === null ? [program] : [program, protocols];
};

/** The outputs that `entry` loads at once, itself included. */
const loadedAtOnce = (metafile: Metafile, entry: string): readonly string[] => {
  const found = new Set<string>();
  const visit = (file: string): void => {
    if (found.has(file)) return;
    found.add(file);
    for (const { path: next, kind } of metafile.outputs[file]?.imports ?? []) {
      if (kind === 'import-statement') visit(next);
    }
  };
  visit(entry);
  return [...found];
};

/** The sources in what `entry` loads at once. */
export const sourcesLoadedAtOnce = (metafile: Metafile, entry: string): readonly string[] =>
  loadedAtOnce(metafile, entry).flatMap((file) =>
    Object.entries(metafile.outputs[file]?.inputs ?? {}).flatMap(([source, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [source] : [],
    ),
  );

const sumSizes = (metafile: Metafile, files: readonly string[]): number =>
  files.reduce((sum, file) => sum + (metafile.outputs[file]?.bytes ?? 0), 0);

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;

const replaceFile = (file: string, content: string | Uint8Array): void => {
  const bytes = Buffer.from(content);
  if (existsSync(file) && readFileSync(file).equals(bytes)) return;
  mkdirSync(path.dirname(file), { recursive: true });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, bytes);
  renameSync(fresh, file);
};

/** Removes bundled files that this build did not write. */
const removeStale = (folder: string, kept: ReadonlySet<string>): void => {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name);
    if (name.endsWith('.js') && !kept.has(file)) rmSync(file, { force: true });
  }
};

/** Removes stale files of a folder and its subfolders. */
const removeAllStale = (folder: string, kept: ReadonlySet<string>): void => {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile() && !kept.has(file)) rmSync(file, { force: true });
  }
};

const assertPure = (metafile: Metafile): void => {
  if (metafile.outputs[`${DIST}/machine.js`] === undefined) return;
  for (const file of loadedAtOnce(metafile, `${DIST}/machine.js`)) {
    const outside = metafile.outputs[file]?.imports.find((entry) => entry.external);
    if (outside)
      throw new Error(`dist/machine.js must run in a browser, but ${file} imports ${outside.path}`);
  }
};

const describeSizes = (metafile: Metafile, entries: readonly string[]): readonly string[] => {
  const lines = Object.entries(ENTRIES).map(([name, source]) => {
    const file = `${DIST}/${name}.js`;
    if (!entries.includes(name)) return `${file}: not built, there is no ${source}`;
    const files = loadedAtOnce(metafile, file);
    return `${file}: loads ${kilobytes(sumSizes(metafile, files))} at once, ${files.length} files`;
  });
  const all = Object.values(metafile.outputs);
  const bytes = all.reduce((sum, output) => sum + output.bytes, 0);
  return [...lines, `the library: ${all.length} files, ${kilobytes(bytes)}`];
};

const presentEntries = (root: string) =>
  Object.entries(ENTRIES).filter(([, source]) => existsSync(path.join(root, source)));

/** The library's entries with the chunks that they share. Nothing is written. */
export const buildLibrary = (root: string) =>
  build({
    ...common(root),
    external: [...EXTERNAL, ...OF_THE_USER],
    entryPoints: Object.fromEntries(presentEntries(root)),
    outdir: DIST,
    chunkNames: 'chunks/[name]-[hash]',
    splitting: true,
    format: 'esm',
  });

/**
 * Builds all entries that exist under `root`; returns a line about each. Throws if a source does
 * not parse or a licence is missing.
 */
export const bundle = async (root: string): Promise<readonly string[]> => {
  const { outputFiles, metafile } = await buildLibrary(root);
  const program = await buildProgram(root);
  assertPure(metafile);
  // programs that run the code of `pawl ask` in a process or thread of their own
  const environments = await environmentPrograms(root, common(root));
  const grammar = shellGrammar(root);
  const page = await inspectorPage(root);
  const files = [...outputFiles, ...program, ...environments.files, ...grammar.files, ...page];
  for (const { path: file, contents } of files) replaceFile(file, contents);
  const kept = new Set(files.map((file) => file.path));
  removeStale(path.join(root, DIST), kept);
  removeStale(path.join(root, DIST, 'chunks'), kept);
  for (const folder of ['environments', 'shell'])
    removeAllStale(path.join(root, DIST, folder), kept);
  replaceFile(
    path.join(root, 'packages/pawl/THIRD-PARTY.md'),
    thirdParty(root, [
      ...Object.keys(metafile.inputs),
      ...program.flatMap(({ metafile: { inputs } }) => Object.keys(inputs)),
      ...environments.inputs,
      ...grammar.inputs,
    ]),
  );
  return [
    ...(program.length === 0 ? ['dist/cli.cjs: not built'] : []),
    ...program.map(
      (file) => `dist/${path.basename(file.path)}: ${kilobytes(file.contents.length)}`,
    ),
    ...describeSizes(
      metafile,
      presentEntries(root).map(([name]) => name),
    ),
  ];
};

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    const lines = await bundle(path.join(fileURLToPath(import.meta.url), '../..'));
    console.log(lines.join('\n'));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
