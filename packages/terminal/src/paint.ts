/**
 * How text looks: styles and colours, columns and rows, and every control sequence that Pawl sends
 * to a terminal.
 *
 * From top to bottom: `Look` and painted text; numbers and times in words; colour codes and the
 * background of the terminal; control sequences; columns and rows; and graphemes (the characters
 * that a person sees). `Safe` is text that can't control the terminal: only this file adds control
 * sequences to it.
 */

import { moneyText, tokensText, type UsageTotals } from '@pawl/agent/machine/settings';
import { durationText, secondsText } from '@pawl/agent/platform/clock';
import { localTime } from '@pawl/agent/platform/text';
import { eastAsianWidth } from 'get-east-asian-width';
import {
  cutSafe,
  joinSafe,
  keepStyles,
  makeSafe,
  type Safe,
  safe,
  styleSafe,
} from './safe-text.js';

/** How to draw: colours, width, background. */
export type Look = {
  readonly colour: 'yes' | 'no';
  readonly columns: number;
  readonly background?: Background;
  /** Absent: styles may use 256 colours, and there are no background colours. */
  readonly depth?: Depth;
  /**
   * `yes`: whole lines, no redrawing. For screen readers, and terminals that can't move the cursor.
   */
  readonly plain?: 'yes' | 'no';
};

const isSet = (value: string | undefined): boolean =>
  value !== undefined && value !== '' && value !== '0';

/** Size of the window. A terminal that reports 0 (a serial line, some CI) gets the usual size. */
export const windowSize = (columns?: number, rows?: number) => ({
  columns: columns || 80,
  rows: rows || 24,
});

/**
 * Whether to print whole lines only, without colours. Read from the environment alone: drawing
 * begins before any settings are read.
 */
export const isPlain = (environment: NodeJS.ProcessEnv): boolean =>
  environment.TERM === 'dumb' || isSet(environment.PAWL_PLAIN);

/** Colours are for terminals only. `NO_COLOR` and `TERM=dumb` turn them off, `FORCE_COLOR` on. */
const wantsColour = (stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): boolean => {
  if (isPlain(environment) || environment.FORCE_COLOR === '0') return false;
  if (isSet(environment.FORCE_COLOR)) return true;
  return stream.isTTY && (environment.NO_COLOR ?? '') === '';
};

export const detectLook = (stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): Look => ({
  colour: wantsColour(stream, environment) ? 'yes' : 'no',
  get columns() {
    return windowSize(stream.columns).columns;
  },
  background: backgroundIn(environment),
  depth: depthIn(environment),
  plain: isPlain(environment) ? 'yes' : 'no',
});

export const paint = (look: Look, style: Style, text: Safe): Safe => {
  if (look.colour === 'no' || text === '') return text;
  const code = styleCode(style, look.background ?? 'unknown', look.depth);
  return styleSafe(text, code, endCode(code));
};

/** Signs at the start of a line, and the words that a screen reader gets for them. */
const SIGN_WORDS = {
  '✓': safe`done:`,
  '✗': safe`failed:`,
  '▸': safe`started:`,
  '·': safe`note:`,
  '!': safe`warning:`,
  '│': safe`|`,
} as const;
const SIGNS = {
  '✓': safe`✓`,
  '✗': safe`✗`,
  '▸': safe`▸`,
  '·': safe`·`,
  '!': safe`!`,
  '│': safe`│`,
};
export type Sign = keyof typeof SIGN_WORDS;

export const lineSign = (look: Look, sign: Sign): Safe =>
  look.plain === 'yes' ? SIGN_WORDS[sign] : SIGNS[sign];

/** Untrusted text, made safe. A lone carriage return, as in a progress bar, starts a new line. */
export const harmless = (text: string): Safe => makeSafe(text.replace(/\r\n?/g, '\n'));

/** Untrusted text as one line, cut to `columns` with an ellipsis. */
export const oneLine = (text: string, columns: number): Safe =>
  cutLine(makeSafe(text.replace(/\s+/g, ' ').trim()), columns);

/** Whether text gets background colours (backdrops): never on an unknown background. */
export const hasBackdrops = ({
  colour,
  background = 'unknown',
  depth = 'sixteen',
}: Look): boolean => colour === 'yes' && backdropCode('typed', background, depth) !== null;

