import assert from 'node:assert/strict';
import { chmod, stat, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { hashBytes } from '../../src/platform/files.js';
import { installOwn, installProgram, installStandIn, makeFormatting } from './formatting.js';
import { type Deed, makePlace, makeRepository } from './place.js';

// RunningAutoformatters (rules.md#format-changes). Prettier and Biome as they are run where
// what they do themselves counts; else a line of sed stands in for Prettier.

const GOOD = 'export const a = { b: 1 };\n';
const ROUGH = 'export const a = {b:2}\n';
const SMOOTH = 'export const a = { b: 2 };\n';

type Row = {
  readonly title: string;
  /** Files before the batch, by name. */
  readonly given: Readonly<Record<string, string>>;
  /** What is committed of them. */
  readonly committed?: true;
  /** With the formatters of this project. */
  readonly real?: true;
  readonly when: readonly Deed[];
  /** Files after it. */
  readonly then: Readonly<Record<string, string>>;
};

const edit = (name: string, text: string): Deed => ({ edit: name, text });
const PRETTIER = { '.prettierrc': '{}\n' };
const BIOME = { 'biome.json': '{"formatter":{"indentStyle":"space"}}\n' };

const rows: readonly Row[] = [
  {
    title: 'a file that was formatted is formatted again after an edit',
    given: { ...PRETTIER, 'a.ts': GOOD },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': SMOOTH },
  },
  {
    title: 'a file that was not formatted before is left alone',
    given: { ...PRETTIER, 'a.ts': 'const x=1\n' },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': ROUGH },
  },
  {
    title: 'what counts is the file before the batch, not before the last edit',
    given: { ...PRETTIER, 'a.ts': GOOD },
    when: [edit('a.ts', 'const x=1\n'), edit('a.ts', ROUGH)],
    then: { 'a.ts': SMOOTH },
  },
  {
    title: 'a new file is formatted where the repository governs it',
    given: PRETTIER,
    when: [edit('src/deep/a.ts', ROUGH)],
    then: { 'src/deep/a.ts': SMOOTH },
  },
  {
    title: 'files that the batch did not change are left alone',
    given: { ...PRETTIER, 'a.ts': GOOD, 'b.ts': ROUGH },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': SMOOTH, 'b.ts': ROUGH },
  },
  {
    title: "without a sign of a formatter nothing is formatted, although it's installed",
    given: { 'a.ts': GOOD },
    when: [edit('a.ts', ROUGH), edit('b.ts', ROUGH)],
    then: { 'a.ts': ROUGH, 'b.ts': ROUGH },
  },
  {
    title: 'what the ignore file of a folder above names is left alone',
    real: true,
    given: { '.prettierignore': 'p/made/\n', '.gitignore': 'p/built/\n', 'p/.prettierrc': '{}\n' },
    when: [edit('p/made/a.ts', ROUGH), edit('p/built/a.ts', ROUGH), edit('p/a.ts', ROUGH)],
    then: { 'p/made/a.ts': ROUGH, 'p/built/a.ts': ROUGH, 'p/a.ts': SMOOTH },
  },
  {
    title: 'a file that says that it is generated is left alone',
    given: { ...PRETTIER, 'a.ts': `// @generated\n${GOOD}` },
    when: [edit('a.ts', `// @generated\n${ROUGH}`)],
    then: { 'a.ts': `// @generated\n${ROUGH}` },
  },
  {
    title: 'Windows line endings stay, and are no reason to leave a file alone',
    real: true,
    given: { ...PRETTIER, 'a.ts': GOOD.replace('\n', '\r\n') },
    when: [edit('a.ts', `${ROUGH}${ROUGH.replace('a', 'c')}`.replaceAll('\n', '\r\n'))],
    then: { 'a.ts': `${SMOOTH}${SMOOTH.replace('a', 'c')}`.replaceAll('\n', '\r\n') },
  },
  {
    title: 'a byte order mark stays',
    real: true,
    given: { ...PRETTIER, 'a.ts': `\ufeff${GOOD}` },
    when: [edit('a.ts', `\ufeff${ROUGH}`)],
    then: { 'a.ts': `\ufeff${SMOOTH}` },
  },
  {
    title: 'a file that Prettier has no parser for is left alone',
    real: true,
    given: { '.prettierrc': '{}\n', 'a.svelte': '<p>one</p>\n' },
    when: [edit('a.svelte', '<p>  two</p>\n')],
    then: { 'a.svelte': '<p>  two</p>\n' },
  },
  {
    title: 'settings in package.json are a sign',
    real: true,
    given: { 'package.json': '{ "prettier": {} }\n' },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': SMOOTH },
  },
  {
    title: 'a dependency that a script calls is a sign',
    given: {
      'package.json': '{"devDependencies":{"prettier":"3"},"scripts":{"fmt":"prettier -w ."}}',
    },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': SMOOTH },
  },
  {
    title: 'a dependency alone says nothing of new files, but of those that were formatted',
    given: { 'package.json': '{"dependencies":{"prettier":"3"}}', 'a.ts': GOOD },
    when: [edit('a.ts', ROUGH), edit('new.ts', ROUGH)],
    then: { 'a.ts': SMOOTH, 'new.ts': ROUGH },
  },
  {
    title: 'Biome formats what it governs',
    real: true,
    given: { ...BIOME, 'a.ts': GOOD },
    when: [edit('a.ts', ROUGH), edit('new.ts', ROUGH)],
    then: { 'a.ts': SMOOTH, 'new.ts': SMOOTH },
  },
  {
    title: 'what the settings of Biome leave out is left alone',
    real: true,
    given: {
      'biome.json': '{"files":{"includes":["**","!made"]},"formatter":{"indentStyle":"space"}}',
      'made/a.ts': GOOD,
    },
    when: [edit('made/a.ts', ROUGH), edit('a.ts', ROUGH)],
    then: { 'made/a.ts': ROUGH, 'a.ts': SMOOTH },
  },
  {
    title: 'what the formatter of Biome alone leaves out is left alone, too',
    real: true,
    given: { 'biome.json': '{"formatter":{"includes":["**","!made/**"]}}' },
    when: [edit('made/a.ts', ROUGH)],
    then: { 'made/a.ts': ROUGH },
  },
  {
    title: 'Biome with its formatter turned off formats nothing',
    real: true,
    given: { 'biome.json': '{"formatter":{"enabled":false}}', 'a.ts': GOOD },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': ROUGH },
  },
  {
    title: 'a formatter that leaves a file alone leaves it to the next one',
    real: true,
    given: {
      ...PRETTIER,
      'biome.json': '{"formatter":{"enabled":false}}',
      'package.json': '{"devDependencies":{"@biomejs/biome":"2"},"scripts":{"lint":"biome lint"}}',
      'a.ts': GOOD,
    },
    when: [edit('a.ts', ROUGH)],
    then: { 'a.ts': SMOOTH },
  },
  {
    title: 'the nearest folder with a sign decides which formatter it is',
    real: true,
    given: { ...PRETTIER, 'packages/p/biome.json': '{"formatter":{"indentStyle":"tab"}}' },
    when: [edit('packages/p/a.ts', 'if (a) {b()}\n'), edit('b.ts', 'if (a) {b()}\n')],
    then: { 'packages/p/a.ts': 'if (a) {\n\tb();\n}\n', 'b.ts': 'if (a) {\n  b();\n}\n' },
  },
  {
    title: 'of two formatters in one folder the one is meant that the file satisfied',
    real: true,
    given: {
      ...PRETTIER,
      'biome.json': '{}',
      'a.ts': 'if (a) {\n  b();\n}\n',
      'b.ts': 'if (a) {\n\tb();\n}\n',
    },
    when: [
      edit('a.ts', 'if (a) {c()}\n'),
      edit('b.ts', 'if (a) {c()}\n'),
      edit('new.ts', 'if (a) {c()}\n'),
    ],
    then: {
      'a.ts': 'if (a) {\n  c();\n}\n',
      'b.ts': 'if (a) {\n\tc();\n}\n',
      'new.ts': 'if (a) {c()}\n',
    },
  },
  {
    title: 'a file that a command changed is formatted if it was committed so',
    given: { ...PRETTIER, '.gitignore': 'node_modules\n', 'a.ts': GOOD, 'b.ts': 'const x=1\n' },
    committed: true,
    when: [{ command: `echo '${ROUGH.trim()}' | tee a.ts > b.ts; cp a.ts new.ts` }],
    then: { 'a.ts': SMOOTH, 'b.ts': ROUGH, 'new.ts': SMOOTH },
  },
  {
    title: 'a file that a command changed and committed is formatted, too',
    given: { ...PRETTIER, '.gitignore': 'node_modules\n', 'a.ts': GOOD },
    committed: true,
    when: [{ command: `echo '${ROUGH.trim()}' > a.ts; git commit -qam rough` }],
    then: { 'a.ts': SMOOTH },
  },
];

/** Rows that run the same formatter stand for each other. */
const kindOf = ({ title, given, real }: Row): string =>
  real === true ? `Biome: ${Object.keys(given).join().includes('biome')}` : title;

for (const { title, given, committed, real, when, then } of chooseRows(rows, kindOf)) {
  test(title, async (t) => {
    const place = await (committed === true ? makeRepository(t) : makePlace(t));
    if (real === true) installOwn(place);
    else installStandIn(place);
    for (const [name, text] of Object.entries(given)) await place.write(name, text);
    if (committed === true) await place.shell('git add -A; git commit -qm given');
    const report = await makeFormatting(place).batch(...when);
    for (const [name, text] of Object.entries(then))
      assert.equal(await place.read(name), text, name);
    assert.equal(report.warning, '');
    const written = new Map(
      when.flatMap((deed) => ('edit' in deed ? [[deed.edit, deed.text]] : [])),
    );
    const rewritten = Object.keys(then).filter(
      (name) => written.has(name) && written.get(name) !== then[name],
    );
    if (committed === true) return;
    assert.deepEqual([...report.changedFiles].sort(), rewritten.map(place.path).sort());
    assert.equal(report.dirty, rewritten.length > 0);
  });
}

test("a user's own uncommitted change is not formatted, whatever a command does to the file", async (t) => {
  const place = await makeRepository(t);
  installStandIn(place);
  await place.write('.prettierrc', '{}\n');
  await place.write('a.ts', GOOD);
  await place.shell('git add -A; git commit -qm given');
  await place.write('a.ts', 'const mine=1\n');
  const formatting = makeFormatting(place);
  await formatting.batch({ command: 'echo "const more=2" >> a.ts' });
  assert.equal(await place.read('a.ts'), 'const mine=1\nconst more=2\n');
});

test('the model is shown what has changed, and what the edit tool remembers is kept up', async (t) => {
  const place = await makePlace(t);
  installOwn(place);
  await place.write('.prettierrc', '{}\n');
  const formatting = makeFormatting(place);
  const report = await formatting.batch(edit('a.ts', ROUGH));
  assert.match(
    report.note,
    /^\[formatters\] [\s\S]*a\.ts \(Prettier\):\n@@[\s\S]*\n-export const a = \{b:2\}\n\+export const a = \{ b: 2 \};$/,
  );
  assert.deepEqual(report.changedFiles, [place.path('a.ts')]);
  assert.equal(formatting.files.get(place.path('a.ts')), hashBytes(SMOOTH));
  const large = Array.from({ length: 400 }, (_, index) => `const x${index} = {a:${index}}`).join(
    '\n',
  );
  const second = await formatting.batch(edit('large.ts', `${large}\n`));
  assert.match(second.note, /large\.ts \(Prettier\): read it again before you edit it$/);
  assert.equal(
    formatting.files.get(place.path('large.ts')),
    hashBytes(await place.read('large.ts')),
  );
});

test('a file that the model has not seen as it was is not taken for seen after formatting', async (t) => {
  const place = await makeRepository(t);
  installStandIn(place);
  await place.write('.prettierrc', '{}\n');
  await place.write('a.ts', GOOD);
  await place.shell('git add -A; git commit -qm given');
  const formatting = makeFormatting(place);
  formatting.files.set(place.path('a.ts'), hashBytes(GOOD));
  await formatting.batch({ command: `echo '${ROUGH.trim()}' > a.ts` });
  assert.equal(await place.read('a.ts'), SMOOTH);
  assert.equal(formatting.files.get(place.path('a.ts')), hashBytes(GOOD));
});

test("a file's mode stays", async (t) => {
  const place = await makePlace(t);
  installStandIn(place);
  await place.write('.prettierrc', '{}\n');
  await place.write('a.mjs', GOOD);
  await chmod(place.path('a.mjs'), 0o751);
  await makeFormatting(place).batch(edit('a.mjs', ROUGH));
  assert.equal(await place.read('a.mjs'), SMOOTH);
  assert.equal((await stat(place.path('a.mjs'))).mode & 0o777, 0o751);
});

test('text that a formatter can not take is told to the model and to the user, and stays', async (t) => {
  const place = await makePlace(t);
  installOwn(place);
  await place.write('.prettierrc', '{}\n');
  await place.write('a.ts', GOOD);
  const report = await makeFormatting(place).batch(edit('a.ts', 'const a = \n'));
  assert.equal(await place.read('a.ts'), 'const a = \n');
  assert.match(
    report.note,
    /^\[formatters\] Prettier can't format a\.ts as it is now: .*SyntaxError/,
  );
  assert.match(report.warning, /^Prettier can't format a\.ts: .*SyntaxError[^\n]*$/);
  assert.deepEqual(report.changedFiles, []);
});

test('a formatter that never works is told of once in a session', async (t) => {
  const place = await makePlace(t);
  installOwn(place);
  await place.write('.prettierrc', '{ "plugins": ["there-is-no-such-plugin"] }\n');
  await place.write('a.ts', GOOD);
  const formatting = makeFormatting(place);
  const first = await formatting.batch(edit('a.ts', ROUGH));
  assert.match(first.warning, /^Prettier does not work here: [\s\S]*there-is-no-such-plugin/);
  assert.equal(first.note, '');
  const second = await formatting.batch(edit('a.ts', ROUGH.replace('2', '3')));
  assert.equal(second.warning, '');
});

test('a formatter that can not take the earlier text alone works here', async (t) => {
  const place = await makePlace(t);
  installOwn(place);
  await place.write('.prettierrc', '{}\n');
  await place.write('a.ts', 'const a = \n');
  const report = await makeFormatting(place).batch(edit('a.ts', ROUGH));
  assert.deepEqual([report.warning, await place.read('a.ts')], ['', ROUGH]);
});

test('a file that somebody changes while it is formatted stays as they left it', async (t) => {
  const place = await makePlace(t);
  await place.write('go.mod', 'module x\n');
  const searchPath = installProgram(
    place,
    'gofmt',
    `text=$(cat); [[ $text == *rough* ]] && echo theirs > "${place.path('a.go')}"; echo "\${text/rough/smooth}"`,
  );
  await place.write('a.go', 'good\n');
  const formatting = makeFormatting(place, { searchPath });
  const report = await formatting.batch(edit('a.go', 'rough\n'));
  assert.equal(await place.read('a.go'), 'theirs\n');
  assert.deepEqual([report.changedFiles, report.note, report.warning], [[], '', '']);
});

test('a file that is a link, or lies behind one, is not followed', async (t) => {
  const place = await makePlace(t);
  installStandIn(place);
  await place.write('.prettierrc', '{}\n');
  await writeFile(`${place.root}/outside.ts`, ROUGH);
  await place.shell('ln -s ../outside.ts link.ts');
  const report = await makeFormatting(place).batch({ command: 'true' }, edit('link.ts', ROUGH));
  assert.equal(await place.read('link.ts'), ROUGH);
  assert.deepEqual(report.changedFiles, []);
});
