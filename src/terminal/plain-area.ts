import type { LiveArea } from './live-area.js';

/** For screen readers (`--plain`) and terminals without escapes (`TERM=dumb`): whole lines, and nothing is drawn again. */
export const createPlainArea = (write: (text: string) => void): LiveArea => ({
  print: (text) => write(`${text}\n`),
  draw: () => undefined,
  clear: () => undefined,
});
