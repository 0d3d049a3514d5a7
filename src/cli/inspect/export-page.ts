import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { plural } from '../../base/plural.js';
import { stateFolder } from '../../base/user-folders.js';
import { InspectedSessions } from '../../inspector/server/inspected-sessions.js';
import { pageWith } from '../../inspector/server/page-html.js';
import { codeOf } from '../../journal/journal-error.js';
import { makeSafe, safe } from '../../terminal/safe-text.js';
import { writeError, writeOut } from '../../terminal/write.js';
import { exitCodes, Stop } from '../exit-codes.js';
import { usageStop } from '../flags.js';
import { packageVersion } from '../package-folder.js';
import { shownSession } from './inspect-command.js';
import { pageRedactor, readPage } from './page-and-server.js';

/** `pawl export ID --html FILE`: writes the inspector's page with the session inside, and prints its path. */
export const exportPage = async (given: string, html: string, other: string | undefined): Promise<number> => {
  if (other !== undefined) throw usageStop(`Name one file: --html ${html} or ${other}.`);
  const sessionId = await shownSession(given);
  const target = path.resolve(html);
  const sessions = new InspectedSessions({
    folder: stateFolder(process.env),
    version: packageVersion(),
    redactor: pageRedactor(),
  });
  const session = await sessions.exported(sessionId);
  const page = pageWith(readPage(), session);
  try {
    await writeFile(target, page, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    throw new Stop(
      exitCodes.badInput,
      'cannotWrite',
      `${target} is there already and stays as it is. Name another file.`,
    );
  }
  const { length } = session.entries;
  if (session.damage !== null) writeError(makeSafe(`! ${session.damage}\n`));
  writeError(
    makeSafe(
      `${plural(length, 'entry', 'entries')} in clear text: what was said, called and returned. The keys and tokens of this environment are replaced, secrets from elsewhere are not.\n`,
    ),
  );
  writeOut(safe`${makeSafe(target)}\n`);
  return exitCodes.done;
};
