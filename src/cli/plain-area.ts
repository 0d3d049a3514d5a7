import type { LiveArea } from './live-area.js';
import { writeIfThere } from './print.js';

/** For terminals without escapes (`TERM=dumb`): nothing is drawn again; a question shows its choices once. */
export const createPlainArea = (descriptor: number): LiveArea => {
  let unfinished = false;
  let asked = '';
  const endStream = (): void => {
    if (unfinished) writeIfThere(descriptor, '\n');
    unfinished = false;
  };
  return {
    print(text) {
      endStream();
      writeIfThere(descriptor, `${text}\n`);
    },
    stream(text) {
      writeIfThere(descriptor, text);
      unfinished = !text.endsWith('\n');
    },
    endStream,
    draw(_status, prompt) {
      if (prompt === asked) return;
      asked = prompt;
      if (!prompt.includes('\n')) return;
      endStream();
      writeIfThere(descriptor, prompt);
    },
    clear: endStream,
  };
};
