import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../../base/process-environment-type.js';
import { isWithin } from '../../files/is-within.js';
import { findProgram } from '../../programs/find-program.js';
import { keptGitSettings } from '../host/git-settings.js';
import { type HomeView, homeOf, SECRET_FOLDERS, viewHome } from '../host/home-folders.js';
import { type HostView, viewHost as viewHostNow } from '../host/host-folders.js';
import { commandFilter } from '../system-calls/command-system-calls.js';
import { removeStale } from './remove-stale-folders.js';
import { makeFolders, type SessionFolders } from './session-folders.js';

/** The parts of the machine that the commands of one session see, inspected with the first command. */

export type SessionPlace = {
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  readonly sessionFolder: string;
  readonly hidden: readonly string[];
  readonly viewHost?: (() => HostView) | undefined;
};

export type SessionView = {
  readonly host: HostView;
  readonly home: HomeView;
  readonly folders: SessionFolders;
  /** Paths with secrets, which are masked if they would be visible. */
  readonly secrets: readonly string[];
  /** Files with the system-call filter; null where this architecture has none. */
  readonly filters: { readonly local: string; readonly withoutLocal: string } | null;
};

/** Variables that name a file or folder with secrets. */
const SECRET_VARIABLES = [
  ...['GNUPGHOME', 'DOCKER_CONFIG', 'KUBECONFIG', 'AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE', 'NETRC'],
  ...[
    'CLOUDSDK_CONFIG',
    'GH_CONFIG_DIR',
    'PASSWORD_STORE_DIR',
    'XDG_CONFIG_HOME',
    'XDG_STATE_HOME',
    'XAUTHORITY',
  ],
  ...[
    'AZURE_CONFIG_DIR',
    'GOOGLE_APPLICATION_CREDENTIALS',
    'XDG_RUNTIME_DIR',
    'SSH_AUTH_SOCK',
    'NPM_CONFIG_USERCONFIG',
  ],
];

const secretPlaces = ({ environment, hidden }: SessionPlace): readonly string[] => {
  const home = homeOf(environment.HOME ?? homedir());
  const named = SECRET_VARIABLES.map((name) => environment[name]).filter(
    (value) => value !== undefined && path.isAbsolute(value) && value !== '/',
  );
  const inHome = home === null ? [] : SECRET_FOLDERS.map((folder) => path.join(home, folder));
  return [...new Set([...hidden, ...named.filter((value) => value !== undefined), ...inHome])];
};

/** Null if the workspace can be fenced, otherwise the reason as a sentence. */
export const unfitWorkspace = (place: SessionPlace): string | null => {
  const { workspace, environment } = place;
  const home = homeOf(environment.HOME ?? homedir());
  const isTop = path.dirname(workspace) === workspace;
  if (isTop) return 'The workspace is the whole machine.';
  if (home !== null && isWithin(home, workspace))
    return 'The workspace holds your whole home, with its secrets.';
  if (['/proc', '/sys', '/dev', '/run/pawl'].some((folder) => isWithin(workspace, folder)))
    return `The workspace ${workspace} belongs to the system.`;
  if (['/tmp', '/usr', '/etc', '/var', '/home', '/run'].includes(workspace))
    return `The workspace ${workspace} belongs to the system.`;
  const secret = secretPlaces(place).find((one) => isWithin(workspace, one));
  return secret === undefined ? null : `The workspace lies in ${secret}, where secrets are kept.`;
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
  removeStale(sessionFolder);
  const folders = makeFolders(sessionFolder, home, settings);
  return { host, home, folders, secrets, filters: writeFilters(sessionFolder) };
};
