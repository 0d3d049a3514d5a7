import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { python } from '../../src/environments/python.js';
import { conforms, runCell, withEnvironment } from './conformance.js';

conforms(python);

type Row = {
  readonly title: string;
  readonly given: readonly string[];
  readonly then: Readonly<{
    status: string;
    stdout?: string | RegExp;
    stderr?: string | RegExp;
    answer?: string | null;
  }>;
};

/** Cells in one environment of their own; what the last one came to. */
const rows: readonly Row[] = [
  {
    title: 'a traceback names the lines of cells and shows them',
    given: ['def f(x):\n    return 1 / x', '\n\nf(0)'],
    then: {
      status: 'raised',
      stderr:
        'Traceback (most recent call last):\n  File "<cell 2>", line 3, in <module>\n    f(0)\n  File "<cell 1>", line 2, in f\n    return 1 / x\nZeroDivisionError: division by zero\n',
    },
  },
  {
    title: 'an exit ends only the cell',
    given: [
      'kept = 1\nraise SystemExit(3)',
      'print(kept)\nexit_code = __import__("sys").exit("bye")',
    ],
    then: {
      status: 'raised',
      stdout: '1\n',
      stderr: /^SystemExit: bye: that ends only the cell here/,
    },
  },
  {
    title: 'an interrupt that the code raises itself is a failure like any other',
    given: ['raise KeyboardInterrupt("mine")'],
    then: { status: 'raised', stderr: /KeyboardInterrupt: mine/ },
  },
  {
    title: 'threads may make calls, each its own',
    given: [
      'from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n    print(list(pool.map(llm_query, ["1", "2", "3"])))',
    ],
    then: { status: 'ok', stdout: "['llm: 1', 'llm: 2', 'llm: 3']\n" },
  },
  {
    title: 'a thread that outlives its cell goes on in the next one, which its calls belong to',
    given: [
      'import threading, time\ndef later():\n    time.sleep(0.1)\n    print(llm_query("late"))\nthread = threading.Thread(target=later)\nthread.start()',
      'thread.join()\nprint("joined")',
    ],
    then: { status: 'ok', stdout: 'llm: late\njoined\n' },
  },
  {
    title: 'coroutines run',
    given: [
      'import asyncio\nasync def main():\n    await asyncio.sleep(0.01)\n    print("slept")\nasyncio.run(main())',
    ],
    then: { status: 'ok', stdout: 'slept\n' },
  },
  {
    title: 'nobody answers input()',
    given: ['input("?")'],
    then: { status: 'raised', stdout: '?', stderr: /EOFError/ },
  },
  {
    title:
      'the standard library is there with what it is linked with, and nothing else that is installed',
    given: [
      'import bz2, csv, ctypes, decimal, hashlib, lzma, pickle, re, sqlite3, ssl, statistics, zlib\nclass Point: pass\nprint(type(pickle.loads(pickle.dumps(Point()))) is Point, __name__, hashlib.sha256(b"").hexdigest()[:8])\nimport sys\nprint([place for place in sys.path if "packages" in place])',
    ],
    then: { status: 'ok', stdout: 'True __main__ e3b0c442\n[]\n' },
  },
  {
    title: 'memory that no limit counts is refused',
    given: [
      'import mmap, os\nfor ask in (lambda: mmap.mmap(-1, 1000), lambda: os.memfd_create("x")):\n    try:\n        ask()\n        print("given")\n    except PermissionError:\n        print("refused")',
    ],
    then: { status: 'ok', stdout: 'refused\nrefused\n' },
  },
  {
    title: 'a cell that has used up its memory to the last byte says so; the next one can free it',
    given: [
      'mark = "same"\nkept, size = [], 1 << 24\nwhile size >= 16:\n    try:\n        kept.append(bytearray(size))\n    except MemoryError:\n        size //= 2\nraise MemoryError',
      'kept = None',
      'print(mark, len("y" * 50000000))',
    ],
    then: { status: 'ok', stdout: 'same 50000000\n' },
  },
  {
    title: 'the answer record takes its content however it is made ready',
    given: ['answer.update(content="one", ready=True)\nanswer["content"] = "two"'],
    then: { status: 'ok', answer: 'one' },
  },
  {
    title: 'the answer record takes its content from another dict, too',
    given: ['answer |= {"ready": True, "content": "one"}\nanswer.setdefault("more", 1)'],
    then: { status: 'ok', answer: 'one' },
  },
  {
    title: 'an answer that cannot be made text is told',
    given: [
      'class Odd:\n    def __str__(self): raise ValueError("no text")\nanswer = {"ready": True, "content": Odd()}',
    ],
    then: {
      status: 'ok',
      answer: null,
      stderr: /Note: the answer can not be read: .*ValueError: no text/s,
    },
  },
  {
    title: 'a cell’s changes to sys are undone for the next cell',
    given: ['import sys\nsys.stdout = None\nsys.setrecursionlimit(100)', 'print("here")'],
    then: { status: 'ok', stdout: 'here\n' },
  },
  {
    title: 'an interrupt that is caught once comes again',
    given: [
      'DEADLINE try:\n    while True:\n        x = 1\nexcept BaseException:\n    print("caught")\nwhile True: pass',
    ],
    then: { status: 'stopped', stdout: 'caught\n', stderr: /what it had bound is kept/ },
  },
  {
    title: 'an interrupt ends a wait for a lock',
    given: ['DEADLINE import threading\nthreading.Event().wait()'],
    then: { status: 'stopped' },
  },
];

const assertText = (actual: string, expected: string | RegExp | undefined): void => {
  if (typeof expected === 'string') assert.equal(actual, expected);
  else if (expected !== undefined) assert.match(actual, expected);
};

describe('python alone', () => {
  for (const { title, given, then } of rows) {
    it(title, () =>
      withEnvironment(python, ['context'], async (environment) => {
        for (const [index, cell] of given.entries()) {
          const hasDeadline = cell.startsWith('DEADLINE ');
          const code = hasDeadline ? cell.slice('DEADLINE '.length) : cell;
          const report = await runCell(environment, code, {
            deadlineMs: hasDeadline ? 400 : 20_000,
          });
          if (index < given.length - 1) continue;
          assert.equal(report.status, then.status, report.stderr);
          assertText(report.stdout, then.stdout);
          assertText(report.stderr, then.stderr);
          if (then.answer !== undefined) assert.equal(report.answer, then.answer);
        }
      }),
    );
  }
});
