import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { javascript } from '../../src/environments/sandboxed-node.js';
import { conforms, runCell, withEnvironment } from './conformance.js';

conforms(javascript);

type Row = {
  readonly title: string;
  readonly given: readonly string[];
  readonly then: Readonly<{ status: string; stdout?: string | RegExp; stderr?: string | RegExp }>;
};

/** Cells in one environment of their own; what the last one came to. */
const rows: readonly Row[] = [
  {
    title: 'timers go off in the order of their time, while the cell waits for them',
    given: [
      'setTimeout(print, 300, "third"); setTimeout(print, 100, "second"); setImmediate(print, "first"); const never = setTimeout(print, 50, "never"); clearTimeout(never); let n = 0; const every = setInterval(() => { print("every", ++n); if (n === 2) clearInterval(every) }, 400); await new Promise((resolve) => setTimeout(resolve, 200)); print("awaited")',
    ],
    then: { status: 'ok', stdout: 'first\nsecond\nawaited\nthird\nevery 1\nevery 2\n' },
  },
  {
    title: 'a timer that a cell left behind at its deadline does not go off in the next',
    given: [
      'DEADLINE setInterval(() => print("tick"), 20)',
      'await new Promise((resolve) => setTimeout(resolve, 100)); print("quiet")',
    ],
    then: { status: 'ok', stdout: 'quiet\n' },
  },
  {
    title: 'an error in a timer is a failure of the cell, and the other timers still fire',
    given: ['setTimeout(() => { throw new RangeError("late") }, 1); setTimeout(print, 5, "after")'],
    then: { status: 'raised', stdout: 'after\n', stderr: /RangeError: late\n {4}at line 1/ },
  },
  {
    title: 'a timer without a function is a failure of the code',
    given: ['setTimeout("print(1)")'],
    then: { status: 'raised', stderr: /TypeError: a timer needs a function/ },
  },
  {
    title: 'a promise that nothing can settle is told at once',
    given: ['await new Promise(() => {})'],
    then: { status: 'raised', stderr: /a promise that nothing can settle/ },
  },
  {
    title: 'a promise of a stopped cell, settled by a later one, does not disturb it',
    given: [
      'DEADLINE await new Promise((resolve) => { go = resolve }); for (;;);',
      'DEADLINE let go2; setTimeout(() => { for (;;); }, 1); await new Promise((resolve) => { go2 = resolve }); print("old")',
      'go2(); await null; print("new")',
    ],
    then: { status: 'ok', stdout: /new\n$/ },
  },
  {
    title: 'ticks and promises of a cell run to their end inside it',
    given: [
      'process.nextTick(() => print("tick")); Promise.resolve().then(() => print("promise")); print("code")',
    ],
    then: { status: 'ok', stdout: 'code\ntick\npromise\n' },
  },
  {
    title: 'text written to the process streams is output, too',
    given: [
      'process.stdout.write("out "); process.stdout.write(new TextEncoder().encode("é\\n")); process.stderr.write("err\\n")',
    ],
    then: { status: 'ok', stdout: 'out é\n', stderr: 'err\n' },
  },
  {
    title: 'names that all objects inherit from the code are taken back',
    given: [
      'Object.prototype.error = "e"; Object.prototype.errno = 5; Object.prototype.set = 1',
      'print({}.error, llm_query("a"))',
    ],
    then: { status: 'ok', stdout: 'undefined llm: a\n' },
  },
  {
    title: 'a name of ours that the code has locked is told',
    given: [
      'Object.defineProperty(globalThis, "context", { value: 1, configurable: false })',
      'print(context)',
    ],
    then: {
      status: 'ok',
      stdout: '1\n',
      stderr: 'Note: the code made context impossible to restore.\n',
    },
  },
  {
    title: 'a syntax error of V8 says its line',
    given: ['let a = 1\nlet b = 08n'],
    then: { status: 'raised', stderr: /^SyntaxError: .*\n {4}at line 2\n$/ },
  },
  {
    title: 'a failure in a promise says where it was thrown, and what is no error says what it is',
    given: ['async function load() {\n  await null\n  throw { code: 5 }\n}\nawait load()'],
    then: { status: 'raised', stderr: 'Thrown: { code: 5 }\n' },
  },
  {
    title: 'the hook of ours does nothing for others, and cannot be replaced',
    given: [
      'print(__work_of_ours(), delete globalThis.__work_of_ours); __work_of_ours = 1; print(typeof __work_of_ours)',
      'print("next")',
    ],
    then: { status: 'ok', stdout: 'next\n' },
  },
  {
    title: 'the hook of ours is not among the names that the code finds',
    given: [
      'print(Object.getOwnPropertyNames(globalThis).filter((name) => name.includes("ours")).length)',
    ],
    then: { status: 'ok', stdout: '0\n' },
  },
  {
    title: 'a process whose inspector the code has broken is replaced',
    given: ['process._kill(process.pid, 15)', 'print("one")', 'print("two")'],
    then: { status: 'ok', stdout: 'two\n' },
  },
  {
    title: 'a report that the code makes endless is given up with its process',
    given: ['DEADLINE answer = { ready: true, get content() { for (;;); } }'],
    then: { status: 'died', stderr: /Node was replaced/ },
  },
  {
    title: 'no call is made for code that runs while its report is written',
    given: [
      'answer = { ready: true, get content() { try { return llm_query("x") } catch (error) { print(error.message) } } }',
    ],
    then: { status: 'ok', stdout: /^no call can be made/ },
  },
  {
    title: 'code of another realm than the cells is no way out',
    given: [
      'print(llm_query.constructor("return typeof process")(), llm_query.constructor("return typeof require")())',
    ],
    then: { status: 'ok', stdout: 'undefined undefined\n' },
  },
];

