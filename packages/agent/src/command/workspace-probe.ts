/**
 * Whether the commands of a workspace can run in the sandbox, without access to secrets: not if the
 * workspace holds secrets itself, or if bubblewrap does not work. It is loaded at the start of a
 * session; the sandbox is loaded with the first command.
 */

import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import { findProgram, searchPrograms } from '../platform/find-program.js';
import { type FoundPlaces, readUserPlaces } from '../secrets/user-places.js';
import {
  notInstalled,
  notLinux,
  probeArguments,
  probeBubblewrap,
  type SandboxProbe,
} from './sandbox/bubblewrap.js';
import { findHome, hostMounts, SECRET_FOLDERS } from './sandbox/host.js';
import { commandFilter } from './sandbox/seccomp.js';

export type FencedPlace = {
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  /** The user's places, of which no command may see some. */
  readonly userPlaces: FoundPlaces;
};

/** Variables that name a folder in which many programs keep secrets. */
const SECRET_VARIABLES = ['XDG_CONFIG_HOME', 'XDG_STATE_HOME'];

/** Paths with secrets. */
export const secretPlaces = ({
  environment,
  userPlaces,
}: Omit<FencedPlace, 'workspace'>): readonly string[] => {
  const home = findHome(environment.HOME ?? homedir());
  const named = SECRET_VARIABLES.flatMap((name) => environment[name] ?? []).filter(
    (value) => path.isAbsolute(value) && value !== '/',
  );
  const inHome = home === null ? [] : SECRET_FOLDERS.map((folder) => path.join(home, folder));
  return [...new Set([...userPlaces.hidden, ...userPlaces.credentials, ...named, ...inHome])];
};

/** Null if the workspace can be fenced, otherwise the reason as a sentence. */
const unfitWorkspace = (place: FencedPlace): string | null => {
  const { workspace, environment } = place;
  const home = findHome(environment.HOME ?? homedir());
  const isTop = path.dirname(workspace) === workspace;
  if (isTop) return 'The workspace is the whole machine.';
  if (home !== null && isWithin(home, workspace))
    return 'The workspace holds the whole home folder, with its secrets.';
  if (['/proc', '/sys', '/dev', '/run/pawl'].some((folder) => isWithin(workspace, folder)))
    return `The workspace ${workspace} belongs to the system.`;
  if (['/tmp', '/usr', '/etc', '/var', '/home', '/run'].includes(workspace))
    return `The workspace ${workspace} belongs to the system.`;
  const secret = secretPlaces(place).find((one) => isWithin(workspace, one));
  return secret === undefined ? null : `The workspace lies in ${secret}, where secrets are kept.`;
};

const ELSEWHERE = 'Start Pawl in a folder of the project, or use --sandbox off.';

/** `cacheFolder`: folder for the cached result, shared by all sessions. Null: no cache. */
type ProbeOptions = Omit<FencedPlace, 'userPlaces'> & {
  readonly userPlaces?: FoundPlaces;
  readonly cacheFolder: string | null;
};

/** Asks everything that must hold, the cheapest first. Never rejects. */
export const probeWorkspace = async (options: ProbeOptions): Promise<SandboxProbe> => {
  const { environment, workspace, cacheFolder, userPlaces = readUserPlaces(environment) } = options;
  if (process.platform !== 'linux') return notLinux();
  const unfit = unfitWorkspace({ workspace, environment, userPlaces });
  if (unfit !== null) return { kind: 'missing', reason: unfit, repair: ELSEWHERE };
  const bwrap = findProgram('bwrap', { environment, workspace });
  if (bwrap === null)
    return notInstalled(searchPrograms({ environment, workspace }).whyNot('bwrap'));
  const filter = commandFilter(process.arch, { local: true });
  const isFiltered = filter !== null;
  return probeBubblewrap(
    {
      bwrap,
      filter,
      words: (features) => probeArguments(bwrap, features, hostMounts(), isFiltered),
    },
    cacheFolder,
  );
};
