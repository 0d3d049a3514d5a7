/**
 * The user's places: what Pawl obeys or trusts, and credentials. One list serves the policy,
 * the mounts of the sandbox and its comparison after a command.
 *
 * From top to bottom: the paths that lead to a place through links; and `readUserPlaces`.
 */

import { readlinkSync } from 'node:fs';
import path from 'node:path';
import {
  cacheFolder,
  configFolder,
  homeFolder,
  type ProcessEnvironment,
  stateFolder,
} from '../platform/environment.js';
import { entriesIn, entryStatus, isWithin } from '../platform/files.js';
import { CREDENTIALS, listWords, type UserPlaces } from '../policy/paths.js';

const LINKS_MAX = 40;

/** The target of a link; null for anything else, and for what is not there. */
const readTarget = (place: string): string | null => {
  if (entryStatus(place)?.isSymbolicLink() !== true) return null;
  try {
    return readlinkSync(place);
  } catch {
    return null; // gone meanwhile
  }
};

/** Reads each link once, since most places begin with the same folders. */
const createLinkReader = (): ((place: string) => string | null) => {
  const targets = new Map<string, string | null>();
  return (place) => {
    const known = targets.get(place);
    if (known !== undefined) return known;
    const target = readTarget(place);
    targets.set(place, target);
    return target;
  };
};

/**
 * The absolute path, each link on the way, and the real path at the end, which may be missing: who
 * can make it there or replace a link has the place.
 */
const pathsTo = (place: string, readLink: (place: string) => string | null): readonly string[] => {
  const paths = [path.normalize(place)];
  const names = place.split(path.sep);
  let real = '/';
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const next = path.join(real, name);
    const target = paths.length > LINKS_MAX ? null : readLink(next);
    if (target === null) {
      real = next;
      continue;
    }
    paths.push(next);
    names.unshift(...target.split(path.sep));
    if (path.isAbsolute(target)) real = '/';
  }
  return [...paths, real];
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
  const moved = MOVED.flatMap(([below, variable]) => {
    const folder = environment[variable];
    if (!isNamed(folder)) return [];
    const places = CREDENTIALS.filter((place) => place.startsWith(below));
    return places.map((place) => path.join(folder, place.slice(below.length)));
  });
  const named = CREDENTIAL_VARIABLES.flatMap(
    (name) => environment[name]?.split(path.delimiter) ?? [],
  );
  return [
    ...CREDENTIALS.map((place) => path.join(home, place)),
    ...moved,
    ...named.filter(isNamed),
    ...keyFiles,
  ];
};

/** Places as the session's start finds them; made once a session. */
export type FoundPlaces = UserPlaces & {
  /** The folders that Pawl itself writes: nobody works there. */
  readonly folders: readonly string[];
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
  const readLink = createLinkReader();
  const withLinks = (places: readonly string[]): readonly string[] => [
    ...new Set(places.flatMap((place) => pathsTo(place, readLink))),
  ];
  const home = homeFolder(environment);
  const [config, state, cache] = [configFolder, stateFolder, cacheFolder].map((find) =>
    find(environment),
  ) as [string, string, string]; // three functions, three paths
  const shared = environment.XDG_CONFIG_HOME;
  const moved = isNamed(shared) && path.relative(shared, path.join(home, '.config')) !== '';
  const configuration = [config, path.join(config, 'config.toml'), ...linksIn(config)];
  const written = withLinks([state, cache]);
  return {
    home: pathsTo(home, readLink).at(-1) ?? home,
    obeyed: [...withLinks([...configuration, ...(moved ? [shared] : [])]), ...written],
    credentials: [...withLinks([...credentialPlaces(environment, home, keyFiles), state]), config],
    folders: [...withLinks([config]), ...written],
    hidden: [config, ...written],
  };
};

/** Those of the places that lie in the workspace. A place that holds all of it does not count. */
export const placesIn = (
  { obeyed, credentials }: UserPlaces,
  workspace: string,
): readonly string[] => {
  const inside = [...new Set([...obeyed, ...credentials])].filter(
    (place) => place !== workspace && isWithin(place, workspace),
  );
  return inside.filter((one) => !inside.some((outer) => outer !== one && isWithin(one, outer)));
};
