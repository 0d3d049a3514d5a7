/**
 * Options of Stryker, which makes mutants (changes in single places of the sources) and runs tests
 * on each: mutated files, test runner, output folder.
 */

import type { PartialStrykerOptions } from '@stryker-mutator/api/core';

export const options: PartialStrykerOptions = {
  mutate: [
    'packages/machine/src/**/*.ts',
    'packages/agent/src/machine/**/*.ts',
    '!packages/agent/src/machine/{asked-actions,shapes}.ts', // generated
    'packages/agent/src/policy/*.ts',
    'packages/verify/src/{exploration,projections}/*.ts',
  ],
  mutator: { excludedMutations: ['StringLiteral'] },
  plugins: ['./scripts/mutation/runner.ts', './scripts/mutation/ignorer.ts'],
  ignorers: ['never-reached'],
  testRunner: 'suite',
  buildCommand: 'node --import tsx scripts/mutation/build.ts',
  coverageAnalysis: 'perTest',
  concurrency: 2,
  // A mutant that loops is stopped by the number of times that its code runs. The time limit is for
  // one that makes other code hang.
  timeoutMS: 10_000,
  timeoutFactor: 2,
  reporters: ['progress-append-only', 'event-recorder'],
  eventReporter: { baseDir: '.stryker/events' },
  tempDirName: '.stryker/sandbox',
  ignorePatterns: [
    'bench',
    'packages/pawl/demo',
    'packages/pawl/dist',
    'docs',
    'examples',
    'packages/pawl/bin',
    '.ci',
    'reports',
    '/packages/pawl/test',
    '/test/servers',
  ],
  // TypeScript 7 has no programming interface, and nothing of it is needed here.
  tsconfigFile: 'not-used.json',
  allowEmpty: false,
};
