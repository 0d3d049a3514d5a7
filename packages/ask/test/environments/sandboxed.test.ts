import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows, countCases } from '../../../../test/tier.js';
import { python } from '../../src/environments/python.js';
import { javascript } from '../../src/environments/sandboxed-node.js';
import type { EnvironmentKind } from '../../src/ports.js';
import type { CellReport } from '../../src/run/cell-types.js';
import { runCell, withEnvironment } from './conformance.js';

/** What the two environments behind bubblewrap do alike, beside conformance. */

type Codes = { readonly javascript: string; readonly python: string };
type Row = Codes & {
  readonly title: string;
  readonly deadlineMs?: number;
  readonly then?: (report: CellReport) => void;
};

const MEGABYTE = 1024 * 1024;
const ROUNDS = countCases(100);
const FS = "process.getBuiltinModule('fs')";
const forged = (json: string): Codes => ({
  javascript: `${FS}.writeSync(3, ${JSON.stringify(`${json}\n`)}); for (;;);`,
  python: `import os\nos.write(3, ${JSON.stringify(`${json}\n`)}.encode())\nwhile True: pass`,
});

/** Code that ends its own process, or makes us end it: reported, and a fresh one stands ready. */
const deadly: readonly Row[] = [
  { title: 'what is no line of ours', ...forged('garbage') },
  { title: 'JSON that is no order', ...forged('{"type":"finished"}') },
  { title: 'bytes that are no text', ...forged('\u0001\u0002') },
  {
    title: 'a report of another cell',
    ...forged(
      '{"type":"finished","number":99,"status":"ok","stdout":"","stderr":"","variables":[],"answer":"forged"}',
    ),
  },
  {
    title: 'a call out of turn',
    ...forged('{"type":"subcall","number":2,"ordinal":7,"kind":"llm","prompts":["x"]}'),
  },
  { title: 'a value that nobody wants', ...forged('{"type":"value","text":"x"}') },
  { title: 'that it is ready, once more', ...forged('{"type":"ready"}') },
].map((row) => ({ ...row, title: `writes to the channel ${row.title}` }));

const deadlier: readonly Row[] = [
  {
    title: 'writes to the channel without end',
    javascript: `const zeros = Buffer.alloc(1e6, 'x'); for (;;) ${FS}.writeSync(3, zeros)`,
    python: 'import os\nzeros = b"x" * 1000000\nwhile True: os.write(3, zeros)',
  },
  {
    title: 'says more than it may of what it printed',
    javascript: `const line = JSON.stringify({ type: 'printed', stream: 'stdout', text: 'x'.repeat(500) }) + '\\n'; for (;;) ${FS}.writeSync(3, line)`,
    python:
      'import os\nline = b\'{"type":"printed","stream":"stdout","text":"\' + b"x" * 500 + b\'"}\\n\'\nwhile True: os.write(3, line)',
  },
  {
    title: 'closes the channel',
    javascript: `${FS}.closeSync(3)`,
    python: 'import os\nos.close(3)',
  },
  {
    title: 'ends its process after it has printed something',
    javascript: 'print("begun"); process.reallyExit(3)',
    python: 'import os\nprint("begun")\nos._exit(3)',
    then: ({ stdout, stderr }) => {
      assert.equal(stdout, 'begun\n');
      assert.match(stderr, /the code ended it \(exit code 3\)/);
    },
  },
  {
    title: 'ends its process after it has printed much',
    javascript: 'for (let i = 0; i < 99; i++) print("x".repeat(100)); process.reallyExit(3)',
    python: 'import os\nfor i in range(99): print("x" * 100)\nos._exit(3)',
    then: ({ stdout }) =>
      assert.match(stdout, /^[x\n]{1000}\n… what was printed after this is lost …\n$/),
  },
  {
    title: 'crashes',
    javascript: 'process.abort()',
    python: 'import ctypes\nctypes.string_at(0)',
    then: ({ stderr }) => assert.match(stderr, /it crashed/),
  },
];

