import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { until } from '../../../../test/until.js';
import {
  type Environment,
  prepareAsk,
  program,
  runAsk,
  startAsk,
  submit,
  TRIED,
} from './asking.js';
import { runInProcess } from './in-process.js';
import { bin, expectCode, makePlace, readRecords, sessionOf, start, startPawl } from './pawl.js';

/** How runs of `pawl ask` end: at limits, by refusal, and where an environment is missing. */

const answering = (text: string): Script => ({ replies: [{ text: submit('quickjs', text) }] });

const limited: readonly (readonly [string, readonly string[], Script, number, string, RegExp])[] = [
  [
    'no money is left',
    ['--max-usd', '0.5'],
    {
      replies: [{ text: program('1'), usage: { inputTokens: 1_000_000 } }],
      facts: { prices: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 } },
    },
    125,
    '',
    /the budget is used up \(dollars\)/,
  ],
  [
    'no tokens are left',
    ['--max-tokens', '5000'],
    { replies: [{ text: program('1'), usage: { inputTokens: 5_000 } }] },
    125,
    '',
    /the budget is used up \(tokens\)/,
  ],
  [
    'iterations are used up, and the model only has words',
    ['--max-iterations', '2'],
    {
      replies: [
        { text: program('print(1)') },
        { text: program('print(2)') },
        { expect: { last: { contains: 'Give the final answer now' } }, text: 'About three.' },
      ],
    },
    126,
    'About three.\n',
    /submitted no answer/,
  ],
  [
    'iterations are used up, and the model submits what it has',
    ['--max-iterations', '1'],
    { replies: [{ text: program('print(1)') }, { text: submit('quickjs', '"three"') }] },
    0,
    'three\n',
    /^$/,
  ],
  [
    'money has a limit and the model no known price',
    ['--max-usd', '1'],
    { replies: [], facts: { prices: null } },
    78,
    '',
    /the price of scripted\S+ is not known\. Set a limit in tokens/,
  ],
  [
    'the model refuses',
    [],
    { replies: [{ fail: { kind: 'refused', message: 'I will not' } }] },
    1,
    '',
    /refused|I will not/,
  ],
];

for (const [what, flags, script, code, stdout, message] of limited) {
  test(`where ${what}, the run ends with ${code}`, async (context) => {
    const place = makePlace(context);
    const ended = await runAsk(place, prepareAsk(place, script), ...flags);
    expectCode(ended, code);
    assert.equal(ended.stdout, stdout);
    assert.match(ended.stderr, message);
  });
}

// ---- Pieces ----

