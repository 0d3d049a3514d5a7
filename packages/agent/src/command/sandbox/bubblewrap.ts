/**
 * Bubblewrap: the arguments that build the fence around commands, and whether they work on this
 * machine.
 *
 * A fence has two layers, each a start of bubblewrap. The outer one makes the mounts. The inner one
 * makes a second user and mount namespace, into which the kernel copies these mounts as one locked
 * tree. So a descriptor of a folder keeps what is mounted below it, also after its fence has ended:
 * a command that hands a folder to another one through a socket hands it over with its protection.
 * The first process stands in the outer layer, where no command may trace it or read its memory.
 * Where the second layer is impossible, commands get no local sockets, and can hand over nothing.
 *
 * From top to bottom: the arguments of the fence (`fenceLayers`, `mountArguments`);
 * and the probe (`probeBubblewrap`), which tries it once and explains what is missing on this
 * machine.
 */

import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { release, tmpdir } from 'node:os';
import path from 'node:path';
import { entryStatus, isWithin } from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { askProgram, SYSTEM_SHELL } from '../../platform/start-program.js';
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

const NAMESPACES = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
];
/**
 * Settings of the kernel, shared by all namespaces. They belong to root, and a command of root is
 * root to them, without capabilities too: `kernel.core_pattern` names a program that the kernel
 * starts. Bubblewrap leaves them writable. So they are mounted read-only for root, and only for
 * root: to other users they are closed anyway, and each mount costs time. The exception are the
 * limits of namespaces, which the inner layer sets: they are those of a user namespace, and closed
 * to a command without capabilities.
 */
const KERNEL_SETTINGS = ['sys', 'fs', 'acpi', 'scsi', 'asound', 'driver', 'dynamic_debug', 'mtrr']
  .flatMap((name) => ['--ro-bind-try', `/proc/${name}`, `/proc/${name}`])
  .concat('--bind', '/proc/sys/user', '/proc/sys/user');

const ownsKernelSettings = (): boolean => entryStatus('/proc/sys')?.uid === process.geteuid?.();

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

/** Arguments of the probe: the fence without a workspace and without session folders. */
export const probeArguments = (
  bwrap: ProgramPath,
  features: Features,
  mounts: readonly Mount[],
  filtered: boolean,
): readonly string[] => {
  const { outer, inner } = fenceLayers(bwrap, features, { network: false, filtered });
  return [
    ...outer,
    ...mountWords(mounts),
    ...systemWords(),
    ...['--tmpfs', '/tmp', ...sealed('/'), '--chdir', '/tmp'],
    ...inner,
  ];
};

/** The names from `folder` down to `place`; none if it does not lie in it. */
const below = (place: string, folder: string): readonly string[] =>
  isWithin(place, folder) && place !== folder ? path.relative(folder, place).split(path.sep) : [];

/**
 * The topmost folders of mounts deep below the private /tmp. They hold nothing else and are
 * read-only, so that a write beside the workspace fails instead of being lost.
 */
const parentsInTemporary = (mounts: readonly Mount[]): readonly string[] => {
  const parents = new Set<string>();
  for (const { path: place } of mounts) {
    const [first, ...deeper] = below(place, '/tmp');
    if (first !== undefined && deeper.length > 0) parents.add(path.join('/tmp', first));
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
  try {
    const real = realpathSync('/etc/resolv.conf');
    return isWithin(real, '/etc') ? [] : [readable(real)];
  } catch {
    return []; // there is none: nobody resolves names outside either
  }
};

/** Arguments in two parts. The launcher mounts the file with the command between them. */
export type MountArguments = {
  readonly mounts: readonly string[];
  readonly seals: readonly string[];
};

/** Arguments that mount everything a command sees. The seals make what is above it read-only. */
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
    mounts: [...systemWords(), ...mountWords(all)],
    seals: [
      ...[...parents, ...(isHomeWritable ? [] : [INNER_HOME]), '/'].flatMap(sealed),
      ...['--chdir', workspace],
    ],
  };
};

// ---- The probe: whether bubblewrap can build the fence on this machine ----

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

/** Version of the fence. Increase it to invalidate cached answers. */
const VERSION = 2;
const TIMEOUT_MS = 10_000;
/** Settings of the kernel on which the answer depends. */
const SETTINGS = [
  '/proc/sys/user/max_user_namespaces',
  '/proc/sys/kernel/unprivileged_userns_clone',
  '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
];

const INSTALL =
  'Install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), ' +
  'pacman -S bubblewrap (Arch), apk add bubblewrap (Alpine).';
// each repair names this way out, too
const OR_OFF = 'Or use --sandbox off.';
const OFF = 'Where a container or a virtual machine is the fence already, use --sandbox off.';

const missing = (reason: string, repair: string): SandboxProbe => ({
  kind: 'missing',
  reason,
  repair,
});

export const notLinux = (): SandboxProbe =>
  missing(
    'The sandbox for commands exists for Linux only.',
    'Commands can run without it: --sandbox off.',
  );

