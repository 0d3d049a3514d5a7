import { type Contestant, contestants, type Heat, openArena, type Task } from './contest.js';
import { median } from './figures.js';

/** Overhead of a tool round, start to the first request, and peak memory, against the minimal loop. */

const table = (head: string, rows: readonly (readonly [string, number, number])[]): string =>
  [
    `| ${head} | minimal loop | pawl | ratio |`,
    '|---|--:|--:|--:|',
    ...rows.map(
      ([name, floor, own]) =>
        `| ${name} | ${floor.toFixed(1)} | ${own.toFixed(1)} | ${(own / floor).toFixed(2)} |`,
    ),
  ].join('\n');

/** Heats in alternation, so that both meet the same machine. */
const race = async (task: Task, times: number): Promise<Readonly<Record<Contestant, readonly Heat[]>>> => {
  const arena = await openArena();
  const heats: Record<Contestant, Heat[]> = { 'minimal loop': [], pawl: [] };
  try {
    for (const contestant of contestants) await arena.heat(contestant, { rounds: 2, caches: 'kept' });
    for (let time = 0; time < times; time++) {
      for (const contestant of contestants) heats[contestant].push(await arena.heat(contestant, task));
    }
  } finally {
    await arena.close();
  }
  return heats;
};

const medianGap = (heats: readonly Heat[], from = 0, to?: number): number =>
  median(heats.flatMap((heat) => heat.gapsMs.slice(from, to)));

export const benchRounds = async (): Promise<string> => {
  const short = await race({ rounds: 20, caches: 'kept' }, 7);
  const long = await race({ rounds: 200, caches: 'kept' }, 7);
  const row = (name: string, figure: (heats: readonly Heat[]) => number, of = long) =>
    [name, figure(of['minimal loop']), figure(of.pawl)] as const;
  const early = row('rounds 10–29 of 200', (heats) => medianGap(heats, 9, 29));
  const late = row('the last 20 of 200', (heats) => medianGap(heats, 180));
  const growth = late[2] / late[1] / (early[2] / early[1]);
  return [
    table('median gap between reply and next request, ms', [
      row('20 rounds', medianGap, short),
      row('200 rounds', medianGap),
      early,
      late,
    ]),
    '',
    `Our ratio over the last 20 rounds is ${growth.toFixed(2)} times our ratio over rounds 10–29.`,
    '',
    table('peak memory, MB', [row('200 rounds', (heats) => median(heats.map((heat) => heat.peakMegabytes)))]),
    '',
    `Requests of pawl in 200 rounds: ${long.pawl.map((heat) => heat.requests).join(', ')}; bytes of its first: ${long.pawl[0]?.firstRequestBytes}.`,
  ].join('\n');
};

export const benchFirstRequest = async (): Promise<string> => {
  const warm = await race({ rounds: 0, caches: 'kept' }, 15);
  const cold = await race({ rounds: 0, caches: 'fresh' }, 7);
  const figure = (heats: readonly Heat[]) => median(heats.map((heat) => heat.firstRequestMs));
  return table('from start to the first request, ms', [
    ['median of 15', figure(warm['minimal loop']), figure(warm.pawl)],
    ['the first start ever, median of 7', figure(cold['minimal loop']), figure(cold.pawl)],
  ]);
};
