import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { removeFolderSync, temporaryFolder } from '../temporary-folder.js';
import { chooseRows } from '../tier.js';

/**
 * Each example runs as its reader would run it, against the package as it is built (`npm run build`): only their types
 * are taken away before, for all at once. `UPDATE=1` writes what they print anew; the diff is the review.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = path.join(root, 'examples');
const isUpdate = (process.env.UPDATE ?? '') !== '';
const LINES_MAX = 46;

const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
/** Those that run today. */
const tried = isUpdate ? files : chooseRows(files, undefined, 3);
const expectedOf = (file: string): string =>
  path.join(folder, 'expected', `${file.slice(0, 2)}.txt`);
const textOf = (file: string): string => readFileSync(path.join(folder, file), 'utf8');

/** A project that has installed the package, with the examples as JavaScript. */
const project = temporaryFolder({ after }, 'examples-project');
before(async () => {
  await build({
    absWorkingDir: root,
    entryPoints: files.map((file) => path.join('examples', file)),
    outdir: project,
    outExtension: { '.js': '.mjs' },
    target: 'node20',
    logLevel: 'silent',
  });
  mkdirSync(path.join(project, 'node_modules'));
  for (const [name, to] of [
    ['pawl', 'packages/pawl'],
    ['zod', 'node_modules/zod'],
    ['@ai-sdk', 'node_modules/@ai-sdk'],
  ] as const)
    symlinkSync(path.join(root, to), path.join(project, 'node_modules', name));
});

/** Runs an example with a temporary folder of its own; says what it printed and what it left there. */
const run = (file: string) => {
  const temporary = mkdtempSync(path.join(tmpdir(), 'pawl-examples-'));
  try {
    const { NODE_TEST_CONTEXT: _, ...environment } = process.env; // its output would become a report
    const program = path.join(project, file.replace(/\.ts$/, '.mjs'));
    const { status, stdout, stderr } = spawnSync(process.execPath, [program], {
      cwd: root,
      encoding: 'utf8',
      env: { ...environment, TMPDIR: temporary },
    });
    return { status, stdout, stderr, left: readdirSync(temporary) };
  } finally {
    removeFolderSync(temporary);
  }
};

describe('examples', () => {
  for (const file of files) {
    it(`${file} is short, begins with a sentence and imports the package only by its names, and zod and the AI SDK beside it`, () => {
      const text = textOf(file);
      assert.match(text, /^\/\*\* [A-Z].*[.!?] \*\/\n/);
      const lines = text.trimEnd().split('\n').length;
      assert.ok(lines <= LINES_MAX, `${lines} lines, at most ${LINES_MAX}`);
      const named = [...text.matchAll(/ from '([^']+)';/g)].map(([, name = '']) => name);
      const foreign = named.filter(
        (name) => !/^(pawl(\/machine|\/testing)?|zod|@ai-sdk\/openai|node:.+)$/.test(name),
      );
      assert.deepEqual(foreign, []);
    });

    if (!tried.includes(file)) continue;
    it(`${file} prints what examples/expected says, and leaves nothing behind`, () => {
      const { status, stdout, stderr, left } = run(file);
      assert.deepEqual({ status, stderr, left }, { status: 0, stderr: '', left: [] });
      const expected = expectedOf(file);
      if (isUpdate) writeFileSync(expected, stdout);
      assert.ok(existsSync(expected), `there is no ${expected}: run this test with UPDATE=1`);
      assert.equal(stdout, readFileSync(expected, 'utf8'), 'if this is what you meant: UPDATE=1');
    });
  }

  it('are numbered from 01 without a gap, and each has what it prints', () => {
    const numbers = files.map((file) => file.slice(0, 3));
    assert.deepEqual(
      numbers,
      files.map((_, index) => `${String(index + 1).padStart(2, '0')}-`),
    );
    assert.ok(files.length > 0);
    const listed = readdirSync(path.join(folder, 'expected'));
    assert.deepEqual(
      listed.sort(),
      files.map((file) => path.basename(expectedOf(file))),
    );
  });
});
