import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { referencePages } from '../../scripts/reference.js';

const read = (file: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');

const pages = referencePages();

for (const [page, text] of pages) {
  test(`${page} is what the declarations say (npm run update writes it)`, () => {
    assert.equal(read(page), text);
  });
}

test('every export of each face is in its page', () => {
  const faces = [
    ['src/index.ts', 'docs/reference/pawl.md'],
    ['src/machine.ts', 'docs/reference/machine.md'],
    ['src/testing/index.ts', 'docs/reference/testing.md'],
  ] as const;
  assert.equal(pages.size, faces.length);
  for (const [source, page] of faces) {
    const exported = [...read(source).matchAll(/^export (?:type )?\{([^}]*)\}/gm)]
      .flatMap(([, list = '']) => list.split(','))
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== '');
    assert.ok(exported.length > 3, source);
    for (const name of exported) {
      assert.match(pages.get(page) ?? '', new RegExp(`^### (type )?${name}$`, 'm'), `${page}: ${name}`);
    }
  }
});

test('each function is listed with its description', () => {
  const text = pages.get('docs/reference/pawl.md') ?? '';
  assert.match(
    text,
    /### defineTool\n\nA tool from a schema and a function\.[\s\S]*?```typescript\nconst defineTool: </,
  );
});