export const notInstalled = (refusal: string | null): SandboxProbe =>
  refusal === null
    ? missing('bubblewrap (bwrap) is not installed.', `${INSTALL} ${OR_OFF}`)
    : missing(
        `bubblewrap (bwrap) is not used: ${refusal}.`,
        `Install it as a program of the system, or repair the PATH. ${OR_OFF}`,
      );

const readSetting = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return ''; // this kernel has no such setting
  }
};

const isContainer = (): boolean =>
  ['/.dockerenv', '/run/.containerenv'].some(
    (file) => statSync(file, { throwIfNoEntry: false }) !== undefined,
  ) || /docker|kubepods|containerd|lxc/.test(readSetting('/proc/1/cgroup'));

/**
 * What Docker limits in this container: each part of a start's options is named only if it stands
 * in the way.
 */
export type ContainerLimits = {
  /** `Seccomp` of /proc/self/status: 2 is a filter. */
  readonly seccomp: string;
  /** The AppArmor profile, or empty. */
  readonly profile: string;
  /** /proc/self/mountinfo: Docker mounts over parts of /proc. */
  readonly mounts: string;
};

const containerLimits = (): ContainerLimits => ({
  seccomp: /^Seccomp:\s*(\d)/m.exec(readSetting('/proc/self/status'))?.[1] ?? '',
  profile:
    readSetting('/proc/self/attr/apparmor/current') || readSetting('/proc/self/attr/current'),
  mounts: readSetting('/proc/self/mountinfo'),
});

/**
 * The options with which Docker lets bubblewrap work, and no more: they weaken the container for
 * all that runs in it.
 */
