import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { emitDeclarations } from '../../scripts/declarations.js';
import { referencePages } from '../../scripts/reference.js';
import { removeFolderSync } from '../temporary-folder.js';

const read = (file: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');

const makePages = (): ReadonlyMap<string, string> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-declarations-'));
  try {
    emitDeclarations(folder);
    return referencePages(folder);
  } finally {
    removeFolderSync(folder);
  }
};

const pages = makePages();

test('every export of each face is in its page', () => {
  const faces = [
    ['packages/pawl/src/index.ts', 'docs/reference/pawl.md'],
    ['packages/pawl/src/machine.ts', 'docs/reference/machine.md'],
    ['packages/pawl/src/testing.ts', 'docs/reference/testing.md'],
  ] as const;
  assert.equal(pages.size, faces.length);
  for (const [source, page] of faces) {
    const exported = [...read(source).matchAll(/^export (?:type )?\{([^}]*)\}/gm)]
      .flatMap(([, list = '']) => list.split(','))
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== '');
    assert.ok(exported.length > 3, source);
    for (const name of exported) {
      assert.match(
        pages.get(page) ?? '',
        new RegExp(`^### (type )?${name}$`, 'm'),
        `${page}: ${name}`,
      );
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

/** Names of types that stand in the declarations of a page. */
const namesIn = (page: string): ReadonlySet<string> => {
  const blocks = [...page.matchAll(/^```typescript\n([\s\S]*?)^```$/gm)].map(
    ([, code = '']) => code,
  );
  const code = blocks
    .join('\n')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/'[^']*'|"[^"]*"/g, '');
  return new Set(code.match(/(?<![\w.])[A-Z]\w*\b(?!\s*:)/g));
};

const sourceText = readdirSync(new URL('../../packages/', import.meta.url), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((file) => /^[^/]+\/src\/.*\.ts$/.test(file))
  .map((file) => readFileSync(new URL(`../../packages/${file}`, import.meta.url), 'utf8'))
  .join('\n');
/** Names that parameters of types share with types elsewhere. */
const PARAMETERS: ReadonlySet<string> = new Set(['Fields', 'Output']);

/** Types of the project with names of more than a letter, which parameters of types have, too. */
const declared = new Set(
  [...sourceText.matchAll(/^(?:export )?(?:type|interface|class) (\w{3,})/gm)].map(
    ([, name = '']) => name,
  ),
);

for (const [page, text] of pages)
  test(`each type that a declaration of ${page} names is explained there, or linked`, () => {
    const explained = new Set(
      [...text.matchAll(/^### (?:type )?(\w+)$/gm)].map(([, name]) => name),
    );
    const linked = new Set([...text.matchAll(/\[(\w+)\]\(machine\.md#/g)].map(([, name]) => name));
    const names = [...namesIn(text)].filter((name) => declared.has(name) && !PARAMETERS.has(name));
    assert.ok(names.length > 10);
    assert.deepEqual(
      names.filter((name) => !explained.has(name) && !linked.has(name)),
      [],
    );
  });

test('the events, the calls and what they name are exports of the machine', () => {
  const text = pages.get('docs/reference/machine.md') ?? '';
  const [exported = ''] = text.split('## Types without an export');
  for (const name of [
    'UserEvent',
    'LlmEvent',
    'ToolEvent',
    'HookEvent',
    'OtherEvent',
    'CallTraits',
    'CallFacts',
  ])
    assert.match(exported, new RegExp(`^### type ${name}$`, 'm'));
});
