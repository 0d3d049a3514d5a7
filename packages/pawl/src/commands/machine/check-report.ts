import { groupDigits } from '@pawl/agent/platform/base/group-digits';
import type { CheckResult, Coverage } from '@pawl/verify/exploration/exploration-result';

/** Text output of `pawl machine --check`. */

export const count = (amount: number): string => groupDigits(amount);

/** Most unreached arrows that are listed: small bounds leave many out. */
const LISTED_MAX = 20;

const reachText = (
  what: string,
  { reached, all, explained, missing, mistaken }: Coverage,
): readonly string[] => [
  `${what}: ${reached} of ${all} arrows reached`,
  ...explained.map(({ id, why }) => `  ${id} can't be: ${why}`),
  ...missing.slice(0, LISTED_MAX).map((id) => `  ${id} was not reached`),
  ...(missing.length > LISTED_MAX ? [`  and ${missing.length - LISTED_MAX} more, which --json lists`] : []),
  ...mistaken.map((id) => `  ${id} was reached, or is gone: strike the reason why it can't be`),
];

/** The result as text: a table of configurations, then the coverage of machine and views. */
export const textOf = (check: CheckResult): string => {
  const rows = [
    ['configuration', 'states', 'steps', 'depth', ''],
    ...check.configurations.map((one) => [
      one.name,
      count(one.states),
      count(one.steps),
      `${one.depth}${one.complete ? '' : ', not all'}`,
      one.about,
    ]),
    ['together', count(check.states), count(check.steps), '', ''],
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const table = rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : column < 4 ? cell.padStart(widths[column] ?? 0) : cell,
      )
      .join('  ')
      .trimEnd(),
  );
  return [
    ...table,
    '',
    `${check.complete ? 'complete' : 'not complete'}: ${count(check.violations)} violations, ${count(check.illegalProjections)} illegal projections`,
    ...reachText('machine', check.edges),
    ...check.views.flatMap((view) => reachText(`view ${view.name}`, view)),
    '',
  ].join('\n');
};
