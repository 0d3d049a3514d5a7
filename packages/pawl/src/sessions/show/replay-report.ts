import type { StoredReplay } from '@pawl/agent/journal/read/read-without-lock';
import type { MachineTypes } from '@pawl/agent/ports/machine-types';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../../exit-codes.js';

const checksText = (count: number): Safe => {
  if (count === 0) return safe`No state hash is recorded up to there, so nothing was compared.`;
  return count === 1
    ? safe`1 recorded state hash compared: equal.`
    : safe`${count} recorded state hashes compared, all equal.`;
};

/** Prints the path and the result of the replay. Returns the exit code: a failure if a recorded state hash differs. */
export const tellReplay = <M extends MachineTypes>(
  lines: readonly Safe[],
  folded: StoredReplay<M>,
): number => {
  writeOut(joinSafe(lines.map((line) => safe`${line}\n`)));
  const torn =
    folded.tornBytes > 0 ? safe` ${folded.tornBytes} bytes of an incomplete last line are ignored.` : safe``;
  writeError(
    safe`${folded.seq} entries folded, nothing performed; ends in ${makeSafe(folded.state.name)}.${torn}\n`,
  );
  const [mismatch] = folded.mismatches;
  if (mismatch !== undefined) {
    writeError(
      safe`pawl: at seq ${mismatch.seq} the recomputed state differs from the recorded hash: the file or the machine has changed.\n`,
    );
    return exitCodes.badInput;
  }
  const earlier =
    folded.earlierChecks === 0
      ? safe``
      : safe` ${folded.earlierChecks} of an earlier version of Pawl differ, which is no fault.`;
  writeError(safe`${checksText(folded.checks)}${earlier}\n`);
  return exitCodes.done;
};
