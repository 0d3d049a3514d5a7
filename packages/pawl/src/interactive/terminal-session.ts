/**
 * What outlives the sessions of one run of the program: screen, keyboard, input line and history.
 *
 * From top to bottom: work of the user that is not stored yet; the session of the terminal; the
 * history of typed texts; the files for the completion of `@`; and pasted paths of pictures.
 */

import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path, { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { attemptNow } from '@pawl/agent/platform/attempt';
import { type Clock, systemClock } from '@pawl/agent/platform/clock';
import { readTextOrEmptySync } from '@pawl/agent/platform/files';
import { ripgrepProgram } from '@pawl/agent/platform/find-program';
import { startProgram } from '@pawl/agent/platform/start-program';
import type { Stepped } from '@pawl/agent/ports/session';
import { type Choice, rankChoices } from '@pawl/terminal/choices';
import { Composer, type NamePaste } from '@pawl/terminal/composer';
import { type Pressed, readKeyboard, readLines } from '@pawl/terminal/keys';
import type { Screen } from '@pawl/terminal/live-area';
import { Notifier } from '@pawl/terminal/notifier';
import {
  type Background,
  detectLook,
  type Look,
  watchBackground,
  windowSize,
} from '@pawl/terminal/paint';
import { writeWindow } from '@pawl/terminal/write';
import { listenToSignals } from '../process/exit-codes.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import { commandChoices, pictureMention, readTypedInput } from '../sessions/typed-input.js';

/** Receives the keys and signals of the terminal. */
type TerminalListener = {
  take(pressed: Pressed): void;
  interrupt(): void;
  /** On SIGTERM, or when the terminal has closed. */
  terminate(): void;
  redraw(): void;
};

/** Outlives sessions: keys that arrive between two of them wait for the next one. */
export type TerminalSession = {
  readonly screen: Screen;
  readonly look: Look;
  readonly clock: Clock;
  readonly composer: Composer;
  readonly history: HistoryFile;
  readonly notifier: Notifier;
  /** `choices`: names to complete after `/` besides the built-in ones; `mentioned`: after `@`. */
  offer(choices: readonly Choice[], mentioned: () => readonly Choice[]): void;
  attach(listener: TerminalListener): void;
  detach(): void;
  suspend(): void;
  /** Disconnects, saves unsent text in the history, and removes the live area. */
  close(): void;
};

/**
 * Counts what the user has begun and the journal does not have yet, such as a sent text. While
 * there is any, another process must not take over the session (`/detach`).
 */
export class UserWork {
  #underWay = 0;
  #onChange: (stepped: Stepped | null) => void = () => undefined;

  get isOver(): boolean {
    return this.#underWay === 0;
  }

  during<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    return work.finally(() => {
      this.#underWay -= 1;
      this.#onChange(null);
    });
  }

  /** A step, after the journal has it and before anything is done for it. */
  see(stepped: Stepped): void {
    this.#onChange(stepped);
  }

  /** Calls it with each step, and with null when something has ended. */
  watch(onChange: (stepped: Stepped | null) => void): void {
    this.#onChange = onChange;
  }
}

/** A call of one of the listener's methods. It waits while no session listens. */
type Notification = (listener: TerminalListener) => void;

/** `receive` gets the raw input, which holds the terminal's replies: its background, its focus. */
const connectTerminal = (
  screen: Screen,
  plain: boolean,
  notify: (notification: Notification) => void,
  receive: (text: string) => void,
): (() => void) => {
  const take = (pressed: Pressed): void => notify((listener) => listener.take(pressed));
  const redraw = (): void => notify((listener) => listener.redraw());
  screen.take(); // raw mode, and the modes in which keys are read
  const stopKeys = plain
    ? readLines(process.stdin, { take })
    : readKeyboard(process.stdin, { take, receive });
  const goOn = (): void => {
    screen.take();
    redraw();
  };
  const interrupt = (): void => notify((listener) => listener.interrupt());
  const terminate = (): void => notify((listener) => listener.terminate());
  const stopSignals = listenToSignals({ interrupt, interruptAgain: interrupt, terminate });
  process.stdout.on('resize', redraw);
  process.on('SIGCONT', goOn);
  return () => {
    stopSignals();
    process.off('SIGCONT', goOn);
    process.stdout.off('resize', redraw);
    stopKeys();
  };
};

/** Reads width and background on each use, since both can change. */
const currentLook = (plain: boolean, background: () => Background): Look => {
  const { colour, depth } = detectLook(process.stdout, process.env);
  return {
    colour: plain ? 'no' : colour,
    plain: plain ? 'yes' : 'no',
    ...(depth === undefined ? {} : { depth }),
    get columns() {
      return windowSize(process.stdout.columns).columns;
    },
    get background() {
      return background();
    },
  };
};

const createNotifier = ({ setTitle }: Screen): Notifier => {
  const environment = process.env;
  return new Notifier({ clock: systemClock, write: writeWindow, setTitle, environment });
};

