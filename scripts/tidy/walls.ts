/**
 * The walls between packages: a package imports another one by its name, and only if its
 * package.json says so. Packages, folders beside each other and files have no circle; type imports
 * count. Tests of a package import what the package may import, its own files by their paths, and
 * what all tests share: test/ and scripts/. What they share knows no tests of a package.
 */

import path from 'node:path';
import type { Fault, Source } from './source.js';

/** What a package.json says about the package in whose folder it lies. */
type Manifest = {
  readonly name: string;
  /** All that it may import. */
  readonly dependencies: ReadonlySet<string>;
  /** What it exports to the other packages, as they name it; empty for what users install. */
  readonly exports: readonly string[];
};

/** By folder: `agent` of packages/agent. */
export type Manifests = ReadonlyMap<string, Manifest>;

/** Throws where the text is no JSON. */
export const readManifest = (text: string): Manifest => {
  const manifest = JSON.parse(text) as Readonly<Record<string, unknown>>; // of our own package.json
  const names = ['dependencies', 'devDependencies', 'peerDependencies'].flatMap((field) =>
    Object.keys(manifest[field] ?? {}),
  );
  const name = String(manifest.name);
  const exports = name.startsWith('@') ? Object.keys(manifest.exports ?? {}) : [];
  return {
    name,
    dependencies: new Set(names),
    exports: exports.map((face) => path.posix.join(name, face)),
  };
};

const PLACE = /^packages\/([^/]+)\/(src|test)\//;

/** A file of a package's sources. */
export const isPackageSource = (file: string): boolean => PLACE.exec(file)?.[2] === 'src';

const packageOf = (file: string): string => PLACE.exec(file)?.[1] ?? '';

/** Parts that are pure, and know nothing but themselves and what is named here. */
const PURE_PARTS: readonly { readonly part: RegExp; readonly knows: RegExp }[] = [
  { part: /^packages\/machine\/src\//, knows: /^packages\/machine\/src\// },
  {
    part: /^packages\/agent\/src\/(machine|policy(?!\/shell))\//,
    knows: /^packages\/(agent\/src\/(machine\/|policy\/|platform\/text\.ts$)|machine\/src\/)/,
  },
  // pages in a browser use it too
  { part: /^packages\/agent\/src\/platform\/text\.ts$/, knows: /^$/ },
];

/** The file of the workspace that an import names; null for anything else. */
const resolve = (file: string, specifier: string, manifests: Manifests): string | null => {
  if (specifier.startsWith('.'))
    return path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts');
  const [folder, { name }] = [...manifests].find(
    ([, manifest]) => specifier === manifest.name || specifier.startsWith(`${manifest.name}/`),
  ) ?? ['', { name: '' }];
  if (folder === '') return null;
  return `packages/${folder}/src/${specifier.slice(name.length + 1) || 'index'}.ts`;
};

const importFault = (file: string, specifier: string, manifests: Manifests): string | null => {
  const target = resolve(file, specifier, manifests);
  const [, here = '', room] = PLACE.exec(file) ?? [];
  if (here === '')
    return file.startsWith('test/') && !file.endsWith('.test.ts') && /\/test\//.test(target ?? '')
      ? `what all tests share imports no tests of a package ('${specifier}')`
      : null;
  const pure = PURE_PARTS.find(({ part }) => part.test(file));
  if (pure !== undefined && (target === null || !pure.knows.test(target)))
    return `a pure part imports only pure parts ('${specifier}')`;
  const tops =
    room === 'src' ? [`packages/${here}/src/`] : [`packages/${here}/`, 'test/', 'scripts/'];
  if (specifier.startsWith('.'))
    return tops.some((top) => target?.startsWith(top))
      ? null
      : `another package is imported by its name, and its tests by none ('${specifier}')`;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  const manifest = manifests.get(here);
  if (name === manifest?.name) return `a package never imports itself by its name ('${specifier}')`;
  const isFree = name.startsWith('node:') || (room === 'test' && target === null);
  return isFree || manifest?.dependencies.has(name)
    ? null
    : `packages/${here}/package.json does not name ${name}`;
};

/** For the sources and the tests of packages, and what the tests share. */
export const importFaults = (source: Source, manifests: Manifests): readonly Fault[] =>
  source.imports.flatMap(({ specifier, start }) => {
    const text = importFault(source.file, specifier, manifests);
    return text === null ? [] : [{ file: source.file, line: source.lineOf(start), text }];
  });

/** Exports that nothing outside their package imports: what is not needed stays behind the wall. */
export const exportFaults = (
  sources: readonly Source[],
  manifests: Manifests,
): readonly Fault[] => {
  const used = new Set(sources.flatMap(({ imports }) => imports.map((one) => one.specifier)));
  return [...manifests].flatMap(([folder, { exports }]) =>
    exports
      .filter((face) => !used.has(face))
      .map((face) => ({
        file: `packages/${folder}/package.json`,
        line: 1,
        text: `no other package imports ${face}: do not export it`,
      })),
  );
};

type Edges = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Groups of nodes that reach each other, each in the order in which its nodes were met: strongly
 * connected components, by Tarjan's algorithm.
 */
const findCircles = (edges: Edges): readonly (readonly string[])[] => {
  const low = new Map<string, number>();
  const index = new Map<string, number>();
  const waiting: string[] = [];
  const found: (readonly string[])[] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node) ?? 0);
    waiting.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      if (waiting.includes(next))
        low.set(node, Math.min(low.get(node) ?? 0, low.get(next) ?? 0, index.get(next) ?? 0));
    }
    if (low.get(node) !== index.get(node)) return;
    const group = waiting.splice(waiting.indexOf(node));
    if (group.length > 1) found.push(group);
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return found;
};

