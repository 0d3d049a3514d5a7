import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import { type Environment, prepareAsk, program, runAsk, submit, TRIED } from './asking.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, readRecords, sessionOf } from './pawl.js';

/** `pawl ask` from outside: large inputs, every environment, the command line, the streams, the codes. */

const LINES = 877_194;
const NEEDLES = [77_777, 500_000, 800_001];

/** 50 MB, made once; three lines of it hold what is asked for. */
const HAYSTACK = Array.from({ length: LINES }, (_, index) => {
  const number = String(index).padStart(8, '0');
  const word = NEEDLES.includes(index) ? `needle-${index % 1_000}` : 'straw';
  return `the quick brown fox jumps over the lazy dog ${number} ${word}`.padEnd(56).concat('\n');
}).join('');

/** An expression takes QuickJS seconds for so much text. */
const COLLECT = [
  'const found = [];',
  'for (let at = context.indexOf("needle"); at >= 0; at = context.indexOf("needle", at + 1))',
  '  found.push(context.slice(at - 9, context.indexOf("\\n", at)).trim());',
];

/** Programs that really look for it, and sub-models that really read what is found. */
const searching = (environment: Environment, characters: number): Script => {
  const [look, search] =
    environment === 'python'
      ? [
          program('print(len(context), context[:44])'),
          program(
            'import re',
            'found = re.findall(r"\\d{8} needle-\\d+", context)',
            'read = llm_query_batched([f"What follows the number? {one}" for one in found])',
            'print(len(found), read)',
          ),
        ]
      : [
          program('print(context.length, context.slice(0, 44))'),
          program(
            ...(environment === 'quickjs'
              ? COLLECT
              : ['const found = context.match(/\\d{8} needle-\\d+/g);']),
            'const read = llm_query_batched(found.map((one) => "What follows the number? " + one));',
            'print(found.length, read);',
          ),
        ];
  return {
    replies: [
      { text: look },
      {
        expect: {
          messages: 3,
          last: { contains: [`${characters}`, 'the lazy dog'], lacks: 'needle' },
        },
        text: search,
      },
      {
        expect: { last: { contains: 'needle-777' } },
        text: submit(environment, environment === 'python' ? '", ".join(read)' : 'read.join(", ")'),
      },
    ],
    rules: [{ when: '^What follows the number\\? \\d+ (needle-\\d+)$', text: '$1' }],
  };
};

for (const environment of TRIED) {
  test(`${environment}: a question about 50 MB is answered, and no model sees more than a little of it`, async (context) => {
    const place = makePlace(context);
    const words = prepareAsk(place, searching(environment, HAYSTACK.length), {
      'big.txt': HAYSTACK,
    });
    const ended = await runAsk(place, words, '--environment', environment, '--json');
    expectCode(ended, 0);
    const records = readRecords(ended.stdout);
    const result = records.at(-1);
    assert.ok(result?.type === 'result');
    assert.equal(result.text, 'needle-777, needle-0, needle-1');
    const run = records.find((record) => record.type === 'run');
    assert.deepEqual(
      [run?.environment, run?.inputs[0]?.characters],
      [environment, HAYSTACK.length],
    );
    const journal = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
    assert.ok(statSync(journal).size < 50_000, `${statSync(journal).size} bytes`);
    const replayed = await runInProcess(place, ['replay', sessionOf(place)]);
    expectCode(replayed, 0);
    assert.match(replayed.stderr, /ends in Ended\.\n1 recorded state hash compared: equal/);
  });
}

const answering = (text: string): Script => ({ replies: [{ text: submit('quickjs', text) }] });

test('the answer is all that stdout holds; progress goes to stderr, and only to one who watches', async (context) => {
  const place = makePlace(context);
  const script: Script = {
    replies: [
      {
        text: program(
          'const all = llm_query_batched(["leaf 1", "leaf 2"]);',
          'throw new Error("on purpose");',
        ),
      },
      { text: submit('quickjs', 'all.join()') },
    ],
    rules: [{ when: '^leaf (\\d)', text: '<$1>', usage: { inputTokens: 1_500 } }],
    facts: { prices: { input: 100, output: 0, cacheRead: 0, cacheWrite: 0 } },
  };
  const words = prepareAsk(place, script);
  const quiet = await runAsk(place, words);
  expectCode(quiet, 0);
  assert.deepEqual([quiet.stdout, quiet.stderr], ['<1>,<2>\n', '']);
  const told = await runAsk(place, words, '--verbose');
  assert.equal(told.stdout, '<1>,<2>\n');
  for (const line of [
    /^· programs run in quickjs$/m,
    /^▸ 1\/30 a program of 2 lines$/m,
    /^ {2}→ 2 calls of models$/m,
    /^ {2}← 2 answered · so far 3\.0k tokens · \$0\.30$/m,
    /^✗ failed · Error: on purpose/m,
    /^▸ 2\/30 a program of 2 lines$/m,
    /^✓ .*printed 0 characters$/m,
    /^run \S+ · 3\.0k tokens · \$0\.30$/m,
  ]) {
    assert.match(told.stderr, line);
  }
});

