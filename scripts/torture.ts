/**
 * `npm run torture`: ends the real program at chosen steps of real sessions, goes on with them, and
 * prints what was found. `npm run build` comes first.
 *
 * - `npm run torture`: 1,000 random kills
 * - `npm run torture -- 200`: 200 of them
 * - `npm run torture -- all`: every step of every scenario, before, half-way and after
 * - `npm run torture -- 200 term,fullDisk`: other endings than kill -9
 *
 * PAWL_SEED repeats a run; PAWL_TORTURE_ONLY takes only scenarios whose name has this text.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  buildKillPoints,
  ENDINGS,
  type Ending,
} from '../packages/pawl/test/torture/kill-points.js';
import {
  describeTrial,
  everyTrial,
  type Outcome,
  randomFrom,
  randomTrial,
  recordSteps,
  runAll,
} from '../packages/pawl/test/torture/run-trials.js';
import { scenarios } from '../packages/pawl/test/torture/scenarios.js';
import type { Trial } from '../packages/pawl/test/torture/stage.js';
import { removeFolderSync } from '../test/temporary-folder.js';

const [amount = '1000', endingWords = 'kill'] = process.argv.slice(2);
const seed = Number(process.env.PAWL_SEED ?? Math.floor(Math.random() * 2 ** 31));
const only = process.env.PAWL_TORTURE_ONLY ?? '';

const endings = endingWords.split(',').filter((word): word is Ending => word in ENDINGS);

const counts = new Map<string, number>();
const add = (name: string, count = 1): void =>
  void counts.set(name, (counts.get(name) ?? 0) + count);

/** Counts what came of a trial, and prints its findings. `reached`: its step, where it is killed. */
const watch = ({ trial, end }: Outcome): void => {
  add('trials');
  if ((counts.get('trials') ?? 0) % 50 === 0) console.log(`${counts.get('trials')} trials`);
  if (end.reached) add('interrupted');
  add('kills', end.kills);
  add('results shown after a kill', end.figures.finished);
  add('results unknown after a kill', end.figures.lostResults);
  for (const { kind, text } of end.findings) {
    add(`finding: ${kind}`);
    console.log(`✖ ${describeTrial(trial)}`);
    const at = end.steps.find(({ number }) => number === trial.point?.at);
    if (at !== undefined) console.log(`    ${at.name} ${at.place}`);
    console.log(`    ${kind}: ${text.trim().slice(0, 1_500).replaceAll('\n', '\n    ')}`);
  }
};

const main = async (): Promise<void> => {
  console.log(`PAWL_SEED=${seed}`);
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-torture-'));
  try {
    const library = buildKillPoints(folder);
    const chosen = scenarios.filter(({ name }) => name.includes(only));
    const steps = await recordSteps(chosen, library, watch);
    const all = [...steps.values()].reduce((sum, { length }) => sum + length, 0);
    console.log(`${chosen.length} scenarios, ${all} steps`);
    const random = randomFrom(seed);
    const trials: Iterable<Trial> =
      amount === 'all'
        ? everyTrial(steps)
        : Array.from({ length: Number(amount) }, () =>
            randomTrial(steps, endings, random, { isVaried: true }),
          );
    await runAll(trials, library, watch);
  } finally {
    removeFolderSync(folder);
  }
  for (const [name, count] of [...counts].toSorted()) console.log(`${name}: ${count}`);
  if ([...counts.keys()].some((name) => name.startsWith('finding'))) process.exitCode = 1;
};

await main();
