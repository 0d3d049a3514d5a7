import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { allTests, chooseTests } from '../../scripts/test-runner/choose.js';
import { type CompiledTests, compileTests } from '../../scripts/test-runner/compile.js';
import { addCounts, describeEnd, describeFile } from '../../scripts/test-runner/report.js';
import { rerunFailed } from '../../scripts/test-runner/rerun.js';
import { type FileResult, runFile } from '../../scripts/test-runner/run-file.js';
import { processesWith } from '../kit/tools/processes.js';
import { removeFolderSync } from '../temporary-folder.js';

/** Real test files, compiled and run as `npm test` does it. */

const IMPORTS =
  "import assert from 'node:assert/strict';\nimport { describe, it, test } from 'node:test';\n";

/** How long the file that never ends may run. */
const HANGS_MS = 3_000;
const SPENT = { durationMs: 1, cpuMs: 1 };

type Row = {
  readonly title: string;
  readonly text: string;
  /** The counts of passed and failed; a fault of the file counts as failed. */
  readonly counts: readonly [passed: number, failed: number];
  readonly says: readonly (string | RegExp)[];
};

const rows: Readonly<Record<string, Row>> = {
  passes: {
    title: 'a file that passes is one line',
    text: "describe('d', () => { it('one', () => {}); it('two', () => {}); });",
    counts: [2, 0],
    says: [/^✔ test\/passes\.test\.ts: 2 tests, \d+\.\d s, CPU \d+\.\d s\n$/],
  },
  fails: {
    title:
      'a failure is told with the names around it, what was thrown, and the line of the source',
    text: "describe('outer', () => { it('inner', () => {\n  assert.equal(1, 2, 'not the same');\n}); it('other', () => {}); });",
    counts: [1, 1],
    says: [
      '✖ outer > inner (test/fails.test.ts)',
      'not the same',
      /fails\.test\.ts:4:10/,
      '1 failed, 2 tests',
    ],
  },
  throws: {
    title: 'a file that throws before its tests has failed',
    text: "throw new Error('no start'); ",
    counts: [0, 1],
    says: [
      /no start\n *at .*\/test\/throws\.test\.ts:3:7/,
      '✖ test/throws.test.ts: it ran no test: its process ended with 1',
    ],
  },

  burns: {
    title: 'the CPU time of a file holds that of the programs that it started',
    text: "import { spawnSync } from 'node:child_process'; test('one', () => void spawnSync(process.execPath, ['-e', 'while (process.cpuUsage().user < 5e5);']));",
    counts: [1, 0],
    says: [/CPU (?:0\.[5-9]|\d*[1-9]\d*\.\d) s\n$/],
  },
  leaves: {
    title: 'a file that ends its process early has failed, though it ends with 0',
    // It ends once the outcome of the first test is in the reporter's file.
    text: "import { existsSync, readFileSync } from 'node:fs'; const told = process.argv[1] + '.outcomes'; const isTold = () => existsSync(told) && readFileSync(told, 'utf8').includes('\"one\"'); test('one', () => {}); test('two', () => { setInterval(() => { if (isTold()) process.exit(0); }, 20); return new Promise(() => {}); }); test('three', () => {});",
    counts: [1, 1],
    says: ['✖ test/leaves.test.ts: its process ended with 0 after 1 tests, not at its end'],
  },
  killed: {
    title: 'a file whose process is killed has failed',
    text: "test('one', () => { process.kill(process.pid, 'SIGKILL'); });",
    counts: [0, 1],
    says: ['✖ test/killed.test.ts: its process was killed by SIGKILL'],
  },

  late: {
    title: 'an error after the end of a test fails the file',
    text: "test('one', () => { setTimeout(() => { throw new Error('too late'); }, 50); });",
    counts: [1, 1],
    says: ['too late', /\/test\/late\.test\.ts:3:/, '✖ test/late.test.ts: '],
  },
  hangs: {
    title: 'a file that does not end is killed',
    text: "test('one', () => new Promise((resolve) => setTimeout(resolve, 60_000)));",
    counts: [0, 1],
    says: [/✖ test\/hangs\.test\.ts: it was still running after 3 s and was killed/],
  },
  first: {
    title: 'a file that fails the first time has failed then',
    text: "import { existsSync, writeFileSync } from 'node:fs'; test('only once', () => { if (existsSync('first.ran')) return; writeFileSync('first.ran', ''); throw new Error('the first time'); });",
    counts: [0, 1],
    says: ['the first time'],
  },

  skips: {
    title: 'a skipped test is named and counted as neither',
    text: "test('one', () => {}); test.skip('two', () => {}); test.todo('three');",
    counts: [1, 0],
    says: ['- skipped: two (test/skips.test.ts)', '- todo: three (test/skips.test.ts)'],
  },
};

