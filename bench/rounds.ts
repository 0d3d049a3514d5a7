/**
 * Overhead of a tool round, start to the first request, and peak memory of Pawl, against the
 * minimal loop as the floor. A heat is one run of one contestant, a gap the time from a reply to
 * the next request (contest.ts).
 *
 * From top to bottom: the table; the contestants; heats in alternation; figures; and the two
 * benchmarks.
 */

import { type Contestant, type Heat, openArena, type Task } from './contest.js';
import { median } from './figures.js';

/** `atMost`: the goal for the ratio; absent in rows that only explain another one. */
type Row = {
  readonly name: string;
  readonly floor: number;
  readonly own: number;
  readonly atMost?: number;
};
type Heats = ReadonlyMap<Contestant, readonly Heat[]>;

const table = (head: string, rows: readonly Row[], floor = 'minimal loop'): string =>
  [
    `| ${head} | ${floor} | pawl | ratio | goal |`,
    '|---|--:|--:|--:|--:|',
    ...rows.map(
      ({ name, floor: bare, own, atMost }) =>
        `| ${name} | ${bare.toFixed(1)} | ${own.toFixed(1)} | ${(own / bare).toFixed(2)} | ${atMost === undefined ? '' : `≤ ${atMost}`} |`,
    ),
  ].join('\n');

const MINIMAL: Contestant = { name: 'minimal loop', program: 'minimal loop', place: 'folder' };
/** The case that users have: a repository, and no flag. */
const PAWL: Contestant = { name: 'pawl', program: 'pawl', place: 'repository' };
const WITHOUT_SANDBOX: Contestant = {
  ...PAWL,
  name: 'pawl without the sandbox',
  flags: ['--sandbox', 'off'],
};
const WITHOUT_HOOKS: Contestant = {
  ...PAWL,
  name: 'pawl without hooks',
  flags: ['--hooks', 'never'],
};
const IN_LARGE: Contestant = {
  ...PAWL,
  name: 'pawl in a large repository',
  place: 'large repository',
};
const IN_FOLDER: Contestant = { ...PAWL, name: 'pawl in a folder', place: 'folder' };
const EVERYTHING: Contestant = {
  ...PAWL,
  name: 'pawl with a formatter and auto-commit',
  place: 'repository with a formatter',
  flags: ['--formatter', 'on', '--auto-commit'],
};

/** Heats in alternation, so that all meet the same machine. */
const race = async (
  task: Task,
  times: number,
  contestants: readonly Contestant[],
  arena: Awaited<ReturnType<typeof openArena>>,
): Promise<Heats> => {
  const heats = new Map(contestants.map((contestant) => [contestant, [] as Heat[]]));
  for (const contestant of contestants) await arena.heat(contestant, { rounds: 2, caches: 'kept' });
  for (let time = 0; time < times; time++) {
    for (const [contestant, run] of heats) run.push(await arena.heat(contestant, task));
  }
  return heats;
};

const heatsOf = (heats: Heats, contestant: Contestant): readonly Heat[] => {
  const run = heats.get(contestant);
  if (run === undefined) throw new Error(`${contestant.name} did not run`);
  return run;
};

type Figure = (heats: readonly Heat[]) => number;

type Compared = {
  readonly own?: Contestant;
  readonly floor?: Contestant;
  readonly atMost?: number;
};

const row = (
  name: string,
  heats: Heats,
  figure: Figure,
  { own = PAWL, floor = MINIMAL, atMost }: Compared = {},
): Row => ({
  name,
  floor: figure(heatsOf(heats, floor)),
  own: figure(heatsOf(heats, own)),
  ...(atMost === undefined ? {} : { atMost }),
});

const gapOf =
  (from = 0, to?: number): Figure =>
  (heats) =>
    median(heats.flatMap((heat) => heat.gapsMs.slice(from, to)));
const firstRequest: Figure = (heats) => median(heats.map((heat) => heat.firstRequestMs));
const peak: Figure = (heats) => median(heats.map((heat) => heat.peakMegabytes));

