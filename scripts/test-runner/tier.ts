import type { Metafile } from 'esbuild';

/**
 * Unit tests share one process: to start one costs more than most of them take.
 *
 * 1. Those whose imports reach nothing that starts a program or a thread or opens a connection. Nobody lists them; a test
 *    that begins to use such a module gets a process of its own.
 * 2. Those that import test/starts-no-program.ts, which forbids their process to use such modules.
 */

/** Nothing can forbid these two to start a program. */
const NEVER_SHARED: ReadonlySet<string> = new Set(['@lydell/node-pty', 'esbuild']);

const OUTSIDE: ReadonlySet<string> = new Set([
  'node:child_process',
  'node:cluster',
  'node:dgram',
  'node:http',
  'node:http2',
  'node:https',
  'node:net',
  'node:tls',
  'node:worker_threads',
  ...NEVER_SHARED,
]);

const GUARD = 'test/starts-no-program.ts';

/** Unit tests that `npm run check` leaves to `npm test`: each computes for 4 to 24 s, all others together for 20. */
export const LONG_UNIT_TESTS: readonly string[] = [
  'test/agent/exploration/state-key.test.ts',
  'test/agent/exploration/promises.test.ts',
  'test/agent/faults.test.ts',
  'test/ask/crash.test.ts',
  'test/ask/explore.test.ts',
  'test/ask/property.test.ts',
];

/** Whether a test file can share the process of the unit tests. */
export const isUnitTest = ({ inputs }: Pick<Metafile, 'inputs'>, file: string): boolean => {
  const isGuarded = inputs[file]?.imports.some(({ path }) => path === GUARD) === true;
  const forbidden = isGuarded ? NEVER_SHARED : OUTSIDE;
  const seen = new Set<string>();
  const waiting = [file];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    for (const { path, external } of inputs[next]?.imports ?? []) {
      if (external !== true) waiting.push(path);
      else if (forbidden.has(path)) return false;
    }
  }
  return true;
};

/** A program that imports test files one after the other, each within a suite of its name. */
export const unitProgram = (files: readonly string[], programOf: (file: string) => string): string => {
  const programs = Object.fromEntries(files.map((file) => [file, programOf(file)]));
  return [
    "import { describe } from 'node:test';",
    `const programs = ${JSON.stringify(programs, null, 2)};`,
    'for (const [file, program] of Object.entries(programs)) describe(file, async () => void (await import(program)));',
    '',
  ].join('\n');
};
