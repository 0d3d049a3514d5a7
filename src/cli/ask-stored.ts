import { fileAskJournals } from '../journal/ask.js';
import type { StoredReplay } from '../journal/inspection.js';
import type { Watcher } from '../needs.js';
import type { AskTypes } from '../needs-recursive.js';
import { stateFolder } from './state-folder.js';
import { foldStoredBy } from './stored.js';

/** Folds a stored run up to `at`. Stops on damage before that point. */
export const foldRun = (
  sessionId: string,
  at: number | undefined,
  visit?: Watcher<AskTypes>,
): Promise<StoredReplay<AskTypes>> =>
  foldStoredBy(fileAskJournals({ folder: stateFolder(process.env) }), sessionId, at, visit);
