import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import { type Environment, program, submit, TRIED } from './asking.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, readRecords } from './pawl.js';

/** Inputs of `pawl ask`: many of them, in folders, with odd names and odd texts. */

const write = (workspace: string, files: Readonly<Record<string, string | Buffer>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), text);
  }
};

const wanted: Readonly<Record<Environment, string>> = {
  javascript: 'Object.keys(names).filter((name) => names[name].includes("needle")).join()',
  quickjs: 'Object.keys(names).filter((name) => names[name].includes("needle")).join()',
  python: '",".join(name for name, text in names.items() if "needle" in text)',
};

for (const environment of TRIED) {
  test(`${environment}: of 400 files the model is shown some, told how to see all, and can name those that fit`, async (context) => {
    const place = makePlace(context);
    const files = Array.from({ length: 400 }, (_, index) => {
      const name = `part ${index % 4}/same-name-${Math.floor(index / 4)}.txt`;
      return [name, index % 100 === 99 ? 'a needle' : 'straw'] as const;
    });
    write(place.workspace, Object.fromEntries(files));
    const script: Script = {
      replies: [
        {
          expect: {
            last: {
              contains: [
                'list of 400 inputs',
                'more inputs',
                '`names`',
                '"part 0/same-name-0.txt"',
              ],
            },
          },
          text: submit(environment, wanted[environment]),
        },
      ],
    };
    write(place.workspace, { 'script.json': JSON.stringify(script) });
    const names = files.map(([name]) => name);
    const words = ['ask', '--context', ...names, '--model', 'scripted/script.json'];
    const ended = await runInProcess(place, [
      ...words,
      '--environment',
      environment,
      'which files hold it?',
    ]);
    expectCode(ended, 0);
    const found = [24, 49, 74, 99].map((number) => `part 3/same-name-${number}.txt`);
    assert.equal(ended.stdout, `${found.join()}\n`);
  });
}

test('names are paths from here, or whole paths of files elsewhere; NUL bytes are text, other bytes are not', async (context) => {
  const place = makePlace(context);
  const outside = join(place.folder, 'outside.txt');
  write(place.workspace, {
    'a.txt': 'A',
    'deep/a.txt': 'B\0B',
    'line\nbreak.txt': '',
    'bytes.bin': Buffer.from([0x61, 0xff, 0xfe]),
    'script.json': JSON.stringify({
      replies: [
        {
          text: program(
            'const lengths = Object.entries(names).map(([name, text]) => [name, text.length]);',
          ),
        },
        { text: submit('javascript', 'JSON.stringify(lengths)') },
      ],
    } satisfies Script),
  });
  writeFileSync(outside, 'C');
  const ask = ['ask', '--model', 'scripted/script.json', '--context'];
  const files = ['./a.txt', 'deep/a.txt', 'line\nbreak.txt', '../outside.txt'];
  const ended = await runInProcess(place, [...ask, ...files, '-', 'how long?'], 'from stdin');
  expectCode(ended, 0);
  assert.deepEqual(JSON.parse(ended.stdout), [
    ['a.txt', 1],
    ['deep/a.txt', 3],
    ['line\nbreak.txt', 0],
    [outside, 1],
    ['stdin', 10],
  ]);
  const json = await runInProcess(place, ['ask', '--continue', '--json']);
  const run = readRecords(json.stdout).find((record) => record.type === 'run');
  assert.deepEqual(run?.inputs.map(({ name }) => name).at(-1), 'stdin');
  const binary = await runInProcess(place, [...ask, 'bytes.bin', 'what?']);
  expectCode(binary, 65);
  assert.match(binary.stderr, /bytes\.bin is not text in UTF-8/);
});