export const openTerminalSession = (
  screen: Screen,
  plain: boolean,
  workspace: string,
): TerminalSession => {
  // The terminal tells its background colour when it is asked, below.
  const background = watchBackground(process.env, writeWindow);
  const look = currentLook(plain, () => background.known());
  let listener: TerminalListener | null = null;
  const waitingNotifications: Notification[] = [];
  const notify = (notification: Notification): void => {
    if (listener === null) waitingNotifications.push(notification);
    else notification(listener);
  };
  const files = createWorkspaceFiles(workspace);
  // In a plain terminal every line arrives as a paste, so a paste means nothing special.
  const namePaste = plain ? undefined : namePastesIn(workspace, process.env.HOME || homedir());
  let commands = commandChoices;
  let mentions: () => readonly Choice[] = () => [];
  const completer = {
    get commands() {
      return commands;
    },
    files: async (words: string, signal: AbortSignal) => {
      const mentionChoices = mentions();
      const fileChoices = await files(words, signal);
      return mentionChoices.length === 0
        ? fileChoices
        : rankChoices(words, [...mentionChoices, ...fileChoices]);
    },
  };
  const composer = new Composer(completer, () => listener?.redraw(), namePaste);
  const history = openHistory(openStateFolder(process.env), workspace);
  composer.addEarlier(history.read());
  const notifier = createNotifier(screen);
  const disconnect = connectTerminal(screen, plain, notify, (text) => {
    background.read(text);
    notifier.receive(text);
  });
  if (look.colour === 'yes') background.ask();
  return {
    screen,
    look,
    clock: systemClock,
    composer,
    history,
    notifier,
    offer(choices, mentioned) {
      commands = [...commandChoices, ...choices];
      mentions = mentioned;
    },
    attach(next) {
      listener = next;
      for (const notification of waitingNotifications.splice(0)) notification(next);
    },
    detach() {
      listener = null;
    },
    suspend: () => screen.suspend(() => listener?.redraw()),
    close() {
      notifier.stop();
      disconnect();
      history.add(composer.text, 'unsent');
      screen.area.clear();
      screen.giveBack();
    },
  };
};

/**
 * The texts typed in a folder, across sessions: history/HASH.jsonl in the state folder, one JSON
 * object per line.
 *
 * 1. Lines are appended in one write each, so several programs can write at once.
 * 2. At most two files of HISTORY_BYTES_MAX: a full file replaces HASH.old.jsonl.
 * 3. History is a convenience. Faults while reading or writing are ignored.
 */
export type HistoryFile = {
  /** Oldest first. */
  read(): readonly string[];
  /** A long text is stored only if it is unsent: the journal has those that were sent. */
  add(text: string, kind?: 'unsent'): void;
};

const HISTORY_BYTES_MAX = 512 * 1024;
/** Longer texts are not stored here once they are sent. */
const HISTORY_TEXT_MAX = 32 * 1024;

const historyText = (line: string): readonly string[] => {
  try {
    const entry: unknown = JSON.parse(line);
    const text = typeof entry === 'object' && entry !== null && 'text' in entry ? entry.text : null;
    return typeof text === 'string' ? [text] : [];
  } catch {
    return []; // a line whose writer was killed
  }
};

/** No lines if the file is missing or unreadable: history is a convenience. */
const historyLines = (file: string): readonly string[] =>
  readTextOrEmptySync(file, 2 * HISTORY_BYTES_MAX)
    .split('\n')
    .filter(Boolean);

export const openHistory = (stateFolder: string, workspace: string): HistoryFile => {
  const folder = join(stateFolder, 'history');
  const name = createHash('sha256').update(workspace).digest('hex').slice(0, 16);
  const file = join(folder, `${name}.jsonl`);
  const old = join(folder, `${name}.old.jsonl`);
  return {
    read: () =>
      [...historyLines(old), ...historyLines(file)]
        .flatMap(historyText)
        // a short text that could not be sent stands there twice
        .filter((text, index, texts) => text !== texts[index - 1]),
    add(text, kind) {
      const line = `\n${JSON.stringify({ text })}\n`; // the line before may have been cut
      const isTooLong =
        kind === 'unsent'
          ? Buffer.byteLength(line) > HISTORY_BYTES_MAX
          : text.length > HISTORY_TEXT_MAX;
      if (text.trim() === '' || isTooLong) return;
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        const status = statSync(file, { throwIfNoEntry: false });
        if (status !== undefined && !status.isFile()) return; // opening a pipe would block
        if ((status?.size ?? 0) > HISTORY_BYTES_MAX) renameSync(file, old);
        appendFileSync(file, line, { mode: 0o600 });
      } catch {
        // history is a convenience
      }
    },
  };
};

// The files of a workspace, for the completion of `@`.

const FILES_MAX = 20_000;
/** An older list is read again on the next use. */
const FRESH_MS = 5_000;

const LISTING = ['--files', '--no-config', '--hidden', '--no-require-git', '--glob=!.git'];

/**
 * Relative paths of up to FILES_MAX files that are not ignored, unsorted. Stops when `signal` does.
 */