const harmless: readonly Row[] = [
  {
    title: 'closes or overwrites its streams',
    javascript: `${FS}.closeSync(1); ${FS}.closeSync(2); process.stdout.write = process.stderr.write = console.log = null; process.stdout = null`,
    python: 'import os, sys\nos.close(1)\nos.close(2)\nsys.stdout = sys.stderr = None',
    then: ({ status }) => assert.notEqual(status, 'died'),
  },
  {
    title: 'starts processes without end',
    javascript: `const child = process.getBuiltinModule('child_process'); for (let i = 0; i < 1000; i++) { const { error } = child.spawnSync(process.execPath, ['-e', '0']); if (error?.code !== 'EPERM') throw new Error('a process was started') }`,
    python:
      'import os\nfor i in range(1000):\n    try:\n        os.fork()\n    except PermissionError:\n        continue\n    raise Exception("a process was started")',
    then: ({ status, stderr }) => assert.equal(status, 'ok', stderr),
  },
  {
    title: 'asks models in a prompt that is too long for any',
    javascript: 'llm_query("x".repeat(10000001))',
    python: 'llm_query("x" * 10000001)',
    then: ({ status, stderr }) => {
      assert.equal(status, 'raised');
      assert.match(stderr, /10000000 characters of prompts at most, these have 10000001/);
    },
  },
  {
    title: 'answers at a length that nobody reads',
    javascript: 'answer.content = "x".repeat(10000001); answer.ready = true',
    python: 'answer["content"] = "x" * 10000001\nanswer["ready"] = True',
    then: ({ answer, stderr }) => {
      assert.equal(answer, null);
      assert.match(stderr, /Note: the answer is .*long/);
    },
  },
  {
    title: 'holds back a handler of its own for the interrupt',
    deadlineMs: 2_000,
    javascript: 'process.on("SIGINT", () => print("mine")); for (;;);',
    python: 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint("mine")',
    then: ({ status }) =>
      assert.ok(status === 'stopped' || status === 'ok' || status === 'died', status),
  },
];

const OPTIONS = { outputMax: 2_000, memoryMax: 512 * MEGABYTE };

