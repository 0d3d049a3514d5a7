/**
 * Paths that need more than a rule: those that other programs run or obey, those that Pawl obeys,
 * and those that hold credentials. Beside them the words that all of the policy uses.
 *
 * From top to bottom: lists of words; protected paths with their reasons; the user's places;
 * `markSensitivePaths`, which marks all in the facts of a call; names of programs and of what they
 * generate; settings of git whose value it runs, and the grammar of its configuration.
 */

import type { CallFacts } from './judged-call.js';

/**
 * The words of a text, separated by blanks and newlines: a list that is easier to read than one of
 * strings.
 */
export const listWords = (text: string): readonly string[] => text.trim().split(/\s+/);

export const wordSet = (text: string): ReadonlySet<string> => new Set(listWords(text));

/** Each name of a table with its row; several names share one, separated by blanks. */
export const namedRows = <Row>(rows: Readonly<Record<string, Row>>): (readonly [string, Row])[] =>
  Object.entries(rows).flatMap(([names, row]) =>
    listWords(names).map((name) => [name, row] as const),
  );

/*
 * ---- Protected paths ----
 *
 * Other programs run or obey these files later without a question (git, editors, CI, shells, …).
 *
 * 1. Only the user allows writing them: file tools ask, commands in the sandbox see them read-only,
 *    and one that such a command creates is set aside: moved away, so that nothing obeys it.
 * 2. They are protected at any depth, also before they exist.
 * 3. A name is protected in every spelling that some file system accepts for it: case, Unicode
 *    form, trailing blanks and dots, invisible characters.
 */

type Protection = {
  /**
   * Segments joined with `/`; a leading `*` matches any start of a name. Everything below is
   * protected too.
   */
  readonly path: string;
  /** The end of the sentence "it is protected: …". */
  readonly why: string;
};

const GIT = 'git obeys its configuration and runs its hooks';
const ENTERED = 'shells and tools run it when the folder is entered';

const GROUPS: readonly { readonly why: string; readonly paths: string }[] = [
  {
    why: GIT,
    paths: `
      .git .gitmodules .gitconfig
    `,
  },
  {
    why: 'git runs these hooks',
    paths: `
      .husky .githooks .git-hooks lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook .lefthook.yml
      .lefthook.yaml .lefthook.toml .lefthook.json lefthook-local.yml lefthook-local.yaml .lefthook-local.yml
      .pre-commit-config.yaml .pre-commit-config.yml .overcommit.yml captainhook.json .simple-git-hooks.json
      .simple-git-hooks.js .simple-git-hooks.cjs .huskyrc .huskyrc.json .huskyrc.js hk.pkl prek.toml simple-git-hooks.json simple-git-hooks.js simple-git-hooks.cjs
    `,
  },
  {
    why: ENTERED,
    paths: `
      .envrc mise.toml .mise.toml mise.local.toml .mise.local.toml .mise .config/mise .config/mise.toml .rtx.toml
      .autoenv .autoenv.zsh .rvmrc
    `,
  },
  {
    why: 'another version control program obeys it, up to hooks',
    paths: `
      .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .jj/repo/config.toml .jj/repo/workspace-config.toml .sl/config
      .pijul/config _darcs/prefs/defaults
    `,
  },
  {
    why: 'version managers and wrappers choose by it which program runs',
    paths: `
      .tool-versions rust-toolchain rust-toolchain.toml gradle/wrapper tools/bazel .bazeliskrc
    `,
  },
  {
    why: 'an interpreter, debugger or language server runs it when it is started in the folder',
    paths: `
      .gdbinit .gdbearlyinit .lldbinit .pdbrc .pdbrc.py .perldb .rdbgrc .byebugrc .irbrc .pryrc .iex.exs .Rprofile
      .Renviron .octaverc .ocamlinit .ghci .luarc.json .luarc.jsonc
    `,
  },
  {
    why: 'editors run tasks and settings of it',
    paths: `
      .vscode .vscode-server .idea .fleet .zed .vs .theia *.code-workspace *.sublime-project .devcontainer
      .devcontainer.json .gitpod.yml .nvim .nvim.lua .nvimrc .exrc .vimrc .gvimrc .vim .emacs .emacs.d .dir-locals.el
      .dir-locals-2.el .helix .lvimrc .nova .externalToolBuilders .yarn/sdks
    `,
  },
  {
    why: 'coding agents obey it',
    paths: `
      .pawl .mcp.json .mcp AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .agents .agent .claude
      .claude.json .cursor .cursorrules .gemini .codex .aider.conf.yml .continue .windsurf .windsurfrules .clinerules
      .cline .roo .roomodes .roorules .kiro .kilocode .qwen .opencode opencode.json opencode.jsonc .goose .goosehints .amp
      .augment .trae .junie .crush crush.json .crush.json .factory .copilot .github/copilot-instructions.md
      .github/instructions .github/prompts .github/agents .github/hooks .github/chatmodes .github/skills
    `,
  },
  {
    why: 'the CI of the repository runs it',
    paths: `
      .github/workflows .github/actions .github/dependabot.yml .github/dependabot.yaml .gitlab-ci.yml .gitlab-ci.yaml
      .gitlab/ci .circleci .travis.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines Jenkinsfile .jenkins
      .drone.yml .drone.yaml .drone.star .woodpecker .woodpecker.yml .woodpecker.yaml bitbucket-pipelines.yml .buildkite
      appveyor.yml .appveyor.yml .forgejo/workflows .forgejo/actions .gitea/workflows .gitea/actions .cirrus.yml
      .cirrus.star .teamcity .semaphore .builds cloudbuild.yaml cloudbuild.yml codemagic.yaml buildspec.yml buildspec.yaml
      .tekton .harness wercker.yml
    `,
  },
  {
    why: 'shells run it when they start',
    paths: `
      .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc .xprofile .zshrc .zshenv .zprofile
      .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .xinitrc .xsession .xsessionrc .config/fish .config/autostart
      .config/systemd .config/environment.d .config/git .tmux.conf .screenrc .pam_environment .ssh
    `,
  },
  {
    why: 'package managers and build tools obey it, up to which program they run',
    paths: `
      .npmrc .yarnrc .yarnrc.yml .yarn/releases .yarn/plugins .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .cargo/config
      .cargo/config.toml .pypirc pip.conf .gemrc .mvn .netrc .curlrc .wgetrc .condarc .bazelrc .buckconfig
      .bundle/config .pnp.cjs .pnp.js .pnp.loader.mjs .jvmopts .sbtopts
    `,
  },
];

