import type { StoredReplay } from '../journal/inspection.js';
import type { MachineTypes } from '../needs-machine.js';
import { writeWhole } from '../terminal/print.js';
import { exitCodes } from './exit-codes.js';

const checksText = (count: number): string => {
  if (count === 0) return 'No state hash is recorded up to there, so nothing was compared.';
  return count === 1
    ? '1 recorded state hash compared: equal.'
    : `${count} recorded state hashes compared, all equal.`;
};

/** Prints the path, and what the fold came to; the exit code. */
export const tellReplay = <M extends MachineTypes>(
  lines: readonly string[],
  folded: StoredReplay<M>,
): number => {
  writeWhole(1, lines.map((line) => `${line}\n`).join(''));
  const torn =
    folded.tornBytes > 0 ? ` ${folded.tornBytes} bytes of an unfinished last line are ignored.` : '';
  process.stderr.write(
    `${folded.seq} entries folded, nothing performed; ends in ${folded.state.name}.${torn}\n`,
  );
  const [mismatch] = folded.mismatches;
  if (mismatch !== undefined) {
    process.stderr.write(
      `pawl: the fold came to another state than was recorded at seq ${mismatch.seq}: the file or the machine has changed.\n`,
    );
    return exitCodes.badInput;
  }
  process.stderr.write(`${checksText(folded.checks)}\n`);
  return exitCodes.done;
};
