/**
 * How much of its cases a test runs.
 *
 * `npm run check` is quick: few random cases. `npm test` is daily: every behaviour once, and of each
 * matrix of kills or traps the rows that the seed chooses. `npm run test:deep` runs all rows and
 * thirty times as many random cases.
 *
 * PAWL_SEED chooses the cases; `npm test` takes it from the tree of the commit. PAWL_COUNT sets the
 * number of random cases of a file that runs alone.
 */

import { type TestContext, test } from 'node:test';

type Tier = 'quick' | 'daily' | 'deep';

const { PAWL_TIER, PAWL_SEED, PAWL_COUNT } = process.env;

export const TIER: Tier = PAWL_TIER === 'quick' || PAWL_TIER === 'deep' ? PAWL_TIER : 'daily';

export const isDeep = TIER === 'deep';

/** One for all files of a run: `npm test` prints it. */
export const SEED = Number(PAWL_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** A test of what no user meets every day: only the deep tier runs it. */
export const testDeep = (
  title: string,
  run: (context: TestContext) => void | Promise<void>,
): void => {
  if (isDeep) void test(title, run);
};

const SHARE: Readonly<Record<Tier, number>> = { quick: 1 / 6, daily: 1 / 3, deep: 10 };

/** How many random cases to try now, where `enough` of them find nearly every fault. */
export const countCases = (enough: number): number =>
  PAWL_COUNT === undefined ? Math.ceil(enough * SHARE[TIER]) : Number(PAWL_COUNT);

/** A well-spread number for a text (FNV-1a), so that classes do not all take their first row. */
const hash = (text: string): number => {
  let value = 0x811c9dc5;
  for (const character of text)
    value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return value;
};

/**
 * The rows to run now: of each class `count` rows, which the seed chooses; in the deep tier all.
 * Rows keep their order.
 */
export const chooseRows = <Row>(
  rows: readonly Row[],
  classOf: (row: Row) => string = () => '',
  count = 1,
): readonly Row[] => {
  if (isDeep) return rows;
  const chosen = new Set<Row>();
  for (const name of new Set(rows.map(classOf))) {
    const ofClass = rows.filter((row) => classOf(row) === name);
    const first = hash(`${SEED} ${name}`) % ofClass.length;
    for (const row of [...ofClass.slice(first), ...ofClass.slice(0, first)].slice(0, count))
      chosen.add(row);
  }
  return rows.filter((row) => chosen.has(row));
};
