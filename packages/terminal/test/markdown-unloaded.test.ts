import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { bundleProgram } from '../../../test/bundled-program.js';

/** In a process of its own: once the renderer is loaded, it is loaded for all tests of a process. */

const PROGRAM = `
import { renderMarkdown } from './packages/terminal/src/markdown.ts';
const bare = { colour: 'no', columns: 40 };
console.log(JSON.stringify([renderMarkdown(bare, '**a** b', 40, 'printed'), renderMarkdown(bare, 'abcdef', 4, 'rows')]));
`;

test('until the renderer is loaded text is shown as it was written, broken to the width', async (context) => {
  const program = await bundleProgram(context, { code: PROGRAM });
  const { stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
  assert.equal(stdout, `${JSON.stringify([['**a** b'], ['abcd', 'ef']])}\n`, stderr);
});