test('several inputs are a list in their order; stdin is one of them', async (context) => {
  const place = makePlace(context);
  const script: Script = {
    replies: [
      {
        expect: { last: { contains: ['list of 3 inputs', 'context[1]: stdin', 'b.json, JSON'] } },
        text: submit('quickjs', 'context.join("|")'),
      },
    ],
  };
  prepareAsk(place, script, { 'a.txt': 'A', 'b.json': 'B' });
  const words = [
    'ask',
    'q',
    '--model',
    'scripted/script.json',
    '--context',
    'a.txt',
    '-',
    'b.json',
  ];
  const ended = await runInProcess(place, words, 'from stdin');
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'A|from stdin|B\n');
  const again = await runInProcess(place, ['ask', '--continue']);
  expectCode(again, 0);
  assert.equal(again.stdout, ended.stdout);
  assert.match(again.stderr, /has already ended/);
});

const wrong: readonly (readonly [string, readonly string[], number, RegExp])[] = [
  ['no question', ['--context', 'input.txt'], 2, /There is no question/],
  [
    'a file in the place of the question',
    ['--context', 'input.txt', 'script.json'],
    2,
    /There is no question/,
  ],
  ['nothing to ask about', ['what?'], 2, /no files to ask about/],
  ['a file that is missing', ['--context', 'none.txt', 'what?'], 65, /There is no file none\.txt/],
  ['a folder', ['--context', 'folder', 'what?'], 65, /is a folder: name the files in it/],
  ['bytes that are no text', ['--context', 'bytes', 'what?'], 65, /not text in UTF-8/],
  ['stdin that is no text', ['--context', '-', 'what?'], 65, /stdin is not text/],
  ['stdin twice', ['--context', '-', '-', 'what?'], 2, /give - once/],
  [
    'an unknown environment',
    ['--context', 'input.txt', '--environment', 'perl', 'what?'],
    2,
    /needs one of quickjs, python, not 'perl'/,
  ],
  [
    'a depth of zero',
    ['--context', 'input.txt', '--max-depth', '0', 'what?'],
    2,
    /--max-depth needs/,
  ],
  ['nothing to go on with', ['--continue'], 65, /no run of pawl ask/],
  ['an unknown run', ['--resume', 'x'], 65, /No session 'x'/],
];

for (const [what, words, code, message] of wrong) {
  test(`${what} is said, and ends with ${code}`, async (context) => {
    const place = makePlace(context);
    prepareAsk(place, answering('1'));
    mkdirSync(join(place.workspace, 'folder'));
    writeFileSync(join(place.workspace, 'bytes'), Buffer.from([0x61, 0xff]));
    const ended = await runInProcess(
      place,
      ['ask', '--model', 'scripted/script.json', ...words],
      Buffer.from([0x61, 0xff]),
    );
    expectCode(ended, code);
    assert.match(ended.stderr, message);
    assert.equal(ended.stdout, '');
  });
}

test('with --json what is wrong is a result record, too', async (context) => {
  const place = makePlace(context);
  const ended = await runInProcess(place, ['ask', '--json', '--context', 'none.txt', 'what?']);
  expectCode(ended, 65);
  const [result, ...more] = readRecords(ended.stdout);
  assert.ok(result?.type === 'result' && result.sessionId === null && more.length === 0);
  assert.match(result.message, /There is no file/);
});

