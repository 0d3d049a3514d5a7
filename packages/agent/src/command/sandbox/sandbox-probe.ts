import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import path from 'node:path';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { askProgram, SYSTEM_SHELL } from '../../platform/programs/start-program.js';

/**
 * Tests whether bubblewrap can build the fence on this machine, by building it once.
 *
 * A positive answer is cached on disk together with what it depends on: the kernel, its settings, the program, the
 * user. A negative answer is not cached, since the user may repair the cause.
 */

export type SandboxProbe =
  | { readonly kind: 'works' }
  /** `reason`: one sentence. `repair`: what to do about it, one or two sentences. */
  | { readonly kind: 'missing'; readonly reason: string; readonly repair: string };

/** Features of the installed bubblewrap. */
export type Features = {
  /** Whether it can forbid further user namespaces itself. Otherwise only the system-call filter does. */
  readonly disablesNamespaces: boolean;
};

export type Probed =
  | { readonly kind: 'works'; readonly features: Features }
  | Extract<SandboxProbe, { kind: 'missing' }>;

/** Version of the fence. Increase it to invalidate cached answers. */
const VERSION = 1;
const TIMEOUT_MS = 10_000;
const SETTINGS = [
  '/proc/sys/user/max_user_namespaces',
  '/proc/sys/kernel/unprivileged_userns_clone',
  '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
];

const INSTALL =
  'Install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), pacman -S bubblewrap (Arch), apk add bubblewrap (Alpine).';
const OFF = 'Where a container or a virtual machine is the fence already, use --sandbox off.';

const missing = (reason: string, repair: string): Probed => ({ kind: 'missing', reason, repair });

export const notLinux = (): Probed =>
  missing('The sandbox for commands exists for Linux only.', 'Commands can run without it: --sandbox off.');

export const notInstalled = (whyNot: string | null): Probed =>
  whyNot === null
    ? missing('bubblewrap (bwrap) is not installed.', INSTALL)
    : missing(
        `bubblewrap (bwrap) is not used: ${whyNot}.`,
        'Install it as a program of the system, or repair the PATH.',
      );

const settingOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return ''; // this kernel has no such setting
  }
};

const isContainer = (): boolean =>
  ['/.dockerenv', '/run/.containerenv'].some(
    (file) => statSync(file, { throwIfNoEntry: false }) !== undefined,
  ) || /docker|kubepods|containerd|lxc/.test(settingOf('/proc/1/cgroup'));

/** What Docker limits in this container: each part of a start's options is named only if it stands in the way. */
export type ContainerLimits = {
  /** `Seccomp` of /proc/self/status: 2 is a filter. */
  readonly seccomp: string;
  /** The AppArmor profile, or empty. */
  readonly profile: string;
  /** /proc/self/mountinfo: Docker mounts over parts of /proc. */
  readonly mounts: string;
};

const containerLimits = (): ContainerLimits => ({
  seccomp: /^Seccomp:\s*(\d)/m.exec(settingOf('/proc/self/status'))?.[1] ?? '',
  profile: settingOf('/proc/self/attr/apparmor/current') || settingOf('/proc/self/attr/current'),
  mounts: settingOf('/proc/self/mountinfo'),
});

/** The options with which Docker lets bubblewrap work, and no more: they weaken the container for all that runs in it. */
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
    ? ", or in place of seccomp=unconfined a profile: Docker's own, with clone, unshare, mount, umount2, pivot_root, sethostname allowed"
    : '';
  return `Start it with the right to (Docker: ${words}${milder}). These options weaken the container for everything in it. ${OFF}`;
};

type Cause = { readonly sign: RegExp; readonly reason: string; readonly repair: () => string };

const restricted = (): string => {
  if (settingOf('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1')
    return 'AppArmor restricts user namespaces here. Allow them: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or install an AppArmor profile for bwrap.';
  if (settingOf('/proc/sys/kernel/unprivileged_userns_clone') === '0')
    return 'Let users make user namespaces: sysctl -w kernel.unprivileged_userns_clone=1.';
  if (settingOf('/proc/sys/user/max_user_namespaces') === '0')
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
      `A container hides parts of /proc. Start it with them (Docker: --security-opt systempaths=unconfined). ${OFF}`,
  },
  {
    sign: /seccomp|PR_SET_NO_NEW_PRIVS/i,
    reason: 'the kernel refuses the system-call filter',
    repair: () => `A kernel with CONFIG_SECCOMP_FILTER is needed. ${OFF}`,
  },
  {
    sign: /namespace|uid map|gid map|setgroups|permission|permitted|RTM_NEWADDR|loopback|pivot_root|capab/i,
    reason: 'bubblewrap may not make namespaces',
    repair: restricted,
  },
];

const whyNot = (said: string): Probed => {
  const line = said.trim().split('\n').at(-1) ?? '';
  const cause = CAUSES.find(({ sign }) => sign.test(line));
  const reason = cause?.reason ?? 'bubblewrap does not work';
  return missing(`${reason}: ${line === '' ? 'it said nothing' : line}.`, cause?.repair() ?? OFF);
};

/** Arguments for bubblewrap up to the program: the fence without the session's folders. */
export type ProbeOrder = {
  readonly bwrap: ProgramPath;
  words(features: Features): readonly string[];
  /** The system-call filter, expected at descriptor 3; null if this architecture has none. */
  readonly filter: Buffer | null;
};

const FEATURES: readonly Features[] = [{ disablesNamespaces: true }, { disablesNamespaces: false }];
const OPENED = 'exec 3<"$0"; exec "$@"';
const UNKNOWN_OPTION = /disable-userns|unknown option/i;

const askWith = async (order: ProbeOrder, filterFile: string): Promise<Probed> => {
  let said = '';
  for (const features of FEATURES) {
    if (!features.disablesNamespaces && order.filter === null) break;
    const words = [
      '-c',
      OPENED,
      filterFile,
      order.bwrap,
      ...order.words(features),
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
    });
    if (answer?.code === 0) return { kind: 'works', features };
    if (said === '') said = answer?.errors || (answer?.fault ?? "it can't be started");
    if (!UNKNOWN_OPTION.test(said)) break;
  }
  return whyNot(said);
};

const ask = async (order: ProbeOrder): Promise<Probed> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-probe-'));
  try {
    const file = path.join(folder, 'filter');
    writeFileSync(file, order.filter ?? '');
    return await askWith(order, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const keyOf = (bwrap: ProgramPath): string => {
  const { mtimeMs, size, mode } = statSync(bwrap);
  const settings = SETTINGS.map(settingOf);
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
    const kept: unknown = JSON.parse(readFileSync(path.join(folder, CACHE), 'utf8'));
    if (typeof kept !== 'object' || kept === null || !('key' in kept) || !('disablesNamespaces' in kept))
      return null;
    return kept.key === key ? { disablesNamespaces: kept.disablesNamespaces === true } : null;
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

/** `cacheFolder` null: no cache. Never rejects. */
export const probeBubblewrap = async (order: ProbeOrder, cacheFolder: string | null): Promise<Probed> => {
  try {
    const key = keyOf(order.bwrap);
    const kept = cacheFolder === null ? null : readCache(cacheFolder, key);
    if (kept !== null) return { kind: 'works', features: kept };
    const probed = await ask(order);
    if (probed.kind === 'works' && cacheFolder !== null) writeCache(cacheFolder, key, probed.features);
    return probed;
  } catch (error) {
    return whyNot(String(error));
  }
};
