import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type CompiledTests, compileTests } from '../../scripts/test-runner/compile.js';
import { describeUnits } from '../../scripts/test-runner/report.js';
import { runUnits, UNIT_TESTS } from '../../scripts/test-runner/run-units.js';

/** Which test files share a process, and what is told when one of them fails or ends it. */

const TEST = "import { describe, it, test } from 'node:test';\n";
const PASSES = `${TEST}describe('d', () => { it('one', () => {}); }); test('two', () => {});\n`;

const sources: Readonly<Record<string, string>> = {
  'test/a-passes.test.ts': PASSES,
  'test/b-fails.test.ts': `${TEST}test('bad', () => { throw new Error('no reason'); });\n`,
  'test/c-throws.test.ts': "throw new Error('no start');\n",
  'test/d-empty.test.ts': 'export const nothing = 1;\n',
  // It ends once the outcome of the first test is in the reporter's file.
  'test/e-ends.test.ts': `import { existsSync, readFileSync } from 'node:fs';\n${TEST}const told = process.argv[1] + '.outcomes'; const isTold = () => existsSync(told) && readFileSync(told, 'utf8').includes('e-ends.test.ts > one'); test('one', () => {}); test('two', () => new Promise(() => { setInterval(() => { if (isTold()) process.exit(3); }, 20); }));\n`,
  'test/f-passes.test.ts': PASSES,
  'test/g-reaches.test.ts': `import { start } from '../packages/p/src/deep.js';\n${PASSES}start;\n`,
  'test/h-starts.test.ts': `import { start } from './starts.js';\n${PASSES}start;\n`,
  'test/i-breaks.test.ts': `import { start } from '../packages/p/src/deep.js';\n${TEST}test('bad', () => start());\n`,
  'test/j-alone.test.ts': `import './own-process.js';\n${PASSES}`,
  'packages/p/test/k-starts.test.ts': `import { start } from './starts.js';\n${PASSES}start;\n`,
  'packages/p/test/starts.ts': "export { spawn as start } from 'node:child_process';\n",
  'test/starts.ts': "export { spawn as start } from 'node:child_process';\n",
  'test/own-process.ts': 'export {};\n',
  'test/starts-no-program.ts': readFileSync(
    new URL('../starts-no-program.ts', import.meta.url),
    'utf8',
  ),
  'packages/p/src/deep.ts': "export { start } from './deeper.js';\n",
  'packages/p/src/deeper.ts':
    "import { spawn } from 'node:child_process';\nexport const start = (): void => void spawn('true');\n",
};
const files = Object.keys(sources).filter((file) => file.endsWith('.test.ts'));
const [
  passes = '',
  fails = '',
  throws = '',
  empty = '',
  ends = '',
  later = '',
  reaches = '',
  starts = '',
  breaks = '',
  alone = '',
  startsInPackage = '',
] = files;

describe('unit tests', () => {
  let root: string;
  let compiled: CompiledTests;

  before(async () => {
    root = mkdtempSync(path.join(tmpdir(), 'pawl-units-'));
    for (const folder of ['test', 'packages/p/src', 'packages/p/test'])
      mkdirSync(path.join(root, folder), { recursive: true });
    for (const [file, text] of Object.entries(sources)) writeFileSync(path.join(root, file), text);
    compiled = await compileTests(root, files);
  });
  after(() => {
    compiled.remove();
    rmSync(root, { recursive: true, force: true });
  });

  it('are those whose own files reach no module that starts programs, and that ask for no process of their own', () => {
    assert.deepEqual(
      compiled.unitTests,
      files.filter((file) => file !== starts && file !== alone && file !== startsInPackage),
    );
  });

  it('each have a result of their own, with names as alone', async () => {
    const results = await runUnits(root, [passes, fails, throws, empty, later], compiled);
    const told = results.map(({ file, tests, fault }) => ({
      file,
      tests: tests.map(({ name, type }) => `${type} ${name}`),
      fault,
    }));
    assert.deepEqual(told, [
      { file: passes, tests: ['passed d > one', 'passed two'], fault: null },
      { file: fails, tests: ['failed bad'], fault: null },
      { file: throws, tests: [`failed ${throws}`], fault: null },
      { file: empty, tests: [], fault: 'it ran no test' },
      { file: later, tests: ['passed d > one', 'passed two'], fault: null },
      { file: UNIT_TESTS, tests: [], fault: null },
    ]);
  });

  it('fail where they start a program', async () => {
    const results = await runUnits(root, [reaches, breaks], compiled);
    const told = results.flatMap(({ tests }) =>
      tests.map(({ name, type, error }) => `${type} ${name} ${error}`),
    );
    assert.deepEqual(told.slice(0, 2), ['passed d > one ', 'passed two ']);
    assert.match(
      told[2] ?? '',
      /^failed bad Error: spawn: unit tests share a process and start nothing; import test\/own-process\.ts/,
    );
    assert.equal(told.length, 3);
  });

  it('name the file that ended their process', async () => {
    const results = await runUnits(root, [passes, ends, later], compiled);
    assert.deepEqual(
      results.map(({ file }) => file),
      [passes, UNIT_TESTS],
    );
    assert.match(
      results.at(-1)?.fault ?? '',
      /^its process ended with 3 after \d tests, not at its end, in test\/e-ends\.test\.ts or soon after it$/,
    );
  });

  it('are one line when they pass, and tell failures in full', async () => {
    const [whole, ...rest] = (await runUnits(root, [passes, later], compiled)).toReversed();
    assert.ok(whole);
    assert.match(
      describeUnits(rest, whole),
      /^✔ unit tests of 2 files: 4 tests, [\d.]+ s, CPU [\d.]+ s, longest test\/[af]-passes\.test\.ts [\d.]+ s\n$/,
    );
    const [failed, ...others] = (await runUnits(root, [passes, fails], compiled)).toReversed();
    assert.ok(failed);
    const told = describeUnits(others, failed);
    assert.match(
      told,
      /^✖ bad \(test\/b-fails\.test\.ts\)\n[\s\S]*no reason[\s\S]*✖ unit tests of 2 files: 1 failed, 3 tests/,
    );
  });
});

it('guards and moves keep their names, whichever files come into one', async (context) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-names-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const moves = path.join(folder, 'packages/agent/src/machine/moves');
  mkdirSync(moves, { recursive: true });
  mkdirSync(path.join(folder, 'test'));
  for (const file of ['one', 'two', 'three'])
    writeFileSync(
      path.join(moves, `${file}.ts`),
      'export const settle = (): number => 1;\nexport const limit = 2;\n',
    );
  const imports = ['one', 'two', 'three'].map(
    (file) => `import * as ${file} from '../packages/agent/src/machine/moves/${file}.js';`,
  );
  writeFileSync(
    path.join(folder, 'test/names.test.ts'),
    `${imports.join('\n')}\nexport const names = [one, two, three].map(({ settle }) => settle.name).join();\n`,
  );
  const names = await compileTests(folder, ['test/names.test.ts']);
  const loaded: { readonly names: string } = await import(names.programOf('test/names.test.ts'));
  names.remove();
  assert.equal(loaded.names, 'settle,settle,settle');
});