const assertText = (actual: string, expected: string | RegExp | undefined): void => {
  if (typeof expected === 'string') assert.equal(actual, expected);
  else if (expected !== undefined) assert.match(actual, expected);
};

/** Programs of cells in sandboxes that this process has started. */
const cellProcesses = (): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isCellProcess(name))
    .map(Number);

const statusLine = (pid: string, field: string): string =>
  new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ??
  '';

const isCellProcess = (pid: string): boolean => {
  try {
    if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith(`${process.execPath}\0`))
      return false;
    const isFirstInside = /\s1$/.test(statusLine(pid, 'NSpid'));
    const above = statusLine(pid, 'PPid');
    return isFirstInside && statusLine(above, 'PPid') === String(process.pid);
  } catch {
    return false; // it has ended meanwhile
  }
};

describe('javascript alone', () => {
  for (const { title, given, then } of rows) {
    it(title, () =>
      withEnvironment(javascript, ['context'], async (environment) => {
        for (const [index, cell] of given.entries()) {
          const hasDeadline = cell.startsWith('DEADLINE ');
          const code = hasDeadline ? cell.slice('DEADLINE '.length) : cell;
          const report = await runCell(environment, code, {
            deadlineMs: hasDeadline ? 2_000 : 20_000,
          });
          if (index < given.length - 1) continue;
          assert.equal(report.status, then.status, report.stderr);
          assertText(report.stdout, then.stdout);
          assertText(report.stderr, then.stderr);
        }
      }),
    );
  }

  it('interrupts that Node notices late stop neither the next cell nor the program', () =>
    withEnvironment(javascript, [], async (environment) => {
      const kept = 'kept = Array.from({ length: 400_000 }, (_, index) => ({ index }))';
      await runCell(environment, kept);
      const pids = cellProcesses();
      assert.equal(pids.length, 1);
      for (let round = 0; round < 8; round++) {
        const code =
          'for (;;) junk = Array.from({ length: 100_000 }, (_, index) => ({ index, kept }))';
        const stop = new AbortController();
        const interrupts = setInterval(() => {
          stop.abort();
          for (const pid of pids) process.kill(pid, 'SIGINT');
        }, 10); // in less time a slow machine could finish no report
        const running = runCell(environment, code, { signal: stop.signal });
        const { status } = await running.finally(() => clearInterval(interrupts));
        assert.equal(status, 'stopped', `round ${round}`);
        const next = await runCell(
          environment,
          'let n = 0; for (let i = 0; i < 3e6; i++) n += i % 2; print(n)',
        );
        assert.equal(next.stdout, '1500000\n', `round ${round}: ${next.status} ${next.stderr}`);
      }
    }));

  it('runs at the speed of V8', () =>
    withEnvironment(javascript, [], async (environment) => {
      const code =
        'let sum = 0; for (let i = 0; i < 300000000; i++) sum += Math.min(i, 3); print(sum)';
      const report = await runCell(environment, code, { deadlineMs: 60_000 });
      assert.equal(report.stdout, '899999994\n', report.stderr);
    }));
});
