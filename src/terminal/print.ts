import { joinSafe, makeSafe, type Safe, safe, styleSafe } from './safe-text.js';
import {
  type Backdrop,
  type Background,
  backdropOf,
  backgroundIn,
  codeOf,
  type Depth,
  depthIn,
  endOf,
  type Style,
} from './theme.js';
import { columnsOf, wrapWords } from './width.js';

/** How text is drawn on a stream: colours, width, background. */
export type Look = {
  readonly colour: 'yes' | 'no';
  /** Current width of the window. */
  readonly columns: number;
  readonly background?: Background;
  /** Absent is `sixteen`. */
  readonly depth?: Depth;
  /** `yes`: whole lines only, nothing is drawn again; for screen readers, and terminals that can't move their cursor. */
  readonly plain?: 'yes' | 'no';
};

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== '0';

/** The size of the window; a terminal that reports 0 (a serial line, some CI) does not know it and gets the usual one. */
export const windowSize = (columns?: number, rows?: number) => ({
  columns: columns || 80,
  rows: rows || 24,
});

/** A terminal that can't move its cursor, or is not to. It is known before any file is read: drawing begins first. */
export const isBare = (environment: NodeJS.ProcessEnv): boolean =>
  environment.TERM === 'dumb' || isSet(environment.PAWL_PLAIN);

/** Escapes only for a terminal that wants them: `NO_COLOR` and `TERM=dumb` say no, `FORCE_COLOR` yes. */
const wantsColour = (stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): boolean => {
  if (isBare(environment) || environment.FORCE_COLOR === '0') return false;
  if (isSet(environment.FORCE_COLOR)) return true;
  return stream.isTTY && (environment.NO_COLOR ?? '') === '';
};

export const lookOf = (stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): Look => ({
  colour: wantsColour(stream, environment) ? 'yes' : 'no',
  get columns() {
    return windowSize(stream.columns).columns;
  },
  background: backgroundIn(environment),
  depth: depthIn(environment),
  plain: isBare(environment) ? 'yes' : 'no',
});

export const paint = (look: Look, style: Style, text: Safe): Safe => {
  if (look.colour === 'no' || text === '') return text;
  const code = codeOf(style, look.background ?? 'unknown', look.depth);
  return styleSafe(text, code, endOf(code));
};

/** Output of programs and text of models, made safe; a lone carriage return, as of a progress bar, begins a new line. */
export const harmless = (text: string): Safe => makeSafe(text.replace(/\r\n?/g, '\n'));

/** One line of foreign text, cut to `columns` with an ellipsis. */
export const oneLine = (text: string, columns: number): Safe => {
  const line = makeSafe(text.replace(/\s+/g, ' ').trim());
  return line.length <= columns ? line : safe`${line.slice(0, Math.max(1, columns - 1))}…`;
};

/** Whether the terminal can draw background colours. */
export const hasBackdrops = ({ colour, background = 'unknown', depth = 'sixteen' }: Look): boolean =>
  colour === 'yes' && backdropOf('typed', background, depth) !== null;

/** Text on a backdrop; as it is where there are none. */
export const paintOn = (look: Look, backdrop: Backdrop, text: Safe): Safe => {
  const code = backdropOf(backdrop, look.background ?? 'unknown', look.depth ?? 'sixteen');
  return look.colour === 'no' || code === null || text === '' ? text : styleSafe(text, code, endOf(code));
};

/** Text with blanks behind it up to `columns`. */
export const filled = (text: Safe, columns: number): Safe =>
  safe`${text}${safe` `.repeat(Math.max(0, columns - columnsOf(text)))}`;

/** The user's text above the answer: on a background colour, or bold without one. */
export const paintTyped = (look: Look, text: string): Safe => {
  const lines = makeSafe(text.trim()).split('\n');
  const rows = lines.flatMap((line, index) =>
    wrapWords(line, Math.max(8, look.columns - 4)).map((row, part) =>
      index + part === 0 ? safe`> ${row}` : safe`  ${row}`,
    ),
  );
  if (!hasBackdrops(look))
    return joinSafe([safe``, ...rows.map((row) => paint(look, 'bold', row))], safe`\n`);
  const wide = Math.max(...rows.map(columnsOf)) + 1;
  const painted = rows.map((row) => paintOn(look, 'typed', paint(look, 'bold', filled(row, wide))));
  return joinSafe([safe``, ...painted], safe`\n`);
};

/** Lines of a sent text that are shown of a resumed session: the first and the last ones. */
const FIRST_LINES = 8;
const LAST_LINES = 4;

/** A text that was sent, without its middle where it is long: pastes and outputs can be. */
export const shortened = (text: string): string => {
  const lines = text.trim().split('\n');
  const left = lines.length - FIRST_LINES - LAST_LINES;
  if (left < 2) return text;
  return [...lines.slice(0, FIRST_LINES), `… ${left} more lines`, ...lines.slice(-LAST_LINES)].join('\n');
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

export const formatCost = (costUsd: number | null): Safe => {
  if (costUsd === null) return safe`price unknown`;
  return costUsd > 0 && costUsd < 0.01 ? safe`<$0.01` : safe`$${makeSafe(costUsd.toFixed(2))}`;
};

export const formatTokens = (count: number): Safe => {
  if (count < 1_000) return safe`${count}`;
  return count < 1_000_000
    ? safe`${makeSafe((count / 1_000).toFixed(1))}k`
    : safe`${makeSafe((count / 1_000_000).toFixed(1))}M`;
};

const twoDigits = (part: number): Safe => makeSafe(String(part).padStart(2, '0'));

/** Tenths of a second up to ten, then whole ones. */
export const formatSeconds = (durationMs: number): Safe => {
  if (durationMs < 9_950) return safe`${makeSafe((Math.max(0, durationMs) / 1_000).toFixed(1))}s`;
  const seconds = Math.round(durationMs / 1_000);
  return seconds < 60 ? safe`${seconds}s` : safe`${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
};

/** A warning as one line. */
export const warningText = (text: string): Safe => safe`! ${harmless(text)}`;

/** A time as people write it here, to the minute. */
export const formatWhen = (at: number): Safe => {
  const time = new Date(at);
  const day = safe`${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())}`;
  return safe`${day} ${twoDigits(time.getHours())}:${twoDigits(time.getMinutes())}`;
};
