/**
 * Tasks with known answers, in the style of S-NIAH (find), OOLONG (aggregate over all lines) and
 * OOLONG-Pairs (compare all pairs). An input is lines of `day | user | question`; nothing in a line
 * names the class of its question.
 *
 * 1. The same task, size and seed give the same bytes and the same answer.
 * 2. The answer is known from how the lines were drawn: nothing here reads a question.
 * 3. There are 48 questions, and all of them stand in every input of 8 thousand characters and
 *    more.
 */

import { closeSync, openSync, writeSync } from 'node:fs';
import { seeded, shuffle, uniform } from './seeded.js';

export const taskNames = ['find', 'aggregate', 'pairs'] as const;
export type TaskName = (typeof taskNames)[number];
export type ShapeTask = { readonly question: string; readonly answer: string };

export const classNames = ['location', 'person', 'number', 'time', 'reason', 'manner'] as const;
type ClassName = (typeof classNames)[number];

const forms: Readonly<Record<ClassName, readonly string[]>> = {
  location: ['In which town was * born?', 'Where does * live these days?'],
  person: ['Who taught * to swim?', 'Which person wrote most about *?'],
  number: ['How many brothers had *?', 'What was the weight in kilograms of *?'],
  time: ['When did * retire for good?', 'In which year was * first paid?'],
  reason: ['Why did * leave home so early?', 'For what reason was * fined?'],
  manner: ['How did * learn to read?', 'By what means was * rescued at sea?'],
};
const subjects = ['the chess champion', 'the painter', 'the founder of the mill', 'the singer'];
const pool = classNames.flatMap((name, place) =>
  forms[name].flatMap((form) =>
    subjects.map((subject) => ({ text: form.replace('*', subject), place })),
  ),
);

const harbours = ['Lisbon', 'Antwerp', 'Trieste', 'Bergen', 'Riga', 'Cadiz', 'Odessa', 'Tunis'];
const LINE_LENGTH = 70;
const DAY_MS = 24 * 60 * 60 * 1_000;

/** Enough users and days that about half of all pairs meet, at every size. */
const sizesOf = (lines: number): { readonly users: number; readonly days: number } => {
  const users = Math.min(2_000, Math.ceil(lines / 10));
  return { users, days: Math.ceil(lines ** 2 / (0.7 * classNames.length * users ** 2)) };
};

/** Which pairs of users meet: have an entry of the same class on the same day. */
const countPairs = (met: ReadonlyMap<number, ReadonlySet<number>>, users: number): number => {
  const marks = new Uint8Array(users * users);
  for (const group of met.values()) {
    for (const one of group)
      for (const other of group) if (one < other) marks[one * users + other] = 1;
  }
  return marks.reduce((sum, mark) => sum + mark, 0);
};

/** Writes a text piece by piece; the size may be far over what a program should hold. */
const openWriter = (file: string) => {
  const handle = openSync(file, 'w');
  let waiting: string[] = [];
  const flush = (): void => {
    writeSync(handle, waiting.join(''));
    waiting = [];
  };
  return {
    add(line: string): void {
      if (waiting.push(`${line}\n`) > 10_000) flush();
    },
    close(): void {
      flush();
      closeSync(handle);
    },
  };
};

/** Needles among the lines: one is asked for, the others say the same of other harbours. */
const drawNeedles = (random: () => number, lines: number) => {
  const places = new Map<number, string>();
  const values = harbours.map(() => String(1_000_000 + uniform(random, 9_000_000)));
  for (const [index, harbour] of harbours.entries()) {
    let place = uniform(random, lines);
    while (places.has(place)) place = uniform(random, lines);
    places.set(place, `The secret number of the harbour of ${harbour} is ${values[index]}.`);
  }
  return { places, wanted: values[0] ?? '' };
};

const questions: Readonly<Record<TaskName, string>> = {
  find: `What is the secret number of the harbour of ${harbours[0]}?`,
  aggregate: `How many entries belong to each class (${classNames.join(', ')})? Reply as "class: count, …".`,
  pairs: `How many pairs of users share a class (${classNames.join(', ')}) on the same day?`,
};

/**
 * Writes an input of about `characters` characters and gives what is asked about it, with the
 * answer.
 */
export const writeTask = (
  name: TaskName,
  characters: number,
  file: string,
  seed = 1,
): ShapeTask => {
  const random = seeded(seed);
  const lines = Math.floor(characters / LINE_LENGTH);
  const { users, days } = sizesOf(lines);
  const first = shuffle(pool, random);
  const needles = drawNeedles(random, lines);
  const counts = classNames.map(() => 0);
  const met = new Map<number, Set<number>>();
  const writer = openWriter(file);
  for (let line = 0; line < lines; line++) {
    const entry = first[line] ?? pool[uniform(random, pool.length)];
    if (entry === undefined) throw new Error('there are no questions to draw from');
    const day = uniform(random, days);
    const user = uniform(random, users);
    counts[entry.place] = (counts[entry.place] ?? 0) + 1;
    const key = day * classNames.length + entry.place;
    met.set(key, (met.get(key) ?? new Set()).add(user));
    const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
    const needle = name === 'find' ? needles.places.get(line) : undefined;
    writer.add(`${date} | user ${String(user).padStart(5, '0')} | ${needle ?? entry.text}`);
  }
  writer.close();
  const answers: Readonly<Record<TaskName, () => string>> = {
    find: () => needles.wanted,
    aggregate: () =>
      classNames.map((className, place) => `${className}: ${counts[place]}`).join(', '),
    pairs: () => String(countPairs(met, users)),
  };
  return { question: questions[name], answer: answers[name]() };
};
