/**
 * Whether the commands of a workspace can run in the sandbox, without access to secrets: not if the
 * workspace holds secrets itself, or if what fences commands does not work. It is loaded at the
 * start of a session; the sandbox is loaded with the first command.
 *
 * At the first start on a machine the sandbox is tried (fence-acts.ts). That it holds is kept on
 * disk together with what it depends on, so a later start starts no program. That it does not is
 * asked again: the user may repair the cause.
 */

import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { release } from 'node:os';
import path from 'node:path';
import { homeFolder, type ProcessEnvironment, VERSION } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import { type ProgramPath, searchPrograms } from '../platform/find-program.js';
import { bootId, pidNamespace } from '../platform/processes.js';
import {
  askProgram,
  SYSTEM_PROGRAMS,
  SYSTEM_SHELL,
  systemBash,
} from '../platform/start-program.js';
import { isJsonObject } from '../platform/untrusted-input.js';
import { listWords } from '../policy/paths.js';
import { type FoundPlaces, readUserPlaces } from '../secrets/user-places.js';
import {
  type Features,
  fenceLayers,
  NAMESPACE_SETTINGS,
  type SandboxProbe,
} from './sandbox/bubblewrap.js';
import { findHome, isOnHost, secretPlaces } from './sandbox/host.js';
import type { ProbedMachine } from './surroundings.js';

export type FencedPlace = {
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  /** The user's places, of which no command may see some. */
  readonly userPlaces: FoundPlaces;
};

/** No workspace as a whole. The second line has those of macOS. */
const SYSTEM_FOLDERS = listWords(`
  /tmp /usr /etc /var /home /run
  /private /private/tmp /private/etc /private/var /Users /Library /System /Applications /Volumes
`);

/** Null if the workspace can be fenced, otherwise the reason as a sentence. */
const unfitWorkspace = (place: FencedPlace): string | null => {
  const { workspace, environment } = place;
  const home = findHome(homeFolder(environment));
  const isTop = path.dirname(workspace) === workspace;
  if (isTop) return 'The workspace is the whole machine.';
  if (home !== null && isWithin(home, workspace))
    return 'The workspace holds the whole home folder, with its secrets.';
  if (['/proc', '/sys', '/dev', '/run/pawl'].some((folder) => isWithin(workspace, folder)))
    return `The workspace ${workspace} belongs to the system.`;
  if (SYSTEM_FOLDERS.includes(workspace))
    return `The workspace ${workspace} belongs to the system.`;
  const secret = secretPlaces(place).find((one) => isWithin(workspace, one));
  return secret === undefined ? null : `The workspace lies in ${secret}, where secrets are kept.`;
};

const ELSEWHERE = 'Start Pawl in a folder of the project, or use --sandbox off.';

type Programs = {
  /** What makes the fence: bubblewrap, or sandbox-exec. */
  readonly program: ProgramPath;
  readonly bash: ProgramPath;
  /** Where the acts find further programs. */
  readonly searchPath: string;
};

/** What came of a fence. `unable`: it can't be built. */
export type TrialResult =
  | { readonly kind: 'holds' }
  | { readonly kind: 'unable'; readonly errors: string }
  /** What a command could do although it must not, and could not do although it must. */
  | {
      readonly kind: 'fails';
      readonly could: readonly string[];
      readonly couldNot: readonly string[];
    };

/** Prepares the acts (fence-acts.ts), which `use` has done in fences with some features. */
export type WithActs = <T>(
  programs: Programs,
  use: (tryFeatures: (features: Features) => Promise<TrialResult>) => Promise<T>,
) => Promise<T>;

/** `cacheFolder`: folder for the cached result, shared by all sessions. Null: no cache. */
export type WorkspaceProbeOptions = Omit<FencedPlace, 'userPlaces'> & {
  readonly userPlaces?: FoundPlaces;
  readonly cacheFolder: string | null;
  /** Loaded only where the sandbox is tried. */
  readonly loadActs: () => Promise<WithActs>;
  /** Default: this one. */
  readonly machine?: ProbedMachine | undefined;
};

/** The texts for a missing sandbox: loaded only where it is missing. */
const loadTexts = () => import('./surroundings.js');

/** Asks everything that must hold, the cheapest first. Never rejects. */
export const probeWorkspace = async (options: WorkspaceProbeOptions): Promise<SandboxProbe> => {
  const { environment, workspace, cacheFolder, userPlaces = readUserPlaces(environment) } = options;
  const { platform } = process;
  const { machine = { environment, platform, root: '/' }, loadActs } = options;
  const other = machine.platform === 'linux' ? null : (await loadTexts()).otherSystem(machine);
  if (other !== null) return other;
  try {
    const unfit = unfitWorkspace({ workspace, environment, userPlaces });
    if (unfit !== null) return { kind: 'missing', reason: unfit, repair: ELSEWHERE };
    const programs = searchPrograms({ environment, workspace });
    const isMac = machine.platform === 'darwin';
    const { sandboxExec } = SYSTEM_PROGRAMS;
    const onMac = existsSync(sandboxExec) ? sandboxExec : null;
    const program = isMac ? onMac : programs.find('bwrap');
    if (program === null)
      return (await loadTexts()).notInstalled(machine, programs.whyNot('bwrap'));
    const key = cacheKey(machine, program);
    const cached = cacheFolder === null ? null : readCache(cacheFolder, key);
    if (cached !== null) return { kind: 'works', features: cached };
    const bash = systemBash() ?? programs.find('bash');
    if (bash === null) return NO_BASH;
    const searchPath = [...programs.folders, '/usr/bin', '/bin'].join(path.delimiter);
    const probed = await tryFences(machine, { program, bash, searchPath }, loadActs);
    if (probed.kind === 'works' && cacheFolder !== null)
      writeCache(cacheFolder, key, probed.features);
    return probed;
  } catch (error) {
    return (await loadTexts()).notTried(machine, error);
  }
};