describe('test files that npm test runs', () => {
  let root: string;
  let compiled: CompiledTests;
  const results: FileResult[] = [];
  const fileOf = (name: string): string => `test/${name}.test.ts`;

  before(async () => {
    root = mkdtempSync(path.join(tmpdir(), 'pawl-runner-'));
    mkdirSync(path.join(root, 'test', 'deep'), { recursive: true });
    for (const [name, { text }] of Object.entries(rows)) {
      writeFileSync(path.join(root, fileOf(name)), `${IMPORTS}${text}\n`);
    }
    compiled = await compileTests(root, Object.keys(rows).map(fileOf));
    const started = Object.keys(rows).map((name) =>
      runFile(root, fileOf(name), compiled, name === 'hangs' ? HANGS_MS : 120_000),
    );
    results.push(...(await Promise.all(started)));
  });
  after(() => {
    compiled.remove();
    removeFolderSync(root);
  });

  for (const [name, { title, counts, says }] of Object.entries(rows)) {
    it(title, () => {
      const result = results.find(({ file }) => file === fileOf(name));
      assert.ok(result);
      const told = describeFile(result);
      const { passed, failed } = addCounts([result]);
      assert.deepEqual([passed, failed], counts, told);
      for (const words of says) {
        if (typeof words === 'string') assert.ok(told.includes(words), told);
        else assert.match(told, words);
      }
    });
  }

  it('the end names every file and check that failed, and its last line has the two counts', () => {
    const text = describeEnd({ results, unsteady: [] }, ['types'], SPENT);
    const bad = Object.entries(rows).filter(([, { counts }]) => counts[1] > 0);
    for (const [name] of bad) assert.ok(text.includes(`✖ ${fileOf(name)}\n`), text);
    assert.ok(text.includes('✖ types\n'), text);
    const passed = Object.values(rows).reduce((sum, { counts }) => sum + counts[0], 0);
    assert.equal(text.split('\n').at(-2), `${passed} passed, ${bad.length + 1} failed`);
  });

  const again = async (...names: readonly string[]) =>
    rerunFailed(
      results.filter(({ file }) => names.map(fileOf).includes(file)),
      (file) => runFile(root, file, compiled),
    );

  it('a file that failed and passes alone is named as unsteady, with its first failure', async () => {
    const ran = await again('passes', 'first');
    assert.deepEqual(addCounts(ran.results).failed, 0);
    const text = describeEnd(ran, [], SPENT);
    assert.ok(text.includes('✖ only once (test/first.test.ts)'), text);
    assert.ok(text.includes('the first time'), text);
    assert.ok(text.includes('⚠ test/first.test.ts is unsteady'), text);
    assert.ok(text.endsWith('3 passed, 0 failed\n'), text);
  });

  it('a file that fails alone, too, has failed', async () => {
    const ran = await again('passes', 'fails');
    assert.deepEqual([addCounts(ran.results).failed, ran.unsteady], [1, []]);
    assert.ok(describeEnd(ran, [], SPENT).includes('not the same'));
  });

  it('three failed files are no accident: none runs again', async () => {
    const ran = await again('fails', 'late', 'throws');
    assert.deepEqual([addCounts(ran.results).failed, ran.unsteady], [3, []]);
  });

  it('files and folders are chosen; what holds no test is refused', () => {
    const words = (...names: readonly string[]) => names.map((name) => path.join(root, name));
    writeFileSync(path.join(root, 'test', 'deep', 'a.test.ts'), '');
    mkdirSync(path.join(root, 'test', 'empty'));
    assert.deepEqual(
      chooseTests(root, words('test/deep', 'test/throws.test.ts', 'test/deep/a.test.ts')),
      {
        kind: 'files',
        files: ['test/deep/a.test.ts', 'test/throws.test.ts'],
      },
    );
    mkdirSync(path.join(root, 'packages/one/test/room'), { recursive: true });
    writeFileSync(path.join(root, 'packages/one/test/room/b.test.ts'), '');
    assert.deepEqual(chooseTests(root, words('packages/one/test')), {
      kind: 'files',
      files: ['packages/one/test/room/b.test.ts'],
    });
    writeFileSync(path.join(root, 'test', 'deep', 'c.deep.test.ts'), '');
    const deep = allTests(root, true);
    assert.ok(deep.includes('packages/one/test/room/b.test.ts'));
    assert.ok(deep.includes('test/deep/a.test.ts'));
    assert.deepEqual(
      deep.filter((file) => !allTests(root, false).includes(file)),
      ['test/deep/c.deep.test.ts'],
    );
    assert.deepEqual(chooseTests(root, words('test/deep/c.deep.test.ts')), {
      kind: 'files',
      files: ['test/deep/c.deep.test.ts'],
    });
    const { kind, faults } = { faults: [], ...chooseTests(root, words('test/empty', 'test/gone')) };
    assert.equal(kind, 'faults');
    assert.deepEqual(
      faults.map((fault: string) => fault.replace(root, '')),
      ['there is no test file in /test/empty', 'there is no /test/gone'],
    );
  });

  it('a run that a signal ends leaves no process behind', async () => {
    const file = path.join(root, 'run.mts');
    const OWN_FOLDER = fileURLToPath(
      new URL('../../scripts/test-runner/own-folder.ts', import.meta.url),
    );
    writeFileSync(
      file,
      `import { spawn } from 'node:child_process';
import { withOwnFolder } from ${JSON.stringify(OWN_FOLDER)};
process.exitCode = (await withOwnFolder(async () => {
  process.once('SIGTERM', () => process.exit(1));
  spawn('sleep', ['1000.${process.pid}'], { detached: true, stdio: 'ignore' });
  console.log('started');
  await new Promise((resolve) => setTimeout(resolve, 1e6));
})) ?? 0;
`,
    );
    const run = spawn(process.execPath, ['--import', 'tsx', file]);
    await once(run.stdout, 'data');
    assert.equal(processesWith(`1000.${process.pid}`).length, 1, 'control');
    run.kill('SIGTERM');
    await once(run, 'exit');
    assert.deepEqual(processesWith(`1000.${process.pid}`), []);
  });

  it('a file that does not compile is named', async () => {
    writeFileSync(path.join(root, 'test', 'broken.test.ts'), 'const = 1;\n');
    await assert.rejects(compileTests(root, ['test/broken.test.ts']), /broken\.test\.ts:1:6/);
  });
});
