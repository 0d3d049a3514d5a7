import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeModeInstructions, subcallInstructions } from '../src/code-mode-instructions.js';
import { parseReply } from '../src/run/parse-reply.js';

const facts = {
  recursive: 'yes',
  cellDeadlineMs: 60_000,
  outputMax: 20_000,
  finalForms: 'off',
  models: ['a'],
} as const;
const languages = ['javascript', 'python'] as const;

for (const language of languages) {
  for (const recursive of ['yes', 'no'] as const) {
    const text = codeModeInstructions({ ...facts, language, recursive });
    const name = `${language}, ${recursive === 'yes' ? 'with' : 'without'} recursion`;

    test(`the instructions (${name}) are at most 4 kB`, () => {
      assert.ok(Buffer.byteLength(text) <= 4_096, `${Buffer.byteLength(text)} bytes`);
    });

    test(`the instructions (${name}) name everything that an environment offers`, () => {
      for (const word of [
        ...['context', 'llm_query', 'llm_query_batched', 'rlm_query', 'rlm_query_batched'],
        ...['show_vars', 'answer', 'last_output', 'print'],
      ]) {
        assert.match(text, new RegExp(`\\b${word}\\b`), word);
      }
    });

    test(`the programs that the instructions (${name}) show are ones that the machine runs`, () => {
      const { blocks } = parseReply(text, { finalForms: 'off', fences: 'ignored' });
      assert.equal(blocks.length, 2);
      for (const { code, closed } of blocks) assert.ok(closed === 'yes' && code !== '');
    });
  }
}

test('the prompt names the language, the limits, and whether calls can recurse', () => {
  const [javascript, python] = languages.map((language) =>
    codeModeInstructions({ ...facts, language }),
  );
  assert.match(javascript ?? '', /JavaScript environment[\s\S]*answer\.ready = true/);
  assert.match(python ?? '', /Python environment[\s\S]*answer\["ready"\] = True/);
  assert.match(python ?? '', /60 s of its own/);
  assert.match(python ?? '', /at most 20000 characters/);
  const flat = codeModeInstructions({ ...facts, language: 'python', recursive: 'no' });
  assert.doesNotMatch(flat, /one like you/);
});

test('with FINAL switched on the instructions speak of it, and of no answer record', () => {
  for (const language of languages) {
    const text = codeModeInstructions({ ...facts, language, finalForms: 'on' });
    assert.ok(Buffer.byteLength(text) <= 4_096);
    assert.match(text, /FINAL\(text\)[\s\S]*FINAL_VAR\(result\)/);
    assert.doesNotMatch(text, /answer(\.|\[")(ready|content)|- answer:/);
  }
});

test('a sub-call is told little', () => {
  assert.ok(Buffer.byteLength(subcallInstructions) < 400);
});
