/**
 * Runs failed files once more, alone. Tests of whole programs meet time limits of other programs;
 * on a machine that does too much at once such a limit can pass. A fault of the program fails alone
 * as well. The first failure of such a file is printed in full at the end of the run: it is to be
 * repaired.
 */

import { type FileResult, hasFailed } from './run-file.js';

/** More failed files than this are no accident of a busy machine. */
const UNSTEADY_MAX = 2;

export type Rerun = {
  /** The result that counts for each file. */
  readonly results: readonly FileResult[];
  /** The first results of files that failed beside others and passed alone. */
  readonly unsteady: readonly FileResult[];
};

export const rerunFailed = async (
  results: readonly FileResult[],
  runAlone: (file: string) => Promise<FileResult>,
): Promise<Rerun> => {
  const failed = results.filter(hasFailed);
  if (failed.length > UNSTEADY_MAX) return { results, unsteady: [] };
  const again = new Map<string, FileResult>();
  for (const { file } of failed) again.set(file, await runAlone(file));
  return {
    results: results.map((result) => again.get(result.file) ?? result),
    unsteady: failed.filter(({ file }) => {
      const second = again.get(file);
      return second !== undefined && !hasFailed(second);
    }),
  };
};
