import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../../../../test/until.js';
import { installProgram, makeFormatting } from './formatting.js';
import { makePlace, type Place } from './place.js';

// Formatters that misbehave, and how each one is found and called. `gofmt` stands for any of them.

const goPlace = async (
  t: TestContext,
  script: string,
): Promise<{ place: Place; searchPath: string }> => {
  const place = await makePlace(t);
  await place.write('go.mod', 'module x\n');
  await place.write('a.go', 'good\n');
  return { place, searchPath: installProgram(place, 'gofmt', script) };
};

const FORMATS = 'sed s/rough/smooth/';

let marks = 0;
/** Seconds of a long sleep that nobody else sleeps: it marks processes. */
const uniqueSleep = (): string => `414.${process.pid}${String(++marks).padStart(3, '0')}`;

const isRunning = (mark: string): boolean =>
  readdirSync('/proc').some((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(mark);
    } catch {
      return false; // it has ended since the folder was read
    }
  });

const ROUGH = { edit: 'a.go', text: 'rough\n' };

test('the stand-in formats', async (t) => {
  const { place, searchPath } = await goPlace(t, FORMATS);
  const report = await makeFormatting(place, { searchPath }).batch(ROUGH);
  assert.equal(await place.read('a.go'), 'smooth\n');
  assert.deepEqual(report.changedFiles, [place.path('a.go')]);
});

test('a formatter gets the variables of commands, and may fetch no other version of itself', async (t) => {
  const { place, searchPath } = await goPlace(
    t,
    '[ "$GOTOOLCHAIN" = local ] && [ "$PATH" ] && sed s/rough/smooth/',
  );
  await makeFormatting(place, { searchPath }).batch(ROUGH);
  assert.equal(await place.read('a.go'), 'smooth\n');
});

test('one that hangs is ended with all it has started, told of, and not asked again', async (t) => {
  const mark = uniqueSleep();
  const { place, searchPath } = await goPlace(
    t,
    `echo once >> "${'$'}{0%/*}/asked"; sleep ${mark} & sleep ${mark}`,
  );
  const formatting = makeFormatting(place, { searchPath, formatterMs: 3_000 });
  const report = await formatting.batch(ROUGH);
  assert.equal(
    report.warning,
    'gofmt took longer than 3 s and was stopped; gofmt is not used any more in this session',
  );
  assert.deepEqual([report.note, report.changedFiles], ['', []]);
  await until('the end of what it started', () => !isRunning(mark));
  const second = await formatting.batch({ edit: 'a.go', text: 'rough again\n' });
  assert.equal(second.warning, '');
  assert.equal(await place.read('a.go'), 'rough again\n');
  assert.equal(readFileSync(path.join(place.root, 'programs', 'asked'), 'utf8'), 'once\n');
});

test('one that prints without end is ended, and what it printed is not used', async (t) => {
  const { place, searchPath } = await goPlace(t, 'head -c 100000000 /dev/zero | tr "\\\\0" x');
  const report = await makeFormatting(place, { searchPath }).batch(ROUGH);
  assert.match(report.warning, /^gofmt printed more than \d+ bytes and was stopped; /);
  assert.equal(await place.read('a.go'), 'rough\n');
});

