/**
 * All rows of a question about a tool call: its subject (a command, a change, a plan), facts about
 * it, and the answers. Each row of the subject begins with a bar, so its text can't imitate ours.
 *
 * From top to bottom: the rows of a question; its answers; its subject; its facts; and
 * `revealLine`, which lays out text so that nothing in it can hide: a mark stands for what nobody
 * would see. `Safe` is text that can't control the terminal.
 */

import type { ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import type {
  ApprovalChoice,
  ApprovalDescription,
  OddCharacter,
} from '@pawl/agent/policy/approval-question';
import { isNeedsReason } from '@pawl/agent/policy/presets';
import { commandRows, diffRows } from './diff-rows.js';
import { createBlocks, renderMarkdown } from './markdown.js';
import { harmless, indentWords, type Look, lineSign, oneLine, paint } from './paint.js';
import { joinSafe, makeSafe, type Safe, safe, visibleMark } from './safe-text.js';

/** How rows are laid out. `show` styles a mark. */
type RowStyle = { readonly look: Look; readonly columns: number; readonly show: ShowMark };

/** An answer in a terminal. `folder`: a rule for ever, in this folder. */
export type TerminalAnswer = ApprovalChoice['answer'] | 'folder';

/** A call as the terminal describes it, with the answers that a terminal has. */
export type TerminalQuestion = Omit<ApprovalDescription, 'choices'> & {
  readonly choices: readonly { readonly answer: TerminalAnswer; readonly allows: string }[];
};

/** All rows, at most `columns` wide; facts and answers at most `wordColumns`. */
export const questionRows = (
  description: TerminalQuestion,
  look: Look,
  columns: number,
  wordColumns = columns,
): readonly Safe[] => [
  ...subjectAndFacts(description, look, columns, wordColumns),
  ...answerRows(description, look, wordColumns),
];

/** The command or the change, and its circumstances. */
export const subjectAndFacts = (
  description: TerminalQuestion,
  look: Look,
  columns: number,
  wordColumns = columns,
): readonly Safe[] => {
  const rowStyle = yellowMarks(look, columns);
  const indented = (text: string, style: 'dim' | 'yellow'): readonly Safe[] =>
    revealWords(text, wordColumns - 2 - MARGIN, rowStyle.show).map(
      (row) => safe`  ${paint(look, style, row)}`,
    );
  return [
    ...subjectRows(description.subject, rowStyle),
    ...callFacts(description).flatMap(({ text, warns }) =>
      indented(text, warns ? 'yellow' : 'dim'),
    ),
  ];
};

/** The answers, each with what it allows. */
export const answerRows = (
  { choices, subject }: TerminalQuestion,
  look: Look,
  columns: number,
): readonly Safe[] =>
  choices.flatMap((choice) => choiceRows(subject.kind, choice, yellowMarks(look, columns)));

/** A text or a unified diff in full, at most `columns` wide. */
export const contentRows = (
  content: string,
  kind: 'text' | 'diff',
  look: Look,
  columns: number,
): readonly Safe[] => {
  const rowStyle = yellowMarks(look, columns);
  return kind === 'diff' ? changeRows({ ...look, columns }, content) : textRows(content, rowStyle);
};

/** The layout of a question: marks (signs for characters that nobody would see) are yellow. */
const yellowMarks = (look: Look, columns: number): RowStyle => ({
  look,
  columns,
  show: (mark) => paint(look, 'yellow', mark),
});

/**
 * What an MCP server asks, indented and made safe: the words and the names are the server's.
 * `choices`: whether those of its fields follow, by their numbers.
 */
export const serverQuestionRows = (
  { server, message, asks }: ServerQuestion,
  columns: number,
  choices: 'withChoices' | 'withoutChoices',
): readonly Safe[] => {
  const fields = (asks.kind === 'form' ? asks.fields : []).flatMap(
    ({ label, isRequired, type }): readonly Safe[] => [
      makeSafe(`- ${label}${isRequired ? '' : ' (may be left out)'}`),
      ...('choices' in type && choices === 'withChoices'
        ? type.choices.map((choice, index) => makeSafe(`  ${index + 1}  ${choice.label}`))
        : []),
    ],
  );
  const address =
    asks.kind === 'address' ? [safe`Open it yourself if you trust it: ${harmless(asks.url)}`] : [];
  return [
    safe`? The MCP server ${oneLine(server, columns)} asks:`,
    ...[harmless(message), ...fields, ...address].map((text) => indentWords(text, columns)),
  ];
};

// ---- The answers ----

const LETTERS: Readonly<Record<TerminalAnswer, string>> = {
  once: 'y',
  always: 'a',
  prefix: 'p',
  session: 's',
  folder: 'P',
  no: 'n',
  reply: 't',
  edit: 'e',
  ...({ 1: '1', 2: '2', 3: '3', 4: '4' } as const),
};

const WORDS: Readonly<Record<TerminalAnswer, string>> = {
  once: 'yes, once',
  always: 'this session',
  prefix: 'this session',
  session: 'this session',
  folder: 'always in this folder',
  no: 'no',
  reply: 'type',
  edit: 'edit',
  ...({ 1: '', 2: '', 3: '', 4: '' } as const),
};

export const answerLetter = (answer: TerminalAnswer): string => LETTERS[answer];

/**
 * The answer that a typed letter means; undefined if it means none. Only Y and N may be capitals:
 * `p` and `P` are two answers, `a` is one and `A` answers all questions.
 */
export const answerForLetter = (letter: string): TerminalAnswer | undefined => {
  const typed = /^[YN]$/.test(letter) ? letter.toLowerCase() : letter;
  const answers = Object.keys(LETTERS) as TerminalAnswer[]; // Safe: the type of its keys
  return answers.find((answer) => LETTERS[answer] === typed);
};

/** Words that fit a plan, and a question of the model, better. */
const WORDS_OF_KIND: Readonly<Record<string, string>> = {
  'plan once': 'yes',
  'question no': 'skip',
};

/** The letter, then its meaning; further rows are indented. */
const choiceRows = (
  kind: TerminalQuestion['subject']['kind'],
  { answer, allows }: TerminalQuestion['choices'][number],
  { look, columns, show }: RowStyle,
): readonly Safe[] =>
  revealWords(
    `${WORDS_OF_KIND[`${kind} ${answer}`] ?? WORDS[answer]}: ${allows}`.replace(/^: /, ''),
    columns - 5 - MARGIN,
    show,
  ).map((row, index) =>
    index === 0
      ? safe`  ${paint(look, 'bold', makeSafe(LETTERS[answer]))}  ${row}`
      : safe`     ${row}`,
  );

// ---- The subject ----

const subjectRows = (
  { kind, text }: TerminalQuestion['subject'],
  rowStyle: RowStyle,
): readonly Safe[] => {
  if (kind === 'change') return changeRows({ ...rowStyle.look, columns: rowStyle.columns }, text);
  if (kind === 'command') return shellRows(text, rowStyle);
  if (kind === 'plan') return planRows(text, rowStyle);
  return kind === 'question' ? proseRows(text, rowStyle) : textRows(text, rowStyle);
};

/** The bar before the further rows of a line. Before its first row stands `lineSign`'s bar. */
const CONTINUATION_BAR = safe`┆`;
const BAR_COLUMNS = 2;
/** Some terminals draw the bars two columns wide. */
const MARGIN = 2;

/** Rows of one line, each after a bar. */
const withBars = (look: Look, rows: readonly Safe[]): readonly Safe[] =>
  rows.map(
    (row, index) =>
      safe`${paint(look, 'dim', index === 0 ? lineSign(look, '│') : CONTINUATION_BAR)} ${row}`,
  );

/** Text as it is, line by line. */
const textRows = (text: string, { columns, show, look }: RowStyle): readonly Safe[] =>
  text
    .split('\n')
    .flatMap((line) => withBars(look, revealLine(line, columns - BAR_COLUMNS - MARGIN, show)));

/** Text for people, broken between words. `style` colours whole rows, so marks have no colour. */
const proseRows = (
  text: string,
  { columns, look }: RowStyle,
  style: (row: Safe) => Safe = (row) => row,
): readonly Safe[] =>
  text.split('\n').flatMap((line) => {
    const rows = revealWords(line, columns - BAR_COLUMNS - MARGIN, (mark) => mark);
    return withBars(look, rows.map(style));
  });

/** Only the letters and digits of a text, to compare what is said. */
const letters = (text: string): string => text.replace(/[^\p{L}\p{M}\p{N}]/gu, '');

/** Most columns that a row without styles takes on any terminal. Lines of tables may be cut. */
const columnsOnAny = (row: string): number =>
  /^[\u2500-\u257f ]*$/.test(row) ? 0 : row.replace(/[^ -~]/gu, '  ').length;

/** The first line of a code block. The language in it is not shown. */
const FENCE_LINE = /^ {0,3}(?:`{3,}|~{3,})[\w+-]{0,16}\n/;

/**
 * A block of Markdown as answers are drawn; null if that would hide something: a letter that is
 * not shown, or one behind the edge of some terminal. Rows are at most `room` wide.
 */
const drawBlock = (
  block: string,
  look: Look,
  columns: number,
  room = columns,
): readonly Safe[] | null => {
  const rows = renderMarkdown({ ...look, colour: 'no' }, block, room, 'rows');
  const tooWide = Math.max(0, ...rows.map(columnsOnAny)) - columns;
  // drawn again with as many columns less, down to half of the width
  if (tooWide > 0)
    return room - tooWide < columns / 2 ? null : drawBlock(block, look, columns, room - tooWide);
  const isWhole = letters(rows.join('')) === letters(block.replace(FENCE_LINE, ''));
  return isWhole ? renderMarkdown(look, block, room, 'rows') : null;
};

/** A plan: its title, then Markdown. A block that would hide something stays as it was written. */
const planRows = (text: string, rowStyle: RowStyle): readonly Safe[] => {
  const { look, columns } = rowStyle;
  const [title = '', ...lines] = text.split('\n');
  // Marks are set before the Markdown is drawn, so that the renderer can't drop a character.
  const visible = lines.map((line) =>
    joinSafe(revealLine(line.trimEnd(), Number.MAX_SAFE_INTEGER, (mark) => mark)),
  );
  // `add` returns the finished blocks (paragraphs, lists, code), `take` the last one.
  const blocks = createBlocks();
  const body = [...blocks.add(visible.join('\n')), blocks.take()]
    .map((block) => block.replace(/^\n+|\s+$/g, ''))
    .filter((block) => block !== '')
    .flatMap((block, index) => {
      const rows = drawBlock(block, look, columns - BAR_COLUMNS - MARGIN);
      const shown = rows?.flatMap((row) => withBars(look, [row])) ?? proseRows(block, rowStyle);
      return index === 0 ? shown : [...withBars(look, [safe``]), ...shown];
    });
  return [...proseRows(title, rowStyle, (row) => paint(look, 'heading', row)), ...body];
};

/** A command, in the colours of a shell. `commandRows` colours the marks too. */
const shellRows = (text: string, { columns, look }: RowStyle): readonly Safe[] =>
  text.split('\n').flatMap((line) => {
    const rows = revealLine(line, columns - BAR_COLUMNS - MARGIN, (mark) => mark);
    return withBars(look, commandRows(look, rows));
  });

/** A change that is to be read: nothing in it can hide, and it is shown to its end. */
const changeRows = (look: Look, diff: string): readonly Safe[] =>
  diffRows(look, diff, {
    indent: 2,
    limit: Number.POSITIVE_INFINITY,
    lay: (line, columns) => revealLine(line, columns, (mark) => mark),
  }).rows;

// ---- Facts about the call ----

const oddText = (odd: readonly OddCharacter[]): string =>
  odd
    .map(({ code, name, count }) => {
      const [, what] = /^run of (.*)/.exec(name) ?? [];
      return what === undefined ? `${code} ${name} ×${count}` : `${count} ${what} in a row`;
    })
    .join(', ');

const durationText = (limitMs: number): string =>
  limitMs < 60_000 ? `${limitMs / 1_000} s` : `${Math.round(limitMs / 6_000) / 10} min`;

/** What a command asks for beyond the sandbox, in words. */
const NEEDS = {
  repository: 'changes git folders (.git); the history is kept',
  network: 'leaves the sandbox: it can use the network',
  outside: 'leaves the sandbox and the workspace: it can do what you can do',
} as const;

/** A path in the folder from there on; any other one whole. */
export const nearPath = (path: string, folder: string): string =>
  path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;

/** One line about a call. `warns`: it can do more than the user may expect. */
type CallFact = { readonly text: string; readonly warns: boolean };

const plainFact = (text: string): CallFact => ({ text, warns: false });
const warning = (text: string): CallFact => ({ text, warns: true });

/** A program of the system by its name, any other one by its path. */
const programName = (program: string): string =>
  program.replace(/^(?:\/usr)?\/bin\/(?=[^/]+$)/, '');

const reasonFact = (kind: TerminalQuestion['subject']['kind'], why: string): readonly CallFact[] =>
  kind === 'question' ? [] : [plainFact(kind === 'plan' ? why : `reason: ${why}`)];

/** Facts about the call, in the order in which they are shown. */
export const callFacts = (description: TerminalQuestion): readonly CallFact[] => {
  const { subject, folder, timeLimitMs, background, needs, paths, hosts, programs, why } =
    description;
  const isCommand = subject.kind === 'command';
  const files = isCommand ? [] : paths.map((path) => `file: ${nearPath(path, folder)}`);
  const hasTimeLimit = isCommand && !background;
  return [
    ...files.map(plainFact),
    ...(programs.length === 0 ? [] : [plainFact(`runs ${programs.map(programName).join(', ')}`)]),
    ...(isCommand ? [plainFact(`folder: ${folder}`)] : []),
    ...(hosts.length === 0 ? [] : [plainFact(`host: ${hosts.join(', ')}`)]),
    ...(hasTimeLimit && timeLimitMs !== null
      ? [plainFact(`time limit: ${durationText(timeLimitMs)}`)]
      : []),
    ...(background ? [warning('keeps running in the background until the session ends')] : []),
    // a path that the reason names already is not said twice
    ...description.protectedPaths
      .filter((path) => !why.includes(path))
      .map((path) => warning(`protected: ${nearPath(path, folder)}`)),
    ...(needs === null ? [] : [warning(isCommand ? NEEDS[needs] : 'leaves the workspace')]),
    ...(description.oddCharacters.length === 0
      ? []
      : [warning(`unusual characters: ${oddText(description.oddCharacters)}`)]),
    ...(needs !== null && isNeedsReason(why) ? [] : reasonFact(subject.kind, why)),
  ];
};

// ---- Text in which nothing can hide ----

/**
 * `revealLine` lays out text so that nothing in it can hide.
 *
 * 1. Every character is visible. Marks stand for invisible characters, characters that control a
 *    terminal or reorder text, and runs of spaces other than an indentation. Text can't imitate a
 *    mark: brackets of marks in the text are marked themselves.
 * 2. No row is wider than the window on any terminal: every character beyond ASCII counts as two
 *    columns.
 */

/**
 * A run of at least this many spaces becomes a mark, and so does every run at the end of a line.
 */
const BLANKS_MIN = 5;
/** An indentation of up to this many spaces, and of a third of a row, is no mark. */
const INDENTATION_MAX = 24;
/** Combining characters on one letter. The ones beyond this number become marks. */
const COMBINING_MAX = 2;

/** Visible characters of ASCII. */
const PLAIN = /^[!-~]$/;
/** Letters, numbers, punctuation and symbols: visible, but for those in `UNSEEN`. */
const SEEN = /^[\p{L}\p{N}\p{P}\p{S}]$/u;
const COMBINING = /^\p{M}$/u;
/** Invisible and blank characters, and the signs that marks consist of, such as `⟨` and `␛`. */
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\u27e8\u27e9\u2400-\u2426\u2800\ufffc]$/u;
const LETTER = /^[\p{L}\p{M}]$/u;

/** A character or a mark, and the most columns it can take. */
type Piece = { readonly text: string; readonly columns: number; readonly isMark: boolean };

const markCharacter = (character: string): Piece => {
  const text = visibleMark(character);
  // Some terminals draw brackets and pictures of control characters two columns wide.
  return { text, columns: text.length === 1 ? 2 : text.length + 2, isMark: true };
};

const spaces = (length: number): readonly Piece[] =>
  Array.from({ length }, () => ({ text: ' ', columns: 1, isMark: false }));

/** Spaces at the start of a row hide nothing that stands after them in the same row. */
const isIndentation = (before: readonly Piece[], length: number, room: number): boolean =>
  before.length === 0 && length <= Math.min(INDENTATION_MAX, room / 3);

/** Spaces; many of them, or some at the end of a line, as a mark. */
const blanks = (length: number, isEnd: boolean): readonly Piece[] => {
  if (length >= BLANKS_MIN || isEnd)
    return [
      {
        text: `⟨${length} ${length === 1 ? 'blank' : 'blanks'}⟩`,
        columns: `⟨${length} blanks⟩`.length + 2, // the brackets may be wide
        isMark: true,
      },
    ];
  return spaces(length);
};

/** The characters of a line; those that nobody would see as marks. */
const splitPieces = (line: string, room: number): readonly Piece[] => {
  const pieces: Piece[] = [];
  /** Spaces in a row, not yet among the pieces. */
  let run = 0;
  /** Combining characters in a row. */
  let combined = 0;
  /** The character before this one; empty if a mark stands for it. */
  let before = '';
  for (const character of line) {
    if (character === ' ') {
      run += 1;
      continue;
    }
    if (run > 0)
      pieces.push(...(isIndentation(pieces, run, room) ? spaces(run) : blanks(run, false)));
    run = 0;
    const combines = COMBINING.test(character);
    combined = combines ? combined + 1 : 0;
    const isOnLetter = combines && combined <= COMBINING_MAX && LETTER.test(before);
    const isVisible = (SEEN.test(character) || isOnLetter) && !UNSEEN.test(character);
    if (PLAIN.test(character)) pieces.push({ text: character, columns: 1, isMark: false });
    else if (isVisible) pieces.push({ text: character, columns: 2, isMark: false });
    else pieces.push(markCharacter(character));
    before = pieces.at(-1)?.isMark === true ? '' : character;
  }
  if (run > 0) pieces.push(...blanks(run, true));
  return pieces;
};

/** Divides a piece that is wider than a row. Each of its characters may take two columns. */
const split = ({ text, isMark }: Piece, columns: number): readonly Piece[] => {
  const size = Math.max(1, Math.floor(columns / 2));
  const parts: Piece[] = [];
  for (let at = 0; at < text.length; at += size)
    parts.push({ text: text.slice(at, at + size), columns: size * 2, isMark });
  return parts;
};

/** Styles a mark. */
type ShowMark = (mark: Safe) => Safe;

/** Pieces as one text, with their marks styled. */
const drawPieces = (pieces: readonly Piece[], show: ShowMark): Safe => {
  const parts: Safe[] = [];
  let plain = '';
  const flush = (): void => {
    if (plain !== '') parts.push(makeSafe(plain));
    plain = '';
  };
  for (const { text, isMark } of pieces) {
    if (isMark) {
      flush();
      parts.push(show(makeSafe(text)));
    } else plain += text;
  }
  flush();
  return joinSafe(parts);
};

/**
 * Like `revealLine`, but breaks between words and drops the space at a break. For
 * sentences that people read, not for what runs.
 */
const revealWords = (line: string, columns: number, show: ShowMark): readonly Safe[] => {
  const lines: string[] = [];
  let row = '';
  for (const word of line.split(/(?<=[^ ]) (?=[^ ])/)) {
    const longer = row === '' ? word : `${row} ${word}`;
    if (row !== '' && revealLine(longer, columns, show).length > 1) {
      lines.push(row);
      row = word;
    } else row = longer;
  }
  return [...lines, row].flatMap((one) => revealLine(one, columns, show));
};

/** One line as rows of at most `columns`. An empty line is one empty row. */
const revealLine = (line: string, columns: number, show: ShowMark): readonly Safe[] => {
  const rows: Safe[] = [];
  let row: Piece[] = [];
  let used = 0;
  // Wide enough for the spaces that start a row (fewer than BLANKS_MIN) and a character after them.
  const room = Math.max(BLANKS_MIN + 4, columns);
  for (const whole of splitPieces(line, room)) {
    for (const piece of whole.columns > room ? split(whole, room) : [whole]) {
      if (used + piece.columns > room) {
        // A space at the end of a row is invisible, so it starts the next row.
        const end = row.findLastIndex(({ text }) => text !== ' ') + 1;
        rows.push(drawPieces(row.slice(0, end), show));
        row = row.slice(end);
        used = row.length; // only spaces, of one column each
      }
      row.push(piece);
      used += piece.columns;
    }
  }
  return [...rows, drawPieces(row, show)];
};
