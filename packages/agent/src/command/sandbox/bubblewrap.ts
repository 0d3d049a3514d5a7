/**
 * Bubblewrap: the arguments that build the fence around commands.
 *
 * A fence has two layers, each a start of bubblewrap. The outer one makes the mounts. The inner one
 * makes a second user and mount namespace, into which the kernel copies these mounts as one locked
 * tree. So a descriptor of a folder keeps what is mounted below it, also after its fence has ended:
 * a command that hands a folder to another one through a socket hands it over with its protection.
 * The first process stands in the outer layer, where no command may trace it or read its memory.
 * Where the second layer is impossible, commands get no local sockets, and can hand over nothing.
 */

import { realpathSync } from 'node:fs';
import path from 'node:path';
import { entryStatus, isWithin, realPath } from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { listWords } from '../../policy/paths.js';
import type { FenceContents } from './fence.js';
import {
  closedFolder,
  emptyFolder,
  isOnHost,
  type Mount,
  mountWords,
  readable,
  sealed,
  writable,
} from './host.js';
import { INNER_HOME, type SessionFolders } from './session-folders.js';

/** The descriptor at which the sandbox inherits the system-call filter. */
const FILTER_DESCRIPTOR = 3;

const NAMESPACES = listWords(
  '--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try',
);

/**
 * Makes the settings of the kernel read-only, for a command of root: they are shared by all
 * namespaces, root may write them without capabilities, and `kernel.core_pattern` names a program
 * that the kernel starts. Other users can't write them, and each mount costs time. The limits of
 * namespaces stay writable, since the inner layer sets them: they are those of a user namespace,
 * and closed to a command without capabilities.
 */
const KERNEL_SETTINGS = listWords(`
  --ro-bind-try /proc/sys /proc/sys --ro-bind-try /proc/fs /proc/fs
  --ro-bind-try /proc/acpi /proc/acpi --ro-bind-try /proc/scsi /proc/scsi
  --ro-bind-try /proc/asound /proc/asound --ro-bind-try /proc/driver /proc/driver
  --ro-bind-try /proc/dynamic_debug /proc/dynamic_debug --ro-bind-try /proc/mtrr /proc/mtrr
  --bind /proc/sys/user /proc/sys/user
`);

/** Folders and links that every Linux has and no command needs to write to. */
const SYSTEM = listWords(`
  --dev /dev --dir /run/lock --dir /var/log
  --symlink /tmp /var/tmp --symlink /run /var/run --symlink /run/lock /var/lock
`);

type Isolation = { readonly network: boolean; readonly filtered: boolean };

/** `outer` precedes the mounts, `inner` the program. */
type Layers = { readonly outer: readonly string[]; readonly inner: readonly string[] };

/**
 * The layers of a fence. The outer one has its namespaces. The inner one is a start of bubblewrap
 * inside the fence, as the program of the outer one: it keeps all mounts and makes none, forbids
 * further namespaces, takes all capabilities and sets the system-call filter. Where there is only
 * one layer, it does all of this.
 */
export const fenceLayers = (
  bwrap: ProgramPath,
  { disablesNamespaces, locksMounts }: Features,
  { network, filtered }: Isolation,
): Layers => {
  const namespaces = [
    ...NAMESPACES,
    ...(network ? [] : ['--unshare-net']),
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
  ];
  const restrictions = [
    ...(disablesNamespaces ? ['--disable-userns'] : []),
    ...(filtered ? ['--seccomp', String(FILTER_DESCRIPTOR)] : []),
  ];
  if (!locksMounts) return { outer: [...namespaces, ...restrictions], inner: [] };
  // Root needs this capability in the outer layer, or the kernel does not let the inner one have a
  // root. Other users need none, and bubblewrap refuses to start with one.
  const rootOnly = process.geteuid?.() === 0 ? ['--cap-add', 'CAP_SETFCAP'] : [];
  const keepsMounts = ['--dev-bind', '/', '/', '--unshare-user', '--cap-drop', 'ALL'];
  return {
    outer: [...namespaces, ...rootOnly],
    inner: ['--', realpathSync(bwrap), ...keepsMounts, ...restrictions],
  };
};