test('runs and sessions are listed together and kept apart', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, answering('"seen"'));
  writeFileSync(
    join(place.workspace, 'agent.json'),
    JSON.stringify({ replies: [{ text: 'Hello.' }] }),
  );
  const agent = ['--model', 'scripted/agent.json'];
  expectCode(await runInProcess(place, [...agent, '-p', 'hi']), 0);
  expectCode(await runAsk(place, words), 0);
  const listed = (await runInProcess(place, ['sessions', '--json'])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const [run, session] = listed;
  assert.deepEqual(
    listed.map(({ kind, title }) => [kind, title]),
    [
      ['ask', 'what is in it?'],
      ['agent', 'hi'],
    ],
  );
  assert.match((await runInProcess(place, ['sessions'])).stdout, /what is in it\? {2}\(pawl ask\)/);
  // each goes on with its own, though the run is the newer one
  const gone = await runInProcess(place, [...agent, '--continue', '-p', 'more']);
  assert.match(gone.stderr, /the script is at its end/);
  assert.equal((await runInProcess(place, ['ask', '--continue'])).stdout, 'seen\n');
  const crossed = [
    [['--resume', run.sessionId, '-p', 'x'], /is a run of code mode.*pawl ask --resume/],
    [['ask', '--resume', session.sessionId], /is a session of the agent's.*pawl --resume/],
    [['fork', run.sessionId, '--at', '1', 'x'], /takes no prompt/],
    [['show', run.sessionId, '--view', 'loom'], /--view is for sessions of the agent/],
  ] as const;
  for (const [line, message] of crossed) {
    const ended = await runInProcess(place, line);
    expectCode(ended, 2);
    assert.match(ended.stderr, message);
  }
});

test('show and replay tell a run, the request of a model is shown exactly', async (context) => {
  const place = makePlace(context);
  const script: Script = {
    replies: [
      { text: program('const leaf = llm_query("leaf 1");') },
      { text: submit('quickjs', 'leaf') },
    ],
    rules: [{ when: '^leaf (\\d)', text: '<$1>' }],
  };
  expectCode(await runAsk(place, prepareAsk(place, script)), 0);
  const id = sessionOf(place);
  const shown = await runInProcess(place, ['show', id]);
  const sub = 'n0.c1.1.1 · plain call · answered\nleaf 1\n→ <1>';
  for (const part of [
    'what is in it?',
    'llm_query("leaf 1")',
    'input.txt · 3 bytes',
    sub,
    'answer\n<1>',
  ]) {
    assert.ok(shown.stdout.includes(part), part);
  }
  const replayed = await runInProcess(place, ['replay', id]);
  assert.match(replayed.stdout, /^ +4 {2}SubcallAsked +n0\.c1\.1\.1 +INIT → SHALLOW_CALL/m);
  const line =
    (await runInProcess(place, ['replay', id, '--json'])).stdout.trimEnd().split('\n').at(-1) ?? '';
  assert.deepEqual(JSON.parse(line), {
    seq: 8,
    event: 'CellFinished',
    node: 'n0',
    path: ['EXECUTING', 'DONE'],
  });
  const request = JSON.parse(
    (await runInProcess(place, ['show', id, '--request', '--at', '4'])).stdout,
  );
  assert.equal(request.node, 'n0.c1.1.1');
  assert.equal(request.messages[0].parts[0].text, 'leaf 1');
  assert.match(request.instructions, /^A program asks you/);
});

test('show tells the reply with which a run below the root ends', async (context) => {
  const place = makePlace(context);
  const script: Script = {
    replies: [
      { text: program('const deep = rlm_query("deep");') },
      { text: submit('quickjs', 'deep') },
    ],
    rules: [{ when: '^deep', text: submit('quickjs', '"seen"') }],
  };
  expectCode(await runAsk(place, prepareAsk(place, script), '--max-depth', '2'), 0);
  const { stdout } = await runInProcess(place, ['show', sessionOf(place)]);
  const run = stdout.slice(stdout.indexOf('n0.c1.1.1 · run · answered\ndeep\n'));
  assert.equal(run.match(/answer\.content = "seen";[^→]*→ seen\n/g)?.length, 1, stdout);
});

test('a journal that was edited does not replay', async (context) => {
  const place = makePlace(context);
  expectCode(await runAsk(place, prepareAsk(place, answering('"x"'))), 0);
  const id = sessionOf(place);
  const file = join(place.state, 'pawl', 'sessions', `${id}.jsonl`);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('"status":"ok"', '"status":"no"'));
  expectCode(await runInProcess(place, ['replay', id]), 65);
  expectCode(await runInProcess(place, ['ask', '--continue']), 65);
});

/** Inputs of `pawl ask`: many of them, in folders, with odd names and odd texts. */

const write = (workspace: string, files: Readonly<Record<string, string | Buffer>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), text);
  }
};

const wanted: Readonly<Record<Environment, string>> = {
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
        { text: submit('quickjs', 'JSON.stringify(lengths)') },
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