/** Text on a background colour; unchanged if there are none. */
export const paintOn = (look: Look, backdrop: Backdrop, text: Safe): Safe => {
  const code = backdropCode(backdrop, look.background ?? 'unknown', look.depth ?? 'sixteen');
  return look.colour === 'no' || code === null || text === ''
    ? text
    : styleSafe(text, code, endCode(code));
};

/** Text padded with spaces to `columns`. */
export const padded = (text: Safe, columns: number): Safe =>
  safe`${text}${safe` `.repeat(Math.max(0, columns - countColumns(text)))}`;

/** The user's prompt in the transcript: bold, and on a background colour if there is one. */
export const paintTyped = (look: Look, text: string): Safe => {
  const lines = makeSafe(text.trim()).split('\n');
  const rows = lines.flatMap((line, index) =>
    wrapWords(line, Math.max(8, look.columns - 4)).map((row, part) =>
      index + part === 0 ? safe`> ${row}` : safe`  ${row}`,
    ),
  );
  if (!hasBackdrops(look))
    return joinSafe([safe``, ...rows.map((row) => paint(look, 'bold', row))], safe`\n`);
  const longest = rows.reduce((most, row) => Math.max(most, countColumns(row)), 0);
  const wide = Math.min(longest + 1, look.columns - 1);
  const painted = rows.map((row) => paintOn(look, 'typed', paint(look, 'bold', padded(row, wide))));
  return joinSafe([safe``, ...painted], safe`\n`);
};

/** Lines of a long prompt that a resumed session shows: the first and the last ones. */
const FIRST_LINES = 8;
const LAST_LINES = 4;

/** A prompt without its middle if it is long, for example because of a paste. */
export const shortened = (text: string): string => {
  const lines = text.trim().split('\n');
  const cut = lines.length - FIRST_LINES - LAST_LINES;
  if (cut < 2) return text;
  return [...lines.slice(0, FIRST_LINES), `… ${cut} more lines`, ...lines.slice(-LAST_LINES)].join(
    '\n',
  );
};

/** A unified diff with its added and removed lines coloured. */
export const paintDiff = (look: Look, diff: string): readonly Safe[] =>
  makeSafe(diff.trimEnd())
    .split('\n')
    .filter((line) => !/^(Index:|={5,}|\\ No newline)/.test(line))
    .map((line) => {
      if (line.startsWith('+')) return paint(look, 'green', line);
      if (line.startsWith('-')) return paint(look, 'red', line);
      return line.startsWith('@@') ? paint(look, 'cyan', line) : line;
    });

// ---- Numbers and times ----

export const formatCost = (costUsd: number | null): Safe => makeSafe(moneyText(costUsd, 'cents'));

/**
 * Dollars that were spent, as exactly as they are known: estimates count as the most that they can
 * cost, and a call that broke off may have cost more than it reported.
 */
export const formatSpent = (
  costUsd: number | null,
  { estimated, atLeast }: Pick<UsageTotals, 'estimated' | 'atLeast'>,
): Safe => {
  const isAtMost = estimated !== undefined;
  if (costUsd === null || (!isAtMost && !atLeast)) return formatCost(costUsd);
  const bound = !atLeast ? 'at most' : isAtMost ? 'about' : 'at least';
  return makeSafe(`${bound} ${moneyText(costUsd)}`);
};

export const formatTokens = (count: number): Safe => makeSafe(tokensText(count));

export const formatSeconds = (durationMs: number): Safe => makeSafe(secondsText(durationMs));

export const formatDuration = (durationMs: number): Safe => makeSafe(durationText(durationMs));

export const warningText = (text: string): Safe => safe`! ${harmless(text)}`;

/** Local date and time, to the minute. */
export const formatWhen = (at: number): Safe => makeSafe(localTime(at));

// ---- Colour codes, and the background of the terminal ----

/** Background of the terminal. For `unknown` the colours must be readable on both. */
export type Background = 'light' | 'dark' | 'unknown';

