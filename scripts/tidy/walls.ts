/**
 * The walls between packages: a package imports another one through its `exports`, and only if its
 * package.json names it. Packages, folders beside each other and files have no circle; type imports
 * count. Tests of a package import what the package may import, its own files by their paths, and
 * what all tests share: test/ and scripts/. What they share knows no tests of a package.
 */

import path from 'node:path';
import type { Fault, Source } from './source.js';

/** What a package.json says about the package in whose folder it lies. */
export type Manifest = {
  readonly name: string;
  /** All that it may import. */
  readonly dependencies: ReadonlySet<string>;
};

/** By folder: `agent` of packages/agent. */
export type Manifests = ReadonlyMap<string, Manifest>;

const DEPENDENCY_FIELDS = ['dependencies', 'devDependencies', 'peerDependencies'];

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Throws where the text is no JSON. */
export const readManifest = (text: string): Manifest => {
  const manifest: unknown = JSON.parse(text);
  if (!isTable(manifest)) return { name: '', dependencies: new Set() };
  const lists = DEPENDENCY_FIELDS.map((field) => manifest[field]).filter(isTable);
  return { name: String(manifest.name), dependencies: new Set(lists.flatMap(Object.keys)) };
};

const SOURCE = /^packages\/([^/]+)\/src\//;

/** A file of a package's sources. */
export const isPackageSource = (file: string): boolean => SOURCE.test(file);

const TEST = /^packages\/([^/]+)\/test\//;

/** A test of a package, or what helps one. */
const isPackageTest = (file: string): boolean => TEST.test(file);

/** A test, or what helps one. */
export const isTest = (file: string): boolean => file.startsWith('test/') || isPackageTest(file);

const packageOf = (file: string): string => SOURCE.exec(file)?.[1] ?? '';

