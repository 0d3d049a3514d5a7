import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeFolderSync } from '../temporary-folder.js';

/** Programs and types in the documents compile: what a reader copies is not out of date. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const documents = [
  'README.md',
  ...readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];

/** Blocks of TypeScript that begin with an import, by a file name that says where each stands. */
const programs = documents.flatMap((document) => {
  const text = readFileSync(path.join(root, document), 'utf8');
  return [...text.matchAll(/^```ts\n(import [\s\S]*?)^```$/gm)].map(
    ({ 1: program = '', index }) => {
      const line = text.slice(0, index).split('\n').length;
      return { name: `${path.basename(document, '.md')}-line-${line}.ts`, program };
    },
  );
});

const LIBRARY = 'docs/build/library.md';

/** Each name in the table of the library has the type that stands beside it. */
const namesProgram = (): { readonly name: string; readonly program: string } => {
  const rows = [
    ...readFileSync(path.join(root, LIBRARY), 'utf8').matchAll(/^\| `(\w+)` \| `(\(.+?)` \|/gm),
  ];
  assert.ok(rows.length === 12, 'the table of names was not found');
  const checks = rows.map(
    ([, name, type = '']) =>
      `export const ${name}: ${withPackage(type.replaceAll('\\|', '|'))} = pawl.${name};`,
  );
  return { name: 'names.ts', program: ["import * as pawl from 'pawl';", ...checks].join('\n') };
};

const GLOBAL = /^(Iterable|NodeJS|Partial|Promise|ReadonlyMap|Response)$/;

/** `Agent` -> `pawl.Agent`; types of the language stay. */
const withPackage = (type: string): string =>
  type.replace(/(?<![\w.])[A-Z]\w+/g, (name) => (GLOBAL.test(name) ? name : `pawl.${name}`));

const compilerSettings = (files: readonly string[]) => ({
  extends: path.join(root, 'tsconfig.json'),
  compilerOptions: { typeRoots: [path.join(root, 'node_modules', '@types')] },
  include: [],
  files,
});

test('the programs in README.md and docs/ compile, and the names of the library have their types', () => {
  assert.ok(programs.length > 0, 'no program was found');
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-docs-'));
  try {
    writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
    symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
    const files = [...programs, namesProgram()];
    for (const { name, program } of files) writeFileSync(path.join(folder, name), program);
    const settings = compilerSettings(files.map(({ name }) => name));
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const compiler = path.join(root, 'node_modules', '.bin', 'tsc');
    const { status, stdout } = spawnSync(compiler, ['-p', folder], {
      cwd: folder,
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout);
  } finally {
    removeFolderSync(folder);
  }
});
