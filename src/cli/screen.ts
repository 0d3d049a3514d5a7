import { createLiveArea, type LiveArea } from './live-area.js';
import { createPlainArea } from './plain-area.js';
import { isBare, writeIfThere } from './print.js';

const BRACKETED_PASTE_ON = '\u001b[?2004h';
const BRACKETED_PASTE_OFF = '\u001b[?2004l';
/** Longer than it takes until a signal has stopped the program. */
const STOPPING_MS = 100;

/** The window as ours, or as the shell wants it. */
export type Screen = {
  readonly area: LiveArea;
  readonly bare: boolean;
  take(): void;
  giveBack(): void;
};

export const createScreen = (): Screen => {
  const bare = isBare(process.env);
  const size = () => ({ columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 });
  const set = (ours: boolean): void => {
    if (bare) return;
    process.stdin.setRawMode(ours);
    writeIfThere(1, ours ? BRACKETED_PASTE_ON : BRACKETED_PASTE_OFF);
  };
  return {
    area: bare ? createPlainArea(1) : createLiveArea(1, size),
    bare,
    take: () => set(true),
    giveBack: () => set(false),
  };
};

/** As Ctrl-Z does elsewhere: the whole job stops; SIGCONT takes the window again, and so do we if nothing stopped us. */
export const createSuspend = (screen: Screen, redraw: () => void) => (): void => {
  screen.area.clear();
  screen.giveBack();
  process.kill(0, 'SIGTSTP');
  setTimeout(() => {
    screen.take();
    redraw();
  }, STOPPING_MS);
};
