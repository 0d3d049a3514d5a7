import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundle } from '../../scripts/bundle.js';
import { removeFolderSync } from '../temporary-folder.js';

/** Programs that run beside the bundle are found from wherever the code that asks for them has been bundled to. */

const source = fileURLToPath(
  new URL('../../packages/ask/src/environments/bundled-program-file.ts', import.meta.url),
);

const FILES: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module" }',
  'packages/ask/src/environments/quickjs/quickjs-worker.ts':
    "import { word } from './word.js';\nconst said: string = 'worker ' + word;\nconsole.log(said);\n",
  'packages/ask/src/environments/quickjs/word.ts': "export const word = 'bundled';\n",
  'packages/ask/src/environments/sandboxed/kernel/own.cjs': "console.log('copied');\n",
  'packages/ask/src/environments/quickjs/quickjs-worker-from-source.js':
    "console.log('from source');\n",
  'packages/pawl/src/show.ts': `import { programFile } from '@pawl/ask/environments/bundled-program-file';
    export const show = () => [
      programFile('quickjs-worker-from-source.js', 'quickjs-worker.js'), programFile('kernel/own.cjs')].join('\\n');
    export const refuse = () => { try { return programFile('missing.py'); } catch (error) { return error.message; } };\n`,
  'packages/pawl/src/index.ts':
    "export const late = () => import('./show.js');\nexport { show } from './show.js';\n",
  'packages/pawl/src/main.ts':
    "import { refuse, show } from './show.js';\nconsole.log(show() + '\\n' + refuse());\n",
};

const node = (root: string, ...words: string[]): string =>
  execFileSync(process.execPath, words, { cwd: root, encoding: 'utf8' });

test('from the program, from the library and from a piece of it', async () => {
  const root = mkdtempSync(path.join(tmpdir(), 'pawl-programs-'));
  try {
    for (const [file, text] of Object.entries(FILES)) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      writeFileSync(path.join(root, file), text);
    }
    cpSync(source, path.join(root, 'packages/ask/src/environments/bundled-program-file.ts'));
    await bundle(root);
    const library =
      "import { late, show } from './packages/pawl/dist/index.js'; console.log(show() + '\\n' + (await late()).show());";
    const found = node(root, '--input-type=module', '-e', library).trim().split('\n');
    const [worker, kernel, refusal] = node(root, 'packages/pawl/dist/cli.cjs').trim().split('\n');
    assert.deepEqual(found, [worker, kernel, worker, kernel]);
    assert.equal(node(root, worker ?? ''), 'worker bundled\n');
    assert.equal(node(root, kernel ?? ''), 'copied\n');
    assert.equal(refusal, 'missing.py is missing from this copy of pawl: install it anew');
  } finally {
    removeFolderSync(root);
  }
});
