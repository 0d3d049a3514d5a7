import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { Session } from '@pawl/agent/api/create-agent';
import { makeFolder, pastedFolder, writeWhole } from '@pawl/agent/journal/paths-and-durable-writes';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import { attempt } from '@pawl/agent/session/attempt';
import type { Composer } from '@pawl/terminal/input/composer';
import { paint } from '@pawl/terminal/paint-text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { indentWords } from '@pawl/terminal/width';
import type { CommandContext } from '../../slash/command-context.js';
import { readClipboard } from './clipboard-picture.js';
import { mentionOf } from './mentioned-pictures.js';

/** Characters of the hash in a picture's file name. */
const NAME_DIGITS = 12;

/** Stores the clipboard's picture with the session. Returns the word that names it; rejects with why there is none. */
const keepClipboard = async (session: Session, workspace: string, signal: AbortSignal): Promise<string> => {
  const bytes = await readClipboard({
    platform: process.platform,
    environment: process.env,
    workspace,
    signal,
  });
  const { sha256 } = await session.keepPicture(bytes); // reports a picture that no model accepts now, not when the text is sent
  const folder = pastedFolder(stateFolder(process.env), session.id);
  const file = path.join(folder, `pasted-${sha256.slice(0, NAME_DIGITS)}.png`);
  const mention = mentionOf(file);
  if (mention === null)
    throw new Error(`${file} can't be mentioned because its path contains spaces and quotes`);
  await makeFolder(folder);
  await writeWhole(file, `${file}.${randomUUID()}`, [bytes]);
  return mention;
};

/** Inserts the clipboard's picture into the input line, or says why that failed. Never rejects. */
export const pastePicture = async (
  context: CommandContext,
  composer: Composer,
  signal: AbortSignal,
): Promise<void> => {
  const { session, workspace, view, look } = context;
  const kept = await attempt(() => keepClipboard(session, workspace, signal));
  if (signal.aborted) return; // the session has ended
  if (kept.kind === 'fault') {
    const text = `Can't paste a picture: ${kept.fault.message}. Or save it as a file and mention it: @shot.png`;
    view.print(paint(look, 'yellow', indentWords(makeSafe(text), look.columns)));
  } else if (look.plain === 'yes') {
    // Don't insert a word into a line that the user can't see.
    view.print(safe`· the picture is stored: mention it in your text as ${makeSafe(kept.value)}`);
  } else composer.putWord(kept.value);
  view.redraw();
};
