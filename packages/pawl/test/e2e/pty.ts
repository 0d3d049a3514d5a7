import { spawn } from '@lydell/node-pty';
import { createEmulator } from '../../../../test/kit/terminal/screen.js';
import type { TestScope } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { bin, type Place } from './pawl.js';

/** The program in a real terminal. */
export type Terminal = {
  readonly pid: number;
  /** Presses keys. */
  press(keys: string): void;
  /** Everything that was written, escapes taken out. */
  shown(): string;
  /** As `shown`, with the escapes. */
  raw(): string;
  /** Waits until the text or pattern was written after the last `mark`. */
  sees(wanted: string | RegExp): Promise<void>;
  /** Waits until the screen, as it is then, shows the text or pattern: rows that did not change are not written again. */
  shows(wanted: string | RegExp): Promise<void>;
  /** What was written before no longer counts for `sees`. */
  mark(): void;
  readonly ended: Promise<number>;
};

/** From the opening; each step waits half a minute at most. */
const LIMIT_MS = 300_000;
const ESCAPES = /\u001b\[[?\d;]*[A-Za-z]/g;

export const openTerminal = (
  context: TestScope,
  place: Place,
  words: readonly string[] = [],
  more: NodeJS.ProcessEnv = {},
): Terminal => openProgram(context, place, [process.execPath, bin, ...words], more);

/** Another program in a terminal: a shell. */
export const openProgram = (
  context: TestScope,
  place: Place,
  [program = '', ...words]: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Terminal => {
  const environment = { ...place.environment, TERM: 'xterm-256color', ...more };
  const child = spawn(program, words, {
    cols: 100,
    rows: 30,
    cwd: place.workspace,
    env: environment,
  });
  const screen = createEmulator(100, 30);
  let raw = '';
  let from = 0;
  let living = true;
  const shown = (): string => raw.replace(ESCAPES, '');
  child.onData((text) => {
    raw += text;
    screen.write(text);
  });
  const ended = new Promise<number>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`the terminal did not end: ${shown().slice(-3_000)}`)),
      LIMIT_MS,
    );
    child.onExit(({ exitCode }) => {
      living = false;
      clearTimeout(timer);
      resolve(exitCode);
    });
  });
  ended.catch(() => undefined); // whoever waits for it gets the error
  context.after(async () => {
    if (living) child.kill('SIGKILL');
  });
  return {
    pid: child.pid,
    press: (keys) => child.write(keys),
    shown,
    raw: () => raw,
    mark() {
      from = shown().length;
    },
    async sees(wanted) {
      const look = (): boolean => {
        const fresh = shown().slice(from);
        return typeof wanted === 'string' ? fresh.includes(wanted) : wanted.test(fresh);
      };
      await until(() => `${wanted} in ${JSON.stringify(shown().slice(-3_000))}`, look);
    },
    async shows(wanted) {
      const look = (): boolean => {
        const text = screen.now();
        return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text);
      };
      await until(() => `${wanted} on the screen ${JSON.stringify(screen.now())}`, look);
    },
    ended,
  };
};
