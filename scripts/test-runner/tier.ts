/**
 * Unit tests share a process: to start one costs more than most of them take.
 *
 * A test file shares it unless its own files, the tests and what helps them, reach a module that
 * starts programs or threads, or it imports test/own-process.ts. What it tests may reach such
 * modules: the process forbids their use (test/starts-no-program.ts), so that a test which starts a
 * program fails there and says what to import.
 */

import type { Metafile } from 'esbuild';

const STARTING: ReadonlySet<string> = new Set([
  'node:child_process',
  'node:cluster',
  'node:worker_threads',
  '@lydell/node-pty',
  'esbuild',
  'playwright-core',
]);

/** What the shared process loads first. */
export const GUARD = 'test/starts-no-program.ts';
const OWN_PROCESS = 'test/own-process.ts';

/**
 * Unit tests that `npm run check` leaves to `npm test`, where each has a process of its own: all
 * but one of those that compute for more than 2 s. The one is about docs/design/rules.md, which changes
 * often.
 */
export const LONG_UNIT_TESTS: readonly string[] = [
  'packages/agent/test/journal/state-check.test.ts',
  'packages/agent/test/machine/malformed.test.ts',
  'packages/agent/test/machine/reserved.test.ts',
  'packages/agent/test/machine/walks-reach.test.ts',
  'packages/agent/test/mcp/cut-streams.test.ts',
  'packages/agent/test/runtime/compaction-long.test.ts',
  'packages/agent/test/workspace/carried-files.test.ts',
  'packages/ask/test/capped.test.ts',
  'packages/ask/test/crash.test.ts',
  'packages/ask/test/explore.test.ts',
  'packages/ask/test/malformed.test.ts',
  'packages/ask/test/money.test.ts',
  'packages/ask/test/parse-reply.test.ts',
  'packages/ask/test/property.test.ts',
  'packages/ask/test/subcalls.test.ts',
  'packages/inspector/test/atif/atif-trajectory.test.ts',
  'packages/pawl/test/cli/typed-text.test.ts',
  'packages/terminal/test/approval-reading.test.ts',
  'packages/terminal/test/live-area.test.ts',
  'packages/terminal/test/transcript.test.ts',
  'packages/verify/test/exploration/promises.test.ts',
  'packages/verify/test/exploration/state-key.test.ts',
  'packages/verify/test/exploration/worlds.test.ts',
  'packages/verify/test/faults.test.ts',
  'packages/verify/test/projections/refinement.test.ts',
  'test/servers/pictures.test.ts',
];

const SOURCE = /^packages\/[^/]+\/src\//;

/** Whether a test file can share the process of the unit tests. */
export const isUnitTest = ({ inputs }: Pick<Metafile, 'inputs'>, file: string): boolean => {
  const seen = new Set([GUARD]);
  const waiting = [file];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (next === OWN_PROCESS) return false;
    for (const { path, external } of inputs[next]?.imports ?? []) {
      if (external === true && STARTING.has(path)) return false;
      if (external !== true && !SOURCE.test(path)) waiting.push(path);
    }
  }
  return true;
};

/** A program that imports test files one after the other, each within a suite of its name. */
export const unitProgram = (
  files: readonly string[],
  programOf: (file: string) => string,
  hasGuard: boolean,
): string => {
  const programs = Object.fromEntries(files.map((file) => [file, programOf(file)]));
  return [
    ...(hasGuard ? [`import ${JSON.stringify(programOf(GUARD))};`] : []),
    "import { describe } from 'node:test';",
    `const programs = ${JSON.stringify(programs, null, 2)};`,
    'for (const [file, program] of Object.entries(programs)) describe(file, async () => void (await import(program)));',
    '',
  ].join('\n');
};
