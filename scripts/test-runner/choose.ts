/** Which test files `npm test` runs. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';

export type Chosen =
  | { readonly kind: 'files'; readonly files: readonly string[] }
  | { readonly kind: 'faults'; readonly faults: readonly string[] };

/** Where files take longest: they begin first, so that short ones fill the end. */
const LONG_FOLDERS = [
  'packages/pawl/test/pack/',
  'packages/agent/test/sandbox/',
  'packages/pawl/test/e2e/',
  'packages/agent/test/workspace/',
  'packages/ask/test/',
  'test/examples/',
  'packages/pawl/test/torture/',
  'packages/pawl/test/gate/',
  'packages/pawl/test/simulation/',
  'packages/verify/test/',
  'packages/agent/test/machine/',
];

const rank = (file: string): number => {
  const found = LONG_FOLDERS.findIndex((folder) => file.startsWith(folder));
  return found === -1 ? LONG_FOLDERS.length : found;
};

const sorted = (files: readonly string[]): readonly string[] =>
  [...new Set(files)].toSorted((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1));

const testsIn = (root: string, folder: string): readonly string[] =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => path.join(folder, file).replaceAll(path.sep, '/'))
    .filter((file) => file.endsWith('.test.ts'));

/** Tests of the whole, and those of each package. */
const testFolders = (root: string): readonly string[] =>
  [
    'test',
    ...readdirSync(path.join(root, 'packages')).map((name) => `packages/${name}/test`),
  ].filter((folder) => existsSync(path.join(root, folder)));

/** The name of a file that only `npm run test:deep` runs, and whoever names it. */
const DEEP = /\.deep\.test\.ts$/;

/** All test files of the tier. */
export const allTests = (root: string, isDeep: boolean): readonly string[] =>
  sorted(testFolders(root).flatMap((folder) => testsIn(root, folder))).filter(
    (file) => isDeep || !DEEP.test(file),
  );

const filesOf = (root: string, word: string): readonly string[] | string => {
  const file = path.relative(root, path.resolve(word)).replaceAll(path.sep, '/');
  if (!existsSync(word)) return `there is no ${word}`;
  if (file.startsWith('..')) return `${word} is not in ${root}`;
  if (!statSync(word).isDirectory())
    return file.endsWith('.ts') ? [file] : `${word} is not a test file`;
  const files = testsIn(root, file);
  return files.length > 0 ? files : `there is no test file in ${word}`;
};

/** Files and folders as given on the command line, relative to the working directory. */
export const chooseTests = (root: string, words: readonly string[]): Chosen => {
  const found = words.map((word) => filesOf(root, word));
  const faults = found.filter((each): each is string => typeof each === 'string');
  if (faults.length > 0) return { kind: 'faults', faults };
  return { kind: 'files', files: sorted(found.flat()) };
};
