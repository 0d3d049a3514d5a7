/**
 * Where Pawl runs, as far as files and variables say it for certain, and what to do where commands
 * have no sandbox there. All texts about a missing sandbox come from this file.
 *
 * Each kind of place names itself and one thing to do. Nothing is advised that switches a
 * protection off for the whole machine, and no project can decide what is advised: it goes to the
 * user's own file, or to the variables of a job.
 *
 * From top to bottom: the places, first match first; what is in the way; and the texts.
 */

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { configFolder, type ProcessEnvironment } from '../platform/environment.js';
import { NAMESPACE_SETTINGS, type SandboxProbe } from './sandbox/bubblewrap.js';

type MissingSandbox = Extract<SandboxProbe, { kind: 'missing' }>;

/** The machine as the signs show it. A test passes its own. */
export type ProbedMachine = {
  readonly environment: ProcessEnvironment;
  readonly platform: string;
  /** The folder under which files of the system are read; usually `/`. */
  readonly root: string;
};

export const thisMachine = (environment: ProcessEnvironment): ProbedMachine => ({
  environment,
  platform: process.platform,
  root: '/',
});

/** The text of a file of the system; empty where there is none. */
const readSystemFile = ({ root }: ProbedMachine, file: string): string => {
  try {
    return readFileSync(path.join(root, file), 'utf8').trim();
  } catch {
    return ''; // this system has no such file
  }
};

const hasFile = ({ root }: ProbedMachine, file: string): boolean =>
  existsSync(path.join(root, file));

const hasVariable = ({ environment }: ProbedMachine, ...names: readonly string[]): boolean =>
  names.some((name) => !['', '0', 'false', undefined].includes(environment[name]));

// ---- The places ----

/**
 * `foreign`: neither Linux nor macOS. `container`: a fence itself. `subsystem`: WSL without a
 * kernel of Linux.
 */
type PlaceKind = 'foreign' | 'mac' | 'container' | 'subsystem' | 'usual';

type Place = {
  readonly kind: PlaceKind;
  /** As in "this is …"; null where nothing is to be said. */
  readonly name: string | null;
  isHere(machine: ProbedMachine): boolean;
};

const osRelease = (machine: ProbedMachine): string =>
  readSystemFile(machine, 'proc/sys/kernel/osrelease');

/** A home there is made for each job. */
const isJob = (machine: ProbedMachine): boolean => hasVariable(machine, 'CI', 'GITLAB_CI');

/** The first match counts, so a container comes before the machine that it runs on. */
const PLACES: readonly Place[] = [
  { kind: 'mac', name: 'macOS', isHere: ({ platform }) => platform === 'darwin' },
  { kind: 'foreign', name: 'Windows', isHere: ({ platform }) => platform === 'win32' },
  { kind: 'foreign', name: 'not Linux', isHere: ({ platform }) => platform !== 'linux' },
  {
    kind: 'container',
    name: 'a devcontainer',
    isHere: (machine) => hasVariable(machine, 'REMOTE_CONTAINERS', 'CODESPACES'),
  },
  {
    kind: 'container',
    name: 'a container of Kubernetes',
    isHere: (machine) =>
      hasVariable(machine, 'KUBERNETES_SERVICE_HOST') ||
      /kubepods/.test(readSystemFile(machine, 'proc/1/cgroup')),
  },
  {
    kind: 'container',
    name: 'a container of Docker',
    isHere: (machine) =>
      hasFile(machine, '.dockerenv') || /docker/.test(readSystemFile(machine, 'proc/1/cgroup')),
  },
  {
    kind: 'container',
    name: 'a container of Podman',
    isHere: (machine) =>
      hasFile(machine, 'run/.containerenv') ||
      /libpod/.test(readSystemFile(machine, 'proc/1/cgroup')),
  },
  {
    kind: 'container',
    name: 'a container',
    // systemd counts WSL as one
    isHere: (machine) =>
      !['', 'wsl'].includes(readSystemFile(machine, 'run/systemd/container')) ||
      /containerd|lxc|garden/.test(readSystemFile(machine, 'proc/1/cgroup')),
  },
  {
    kind: 'usual',
    name: 'a runner of GitHub Actions',
    isHere: (machine) => hasVariable(machine, 'GITHUB_ACTIONS'),
  },
  { kind: 'usual', name: 'a CI job', isHere: (machine) => isJob(machine) },
  {
    // version 1 has the name in capitals, and no kernel of Linux
    kind: 'subsystem',
    name: 'version 1 of WSL',
    isHere: (machine) => /-Microsoft$/.test(osRelease(machine)),
  },
  { kind: 'usual', name: 'WSL', isHere: (machine) => /microsoft/i.test(osRelease(machine)) },
];

