import type { ApprovalChoice, ApprovalDescription } from '@pawl/agent/policy/approval-question';
import type { OddCharacter } from '@pawl/agent/policy/suspicious-characters';
import { hasBackdrops, type Look, padded, paint, paintOn } from '../paint-text.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';
import { revealLine, revealWords, type ShowMark } from './reveal-text.js';

/**
 * All rows of a question: the command or the change, its circumstances, and the answers.
 *
 * Each row of the command or change begins with a bar, so its text can't imitate ours.
 */

/** Bars at the start of a line, and of its continuation. */
const LINE = safe`│ `;
const GOES_ON = safe`┆ `;
const BAR_COLUMNS = 2;
/** Some terminals draw the bars two columns wide. */
const MARGIN = 2;

type RowStyle = { readonly look: Look; readonly columns: number; readonly show: ShowMark };

const textRows = (text: string, { columns, show, look }: RowStyle): readonly Safe[] =>
  text
    .split('\n')
    .flatMap((line) =>
      revealLine(line, columns - BAR_COLUMNS - MARGIN, show).map(
        (row, index) => safe`${paint(look, 'dim', index === 0 ? LINE : GOES_ON)}${row}`,
      ),
    );

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;
const COLOURS = { '+': 'green', '-': 'red' } as const;
type Sign = keyof typeof COLOURS | ' ';
const isSign = (text: string): text is Sign => text === ' ' || text in COLOURS;

/** Filled with its background colour to the full width, so that a changed line is seen at a glance. */
const paintLine = (look: Look, sign: Sign, text: Safe, columns: number): Safe => {
  if (sign === ' ') return text;
  if (!hasBackdrops(look)) return paint(look, COLOURS[sign], text);
  return paintOn(look, sign === '+' ? 'added' : 'removed', padded(text, columns));
};

/** A unified diff with line numbers. */
const diffRows = (diff: string, paper: RowStyle): readonly Safe[] => {
  const { look, columns, show } = paper;
  const lines = diff.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const digits = String(
    lines.length + Math.max(0, ...lines.map((line) => Number(HUNK.exec(line)?.[2] ?? 0))),
  ).length;
  const room = Math.max(6, columns - digits - 5 - MARGIN);
  const rows: Safe[] = [];
  let before = 0;
  let after = 0;
  for (const line of lines) {
    const hunk = HUNK.exec(line);
    const sign = line.slice(0, 1);
    if (hunk !== null) {
      if (before + after > 0) rows.push(safe`  ${paint(look, 'dim', safe`⋮`)}`);
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      continue;
    }
    if (before + after === 0) continue; // the header repeats the file's name
    if (!isSign(sign)) {
      rows.push(...textRows(line, paper));
      continue;
    }
    const number = String(sign === '-' ? before : after);
    if (sign !== '+') before += 1;
    if (sign !== '-') after += 1;
    for (const [index, part] of revealLine(line.slice(1), room, show).entries()) {
      const numbered = makeSafe((index === 0 ? number : '').padStart(digits));
      const text = safe`${makeSafe(index === 0 ? sign : '┆')} ${part}`;
      rows.push(safe`  ${paint(look, 'dim', numbered)} ${paintLine(look, sign, text, room + 2)}`);
    }
  }
  return rows;
};

const oddText = (odd: readonly OddCharacter[]): string =>
  odd
    .map(({ code, name, count }) =>
      name === 'run of blanks' ? `${count} blanks in a row` : `${code} ${name} ×${count}`,
    )
    .join(', ');

const minutes = (limitMs: number): string =>
  limitMs < 60_000 ? `${limitMs / 1_000} s` : `${Math.round(limitMs / 6_000) / 10} min`;

const NEEDS = {
  repository: 'can change the repository (.git); its history is kept',
  network: 'leaves the sandbox: it can use the network',
  outside: 'leaves the sandbox and the workspace: it can do what you can do',
} as const;

const near = (path: string, folder: string): string =>
  path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;

/** Facts about the call, one line each. */
export const factLines = (description: ApprovalDescription): readonly string[] => {
  const { subject, folder, timeLimitMs, background, needs, paths, hosts, programs, why } = description;
  const isCommand = subject.kind === 'command';
  const files = isCommand ? [] : paths.map((path) => `file: ${near(path, folder)}`);
  return [
    ...files,
    ...programs.map((program) => `program: ${program}`),
    ...(isCommand ? [`folder: ${folder}`] : []),
    ...(hosts.length === 0 ? [] : [`host: ${hosts.join(', ')}`]),
    ...(isCommand && timeLimitMs !== null && !background ? [`time limit: ${minutes(timeLimitMs)}`] : []),
    ...(background ? ['keeps running in the background until the session ends'] : []),
    ...description.protectedPaths
      .filter((path) => !why.includes(path))
      .map((path) => `protected: ${near(path, folder)}`),
    ...(needs === null ? [] : [isCommand ? NEEDS[needs] : 'leaves the workspace']),
    ...(description.oddCharacters.length === 0
      ? []
      : [`unusual characters: ${oddText(description.oddCharacters)}`]),
    `reason: ${why}`,
  ];
};

const LETTERS: Readonly<Record<ApprovalChoice['answer'], string>> = {
  once: 'y',
  always: 'a',
  prefix: 'p',
  session: 's',
  no: 'n',
};
const WORDS: Readonly<Record<ApprovalChoice['answer'], string>> = {
  once: 'yes, once',
  always: 'always',
  prefix: 'always',
  session: 'this session',
  no: 'no',
};

export const letterOf = (answer: ApprovalChoice['answer']): string => LETTERS[answer];

/** The letter, then its meaning; further rows are indented. */
const choiceRows = (
  answer: ApprovalChoice['answer'],
  allows: string,
  { look, columns, show }: RowStyle,
): readonly Safe[] =>
  revealWords(`${WORDS[answer]}: ${allows}`, columns - 5 - MARGIN, show).map((row, index) =>
    index === 0 ? safe`  ${paint(look, 'bold', makeSafe(LETTERS[answer]))}  ${row}` : safe`     ${row}`,
  );

const WARNED = /^(protected|leaves|odd|goes on)/;

/** A text or a unified diff in full, at most `columns` wide. */
export const contentRows = (
  content: string,
  kind: 'text' | 'diff',
  look: Look,
  columns: number,
): readonly Safe[] => {
  const paper: RowStyle = { look, columns, show: (mark) => paint(look, 'yellow', mark) };
  return kind === 'diff' ? diffRows(content, paper) : textRows(content, paper);
};

/** All rows, at most `columns` wide. */
export const questionRows = (
  description: ApprovalDescription,
  look: Look,
  columns: number,
): readonly Safe[] => {
  const paper: RowStyle = { look, columns, show: (mark) => paint(look, 'yellow', mark) };
  const { subject, choices } = description;
  const indented = (text: string, style: 'dim' | 'yellow'): readonly Safe[] =>
    revealWords(text, columns - 2 - MARGIN, paper.show).map((row) => safe`  ${paint(look, style, row)}`);
  return [
    ...(subject.kind === 'change' ? diffRows(subject.text, paper) : textRows(subject.text, paper)),
    ...factLines(description).flatMap((line) => indented(line, WARNED.test(line) ? 'yellow' : 'dim')),
    ...choices.flatMap(({ answer, allows }) => choiceRows(answer, allows, paper)),
  ];
};
