import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { findProgram } from '../../../platform/programs/find-program.js';
import { keptGitSettings } from '../host/git-settings.js';
import { type HomeView, homeOf, viewHome } from '../host/home-folders.js';
import { type HostView, viewHost as viewHostNow } from '../host/host-folders.js';
import { commandFilter } from '../system-calls/command-system-calls.js';
import { removeStale } from './remove-stale-folders.js';
import { makeFolders, type SessionFolders } from './session-folders.js';
import { type FencedPlace, secretPlaces } from './unfit-workspace.js';

/** The parts of the machine that the commands of one session see, inspected with the first command. */

export type SessionPlace = FencedPlace & {
  readonly sessionFolder: string;
  readonly viewHost?: (() => HostView) | undefined;
};

export type SessionView = {
  readonly host: HostView;
  readonly home: HomeView;
  readonly folders: SessionFolders;
  /** The user's git settings that commands get, as text. */
  readonly gitSettings: string;
  /** Paths with secrets, which are masked if they would be visible. */
  readonly secrets: readonly string[];
  /** Files with the system-call filter; null where this architecture has none. */
  readonly filters: { readonly local: string; readonly withoutLocal: string } | null;
};

const writeFilters = (folder: string): SessionView['filters'] => {
  const write = (name: string, local: boolean): string | null => {
    const bytes = commandFilter(process.arch, { local });
    if (bytes === null) return null;
    const file = path.join(folder, `${name}.filter`);
    writeFileSync(file, bytes);
    return file;
  };
  const local = write('local', true);
  const withoutLocal = write('without-local', false);
  return local === null || withoutLocal === null ? null : { local, withoutLocal };
};

/** Inspects the machine and makes the session's folders. */
export const viewSession = async (place: SessionPlace): Promise<SessionView> => {
  const { workspace, environment, sessionFolder, hidden, viewHost = viewHostNow } = place;
  const secrets = secretPlaces(place);
  const host = viewHost();
  const home = viewHome({ environment, home: homeOf(environment.HOME ?? homedir()), workspace, hidden });
  const git = findProgram('git', { environment, workspace });
  const settings = await keptGitSettings(git, workspace, environment);
  removeStale(sessionFolder, () => git);
  const folders = makeFolders(sessionFolder, home, settings);
  return { host, home, folders, gitSettings: settings, secrets, filters: writeFilters(sessionFolder) };
};