const NOWHERE = { kind: 'usual', name: null } as const;

/** Sockets by which a container reaches its machine, and the sign of one that shares the home. */
const OPENINGS = ['var/run/docker.sock', 'run/podman/podman.sock', 'run/.toolboxenv'];

/** The bit of the capability with which a container can do what its machine can. */
const ADMINISTERS = 1n << 21n;

/** Whether programs in a container reach its machine: they started it with that right. */
const isOpen = (machine: ProbedMachine): boolean => {
  const bounds = /^CapBnd:\s*([0-9a-f]+)$/m.exec(readSystemFile(machine, 'proc/self/status'))?.[1];
  return (
    (BigInt(`0x${bounds ?? '0'}`) & ADMINISTERS) !== 0n ||
    OPENINGS.some((file) => hasFile(machine, file))
  );
};

/** A container that is open to its machine does not count. */
const findPlace = (machine: ProbedMachine): Omit<Place, 'isHere'> =>
  PLACES.find(
    ({ kind, isHere }) => isHere(machine) && (kind !== 'container' || !isOpen(machine)),
  ) ?? NOWHERE;

/** Whether a container fences programs here in, as far as a file or variable says so. */
export const isContainer = (machine: ProbedMachine): boolean =>
  findPlace(machine).kind === 'container';

/** The Linux of Windows, where the disks of the user are mounted. */
export const isSubsystem = (machine: ProbedMachine): boolean =>
  /microsoft/i.test(osRelease(machine));

// ---- What is in the way, and what to do about it ----

const missing = (machine: ProbedMachine, reason: string, repair: string): MissingSandbox => {
  const { name } = findPlace(machine);
  const where = name === null ? '' : `This is ${name}. `;
  return { kind: 'missing', reason: `${where}${reason}`, repair };
};

/** How users decide that commands have no sandbox, once: nothing of a project can. */
const decideOff = (machine: ProbedMachine): string =>
  isJob(machine)
    ? 'set the variable PAWL_SANDBOX=off for this job'
    : `write sandbox = "off" into ${path.join(configFolder(machine.environment), 'config.toml')}`;

const withoutOne = (machine: ProbedMachine): string =>
  `To run commands without one, ${decideOff(machine)}.`;

const containerRepair = (machine: ProbedMachine): string =>
  'The container itself keeps commands from the machine, except from what is mounted in it. If ' +
  `that is enough for you, decide it once: ${decideOff(machine)}.`;

/** How a package is installed, by the names of `/etc/os-release`. */
const INSTALLERS: readonly (readonly [names: RegExp, command: string])[] = [
  [/debian|ubuntu/, 'apt-get install bubblewrap'],
  [/fedora|rhel|centos/, 'dnf install bubblewrap'],
  [/arch/, 'pacman -S bubblewrap'],
  [/alpine/, 'apk add bubblewrap'],
  [/suse/, 'zypper install bubblewrap'],
];

const installation = (machine: ProbedMachine): string => {
  const names = readSystemFile(machine, 'etc/os-release').match(/^ID(?:_LIKE)?=.*$/gm) ?? [];
  const [, command] = INSTALLERS.find(([pattern]) => pattern.test(names.join(' '))) ?? [];
  return command === undefined
    ? 'Install the package bubblewrap of your system.'
    : `Install it: ${command}.`;
};

/**
 * No sandbox exists for this system; null where one does. `isForCommands`: what bash runs. Other
 * programs, such as interpreters, have one on Linux alone.
 */
export const otherSystem = (
  machine: ProbedMachine,
  isForCommands = true,
): MissingSandbox | null => {
  const { kind, name } = findPlace(machine);
  if (kind !== 'foreign' && (kind !== 'mac' || isForCommands)) return null;
  const reason = `This is ${name}, where Pawl has no sandbox${kind === 'mac' ? ' for this' : ''}.`;
  const repair =
    name === 'Windows'
      ? 'Use Pawl in WSL 2, where it has one: wsl --install.'
      : withoutOne(machine);
  return { kind: 'missing', reason, repair };
};

/** `refusal`: why the program of that name is not used; null if there is none. */
export const notInstalled = (machine: ProbedMachine, refusal: string | null): MissingSandbox => {
  const { kind } = findPlace(machine);
  if (kind === 'mac') return missing(machine, 'sandbox-exec is not there.', withoutOne(machine));
  const reason =
    refusal === null
      ? 'bubblewrap (bwrap) is not installed.'
      : `bubblewrap (bwrap) is not used: ${refusal}.`;
  if (kind === 'container') return missing(machine, reason, containerRepair(machine));
  return missing(
    machine,
    reason,
    refusal === null
      ? installation(machine)
      : 'Install it as a program of the system, or repair the PATH.',
  );
};