/** Codes of Select Graphic Rendition. */
const STYLE_CODES = {
  dim: '2',
  bold: '1',
  italic: '3',
  underline: '4',
  struck: '9',
  red: '31',
  green: '32',
  yellow: '33',
  blue: '34',
  cyan: '36',
  heading: '36',
  link: '36',
  mark: '36',
  code: '36',
  keyword: '35',
  string: '32',
  number: '33',
} as const;

export type Style = keyof typeof STYLE_CODES;

/**
 * The bright colours of the sixteen are unreadable on white; darker ones of the 256 replace them.
 */
const LIGHT_CODES: Partial<Record<Style, string>> = {
  dim: '38;5;242',
  green: '38;5;28',
  string: '38;5;28',
  yellow: '38;5;130',
  number: '38;5;130',
  cyan: '38;5;30',
  heading: '38;5;25',
  link: '38;5;25',
  mark: '38;5;30',
  code: '38;5;30',
};
/**
 * The blue of the sixteen colours is unreadable on black; red and purple are so on the background
 * of a changed line.
 */
const DARK_CODES: Partial<Record<Style, string>> = {
  blue: '94',
  link: '94',
  red: '38;5;210',
  keyword: '38;5;177',
};

/** Readable on white and on black: faint text is not, on many terminals. */
const UNKNOWN_CODES: Partial<Record<Style, string>> = { dim: '38;5;243' };

const CODES_BY_BACKGROUND: Readonly<Record<Background, Partial<Record<Style, string>>>> = {
  light: LIGHT_CODES,
  dark: DARK_CODES,
  unknown: UNKNOWN_CODES,
};

/** `sixteen` uses only codes that every colour terminal knows. */
export const styleCode = (
  style: Style,
  background: Background,
  depth: Depth = 'indexed',
): string => {
  const changed = CODES_BY_BACKGROUND[background][style];
  return changed === undefined || (depth === 'sixteen' && changed.includes(';'))
    ? STYLE_CODES[style]
    : changed;
};

/** Colour depth: 16, 256 or true colour. */
export type Depth = 'sixteen' | 'indexed' | 'true';

export const depthIn = (environment: NodeJS.ProcessEnv): Depth => {
  if (/^(truecolor|24bit)$/i.test(environment.COLORTERM ?? '') || environment.FORCE_COLOR === '3')
    return 'true';
  return /256/.test(environment.TERM ?? '') ? 'indexed' : 'sixteen';
};

/** Background colours: the user's prompt, changed lines of a diff, changed words in them. */
type Backdrop = 'typed' | 'added' | 'addedWord' | 'removed' | 'removedWord';

type Backdrops = Readonly<Record<Backdrop, Readonly<Record<Exclude<Depth, 'sixteen'>, string>>>>;

const BACKDROPS: Readonly<Record<Exclude<Background, 'unknown'>, Backdrops>> = {
  dark: {
    typed: { true: '48;2;48;51;58', indexed: '48;5;237' },
    added: { true: '48;2;22;54;37', indexed: '48;5;22' },
    addedWord: { true: '48;2;38;100;64', indexed: '48;5;28' },
    removed: { true: '48;2;70;28;32', indexed: '48;5;52' },
    removedWord: { true: '48;2;130;46;52', indexed: '48;5;88' },
  },
  light: {
    typed: { true: '48;2;236;238;243', indexed: '48;5;255' },
    added: { true: '48;2;224;246;230', indexed: '48;5;194' },
    addedWord: { true: '48;2;164;226;184', indexed: '48;5;157' },
    removed: { true: '48;2;253;231;231', indexed: '48;5;224' },
    removedWord: { true: '48;2;247;184;188', indexed: '48;5;217' },
  },
};

/** null if text could become unreadable: on an unknown background, or with sixteen colours. */
export const backdropCode = (
  backdrop: Backdrop,
  background: Background,
  depth: Depth,
): string | null =>
  background === 'unknown' || depth === 'sixteen' ? null : BACKDROPS[background][backdrop][depth];

/** The code that ends only the style of `code`: weight, underline and others, or a colour. */
const endCode = (code: string): string => {
  const first = Number(code.split(';')[0]);
  if (first === 1 || first === 2) return '22';
  if (first === 3 || first === 4 || first === 7 || first === 9) return String(first + 20);
  return first >= 40 && first < 50 ? '49' : '39';
};

