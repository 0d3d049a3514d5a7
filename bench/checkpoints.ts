/**
 * What checkpoints cost: rounds with them against rounds without (`checkpoints = off`). A
 * checkpoint keeps the files of the workspace; a heat is one run of Pawl (contest.ts).
 */

import { type Contestant, type Heat, openArena, type Task } from './contest.js';
import { median } from './figures.js';

/** It changes no file, but its text can't show that. */
const command = (round: number): string => `sh -c true step-${round}`;
/** The frames of a reply take 300 ms together. */
const SLOW_FRAME_MS = 60;
const ROUNDS = 12;
const HEATS = 3;

const PLACES = [
  ['50 files', 'repository'],
  ['100,000 files', 'large repository'],
] as const;

const on = (place: Contestant['place']): Contestant => ({ name: 'on', program: 'pawl', place });
const off = (place: Contestant['place']): Contestant => ({
  ...on(place),
  name: 'off',
  environment: { PAWL_CHECKPOINTS: 'off' },
});

type Heats = Readonly<Record<'on' | 'off', readonly Heat[]>>;

/** The first rounds make the first checkpoint. */
const later = ({ gapsMs }: Heat): readonly number[] => gapsMs.slice(3);
const first = ({ gapsMs }: Heat): readonly number[] => gapsMs.slice(0, 1);

const row = (
  title: string,
  { on, off }: Heats,
  pick: (heat: Heat) => readonly number[],
  goal: string,
): string => {
  const [without, withCheckpoints] = [median(off.flatMap(pick)), median(on.flatMap(pick))];
  return (
    `| ${title} | ${without.toFixed(1)} | ${withCheckpoints.toFixed(1)} | ` +
    `${(withCheckpoints - without).toFixed(1)} | ${(withCheckpoints / without).toFixed(2)} | ${goal} |`
  );
};

/** `npm run bench -- checkpoints` */
export const benchCheckpoints = async (): Promise<string> => {
  const arena = await openArena();
  const lines: string[] = [];
  try {
    for (const [files, place] of PLACES)
      for (const [answer, frameMs] of [
        ['300 ms', SLOW_FRAME_MS],
        ['at once', undefined],
      ] as const) {
        const task: Task = {
          rounds: ROUNDS,
          caches: 'kept',
          command,
          ...(frameMs === undefined ? {} : { frameMs }),
        };
        const heats: Record<'on' | 'off', Heat[]> = { on: [], off: [] };
        await arena.heat(on(place), { ...task, rounds: 2 });
        for (let time = 0; time < HEATS; time++) {
          heats.off.push(await arena.heat(off(place), task));
          heats.on.push(await arena.heat(on(place), task));
        }
        const goal = frameMs === undefined ? '≤ 1.15 times' : '≤ 2 ms more';
        lines.push(row(`${files}, an answer ${answer}`, heats, later, goal));
        if (frameMs === undefined) lines.push(row(`${files}, the first command`, heats, first, ''));
      }
  } finally {
    await arena.close();
  }
  return [
    '| ms a round without changes | off | on | more | ratio | goal |',
    '|---|--:|--:|--:|--:|--:|',
    ...lines,
  ].join('\n');
};
