import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Event } from '../../packages/agent/src/machine/event.js';
import type { Entry } from '../../packages/agent/src/ports/journal.js';

/** The events that every runtime must journal for each story, as a file to read. `UPDATE=1` rewrites it. */

const FILE = new URL('./expected-events.txt', import.meta.url);

/** Facts of one run: times, random numbers, and how much of a cut text had come. */
const OWN_TO_A_RUN: readonly string[] = ['at', 'jitter', 'firstPieceAt'];

/** Characters of a line that are shown; the rest is a hash. */
const SHOWN = 200;

const shorten = (text: string): string =>
  text.length <= SHOWN
    ? text
    : `${text.slice(0, SHOWN)}… sha256 ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;

/** One line: the type, then what else the event holds. */
const eventLine = ({ type, ...facts }: Event, workspace: string): string => {
  const shared = Object.fromEntries(
    Object.entries(facts).filter(([name]) => !OWN_TO_A_RUN.includes(name)),
  );
  const text = JSON.stringify(shared).replaceAll(workspace, '/workspace');
  return text === '{}' ? type : shorten(`${type} ${text}`);
};

export const linesOf = (entries: readonly Entry[], workspace: string): readonly string[] =>
  entries.map(({ event }) => eventLine(event, workspace));

const TITLE = '# ';

export const readExpected = (): ReadonlyMap<string, readonly string[]> => {
  const sections = readFileSync(FILE, 'utf8').split(`\n${TITLE}`);
  return new Map(
    sections.map((section) => {
      const [title = '', ...lines] = section.split('\n');
      return [title.replace(TITLE, ''), lines.filter((line) => line !== '')];
    }),
  );
};

export const writeExpected = (stories: ReadonlyMap<string, readonly string[]>): void => {
  const sections = [...stories].map(([name, lines]) => `${TITLE}${name}\n${lines.join('\n')}`);
  writeFileSync(FILE, `${sections.join('\n\n')}\n`);
};
