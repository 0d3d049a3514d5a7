import type { StoredReplay } from '@pawl/agent/journal/read/read-without-lock';
import type { JournalStep } from '@pawl/agent/journal/read/steps';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import type { AskTypes } from '@pawl/ask/environment-and-journal-types';
import { fileAskJournals } from '@pawl/ask/journal/journaled-ask-machine';
import { foldStoredBy } from '../../sessions/stored-sessions.js';

/** Folds the stored journal of a `pawl ask` run; see `foldStoredBy`. */
export const foldRun = (
  sessionId: string,
  at: number | undefined,
  visit?: (step: JournalStep<AskTypes>) => void,
): Promise<StoredReplay<AskTypes>> =>
  foldStoredBy(fileAskJournals({ folder: stateFolder(process.env) }), sessionId, at, visit);