/** Ubuntu from 24.04 on: the profile allows namespaces to bwrap alone. */
const LOAD_PROFILE =
  'Load the profile of AppArmor for bwrap: sudo apt-get install apparmor-profiles && sudo cp ' +
  '/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo ' +
  'apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict.';

const isSet = (machine: ProbedMachine, name: keyof typeof NAMESPACE_SETTINGS): boolean => {
  const [file, value] = NAMESPACE_SETTINGS[name];
  return readSystemFile(machine, file) === value;
};

const namespaceRepair = (machine: ProbedMachine): string => {
  const { kind } = findPlace(machine);
  if (kind === 'container') return containerRepair(machine);
  if (kind === 'subsystem') {
    const name = machine.environment.WSL_DISTRO_NAME || 'NAME';
    return `It has no namespaces. In Windows, change to version 2: wsl --set-version ${name} 2.`;
  }
  if (isSet(machine, 'restricted'))
    return `AppArmor restricts user namespaces here. ${LOAD_PROFILE}`;
  const cause =
    isSet(machine, 'none') || isSet(machine, 'rootOnly')
      ? 'User namespaces are switched off here; who runs this machine can allow them.'
      : 'Why is not known.';
  return `${cause} To run commands without a sandbox, ${decideOff(machine)}.`;
};

/** A cause of a failure, with its sign in the last line of bubblewrap. */
type Cause = {
  readonly sign: RegExp;
  readonly reason: string;
  readonly repair: (machine: ProbedMachine) => string;
};

const TOO_MANY_FILES: Cause = {
  sign: /too many open files|EMFILE|ENFILE/i,
  reason: 'Too many files are open to try the sandbox',
  repair: () => 'Raise the limit (ulimit -n), then start Pawl again.',
};

const CAUSES: readonly Cause[] = [
  TOO_MANY_FILES,
  {
    sign: /unknown option/i,
    reason: 'bubblewrap is too old',
    repair: () => 'Install version 0.8 or newer.',
  },
  {
    sign: /seccomp|PR_SET_NO_NEW_PRIVS/i,
    reason: 'The kernel refuses the filter of system calls',
    repair: (machine) =>
      `It needs CONFIG_SECCOMP_FILTER. To run commands without a sandbox, ${decideOff(machine)}.`,
  },
  {
    sign: /namespace|uid map|gid map|setgroups|permission|permitted|RTM_NEWADDR|loopback|pivot_root|capab|proc/i,
    reason: 'bubblewrap may not make namespaces',
    repair: namespaceRepair,
  },
];

/** The sandbox could not be tried, for a reason that lies outside of it. */
export const notTried = (machine: ProbedMachine, error: unknown): MissingSandbox => {
  const text = String(error).replace(/^\w*(?:Error|Failure|Refusal): /, '');
  const { sign, reason, repair } = TOO_MANY_FILES;
  return sign.test(text)
    ? missing(machine, `${reason}: ${text}.`, repair(machine))
    : missing(
        machine,
        `The sandbox could not be tried: ${text}.`,
        'Repair that (TMPDIR names the folder for temporary files), then look again: pawl doctor.',
      );
};

/** Why no fence can be built. `stderr`: the words of bubblewrap, or of sandbox-exec. */
export const explainFailure = (machine: ProbedMachine, stderr: string): MissingSandbox => {
  const line = stderr.trim().split('\n').at(-1) || 'it said nothing';
  if (findPlace(machine).kind === 'mac')
    return missing(machine, `sandbox-exec does not work: ${line}.`, withoutOne(machine));
  const cause = CAUSES.find(({ sign }) => sign.test(line));
  return missing(
    machine,
    `${cause?.reason ?? 'bubblewrap does not work'}: ${line}.`,
    (cause?.repair ?? namespaceRepair)(machine),
  );
};

const orList = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;

/** The fence was tried and does not hold. `program`: what builds it. */
export const doesNotHold = (
  machine: ProbedMachine,
  program: string,
  { could, couldNot }: { readonly could: readonly string[]; readonly couldNot: readonly string[] },
): MissingSandbox => {
  const acts = [
    ...(could.length === 0 ? [] : [`could ${orList(could)}`]),
    ...(couldNot.length === 0 ? [] : [`could not ${orList(couldNot)}`]),
  ];
  return missing(
    machine,
    `The sandbox was tried and is not used: a command in it ${acts.join(', and ')}.`,
    findPlace(machine).kind === 'mac'
      ? withoutOne(machine)
      : `Install ${program} again from the packages of your system, then look again: pawl doctor.`,
  );
};
