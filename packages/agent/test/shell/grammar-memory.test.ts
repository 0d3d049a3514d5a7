import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { commandStarts } from '../../src/policy/shell/grammar.js';

type Growth = { readonly megabytes: number; readonly grammar: boolean };

/** Reads a text until an optimizing compiler would have begun and ended: growth of the peak, and what was loaded. */
const growthBy = async (context: TestContext, text: string): Promise<Growth> => {
  const code = `
    import { createRequire } from 'node:module';
    import { shellFacts } from './packages/agent/src/policy/shell/shell-facts.ts';
    const before = process.resourceUsage().maxRSS;
    for (let round = 0; round < 2000; round++) await shellFacts(${JSON.stringify(text)} + round, () => null);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const loaded = Object.keys(createRequire(process.argv[1] ?? '').cache);
    const grammar = loaded.some((file) => file.includes('web-tree-sitter'));
    console.log(JSON.stringify({ megabytes: (process.resourceUsage().maxRSS - before) / 1024, grammar }));
  `;
  const program = await bundleProgram(context, { code });
  return JSON.parse(execFileSync(process.execPath, [program], { encoding: 'utf8' }));
};

test('the grammar of the shell takes less than 35 MB: it is not optimized', async (context) => {
  const { megabytes, grammar } = await growthBy(
    context,
    'for i in a b; do echo "x $(y) $i"; done | head -',
  );
  assert.ok(grammar);
  assert.ok(megabytes < 35, `${megabytes.toFixed(1)} MB`);
});

test('plain commands do not load the grammar', async (context) => {
  const { grammar } = await growthBy(context, 'cd a && npm test 2>&1 | head -');
  assert.equal(grammar, false);
});

test('a grammar that could not be loaded is loaded for the next text', async (context) => {
  const reading = context.mock.method(promises, 'readFile', async () => {
    throw new Error('EMFILE');
  });
  syncBuiltinESMExports();
  await assert.rejects(commandStarts('ls'), /EMFILE/);
  reading.mock.restore();
  syncBuiltinESMExports();
  assert.equal((await commandStarts('ls')).kind, 'starts');
});
