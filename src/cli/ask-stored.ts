import { askMachine, fileAskJournals } from '../journal/ask.js';
import type { Watcher } from '../needs.js';
import type { AskTypes } from '../needs-recursive.js';
import { stateFolder } from './state-folder.js';
import { type Folded, foldStoredBy } from './stored.js';

/** Folds a stored run up to `at`. Stops on damage before that point. */
export const foldRun = (
  sessionId: string,
  at: number | undefined,
  visit?: Watcher<AskTypes>,
): Promise<Folded<AskTypes>> =>
  foldStoredBy(askMachine, fileAskJournals({ folder: stateFolder(process.env) }), sessionId, at, visit);