/** Each protected path and its reason. */
export const PROTECTED_PATHS: readonly Protection[] = GROUPS.flatMap(({ why, paths }) =>
  listWords(paths).map((path) => ({ path, why })),
);

/** Invisible characters that HFS+ ignores in names. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}/gu;
/** NTFS: `file:stream` is the file, and trailing blanks and dots are ignored. */
const STREAM = /:.*$/s;
const TAIL = /(?<![\s.])[\s.]+$/;
/** The short name of `.git` on Windows. */
const SHORT_GIT = /^git~\d+$/;
const SEPARATOR = /[/\\]/;

/** In both directions: some file systems take `ß` for `ss`. */
const withoutCase = (text: string): string => text.toUpperCase().toLowerCase();

/** A name in the spelling that stands for all that some file system takes for the same. */
const canonicalName = (segment: string): string => {
  const seen = segment.normalize('NFKC').replace(UNSEEN, '').replace(STREAM, '').replace(TAIL, '');
  const folded = withoutCase(seen);
  return SHORT_GIT.test(folded) ? '.git' : folded;
};

/** The names in a path, in this spelling. */
const pathNames = (path: string): readonly string[] => {
  const names: string[] = [];
  for (const segment of path.split(SEPARATOR)) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') names.pop();
    else names.push(canonicalName(segment));
  }
  return names;
};

/** A protected path by its names. */
type Row = { readonly names: readonly string[]; readonly protection: Protection };

/** Rows by their first name, so that a path needs one look-up per name. */
const rowsByFirst = new Map<string, Row[]>();
const rowsBySuffix: Row[] = [];
for (const row of PROTECTED_PATHS.map((protection) => ({
  names: pathNames(protection.path),
  protection,
}))) {
  const [first = ''] = row.names;
  if (first.startsWith('*')) rowsBySuffix.push(row);
  else rowsByFirst.set(first, [...(rowsByFirst.get(first) ?? []), row]);
}

/** The rows of protected paths that begin with this name. */
const rowsAt = (name: string): readonly Row[] =>
  rowsByFirst.get(name) ??
  rowsBySuffix.filter((row) => name.endsWith((row.names[0] ?? '').slice(1)));

/** The protection that begins at this name of a path. */
const matchesAt = (names: readonly string[], at: number): Protection | null => {
  const row = rowsAt(names[at] ?? '').find((one) =>
    one.names.every((part, index) => index === 0 || part === names[at + index]),
  );
  return row?.protection ?? null;
};

