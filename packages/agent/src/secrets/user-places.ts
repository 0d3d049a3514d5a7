/**
 * The user's places: what Pawl obeys or trusts, and credentials. One list serves the policy,
 * the mounts of the sandbox and its comparison after a command. Below stand the folders in which no
 * session works.
 */

import { existsSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import {
  cacheFolder,
  configFolder,
  homeFolder,
  type ProcessEnvironment,
  stateFolder,
} from '../platform/environment.js';
import { entriesIn, entryStatus, isWithin } from '../platform/files.js';
import {
  CREDENTIALS,
  findProtection,
  isSecretPath,
  listWords,
  type UserPlaces,
} from '../policy/paths.js';

const LINKS_MAX = 40;

/** Targets of links by their paths. Most places begin with the same folders: each is read once. */
type LinkTargets = Map<string, string | null>;

/** The target of a link; null for anything else, and for what is not there. */
const readTarget = (place: string, targets: LinkTargets): string | null => {
  const known = targets.get(place);
  if (known !== undefined) return known;
  let target: string | null = null;
  try {
    if (entryStatus(place)?.isSymbolicLink() === true) target = readlinkSync(place);
  } catch {
    // gone meanwhile
  }
  targets.set(place, target);
  return target;
};

/** A path that `path.normalize` would change. */
const NOT_NORMAL = /\/(?:\.{0,2})(?:\/|$)/;

/**
 * For each place the absolute path, each link on the way, and the real path, which may be missing:
 * who can make it there or replace a link has the place. The real path of the last one is last.
 * Functions of `path` are slow at a start, which looks at a hundred places.
 */
const pathsTo = (places: readonly string[], targets: LinkTargets): readonly string[] => {
  const paths = new Set<string>();
  let real = '/';
  for (const place of places) {
    paths.add(NOT_NORMAL.test(place) ? path.normalize(place) : place);
    let rest = place;
    let above = '';
    let links = 0;
    while (rest !== '') {
      const end = rest.indexOf('/');
      const name = end < 0 ? rest : rest.slice(0, end);
      rest = end < 0 ? '' : rest.slice(end + 1);
      if (name === '' || name === '.') continue;
      if (name === '..') {
        above = above.slice(0, Math.max(above.lastIndexOf('/'), 0));
        continue;
      }
      const next = `${above}/${name}`;
      const target = links >= LINKS_MAX ? null : readTarget(next, targets);
      if (target === null) {
        above = next;
        continue;
      }
      links += 1;
      paths.add(next);
      rest = `${target}/${rest}`;
      if (path.isAbsolute(target)) above = '';
    }
    real = above === '' ? '/' : above;
    paths.add(real);
  }
  return [...paths];
};

/** How deep links in the folder of the configuration are followed, and how many entries are. */
const DEPTH_MAX = 3;
const ENTRIES_MAX = 1_000;

/** The links in a folder, to files of the configuration that the user keeps elsewhere. */
const linksIn = (top: string): readonly string[] => {
  const links: string[] = [];
  let level = [top];
  let remaining = ENTRIES_MAX;
  for (let depth = 0; depth < DEPTH_MAX && level.length > 0; depth++) {
    const next: string[] = [];
    for (const folder of level) {
      for (const entry of entriesIn(folder)) {
        if (entry.name === 'node_modules' || entry.name === '.git') continue;
        if (remaining-- <= 0) return links;
        if (entry.isSymbolicLink()) links.push(path.join(folder, entry.name));
        else if (entry.isDirectory()) next.push(path.join(folder, entry.name));
      }
    }
    level = next;
  }
  return links;
};

/** Variables that name files or folders with credentials. */
const CREDENTIAL_VARIABLES = listWords(`
  GNUPGHOME DOCKER_CONFIG KUBECONFIG AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE NETRC
  CLOUDSDK_CONFIG GH_CONFIG_DIR PASSWORD_STORE_DIR XAUTHORITY AZURE_CONFIG_DIR
  GOOGLE_APPLICATION_CREDENTIALS XDG_RUNTIME_DIR SSH_AUTH_SOCK NPM_CONFIG_USERCONFIG
  npm_config_userconfig PGPASSFILE PIP_CONFIG_FILE BOTO_CONFIG
`);

/** Where a place below the home lies if the user has moved the folder that programs share. */
const MOVED = [
  ['.config/', 'XDG_CONFIG_HOME'],
  ['.local/share/', 'XDG_DATA_HOME'],
] as const;

const isNamed = (value: string | undefined): value is string =>
  value !== undefined && path.isAbsolute(value) && value !== '/';

/** `keyFiles`: files with API keys that the configuration names. */
const credentialPlaces = (
  environment: ProcessEnvironment,
  home: string,
  keyFiles: readonly string[],
): readonly string[] => {
  const places = [...keyFiles];
  for (const credential of CREDENTIALS) {
    places.push(`${home}/${credential}`);
    for (const [below, variable] of MOVED) {
      const folder = credential.startsWith(below) ? environment[variable] : undefined;
      if (isNamed(folder)) places.push(path.join(folder, credential.slice(below.length)));
    }
  }
  for (const variable of CREDENTIAL_VARIABLES) {
    for (const place of environment[variable]?.split(path.delimiter) ?? [])
      if (isNamed(place)) places.push(place);
  }
  return places;
};

/** The folders that Pawl itself writes, and the links that lead to them: no project is there. */
const ownFolders = (environment: ProcessEnvironment): readonly string[] => {
  const folders = [configFolder, stateFolder, cacheFolder].map((find) => find(environment));
  return pathsTo(folders, new Map());
};

/** Places as the session's start finds them; made once a session. */
export type FoundPlaces = UserPlaces & {
  /** The part of `obeyed` that no command in the sandbox sees. */
  readonly hidden: readonly string[];
};

/**
 * Finds the user's places. `keyFiles`: files with API keys that the configuration names. The
 * folder of the configuration is hidden where it is named; where links lead, it is part of what the
 * user works on (dotfiles under git), so commands read it.
 */
export const readUserPlaces = (
  environment: ProcessEnvironment,
  keyFiles: readonly string[] = [],
): FoundPlaces => {
  const targets: LinkTargets = new Map();
  const home = homeFolder(environment);
  const config = configFolder(environment);
  const shared = environment.XDG_CONFIG_HOME;
  const moved = isNamed(shared) && path.relative(shared, path.join(home, '.config')) !== '';
  const configuration = [config, path.join(config, 'config.toml'), ...linksIn(config)];
  const state = stateFolder(environment);
  const written = pathsTo([state, cacheFolder(environment)], targets);
  return {
    home: pathsTo([home], targets).at(-1) ?? home,
    obeyed: [...pathsTo([...configuration, ...(moved ? [shared] : [])], targets), ...written],
    credentials: [
      ...pathsTo([...credentialPlaces(environment, home, keyFiles), state], targets),
      config,
    ],
    hidden: [config, ...written],
  };
};

// ---- Folders that are no workspace ----

/*
 * Folders in which no session works: the agent writes its workspace without a question, and there
 * other programs would obey what it writes.
 *
 * 1. Real absolute paths are judged, so the folder `.git/hooks` is one however it was opened.
 * 2. A repository may lie below such a name or a place of secrets, as a worktree in
 *    `.cursor/worktrees` does: names above its root don't count. `.git`, folders of the system and
 *    those of Pawl always do.
 */

/** Folders that are no workspace themselves; folders below them may be. */
const SYSTEM_TOPS = ['/', '/usr', '/var', '/run'];
/** Folders in which nothing is a workspace. */
const SYSTEM = '/etc /boot /proc /sys /bin /sbin /lib /lib64 /usr/bin /usr/sbin /usr/lib'.split(
  ' ',
);
/** Memory that is used as a disk, in a folder of the system. */
const SHARED_MEMORY = '/dev/shm';

const isOfSystem = (folder: string): boolean => {
  if (SYSTEM_TOPS.includes(folder) || path.dirname(folder) === folder) return true;
  if (isWithin(folder, '/dev')) return !isWithin(folder, SHARED_MEMORY) || folder === SHARED_MEMORY;
  return SYSTEM.some((place) => isWithin(folder, place));
};

/** The root of the repository in which the folder lies; null without one. */
const repositoryAbove = (folder: string): string | null => {
  for (let above = folder; path.dirname(above) !== above; above = path.dirname(above))
    if (existsSync(path.join(above, '.git'))) return above;
  return null;
};

/**
 * Why a folder (a real absolute path) can be no workspace, as the end of the sentence "it can't,
 * since". Null if it can.
 */
export const workspaceFault = (folder: string, environment: ProcessEnvironment): string | null => {
  if (isOfSystem(folder)) return 'it belongs to the system';
  for (const place of ownFolders(environment))
    if (isWithin(folder, place)) return `Pawl keeps its own files in ${place}`;
  // `findProtection` looks for a name in the path, such as .git or .vscode, whose files programs
  // obey.
  if (folder.split(path.sep).some((name) => findProtection(name)?.path === '.git'))
    return 'it lies in .git: git obeys its configuration and runs its hooks';
  const root = repositoryAbove(folder);
  const places = readUserPlaces(environment);
  const holdsSecrets = (place: string): boolean =>
    isWithin(place, places.home) && isSecretPath(place, places, null);
  if (holdsSecrets(folder) && (root === null || !holdsSecrets(path.dirname(root))))
    return 'secrets are kept there';
  const protection = findProtection(root === null ? folder : path.relative(root, folder));
  return protection === null ? null : `it lies in ${protection.path}: ${protection.why}`;
};

/** The whole refusal, with what to do; null for a folder that can be a workspace. */
export const workspaceRefusal = (
  folder: string,
  environment: ProcessEnvironment,
): string | null => {
  const why = workspaceFault(folder, environment);
  return why === null
    ? null
    : `${folder} can't be the workspace, since ${why}. Give the folder of your project.`;
};
