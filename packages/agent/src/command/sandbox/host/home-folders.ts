import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../../platform/base/process-environment-type.js';
import { realPathOf } from '../../../platform/files/entry-status.js';
import { isWithin } from '../../../platform/files/is-within.js';
import { type Mount, readable } from '../mounts.js';
import { isOnHost } from './host-folders.js';

/**
 * The parts of the user's home that fenced commands can read: installed tools and downloads, never credentials.
 *
 * Commands have a separate home, the session's, at another path. The user's tools appear at their real paths (the PATH
 * and the tools themselves name those), and as symlinks in the session's home.
 */

/** Folders of installed tools below the home, by purpose. */
const TOOLS: readonly { readonly why: string; readonly folders: string }[] = [
  {
    why: 'programs that the user installed',
    folders: 'bin .local/bin .local/lib .local/opt .local/share/pipx',
  },
  {
    why: 'versions of Node and what was installed with them',
    folders:
      '.nvm .volta .fnm .local/share/fnm .nodenv .n .npm-global .npm-packages .bun/bin .deno/bin .yarn/bin .local/share/pnpm',
  },
  {
    why: 'versions of Python',
    folders:
      '.pyenv .local/share/uv .local/pipx .conda miniconda3 miniforge3 mambaforge anaconda3 .pixi .poetry .rye',
  },
  { why: 'Rust', folders: '.rustup .cargo/bin .cargo/env .local/share/cargo/bin' },
  { why: 'Go', folders: 'go/bin sdk .go .g .gvm .local/go' },
  {
    why: 'Java and its kin',
    folders: '.sdkman .jenv .jabba .asdf .local/share/mise .local/share/rtx .proto .jdks',
  },
  {
    why: 'Ruby, PHP, Perl, Lua',
    folders: '.rbenv .rvm .gem/ruby .phpenv perl5 .plenv .luarocks .composer/vendor',
  },
  {
    why: 'other languages',
    folders:
      '.dotnet .ghcup .elan .opam .juliaup .julia/juliaup .swiftly .nimble .zig .zvm .mix/archives .local/zig .foundry/bin .krew/bin',
  },
  { why: 'the Android SDK', folders: 'Android/Sdk Library/Android/sdk' },
  {
    why: 'browsers and binaries that tests use',
    folders:
      '.cache/ms-playwright .cache/puppeteer .cache/Cypress .cache/selenium .cache/node-gyp .cache/electron .cache/node/corepack',
  },
];

/** Folders of downloads. They are readable until a command with network gets a folder of the session in their place. */
const DOWNLOADS: readonly string[] = [
  '.npm/_cacache',
  '.cargo/registry',
  '.cargo/git',
  'go/pkg',
  '.m2/repository',
  '.m2/wrapper',
  '.gradle/wrapper',
  '.ivy2/cache',
  '.cache/coursier',
  '.nuget/packages',
  '.cabal/packages',
  '.stack/snapshots',
  '.hex/packages',
  '.composer/cache',
  '.bun/install/cache',
  '.yarn/berry/cache',
  '.cache/yarn',
  '.cache/deno',
];

/** Variables that name a folder or file of a tool, which is shown wherever it lies. */
const PATH_VARIABLES =
  'JAVA_HOME GOROOT NVM_DIR NVM_BIN VOLTA_HOME FNM_DIR N_PREFIX PNPM_HOME BUN_INSTALL PYENV_ROOT VIRTUAL_ENV CONDA_PREFIX RBENV_ROOT GEM_HOME RUSTUP_HOME SDKMAN_DIR ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR ANDROID_HOME ANDROID_SDK_ROOT DOTNET_ROOT OPAM_SWITCH_PREFIX HOMEBREW_PREFIX CUDA_HOME PLAYWRIGHT_BROWSERS_PATH PUPPETEER_CACHE_DIR SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO NIX_SSL_CERT_FILE CARGO_HTTP_CAINFO NIX_PROFILES MAVEN_HOME GRADLE_HOME';

/** Folders beside a `bin` of the PATH that belong to the same tool. */
const BESIDE_PROGRAMS = ['lib', 'lib64', 'libexec', 'include', 'share'];

/** Credentials and personal data in the home. A folder that contains one of them is never shown. */
export const SECRET_FOLDERS: readonly string[] = [
  ...[
    '.ssh',
    '.gnupg',
    '.aws',
    '.azure',
    '.kube',
    '.docker',
    '.config',
    '.netrc',
    '.git-credentials',
    '.npmrc',
  ],
  ...[
    '.pypirc',
    '.password-store',
    '.mozilla',
    '.thunderbird',
    '.local/share/keyrings',
    '.local/state',
    '.pki',
  ],
  ...[
    '.cargo/credentials',
    '.cargo/credentials.toml',
    '.m2/settings.xml',
    '.gem/credentials',
    '.terraform.d',
  ],
  ...['.bundle', '.vault-token', '.pgpass', '.my.cnf', '.wgetrc', '.boto', '.gradle/gradle.properties'],
  ...[
    '.nuget/NuGet',
    '.hex/hex.config',
    '.config/composer/auth.json',
    '.composer/auth.json',
    '.android',
    '.claude',
  ],
];

