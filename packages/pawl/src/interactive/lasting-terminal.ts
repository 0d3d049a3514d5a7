import { homedir } from 'node:os';
import type { Clock } from '@pawl/agent/ports/clock';
import { systemClock } from '@pawl/agent/session/clock';
import { type Choice, ranked } from '@pawl/terminal/input/completion';
import { Composer } from '@pawl/terminal/input/composer';
import type { Pressed } from '@pawl/terminal/input/key';
import { type Look, lookOf, windowSize } from '@pawl/terminal/paint-text';
import { type Background, watchBackground } from '@pawl/terminal/theme';
import { writeWindow } from '@pawl/terminal/write';
import { openStateFolder } from '../sessions/make-state-folder.js';
import { listenToSignals } from '../signals.js';
import { commandChoices } from '../slash/command-table-and-parser.js';
import { type HistoryFile, openHistory } from './input/history-file.js';
import { readKeyboard, readLines } from './input/keyboard.js';
import { namePastesIn } from './input/pasted-path.js';
import { createWorkspaceFiles } from './input/workspace-files.js';
import { type Screen, suspend } from './take-and-restore-terminal.js';

/** Receives the keys and signals of the terminal. */
export type TerminalListener = {
  take(pressed: Pressed): void;
  interrupt(): void;
  /** On SIGTERM, or when the terminal has closed. */
  terminate(): void;
  redraw(): void;
};

/**
 * Screen, keyboard and input line for the whole run of the program, across sessions. Keys that arrive without a listener
 * wait for the next one.
 */
export type TerminalSession = {
  readonly screen: Screen;
  readonly look: Look;
  readonly clock: Clock;
  readonly composer: Composer;
  readonly history: HistoryFile;
  /** Names to complete after `/` in addition to the built-in ones. */
  offer(choices: readonly Choice[], mentioned: () => readonly Choice[]): void;
  attach(listener: TerminalListener): void;
  detach(): void;
  suspend(): void;
  /** Disconnects, saves unsent text in the history, and removes the live area. */
  close(): void;
};

type Notification = (listener: TerminalListener) => void;

const connect = (
  screen: Screen,
  plain: boolean,
  notify: (notification: Notification) => void,
  hear: (text: string) => void,
): (() => void) => {
  const take = (pressed: Pressed): void => notify((listener) => listener.take(pressed));
  const redraw = (): void => notify((listener) => listener.redraw());
  screen.take();
  const stopKeys = plain
    ? readLines(process.stdin, { take })
    : readKeyboard(process.stdin, { take, receive: hear });
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
  const { colour, depth } = lookOf(process.stdout, process.env);
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

export const openTerminalSession = (screen: Screen, plain: boolean, workspace: string): TerminalSession => {
  const background = watchBackground(process.env, writeWindow);
  const look = currentLook(plain, () => background.known());
  let listener: TerminalListener | null = null;
  const early: Notification[] = [];
  const notify = (notification: Notification): void => {
    if (listener === null) early.push(notification);
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
      const own = mentions();
      const found = await files(words, signal);
      return own.length === 0 ? found : ranked(words, [...own, ...found]);
    },
  };
  const composer = new Composer(completer, () => listener?.redraw(), namePaste);
  const history = openHistory(openStateFolder(process.env), workspace);
  composer.addEarlier(history.read());
  const disconnect = connect(screen, plain, notify, background.read);
  if (look.colour === 'yes') background.ask();
  return {
    screen,
    look,
    clock: systemClock,
    composer,
    history,
    offer(choices, mentioned) {
      commands = [...commandChoices, ...choices];
      mentions = mentioned;
    },
    attach(next) {
      listener = next;
      for (const notification of early.splice(0)) notification(next);
    },
    detach() {
      listener = null;
    },
    suspend: () => suspend(screen, () => listener?.redraw()),
    close() {
      disconnect();
      history.add(composer.text);
      screen.area.clear();
      screen.giveBack();
    },
  };
};