/** Forty pieces asked about in one batch; the model's prices make the worst case of a call dearer than what is left. */
const fortyPieces: Script = {
  replies: [
    {
      text: program(
        'const pieces = Array.from({ length: 40 }, (_, index) => "piece " + (index + 1));',
        'const texts = llm_query_batched(pieces);',
      ),
    },
    { text: submit('quickjs', 'texts.filter((text) => text.startsWith("read")).length') },
  ],
  rules: [{ when: '^piece (\\d+)', text: 'read $1', usage: { inputTokens: 60, outputTokens: 6 } }],
  facts: { prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
};

const resultOf = (stdout: string) => {
  const result = readRecords(stdout).at(-1);
  return result?.type === 'result' ? result : assert.fail('no result');
};

test('forty pieces that cost a cent together are all answered within twenty', async (context) => {
  const place = makePlace(context);
  const ended = await runAsk(place, prepareAsk(place, fortyPieces), '--max-usd', '0.20', '--json');
  expectCode(ended, 0);
  const { text, ok, pieces, costUsd } = resultOf(ended.stdout);
  assert.deepEqual(
    [text, ok, pieces],
    ['40', true, { asked: 40, answered: 40, refused: 0, failed: 0, reasons: [] }],
  );
  assert.ok(costUsd !== null && costUsd < 0.02, `${costUsd}`);
});

test('pieces that no money is left for are in the result, on stderr and in the exit code', async (context) => {
  const place = makePlace(context);
  const dear: Script = {
    ...fortyPieces,
    rules: [{ when: '^piece (\\d+)', text: 'read $1', usage: { inputTokens: 20_000 } }],
  };
  const words = prepareAsk(place, dear);
  const ended = await runAsk(place, words, '--max-usd', '0.20', '--json');
  expectCode(ended, 125);
  const { text, ok, reason, pieces, costUsd } = resultOf(ended.stdout);
  assert.deepEqual([text, ok, reason], ['2', false, 'piecesRefused']);
  assert.deepEqual([pieces?.asked, pieces?.answered, pieces?.refused], [40, 2, 38]);
  assert.ok(costUsd !== null && costUsd <= 0.2, `${costUsd}`);
  const told = await runAsk(place, words, '--max-usd', '0.20');
  expectCode(told, 125);
  assert.equal(told.stdout, '2\n');
  assert.match(told.stderr, /the answer lacks 38 pieces .*38 × the budget is used up \(dollars\)/);
});

test('pieces that failed are told, too, unless a program has asked again and got an answer', async (context) => {
  const place = makePlace(context);
  const script: Script = {
    replies: [
      { text: program('llm_query("no rule for this")') },
      { text: submit('quickjs', '"so"') },
    ],
    rules: [{ when: '^no rule', fail: { kind: 'badRequest', message: 'no' } }],
  };
  const ended = await runAsk(place, prepareAsk(place, script), '--json');
  expectCode(ended, 1);
  assert.deepEqual(
    [resultOf(ended.stdout).reason, resultOf(ended.stdout).pieces?.failed],
    ['piecesFailed', 1],
  );
});

test('a run that met its limit goes on with a higher one, and nothing that was answered is paid for again', async (context) => {
  const place = makePlace(context);
  const script: Script = {
    replies: [
      { text: program('const one = llm_query("piece 1");'), usage: { inputTokens: 10_000 } },
      { text: program('print(one)'), usage: { inputTokens: 10_000 } },
      { text: submit('quickjs', 'one + "!"'), usage: { inputTokens: 10_000 } },
    ],
    rules: [{ when: '^piece (\\d+)', text: 'read $1', usage: { inputTokens: 10_000 } }],
    facts: { prices: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 } },
  };
  const words = prepareAsk(place, script);
  expectCode(await runAsk(place, words, '--max-usd', '0.03'), 125);
  expectCode(await runInProcess(place, ['ask', '--continue']), 125);
  const onward = await runInProcess(place, ['ask', '--continue', '--max-usd', '0.1', '--json']);
  expectCode(onward, 0);
  assert.deepEqual(
    [resultOf(onward.stdout).text, resultOf(onward.stdout).costUsd],
    ['read 1!', 0.04],
  );
  expectCode(await runInProcess(place, ['replay', sessionOf(place)]), 0);
});

test('SIGTERM while stdin is read ends the command, and no run is made', async (context) => {
  const place = makePlace(context);
  const [ask = '', flag = '', ...others] = prepareAsk(place, answering('"x"'));
  const words = [ask, flag, '-', ...others, '--json', 'what?'];
  const running = startPawl(place, words, null);
  // written once it is read: no pipe holds so much
  await new Promise((resolve) => running.child.stdin?.write(Buffer.alloc(4_000_000, 'x'), resolve));
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  expectCode(ended, 143);
  assert.deepEqual([resultOf(ended.stdout).reason, ended.stderr], ['terminated', '']);
  expectCode(await runInProcess(place, ['ask', '--continue']), 65);
});

test('the environment javascript of a flag and a setting is QuickJS', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, answering('context + "!"'));
  const set = {
    ...place,
    environment: { ...place.environment, PAWL_ASK_ENVIRONMENT: 'javascript' },
  };
  for (const ended of [
    await runAsk(place, words, '--environment', 'javascript'),
    await runAsk(set, words),
  ]) {
    expectCode(ended, 0);
    assert.equal(ended.stdout, 'abc!\n');
  }
});