/**
 * The protection of a path, absolute or relative, with `/` or `\`; null for an ordinary path. It
 * knows names only: resolve links before.
 */
export const findProtection = (path: string): Protection | null => {
  const names = pathNames(path);
  for (const at of names.keys()) {
    const protection = matchesAt(names, at);
    if (protection !== null) return protection;
  }
  return null;
};

/**
 * As `findProtection`, for a file that a tool writes. `HEAD` is protected here only: it would turn
 * a folder into a repository whose configuration git obeys, but git itself must write it.
 */
const findFileProtection = (path: string): Protection | null =>
  findProtection(path) ??
  (pathNames(path).at(-1) === 'head'
    ? { path: 'HEAD', why: 'git takes a folder that holds it for a repository' }
    : null);

/** Reasons that hold as soon as a person or a program enters the folder. */
const ON_ENTRY: ReadonlySet<string> = new Set([GIT, ENTERED]);

/** Whether git or a shell obeys an entry as soon as it is in the folder. */
export const isObeyedOnEntry = (name: string): boolean => {
  const protection = mayBeProtected(name) ? findProtection(name) : null;
  return protection !== null && ON_ENTRY.has(protection.why) && protection.path !== '.gitmodules';
};

/** Whether a protected path may begin with this name. A folder without such a name holds none. */
export const mayBeProtected = (name: string): boolean => rowsAt(canonicalName(name)).length > 0;

// ---- The user's places: what Pawl obeys, and credentials. They count wherever they lie ----

/**
 * Places of the user, as absolute paths: as they are named, each link on the way, and where
 * they really lie (secrets/user-places.ts finds them). Replacing such a link is writing the place.
 */
export type UserPlaces = {
  /** The real path of the home. */
  readonly home: string;
  /** Configuration, state and compiled code of Pawl. Writing them is asked about. */
  readonly obeyed: readonly string[];
  /** Every read of them is asked about. */
  readonly credentials: readonly string[];
};

/** Credentials below the home, without those of Pawl. */
export const CREDENTIALS = listWords(`
  .ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf
  .boto .s3cfg .vault-token .terraform.d .config/gh .config/gcloud .config/hub .config/op
  .config/doctl .config/rclone .config/git/credentials .config/composer/auth.json
  .composer/auth.json .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
  .gradle/gradle.properties .nuget/NuGet .hex/hex.config .bundle .wgetrc .pki .android
  .local/share/keyrings .password-store .mozilla .thunderbird
  .config/google-chrome .config/chromium .config/BraveSoftware .config/Code .claude .codex .gemini
  .config/anthropic .config/openai .bash_history .zsh_history .python_history .node_repl_history
  .psql_history .mysql_history Library/Keychains Library/Cookies
`);

const OF_SYSTEM =
  /^\/(proc|sys|dev)(\/|$)|^(\/private)?\/etc\/(shadow|gshadow|sudoers|ssh|ssl\/private|pki|krb5\.keytab|NetworkManager|wireguard|openvpn)|^(\/private)?\/(var\/)?run\/|^\/var\/lib\/(docker|containerd|sss|NetworkManager)/;

/** The path from a folder on; null if it lies outside. */
const relativeTo = (folder: string, path: string): string | null => {
  const base = folder.endsWith('/') ? folder : `${folder}/`;
  if (path === folder) return '';
  return path.startsWith(base) ? path.slice(base.length) : null;
};

/** Whether a path is the folder or lies in it. */
export const isInside = (folder: string, path: string): boolean =>
  relativeTo(folder, path) !== null;

/**
 * The place in which a path lies. A place that holds the whole workspace does not count for paths
 * inside the workspace: the user works there.
 */
const placeAround = (places: readonly string[], path: string, workspace: string): string | null => {
  const folded = withoutCase(path);
  const counts = (place: string): boolean =>
    !isInside(place, workspace) || !isInside(workspace, path);
  return places.find((place) => isInside(withoutCase(place), folded) && counts(place)) ?? null;
};

/** Whether a real absolute path holds credentials. `workspace`: null for none. */
export const isSecretPath = (
  path: string,
  userPlaces: UserPlaces,
  workspace: string | null,
): boolean => {
  const folder = workspace ?? ''; // no place holds ''
  const isOwn = OF_SYSTEM.test(folder) && isInside(folder, path);
  return (
    (OF_SYSTEM.test(path) && !isOwn) || placeAround(userPlaces.credentials, path, folder) !== null
  );
};