test('one that prints without end on stderr and fails is told of in a few words', async (t) => {
  const script =
    '[[ $(cat) == good ]] && { echo good; exit; }; head -c 3000000 /dev/zero | tr "\\\\0" x >&2; exit 3';
  const { place, searchPath } = await goPlace(t, script);
  const report = await makeFormatting(place, { searchPath }).batch(ROUGH);
  assert.match(report.note, /^\[formatters\] gofmt can't format a\.go as it is now: x+$/);
  assert.ok(report.note.length < 700 && report.warning.length < 300);
});

test('one that ends without a word, or is ended, is told of', async (t) => {
  for (const [script, words] of [
    ['[[ $(cat) == good ]] && { echo good; exit; }; exit 1', 'it did not say why'],
    ['[[ $(cat) == good ]] && { echo good; exit; }; kill -9 $$', 'gofmt was ended by a signal'],
  ] as const) {
    const { place, searchPath } = await goPlace(t, script);
    const report = await makeFormatting(place, { searchPath }).batch(ROUGH);
    assert.equal(report.warning, `gofmt can't format a.go: ${words}`);
    assert.equal(await place.read('a.go'), 'rough\n');
  }
});

test('one that prints nothing, or does not read, changes nothing', async (t) => {
  for (const script of ['cat > /dev/null', 'exit 0', 'exec <&-; echo; sleep 0.1']) {
    const { place, searchPath } = await goPlace(t, script);
    const report = await makeFormatting(place, { searchPath }).batch(ROUGH);
    assert.equal(await place.read('a.go'), 'rough\n', script);
    assert.equal(report.warning, '', script);
  }
});

test('one that adds words of its own changes neither old files nor new ones', async (t) => {
  const { place, searchPath } = await goPlace(t, `echo Welcome; ${FORMATS}`);
  await makeFormatting(place, { searchPath }).batch(ROUGH, { edit: 'new.go', text: 'rough\n' });
  assert.equal(await place.read('a.go'), 'rough\n');
  assert.equal(await place.read('new.go'), 'rough\n');
});

// The second one fails in the words of bash, which is the shell of some systems.
for (const script of [
  '#!/there/is/no/such/shell\n',
  '#!/bin/bash\nexec /there/is/no/such/program\n',
])
  test(`a formatter that can't be started is reported once: ${script.split('\n')[0]}`, async (t) => {
    const { place, searchPath } = await goPlace(t, FORMATS);
    const program = path.join(place.root, 'programs', 'gofmt');
    await writeFile(program, script);
    await chmod(program, 0o755);
    const report = await makeFormatting(place, { searchPath }).batch(ROUGH);
    assert.match(
      report.warning,
      /gofmt can't be started; gofmt is not used any more in this session$/,
    );
  });

test('one that is not installed is not missed, and not fetched', async (t) => {
  const { place } = await goPlace(t, FORMATS);
  const asked = path.join(place.root, 'asked');
  const searchPath = installProgram(place, 'npx', `touch "${asked}"`, 'other').replace(/:.*/, '');
  await place.write('.prettierrc', '{}\n');
  const formatting = makeFormatting(place, { searchPath });
  const report = await formatting.batch(ROUGH, { edit: 'a.ts', text: 'const a=1\n' });
  assert.deepEqual([report.note, report.warning, report.changedFiles], ['', '', []]);
  assert.throws(() => readFileSync(asked), /ENOENT/);
});

test('a cancel ends what runs, and no file is written after it', async (t) => {
  const mark = uniqueSleep();
  const { place, searchPath } = await goPlace(t, `sleep ${mark}`);
  const cancelling = new AbortController();
  const running = makeFormatting(place, { searchPath, signal: cancelling.signal }).batch(ROUGH);
  await until('the formatter', () => isRunning(mark));
  cancelling.abort();
  await assert.rejects(running, /stopped|aborted/);
  // Killed, it is seen until its new parent has heard of it; left alone it would sleep on.
  await until('the end of the formatter', () => !isRunning(mark));
  assert.equal(await place.read('a.go'), 'rough\n');
});

test('too many files at once are left alone, and that is said', async (t) => {
  const { place, searchPath } = await goPlace(t, FORMATS);
  const many = Array.from({ length: 101 }, (_, index) => ({
    edit: `x${index}.go`,
    text: 'rough\n',
  }));
  const report = await makeFormatting(place, { searchPath }).batch(...many);
  assert.match(report.warning, /^101 files changed at once: too many/);
  assert.equal(await place.read('x0.go'), 'rough\n');
});

test('no key of a provider reaches a formatter', async (t) => {
  const { place, searchPath } = await goPlace(
    t,
    `echo "[$ANTHROPIC_API_KEY][$NO_COLOR]" > "\${0%/*}/keys"; ${FORMATS}`,
  );
  const keyed = { ...place, environment: { ...place.environment, ANTHROPIC_API_KEY: 'secret' } };
  await makeFormatting(keyed, { searchPath }).batch(ROUGH);
  assert.equal(readFileSync(path.join(place.root, 'programs', 'keys'), 'utf8'), '[][1]\n');
});

type Way = {
  readonly program: string;
  readonly given: Readonly<Record<string, string>>;
  readonly file: string;
  /** The folder it runs in, relative to the workspace, and its words; WORK stands for the workspace. */
  readonly runs: string;
};

const ways: readonly Way[] = [
  { program: 'gofmt', given: { 'go.mod': '' }, file: 'src/a.go', runs: '. :' },
  {
    program: 'rustfmt',
    given: {
      'Cargo.toml': '[workspace.package]\nedition = "2024"\n',
      'crates/a/Cargo.toml': 'edition.workspace = true\n',
    },
    file: 'crates/a/src/lib.rs',
    runs: 'crates/a/src : --edition 2024',
  },
  { program: 'rustfmt', given: { 'rustfmt.toml': '' }, file: 'a.rs', runs: '. :' },
  {
    program: 'ruff',
    given: { 'pyproject.toml': '[tool.ruff.format]\n' },
    file: 'src/a.py',
    runs: '. : format --no-cache --force-exclude --stdin-filename WORK/src/a.py -',
  },
  {
    program: 'ruff',
    given: { 'ruff.toml': 'line-length = 100\n[format]\n' },
    file: 'a.pyi',
    runs: '. : format --no-cache --force-exclude --stdin-filename WORK/a.pyi -',
  },
  {
    program: 'ruff',
    given: { '.pre-commit-config.yaml': 'repos:\n  - hooks:\n      - id: ruff-format # all\n' },
    file: 'a.py',
    runs: '. : format --no-cache --force-exclude --stdin-filename WORK/a.py -',
  },
  {
    program: 'black',
    given: { 'pyproject.toml': '[project]\nname = "x"\n[tool.black]\nline-length = 100\n' },
    file: 'a.py',
    runs: '. : --quiet --stdin-filename WORK/a.py -',
  },
  {
    program: 'clang-format',
    given: { 'native/.clang-format': 'BasedOnStyle: LLVM\n' },
    file: 'native/src/a.cpp',
    runs: 'native : --assume-filename=WORK/native/src/a.cpp --style=file --fallback-style=none',
  },
];

for (const { program, given, file, runs } of ways) {
  test(`${program} is known by ${Object.keys(given).join(', ')} and formats ${file}`, async (t) => {
    const place = await makePlace(t);
    for (const [name, text] of Object.entries(given)) await place.write(name, text);
    await mkdir(path.dirname(place.path(file)), { recursive: true });
    const log = path.join(place.root, 'log');
    const searchPath = installProgram(place, program, `echo "$PWD : $*" >> "${log}"; ${FORMATS}`);
    await makeFormatting(place, { searchPath }).batch({ edit: file, text: 'rough\n' });
    assert.equal(await place.read(file), 'smooth\n');
    const [first = ''] = readFileSync(log, 'utf8').split('\n');
    const folder = path.relative(place.workspace, first.split(' : ')[0] ?? '') || '.';
    const words = (first.split(' : ')[1] ?? '').replaceAll(place.workspace, 'WORK');
    assert.equal(`${folder} : ${words}`.trim(), runs);
  });
}

for (const [title, given] of [
  [
    'Ruff that is set up for its lints alone',
    { 'pyproject.toml': '[tool.ruff]\nline-length = 100\n' },
  ],
  [
    'Black that is told to leave files out',
    { 'pyproject.toml': '[tool.black]\nextend-exclude = "made"\n[tool.x]\n' },
  ],
] as const) {
  test(`${title} says nothing of new files, but of those that were formatted`, async (t) => {
    const place = await makePlace(t);
    for (const [name, text] of Object.entries(given)) await place.write(name, text);
    await place.write('old.py', 'good\n');
    installProgram(place, 'ruff', FORMATS);
    const searchPath = installProgram(place, 'black', FORMATS);
    const formatting = makeFormatting(place, { searchPath });
    await formatting.batch(
      { edit: 'old.py', text: 'rough\n' },
      { edit: 'new.py', text: 'rough\n' },
    );
    assert.deepEqual(
      [await place.read('old.py'), await place.read('new.py')],
      ['smooth\n', 'rough\n'],
    );
  });
}

for (const [title, formatter, given] of [
  [
    'beside Biome that is turned off',
    'prettier',
    {
      'biome.jsonc': '{ // see https://biomejs.dev\n"formatter": { "enabled": false, },\n}',
      'package.json': JSON.stringify({
        prettier: {},
        devDependencies: { '@biomejs/biome': '2' },
        scripts: { lint: 'biome lint' },
      }),
    },
  ],
  [
    'with Biome that is turned off for another language',
    'biome',
    { 'biome.json': '{"json":{"formatter":{"enabled":false}}}' },
  ],
] as const)
  test(`a new file is formatted ${title}`, async (t) => {
    const place = await makePlace(t);
    for (const [name, text] of Object.entries(given)) await place.write(name, text);
    installProgram(place, 'biome', 'cat');
    installProgram(place, 'prettier', 'cat');
    const searchPath = installProgram(place, formatter, FORMATS);
    await makeFormatting(place, { searchPath }).batch({ edit: 'a.ts', text: 'rough\n' });
    assert.equal(await place.read('a.ts'), 'smooth\n');
  });

test('one that fails leaves the file to the next one', async (t) => {
  const place = await makePlace(t);
  for (const name of ['biome.json', '.prettierrc']) await place.write(name, '{}');
  await place.write('a.ts', 'good\n');
  installProgram(place, 'prettier', FORMATS);
  const searchPath = installProgram(place, 'biome', 'exec /there/is/no/such/program');
  const report = await makeFormatting(place, { searchPath }).batch({
    edit: 'a.ts',
    text: 'rough\n',
  });
  assert.match(report.warning, /Biome is not used any more/);
  assert.equal(await place.read('a.ts'), 'smooth\n');
});

test("a project's own program comes before the one on the PATH, the nearest first", async (t) => {
  const place = await makePlace(t);
  await place.write('.prettierrc', '{}\n');
  await place.write('pyproject.toml', '[tool.black]\n');
  const searchPath = installProgram(place, 'prettier', 'sed s/rough/path/');
  installProgram(place, 'black', 'sed s/rough/path/');
  installProgram(place, 'black', 'sed s/rough/own/', 'work/.venv/bin');
  installProgram(place, 'prettier', 'sed s/rough/top/', 'work/node_modules/.bin');
  installProgram(place, 'prettier', 'sed s/rough/near/', 'work/packages/p/node_modules/.bin');
  const names = ['a.ts', 'packages/p/src/a.ts', 'a.py'];
  const deeds = names.map((edit) => ({ edit, text: 'rough\n' }));
  await makeFormatting(place, { searchPath }).batch(...deeds);
  assert.deepEqual(await Promise.all(names.map(place.read)), ['top\n', 'near\n', 'own\n']);
});
