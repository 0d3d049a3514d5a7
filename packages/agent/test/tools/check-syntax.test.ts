import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import type { ToolContext } from '../../src/ports/tool.js';
import { noteSyntax } from '../../src/tools/check-syntax.js';
import { writeTool } from '../../src/tools/write.js';
import { makePlace } from './context.js';

/** A new file, and what the result says of it; null: nothing. */
const NEW_FILES: readonly (readonly [name: string, content: string, finding: RegExp | null])[] = [
  [
    'a.json',
    '{"a": 1,\n "b": [1, 2,],\n}',
    /^Unexpected token '?\]'?.*("b": \[1, 2,\]|in line 2$)/,
  ],
  ['a.json', '{"a": 1', /^Expected ',' or '}'.*in line 1$|end of JSON input$/],
  ['a.json', '{"a": 1}', null],
  ['tsconfig.json', '// ours\n{ "files": [], }', null],
  ['tsconfig.json', '{ "files": [, }', /in line 1$/],
  ['.vscode/settings.json', '{ /* all */ "a": 1, }', null],
  ['turbo.json', '{\n// all\n"a": 1 }', null],
  ['a.yaml', 'a: 1\n b: 2\n', /, in line 2$/],
  ['a.yml', 'a: 1\na: 2\n', /^duplicated mapping key, in line 2$/],
  ['a.yaml', 'a: !Ref B\nc: !Join [",", [a]]\n---\nd: 1\n', null],
  ['a.yml', 'a: !!python/name:b.c\nd: !!python/object:e {f: 1}\ng: !!set {h}\n', null],
  ['a.yml', 'a: !!int b\n', /, in line 1$/],
  ['values.yaml', 'a: {{ .Values.a }}\n{{- if .b }}\n', null],
  ['a.toml', 'a = 1\nb = \n', /, in line 2$/],
  ['a.toml', 'a = 1\n', null],
  ['bad.js', 'function ( {', /^.*, in line 1$/],
  ['a.cjs', 'return require("a");\n', null],
  ['a.mjs', 'export const a = await b();\nexport { c };\n', null],
  ['a.js', 'const a = <p>one</p>;\n', null],
  ['a.js', '// @flow\nconst a: ?string = null;\n', null],
  ['a.js', 'let a = 1;\nlet a = 2;\n', /'a' has already been declared, in line 2$/],
  ['a.ts', 'const a: number = 1 as const satisfies number;\nenum E { A }\n', null],
  ['a.ts', 'class A { constructor(@Inject() private readonly b: B) {} }\n', null],
  ['a.ts', 'export @dec class A { accessor b = 1 }\n', null],
  ['a.ts', 'const a: = 1;\n', /, in line 1$/],
  ['a.d.ts', 'declare const a: string;\nexport function b(): void;\n', null],
  ['a.tsx', 'const a = <T,>(b: T) => <p>{b}</p>;\n', null],
  ['a.txt', '{', null],
];

const SAYS = /\n\[(?<file>\S+) has a syntax error: (?<finding>.*)\]$/;

const findingIn = (text: string): string | null => SAYS.exec(text)?.groups?.finding ?? null;

const assertFinding = (text: string, expected: RegExp | null): void => {
  const finding = findingIn(text);
  if (expected === null) assert.equal(finding, null);
  else assert.match(finding ?? 'nothing', expected);
};

for (const [name, content, finding] of NEW_FILES)
  test(`a new file ${name}, ${JSON.stringify(content)}: ${finding ?? 'fine'}`, async (t) => {
    const place = await makePlace(t);
    const written = await place.run('write', { path: name, content });
    assert.equal(written.status, 'ok');
    assertFinding(written.text, finding);
    assert.equal(SAYS.exec(written.text)?.groups?.file ?? name, name);
  });

test('an edit that breaks a file is told, until it is repaired', async (t) => {
  const place = await makePlace(t);
  writeFileSync(place.path('a.ts'), 'const a = [1];\nconst b = 2;\n');
  await place.run('read', { path: 'a.ts' });
  const edit = async (oldText: string, newText: string): Promise<string> =>
    (await place.run('edit', { path: 'a.ts', edits: [{ oldText, newText }] })).text;
  assertFinding(await edit('[1]', '[1'), /, in line 1$/);
  assertFinding(await edit('b = 2', 'b = 3'), /, in line 1$/);
  assertFinding(await edit('[1', '[1]'), null);
});

test('of a file that could not be read in the same way before, nothing is said', async (t) => {
  const place = await makePlace(t);
  const template = '{{- if .a }}\nname: {{ .b }}\n{{- end }}\n';
  writeFileSync(place.path('a.yaml'), template);
  await place.run('read', { path: 'a.yaml' });
  const edits = [{ oldText: '.b', newText: '.c' }];
  const edited = await place.run('edit', { path: 'a.yaml', edits });
  assert.equal(edited.status, 'ok');
  assertFinding(edited.text, null);
});

/** As Pawl's tool, but no machine is too slow for the program that checks. */
const runPatiently = async (
  t: TestContext,
  path: string,
  content: string,
  level: 'off' | 'workspace',
): Promise<string> => {
  const place = await makePlace(t, process.env, level);
  const environment = { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'state') };
  const sandbox = createSessionSandbox({ environment });
  t.after(() => sandbox.close());
  const options = { sandbox, environment, deadlineMs: 600_000 };
  const context = {
    workspace: place.workspace,
    paths: [place.path(path)],
    sandbox: level,
    signal: new AbortController().signal,
    files: place.files,
  } as unknown as ToolContext; // the parts that write uses
  const outcome = await writeTool.run({ path, content }, context);
  return (await noteSyntax(outcome, options, context)).text;
};

for (const level of ['off', 'workspace'] as const)
  test(`Python is checked by the Python that is there; sandbox: ${level}`, async (t) => {
    const check = (content: string) => runPatiently(t, 'a.py', content, level);
    assertFinding(await check('def a(:\n  pass\n'), /, in line 1 \(Python 3\.\d+\)$/);
    assertFinding(await check('import os\nopen("ran", "w")\n'), null);
  });

test('a text that is checked is not run', async (t) => {
  const place = await makePlace(t);
  const path = place.path('ran');
  await runPatiently(t, 'a.py', `open(${JSON.stringify(path)}, "w")\n`, 'off');
  await place.run('write', {
    path: 'a.cjs',
    content: `require("fs").writeFileSync("${path}", "")`,
  });
  await place.run('write', { path: 'a.yaml', content: 'a: !!js/function "function () {}"\n' });
  assert.equal(existsSync(path), false);
});