/** `COLORFGBG` is `foreground;background` (rxvt, Konsole), as numbers of the sixteen colours. */
export const backgroundIn = (environment: NodeJS.ProcessEnv): Background => {
  const last = environment.COLORFGBG?.split(';').at(-1) ?? '';
  if (!/^\d{1,2}$/.test(last)) return 'unknown';
  return Number(last) === 7 || Number(last) === 15 ? 'light' : 'dark';
};

const REPLY = /\u001b\]11;rgba?:([\da-f]{1,4})\/([\da-f]{1,4})\/([\da-f]{1,4})/i;
/** Longer than any reply, so that a reply in several pieces is still found. */
const REPLY_UNITS_MAX = 64;
/** Threshold between dark and light, of 255. */
const LIGHT_FROM = 128;

/** Judges a colour by its perceived brightness. */
const judgeBackground = (parts: readonly string[]): Background => {
  const [red = 0, green = 0, blue = 0] = parts.map(
    (part) => (Number.parseInt(part, 16) / (16 ** part.length - 1)) * 255,
  );
  return 0.299 * red + 0.587 * green + 0.114 * blue >= LIGHT_FROM ? 'light' : 'dark';
};

/** The terminal's background. The answer may come late; rows drawn after it use it. */
type BackgroundWatch = {
  /** Asks the terminal, unless the environment has the answer. */
  ask(): void;
  /**
   * Looks for the terminal's reply in the keyboard input. The key reader removes the reply from it.
   */
  read(typed: string): void;
  known(): Background;
};

export const watchBackground = (
  environment: NodeJS.ProcessEnv,
  write: (text: Safe) => void,
): BackgroundWatch => {
  let known = backgroundIn(environment);
  let pending = '';
  return {
    ask() {
      if (known === 'unknown') write(ASK_BACKGROUND);
    },
    read(typed) {
      if (known !== 'unknown') return;
      pending = (pending + typed).slice(-REPLY_UNITS_MAX);
      const match = REPLY.exec(pending);
      // The last number is complete only if another character follows.
      if (match === null || match.index + match[0].length === pending.length) return;
      known = judgeBackground(match.slice(1));
    },
    known: () => known,
  };
};

// ---- Every control sequence that Pawl sends to a terminal; no other file composes one ----

/** `code`: digits and semicolons of Select Graphic Rendition. */
const beginStyle = (code: string): Safe => keepStyles(`\u001b[${code}m`);
export const CLOSE_STYLES = safe`\u001b[0m`;

/** Begin and end of a synchronized update. The terminal shows all of it in one frame. */
export const BEGIN_UPDATE = safe`\u001b[?2026h`;
export const END_UPDATE = safe`\u001b[?2026l`;
export const WRAP_OFF = safe`\u001b[?7l`;
export const WRAP_ON = safe`\u001b[?7h`;
export const HIDE_CURSOR = safe`\u001b[?25l`;
export const SHOW_CURSOR = safe`\u001b[?25h`;
export const ROW_START = safe`\r`;
export const NEXT_ROW = safe`\r\n`;
export const ERASE_ROW = safe`\r\u001b[K`;
export const ERASE_BELOW = safe`\r\u001b[J`;

/** Inserts empty rows at the cursor's row. The rows below move down. */
export const insertRows = (rows: number): Safe => safe`\u001b[${Math.trunc(rows)}L`;
/** Deletes rows from the cursor's row on. The rows below move up. */
export const deleteRows = (rows: number): Safe => safe`\u001b[${Math.trunc(rows)}M`;
export const moveUp = (rows: number): Safe => safe`\u001b[${Math.trunc(rows)}A`;
export const moveDown = (rows: number): Safe => safe`\u001b[${Math.trunc(rows)}B`;
export const moveRight = (columns: number): Safe => safe`\u001b[${Math.trunc(columns)}C`;

/**
 * Asks the terminal for its background colour. A terminal that doesn't know the question doesn't
 * answer.
 */
const ASK_BACKGROUND = safe`\u001b]11;?\u0007`;

/**
 * Turns on bracketed paste and the Kitty keyboard, which tells Enter from Shift+Enter and Escape
 * from Alt.
 */
