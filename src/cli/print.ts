import { writeSync } from 'node:fs';

/** What a stream may show; decided once per stream. */
export type Look = { readonly colour: 'yes' | 'no'; readonly columns: number };

/** A terminal that can't move its cursor. */
export const isBare = (environment: NodeJS.ProcessEnv): boolean => environment.TERM === 'dumb';

/** Escapes only for a terminal that wants them: `NO_COLOR` and `TERM=dumb` say no. */
export const lookOf = (stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): Look => {
  const wanted = (environment.NO_COLOR ?? '') === '' && !isBare(environment);
  return { colour: stream.isTTY && wanted ? 'yes' : 'no', columns: stream.columns ?? 80 };
};

const codes = { dim: '2', bold: '1', red: '31', green: '32', yellow: '33', blue: '34', cyan: '36' } as const;
export type Style = keyof typeof codes;

export const paint = (look: Look, style: Style, text: string): string =>
  look.colour === 'no' || text === '' ? text : `\u001b[${codes[style]}m${text}\u001b[0m`;

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
