import type { LiveArea } from './live-area.js';
import { keepStyles, type Safe, safe } from './safe-text.js';

/** Prints whole lines and redraws nothing. For screen readers (`--plain`) and terminals without escapes (`TERM=dumb`). */
export const createPlainArea = (write: (text: Safe) => void): LiveArea => ({
  print: (text) => write(safe`${keepStyles(text)}\n`),
  draw: () => undefined,
  clear: () => undefined,
});
