import { systemClock } from '@pawl/agent/session/clock';
import { ENABLE_INPUT_MODES, RESTORE_TERMINAL } from '@pawl/terminal/escapes';
import { createLiveArea, type LiveArea, reflowOf } from '@pawl/terminal/live-area';
import { windowSize } from '@pawl/terminal/paint-text';
import { createPlainArea } from '@pawl/terminal/plain-area';
import { writeWindow } from '@pawl/terminal/write';

/** Longer than a stop signal needs. */
const STOPPING_MS = 100;

/** Takes the terminal over from the shell, and restores it however the program ends. */
export type Screen = {
  readonly area: LiveArea;
  size(): { readonly columns: number; readonly rows: number };
  take(): void;
  giveBack(): void;
};

/** `plain`: whole lines, and no escapes. */
export const createScreen = (plain: boolean): Screen => {
  const size = () => windowSize(process.stdout.columns, process.stdout.rows);
  let taken = false;
  const set = (ours: boolean): void => {
    if (plain || taken === ours) return;
    taken = ours;
    try {
      process.stdin.setRawMode(ours);
    } catch {
      // the terminal is gone: there is no mode to set
    }
    writeWindow(ours ? ENABLE_INPUT_MODES : RESTORE_TERMINAL);
  };
  // Runs after an uncaught error too.
  process.on('exit', () => set(false));
  return {
    area: plain
      ? createPlainArea(writeWindow)
      : createLiveArea({ write: writeWindow, size, clock: systemClock, reflow: reflowOf(process.env) }),
    size,
    take: () => set(true),
    giveBack: () => set(false),
  };
};

/** Stops the whole job as Ctrl-Z does. SIGCONT takes the terminal again; a timer does so if no stop happened. */
export const suspend = (screen: Screen, redraw: () => void): void => {
  screen.area.clear();
  screen.giveBack();
  process.kill(0, 'SIGTSTP');
  setTimeout(() => {
    screen.take();
    redraw();
  }, STOPPING_MS);
};