/** Folders of the home that many programs share. */
const SHARED = listWords('.config .local .local/share .local/state .local/bin .cache');
/** Names in the home, beside those with a dot, below which programs lie that are run later. */
const RUN_IN_HOME = wordSet('bin library');

/**
 * The protection of the user's files in a workspace that is the home, lies above it, or is a folder
 * of it that programs share: nearly every program obeys something below a name with a dot there.
 */
const protectionInHome = (path: string, home: string, workspace: string): Protection | null => {
  const holdsHome = relativeTo(workspace, home) !== null;
  const inside = relativeTo(home, path);
  if (inside === null || !(holdsHome || SHARED.some((name) => workspace === `${home}/${name}`)))
    return null;
  const [first = ''] = inside.split('/');
  if (!first.startsWith('.') && !RUN_IN_HOME.has(first.toLowerCase())) return null;
  return { path: `~/${first}`, why: 'programs of yours obey or run it' };
};

/** The protection of the user's places; null for any other path. */
const protectionOfUser = (
  path: string,
  userPlaces: UserPlaces,
  workspace: string,
): Protection | null => {
  if (path === workspace) return null;
  const place = placeAround([...userPlaces.obeyed, ...userPlaces.credentials], path, workspace);
  return place === null
    ? protectionInHome(path, userPlaces.home, workspace)
    : { path: place, why: 'it is your own configuration, or your credentials' };
};

// ---- All of them, in the facts of a call ----

const protectionByName = (workspace: string, path: string): Protection | null => {
  const inside = relativeTo(workspace, path);
  if (inside === null) return findFileProtection(path);
  const name = workspace.split('/').at(-1) ?? '';
  const protection = findFileProtection(inside);
  if (protection !== null || findProtection(name) !== null) return protection;
  return findProtection(`${name}/${inside}`);
};

/**
 * The protection of a file by its name in the workspace, or as one of the user's places. The
 * workspace's name counts where a protected path begins with it: in a workspace `.github` the
 * folder `workflows` is protected.
 */
export const protectionInWorkspace = (
  workspace: string,
  path: string,
  userPlaces: UserPlaces,
): Protection | null =>
  protectionByName(workspace, path) ?? protectionOfUser(path, userPlaces, workspace);

/**
 * Adds to the facts of a call which of its paths are protected or secret, and whether one lies
 * outside the workspace. The workspace's path does not count. Paths that the tool has reported to
 * be protected stay so.
 */
export const markSensitivePaths = (
  facts: CallFacts,
  workspace: string,
  userPlaces: UserPlaces,
): CallFacts => {
  const isReported = (path: string): boolean => facts.protected?.includes(path) === true;
  const paths = facts.paths.filter((path) => path !== workspace || isReported(path));
  const protectedPaths = paths.filter(
    (path) => isReported(path) || protectionInWorkspace(workspace, path, userPlaces) !== null,
  );
  const secret = paths.filter((path) => isSecretPath(path, userPlaces, workspace));
  const leavesWorkspace =
    facts.needs === undefined && paths.some((path) => relativeTo(workspace, path) === null);
  return {
    ...facts,
    ...(leavesWorkspace ? ({ needs: 'outside' } as const) : {}),
    ...(protectedPaths.length === 0 ? {} : { protected: protectedPaths }),
    ...(secret.length === 0 ? {} : { secret }),
  };
};

// ---- Names ----

/** The name of a program without its folder. */
export const programName = (word: string): string => word.slice(word.lastIndexOf('/') + 1);

/** Names of what builds, tests and package managers make again. Ignored by git they are no loss. */
const GENERATED =
  /^(node_modules|bower_components|dist|build|out|target|coverage|htmlcov|storybook-static|__pycache__|venv|\.(next|nuxt|svelte-kit|turbo|parcel-cache|cache|pytest_cache|mypy_cache|ruff_cache|tox|nox|venv|eggs|gradle|nyc_output|DS_Store|coverage|eslintcache)|.+\.(egg-info|pyc|pyo|o|obj|class|tsbuildinfo))$/;

/** Whether a path, or a folder above it, has the name of something generated. */
export const isGenerated = (path: string): boolean =>
  path.split('/').some((part) => GENERATED.test(part));

// ---- Settings whose value git runs ----

