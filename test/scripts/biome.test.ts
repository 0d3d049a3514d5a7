import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../temporary-folder.js';

/** Rules of the house that biome.json holds: a planted file a rule, and what is found in it. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const PURE = 'packages/agent/src/machine';
const STARTER = 'packages/agent/src/platform/start-program.ts';
const SPAWN = "import { spawn } from 'node:child_process';\n";
const longFunction = (lines: number): string =>
  `export const f = () => {\n${'f();\n'.repeat(lines)}};\n`;

const planted: readonly (readonly [file: string, text: string, ...found: readonly string[]])[] = [
  ['packages/pawl/src/someThing.ts', '', 'useFilenamingConvention'],
  ['packages/pawl/src/fine-name.ts', ''],
  ['packages/pawl/src/long.ts', longFunction(69), 'noExcessiveLinesPerFunction'],
  ['packages/pawl/src/short.ts', longFunction(68)],
  ['packages/pawl/test/long.ts', longFunction(69)],
  ['test/enum.ts', 'export enum A { B }\n', 'noEnum'],
  ['test/any.ts', 'export const c = (d: any) => d;\n', 'noExplicitAny'],
  ['test/all.ts', "export * from './any.js';\n", 'noReExportAll'],
  ['test/skips.test.ts', "test.skip('a', () => {});\n", 'noSkippedTests'],
  ['test/singles.test.ts', "it.only('a', () => {});\n", 'noFocusedTests'],
  [
    'packages/pawl/src/prints.ts',
    'console.log(1);\nlog(console);\n',
    ...Array(2).fill('noRestrictedGlobals'),
  ],
  ['packages/pawl/src/starts.ts', SPAWN, 'noRestrictedImports'],
  [
    'packages/pawl/src/late.ts',
    "export const m = import('node:child_process');\n",
    'noRestrictedImports',
  ],
  ['packages/pawl/src/types.ts', "import type { ChildProcess } from 'node:child_process';\n"],
  ['test/starts.ts', SPAWN],
  [STARTER, `${SPAWN}import { fork } from 'node:child_process';\n`, 'noRestrictedImports'],
  ...[
    'Date.now()',
    'process.pid',
    "fetch('x')",
    'setTimeout(f)',
    'globalThis.x',
    'Promise.all(f)',
    'Buffer.from(f)',
  ].map(
    (words, at) =>
      [`${PURE}/a${at}.ts`, `export const a = () => ${words};\n`, 'noRestrictedGlobals'] as const,
  ),
  [`${PURE}/type.ts`, 'export type P = Promise<void>;\n', 'noRestrictedGlobals'],
  [
    `${PURE}/fine.ts`,
    "// Date\nexport const a = (b: { fetch: 1 }) => [b.fetch, 'process', { console: 1 }];\n",
  ],
  ['packages/agent/src/policy/shell/a.ts', 'export const a = process.pid;\n'],
  [
    'packages/machine/src/builder/drive.ts',
    'export const a = [Promise, Date];\n',
    'noRestrictedGlobals',
  ],
];

it('biome finds what is planted, and nothing where it is allowed', (t) => {
  const folder = temporaryFolder(t, 'pawl-biome');
  cpSync(path.join(root, 'biome.json'), path.join(folder, 'biome.json'));
  for (const [file, text] of planted) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  }
  const biome = path.join(root, 'node_modules/.bin/biome');
  const words = ['lint', '--reporter=json', '--max-diagnostics=200', '.'];
  const { stdout, stderr } = spawnSync(biome, words, { cwd: folder, encoding: 'utf8' });
  assert.ok(stdout.startsWith('{'), stderr);
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: readonly { category: string; location: { path: string } }[];
  };
  const rules = new Set(planted.flatMap(([, , ...found]) => found));
  for (const [file, , ...found] of planted) {
    const here = diagnostics
      .filter(({ location }) => location.path === file)
      .map(({ category }) => category.split('/').at(-1) ?? '')
      .filter((rule) => rules.has(rule));
    assert.deepEqual(here, found, file);
  }
});
