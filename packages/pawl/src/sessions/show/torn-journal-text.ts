import type { OpenJournal } from '@pawl/agent/ports/journal';
import { warningText } from '@pawl/terminal/paint-text';
import type { Safe } from '@pawl/terminal/safe-text';

type TornTail = NonNullable<OpenJournal['tornTail']>;

/** What was done with the unfinished last line of a journal. */
export const tornSentence = ({ bytes, keptAs }: TornTail): string =>
  `The last ${bytes} bytes of the journal were incomplete after a crash. They were moved to ${keptAs}.`;

/** The same as a warning. */
export const tornText = (tornTail: TornTail): Safe => warningText(tornSentence(tornTail));
