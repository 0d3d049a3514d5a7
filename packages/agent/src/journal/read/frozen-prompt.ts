import type { Blobs, FrozenPrompt, Header } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import { JournalError } from '../journal-error.js';

/** Reads the system prompt and the tool declarations that the header names. Rejects with `damaged` if one is missing. */
export const readFrozen = async <M extends MachineTypes>(
  path: string,
  header: Header<M>,
  blobs: Blobs,
): Promise<FrozenPrompt> => {
  const [instructions, tools] = await Promise.all([blobs.get(header.instructions), blobs.get(header.tools)]);
  if (instructions !== undefined && tools !== undefined) return { instructions, tools };
  const missing = instructions === undefined ? header.instructions : header.tools;
  throw new JournalError(
    'damaged',
    path,
    `Session ${header.sessionId} (${path}) can't go on: the blob ${missing}, what the model was told, is missing. ` +
      'Restore the blobs from a backup, or begin a new session.',
  );
};