const listFiles = async (workspace: string, signal: AbortSignal): Promise<readonly string[]> => {
  const program = await ripgrepProgram();
  return new Promise((resolve, reject) => {
    const child = startProgram(program, LISTING, {
      cwd: workspace,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stderr.resume(); // messages about unreadable files don't matter here
    const stop = (): void => void child.kill('SIGKILL'); // it changes nothing
    const files: string[] = [];
    createInterface({ input: child.stdout }).on('line', (file) => {
      if (files.length < FILES_MAX) files.push(file);
      else stop();
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    child.once('error', reject);
    child.once('close', () => {
      signal.removeEventListener('abort', stop);
      if (signal.aborted) reject(new Error('the list of files is not wanted any more'));
      else resolve(files);
    });
  });
};

/** The files and all folders that contain them. Folders end with a slash. */
const withFolders = (files: readonly string[]): readonly string[] => {
  const folders = new Set<string>();
  for (const file of files) {
    for (let at = file.indexOf('/'); at >= 0; at = file.indexOf('/', at + 1))
      folders.add(file.slice(0, at + 1));
  }
  return [...folders, ...files].sort();
};

type WorkspaceFiles = (words: string, signal: AbortSignal) => Promise<readonly Choice[]>;

const createWorkspaceFiles = (workspace: string): WorkspaceFiles => {
  let listed: { readonly at: number; readonly choices: readonly Choice[] } | null = null;
  return async (words, signal) => {
    if (listed === null || performance.now() - listed.at > FRESH_MS) {
      const files = withFolders(await listFiles(workspace, signal));
      listed = { at: performance.now(), choices: files.map((text) => ({ text, about: '' })) };
    }
    return rankChoices(words, listed.choices);
  };
};

// Pasted paths of pictures: a file that is dragged into the window arrives as one. Each terminal
// quotes it differently.

const PASTED_CHARACTERS_MAX = 4_096;
/** Limit on the pictures in one paste, since each one needs a look at the disk. */
const PASTED_FILES_MAX = 20;

const SHELL_WORDS = /(?:[^\s\\'"]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/g;

/** The words of the paste as a shell would divide them; none if a quote is not closed. */
const splitShellWords = (text: string): readonly string[] =>
  text.replace(SHELL_WORDS, '').trim() === '' ? (text.match(SHELL_WORDS) ?? []) : [];

const QUOTED = /\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"/g;

/** The text without shell quotes, if a shell would read it as one word. */
const withoutQuotes = (text: string): string | null =>
  splitShellWords(text)[0] === text
    ? text.replace(
        QUOTED,
        (_, escaped?: string, single?: string, double?: string) =>
          escaped ?? single ?? (double ?? '').replace(/\\(["\\$`])/g, '$1'),
      )
    : null;

const urlPath = (text: string): string | null => {
  if (!/^file:\/\//i.test(text)) return null;
  const read = attemptNow(() => fileURLToPath(text));
  // a file on another machine, or no URL: treat it as text
  return read.kind === 'done' ? read.value : null;
};

/**
 * Absolute paths that a paste may mean, the likeliest first. Relative paths are excluded: terminals
 * never paste them, and `logo.png` may be a word in a sentence.
 */
export const pathsMeant = (pasted: string, home: string): readonly string[] => {
  const text = pasted.trim();
  if (text.length > PASTED_CHARACTERS_MAX || /\p{Cc}/u.test(text)) return [];
  const read = [text, withoutQuotes(text), urlPath(text)].filter((each) => each !== null);
  const whole = read.map((each) => (each.startsWith('~/') ? path.join(home, each.slice(2)) : each));
  return [...new Set(whole)].filter((each) => path.isAbsolute(each) && !/\p{Cc}/u.test(each));
};

const isFile = (file: string): boolean => {
  const result = attemptNow(() => statSync(file).isFile());
  return result.kind === 'done' && result.value; // an inaccessible path is not treated as a file
};

/** Relative inside the workspace, absolute outside. */
const fromWorkspace = (workspace: string, file: string): string => {
  const relative = path.relative(workspace, file);
  return relative.startsWith('..') ? file : relative;
};

/**
 * Replaces pasted paths of pictures with mentions, except in lines that no model reads, such as
 * `!open …`.
 */
export const namePastesIn = (workspace: string, home: string): NamePaste => {
  const mentionFile = (pasted: string): string | null => {
    const file = pathsMeant(pasted, home).find(
      // null: not the name of a picture
      (each) => pictureMention(each) !== null && isFile(each),
    );
    return file === undefined ? null : pictureMention(fromWorkspace(workspace, file));
  };
  const mentionFiles = (pasted: string): string | null => {
    const words = pasted.length > PASTED_CHARACTERS_MAX ? [] : splitShellWords(pasted);
    if (words.length < 2 || words.length > PASTED_FILES_MAX) return null;
    const names = words.map(mentionFile).filter((name) => name !== null);
    return names.length === words.length ? names.join(' ') : null;
  };
  return (pasted, before) =>
    // whether the line up to here would be a message, with a mention in it
    readTypedInput(`${before}@`, 'steer').kind === 'say'
      ? (mentionFile(pasted) ?? mentionFiles(pasted))
      : null;
};