/** By file the files of packages that it imports. */
const importedFiles = (sources: readonly Source[], manifests: Manifests): Edges => {
  const known = new Set(sources.map(({ file }) => file));
  return new Map(
    sources.map(({ file, imports }) => {
      const targets = imports.map(({ specifier }) => resolve(file, specifier, manifests) ?? '');
      return [file, new Set(targets.filter((target) => known.has(target)))] as const;
    }),
  );
};

/** The same edges between groups of files; a file whose group is null counts for nothing. */
const groupEdges = (files: Edges, groupOf: (file: string) => string | null): Edges => {
  const edges = new Map<string, Set<string>>();
  for (const [file, targets] of files) {
    const from = groupOf(file);
    if (from === null) continue;
    const reached = edges.get(from) ?? new Set();
    edges.set(from, reached);
    for (const target of targets) {
      const to = groupOf(target);
      if (to !== null && to !== from) reached.add(to);
    }
  }
  return edges;
};

/** All folders of the sources of packages. */
const foldersOf = (files: Edges): readonly string[] => [
  ...new Set(
    [...files.keys()].flatMap((file) =>
      [...file.matchAll(/\//g)].map(({ index }) => file.slice(0, index)).slice(2),
    ),
  ),
];

/** The folder in `parent` in which a file lies; null of a file that lies elsewhere or right in it. */
const folderWithin =
  (parent: string) =>
  (file: string): string | null => {
    const end = file.startsWith(`${parent}/`) ? file.indexOf('/', parent.length + 1) : -1;
    return end < 0 ? null : file.slice(0, end);
  };

/** Circles of files, of folders beside each other, and of packages. */
export const circleFaults = (
  sources: readonly Source[],
  manifests: Manifests,
): readonly Fault[] => {
  const files = importedFiles(sources, manifests);
  const folders = foldersOf(files).map((parent) => groupEdges(files, folderWithin(parent)));
  const all = [
    ...findCircles(files).map((circle) => ['files', circle] as const),
    ...folders.flatMap(findCircles).map((circle) => ['folders', circle] as const),
    ...findCircles(groupEdges(files, packageOf)).map((circle) => ['packages', circle] as const),
  ];
  return all.map(([what, circle]) => ({
    file: what === 'packages' ? `packages/${circle[0]}/package.json` : (circle[0] ?? ''),
    line: 1,
    text: `circle of ${what}: ${circle.join(', ')}`,
  }));
};

const SMALL_LINES = 60;

/**
 * A small file that one other file imports belongs below its user there. What is loaded late stands
 * apart, and so do faces and programs, which nobody imports.
 */
export const smallFileFaults = (
  sources: readonly Source[],
  manifests: Manifests,
): readonly Fault[] => {
  const importers = new Map<string, Set<string>>();
  const loadedLate = new Set<string>();
  for (const { file, text, imports } of sources)
    for (const { specifier, start } of imports) {
      const target = resolve(file, specifier, manifests) ?? '';
      if (text.startsWith('import(', start)) loadedLate.add(target);
      importers.set(target, (importers.get(target) ?? new Set()).add(file));
    }
  return sources.flatMap(({ file, text }) => {
    const [importer, ...others] = importers.get(file) ?? [];
    const isSmall = text.split('\n').length <= SMALL_LINES && !file.endsWith('/index.ts');
    return isSmall && importer !== undefined && others.length === 0 && !loadedLate.has(file)
      ? [{ file, line: 1, text: `a small file that only ${importer} imports: put it there` }]
      : [];
  });
};
