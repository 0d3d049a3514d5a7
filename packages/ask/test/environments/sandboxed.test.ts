import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows, countCases } from '../../../../test/tier.js';
import { python } from '../../src/environments/python.js';
import { startSandboxedRepl } from '../../src/environments/sandboxed-repl.js';
import type { CellReport } from '../../src/run/cell-types.js';
import { runCell, withEnvironment } from './conformance.js';
import { nodeOrder } from './sandboxed.js';

/** Python behind bubblewrap, beside conformance. */

type Row = {
  readonly title: string;
  readonly code: string;
  readonly deadlineMs?: number;
  readonly then?: (report: CellReport) => void;
};

const MEGABYTE = 1024 * 1024;
const ROUNDS = countCases(100);
const forged = (json: string): string =>
  `import os\nos.write(3, ${JSON.stringify(`${json}\n`)}.encode())\nwhile True: pass`;

/** Code that ends its own process, or makes us end it: reported, and a fresh one stands ready. */
const deadly: readonly Row[] = [
  { title: 'what is no line of ours', code: forged('garbage') },
  { title: 'JSON that is no order', code: forged('{"type":"finished"}') },
  { title: 'bytes that are no text', code: forged('\u0001\u0002') },
  {
    title: 'a report of another cell',
    code: forged(
      '{"type":"finished","number":99,"status":"ok","stdout":"","stderr":"","variables":[],"answer":"forged"}',
    ),
  },
  {
    title: 'a call out of turn',
    code: forged('{"type":"subcall","number":2,"ordinal":7,"kind":"llm","prompts":["x"]}'),
  },
  { title: 'a value that nobody wants', code: forged('{"type":"value","text":"x"}') },
  { title: 'that it is ready, once more', code: forged('{"type":"ready"}') },
].map((row) => ({ ...row, title: `writes to the channel ${row.title}` }));

const deadlier: readonly Row[] = [
  {
    title: 'writes to the channel without end',
    code: 'import os\nzeros = b"x" * 1000000\nwhile True: os.write(3, zeros)',
  },
  {
    title: 'says more than it may of what it printed',
    code: 'import os\nline = b\'{"type":"printed","stream":"stdout","text":"\' + b"x" * 500 + b\'"}\\n\'\nwhile True: os.write(3, line)',
  },
  {
    title: 'closes the channel',
    code: 'import os\nos.close(3)',
  },
  {
    title: 'ends its process after it has printed something',
    code: 'import os\nprint("begun")\nos._exit(3)',
    then: ({ stdout, stderr }) => {
      assert.equal(stdout, 'begun\n');
      assert.match(stderr, /the code ended it \(exit code 3\)/);
    },
  },
  {
    title: 'ends its process after it has printed much',
    code: 'import os\nfor i in range(99): print("x" * 100)\nos._exit(3)',
    then: ({ stdout }) =>
      assert.match(stdout, /^[x\n]{1000}\n… what was printed after this is lost …\n$/),
  },
  {
    title: 'crashes',
    code: 'import ctypes\nctypes.string_at(0)',
    then: ({ stderr }) => assert.match(stderr, /it crashed/),
  },
];

const harmless: readonly Row[] = [
  {
    title: 'closes or overwrites its streams',
    code: 'import os, sys\nos.close(1)\nos.close(2)\nsys.stdout = sys.stderr = None',
    then: ({ status }) => assert.notEqual(status, 'died'),
  },
  {
    title: 'starts processes without end',
    code: 'import os\nfor i in range(1000):\n    try:\n        os.fork()\n    except PermissionError:\n        continue\n    raise Exception("a process was started")',
    then: ({ status, stderr }) => assert.equal(status, 'ok', stderr),
  },
  {
    title: 'asks models in a prompt that is too long for any',
    code: 'llm_query("x" * 10000001)',
    then: ({ status, stderr }) => {
      assert.equal(status, 'raised');
      assert.match(stderr, /10000000 characters of prompts at most, these have 10000001/);
    },
  },
  {
    title: 'answers at a length that nobody reads',
    code: 'answer["content"] = "x" * 10000001\nanswer["ready"] = True',
    then: ({ answer, stderr }) => {
      assert.equal(answer, null);
      assert.match(stderr, /Note: the answer is .*long/);
    },
  },
  {
    title: 'holds back a handler of its own for the interrupt',
    deadlineMs: 2_000,
    code: 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint("mine")',
    then: ({ status }) =>
      assert.ok(status === 'stopped' || status === 'ok' || status === 'died', status),
  },
];

