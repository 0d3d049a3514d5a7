import { type Contestant, type Heat, openArena, type Task } from './contest.js';
import { median } from './figures.js';

/** Overhead of a tool round, start to the first request, and peak memory, against the minimal loop. */

type Row = readonly [name: string, floor: number, own: number];
type Heats = ReadonlyMap<Contestant, readonly Heat[]>;

const table = (head: string, rows: readonly Row[]): string =>
  [
    `| ${head} | minimal loop | pawl | ratio |`,
    '|---|--:|--:|--:|',
    ...rows.map(
      ([name, floor, own]) =>
        `| ${name} | ${floor.toFixed(1)} | ${own.toFixed(1)} | ${(own / floor).toFixed(2)} |`,
    ),
  ].join('\n');

/** Heats in alternation, so that all meet the same machine. */
const race = async (task: Task, times: number, ...others: readonly Contestant[]): Promise<Heats> => {
  const arena = await openArena();
  const contestants: readonly Contestant[] = ['minimal loop', 'pawl', ...others];
  const heats = new Map(contestants.map((contestant) => [contestant, [] as Heat[]]));
  try {
    for (const contestant of contestants) await arena.heat(contestant, { rounds: 2, caches: 'kept' });
    for (let time = 0; time < times; time++) {
      for (const [contestant, run] of heats) run.push(await arena.heat(contestant, task));
    }
  } finally {
    await arena.close();
  }
  return heats;
};

const heatsOf = (heats: Heats, contestant: Contestant): readonly Heat[] => {
  const run = heats.get(contestant);
  if (run === undefined) throw new Error(`${contestant} did not run`);
  return run;
};

type Figure = (heats: readonly Heat[]) => number;

const row = (name: string, heats: Heats, figure: Figure, own: Contestant = 'pawl'): Row => {
  const of = (contestant: Contestant): number => figure(heatsOf(heats, contestant));
  return [name, of('minimal loop'), of(own)];
};

const gapOf =
  (from = 0, to?: number): Figure =>
  (heats) =>
    median(heats.flatMap((heat) => heat.gapsMs.slice(from, to)));

export const benchRounds = async (): Promise<string> => {
  const short = await race({ rounds: 20, caches: 'kept' }, 7, 'pawl in a repository');
  const long = await race({ rounds: 200, caches: 'kept' }, 7, 'pawl without hooks');
  const early = row('rounds 10–29 of 200', long, gapOf(9, 29));
  const late = row('the last 20 of 200', long, gapOf(180));
  const growth = late[2] / late[1] / (early[2] / early[1]);
  const own = heatsOf(long, 'pawl');
  return [
    table('median gap between reply and next request, ms', [
      row('20 rounds', short, gapOf()),
      row('200 rounds', long, gapOf()),
      early,
      late,
      row('200 rounds, `--hooks never`', long, gapOf(), 'pawl without hooks'),
      row('20 rounds in a git repository of 50 files', short, gapOf(), 'pawl in a repository'),
    ]),
    '',
    `Our ratio over the last 20 rounds is ${growth.toFixed(2)} times our ratio over rounds 10–29.`,
    '',
    table('peak memory, MB', [
      row('200 rounds', long, (heats) => median(heats.map((heat) => heat.peakMegabytes))),
    ]),
    '',
    `Requests of pawl in 200 rounds: ${own.map((heat) => heat.requests).join(', ')}; bytes of its first: ${own[0]?.firstRequestBytes}.`,
  ].join('\n');
};

export const benchFirstRequest = async (): Promise<string> => {
  const warm = await race({ rounds: 0, caches: 'kept' }, 15);
  const cold = await race({ rounds: 0, caches: 'fresh' }, 7);
  const figure: Figure = (heats) => median(heats.map((heat) => heat.firstRequestMs));
  return table('from start to the first request, ms', [
    row('median of 15', warm, figure),
    row('the first start ever, median of 7', cold, figure),
  ]);
};