/** Parts that are pure, and know nothing but themselves and what is named here. */
const PURE_PARTS: readonly { readonly part: RegExp; readonly knows: RegExp }[] = [
  { part: /^packages\/machine\/src\//, knows: /^packages\/machine\/src\// },
  {
    part: /^packages\/agent\/src\/(machine|policy(?!\/shell))\//,
    knows: /^packages\/(agent\/src\/(machine|policy)|machine\/src)\//,
  },
];

/** `@pawl/agent/journal` is a package's name and a path inside it. */
const splitSpecifier = (specifier: string): { readonly name: string; readonly inside: string } => {
  const parts = specifier.split('/');
  const count = specifier.startsWith('@') ? 2 : 1;
  return { name: parts.slice(0, count).join('/'), inside: parts.slice(count).join('/') };
};

/** The file of the workspace that an import names; null for anything else. */
const resolve = (file: string, specifier: string, manifests: Manifests): string | null => {
  if (specifier.startsWith('.'))
    return path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts');
  const { name, inside } = splitSpecifier(specifier);
  const folder = [...manifests].find(([, manifest]) => manifest.name === name)?.[0];
  return folder === undefined
    ? null
    : `packages/${folder}/src/${inside === '' ? 'index' : inside}.ts`;
};

const importFault = (file: string, specifier: string, manifests: Manifests): string | null => {
  const here = packageOf(file);
  const manifest = manifests.get(here);
  if (manifest === undefined) return `packages/${here} has no package.json`;
  const target = resolve(file, specifier, manifests);
  const pure = PURE_PARTS.find(({ part }) => part.test(file));
  if (pure !== undefined && (target === null || !pure.knows.test(target)))
    return `a pure part imports only pure parts ('${specifier}')`;
  if (specifier.startsWith('.'))
    return packageOf(target ?? '') === here
      ? null
      : `another package is imported by its name, and nothing outside packages ('${specifier}')`;
  const { name } = splitSpecifier(specifier);
  if (name.startsWith('node:')) return null;
  if (name === manifest.name) return `a package never imports itself by its name ('${specifier}')`;
  return manifest.dependencies.has(name)
    ? null
    : `packages/${here}/package.json does not name ${name}`;
};

/**
 * Groups of nodes that reach each other, each in the order in which its nodes were met: strongly
 * connected components, by Tarjan's algorithm.
 */
const findCircles = (
  edges: ReadonlyMap<string, ReadonlySet<string>>,
): readonly (readonly string[])[] => {
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

/** Edges between groups of files: of packages, or of files themselves. */
const edgesBetween = (
  sources: readonly Source[],
  manifests: Manifests,
  groupOf: (file: string) => string | null,
): ReadonlyMap<string, ReadonlySet<string>> => {
  const edges = new Map<string, Set<string>>();
  const known = new Set(sources.map(({ file }) => file));
  for (const { file, imports } of sources) {
    const from = groupOf(file);
    if (from === null) continue;
    const targets = edges.get(from) ?? new Set();
    edges.set(from, targets);
    for (const { specifier } of imports) {
      const target = resolve(file, specifier, manifests);
      const to = target !== null && known.has(target) ? groupOf(target) : null;
      if (to !== null && to !== from) targets.add(to);
    }
  }
  return edges;
};

const PACKAGE_FOLDER = /^packages\/[^/]+\/src(\/|$)/;

/** `packages/agent/src/models` and what is above it, down from `packages/agent/src`. */
const foldersAbove = (file: string): readonly string[] => {
  const folder = path.posix.dirname(file);
  return PACKAGE_FOLDER.test(folder) ? [...foldersAbove(folder), folder] : [];
};

/** All folders of sources. */
const parentFolders = (sources: readonly Source[]): readonly string[] => [
  ...new Set(sources.flatMap(({ file }) => foldersAbove(file))),
];

/**
 * Of files below `parent` the folder in it; null of a file that lies in `parent` itself, or
 * elsewhere.
 */
const folderWithin =
  (parent: string) =>
  (file: string): string | null => {
    if (!file.startsWith(`${parent}/`)) return null;
    const [folder = '', ...rest] = file.slice(parent.length + 1).split('/');
    return rest.length === 0 ? null : `${parent}/${folder}`;
  };

const circleFaults = (sources: readonly Source[], manifests: Manifests): readonly Fault[] => {
  const faultOf = (what: string, circle: readonly string[], file: string): Fault => ({
    file,
    line: 1,
    text: `circle of ${what}: ${circle.join(', ')}`,
  });
  return [
    ...findCircles(edgesBetween(sources, manifests, (file) => file)).map((circle) =>
      faultOf('files', circle, circle[0] ?? ''),
    ),
    ...parentFolders(sources)
      .flatMap((parent) => findCircles(edgesBetween(sources, manifests, folderWithin(parent))))
      .map((circle) => faultOf('folders', circle, circle[0] ?? '')),
    ...findCircles(edgesBetween(sources, manifests, packageOf)).map((circle) =>
      faultOf('packages', circle, `packages/${circle[0]}/package.json`),
    ),
  ];
};

const SMALL_LINES = 60;

/** Whether an import loads its file only when it is reached. */
const isLate = (source: Source, start: number): boolean => source.text.startsWith('import(', start);

/**
 * A small file that one other file imports belongs below its user there. What is loaded late stands
 * apart, and so do faces and programs, which nobody imports.
 */
const smallFileFaults = (sources: readonly Source[], manifests: Manifests): readonly Fault[] => {
  const importers = new Map<string, Set<string>>();
  const loadedLate = new Set<string>();
  for (const source of sources)
    for (const { specifier, start } of source.imports) {
      const target = resolve(source.file, specifier, manifests) ?? '';
      if (isLate(source, start)) loadedLate.add(target);
      importers.set(target, (importers.get(target) ?? new Set()).add(source.file));
    }
  return sources.flatMap(({ file, text }) => {
    const [importer, ...others] = importers.get(file) ?? [];
    const isSmall = text.split('\n').length <= SMALL_LINES;
    const isFace = path.posix.basename(file) === 'index.ts';
    if (!isSmall || isFace || importer === undefined || others.length > 0 || loadedLate.has(file))
      return [];
    return [{ file, line: 1, text: `a small file that only ${importer} imports: put it there` }];
  });
};

/** For the sources of packages. */
export const wallFaults = (sources: readonly Source[], manifests: Manifests): readonly Fault[] => [
  ...sources.flatMap(({ file, imports, lineOf }) =>
    imports.flatMap(({ specifier, start }) => {
      const text = importFault(file, specifier, manifests);
      return text === null ? [] : [{ file, line: lineOf(start), text }];
    }),
  ),
  ...circleFaults(sources, manifests),
  ...smallFileFaults(sources, manifests),
];

const testImportFault = (file: string, specifier: string, manifests: Manifests): string | null => {
  const target = resolve(file, specifier, manifests);
  const here = TEST.exec(file)?.[1];
  if (here === undefined)
    return target !== null && isPackageTest(target) && !file.endsWith('.test.ts')
      ? `what all tests share imports no tests of a package ('${specifier}')`
      : null;
  if (specifier.startsWith('.'))
    return target !== null &&
      [`packages/${here}/`, 'test/', 'scripts/'].some((top) => target.startsWith(top))
      ? null
      : `a test imports another package by its name, and no tests of another one ('${specifier}')`;
  const manifest = manifests.get(here);
  const { name } = splitSpecifier(specifier);
  if (target === null || manifest?.dependencies.has(name) === true) return null;
  return name === manifest?.name
    ? `a package never imports itself by its name ('${specifier}')`
    : `packages/${here}/package.json does not name ${name}`;
};

/** For tests and what helps them. */
export const testWallFaults = (
  sources: readonly Source[],
  manifests: Manifests,
): readonly Fault[] =>
  sources.flatMap(({ file, imports, lineOf }) =>
    imports.flatMap(({ specifier, start }) => {
      const text = testImportFault(file, specifier, manifests);
      return text === null ? [] : [{ file, line: lineOf(start), text }];
    }),
  );