/** Keys in lower case; a name in their middle is `*`. */
const COMMAND_KEYS: readonly RegExp[] = [
  /^core\.(?:fsmonitor|askpass|sshcommand|gitproxy|editor|pager|alternaterefscommand)$/,
  /^(?:sequence\.editor|diff\.external|interactive\.difffilter|uploadpack\.packobjectshook)$/,
  /^(?:gc\.recentobjectshook|web\.browser|instaweb\.httpd|imap\.tunnel)$/,
  /^filter\.\*\.(?:clean|smudge|process)$/,
  /^lfs\.\*\.(?:path|clean|smudge)$/, // customtransfer.NAME.path, extension.NAME.clean
  /^diff\.\*\.(?:command|textconv)$/,
  /^merge\.\*\.driver$/,
  /^(?:mergetool|difftool|browser|man|guitool)\.\*\.(?:cmd|path)$/,
  /^gpg(?:\.\*)?\.(?:program|defaultkeycommand)$/,
  /^(?:credential|credential\.\*)\.helper$/,
  /^(?:alias|pager)\.[a-z0-9-]+$/,
  /^alias\.\*\.command$/,
  /^remote\.\*\.(?:uploadpack|receivepack|vcs|url|pushurl)$/,
  /^submodule\.\*\.update$/,
  /^(?:trailer\.\*\.(?:command|cmd)|tar\.\*\.command)$/,
  /^(?:hook|hook\.\*)\.command$/,
  /^sendemail(?:\.\*)?\.\w+$/,
];

/**
 * The command line that git runs because of a setting; null: none. Of aliases only those with a
 * `!`, of addresses only those with a helper (`ext::…`), and no switch or word of git itself
 * like `core.fsmonitor = true`.
 */
export const settingCommand = (key: string, value: string): string | null => {
  if (!COMMAND_KEYS.some((pattern) => pattern.test(key))) return null;
  const isCommand = key.startsWith('alias.')
    ? value.startsWith('!')
    : key.endsWith('url')
      ? value.includes('::')
      : !/^(?:true|false|yes|no|on|off|none|checkout|merge|rebase|\d*)$/i.test(value);
  return isCommand ? value.replace(/^(?:!|\w+::)/, '') : null;
};

/** The key of a setting, as in `settingCommand`: `section.key` or `section.*.key`. */
export const settingKey = (name: string): string => name.toLowerCase().replace(/\..*\./s, '.*.');

// ---- Git's configuration ----

/** One setting in a configuration. */
export type ConfigEntry = {
  /** As `settingKey` returns it, such as `remote.*.url`. */
  readonly key: string;
  readonly value: string;
  /** The head of its section, and its name there. */
  readonly head: string;
  readonly name: string;
};

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '\n': '' };

/** A value as git reads it: without quotes and continuations. A NUL ends it. */
const plainValue = (text: string): string => {
  let value = '';
  let length = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    const isSpace = !isQuoted && /[ \t\r]/.test(character);
    if (character === '\\') {
      at += 1;
      value += ESCAPES[text[at] ?? ''] ?? text[at] ?? '';
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isSpace || value !== '') value += character;
    if (!isSpace) length = value.length;
  }
  return value.slice(0, length).replace(/\0.*/s, '');
};

// One item of a configuration in git's own grammar: space, a comment, a head, or a setting.
const HEAD = String.raw`\[(?=[^\]])([A-Za-z0-9.-]*)(?:[ \t\r]+"((?:[^"\\\n]|\\[^\n])*)")?\]`;
const QUOTED = String.raw`"(?:[^"\\\n]|\\[\n"\\tbn])*"`;
const VALUE = String.raw`=((?:[^"\\\n#;]|\\(?:[\n"\\tbn]|$)|${QUOTED})*)(?:[#;][^\n]*)?`;
const SETTING = String.raw`([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:${VALUE})?(?:\n|$)`;
const ITEM = new RegExp(String.raw`[ \t\r\n]+|[#;][^\n]*|(${HEAD})|${SETTING}`, 'gy');

/** All settings of a configuration, up to the first item that git would refuse. */
export const configEntries = (text: string): readonly ConfigEntry[] => {
  const entries: ConfigEntry[] = [];
  let head = '';
  let section = '';
  const plain = text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
  for (const [, newHead, base = '', quoted, name, value] of plain.matchAll(ITEM)) {
    if (newHead !== undefined) {
      head = newHead;
      const inner = quoted === undefined ? '' : `.${quoted.replace(/\\(.)/gs, '$1')}`;
      section = `${base}${inner}.`;
    } else if (name !== undefined) {
      const key = settingKey(`${section}${name}`.replace(/\0.*/s, ''));
      entries.push({ key, value: value === undefined ? 'true' : plainValue(value), head, name });
    }
  }
  return entries;
};