export const dockerOptions = ({ seccomp, profile, mounts }: ContainerLimits): readonly string[] => [
  ...(seccomp === '2' ? ['seccomp=unconfined'] : []),
  ...(/^[^\s(]+ \(enforce\)$/.test(profile) ? ['apparmor=unconfined'] : []),
  ...(/ \/proc\/\S+ /.test(mounts) ? ['systempaths=unconfined'] : []),
];

const dockerRepair = (): string => {
  const options = dockerOptions(containerLimits());
  if (options.length === 0) return `Its host or its runtime forbids it. ${OFF}`;
  const words = options.map((option) => `--security-opt ${option}`).join(' ');
  const milder = options.includes('seccomp=unconfined')
    ? ", or in place of seccomp=unconfined a profile: Docker's own, with clone, unshare, " +
      'setns, mount, umount2, pivot_root, sethostname allowed'
    : '';
  return (
    `Start it with the right to (Docker: ${words}${milder}). These options weaken the ` +
    `container for everything in it. ${OFF}`
  );
};

/** A cause of a failure, with its sign in what bubblewrap says. */
type Cause = { readonly sign: RegExp; readonly reason: string; readonly repair: () => string };

/** Ubuntu from 24.04 on: the profile allows namespaces to bwrap alone. */
const APPARMOR_REPAIR =
  'Load the profile of AppArmor for bwrap: sudo apt-get install apparmor-profiles && sudo cp ' +
  '/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo ' +
  'apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict';

const allowNamespaces = (): string => {
  if (readSetting('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1')
    return `AppArmor restricts user namespaces here. ${APPARMOR_REPAIR}.`;
  if (readSetting('/proc/sys/kernel/unprivileged_userns_clone') === '0')
    return 'Let users make user namespaces: sysctl -w kernel.unprivileged_userns_clone=1.';
  if (readSetting('/proc/sys/user/max_user_namespaces') === '0')
    return 'Let users make user namespaces: sysctl -w user.max_user_namespaces=10000.';
  if (isContainer()) return `This container may not make namespaces. ${dockerRepair()}`;
  return `Let users make user namespaces: sysctl -w user.max_user_namespaces=10000. ${OFF}`;
};

const CAUSES: readonly Cause[] = [
  {
    sign: /too many open files|EMFILE|ENFILE/i,
    reason: 'too many files are open to try bubblewrap',
    repair: () => 'Raise the limit (ulimit -n), then start Pawl again.',
  },
  {
    sign: /unknown option/i,
    reason: 'bubblewrap is too old',
    repair: () => 'Install version 0.8 or newer.',
  },
  {
    sign: /mount proc|mounting proc|\/proc.*(?:permitted|permission)/i,
    reason: 'bubblewrap may not mount /proc in a new namespace',
    repair: () =>
      'A container hides parts of /proc. Start it with them (Docker: --security-opt ' +
      `systempaths=unconfined). ${OFF}`,
  },
  {
    sign: /seccomp|PR_SET_NO_NEW_PRIVS/i,
    reason: 'the kernel refuses the system-call filter',
    repair: () => `A kernel with CONFIG_SECCOMP_FILTER is needed. ${OFF}`,
  },
  {
    sign: /namespace|uid map|gid map|setgroups|permission|permitted|RTM_NEWADDR|loopback|pivot_root|capab/i,
    reason: 'bubblewrap may not make namespaces',
    repair: allowNamespaces,
  },
];

const explainFailure = (stderr: string): SandboxProbe => {
  const line = stderr.trim().split('\n').at(-1) ?? '';
  const cause = CAUSES.find(({ sign }) => sign.test(line));
  const reason = cause?.reason ?? 'bubblewrap does not work';
  return missing(`${reason}: ${line === '' ? 'it said nothing' : line}.`, cause?.repair() ?? OFF);
};

/** Arguments for bubblewrap up to the program: the fence without the session's folders. */
export type ProbeOptions = {
  readonly bwrap: ProgramPath;
  words(features: Features): readonly string[];
  /** The system-call filter, expected at descriptor 3; null if this architecture has none. */
  readonly filter: Buffer | null;
};

/**
 * Tests whether bubblewrap can build the fence on this machine, by building it once.
 *
 * A positive answer is cached on disk together with what it depends on: the kernel, its settings,
 * the program, the user. A negative answer is not cached, since the user may repair the cause.
 * `cacheFolder` null: no cache. Never rejects.
 */
export const probeBubblewrap = async (
  options: ProbeOptions,
  cacheFolder: string | null,
): Promise<SandboxProbe> => {
  try {
    const key = cacheKey(options.bwrap);
    const cached = cacheFolder === null ? null : readCache(cacheFolder, key);
    if (cached !== null) return { kind: 'works', features: cached };
    const probed = await probe(options);
    if (probed.kind === 'works' && cacheFolder !== null)
      writeCache(cacheFolder, key, probed.features);
    return probed;
  } catch (error) {
    return explainFailure(String(error));
  }
};

/** Features to try, the best first. */
const FEATURES: readonly Features[] = [
  { locksMounts: true, disablesNamespaces: true },
  { locksMounts: true, disablesNamespaces: false },
  { locksMounts: false, disablesNamespaces: true },
  { locksMounts: false, disablesNamespaces: false },
];
/** Opens the filter at descriptor 3, and starts bubblewrap. */
const OPENED = 'exec 3<"$0"; exec "$@"';

const runProbe = async (options: ProbeOptions, filterFile: string): Promise<SandboxProbe> => {
  let stderr = '';
  for (const features of FEATURES) {
    const { disablesNamespaces, locksMounts } = features;
    // Without the filter bubblewrap itself must forbid namespaces, and nothing refuses sockets.
    if (options.filter === null && !(disablesNamespaces && locksMounts)) continue;
    // The inner layer starts bubblewrap from inside the fence, which shows only the system.
    if (locksMounts && !isOnHost(realpathSync(options.bwrap))) continue;
    const words = [
      '-c',
      OPENED,
      filterFile,
      options.bwrap,
      ...options.words(features),
      '--',
      SYSTEM_SHELL,
      '-c',
      ':',
    ];
    const answer = await askProgram(SYSTEM_SHELL, words, {
      environment: { LC_ALL: 'C' },
      searchPath: ['/usr/bin', '/bin'],
      folder: '/',
      timeoutMs: TIMEOUT_MS,
      title: 'bwrap',
    });
    if (answer?.code === 0) return { kind: 'works', features };
    // The last attempt asks for the least, so its failure is the one to repair.
    stderr = answer?.errors || (answer?.fault ?? "it can't be started");
  }
  return explainFailure(stderr);
};

/** Builds the fence once around a shell that does nothing. */
const probe = async (options: ProbeOptions): Promise<SandboxProbe> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-probe-'));
  try {
    const file = path.join(folder, 'filter');
    writeFileSync(file, options.filter ?? '');
    return await runProbe(options, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const cacheKey = (bwrap: ProgramPath): string => {
  const { mtimeMs, size, mode } = statSync(bwrap);
  const settings = SETTINGS.map(readSetting);
  return [
    VERSION,
    release(),
    process.arch,
    process.geteuid?.(),
    bwrap,
    mtimeMs,
    size,
    mode,
    ...settings,
  ].join(' ');
};

const CACHE = 'sandbox-probe.json';

const readCache = (folder: string, key: string): Features | null => {
  try {
    const cached: unknown = JSON.parse(readFileSync(path.join(folder, CACHE), 'utf8'));
    if (
      typeof cached !== 'object' ||
      cached === null ||
      !('key' in cached) ||
      !('disablesNamespaces' in cached) ||
      !('locksMounts' in cached) ||
      cached.key !== key
    )
      return null;
    return {
      disablesNamespaces: cached.disablesNamespaces === true,
      locksMounts: cached.locksMounts === true,
    };
  } catch {
    return null; // never asked, or a file that was cut
  }
};

const writeCache = (folder: string, key: string, features: Features): void => {
  const file = path.join(folder, CACHE);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.${process.pid}`, JSON.stringify({ key, ...features }));
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // It is asked again the next time.
  }
};
