/**
 * Whether the commands of a workspace can run in the sandbox, without access to secrets: not if the
 * workspace holds secrets itself, or if bubblewrap does not work. It is loaded at the start of a
 * session; the sandbox is loaded with the first command.
 */

import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { stateFolder } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import { findProgram, searchPrograms } from '../platform/find-program.js';
import { listWords } from '../policy/paths.js';
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
  /** Files and folders that no command may see: Pawl's state and configuration. */
  readonly hidden: readonly string[];
};

/** Variables that name a file or folder with secrets. */
const SECRET_VARIABLES = listWords(`
  GNUPGHOME DOCKER_CONFIG KUBECONFIG AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE NETRC
  CLOUDSDK_CONFIG GH_CONFIG_DIR PASSWORD_STORE_DIR XDG_CONFIG_HOME XDG_STATE_HOME XAUTHORITY
  AZURE_CONFIG_DIR GOOGLE_APPLICATION_CREDENTIALS XDG_RUNTIME_DIR SSH_AUTH_SOCK
  NPM_CONFIG_USERCONFIG
`);

/** Paths with secrets. */
export const secretPlaces = ({
  environment,
  hidden,
}: Omit<FencedPlace, 'workspace'>): readonly string[] => {
  const home = findHome(environment.HOME ?? homedir());
  const named = SECRET_VARIABLES.map((name) => environment[name]).filter(
    (value) => value !== undefined && path.isAbsolute(value) && value !== '/',
  );
  const inHome = home === null ? [] : SECRET_FOLDERS.map((folder) => path.join(home, folder));
  return [...new Set([...hidden, ...named.filter((value) => value !== undefined), ...inHome])];
};

/** Null if the workspace can be fenced, otherwise the reason as a sentence. */
const unfitWorkspace = (place: FencedPlace): string | null => {
  const { workspace, environment } = place;
  const home = findHome(environment.HOME ?? homedir());
  const isTop = path.dirname(workspace) === workspace;
  if (isTop) return 'The workspace is the whole machine.';
  if (home !== null && isWithin(home, workspace))
    return 'The workspace holds your whole home, with its secrets.';
  const state = stateFolder(environment);
  if (isWithin(state, workspace))
    return (
      `The workspace holds ${state}, where Pawl keeps its sessions. Set XDG_STATE_HOME to a ` +
      'folder outside.'
    );
  if (['/proc', '/sys', '/dev', '/run/pawl'].some((folder) => isWithin(workspace, folder)))
    return `The workspace ${workspace} belongs to the system.`;
  if (['/tmp', '/usr', '/etc', '/var', '/home', '/run'].includes(workspace))
    return `The workspace ${workspace} belongs to the system.`;
  const secret = secretPlaces(place).find((one) => isWithin(workspace, one));
  return secret === undefined ? null : `The workspace lies in ${secret}, where secrets are kept.`;
};

const ELSEWHERE = 'Start Pawl in a folder of the project, or use --sandbox off.';

/** `cacheFolder`: folder for the cached result, shared by all sessions. Null: no cache. */
type ProbeOptions = Omit<FencedPlace, 'hidden'> & {
  readonly hidden?: readonly string[];
  readonly cacheFolder: string | null;
};

/** Asks everything that must hold, the cheapest first. Never rejects. */
export const probeWorkspace = async (options: ProbeOptions): Promise<SandboxProbe> => {
  const { environment, workspace, cacheFolder, hidden = [] } = options;
  if (process.platform !== 'linux') return notLinux();
  const unfit = unfitWorkspace({ workspace, environment, hidden });
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