/** Credentials inside shown folders, which are masked. */
const SECRETS_OF_TOOLS =
  '.local/share/uv/credentials .rye/credentials .dotnet/corefx .luarocks/upload_config.lua .nimble/github_api_token .npm-global/etc .n/etc .conda/.condarc miniconda3/.condarc miniforge3/.condarc mambaforge/.condarc anaconda3/.condarc';

const listOf = (folders: string): readonly string[] => folders.split(' ');

/** Folders that would show too much. */
const TOO_HIGH = new Set([
  '/',
  '/home',
  '/root',
  '/Users',
  '/mnt',
  '/media',
  '/srv',
  '/var',
  '/var/lib',
  '/run',
  '/tmp',
  '/proc',
  '/sys',
  '/dev',
]);

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

type Place = {
  readonly environment: ProcessEnvironment;
  /** The user's home; null if there is no usable one. */
  readonly home: string | null;
  readonly workspace: string;
  /** Absolute paths. Nothing that contains one or lies in one is ever shown. */
  readonly hidden: readonly string[];
};

const secretsOf = ({ home, hidden }: Place): readonly string[] => [
  ...hidden,
  ...(home === null ? [] : SECRET_FOLDERS.map((folder) => path.join(home, folder))),
];

/**
 * Returns a function that gives the real path of a folder to show, or null if it is visible anyway or must stay hidden.
 */
const createChooser = (place: Place): ((wanted: string) => string | null) => {
  const secrets = secretsOf(place);
  const { home, workspace } = place;
  return (wanted) => {
    const real = realPathOf(wanted);
    if (real === null || TOO_HIGH.has(real) || isOnHost(real) || isWithin(real, workspace)) return null;
    if (home !== null && isWithin(home, real)) return null;
    return secrets.some((secret) => isWithin(secret, real) || isWithin(real, secret)) ? null : real;
  };
};

const isExecutableFolder = (folder: string): boolean =>
  ['bin', 'sbin', 'shims'].includes(path.basename(folder));

/** Folders beside a `bin` belong to the same tool, except in `~/.local`, which all tools share. */
const besidePrograms = (folder: string, home: string | null): readonly string[] => {
  const top = path.dirname(folder);
  if (!isExecutableFolder(folder) || top === home || (home !== null && top === path.join(home, '.local')))
    return [];
  return BESIDE_PROGRAMS.map((name) => path.join(top, name)).filter((name) => existsSync(name));
};

const searchFolders = (searchPath: string): readonly string[] =>
  searchPath.split(path.delimiter).filter((entry) => entry !== '');

/** Replaces symlinked PATH folders by their real paths, since the symlinks may lie in hidden places (/run/user/…). */
const searchPathInside = (searchPath: string, choose: (wanted: string) => string | null): string =>
  searchFolders(searchPath)
    .map((folder) => (path.isAbsolute(folder) ? (choose(folder) ?? folder) : folder))
    .join(path.delimiter);

const withoutInner = (places: readonly string[]): readonly string[] => {
  const all = [...new Set(places)];
  return all.filter((inner) => !all.some((outer) => outer !== inner && isWithin(inner, outer)));
};

type Link = HomeView['links'][number];

/** Inspects the home; once per session. */
export const viewHome = (place: Place): HomeView => {
  const { environment, home } = place;
  const choose = createChooser(place);
  const links: Link[] = [];
  const wanted: string[] = [];
  if (home !== null) {
    const rows = [
      ...TOOLS.flatMap(({ folders }) => listOf(folders)).map((at) => ({ at, isDownload: false })),
      ...DOWNLOADS.map((at) => ({ at, isDownload: true })),
    ];
    for (const { at, isDownload } of rows) {
      const real = choose(path.join(home, at));
      if (real === null) continue;
      const isFile = statSync(real).isFile();
      if (!isFile) wanted.push(real, path.join(home, at));
      links.push({ at, to: path.join(home, at), isDownload, isFile });
    }
  }
  const searchPath = environment.PATH ?? '';
  for (const folder of searchFolders(searchPath).filter((one) => path.isAbsolute(one))) {
    const real = choose(folder);
    if (real !== null) wanted.push(real, ...besidePrograms(real, home).filter((one) => choose(one) !== null));
  }
  for (const name of listOf(PATH_VARIABLES)) {
    const value = environment[name];
    const real = value === undefined || !path.isAbsolute(value) ? null : choose(value);
    if (real !== null && value !== undefined) wanted.push(real, value);
  }
  const secrets = home === null ? [] : listOf(SECRETS_OF_TOOLS).map((at) => path.join(home, at));
  const real = secrets.map((secret) => realPathOf(secret)).filter((one) => one !== null);
  return {
    masked: [...secrets, ...real].filter((secret) => wanted.some((one) => isWithin(secret, one))),
    mounts: withoutInner(wanted).map((one) => readable(one, realPathOf(one) ?? one)),
    links,
    searchPath: searchPathInside(searchPath, choose),
  };
};

/** The user's home as a real path; null if HOME names no folder, or `/`. */
export const homeOf = (named: string | undefined): string | null => {
  const real = named === undefined || !path.isAbsolute(named) ? null : realPathOf(named);
  return real === null || real === '/' || !statSync(real).isDirectory() ? null : real;
};