/**
 * The topmost folders of mounts deep below the private /tmp. They hold nothing else and are
 * read-only, so that a write beside the workspace fails instead of being lost.
 */
const parentsInTemporary = (mounts: readonly Mount[]): readonly string[] => {
  const parents = new Set<string>();
  for (const { path: place } of mounts) {
    if (!isWithin(place, '/tmp')) continue;
    const [first = '', ...deeper] = path.relative('/tmp', place).split(path.sep);
    if (deeper.length > 0) parents.add(path.join('/tmp', first));
  }
  return [...parents].filter((parent) => !mounts.some((mount) => mount.path === parent));
};

/** A mount that hides a file or folder. */
const mask = (place: string, folders: SessionFolders): Mount => {
  if (!entryStatus(place)?.isDirectory()) return readable(place, folders.closedFile);
  return isOnHost(place) ? closedFolder(place) : readable(place, folders.closedFolder);
};

/** Host names are resolved through a file that may lie in /run. */
const resolverMounts = (): readonly Mount[] => {
  const real = realPath('/etc/resolv.conf'); // null: names are not resolved outside either
  return real === null || isWithin(real, '/etc') ? [] : [readable(real)];
};

/**
 * Arguments in two parts, since the launcher mounts the file with the command between them: a
 * folder that is sealed takes no further mount.
 */
export type MountArguments = {
  readonly mounts: readonly string[];
  readonly seals: readonly string[];
};

/**
 * Arguments that mount everything a command sees. `mountWords` sorts the mounts by depth, so one
 * hides what lies at its place in those above it; of two at one place the later one wins. So the
 * system comes first here, then what is private to the session, then the user's places, and last
 * what hides secrets in all of them. A seal makes a folder read-only, and no mount inside it.
 */
export const mountArguments = ({
  host,
  folders,
  mounts,
  masked,
  network,
  isHomeWritable,
  workspace,
}: FenceContents): MountArguments => {
  const { users } = folders;
  const ownsSettings = entryStatus('/proc/sys')?.uid === process.geteuid?.();
  const parents = parentsInTemporary(mounts);
  const all = [
    ...host.mounts,
    writable('/tmp', folders.temporary),
    writable(INNER_HOME, folders.home),
    ...(entryStatus('/etc/passwd')?.isFile() ? [readable('/etc/passwd', users)] : []),
    ...(network ? resolverMounts() : []),
    ...parents.map(emptyFolder),
    ...mounts,
    ...masked.map((place) => mask(place, folders)),
  ];
  return {
    mounts: [
      ...['--proc', '/proc', ...(ownsSettings ? KERNEL_SETTINGS : []), ...SYSTEM],
      ...mountWords(all),
    ],
    seals: [
      ...[...parents, ...(isHomeWritable ? [] : [INNER_HOME]), '/'].flatMap(sealed),
      ...['--chdir', workspace],
    ],
  };
};

// ---- Whether it can build the fence on this machine ----

export type SandboxProbe =
  | { readonly kind: 'works'; readonly features: Features }
  /** `reason`: one sentence. `repair`: what to do about it, one or two sentences. */
  | { readonly kind: 'missing'; readonly reason: string; readonly repair: string };

/** What bubblewrap can do on this machine. */
export type Features = {
  /**
   * Whether it can forbid further user namespaces itself. Otherwise only the system-call filter
   * does.
   */
  readonly disablesNamespaces: boolean;
  /** Whether the fence can have an inner layer. Otherwise commands get no local sockets. */
  readonly locksMounts: boolean;
};

/** Settings of the kernel that keep programs from user namespaces, and the value that does. */
export const NAMESPACE_SETTINGS = {
  restricted: ['proc/sys/kernel/apparmor_restrict_unprivileged_userns', '1'],
  none: ['proc/sys/user/max_user_namespaces', '0'],
  rootOnly: ['proc/sys/kernel/unprivileged_userns_clone', '0'],
} as const;
