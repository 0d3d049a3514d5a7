import { realpathSync, statSync } from 'node:fs';
import type { EnvironmentOptions } from '../../environment-and-journal-types.js';
import type { Inputs, ProgramSettings } from './repl-protocol.js';

/** The launch data of every sandboxed program: its settings, and the inputs as readable files. */

const TEXT_MAX = 10_000_000;
/** `last_output` may take this fraction (1/n) of the code's memory. */
const KEPT_PART = 4;

export type ProgramInput = {
  readonly settings: ProgramSettings;
  readonly inputs: Inputs;
  readonly readable: readonly { readonly from: string; readonly to: string }[];
  /** Bytes of all contexts. */
  readonly contextBytes: number;
};

/** Throws if an input is not a regular file. */
export const programInput = ({ contexts, names, outputMax, memoryMax }: EnvironmentOptions): ProgramInput => {
  const files = contexts.map((file, index) => ({ from: realpathSync(file), to: `/context/${index}` }));
  const sizes = files.map(({ from }) => {
    const found = statSync(from);
    if (!found.isFile()) throw new Error(`${from} is not a file: an input must be one`);
    return found.size;
  });
  return {
    inputs: { type: 'inputs', contexts: files.map(({ to }) => to), names },
    settings: {
      outputMax,
      keptMax: Math.floor(memoryMax / KEPT_PART),
      textMax: TEXT_MAX,
    },
    readable: files,
    contextBytes: sizes.reduce((sum, size) => sum + size, 0),
  };
};
