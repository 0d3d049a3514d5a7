/**
 * Bundles the tests of the machine, with the machine as it stands beside them, into one file that
 * `runner.ts` loads anew for each mutant, a change in one place of the machine. Tables and rules
 * first, random walks last: what is caught early costs little.
 */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { workspacePackages } from '../workspace-packages.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ROOMS = [
  'packages/machine/test',
  'packages/agent/test/machine',
  'packages/agent/test/policy',
  'packages/agent/test/shell',
  'packages/verify/test/exploration',
  'packages/verify/test/invariants',
  'packages/verify/test/projections',
];
/** Tests of the whole repository that are about several machines. */
const OF_THE_HOUSE = ['test/house/machine-version.test.ts', 'test/house/seed-004.test.ts'];
/** Whole explorations, what is asked of the walks themselves, and what needs a process. */
const LEFT_OUT = /walks-reach|exploration\/(?:promises|state-key)\.|grammar-memory/;
const LAST = /random|property|refinement|exploration|hostile|known-values|large-batches/;

const inRooms = ROOMS.flatMap((room) =>
  readdirSync(path.join(root, room), { recursive: true, encoding: 'utf8' })
    .map((file) => `${room}/${file}`)
    .filter((file) => file.endsWith('.test.ts') && !LEFT_OUT.test(file))
    .sort(),
);
const files = [...inRooms, ...OF_THE_HOUSE];
const ordered = [
  ...files.filter((file) => !LAST.test(file)),
  ...files.filter((file) => LAST.test(file)),
];
const standIn = path.join(root, 'scripts/mutation/one-by-one.ts');

/** Each file keeps its own address, for what lies beside it; test files say when they load. */
const ownPlaces: Plugin = {
  name: 'own places',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[\\/](?:test|src)[\\/].*\.ts$/ }, ({ path: file }) => {
      const place = path.relative(root, file).replaceAll(path.sep, '/');
      const address = JSON.stringify(pathToFileURL(file).href);
      const text = readFileSync(file, 'utf8')
        .replaceAll('import.meta.url', address)
        .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(file)));
      const told = `placeOnTest.file = ${JSON.stringify(place)};${text}\nplaceOnTest.file = '';`;
      return { contents: files.includes(place) ? told : text, loader: 'ts' };
    });
  },
};

/** `node:test` as the tests know it. */
const ownTest: Plugin = {
  name: 'own test',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^node:test$/ }, () => ({ path: 'test', namespace: 'own' }));
    onLoad({ filter: /.*/, namespace: 'own' }, () => ({
      contents: `export { describe, test, test as it, test as default } from ${JSON.stringify(standIn)};`,
      resolveDir: root,
    }));
  },
};

await build({
  absWorkingDir: root,
  stdin: {
    contents: [
      ...ordered.map((file) => `import './${file}';`),
      `export { tests } from '${standIn}';`,
    ].join('\n'),
    resolveDir: root,
  },
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  keepNames: true,
  outfile: path.join(root, 'test/suite.cjs'),
  plugins: [workspacePackages(root), ownPlaces, ownTest],
  logLevel: 'error',
});