const NO_BASH: SandboxProbe = {
  kind: 'missing',
  reason: 'bash is not found, which tries the sandbox and runs the commands.',
  repair: 'Install it, or put its folder into PATH.',
};

/** Features to try, the best first. */
const FEATURES: readonly Features[] = [
  { locksMounts: true, disablesNamespaces: true },
  { locksMounts: true, disablesNamespaces: false },
  { locksMounts: false, disablesNamespaces: true },
  { locksMounts: false, disablesNamespaces: false },
];

/** The rules of Seatbelt have no such choice. */
const MAC_FEATURES: readonly Features[] = [{ locksMounts: false, disablesNamespaces: false }];

const DEADLINE_MS = 10_000;

/**
 * The words of bubblewrap where it can't make the namespaces that each fence has; null if it can.
 * Asked first, since it is asked at each start where it can't.
 */
const namespaceFault = async (bwrap: ProgramPath): Promise<string | null> => {
  const least = { locksMounts: false, disablesNamespaces: false };
  const { outer } = fenceLayers(bwrap, least, { network: false, filtered: false });
  const mounts = ['--dev-bind', '/', '/', '--proc', '/proc'];
  const answer = await askProgram(bwrap, [...outer, ...mounts, '--', SYSTEM_SHELL, '-c', ':'], {
    environment: { LC_ALL: 'C' },
    searchPath: ['/usr/bin', '/bin'],
    folder: '/',
    timeoutMs: DEADLINE_MS,
    title: 'bwrap',
  });
  if (answer?.code === 0) return null;
  return answer?.errors || (answer?.fault ?? "it can't be started");
};

/**
 * Tries fences until one holds. One in which a command could do what it must not ends the search:
 * a machine on which a fence only seems to stand gets no weaker one.
 */
const tryFences = async (
  machine: ProbedMachine,
  programs: Programs,
  loadActs: WorkspaceProbeOptions['loadActs'],
): Promise<SandboxProbe> => {
  const isMac = machine.platform === 'darwin';
  const fault = isMac ? null : await namespaceFault(programs.program);
  if (fault !== null) return (await loadTexts()).explainFailure(machine, fault);
  const [withActs, { commandFilter }, { doesNotHold, explainFailure }] = await Promise.all([
    loadActs(),
    import('./sandbox/seccomp.js'),
    loadTexts(),
  ]);
  const isFiltered = isMac || commandFilter(process.arch, { local: true }) !== null;
  const { program } = programs;
  return withActs(programs, async (tryFeatures) => {
    let answer: SandboxProbe | null = null;
    for (const features of isMac ? MAC_FEATURES : FEATURES) {
      const { disablesNamespaces, locksMounts } = features;
      // Without the filter bubblewrap itself must forbid namespaces, and nothing refuses sockets.
      if (!isFiltered && !(disablesNamespaces && locksMounts)) continue;
      // The inner layer starts bubblewrap from inside the fence, which shows only the system.
      if (locksMounts && !isOnHost(realpathSync(program))) continue;
      const result = await tryFeatures(features);
      if (result.kind === 'holds') return { kind: 'works', features };
      // The last attempt asks for the least, so its failure is the one to repair.
      answer =
        result.kind === 'unable'
          ? explainFailure(machine, result.errors)
          : doesNotHold(machine, program, result);
      if (result.kind === 'fails' && result.could.length > 0) break;
    }
    return answer ?? explainFailure(machine, '');
  });
};

// ---- The cached answer ----

const readSetting = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return ''; // this kernel has no such setting
  }
};

const readNamespace = (name: string): string => {
  try {
    return readlinkSync(`/proc/self/ns/${name}`);
  } catch {
    return ''; // no /proc
  }
};

/**
 * What the answer depends on: this version of Pawl, the program, the user, the kernel since it was
 * started with its settings, and what confines this process. So neither a home that machines or
 * containers share nor a profile that is loaded later makes an old answer count.
 */
const cacheKey = (machine: ProbedMachine, program: ProgramPath): string => {
  const { dev, ino, ctimeMs, mtimeMs, size, mode } = statSync(program);
  return JSON.stringify([
    VERSION,
    process.arch,
    process.geteuid?.(),
    [program, dev, ino, ctimeMs, mtimeMs, size, mode],
    [release(), bootId()],
    Object.values(NAMESPACE_SETTINGS).map(([file]) => readSetting(path.join(machine.root, file))),
    ['user', 'mnt'].map(readNamespace),
    pidNamespace(),
    readSetting('/proc/self/attr/current'),
    readSetting('/proc/self/status').match(/^(?:Seccomp|CapBnd|NoNewPrivs):.*$/gm),
  ]);
};

const CACHE = 'sandbox-probe.json';

const readCache = (folder: string, key: string): Features | null => {
  try {
    const cached: unknown = JSON.parse(readFileSync(path.join(folder, CACHE), 'utf8'));
    if (!isJsonObject(cached) || cached.key !== key) return null;
    const { disablesNamespaces, locksMounts } = cached;
    if (typeof disablesNamespaces !== 'boolean' || typeof locksMounts !== 'boolean') return null;
    return { disablesNamespaces, locksMounts };
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
