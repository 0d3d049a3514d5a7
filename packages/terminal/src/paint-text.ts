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

/** How to draw: colours, width, background. */
export type Look = {
  readonly colour: 'yes' | 'no';
  readonly columns: number;
  readonly background?: Background;
  /** Default: `sixteen`. */
  readonly depth?: Depth;
  /** `yes`: whole lines, no redrawing. For screen readers, and terminals that can't move the cursor. */
  readonly plain?: 'yes' | 'no';
};

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== '0';

/** Size of the window. A terminal that reports 0 (a serial line, some CI) gets the usual size. */
export const windowSize = (columns?: number, rows?: number) => ({
  columns: columns || 80,
  rows: rows || 24,
});

/** Whether to print whole lines only. Read from the environment alone: drawing begins before any file is read. */
export const isBare = (environment: NodeJS.ProcessEnv): boolean =>
  environment.TERM === 'dumb' || isSet(environment.PAWL_PLAIN);

/** Colours are for terminals only. `NO_COLOR` and `TERM=dumb` turn them off, `FORCE_COLOR` on. */
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

/** Untrusted text, made safe. A lone carriage return, as in a progress bar, starts a new line. */
export const harmless = (text: string): Safe => makeSafe(text.replace(/\r\n?/g, '\n'));

/** Untrusted text as one line, cut to `columns` with an ellipsis. */
export const oneLine = (text: string, columns: number): Safe => {
  const line = makeSafe(text.replace(/\s+/g, ' ').trim());
  return line.length <= columns ? line : safe`${line.slice(0, Math.max(1, columns - 1))}…`;
};

/** Whether the terminal can draw background colours. */
export const hasBackdrops = ({ colour, background = 'unknown', depth = 'sixteen' }: Look): boolean =>
  colour === 'yes' && backdropOf('typed', background, depth) !== null;

/** Text on a background colour; unchanged if there are none. */
export const paintOn = (look: Look, backdrop: Backdrop, text: Safe): Safe => {
  const code = backdropOf(backdrop, look.background ?? 'unknown', look.depth ?? 'sixteen');
  return look.colour === 'no' || code === null || text === '' ? text : styleSafe(text, code, endOf(code));
};

/** Text padded with spaces to `columns`. */
export const padded = (text: Safe, columns: number): Safe =>
  safe`${text}${safe` `.repeat(Math.max(0, columns - columnsOf(text)))}`;

/** The user's prompt in the transcript: on a background colour, or bold without one. */
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
  const painted = rows.map((row) => paintOn(look, 'typed', paint(look, 'bold', padded(row, wide))));
  return joinSafe([safe``, ...painted], safe`\n`);
};

/** Lines of a long prompt that a resumed session shows: the first and the last ones. */
const FIRST_LINES = 8;
const LAST_LINES = 4;

/** A prompt without its middle if it is long, for example because of a paste. */
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

/** With tenths below ten seconds, whole seconds above. */
export const formatSeconds = (durationMs: number): Safe => {
  if (durationMs < 9_950) return safe`${makeSafe((Math.max(0, durationMs) / 1_000).toFixed(1))}s`;
  const seconds = Math.round(durationMs / 1_000);
  return seconds < 60 ? safe`${seconds}s` : safe`${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
};

export const warningText = (text: string): Safe => safe`! ${harmless(text)}`;

/** Local date and time, to the minute. */
export const formatWhen = (at: number): Safe => {
  const time = new Date(at);
  const day = safe`${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())}`;
  return safe`${day} ${twoDigits(time.getHours())}:${twoDigits(time.getMinutes())}`;
};
