/**
 * What fenced commands, those in the sandbox, see of the machine: system folders, the user's tools,
 * sockets, git settings.
 *
 * System folders are read-only. Commands see what every user of the machine may read. Files that
 * only this user may read are masked, so that commands of root find neither system passwords nor
 * server keys.
 *
 * From top to bottom: system folders (`viewHost`); the parts of the home folder (`viewHome`);
 * sockets, behind which unfenced programs listen; git settings; a mount as words for bubblewrap;
 * and the check that a mounted path is still the one that was looked at.
 */

import { constants, existsSync, lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import path from 'node:path';
import { homeFolder, type ProcessEnvironment } from '../../platform/environment.js';
import {
  entriesIn,
  entryStatus,
  isWithin,
  mayAccess,
  readTextOrEmptySync,
  realPath,
} from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { inFolder } from '../../platform/replaceable-files.js';
import { askProgram } from '../../platform/start-program.js';
import { CREDENTIALS, listWords } from '../../policy/paths.js';
import type { FoundPlaces } from '../../secrets/user-places.js';
import { GIT_PATTERN_FILES, gitPatternFile, withVariables } from '../environment.js';
import { shellWords } from './shell-text.js';

/** Folders of the system that commands see. */
const SYSTEM_FOLDERS = listWords(`
  /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu
`);

/**
 * Package lists and precomputed files that programs need. Each mount slows every command, so caches
 * that programs can do without are not among them.
 */
const SYSTEM_DATA = listWords(`
  /var/lib/dpkg /var/lib/rpm /var/lib/pacman /var/lib/alternatives /var/lib/texmf /var/lib/ghc
  /var/lib/gems /sys/devices/system /sys/fs/cgroup
`);

/** Never shown, whatever their mode says. */
const SECRET_PLACES = listWords(`
  /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d
  /etc/security/opasswd /etc/ssl/private /etc/pki/tls/private /etc/krb5.keytab /etc/wireguard
  /etc/NetworkManager/system-connections /etc/openvpn /etc/ipsec.secrets /etc/ipsec.d/private
  /etc/ppp/chap-secrets /etc/ppp/pap-secrets /etc/wpa_supplicant /etc/netplan /etc/letsencrypt
  /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/docker/key.json /etc/kubernetes /etc/rancher
  /etc/mysql/debian.cnf /etc/cryptsetup-keys.d /etc/salt/pki /etc/munge /etc/gitlab-runner
  /etc/samba/private /etc/cloud /etc/pawl /nix/var/nix/daemon-socket
`);

/** Lock files: closed to others, but always empty. */
const LOCKS = new Set(['/etc/.pwd.lock']);
/** Keys of the server are private, whatever their mode says. */
const SSH_FOLDER = '/etc/ssh';
const SSH_KEY = /^ssh_host_.*key$/;
/** Bounds of the search for private files. */
const DEPTH_MAX = 5;
const ENTRIES_MAX = 20_000;
/** Bits of a mode: others may read a file; others may list and enter a folder. */
const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o005;

const mayRead = (place: string): boolean => mayAccess(place, constants.R_OK);

const isClosedToOthers = (mode: number, isFolder: boolean): boolean => {
  const needed = isFolder ? OTHERS_ENTER : OTHERS_READ;
  return (mode & needed) !== needed;
};

/** Folders where people put files by hand; packages install the rest. */
const LOOKED_THROUGH = ['/etc', '/opt', '/usr/local'];

/**
 * Files and folders below `top` that this user may read and others may not. High places come first,
 * since the search ends after `entriesMax` entries. Thousands of entries: each step counts.
 */
export const privatePlaces = (top: string, entriesMax = ENTRIES_MAX): readonly string[] => {
  const places: string[] = [];
  let remaining = entriesMax;
  let folders = [top];
  for (let depth = 1; depth <= DEPTH_MAX; depth++) {
    const inner: string[] = [];
    for (const folder of folders)
      for (const entry of entriesIn(folder)) {
        if (entry.isSymbolicLink() || remaining-- <= 0) continue;
        const place = `${folder}/${entry.name}`;
        const mode = entryStatus(place)?.mode;
        if (mode === undefined || LOCKS.has(place)) continue;
        const isFolder = entry.isDirectory();
        const isPrivate =
          isClosedToOthers(mode, isFolder) || (folder === SSH_FOLDER && SSH_KEY.test(entry.name));
        if (isPrivate && mayRead(place)) places.push(place);
        else if (isFolder) inner.push(place);
      }
    folders = inner;
  }
  return places;
};

/** Null if there is no such folder, or if it is closed to this user. */
const hostFolder = (folder: string): Mount | null => {
  const status = entryStatus(folder);
  if (status === null) return null;
  if (status.isSymbolicLink())
    return {
      ...readable(folder),
      words: ['--symlink', readlinkSync(folder), folder],
    };
  return status.isDirectory() && mayRead(folder) ? readable(folder) : null;
};

/** Skips version 1 cgroups, which are a dozen separate file systems that are not needed. */
const isWanted = (folder: string): boolean =>
  folder !== '/sys/fs/cgroup' || entryStatus('/sys/fs/cgroup/cgroup.controllers') !== null;

export type HostView = {
  readonly mounts: readonly Mount[];
  /** Existing files and folders that commands could read and must not. */
  readonly masked: readonly string[];
};

/** The system folders of this machine. */
const hostMounts = (): readonly Mount[] =>
  [...SYSTEM_FOLDERS, ...SYSTEM_DATA]
    .filter(isWanted)
    .map(hostFolder)
    .filter((mount) => mount !== null);

/**
 * Inspects the machine, which takes some 30 ms where much is installed by hand; once per session.
 * `lookedThrough`: folders where private files are looked for.
 */
export const viewHost = (lookedThrough = LOOKED_THROUGH): HostView => {
  const shown = SYSTEM_FOLDERS.map((folder) => realPath(folder) ?? folder);
  const masked: string[] = [];
  // a symlink can't be masked: its target is
  for (const real of SECRET_PLACES.map(realPath))
    if (real !== null && shown.some((folder) => isWithin(real, folder)) && mayRead(real))
      masked.push(real);
  const secret = [...masked];
  for (const top of lookedThrough) {
    for (const place of privatePlaces(top))
      if (!secret.some((outer) => isWithin(place, outer))) masked.push(place);
  }
  return { mounts: hostMounts(), masked };
};

/** Whether commands see this place as part of the system. */
export const isOnHost = (place: string): boolean =>
  SYSTEM_FOLDERS.some((folder) => place === folder || place.startsWith(`${folder}/`));

// ---- The parts of the user's home that fenced commands can read ----
// They are installed tools and downloads, never credentials. Commands have a separate home, the
// session's, at another path. The user's tools appear at their real paths (the PATH and the tools
// themselves name those), and as symlinks in the session's home.

/** Folders of installed tools below the home. */
const TOOLS: Readonly<Record<string, string>> = {
  own: 'bin .local/bin .local/lib .local/opt .local/share/pipx',
  node: `
    .nvm .volta .fnm .local/share/fnm .nodenv .n .npm-global .npm-packages .bun/bin .deno/bin
    .yarn/bin .local/share/pnpm`,
  python: `
    .pyenv .local/share/uv .local/pipx .conda miniconda3 miniforge3 mambaforge anaconda3 .pixi
    .poetry .rye`,
  rust: '.rustup .cargo/bin .cargo/env .local/share/cargo/bin',
  go: 'go/bin sdk .go .g .gvm .local/go',
  java: '.sdkman .jenv .jabba .asdf .local/share/mise .local/share/rtx .proto .jdks',
  scripts: '.rbenv .rvm .gem/ruby .phpenv perl5 .plenv .luarocks .composer/vendor',
  others: `
    .dotnet .ghcup .elan .opam .juliaup .julia/juliaup .swiftly .nimble .zig .zvm .mix/archives
    .local/zig .foundry/bin .krew/bin`,
  android: 'Android/Sdk Library/Android/sdk',
  tests: `
    .cache/ms-playwright .cache/puppeteer .cache/Cypress .cache/selenium .cache/node-gyp
    .cache/electron .cache/node/corepack`,
};

/**
 * Folders of downloads. They are readable until a command with network gets a folder of the session
 * in their place.
 */
const DOWNLOADS: readonly string[] = listWords(`
  .npm/_cacache .cargo/registry .cargo/git go/pkg .m2/repository .m2/wrapper .gradle/wrapper
  .ivy2/cache .cache/coursier .nuget/packages .cabal/packages .stack/snapshots .hex/packages
  .composer/cache .bun/install/cache .yarn/berry/cache .cache/yarn .cache/deno
`);

/** Variables that name a folder or file of a tool, which is shown wherever it lies. */
const PATH_VARIABLES = listWords(`
  JAVA_HOME GOROOT NVM_DIR NVM_BIN VOLTA_HOME FNM_DIR N_PREFIX PNPM_HOME BUN_INSTALL PYENV_ROOT
  VIRTUAL_ENV CONDA_PREFIX RBENV_ROOT GEM_HOME RUSTUP_HOME SDKMAN_DIR ASDF_DIR ASDF_DATA_DIR
  MISE_DATA_DIR ANDROID_HOME ANDROID_SDK_ROOT DOTNET_ROOT OPAM_SWITCH_PREFIX HOMEBREW_PREFIX
  CUDA_HOME PLAYWRIGHT_BROWSERS_PATH PUPPETEER_CACHE_DIR SSL_CERT_FILE SSL_CERT_DIR
  NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO
  NIX_SSL_CERT_FILE CARGO_HTTP_CAINFO MAVEN_HOME GRADLE_HOME
`);

/** Folders beside a `bin` of the PATH that belong to the same tool. */
const BESIDE_PROGRAMS = ['lib', 'lib64', 'libexec', 'include', 'share'];

/** Credentials and personal data in the home. A folder that contains one of them is never shown. */
const SECRET_FOLDERS: readonly string[] = ['.config', '.local/state', ...CREDENTIALS];

/** Credentials inside shown folders, which are masked. */
const SECRETS_OF_TOOLS = listWords(`
  .local/share/uv/credentials .rye/credentials .dotnet/corefx .luarocks/upload_config.lua
  .nimble/github_api_token .npm-global/etc .n/etc .conda/.condarc miniconda3/.condarc
  miniforge3/.condarc mambaforge/.condarc anaconda3/.condarc
`);

/** Folders that would show too much. */
const TOO_HIGH = new Set(
  listWords(`
  / /home /root /Users /mnt /media /srv /var /var/lib /run /tmp /proc /sys /dev
`),
);

export type HomeView = {
  readonly mounts: readonly Mount[];
  /** Paths inside the mounts that are masked. */
  readonly masked: readonly string[];
  /** Symlinks in the session's home: relative path and target. A single file is copied instead. */
  readonly links: readonly {
    readonly at: string;
    readonly to: string;
    readonly isDownload: boolean;
    readonly isFile: boolean;
  }[];
  /** The PATH inside the sandbox. */
  readonly searchPath: string;
};

/** Where to look for the home, and what must stay hidden. */
type Place = {
  readonly environment: ProcessEnvironment;
  /** The user's home; null if there is no usable one. */
  readonly home: string | null;
  readonly workspace: string;
  /** Absolute paths. Nothing that contains one or lies in one is ever shown. */
  readonly hidden: readonly string[];
};

const listSecrets = ({ home, hidden }: Place): readonly string[] => [
  ...hidden,
  ...(home === null ? [] : SECRET_FOLDERS.map((folder) => path.join(home, folder))),
];

/**
 * Returns a function that gives the real path of a folder to show, or null if it is visible anyway
 * or must stay hidden.
 */
const createChooser = (place: Place): ((folder: string) => string | null) => {
  const secrets = listSecrets(place);
  const { home, workspace } = place;
  return (folder) => {
    const real = realPath(folder);
    if (real === null || TOO_HIGH.has(real) || isOnHost(real) || isWithin(real, workspace))
      return null;
    if (home !== null && isWithin(home, real)) return null;
    return secrets.some((secret) => isWithin(secret, real) || isWithin(real, secret)) ? null : real;
  };
};

const isExecutableFolder = (folder: string): boolean =>
  ['bin', 'sbin', 'shims'].includes(path.basename(folder));

/** Folders beside a `bin` belong to the same tool, except in `~/.local`, which all tools share. */
const besidePrograms = (folder: string, home: string | null): readonly string[] => {
  const top = path.dirname(folder);
  if (
    !isExecutableFolder(folder) ||
    top === home ||
    (home !== null && top === path.join(home, '.local'))
  )
    return [];
  return BESIDE_PROGRAMS.map((name) => path.join(top, name)).filter((name) => existsSync(name));
};

const searchFolders = (searchPath: string): readonly string[] =>
  searchPath.split(path.delimiter).filter((entry) => entry !== '');

/**
 * Replaces symlinked PATH folders by their real paths, since the symlinks may lie in hidden places
 * (/run/user/…).
 */
const searchPathInside = (searchPath: string, choose: (folder: string) => string | null): string =>
  searchFolders(searchPath)
    .map((folder) => (path.isAbsolute(folder) ? (choose(folder) ?? folder) : folder))
    .join(path.delimiter);

/** Without places that lie in another one. */
export const withoutInner = (places: readonly string[]): readonly string[] => {
  const all = [...new Set(places)];
  return all.filter((inner) => !all.some((outer) => outer !== inner && isWithin(inner, outer)));
};

type Link = HomeView['links'][number];

/** Inspects the home; once per session. */
export const viewHome = (place: Place): HomeView => {
  const { environment, home } = place;
  const choose = createChooser(place);
  const links: Link[] = [];
  const shown: string[] = [];
  if (home !== null) {
    const rows = [
      ...Object.values(TOOLS)
        .flatMap(listWords)
        .map((at) => ({ at, isDownload: false })),
      ...DOWNLOADS.map((at) => ({ at, isDownload: true })),
    ];
    for (const { at, isDownload } of rows) {
      const real = choose(path.join(home, at));
      if (real === null) continue;
      const isFile = statSync(real).isFile();
      // Under both paths, since programs name either.
      if (!isFile) shown.push(real, path.join(home, at));
      links.push({ at, to: path.join(home, at), isDownload, isFile });
    }
  }
  const searchPath = environment.PATH ?? '';
  for (const folder of searchFolders(searchPath).filter((one) => path.isAbsolute(one))) {
    const real = choose(folder);
    if (real !== null)
      shown.push(real, ...besidePrograms(real, home).filter((one) => choose(one) !== null));
  }
  for (const name of PATH_VARIABLES) {
    const value = environment[name];
    const real = value === undefined || !path.isAbsolute(value) ? null : choose(value);
    if (real !== null && value !== undefined) shown.push(real, path.resolve(value));
  }
  const secrets = home === null ? [] : SECRETS_OF_TOOLS.map((at) => path.join(home, at));
  // under both paths, as the folders; a symlink can't be masked
  const places = [...secrets, ...secrets.map(realPath)].filter((one) => one !== null);
  return {
    masked: places.filter(
      (secret) =>
        entryStatus(secret)?.isSymbolicLink() === false &&
        shown.some((one) => isWithin(secret, one)),
    ),
    mounts: withoutInner(shown).map((one) => readable(one, realPath(one) ?? one)),
    links,
    searchPath: searchPathInside(searchPath, choose),
  };
};

/** The user's home as a real path; null if HOME names no folder, or `/`. */
export const findHome = (named: string | undefined): string | null => {
  const real = named === undefined || !path.isAbsolute(named) ? null : realPath(named);
  return real === null || real === '/' || !statSync(real).isDirectory() ? null : real;
};

/** Variables that name a folder in which many programs keep secrets. */
const SECRET_VARIABLES = ['XDG_CONFIG_HOME', 'XDG_STATE_HOME'];

/** Paths with secrets. */
export const secretPlaces = ({
  environment,
  userPlaces,
}: {
  readonly environment: ProcessEnvironment;
  readonly userPlaces: FoundPlaces;
}): readonly string[] => {
  const home = findHome(homeFolder(environment));
  const named = SECRET_VARIABLES.flatMap((name) => environment[name] ?? []).filter(
    (value) => path.isAbsolute(value) && value !== '/',
  );
  const inHome = home === null ? [] : SECRET_FOLDERS.map((folder) => path.join(home, folder));
  return [...new Set([...userPlaces.hidden, ...userPlaces.credentials, ...named, ...inHome])];
};

// ---- Sockets of the machine, behind which are unfenced programs ----

/** Flag in /proc/net/unix of a socket that accepts connections. */
const ACCEPTS = '00010000';
/** Number, references, protocol, flags, type, state, inode and the name, which may have blanks. */
const SOCKET_LINE = /^(?:\S+ +){3}(\S+) +\S+ +\S+ +\d+ (.*)$/;

const listSockets = (): readonly string[] => {
  try {
    return readFileSync('/proc/net/unix', 'utf8').split('\n');
  } catch {
    return []; // not Linux
  }
};

export type Sockets = {
  /**
   * Absolute paths. Such a socket is reached through any mount of its folder, even a read-only one.
   */
  readonly paths: readonly string[];
  /**
   * Whether an abstract socket, one without a path, accepts connections. Everyone who shares its
   * network namespace can reach it.
   */
  readonly abstract: boolean;
};

/** For a command that may use none: its system-call filter refuses them. */
export const NO_SOCKETS: Sockets = { paths: [], abstract: false };

/** The sockets of the machine that a command could reach. */
export const hostSockets = (): Sockets => {
  const paths: string[] = [];
  let abstract = false;
  for (const line of listSockets()) {
    const [, flags, name = ''] = SOCKET_LINE.exec(line) ?? [];
    if (name.startsWith('/')) paths.push(name);
    else if (name.startsWith('@') && flags === ACCEPTS) abstract = true;
  }
  return { paths, abstract };
};

// ---- The part of the user's git settings that fenced commands get ----

/** Authors and preferences, but no credentials and no setting that runs a program. */
const SHOWN_SETTINGS = [
  /^(?:user|author|committer)\.(?:name|email)$/,
  /^init\.defaultbranch$/,
  /^core\.(?:autocrlf|eol|safecrlf|quotepath|whitespace|abbrev|ignorecase|precomposeunicode|commentchar|symlinks)$/,
  /^(?:pull\.(?:rebase|ff|twohead)|push\.(?:default|autosetupremote|followtags)|fetch\.(?:prune|prunetags))$/,
  /^merge\.(?:ff|conflictstyle|renames|log)$/,
  /^(?:rebase\.(?:autostash|autosquash|updaterefs|stat)|rerere\.(?:enabled|autoupdate))$/,
  /^branch\.(?:autosetuprebase|autosetupmerge|sort)$/,
  /^(?:diff\.(?:algorithm|renames|mnemonicprefix|colormoved|context|noprefix)|log\.(?:date|follow|abbrevcommit))$/,
  /^(?:status\.\w+|tag\.sort|column\.\w+|advice\.\w+|commit\.(?:cleanup|verbose)|blame\.\w+|submodule\.recurse)$/,
  /^safe\.directory$/,
];
const GIT_TIMEOUT_MS = 2_000;

/** `value`, quoted for a configuration file. */
const quoted = (value: string): string =>
  `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;

/** One setting as lines of a configuration; null if it is not shown. */
const settingLine = ([name, value]: readonly [name: string, value: string]): string | null => {
  if (!SHOWN_SETTINGS.some((pattern) => pattern.test(name))) return null;
  const dot = name.indexOf('.');
  return `[${name.slice(0, dot)}]\n\t${name.slice(dot + 1)} = ${quoted(value)}\n`;
};

/**
 * A command never prunes: neither objects nor entries of reflogs. The user's git does the packing.
 */
const NEVER_PRUNES =
  '[gc]\n\tauto = 0\n\tpruneExpire = never\n\treflogExpire = ' +
  'never\n\treflogExpireUnreachable = never\n';

/**
 * The user's files of git, as fenced commands see them: texts by their paths below the home
 * folder.
 */
export type GitFiles = ReadonlyMap<string, string>;

const PATTERNS_BYTES_MAX = 256 * 1024;

type GitSetting = readonly [name: string, value: string];

/** A name alone means true. */
const readSetting = (entry: string): GitSetting => {
  const [name = '', ...value] = entry.split('\n');
  return [name, value.length === 0 ? 'true' : value.join('\n')];
};

const LIST = ['config', '--list', '--includes', '-z'];

/**
 * The files; none without git. The user's files may include others for some repositories
 * (`includeIf`), so git is asked in the workspace, and only what is the user's counts. It is asked
 * outside if the configuration of the workspace can't be read, and without scopes if it does not
 * know them (before 2.26): then it reads one file of the user. Never rejects.
 */
export const readGitFiles = async (
  git: ProgramPath | null,
  workspace: string,
  environment: ProcessEnvironment,
): Promise<GitFiles> => {
  if (git === null) return new Map();
  const { HOME, XDG_CONFIG_HOME, PATH, GIT_CONFIG_GLOBAL } = environment;
  const asking = {
    environment: withVariables(
      { GIT_CONFIG_NOSYSTEM: '1' },
      { HOME, XDG_CONFIG_HOME, PATH, GIT_CONFIG_GLOBAL },
    ),
    searchPath: ['/usr/bin', '/bin'],
    timeoutMs: GIT_TIMEOUT_MS,
  };
  const { root } = path.parse(workspace);
  const settings: GitSetting[] = [];
  for (const [folder, scope] of [
    [workspace, '--show-scope'],
    [root, '--show-scope'],
    [workspace, '--global'],
  ] as const) {
    const answer = await askProgram(git, [...LIST, scope], { ...asking, folder });
    if (answer?.code !== 0) continue;
    const parts = answer.output.split('\0').slice(0, -1);
    const step = scope === '--global' ? 1 : 2;
    for (let at = step - 1; at < parts.length; at += step)
      if (step === 1 || parts[at - 1] === 'global') settings.push(readSetting(parts[at] ?? ''));
    break;
  }
  const lines = settings.map(settingLine).filter((line) => line !== null);
  const files = new Map([['.gitconfig', [NEVER_PRUNES, ...lines].join('')]]);
  const config = new Map(settings);
  for (const one of Object.values(GIT_PATTERN_FILES)) {
    const file = gitPatternFile(config, environment, one);
    const text = file === null ? '' : readTextOrEmptySync(file, PATTERNS_BYTES_MAX);
    if (text !== '') files.set(path.join('.config', 'git', one.usual), text);
  }
  return files;
};

// ---- A mount as words for bubblewrap ----

/** One file or folder in the sandbox, with its arguments for bubblewrap. */
export type Mount = {
  /** Absolute. Deeper paths are mounted later, on top of the folders that contain them. */
  readonly path: string;
  /** What is seen there: `path` itself, or another file or folder. */
  readonly from: string;
  readonly right: 'read' | 'write' | 'none';
  readonly words: readonly string[];
};

/** Read-only. */
export const readable = (place: string, from = place): Mount => ({
  ...{ path: place, from, right: 'read' },
  words: ['--ro-bind', from, place],
});

/** Read-only; skipped if it no longer exists. */
export const readableIfThere = (place: string): Mount => ({
  ...readable(place),
  words: ['--ro-bind-try', place, place],
});

export const writable = (place: string, from = place): Mount => ({
  ...{ path: place, from, right: 'write' },
  words: ['--bind', from, place],
});

/** Writable; skipped if it no longer exists. */
export const writableIfThere = (place: string): Mount => ({
  ...writable(place),
  words: ['--bind-try', place, place],
});

/** An empty folder for further mounts. `sealed` makes it read-only afterwards. */
export const emptyFolder = (place: string): Mount => ({
  ...{ path: place, from: place, right: 'none' },
  words: ['--tmpfs', place],
});

/**
 * A folder without rights to open it; it masks secrets. It is cheaper than a bind mount, for which
 * bubblewrap reads the list of mounts.
 */
export const closedFolder = (place: string): Mount => ({
  ...emptyFolder(place),
  words: ['--perms', '0000', '--tmpfs', place],
});

/** Makes a folder read-only, after all mounts inside it. */
export const sealed = (place: string): readonly string[] => ['--remount-ro', place];

/** Number of names in a path. Without `split`, since it is asked some hundred times a command. */
export const pathDepth = (place: string): number => {
  let depth = 1;
  for (let at = place.indexOf(path.sep); at !== -1; at = place.indexOf(path.sep, at + 1)) depth++;
  return depth;
};

/** Arguments in the order that bubblewrap needs. Of two mounts at one path, the later one wins. */
export const mountWords = (mounts: readonly Mount[]): readonly string[] =>
  mounts
    .toSorted((one, other) => pathDepth(one.path) - pathDepth(other.path))
    .flatMap(({ words }) => words);

// ---- Whether what is mounted for a command is what was looked at ----
// Bubblewrap follows paths. While it sets a fence up, another command could exchange a folder for a
// symlink to one outside the workspace, which would then be mounted. So the shell inside compares
// device and inode before the command.

type MountedIdentity = { readonly path: string; readonly identity: string };

/**
 * Device and inode of an entry whose folder is really there, not behind a symlink. Null if it is
 * not.
 */
const identityAt = (place: string): string | null =>
  inFolder(path.dirname(place), (below) => {
    const { dev, ino } = lstatSync(path.join(below, path.basename(place)), { bigint: true });
    return `${dev}:${ino}`;
  });

/** Null if one of the places has been exchanged already. */
export const mountedIdentities = (places: readonly string[]): readonly MountedIdentity[] | null => {
  const all = places.map((place) => ({ path: place, identity: identityAt(place) }));
  const there = all.flatMap(({ path: one, identity }) =>
    identity === null ? [] : [{ path: one, identity }],
  );
  return there.length === all.length ? there : null;
};

export const EXCHANGED =
  'another command exchanged folders of the workspace while this one was set up, so it was ' +
  'not started: try again';

/**
 * Shell text that ends the shell if something else is mounted; empty if there is nothing to
 * compare.
 */
export const mountCheck = (expected: readonly MountedIdentity[]): string => {
  if (expected.length === 0) return '';
  const currentIdentities = `$(command -p stat -c %d:%i -- ${shellWords(expected.map((one) => one.path))} 2>/dev/null)`;
  const identities = shellWords([expected.map(({ identity }) => identity).join('\n')]);
  return (
    `[ "${currentIdentities}" = ${identities} ] || { echo "[the sandbox: ${EXCHANGED}]" >&2; ` +
    `exit 126; }\n`
  );
};
