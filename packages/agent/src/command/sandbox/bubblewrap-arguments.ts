import { realpathSync } from 'node:fs';
import path from 'node:path';
import { statusOf } from '../../platform/files/entry-status.js';
import { isWithin } from '../../platform/files/is-within.js';
import { type HostView, isOnHost } from './host/host-folders.js';
import {
  argumentsOfMounts,
  closedFolder,
  emptyFolder,
  type Mount,
  readable,
  sealed,
  writable,
} from './mounts.js';
import type { Features } from './sandbox-probe.js';
import { INNER_HOME, type SessionFolders } from './session/session-folders.js';

/** Arguments for bubblewrap that build the fence around commands. */

/** The descriptor at which the sandbox inherits the system-call filter. */
export const FILTER_DESCRIPTOR = 3;

const NAMESPACES = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
];
/**
 * Settings of the kernel, shared by all namespaces. They belong to root, and a command of root is root to them, without
 * capabilities too: `kernel.core_pattern` names a program that the kernel starts. Bubblewrap leaves them writable. To
 * other users they are closed anyway, and each mount costs time.
 */
const KERNEL_SETTINGS = ['sys', 'fs', 'acpi', 'scsi', 'asound', 'driver', 'dynamic_debug', 'mtrr'].flatMap(
  (name) => ['--ro-bind-try', `/proc/${name}`, `/proc/${name}`],
);
const ownsKernelSettings = (): boolean => statusOf('/proc/sys')?.uid === process.geteuid?.();
/** Folders and links that every Linux has and no command needs to write to. */
const SYSTEM = ['--dev', '/dev'].concat([
  '--dir',
  '/run/lock',
  '--dir',
  '/var/log',
  '--symlink',
  '/tmp',
  '/var/tmp',
  '--symlink',
  '/run',
  '/var/run',
  '--symlink',
  '/run/lock',
  '/var/lock',
]);

const systemWords = (): readonly string[] => [
  ...['--proc', '/proc'],
  ...(ownsKernelSettings() ? KERNEL_SETTINGS : []),
  ...SYSTEM,
];

/** Arguments that isolate the process: namespaces, capabilities, the system-call filter. They precede the mounts. */
export const isolationArguments = (
  { disablesNamespaces }: Features,
  { network, filtered }: { readonly network: boolean; readonly filtered: boolean },
): readonly string[] => [
  ...NAMESPACES,
  ...(network ? [] : ['--unshare-net']),
  ...(disablesNamespaces ? ['--disable-userns'] : []),
  ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
  ...(filtered ? ['--seccomp', String(FILTER_DESCRIPTOR)] : []),
];

/** Arguments of the probe: the fence without a workspace and without session folders. */
export const probeArguments = (
  features: Features,
  mounts: readonly Mount[],
  filtered: boolean,
): readonly string[] => [
  ...isolationArguments(features, { network: false, filtered }),
  ...argumentsOfMounts(mounts),
  ...systemWords(),
  ...['--tmpfs', '/tmp', ...sealed('/'), '--chdir', '/tmp'],
];

const below = (place: string, folder: string): readonly string[] =>
  isWithin(place, folder) && place !== folder ? path.relative(folder, place).split(path.sep) : [];

/**
 * The topmost folders of mounts deep below the private /tmp. They hold nothing else and are read-only, so that a write
 * beside the workspace fails instead of being lost.
 */
const parentsInTemporary = (mounts: readonly Mount[]): readonly string[] => {
  const parents = new Set<string>();
  for (const { path: place } of mounts) {
    const [first, ...deeper] = below(place, '/tmp');
    if (first !== undefined && deeper.length > 0) parents.add(path.join('/tmp', first));
  }
  return [...parents].filter((parent) => !mounts.some((mount) => mount.path === parent));
};

const mask = (place: string, folders: SessionFolders): Mount => {
  if (!statusOf(place)?.isDirectory()) return readable(place, folders.closedFile);
  return isOnHost(place) ? closedFolder(place) : readable(place, folders.closedFolder);
};

/** Host names are resolved through a file that may lie in /run. */
const resolverMounts = (): readonly Mount[] => {
  try {
    const real = realpathSync('/etc/resolv.conf');
    return isWithin(real, '/etc') ? [] : [readable(real)];
  } catch {
    return []; // there is none: names are not found outside either
  }
};

export type FenceContents = {
  readonly host: HostView;
  readonly folders: SessionFolders;
  /** The user's tools, the workspace, its repository, and the read-only parts of the workspace. */
  readonly mounts: readonly Mount[];
  /** Paths inside the mounts that the command must not see. */
  readonly masked: readonly string[];
  readonly network: boolean;
  /** The folder that the command starts in. */
  readonly workspace: string;
};

/** Arguments in two parts. The caller may mount more between them. */
export type MountArguments = { readonly mounts: readonly string[]; readonly seals: readonly string[] };

export const mountArguments = ({
  host,
  folders,
  mounts,
  masked,
  network,
  workspace,
}: FenceContents): MountArguments => {
  const { users } = folders;
  const parents = parentsInTemporary(mounts);
  const all = [
    ...host.mounts,
    writable('/tmp', folders.temporary),
    writable(INNER_HOME, folders.home),
    ...(statusOf('/etc/passwd')?.isFile() ? [readable('/etc/passwd', users)] : []),
    ...(network ? resolverMounts() : []),
    ...parents.map(emptyFolder),
    ...mounts,
    ...masked.map((place) => mask(place, folders)),
  ];
  return {
    mounts: [...systemWords(), ...argumentsOfMounts(all)],
    seals: [...parents.flatMap(sealed), ...sealed('/'), '--chdir', workspace],
  };
};
