import type { OpenJournal } from '../../../ports/journal.js';
import { warningText } from '../../../terminal/paint-text.js';
import type { Safe } from '../../../terminal/safe-text.js';

type TornTail = NonNullable<OpenJournal['tornTail']>;

/** What was done with the unfinished last line of a journal. */
export const tornSentence = ({ bytes, keptAs }: TornTail): string =>
  `The last ${bytes} bytes of the journal were incomplete after a crash. They were moved to ${keptAs}.`;

/** The same as a warning. */
export const tornText = (tornTail: TornTail): Safe => warningText(tornSentence(tornTail));
