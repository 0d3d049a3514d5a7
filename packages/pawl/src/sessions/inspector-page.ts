/** Parts that both ways to the inspector's page need: a server, and a file. */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { stateFolder } from '@pawl/agent/platform/environment';
import { createRedactor, findSecrets, type Redactor } from '@pawl/agent/secrets/redactor';
import type { LiveSessions } from '@pawl/inspector/page-data-types';
import { type Inspector, startInspector } from '@pawl/inspector/server/inspector-server';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { packageFolder, packageVersion } from '../process/package-folder.js';

/** Throws a `Stop` if Pawl was not installed whole. */
export const readPage = (): string => {
  const file = path.join(packageFolder(), 'dist', 'inspector.html');
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new Stop(exitCodes.internal, 'notFound', `${file} is missing: install Pawl again.`);
  }
};

/** Replaces the secrets of this environment. */
export const pageRedactor = (): Redactor => createRedactor(findSecrets(process.env, {}));

/** Starts the server of the page. `live`: the sessions that run in other processes. */
export const openInspector = (live: LiveSessions): Promise<Inspector> =>
  startInspector({
    folder: stateFolder(process.env),
    version: packageVersion(),
    redactor: pageRedactor(),
    page: readPage(),
    live,
  });
