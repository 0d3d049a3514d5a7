/**
 * The keyboard until a session listens: what is typed is shown and kept for it, Ctrl-C and Ctrl-D
 * end the wait. After two seconds the screen says what Pawl waits for.
 */

import { awaited } from '@pawl/agent/platform/start-program';
import { newKeyReader, type Pressed, readKeys } from '@pawl/terminal/keys';
import type { Screen } from '@pawl/terminal/live-area';
import { harmless } from '@pawl/terminal/paint';
import { type Safe, safe } from '@pawl/terminal/safe-text';

/** After so many ms the screen says what Pawl waits for, and looks again each time. */
const WAITED_MS = 2_000;
const [LINE_FEED, RETURN] = [0x0a, 0x0d];

/** What the typed bytes leave in one row: the last line, without keys that write nothing. */
const shownText = (typed: readonly Buffer[]): Safe => {
  const line =
    Buffer.concat(typed)
      .toString('utf8')
      .split(/[\r\n]/)
      .at(-1) ?? '';
  const characters: string[] = [];
  for (const character of line.replace(/\u001b\[?[0-?]*[@-~]?/g, ''))
    if (character === '\u007f' || character === '\b') characters.pop();
    else if (character >= ' ') characters.push(character);
  return harmless(characters.join(''));
};

const waitingRow = (waitsFor: string | null, isLong: boolean): Safe => {
  const program = [...awaited.values()].at(-1);
  const what = waitsFor ?? program ?? null;
  if (!isLong || what === null) return isLong ? safe`starting (Ctrl-C ends it)` : safe`starting`;
  return safe`starting: waits for ${harmless(what)} (Ctrl-C ends it)`;
};

type EarlyKeys = {
  /** Says what it waits for; null: for a program that Pawl has started, if any. */
  waitFor(what: string | null): void;
  /** Gives the typed keys back to `input`, for who reads them next. */
  end(): void;
};

/** Draws the start and hears `input`, which is in raw mode. `leave` is called once at most. */
export const hearEarlyKeys = (
  input: NodeJS.ReadStream,
  { area, size }: Pick<Screen, 'area' | 'size'>,
  leave: () => void,
): EarlyKeys => {
  const typed: Buffer[] = [];
  let waitsFor: string | null = null;
  let isLong = false;
  const draw = (): void => {
    const shown = shownText(typed);
    const row = safe`> ${shown.slice(-Math.max(1, size().columns - 4))}`;
    area.draw({
      rows: [safe``, waitingRow(waitsFor, isLong), row],
      cursor: { row: 2, column: row.length },
    });
  };
  const timer = setInterval(() => {
    isLong = true;
    draw();
  }, WAITED_MS);
  const hear = (piece: Buffer): void => {
    // An Enter from before the raw mode has arrived as a line feed.
    if (typed.length === 0)
      for (const [at, byte] of piece.entries()) if (byte === LINE_FEED) piece[at] = RETURN;
    typed.push(piece);
    draw();
    const { presses } = readKeys(newKeyReader, Buffer.concat(typed).toString('utf8'));
    const isControl = (pressed: Pressed | undefined, name: string): boolean =>
      pressed?.kind === 'key' && pressed.key.control && pressed.key.name === name;
    const [first] = presses;
    if (isControl(first, 'd') || presses.some((pressed) => isControl(pressed, 'c'))) leave();
  };
  draw();
  input.on('data', hear);
  input.resume(); // a question before it has paused it
  return {
    waitFor(what) {
      waitsFor = what;
    },
    end() {
      clearInterval(timer);
      input.off('data', hear);
      input.pause();
      if (typed.length > 0) input.unshift(Buffer.concat(typed));
    },
  };
};
