import { systemClock } from '../runtime/clock.js';
import { createLiveArea, type LiveArea, reflowOf } from '../terminal/live-area.js';
import { createPlainArea } from '../terminal/plain-area.js';
import { writeIfThere } from '../terminal/print.js';

/** Pastes are marked; keys that would look alike (Enter and Shift+Enter, Escape and Alt) are told apart where the terminal can. */
const OURS = '\u001b[?2004h\u001b[>1u';
/** As the shell wants it: the same taken back, and what a row that was being drawn may have left. */
const THEIRS = '\u001b[?2004l\u001b[<u\u001b[?7h\u001b[?25h\u001b[0m';
/** Longer than it takes until a signal has stopped the program. */
const STOPPING_MS = 100;

/** The window as ours, or as the shell wants it. However the program ends, it is given back. */
export type Screen = {
  readonly area: LiveArea;
  size(): { readonly columns: number; readonly rows: number };
  take(): void;
  giveBack(): void;
};

/** `plain`: whole lines, and no escapes. */
export const createScreen = (plain: boolean): Screen => {
  const size = () => ({ columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 });
  const write = (text: string): void => writeIfThere(1, text);
  let taken = false;
  const set = (ours: boolean): void => {
    if (plain || taken === ours) return;
    taken = ours;
    try {
      process.stdin.setRawMode(ours);
    } catch {
      // the terminal is gone: there is nothing to be set
    }
    write(ours ? OURS : THEIRS);
  };
  // A fault that nobody caught ends the program too.
  process.on('exit', () => set(false));
  return {
    area: plain
      ? createPlainArea(write)
      : createLiveArea({ write, size, clock: systemClock, reflow: reflowOf(process.env) }),
    size,
    take: () => set(true),
    giveBack: () => set(false),
  };
};

/** As Ctrl-Z does elsewhere: the whole job stops; SIGCONT takes the window again, and so do we if nothing stopped us. */
export const suspend = (screen: Screen, redraw: () => void): void => {
  screen.area.clear();
  screen.giveBack();
  process.kill(0, 'SIGTSTP');
  setTimeout(() => {
    screen.take();
    redraw();
  }, STOPPING_MS);
};