export const ENABLE_INPUT_MODES = safe`\u001b[?2004h\u001b[>1u`;
/** Restores the shell's terminal modes, also after a half-drawn row. */
export const RESTORE_TERMINAL = safe`\u001b[?2004l\u001b[<u\u001b[?7h\u001b[?25h\u001b[0m`;

/** Saves the window's title and turns focus reports on; restores both. */
export const ENABLE_TITLE_AND_FOCUS = safe`\u001b[22;2t\u001b[?1004h`;
export const RESTORE_TITLE_AND_FOCUS = safe`\u001b[?1004l\u001b[23;2t`;
/** Asks whether the terminal reports its focus. */
export const ASK_FOCUS = safe`\u001b[?1004$p`;
export const BELL = safe`\u0007`;

/** Text for a title or a notification, which any control character would end. */
const stringText = (text: Safe): Safe =>
  makeSafe(text.replace(/\u001b\[[\d;]*m/g, '').replace(/\p{Cc}/gu, ' '));

/** Whether the terminal understands a title or a notification. Linux' console would print it. */
const knowsStrings = ({ TERM = '' }: NodeJS.ProcessEnv): boolean => TERM !== 'linux';

export const windowTitle = (title: Safe, environment: NodeJS.ProcessEnv): Safe =>
  knowsStrings(environment) ? safe`\u001b]2;${stringText(title)}\u0007` : safe``;

/**
 * A notification of the desktop: OSC 777 for the terminals that know only that, else OSC 9. One of
 * them, since some terminals know both and would show two.
 */
export const notification = (text: Safe, environment: NodeJS.ProcessEnv): Safe => {
  const { TERM = '', VTE_VERSION } = environment;
  if (!knowsStrings(environment)) return safe``;
  const shown = makeSafe(stringText(text).replaceAll(';', ','));
  return VTE_VERSION !== undefined || /^(rxvt|foot)/.test(TERM)
    ? safe`\u001b]777;notify;Pawl;${shown}\u0007`
    : safe`\u001b]9;Pawl: ${shown}\u0007`;
};

/**
 * Puts a text into the clipboard (OSC 52). No terminal says whether it did. The text is `Safe`,
 * since users paste it into other terminals.
 */
export const setClipboard = (text: Safe): Safe =>
  safe`\u001b]52;c;${makeSafe(Buffer.from(text).toString('base64'))}\u0007`;

// ---- Columns and rows ----

/** Colours (CSI … m) and hyperlinks (OSC 8): they have no width. */
const ESCAPE = /\u001b\[[\d;]*m|\u001b\]8;[^\u0007\u001b]*(?:\u0007|\u001b\\)/y;
const ESCAPES = new RegExp(ESCAPE.source, 'g');
/**
 * Characters that form one wide grapheme with others: joiners, emoji selectors, flags, skin tones.
 * Only text with them needs the slow segmenter.
 */
const COMPOSED = /[\u200d\ufe0f\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}]/u;
const ASCII_TEXT = /^[ -~]*$/;

/** The graphemes of text without escapes. */
const textGraphemes = (text: string): Iterable<string> =>
  COMPOSED.test(text) ? splitGraphemes(text) : text;

export const countColumns = (text: string): number => {
  const bare = text.includes('\u001b') ? text.replace(ESCAPES, '') : text;
  if (ASCII_TEXT.test(bare)) return bare.length;
  let columns = 0;
  for (const grapheme of textGraphemes(bare)) columns += graphemeColumns(grapheme);
  return columns;
};

type Piece = { readonly text: string; readonly columns: number };

/** Escapes and graphemes, in order. */
function* splitPieces(line: string): Generator<Piece> {
  let at = 0;
  while (at < line.length) {
    ESCAPE.lastIndex = at;
    const sequence = ESCAPE.exec(line)?.[0];
    if (sequence !== undefined) {
      yield { text: sequence, columns: 0 };
      at += sequence.length;
      continue;
    }
    const next = line.indexOf('\u001b', at + 1);
    const bare = line.slice(at, next < 0 ? line.length : next);
    for (const grapheme of textGraphemes(bare))
      yield { text: grapheme, columns: graphemeColumns(grapheme) };
    at += bare.length;
  }
}

