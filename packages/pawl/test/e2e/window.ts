import { spawn } from '@lydell/node-pty';
import { createEmulator } from '../../../../test/kit/terminal/screen.js';
import type { TestScope } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { bin, type Place } from './pawl.js';

/** The program in a real pseudo-terminal, with a screen to look at: what a person would see. */
export type Window = {
  readonly pid: number;
  press(keys: string): void;
  /** All lines, scroll-back and screen. */
  text(): Promise<string>;
  /** The last line that begins with a prompt, and what is below it. */
  line(): Promise<string>;
  /** Waits until the screen, scroll-back included, shows it. */
  sees(wanted: string | RegExp): Promise<void>;
  /** Waits until the text in the input line is this. */
  seesLine(wanted: string | RegExp): Promise<void>;
  /** Everything that was written, with the escapes. */
  raw(): string;
  resize(columns: number, rows: number): Promise<void>;
  readonly ended: Promise<number>;
};

export type WindowOptions = {
  readonly words?: readonly string[];
  readonly columns?: number;
  readonly rows?: number;
  readonly environment?: NodeJS.ProcessEnv;
  /** In place of the program itself. */
  readonly program?: readonly string[];
  /** Gets what is written, as it comes. */
  onOutput?(text: string): void;
};

/** From the opening; each step waits half a minute at most. */
const LIMIT_MS = 300_000;

/** An empty line of an empty session shows an example of what to type. */
const EMPTY_LINE = '> Give a task, for example: find out why the tests fail and repair it';

export const openWindow = (
  context: TestScope,
  place: Place,
  options: WindowOptions = {},
): Window => {
  const { words = [], columns = 100, rows = 30, environment = {}, program, onOutput } = options;
  const screen = createEmulator(columns, rows);
  const [first = '', ...rest] = program ?? [process.execPath, bin, ...words];
  const child = spawn(first, rest, {
    cols: columns,
    rows,
    cwd: place.workspace,
    // the emulator rewraps as the terminal of VS Code does
    env: {
      ...place.environment,
      TERM: 'xterm-256color',
      TERM_PROGRAM: 'vscode',
      ...environment,
    },
  });
  let living = true;
  child.onData((text) => {
    onOutput?.(text);
    screen.write(text);
  });
  const ended = new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the window was not closed')), LIMIT_MS);
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
  const line = async (): Promise<string> => {
    const lines = (await screen.text()).split('\n');
    const rows = lines.slice(lines.findLastIndex((each) => /^[>?↑]/.test(each)));
    const edge = rows.findIndex((each) => each.startsWith('─'));
    const shown = rows.slice(0, edge < 0 ? rows.length : edge).join('\n');
    return shown === EMPTY_LINE ? '>' : shown;
  };
  const fits = (text: string, wanted: string | RegExp): boolean =>
    typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text);
  const waitFor = async (look: () => Promise<boolean>, wanted: string | RegExp): Promise<void> => {
    let seen = false;
    let text = '';
    const poll = async (): Promise<void> => {
      seen = await look();
      text = await screen.text();
    };
    await until(
      () => `${wanted} in\n${text}`,
      () => {
        void poll();
        return seen;
      },
    );
  };
  return {
    pid: child.pid,
    press: (keys) => child.write(keys),
    text: () => screen.text(),
    line,
    sees: (wanted) => waitFor(async () => fits(await screen.text(), wanted), wanted),
    seesLine: (wanted) =>
      waitFor(
        async () =>
          typeof wanted === 'string' ? (await line()) === wanted : wanted.test(await line()),
        wanted,
      ),
    raw: () => screen.written(),
    async resize(wide, high) {
      await screen.resize(wide, high);
      child.resize(wide, high);
    },
    ended,
  };
};

/** Opens it and waits until it can be typed into. */
export const openReady = async (
  context: TestScope,
  place: Place,
  options: WindowOptions = {},
): Promise<Window> => {
  const window = openWindow(context, place, options);
  await window.sees(/ready/);
  return window;
};