const OPTIONS = { outputMax: 2_000, memoryMax: 512 * MEGABYTE };

const testRows = (): void => {
  const rowsOf = (rows: readonly Row[]): readonly Row[] => chooseRows(rows, undefined, 4);
  for (const row of [...rowsOf(deadly), ...rowsOf(deadlier)]) {
    it(`code that ${row.title} ends its process; the next cell runs in a fresh one`, () =>
      withEnvironment(
        python,
        ['context'],
        async (environment) => {
          await runCell(environment, 'kept = 1');
          const report = await runCell(environment, row.code, { deadlineMs: 10_000 });
          assert.deepEqual(
            [report.status, report.variablesLost, report.answer],
            ['died', 'yes', null],
          );
          row.then?.(report);
          const next = await runCell(environment, 'print(context, llm_query("a"))');
          assert.equal(next.stdout, 'context llm: a\n', next.stderr);
          assert.deepEqual(next.variables, []);
        },
        OPTIONS,
      ));
  }
  for (const row of rowsOf(harmless)) {
    it(`code that ${row.title} harms nobody`, () =>
      withEnvironment(
        python,
        ['context'],
        async (environment) => {
          const { deadlineMs = 60_000 } = row;
          row.then?.(await runCell(environment, row.code, { deadlineMs }));
          const next = await runCell(environment, 'print(context, llm_query("a"))');
          assert.equal(next.stdout, 'context llm: a\n', next.stderr);
        },
        OPTIONS,
      ));
  }
};

