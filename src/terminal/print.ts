import { writeSync } from 'node:fs';
import { type Background, backgroundIn, codeOf, endOf, type Style } from './theme.js';

/** What a stream may show. */
export type Look = {
  readonly colour: 'yes' | 'no';
  /** As wide as the window is now. */
  readonly columns: number;
  readonly background?: Background;
  /** `yes`: whole lines only, nothing is drawn again; for screen readers, and terminals that can't move their cursor. */
  readonly plain?: 'yes' | 'no';
};

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== '0';

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
    return stream.columns ?? 80;
  },
  background: backgroundIn(environment),
  plain: isBare(environment) ? 'yes' : 'no',
});

export const paint = (look: Look, style: Style, text: string): string => {
  if (look.colour === 'no' || text === '') return text;
  const code = codeOf(style, look.background ?? 'unknown');
  return `\u001b[${code}m${text}\u001b[${endOf(code)}m`;
};

/** Text from a model or a tool, made harmless for a terminal: no escapes, no other control characters. */
export const harmless = (text: string): string =>
  text
    .replace(/\r\n/g, '\n')
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (found) => (found === '\r' ? '\n' : '\ufffd'));

/** One line, cut to `columns` with an ellipsis. */
export const oneLine = (text: string, columns: number): string => {
  const line = harmless(text).replace(/\s+/g, ' ').trim();
  return line.length <= columns ? line : `${line.slice(0, Math.max(1, columns - 1))}…`;
};

/** What the user sent, as it stands above the answer. */
export const paintTyped = (look: Look, text: string): string => {
  const lines = harmless(text.trim()).split('\n');
  return ['', ...lines.map((line, index) => paint(look, 'bold', `${index === 0 ? '>' : ' '} ${line}`))].join(
    '\n',
  );
};

/** A unified diff with its added and removed lines coloured. */
export const paintDiff = (look: Look, diff: string): string =>
  harmless(diff)
    .trimEnd()
    .split('\n')
    .filter((line) => !/^(Index:|={5,}|\\ No newline)/.test(line))
    .map((line) => {
      if (line.startsWith('+')) return paint(look, 'green', line);
      if (line.startsWith('-')) return paint(look, 'red', line);
      return line.startsWith('@@') ? paint(look, 'cyan', line) : line;
    })
    .join('\n');

export const formatCost = (costUsd: number | null): string => {
  if (costUsd === null) return 'price unknown';
  return costUsd > 0 && costUsd < 0.01 ? '<$0.01' : `$${costUsd.toFixed(2)}`;
};

export const formatTokens = (count: number): string => {
  if (count < 1_000) return String(count);
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
};

/** Tenths of a second up to ten, then whole ones. */
export const formatSeconds = (durationMs: number): string => {
  if (durationMs < 9_950) return `${(Math.max(0, durationMs) / 1_000).toFixed(1)}s`;
  const seconds = Math.round(durationMs / 1_000);
  return seconds < 60
    ? `${seconds}s`
    : `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`;
};

/** Writes all of `text` before it returns, to a file, pipe or terminal that may be non-blocking. Throws EPIPE of a closed pipe. */
export const writeWhole = (descriptor: number, text: string): void => {
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); // the reader is slow: try again
    }
  }
};

/** As `writeWhole`, to a terminal that may be gone: then nobody reads, and SIGHUP ends the program. */
export const writeIfThere = (descriptor: number, text: string): void => {
  try {
    writeWhole(descriptor, text);
  } catch {
    // nothing is lost: the journal has it
  }
};

/** What stops nothing, as a line. */
export const warningText = (text: string): string => `! ${text}`;

/** A time as people write it here, to the minute. */
export const formatWhen = (at: number): string => {
  const time = new Date(at);
  const two = (part: number): string => String(part).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`;
};
