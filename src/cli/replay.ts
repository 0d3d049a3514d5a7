import { exitCodes } from './exit-codes.js';
import { readSeq } from './flags.js';
import { moved, pathLine, statesOf } from './path-line.js';
import { writeWhole } from './print.js';
import { findSession, foldStored } from './stored.js';

type Flags = { readonly at?: string; readonly json?: true };

const checksText = (count: number): string => {
  if (count === 0) return 'No state hash is recorded up to there, so nothing was compared.';
  return count === 1
    ? '1 recorded state hash compared: equal.'
    : `${count} recorded state hashes compared, all equal.`;
};

/** `pawl replay`: folds a journal, performs nothing, compares the recorded hashes, prints the path. */
export const replaySession = async (given: string, flags: Flags): Promise<number> => {
  const at = flags.at === undefined ? undefined : readSeq('--at', flags.at);
  const lines: string[] = [];
  const { inspection, folded } = await foldStored(await findSession(given), at, (stepped) => {
    if (!moved(stepped)) return;
    lines.push(
      flags.json
        ? JSON.stringify({ seq: stepped.seq, event: stepped.event.type, path: statesOf(stepped) })
        : pathLine(stepped),
    );
  });
  writeWhole(1, lines.map((line) => `${line}\n`).join(''));
  const torn =
    inspection.tornBytes > 0 ? ` ${inspection.tornBytes} bytes of an unfinished last line are ignored.` : '';
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