/** What a tab becomes. */
export const TAB = '    ';
/** Codes that only end a style. */
const ENDS = new Set(['22', '23', '24', '29', '39', '49']);

const cutText = (text: string, columns: number): string => {
  const flat = text.replaceAll('\t', TAB);
  if (countColumns(flat) <= columns) return flat;
  let cut = '';
  let used = 0;
  for (const piece of splitPieces(flat)) {
    if (used + piece.columns > columns - 1) break;
    cut += piece.text;
    used += piece.columns;
  }
  return `${cut}…${cut.includes('\u001b') ? CLOSE_STYLES : ''}`;
};

/** Cuts a line to `columns`, with an ellipsis for the missing part. Colours are closed. */
export const cutLine = (line: Safe, columns: number): Safe =>
  joinSafe(cutSafe(line, (text) => [cutText(text, columns)]));

/** The codes of the styles that are on after `sequence`. */
const stylesAfter = (on: readonly string[], sequence: string): readonly string[] => {
  const code = /^\u001b\[([\d;]*)m$/.exec(sequence)?.[1];
  if (code === undefined) return on;
  if (code === '' || code === '0') return [];
  const others = on.filter((other) => endCode(other) !== code);
  return others.length < on.length || ENDS.has(code) ? others : [...on, code];
};

/** Rows of at most `columns`, of one line. Styles are not continued. */
const cutRows = (line: string, columns: number): readonly string[] => {
  if (countColumns(line) <= columns) return [line];
  const rows: string[] = [];
  let row = '';
  let used = 0;
  for (const piece of splitPieces(line)) {
    if (used + piece.columns > columns) {
      rows.push(row);
      row = '';
      used = 0;
    }
    row += piece.text;
    used += piece.columns;
  }
  return [...rows, row];
};

/** The rows of one line: what is on at the end of a row is closed there, and opened in the next. */
const continueStyles = (rows: readonly string[]): readonly string[] => {
  let on: readonly string[] = [];
  return rows.map((row, index) => {
    const opened = on.map(beginStyle).join('') + row;
    for (const sequence of row.match(ESCAPES) ?? []) on = stylesAfter(on, sequence);
    return on.length === 0 || index === rows.length - 1 ? opened : opened + CLOSE_STYLES;
  });
};

/** Breaks `text` into rows of at most `columns`. A colour continues in the next row of its line. */
export const wrapText = (text: Safe, columns: number): readonly Safe[] =>
  cutSafe(text, (whole) =>
    whole
      .replaceAll('\t', TAB)
      .split('\n')
      .flatMap((line) => continueStyles(cutRows(line, Math.max(2, columns)))),
  );

/**
 * A private character in place of a blank. It stands nowhere else: `harmless` replaces it in texts
 * of models and tools.
 */
const UNBROKEN_BLANK = '\ue0f1';

/** Text that is one word to `wrapWords` and `fitWords`, such as a command in a sentence. */
export const unbroken = (text: Safe): Safe =>
  joinSafe(cutSafe(text, (whole) => [whole.replaceAll(' ', UNBROKEN_BLANK)]));

/** Words of one line in rows; only a word that is longer than a row is wider than `columns`. */
const wordRows = (line: string, columns: number): readonly string[] => {
  const rows: string[] = [];
  let row = '';
  // each word with the spaces after it
  for (const word of line.split(/(?<= )(?=[^ ])/)) {
    if (row.trim() !== '' && countColumns((row + word).trimEnd()) > columns) {
      rows.push(row.trimEnd());
      row = '';
    }
    row += word;
  }
  return [...rows, row.trimEnd()];
};

const wrapLines = (
  text: Safe,
  columns: number,
  layRow: (row: string) => readonly string[],
): readonly Safe[] =>
  cutSafe(text, (whole) =>
    whole
      .replaceAll('\t', TAB)
      .split('\n')
      .flatMap((line) => continueStyles(wordRows(line, columns).flatMap(layRow)))
      .map((row) => row.replaceAll(UNBROKEN_BLANK, ' ')),
  );

/** Breaks between words, and within a word that is longer than a row. For the live area. */
export const fitWords = (text: Safe, columns: number): readonly Safe[] =>
  wrapLines(text, columns, (row) => cutRows(row, Math.max(2, columns)));

/**
 * Whether a row stays whole although it is longer than the window. It is one word then: an address,
 * a command or a path, which users copy, as any word of ASCII may be. Others are broken anywhere.
 */
const staysWhole = (row: string): boolean => {
  const bare = row.replace(ESCAPES, '');
  return ASCII_TEXT.test(bare) || bare.includes('://') || bare.includes(UNBROKEN_BLANK);
};

/**
 * Breaks between words, for text that is printed once. An address or a command that is longer than
 * a row stays whole: the terminal wraps it, so a copy of it has no line end.
 */
export const wrapWords = (text: Safe, columns: number): readonly Safe[] =>
  wrapLines(text, columns, (row) => (staysWhole(row) ? [row] : cutRows(row, Math.max(2, columns))));

/** Wrapped words, indented, for a window of `columns`. */
export const indentWords = (text: Safe, columns: number): Safe =>
  joinSafe(
    wrapWords(text, columns - 3).map((row) => safe`  ${row}`),
    safe`\n`,
  );

// ---- Graphemes ----

let segmenter: Intl.Segmenter | null = null;

/**
 * Creates the segmenter with the first text beyond ASCII: creating it takes longer than drawing a
 * screen.
 */
const graphemesBeyondAscii = (text: string): readonly string[] => {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  const graphemes: string[] = [];
  let units = BLOCK_UNITS;
  for (let at = 0; at < text.length; ) {
    const block = Array.from(segmenter.segment(cutBlock(text, at, units)), getSegment);
    const isLast = at + units >= text.length;
    if (!isLast) block.pop(); // it may go on in the next block
    if (block.length === 0) units *= 2;
    for (const grapheme of block) {
      graphemes.push(grapheme);
      at += grapheme.length;
    }
  }
  return graphemes;
};

/** The segmenter takes time with the square of a text's length, so it gets blocks. */
const BLOCK_UNITS = 512;

const getSegment = ({ segment }: Intl.SegmentData): string => segment;

/** The text from `at` on, about `units` long. Never cuts a surrogate pair. */
const cutBlock = (text: string, at: number, units: number): string => {
  const isInPair = (text.codePointAt(at + units - 1) ?? 0) > 0xffff;
  return text.slice(at, at + units + (isInPair ? 1 : 0));
};

const ASCII = /^[\u0000-\u007f]*$/;

/** The graphemes of a text. Each has one or more code points. */
export const splitGraphemes = (text: string): readonly string[] =>
  ASCII.test(text) ? text.split('') : graphemesBeyondAscii(text);

const NO_WIDTH = /^[\p{Mark}\p{Default_Ignorable_Code_Point}\p{Control}]$/u;

/** Columns of a grapheme: 2 for emoji and East Asian letters, 0 for invisible ones, else 1. */
const graphemeColumns = (grapheme: string): number => {
  if (grapheme >= ' ' && grapheme <= '~' && grapheme.length === 1) return 1;
  if (COMPOSED.test(grapheme)) return 2;
  let columns = 0;
  for (const character of grapheme)
    columns += NO_WIDTH.test(character) ? 0 : eastAsianWidth(character.codePointAt(0) ?? 0);
  return columns;
};

/** End of the grapheme at `at`; at the end of the text its length. */
export const graphemeEnd = (text: string, at: number): number => {
  const lineEnd = text.indexOf('\n', at);
  const [first] = splitGraphemes(
    text.slice(at, lineEnd === at ? at + 1 : lineEnd < 0 ? text.length : lineEnd),
  );
  return Math.min(text.length, at + (first?.length ?? 0));
};

/** Start of the grapheme that ends at `at`; at the start of the text 0. */
export const graphemeStart = (text: string, at: number): number => {
  const lineStart = at > 0 && text[at - 1] === '\n' ? at - 1 : text.lastIndexOf('\n', at - 1) + 1;
  const last = splitGraphemes(text.slice(lineStart, at)).at(-1);
  return Math.max(0, at - (last?.length ?? 0));
};

/** The text without its last grapheme, as Backspace leaves it. */
export const dropLast = (text: string): string => text.slice(0, graphemeStart(text, text.length));
