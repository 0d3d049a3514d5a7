import { realpathSync, statSync } from 'node:fs';
import type { EnvironmentOptions } from '../needs-recursive.js';
import type { ProgramSettings } from './program-wire.js';

/** What every program behind the sandbox is started with: its settings, and the inputs as files that it can read. */

const TEXT_MAX = 10_000_000;
/** Of the memory that the code may use, one part is for what it printed last. */
const KEPT_PART = 4;

export type ProgramInput = {
  readonly settings: ProgramSettings;
  readonly readable: readonly { readonly from: string; readonly to: string }[];
  /** Bytes of all contexts. */
  readonly contextBytes: number;
};

/** Throws where an input is not a file that can be looked at. */
export const programInput = ({ contexts, outputMax, memoryMax }: EnvironmentOptions): ProgramInput => {
  const files = contexts.map((file, index) => ({ from: realpathSync(file), to: `/context/${index}` }));
  const sizes = files.map(({ from }) => {
    const found = statSync(from);
    if (!found.isFile()) throw new Error(`${from} is not a file: an input must be one`);
    return found.size;
  });
  return {
    settings: {
      contexts: files.map(({ to }) => to),
      outputMax,
      keptMax: Math.floor(memoryMax / KEPT_PART),
      textMax: TEXT_MAX,
    },
    readable: files,
    contextBytes: sizes.reduce((sum, size) => sum + size, 0),
  };
};
