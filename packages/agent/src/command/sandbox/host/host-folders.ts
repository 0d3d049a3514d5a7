import { accessSync, constants, type Dirent, readdirSync, readlinkSync } from 'node:fs';
import { statusOf } from '../../../platform/files/entry-status.js';
import { type Mount, readable } from '../mounts.js';

/**
 * The system folders that fenced commands see, all read-only.
 *
 * Commands see what every user of the machine may read. Files that only this user may read are masked, so that commands
 * of root find neither system passwords nor server keys.
 */

const FOLDERS = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/opt',
  '/nix',
  '/gnu',
];

/**
 * Package lists and precomputed files that programs need. Each mount slows every command, so caches that programs can
 * do without are left out.
 */
const INNER_FOLDERS = [
  ...['/var/lib/dpkg', '/var/lib/rpm', '/var/lib/pacman', '/var/lib/alternatives'],
  ...['/var/lib/texmf', '/var/lib/ghc', '/var/lib/gems'],
  ...['/sys/devices/system', '/sys/fs/cgroup'],
];

/** Never shown, whatever their mode says. */
const SECRET_PLACES = [
  ...['/etc/shadow', '/etc/shadow-', '/etc/gshadow', '/etc/gshadow-', '/etc/sudoers', '/etc/sudoers.d'],
  ...[
    '/etc/security/opasswd',
    '/etc/ssl/private',
    '/etc/pki/tls/private',
    '/etc/krb5.keytab',
    '/etc/wireguard',
  ],
  ...['/etc/NetworkManager/system-connections', '/etc/openvpn', '/etc/ipsec.secrets', '/etc/ipsec.d/private'],
  ...[
    '/etc/ppp/chap-secrets',
    '/etc/ppp/pap-secrets',
    '/etc/wpa_supplicant',
    '/etc/netplan',
    '/etc/letsencrypt',
  ],
  ...[
    '/etc/apt/auth.conf',
    '/etc/apt/auth.conf.d',
    '/etc/docker/key.json',
    '/etc/kubernetes',
    '/etc/rancher',
  ],
  ...['/etc/mysql/debian.cnf', '/etc/cryptsetup-keys.d', '/etc/salt/pki', '/etc/munge', '/etc/gitlab-runner'],
  ...['/etc/samba/private', '/etc/cloud', '/etc/pawl', '/nix/var/nix/daemon-socket'],
];

/** Lock files: closed to others, but always empty. */
const LOCKS = new Set(['/etc/.pwd.lock']);
const SSH_FOLDER = '/etc/ssh';
const SSH_KEY = /^ssh_host_.*key$/;
const DEPTH_MAX = 5;
const ENTRIES_MAX = 20_000;
const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o005;

const mayRead = (place: string): boolean => {
  try {
    accessSync(place, constants.R_OK);
    return true;
  } catch {
    return false;
  }
};

const entriesOf = (folder: string): readonly Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // closed to us, so to commands as well
  }
};

const isClosedToOthers = (mode: number, isFolder: boolean): boolean => {
  const needed = isFolder ? OTHERS_ENTER : OTHERS_READ;
  return (mode & needed) !== needed;
};

/** Folders where people put their own files; packages install the rest. */
const LOOKED_THROUGH = ['/etc', '/opt', '/usr/local'];

/** Files and folders below `top` that this user may read and others may not. Thousands of entries: each step counts. */
const privatePlaces = (top: string): readonly string[] => {
  const found: string[] = [];
  let left = ENTRIES_MAX;
  const visit = (folder: string, depth: number): void => {
    for (const entry of entriesOf(folder)) {
      if (entry.isSymbolicLink() || left-- <= 0) continue;
      const place = `${folder}/${entry.name}`;
      const mode = statusOf(place)?.mode;
      if (mode === undefined || LOCKS.has(place)) continue;
      const isFolder = entry.isDirectory();
      const isPrivate =
        isClosedToOthers(mode, isFolder) || (folder === SSH_FOLDER && SSH_KEY.test(entry.name));
      if (isPrivate && mayRead(place)) found.push(place);
      else if (isFolder && depth < DEPTH_MAX) visit(place, depth + 1);
    }
  };
  visit(top, 1);
  return found;
};

const hostFolder = (folder: string): Mount | null => {
  const status = statusOf(folder);
  if (status === null) return null;
  if (status.isSymbolicLink()) return { path: folder, words: ['--symlink', readlinkSync(folder), folder] };
  return status.isDirectory() && mayRead(folder) ? readable(folder) : null;
};

/** Skips version 1 cgroups, which are a dozen separate file systems that nobody reads. */
const isWanted = (folder: string): boolean =>
  folder !== '/sys/fs/cgroup' || statusOf('/sys/fs/cgroup/cgroup.controllers') !== null;

export type HostView = {
  readonly mounts: readonly Mount[];
  /** Existing files and folders that commands could read and must not. */
  readonly masked: readonly string[];
};

/** The system folders of this machine. */
export const hostMounts = (): readonly Mount[] =>
  [...FOLDERS, ...INNER_FOLDERS.filter(isWanted)].map(hostFolder).filter((mount) => mount !== null);

/** Inspects the machine, which takes some 30 ms where much is installed by hand; once per session. */
export const viewHost = (): HostView => {
  const secret = SECRET_PLACES.filter((place) => statusOf(place) !== null && mayRead(place));
  const closed = LOOKED_THROUGH.flatMap(privatePlaces).filter((place) => !secret.includes(place));
  const isInside = (place: string): boolean => secret.some((outer) => place.startsWith(`${outer}/`));
  return {
    mounts: hostMounts(),
    masked: [...secret, ...closed.filter((place) => !isInside(place))],
  };
};

/** Whether commands see this place as part of the system. */
export const isOnHost = (place: string): boolean =>
  FOLDERS.some((folder) => place === folder || place.startsWith(`${folder}/`));
