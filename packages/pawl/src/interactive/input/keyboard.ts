import { createInterface } from 'node:readline';
import { NO_MODIFIERS, namedKey, type Pressed } from '@pawl/terminal/input/key';
import { type KeysRead, newKeyReader, readKeys, readSilence } from '@pawl/terminal/input/key-reader';

/** How long to wait after a lone ESC for the rest of a sequence. */
const ESCAPE_MS = 60;

export type KeyboardHandlers = {
  take(pressed: Pressed): void;
  /** The raw input, before keys are read. It includes the terminal's replies. */
  receive(text: string): void;
};

/** Reads keys from a terminal in raw mode until the returned function is called. A paste arrives as one. */
export const readKeyboard = (
  input: NodeJS.ReadStream,
  { take, receive: hear }: KeyboardHandlers,
): (() => void) => {
  let reading = newKeyReader;
  let timer: NodeJS.Timeout | null = null;
  const follow = ({ reading: next, presses }: KeysRead): void => {
    reading = next;
    for (const pressed of presses) take(pressed);
  };
  const come = (text: string): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    hear(text);
    follow(readKeys(reading, text));
    if (reading.pending !== '') timer = setTimeout(() => follow(readSilence(reading)), ESCAPE_MS);
  };
  input.setEncoding('utf8');
  input.setRawMode(true);
  input.on('data', come);
  input.resume();
  return () => {
    if (timer !== null) clearTimeout(timer);
    input.off('data', come);
    input.pause();
  };
};

const pressOf = (name: string, control: boolean): Pressed => ({
  kind: 'key',
  key: namedKey(name, { ...NO_MODIFIERS, control }),
});

/**
 * For input without single keys: each line becomes a paste into an empty input line, then Enter. The end of the input
 * becomes Ctrl-D on an empty line.
 */
export const readLines = (
  input: NodeJS.ReadStream,
  { take }: Pick<KeyboardHandlers, 'take'>,
): (() => void) => {
  const lines = createInterface({ input, terminal: false });
  const empty = (): void => take(pressOf('u', true)); // the user can't see older text in the line
  lines.on('line', (text) => {
    empty();
    take({ kind: 'paste', text });
    take(pressOf('enter', false));
  });
  lines.on('close', () => {
    empty();
    take(pressOf('d', true));
  });
  return () => lines.close();
};
