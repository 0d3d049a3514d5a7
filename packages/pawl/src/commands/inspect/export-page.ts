import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '@pawl/agent/journal/journal-error';
import { plural } from '@pawl/agent/platform/base/plural';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import { InspectedSessions } from '@pawl/inspector/server/inspected-sessions';
import { pageWith } from '@pawl/inspector/server/page-html';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../../exit-codes.js';
import { usageStop } from '../../flags.js';
import { packageVersion } from '../../package-folder.js';
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
