import { fileJournals } from '@pawl/agent/journal/file-store';
import { JournalError } from '@pawl/agent/journal/journal-error';
import { SESSION_ID } from '../checks/journal.js';
import type { Life } from '../process-life.js';

/**
 * Another process tries to open the session that `holder` has open. It must be refused, unless the holder ends meanwhile.
 */
export const tryAsRival = async (rival: Life, folder: string, holder: () => boolean): Promise<void> => {
  const { world } = rival;
  const refusal: unknown = await fileJournals({ folder })
    .open(SESSION_ID)
    .then(
      () => null,
      (error: unknown) => error,
    );
  if (!holder()) return;
  const kind = refusal instanceof JournalError ? refusal.kind : String(refusal);
  if (refusal === null)
    world.violate('one-writer', 'a second process has opened the session beside the first one');
  else if (kind !== 'locked')
    world.violate('one-writer', `a second process was refused for another reason: ${kind}`);
  else world.meet('second process refused');
};
