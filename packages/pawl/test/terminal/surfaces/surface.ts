import type { Look } from '@pawl/terminal/paint';
import type { Safe } from '@pawl/terminal/safe-text';
import type { Hostile } from './hostile.js';

/** Where foreign text is shown, and how a test brings it there. */
export type Surface = {
  readonly name: string;
  /** Source files that print, by which a new one without a surface is found. */
  readonly covers: readonly string[];
  readonly commands?: readonly string[];
  readonly slash?: readonly string[];
  /** Shows hostile text once, about `size` characters of it. */
  show(hostile: Hostile, out: Out, size: number): Promise<void> | void;
};

/** Where it is shown: a window that is drawn, or a stream. `write` also takes what a program printed past this process. */
export type Out = {
  readonly look: Look;
  write(text: string): void;
  print(text: Safe): void;
};
