import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { bundle } from '../../scripts/bundle.js';
import { removeFolderSync } from '../temporary-folder.js';

const OLD_PACKAGE = {
  'node_modules/old/package.json': '{ "name": "old", "version": "1.2.3", "license": "MIT" }',
  'node_modules/old/index.js': "exports.last = (file) => require('path').basename(file);\n",
};
const LAST = "import { last } from 'old';\nconsole.log(last('a/b'));\n";
const CLI = { 'packages/pawl/src/main.ts': LAST, 'packages/pawl/src/index.ts': LAST };

const inFolder = async (
  files: Readonly<Record<string, string>>,
  look: (root: string) => Promise<void>,
): Promise<void> => {
  const root = mkdtempSync(path.join(tmpdir(), 'pawl-bundle-'));
  try {
    for (const [file, text] of Object.entries({
      'package.json': '{ "type": "module" }',
      ...files,
    })) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      writeFileSync(path.join(root, file), text);
    }
    await look(root);
  } finally {
    removeFolderSync(root);
  }
};

const runNode = (root: string, program: string): string =>
  execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    encoding: 'utf8',
  });

describe('the bundle', () => {
  it('loads modules of Node that few runs use with their first use, whole', () =>
    inFolder(
      {
        'packages/pawl/src/index.ts': 'export {};\n',
        'packages/pawl/src/main.ts': `
          import { createInterface } from 'node:readline';
          import zlib from 'node:zlib';
          const isLoaded = () => process.moduleLoadList.includes('NativeModule zlib');
          console.log(isLoaded());
          const packed = zlib.gzipSync('text', { finishFlush: zlib.constants.Z_FINISH });
          console.log(zlib.gunzipSync(packed).toString(), isLoaded(), typeof createInterface);
        `,
      },
      async (root) => {
        await bundle(root);
        const said = execFileSync(
          process.execPath,
          [path.join(root, 'packages/pawl/dist/cli.cjs')],
          {
            encoding: 'utf8',
          },
        );
        assert.equal(said, 'false\ntext true function\n');
      },
    ));

  it('keeps the names of functions, also of two that are called the same', () =>
    inFolder(
      {
        'packages/pawl/src/machine.ts':
          "import { settle } from './other.js';\nexport const all = [settle, function settle() {}];\n",
        'packages/pawl/src/other.ts': 'const settle = () => 1;\nexport { settle };\n',
        'packages/pawl/src/index.ts':
          "export { all } from './machine.js';\nexport const settle = () => 2;\n",
      },
      async (root) => {
        await bundle(root);
        const program = `
          import { all, settle } from './packages/pawl/dist/index.js';
          console.log([...all, settle].map((found) => found.name).join());`;
        assert.equal(runNode(root, program), 'settle,settle,settle\n');
      },
    ));

  it('refuses a machine that reaches something of Node', () =>
    inFolder(
      {
        'packages/pawl/src/machine.ts': "export { now } from './now.js';\n",
        'packages/pawl/src/now.ts':
          "import { hrtime } from 'node:process';\nexport const now = hrtime;\n",
      },
      (root) =>
        assert.rejects(bundle(root), /must run in a browser, but .* imports (node:)?process/),
    ));

  it('gives a bundled CommonJS package the modules of Node that it requires, and its licence a place', () =>
    inFolder(
      { ...OLD_PACKAGE, ...CLI, 'node_modules/old/LICENSE': 'Do what you like.' },
      async (root) => {
        await bundle(root);
        for (const file of ['cli.cjs', 'index.js']) {
          assert.equal(runNode(root, `await import('./packages/pawl/dist/${file}');`), 'b\n', file);
        }
        const notice = readFileSync(path.join(root, 'packages/pawl/THIRD-PARTY.md'), 'utf8');
        assert.match(notice, /## old 1\.2\.3 \(MIT\)\n\n```text\nDo what you like\.\n```/);
      },
    ));

  it('refuses to bundle a package without its licence text', () =>
    inFolder({ ...OLD_PACKAGE, ...CLI }, (root) =>
      assert.rejects(bundle(root), /old comes without its licence/),
    ));

  it('leaves a file alone that has not changed, and removes one that is not made any more', () =>
    inFolder({ 'packages/pawl/src/machine.ts': 'export const one = 1;\n' }, async (root) => {
      await bundle(root);
      const file = path.join(root, 'packages/pawl/dist/machine.js');
      const stale = path.join(root, 'packages/pawl/dist/chunks/old-ABC.js');
      mkdirSync(path.dirname(stale), { recursive: true });
      writeFileSync(stale, '');
      const before = statSync(file).ino;
      await bundle(root);
      assert.equal(statSync(file).ino, before);
      assert.throws(() => statSync(stale), { code: 'ENOENT' });
    }));

  it('rejects with the place of a source that does not parse', () =>
    inFolder({ 'packages/pawl/src/index.ts': 'export const = 1;\n' }, (root) =>
      assert.rejects(bundle(root), /src\/index\.ts:1/),
    ));
});