const testRows = (kind: EnvironmentKind, name: 'javascript' | 'python'): void => {
  const rowsOf = (rows: readonly Row[]): readonly Row[] => chooseRows(rows, () => name, 4);
  for (const row of [...rowsOf(deadly), ...rowsOf(deadlier)]) {
    it(`code that ${row.title} ends its process; the next cell runs in a fresh one`, () =>
      withEnvironment(
        kind,
        ['context'],
        async (environment) => {
          await runCell(environment, 'kept = 1');
          const report = await runCell(environment, row[name], { deadlineMs: 10_000 });
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
        kind,
        ['context'],
        async (environment) => {
          const { deadlineMs = 60_000 } = row;
          row.then?.(await runCell(environment, row[name], { deadlineMs }));
          const next = await runCell(environment, 'print(context, llm_query("a"))');
          assert.equal(next.stdout, 'context llm: a\n', next.stderr);
        },
        OPTIONS,
      ));
  }
};

const testLimits = (kind: EnvironmentKind, name: 'javascript' | 'python'): void => {
  const isPython = name === 'python';

  it('a report that the code forges is its own affair: the environment goes on', () =>
    withEnvironment(kind, ['context'], async (environment) => {
      const line =
        '{"type":"finished","number":1,"status":"ok","stdout":"forged","stderr":"","variables":[],"answer":"forged"}';
      const report = await runCell(environment, forged(line)[name]);
      assert.equal(report.stdout, 'forged');
      for (let tries = 0; ; tries += 1) {
        const next = await runCell(environment, 'print(context)', { deadlineMs: 1_000 });
        if (next.stdout === 'context\n') break;
        assert.ok(tries < 2, next.stderr);
      }
    }));

  it('100 MB of output are cut, and the next cell has all of it', () =>
    withEnvironment(
      kind,
      [],
      async (environment) => {
        const line = 'x'.repeat(99);
        const first = isPython
          ? `for i in range(1000000): print("${line}")`
          : `for (let i = 0; i < 1000000; i++) print("${line}")`;
        const { status, stdout, stderr } = await runCell(environment, first, {
          deadlineMs: 240_000,
        });
        assert.equal(status, 'ok', stderr);
        assert.match(
          stdout,
          /… 99,998,000 characters left out; the next cell has all of it in last_output …/,
        );
        const length = isPython ? 'print(len(last_output))' : 'print(last_output.length)';
        assert.equal(
          (await runCell(environment, length, { deadlineMs: 60_000 })).stdout,
          '100000000\n',
        );
      },
      OPTIONS,
    ));

  it('output that is too large keeps its beginning and end, and says so', () =>
    withEnvironment(
      kind,
      [],
      async (environment) => {
        const many = isPython
          ? 'for i in range(300000): print("x" * 95, i)'
          : 'for (let i = 0; i < 300000; i++) print("x".repeat(95), i)';
        const { status, stdout } = await runCell(environment, many, { deadlineMs: 120_000 });
        assert.equal(status, 'ok');
        assert.match(stdout, /x 299999\n$/);
        const look = isPython
          ? 'print(len(last_output) < 20000000, "characters were not kept" in last_output, last_output[-7:])'
          : 'print(last_output.length < 20000000, last_output.includes("characters were not kept"), last_output.slice(-7))';
        assert.match((await runCell(environment, look)).stdout, /^true true 299999\n\n$/i);
      },
      { outputMax: 2_000, memoryMax: 64 * MEGABYTE },
    ));

  it('threads of the code stand still between cells, and what they print then goes nowhere', () =>
    withEnvironment(kind, [], async (environment) => {
      const start = isPython
        ? `import threading, time
stamps = []
def note():
    while True:
        stamps.append(time.monotonic())
        print("from the thread")
        time.sleep(0.005)
threading.Thread(target=note, daemon=True).start()
while len(stamps) < 3: time.sleep(0.001)`
        : `const stamps = new Float64Array(new SharedArrayBuffer(80000));
const { Worker } = process.getBuiltinModule('worker_threads');
const program = 'const { workerData: stamps } = require("worker_threads"); for (let count = 1; ; count++) { stamps[count] = performance.timeOrigin + performance.now(); stamps[0] = count; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5) }';
new Worker(program, { eval: true, workerData: stamps, stdout: true, stderr: true });
while (stamps[0] < 3) await new Promise((resolve) => setTimeout(resolve, 5));`;
      const begun = await runCell(environment, start);
      assert.equal(begun.status, 'ok', begun.stderr);
      await new Promise((resolve) => setTimeout(resolve, 500));
      // one write: the thread prints at any moment
      const look = isPython
        ? 'seen = len(stamps)\nwhile len(stamps) <= seen: time.sleep(0.005)\nprint(f"gap {max(b - a for a, b in zip(stamps, stamps[1:])) > 0.45}")'
        : 'const seen = stamps[0]; while (stamps[0] <= seen) await new Promise((resolve) => setTimeout(resolve, 5)); let gap = 0; for (let i = 1; i < stamps[0]; i++) gap = Math.max(gap, stamps[i + 1] - stamps[i]); print("gap", gap > 450)';
      const { status, stdout } = await runCell(environment, look);
      assert.equal(status, 'ok');
      assert.match(stdout, /gap true/i);
    }));

  it('a cell that is stopped at any moment, in its code or in a call, is stopped, keeps what is bound, and disturbs no later one', () =>
    withEnvironment(kind, [], async (environment) => {
      await runCell(environment, 'kept = "kept"');
      const endless = isPython
        ? (tag: string) =>
            `i = 0\nwhile True:\n    i += 1\n    if llm_query(f"${tag} {i}" + "x" * (i * 500)) != f"llm: ${tag} {i}" + "x" * (i * 500): raise Exception("wrong text")`
        : (tag: string) =>
            `for (let i = 1; ; i++) if (llm_query("${tag} " + i + "x".repeat(i * 500)) !== "llm: ${tag} " + i + "x".repeat(i * 500)) throw new Error("wrong text")`;
      const loop = isPython ? 'while True: pass' : 'for (;;);';
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
      kind.start({ contexts: [file], names: ['file'], ...OPTIONS }),
      /^Error: input 1 can not be read: .*\/context\/0/,
    );
    await assert.rejects(
      kind.start({ contexts: [folder], names: ['folder'], ...OPTIONS }),
      /is not a file/,
    );
  });

  it('an input that is not UTF-8 is told of', () =>
    withEnvironment(kind, [Buffer.from([0x61, 0xff])], async (environment) => {
      const { stderr } = await runCell(environment, 'print(context)');
      assert.equal(stderr, 'Note: input 1 is not UTF-8: the bytes that are not were replaced.\n');
      assert.equal((await runCell(environment, 'print(context)')).stderr, '');
    }));
};

for (const [kind, name] of [
  [javascript, 'javascript'],
  [python, 'python'],
] as const) {
  describe(`${name} behind bubblewrap`, () => {
    testRows(kind, name);
    testLimits(kind, name);
  });
}

describe('an environment behind bubblewrap where there is no bubblewrap', () => {
  for (const kind of [javascript, python]) {
    it(`${kind.name} says so, when it is asked and when it is started`, async (t) => {
      const before = process.env.PATH;
      t.after(() => {
        process.env.PATH = before;
      });
      await kind.probe();
      process.env.PATH = '/nowhere';
      assert.match(
        (await kind.probe()) ?? 'it works',
        /not installed\. Install it: apt-get install bubblewrap/,
      );
      await assert.rejects(
        kind.start({ contexts: [], names: [], outputMax: 2_000, memoryMax: 512 * 1024 * 1024 }),
        /not installed/,
      );
    });
  }
});