const withArena = async <T>(
  work: (arena: Awaited<ReturnType<typeof openArena>>) => Promise<T>,
): Promise<T> => {
  const arena = await openArena();
  try {
    return await work(arena);
  } finally {
    await arena.close();
  }
};

/**
 * Real models take time to answer: at 50 frames a second the call of a tool is written in some 120
 * ms.
 */
const FRAME_MS = 20;

/** `npm run bench -- rounds`: the goals' cases, in a repository with default settings. */
export const benchRounds = (): Promise<string> =>
  withArena(async (arena) => {
    const contestants = [MINIMAL, PAWL, WITHOUT_SANDBOX, EVERYTHING, IN_LARGE];
    const short = await race({ rounds: 20, caches: 'kept' }, 7, contestants, arena);
    const streamed = await race(
      { rounds: 20, caches: 'kept', frameMs: FRAME_MS },
      5,
      [MINIMAL, PAWL],
      arena,
    );
    const long = await race({ rounds: 200, caches: 'kept' }, 5, [MINIMAL, PAWL], arena);
    const warm = await race({ rounds: 0, caches: 'kept' }, 15, [MINIMAL, PAWL], arena);
    const cold = await race({ rounds: 0, caches: 'fresh' }, 7, [MINIMAL, PAWL], arena);
    const large = { own: IN_LARGE, floor: PAWL, atMost: 1.3 };
    const own = heatsOf(long, PAWL);
    return [
      table('a repository of 50 files, default settings', [
        row('ms a round, 20 rounds', short, gapOf(), { atMost: 1.5 }),
        row('ms a round, 200 rounds', long, gapOf(), { atMost: 1.5 }),
        row('ms a round, 20 rounds, formatter and auto-commit', short, gapOf(), {
          own: EVERYTHING,
          atMost: 3,
        }),
        row('ms a round, 20 rounds, `--sandbox off`', short, gapOf(), { own: WITHOUT_SANDBOX }),
        row(`ms a round, 20 rounds, a frame of the reply each ${FRAME_MS} ms`, streamed, gapOf(), {
          atMost: 1.5,
        }),
        row('ms to the first request', warm, firstRequest, { atMost: 1.4 }),
        row('ms to the first request, the first start ever', cold, firstRequest, { atMost: 2 }),
        row('MB at most, 200 rounds', long, peak, { atMost: 1.1 }),
      ]),
      '',
      table(
        'default settings',
        [row('ms a round, in a repository of 100,000 files', short, gapOf(), large)],
        'pawl, 50 files',
      ),
      '',
      `Requests of pawl in 200 rounds: ${own.map((heat) => heat.requests).join(', ')}; bytes of its first: ${own[0]?.firstRequestBytes}.`,
    ].join('\n');
  });

/**
 * `npm run bench -- more-rounds`: whether rounds become more expensive, and the cost of the parts.
 */
export const benchMoreRounds = (): Promise<string> =>
  withArena(async (arena) => {
    const contestants = [MINIMAL, PAWL, WITHOUT_HOOKS, IN_FOLDER];
    const long = await race({ rounds: 200, caches: 'kept' }, 5, contestants, arena);
    const early = row('rounds 10–29 of 200', long, gapOf(9, 29));
    const late = row('the last 20 of 200', long, gapOf(180));
    const growth = late.own / late.floor / (early.own / early.floor);
    return [
      table('median ms a round', [
        row('200 rounds', long, gapOf()),
        early,
        late,
        row('200 rounds, `--hooks never`', long, gapOf(), { own: WITHOUT_HOOKS }),
        row('200 rounds in a folder without a repository', long, gapOf(), { own: IN_FOLDER }),
      ]),
      '',
      `Our ratio over the last 20 rounds is ${growth.toFixed(2)} times our ratio over rounds 10–29 (goal: 1.2).`,
    ].join('\n');
  });
