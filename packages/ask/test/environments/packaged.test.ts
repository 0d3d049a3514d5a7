import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type BuildOptions, build } from 'esbuild';
import { environmentPrograms } from '../../../../scripts/environment-programs.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';

/** The environments as the package brings them: bundled, far from their sources, with their programs beside them. */

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const COMMON = { absWorkingDir: root, bundle: true, platform: 'node', logLevel: 'silent' } as const;
const ENTRY: BuildOptions = {
  stdin: {
    contents:
      "export { quickjs } from './quickjs/quickjs.js'; export { python } from './python.js';",
    resolveDir: path.join(root, 'packages/ask/src/environments'),
  },
};

/** Where the bundle may be, as scripts/bundle.ts makes it. */
const bundles: readonly (readonly [string, BuildOptions])[] = [
  ['dist/index.js', { format: 'esm' }],
  ['dist/chunks/part.js', { format: 'esm' }],
  [
    'dist/cli.cjs',
    {
      format: 'cjs',
      define: { 'import.meta.url': 'bundleUrl' },
      banner: { js: "const bundleUrl = require('node:url').pathToFileURL(__filename).href;" },
    },
  ],
];

const PROGRAM = `
  const { quickjs, python } = await import(process.argv[1]);
  for (const kind of [quickjs, python]) {
    if (await kind.probe() !== null) throw new Error(await kind.probe());
    const environment = await kind.start({ contexts: [process.argv[2]], names: ['a'], outputMax: 100, memoryMax: 1e8 });
    const cell = { cellId: 'c', code: 'print(context, llm_query("a"))', deadlineMs: 60000, signal: new AbortController().signal };
    const { stdout, stderr } = await environment.run(cell, async ({ prompts }) => prompts);
    await environment.close();
    console.log(kind.name, stdout.trim(), stderr);
  }`;

describe('the environments in the package', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-packaged-'));
  const context = path.join(folder, 'context.txt');

  before(async () => {
    const { files } = await environmentPrograms(root, { ...COMMON, write: false, metafile: true });
    for (const file of files) {
      const target = path.join(folder, path.relative(path.join(root, 'packages/pawl'), file.path));
      mkdirSync(path.dirname(target), { recursive: true });
      writeFileSync(target, file.contents);
    }
    writeFileSync(context, 'from the file');
    writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  });
  after(() => removeFolderSync(folder));

  for (const [place, options] of bundles) {
    it(`start from ${place}`, async () => {
      const outfile = path.join(folder, place);
      await build({ ...COMMON, ...ENTRY, ...options, outfile });
      const words = ['--input-type=module', '-e', PROGRAM, pathToFileURL(outfile).href, context];
      const output = execFileSync(process.execPath, words, { cwd: folder, encoding: 'utf8' });
      assert.equal(output, 'quickjs from the file a \npython from the file a \n');
    });
  }
});
