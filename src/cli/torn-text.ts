import type { OpenJournal } from '../needs.js';
import { warningText } from '../terminal/print.js';

/** What is said of a journal whose last line was cut off. */
export const tornText = ({ bytes, keptAs }: NonNullable<OpenJournal['tornTail']>): string =>
  warningText(`The last ${bytes} bytes of the journal were torn off by a crash; they are kept in ${keptAs}.`);
