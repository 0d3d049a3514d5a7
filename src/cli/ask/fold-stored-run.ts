import type { AskTypes } from '../../ask/environment-and-journal-types.js';
import { fileAskJournals } from '../../ask/journal/journaled-ask-machine.js';
import { stateFolder } from '../../base/user-folders.js';
import type { StoredReplay } from '../../journal/read/read-without-lock.js';
import type { JournalStep } from '../../journal/read/steps.js';
import { foldStoredBy } from '../sessions/stored-sessions.js';

/** Folds the stored journal of a `pawl ask` run; see `foldStoredBy`. */
export const foldRun = (
  sessionId: string,
  at: number | undefined,
  visit?: (step: JournalStep<AskTypes>) => void,
): Promise<StoredReplay<AskTypes>> =>
  foldStoredBy(fileAskJournals({ folder: stateFolder(process.env) }), sessionId, at, visit);
