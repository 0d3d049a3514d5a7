/** docs/mutation.md: the results of the last whole run. */

import { cpus } from 'node:os';
import { type Mutation, percent, type Score, totalOf } from './score.js';
import type { Survivor } from './survivors/survivor.js';

export type Run = {
  readonly at: Date;
  readonly minutes: number;
  /** Files that were tried again since. */
  readonly again: readonly string[];
  readonly mutations: readonly Mutation[];
  readonly scores: readonly Score[];
  readonly survivors: readonly Survivor[];
};

const row = (score: Score): string => {
  const { file, caught, hung, alive } = score;
  return `| ${file.replace('packages/', '')} | ${caught + alive} | ${caught} | ${hung} | ${alive} | ${percent(score).toFixed(1)} |`;
};

/** The figures as they are printed and written: one row per file, the sum last. */
export const figures = (scores: readonly Score[]): string =>
  [
    '| file | mutants | caught | of these by not ending | alive | % |',
    '|---|---:|---:|---:|---:|---:|',
    ...scores.map(row),
    row(totalOf(scores)),
  ].join('\n');

export const code = (text: string): string => `\`\` ${text.replaceAll('|', '\\|')} \`\``;

const reasons = (survivors: readonly Survivor[]): readonly string[] =>
  [...new Set(survivors.map(({ because }) => because))].flatMap((because) => {
    const own = survivors.filter((survivor) => survivor.because === because);
    const count = own.reduce((sum, { count: times = 1 }) => sum + times, 0);
    return [
      `### ${count}: ${because}`,
      '',
      '| file | was | becomes | times |',
      '|---|---|---|---:|',
      ...own.map(
        ({ file, was, becomes, count: times = 1 }) =>
          `| ${file.replace('packages/', '')} | ${code(was)} | ${code(becomes)} | ${times} |`,
      ),
      '',
    ];
  });

const hanging = (mutations: readonly Mutation[]): readonly string[] =>
  mutations
    .filter(({ status }) => status === 'Timeout')
    .map(
      ({ file, was, becomes }) =>
        `| ${file.replace('packages/', '')} | ${code(was)} | ${code(becomes)} |`,
    );

export const page = ({ at, minutes, again, mutations, scores, survivors }: Run): string => {
  const [processor] = cpus();
  const ignored = mutations.filter(({ status }) => status === 'Ignored').length;
  return [
    '# Mutation testing',
    '',
    '`npm run mutate` changes the machine and the policy in one place at a time (Stryker) and runs the tests of',
    '`packages/machine`, of the machine, the policy and shell texts in `packages/agent/test`, and of `packages/verify` against',
    'each change: a change that no test notices is a promise that nobody checks. It fails under 90 %, on a survivor without a',
    'reason in `scripts/mutation/survivors.ts`, and on a reason whose mutant is caught meanwhile.',
    '`npm run mutate -- packages/agent/src/policy/decide.ts` tries some files.',
    '',
    `Run of ${at.toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} cores (${processor?.model ?? 'unknown'}), ${minutes} minutes.`,
    ...(again.length === 0
      ? []
      : [
          `Tried again after tests were added: ${again.map((file) => file.replace('packages/', '')).join(', ')}.`,
        ]),
    `Left out: ${ignored} changes of text literals, and of cases that the compiler proves to be never reached.`,
    '',
    figures(scores),
    '',
    '## Those that live, and why',
    '',
    ...reasons(survivors),
    '## Those that do not end',
    '',
    '| file | was | becomes |',
    '|---|---|---|',
    ...hanging(mutations),
    '',
  ].join('\n');
};