test('without python3 nothing else takes its place', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, answering('1'));
  const hidden = 'mount --bind /dev/null /usr/bin/python3 && PATH=/nowhere exec "$@"';
  const line = [process.execPath, bin, ...words, '--environment', 'python', 'what?'];
  const unshare = ['--user', '--map-root-user', '--mount', 'sh', '-c', hidden, 'sh', ...line];
  const ended = await start(place, 'unshare', unshare).ended;
  expectCode(ended, 78);
  assert.match(ended.stderr, /python/);
});

/** Programs that would do harm: each hurts nothing, the model is told of it, and the run goes on to its answer. */

const SECRET = 'nobody-is-to-read-this';

type Harms = Readonly<Record<'endless' | 'greedy' | 'file' | 'socket' | 'exit', string>>;

const inQuickjs = (file: string, port: number): Harms => ({
  endless: 'for (;;) {}',
  greedy: 'hoard = []; for (;;) hoard.push("x".repeat(1000) + hoard.length);',
  file: `print(require("node:fs").readFileSync(${JSON.stringify(file)}, "utf8"));`,
  socket: `await new Promise((resolve, reject) => require("node:net").connect(${port}, "127.0.0.1", resolve).on("error", reject));`,
  exit: 'process.exit(0);',
});

const harmsOf: Readonly<Record<Environment, (file: string, port: number) => Harms>> = {
  quickjs: inQuickjs,
  python: (file, port) => ({
    endless: 'while True: pass',
    greedy: 'hoard = []\nwhile True: hoard.append("x" * 1000 + str(len(hoard)))',
    file: `print(open(${JSON.stringify(file)}).read())`,
    socket: `import socket\nsocket.create_connection(("127.0.0.1", ${port}), 5)`,
    exit: 'import os\nos._exit(0)',
  }),
};

/** What the model must read after each; variables outlive what is only stopped. */
const scriptOf = (environment: Environment, harms: Harms): Script => {
  const told = (matches: string) => ({ expect: { last: { matches, lacks: SECRET } } });
  const keep = program(environment === 'python' ? 'kept = 42' : 'kept = 42;');
  const show = program('print("kept is", kept)');
  return {
    replies: [
      { text: keep },
      { text: program(harms.endless) },
      { ...told('stopped before its end'), text: show },
      { ...told('kept is 42'), text: program(harms.file) },
      { ...told('Errors:'), text: program(harms.socket) },
      { ...told('Errors:'), text: show },
      { ...told('kept is 42'), text: program(harms.exit) },
      { ...told('Errors:'), text: program('print("still here")') },
      { ...told('still here'), text: program(harms.greedy) },
      // on a slow machine its time is up before its memory is
      {
        ...told('Errors:|stopped before its end'),
        text: program('print("here again", context)'),
      },
      { ...told('here again abc'), text: submit(environment, '"unharmed"') },
    ],
  };
};

for (const environment of TRIED) {
  test(`${environment}: programs that loop, hoard, read files, connect or exit hurt nothing and are reported`, async (context) => {
    const place = makePlace(context, { PAWL_CELL_MS: '4000' });
    const secret = join(place.workspace, 'secret.txt');
    writeFileSync(secret, SECRET);
    let connections = 0;
    const server = createServer(() => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    context.after(() => server.close());
    const address = server.address();
    assert.ok(typeof address === 'object' && address !== null);
    const script = scriptOf(environment, harmsOf[environment](secret, address.port));
    const running = startAsk(
      place,
      prepareAsk(place, script),
      '--environment',
      environment,
      '--json',
    );
    const ended = await running.ended;
    expectCode(ended, 0);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result');
    assert.equal(result.text, 'unharmed');
    assert.equal(connections, 0);
    assert.ok(!ended.stdout.includes(SECRET));
    await until('the end of all processes', () => processesWith(place.workspace).length === 0);
  });
}
