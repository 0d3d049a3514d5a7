import type { OpenJournal } from '../../ports/journal.js';
import { warningText } from '../../terminal/print.js';
import type { Safe } from '../../terminal/safe-text.js';

/** Warning for a journal whose unfinished last line was cut off. */
export const tornText = ({ bytes, keptAs }: NonNullable<OpenJournal['tornTail']>): Safe =>
  warningText(
    `The last ${bytes} bytes of the journal were incomplete after a crash. They were moved to ${keptAs}.`,
  );