const testLimits = (): void => {
  it('a report that the code forges is its own affair: the environment goes on', () =>
    withEnvironment(python, ['context'], async (environment) => {
      const line =
        '{"type":"finished","number":1,"status":"ok","stdout":"forged","stderr":"","variables":[],"answer":"forged"}';
      const report = await runCell(environment, forged(line));
      assert.equal(report.stdout, 'forged');
      for (let tries = 0; ; tries += 1) {
        const next = await runCell(environment, 'print(context)', { deadlineMs: 1_000 });
        if (next.stdout === 'context\n') break;
        assert.ok(tries < 2, next.stderr);
      }
    }));

  it('100 MB of output are cut, and the next cell has all of it', () =>
    withEnvironment(
      python,
      [],
      async (environment) => {
        const line = 'x'.repeat(99);
        const first = `for i in range(1000000): print("${line}")`;
        const { status, stdout, stderr } = await runCell(environment, first, {
          deadlineMs: 240_000,
        });
        assert.equal(status, 'ok', stderr);
        assert.match(
          stdout,
          /… 99,998,000 characters left out; the next cell has all of it in last_output …/,
        );
        const length = 'print(len(last_output))';
        assert.equal(
          (await runCell(environment, length, { deadlineMs: 60_000 })).stdout,
          '100000000\n',
        );
      },
      OPTIONS,
    ));

  it('output that is too large keeps its beginning and end, and says so', () =>
    withEnvironment(
      python,
      [],
      async (environment) => {
        const many = 'for i in range(300000): print("x" * 95, i)';
        const { status, stdout } = await runCell(environment, many, { deadlineMs: 120_000 });
        assert.equal(status, 'ok');
        assert.match(stdout, /x 299999\n$/);
        const look =
          'print(len(last_output) < 20000000, "characters were not kept" in last_output, last_output[-7:])';
        assert.match((await runCell(environment, look)).stdout, /^true true 299999\n\n$/i);
      },
      { outputMax: 2_000, memoryMax: 64 * MEGABYTE },
    ));

  it('threads of the code stand still between cells, and what they print then goes nowhere', () =>
    withEnvironment(python, [], async (environment) => {
      const start = `import threading, time
stamps = []
def note():
    while True:
        stamps.append(time.monotonic())
        print("from the thread")
        time.sleep(0.005)
threading.Thread(target=note, daemon=True).start()
while len(stamps) < 3: time.sleep(0.001)`;
      const begun = await runCell(environment, start);
      assert.equal(begun.status, 'ok', begun.stderr);
      await new Promise((resolve) => setTimeout(resolve, 500));
      // one write: the thread prints at any moment
      const look =
        'seen = len(stamps)\nwhile len(stamps) <= seen: time.sleep(0.005)\nprint(f"gap {max(b - a for a, b in zip(stamps, stamps[1:])) > 0.45}")';
      const { status, stdout } = await runCell(environment, look);
      assert.equal(status, 'ok');
      assert.match(stdout, /gap true/i);
    }));

  it('a cell that is stopped at any moment, in its code or in a call, is stopped, keeps what is bound, and disturbs no later one', () =>
    withEnvironment(python, [], async (environment) => {
      await runCell(environment, 'kept = "kept"');
      const endless = (tag: string) =>
        `i = 0\nwhile True:\n    i += 1\n    if llm_query(f"${tag} {i}" + "x" * (i * 500)) != f"llm: ${tag} {i}" + "x" * (i * 500): raise Exception("wrong text")`;
      const loop = 'while True: pass';
      for (let round = 0; round < ROUNDS; round += 1) {
        const stopping = new AbortController();
        const timer = setTimeout(() => stopping.abort(), (round * 7) % 11);
        const code = round % 2 === 0 ? endless(`round ${round}`) : loop;
        const report = await runCell(environment, code, { signal: stopping.signal });
        clearTimeout(timer);
        assert.equal(report.status, 'stopped', `round ${round}: ${report.stderr}`);
        assert.ok(report.variables.some(({ name: bound }) => bound === 'kept'));
      }
      assert.equal(
        (await runCell(environment, 'print(kept, llm_query("a"))')).stdout,
        'kept llm: a\n',
      );
    }));

  it('an input that may not be read is said when it is started', async (t) => {
    const folder = temporaryFolder(t, 'unreadable');
    const file = path.join(folder, 'context.txt');
    writeFileSync(file, 'text');
    chmodSync(file, 0);
    await assert.rejects(
      python.start({ contexts: [file], names: ['file'], ...OPTIONS }),
      /^Error: input 1 can not be read: .*\/context\/0/,
    );
    await assert.rejects(
      python.start({ contexts: [folder], names: ['folder'], ...OPTIONS }),
      /is not a file/,
    );
  });

  it('an input that is not UTF-8 is told of', () =>
    withEnvironment(python, [Buffer.from([0x61, 0xff])], async (environment) => {
      const { stderr } = await runCell(environment, 'print(context)');
      assert.equal(stderr, 'Note: input 1 is not UTF-8: the bytes that are not were replaced.\n');
      assert.equal((await runCell(environment, 'print(context)')).stderr, '');
    }));
};

describe('python behind bubblewrap', () => {
  testRows();
  testLimits();

  it('says where there is no bubblewrap, when it is asked and when it is started', async (t) => {
    const before = process.env.PATH;
    t.after(() => {
      process.env.PATH = before;
    });
    await python.probe();
    process.env.PATH = '/nowhere';
    assert.match(
      (await python.probe()) ?? 'it works',
      /not installed\. pawl doctor says what to do/,
    );
    await assert.rejects(python.start({ contexts: [], names: [], ...OPTIONS }), /not installed/);
  });
});

describe('a program that does not become ready', () => {
  const inputs = { type: 'inputs', contexts: [], names: [] } as const;
  for (const [title, code, says] of [
    [
      'is killed',
      "require('fs').writeSync(3, 'x\\n'); for (;;);",
      /start: its channel was written/,
    ],
    ['ends', 'process.exit(9)', /does not start behind bubblewrap: it ended with code 9\. Try/],
  ] as const)
    it(`says why it ${title}`, async () => {
      const program = await nodeOrder(code);
      await assert.rejects(startSandboxedRepl(program, inputs, { memoryMax: MEGABYTE }), says);
    });
});
