import { homedir } from 'node:os';
import type { Clock } from '../needs.js';
import { systemClock } from '../runtime/clock.js';
import { Composer } from '../terminal/composer.js';
import type { Pressed } from '../terminal/key.js';
import { type Look, lookOf, writeIfThere } from '../terminal/print.js';
import { type Background, watchBackground } from '../terminal/theme.js';
import { type HistoryFile, openHistory } from './history-file.js';
import { readKeyboard, readLines } from './keyboard.js';
import { namePastesIn } from './pasted-path.js';
import { type Screen, suspend } from './screen.js';
import { listenToSignals } from './signals.js';
import { commandChoices } from './slash.js';
import { openStateFolder } from './state-folder.js';
import { createWorkspaceFiles } from './workspace-files.js';

/** Who is told what happens at the terminal. */
export type Sitting = {
  take(pressed: Pressed): void;
  interrupt(): void;
  /** SIGTERM, or the terminal is gone. */
  terminate(): void;
  redraw(): void;
};

/**
 * Screen, keyboard and the line being typed: one for the life of the program, whichever session is open. What is typed
 * while nobody sits there waits.
 */
export type Seat = {
  readonly screen: Screen;
  readonly look: Look;
  readonly clock: Clock;
  readonly composer: Composer;
  readonly history: HistoryFile;
  sit(sitting: Sitting): void;
  stand(): void;
  suspend(): void;
  /** Disconnects, keeps what was typed and not sent for the next time, and leaves a clean screen. */
  leave(): void;
};

type Happened = (sitting: Sitting) => void;

const connect = (
  screen: Screen,
  plain: boolean,
  happens: (happened: Happened) => void,
  hear: (text: string) => void,
): (() => void) => {
  const take = (pressed: Pressed): void => happens((sitting) => sitting.take(pressed));
  const redraw = (): void => happens((sitting) => sitting.redraw());
  screen.take();
  const stopKeys = plain ? readLines(process.stdin, { take }) : readKeyboard(process.stdin, { take, hear });
  const goOn = (): void => {
    screen.take();
    redraw();
  };
  const interrupt = (): void => happens((sitting) => sitting.interrupt());
  const terminate = (): void => happens((sitting) => sitting.terminate());
  const deaf = listenToSignals({ interrupt, interruptAgain: interrupt, terminate });
  process.stdout.on('resize', redraw);
  process.on('SIGCONT', goOn);
  return () => {
    deaf();
    process.off('SIGCONT', goOn);
    process.stdout.off('resize', redraw);
    stopKeys();
  };
};

/** How wide and how light the terminal is may change, or become known late. */
const lookThrough = (plain: boolean, background: () => Background): Look => {
  const { colour } = lookOf(process.stdout, process.env);
  return {
    colour: plain ? 'no' : colour,
    plain: plain ? 'yes' : 'no',
    get columns() {
      return process.stdout.columns ?? 80;
    },
    get background() {
      return background();
    },
  };
};

export const takeSeat = (screen: Screen, plain: boolean, workspace: string): Seat => {
  const background = watchBackground(process.env, (text) => writeIfThere(1, text));
  const look = lookThrough(plain, () => background.known());
  let sitting: Sitting | null = null;
  const early: Happened[] = [];
  const happens = (happened: Happened): void => {
    if (sitting === null) early.push(happened);
    else happened(sitting);
  };
  const files = createWorkspaceFiles(workspace);
  // In a plain terminal every line arrives as a paste.
  const namePaste = plain ? undefined : namePastesIn(workspace, process.env.HOME || homedir());
  const completer = { commands: commandChoices, files };
  const composer = new Composer(completer, () => sitting?.redraw(), namePaste);
  const history = openHistory(openStateFolder(process.env), workspace);
  composer.precede(history.read());
  const disconnect = connect(screen, plain, happens, background.hear);
  if (look.colour === 'yes') background.ask();
  return {
    ...{ screen, look, clock: systemClock, composer, history },
    sit(next) {
      sitting = next;
      for (const happened of early.splice(0)) happened(next);
    },
    stand() {
      sitting = null;
    },
    suspend: () => suspend(screen, () => sitting?.redraw()),
    leave() {
      disconnect();
      history.add(composer.text);
      screen.area.clear();
      screen.giveBack();
    },
  };
};
