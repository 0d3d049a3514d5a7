import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallFacts } from '../../src/policy/judged-call.js';
import {
  CREDENTIALS,
  findProtection,
  isGenerated,
  isObeyedOnEntry,
  isSecretPath,
  listWords,
  markSensitivePaths,
  protectionInWorkspace,
  settingCommand,
  settingKey,
} from '../../src/policy/paths.js';

// Each path that is protected or secret, and each setting whose value git runs.

/** Files and folders that git, hooks, shells, editors, agents, CI and build tools obey. */
const OBEYED = `
  .git .gitmodules .gitconfig .husky .githooks .git-hooks lefthook.yml lefthook.yaml lefthook.toml
  lefthook.json .lefthook .lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json
  lefthook-local.yml lefthook-local.yaml .lefthook-local.yml .pre-commit-config.yaml
  .pre-commit-config.yml .overcommit.yml captainhook.json .simple-git-hooks.json
  .simple-git-hooks.js .simple-git-hooks.cjs .huskyrc .huskyrc.json .huskyrc.js hk.pkl prek.toml
  simple-git-hooks.json simple-git-hooks.js simple-git-hooks.cjs .envrc mise.toml .mise.toml
  mise.local.toml .mise.local.toml .mise .config/mise .config/mise.toml .rtx.toml .autoenv
  .autoenv.zsh .rvmrc .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .jj/repo/config.toml
  .jj/repo/workspace-config.toml .sl/config .pijul/config _darcs/prefs/defaults .tool-versions
  rust-toolchain rust-toolchain.toml gradle/wrapper tools/bazel .bazeliskrc .gdbinit .gdbearlyinit
  .lldbinit .pdbrc .pdbrc.py .perldb .rdbgrc .byebugrc .irbrc .pryrc .iex.exs .Rprofile .Renviron
  .octaverc .ocamlinit .ghci .luarc.json .luarc.jsonc .vscode .vscode-server .idea .fleet .zed .vs
  .theia *.code-workspace *.sublime-project .devcontainer .devcontainer.json .gitpod.yml .nvim
  .nvim.lua .nvimrc .exrc .vimrc .gvimrc .vim .emacs .emacs.d .dir-locals.el .dir-locals-2.el
  .helix .lvimrc .nova .externalToolBuilders .yarn/sdks .pawl .mcp.json .mcp AGENTS.md
  AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .agents .agent .claude .claude.json
  .cursor .cursorrules .gemini .codex .aider.conf.yml .continue .windsurf .windsurfrules
  .clinerules .cline .roo .roomodes .roorules .kiro .kilocode .qwen .opencode opencode.json
  opencode.jsonc .goose .goosehints .amp .augment .trae .junie .crush crush.json .crush.json
  .factory .copilot .github/copilot-instructions.md .github/instructions .github/prompts
  .github/agents .github/hooks .github/chatmodes .github/skills .github/workflows .github/actions
  .github/dependabot.yml .github/dependabot.yaml .gitlab-ci.yml .gitlab-ci.yaml .gitlab/ci
  .circleci .travis.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines Jenkinsfile
  .jenkins .drone.yml .drone.yaml .drone.star .woodpecker .woodpecker.yml .woodpecker.yaml
  bitbucket-pipelines.yml .buildkite appveyor.yml .appveyor.yml .forgejo/workflows
  .forgejo/actions .gitea/workflows .gitea/actions .cirrus.yml .cirrus.star .teamcity .semaphore
  .builds cloudbuild.yaml cloudbuild.yml codemagic.yaml buildspec.yml buildspec.yaml .tekton
  .harness wercker.yml .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile
  .inputrc .xprofile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc
  .login .xinitrc .xsession .xsessionrc .config/fish .config/autostart .config/systemd
  .config/environment.d .config/git .tmux.conf .screenrc .pam_environment .ssh .npmrc .yarnrc
  .yarnrc.yml .yarn/releases .yarn/plugins .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .cargo/config
  .cargo/config.toml .pypirc pip.conf .gemrc .mvn .netrc .curlrc .wgetrc .condarc .bazelrc
  .buckconfig .bundle/config .pnp.cjs .pnp.js .pnp.loader.mjs .jvmopts .sbtopts`;

test('what other programs obey is protected', () => {
  const paths = listWords(OBEYED);
  assert.deepEqual(
    paths.filter((path) => findProtection(path.replace('*', 'x'))?.path !== path),
    [],
  );
  assert.equal(findProtection('.huskyrc.ts'), null, 'control');
});

test('some are obeyed as soon as a folder is entered', () => {
  const onEntry = listWords('.git .gitconfig .envrc .mise mise.local.toml .autoenv .rvmrc GIT~1');
  assert.deepEqual(
    onEntry.filter((name) => !isObeyedOnEntry(name)),
    [],
  );
  const others = listWords('.gitmodules .husky .vscode .bashrc src .config');
  assert.deepEqual(others.filter(isObeyedOnEntry), []);
});

/** Below the home. */
const SECRET = `
  .ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf
  .boto .s3cfg .vault-token .terraform.d .config/gh .config/gcloud .config/hub .config/op
  .config/doctl .config/rclone .config/git/credentials .config/composer/auth.json
  .composer/auth.json .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
  .gradle/gradle.properties .nuget/NuGet .hex/hex.config .bundle .wgetrc .pki .android
  .local/share/keyrings .password-store .mozilla .thunderbird .config/google-chrome
  .config/chromium .config/BraveSoftware .config/Code .claude .codex .gemini .config/anthropic
  .config/openai .bash_history .zsh_history .python_history .node_repl_history .psql_history
  .mysql_history Library/Keychains Library/Cookies`;
const OF_SYSTEM = `
  /proc /proc/1/environ /sys/x /dev/sda /etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d/x
  /etc/ssh/key /etc/ssl/private/a /etc/pki/a /etc/krb5.keytab /etc/NetworkManager/a
  /etc/wireguard/a /etc/openvpn/a /private/etc/shadow /run/user/x /var/run/x /private/var/run/x
  /private/run/x /var/lib/docker/a /var/lib/containerd/a /var/lib/sss/a /var/lib/NetworkManager/a`;
const NO_SECRETS = `
  /etc/hosts /etc/ssl/certs/a /procs/a /device /runner/x /var/lib/dpkg/a /srv/proc/1 /srv/run/x /run
  /h /h/.sshx /h/src/.ssh/x /y/.ssh/x /w/.netrc`;

test('credentials of the user and of the system are secret', () => {
  const places = { home: '/h', obeyed: ['/w'], credentials: CREDENTIALS.map((one) => `/h/${one}`) };
  const isOpen = (path: string) => !isSecretPath(path, places, '/w');
  const below = listWords(SECRET).map((one) => `/h/${one}/x`);
  assert.deepEqual([...below, ...listWords(OF_SYSTEM)].filter(isOpen), []);
  const open = listWords(NO_SECRETS);
  assert.deepEqual(open.filter(isOpen), open);
});

/** `WORKSPACE PATH`. */
const SECRET_FROM = `
  / /proc/1|/run/w /run/x|/h /h/.ssh/x|/h/.ssh/w /h/.ssh/id|/w /H/.SSH|/w/x /h/.ssh`;
const OPEN_FROM = '/run/w /run/w/x|/h/.ssh /h/.ssh/id|/h/.ssh/w /h/.ssh/w/a';

test('a workspace in a place of secrets holds none by that', () => {
  const places = { home: '/h', obeyed: [], credentials: ['/x', '/h/.ssh'] };
  const secret = (row: string): boolean => {
    const [workspace = '', path = ''] = row.trim().split(' ');
    return isSecretPath(path, places, workspace);
  };
  assert.deepEqual(
    SECRET_FROM.split('|').filter((row) => !secret(row)),
    [],
  );
  assert.deepEqual(OPEN_FROM.split('|').filter(secret), []);
  for (const [path, secret] of [
    ['/run/x', true],
    ['/h/.ssh/a', true],
    ['/w/x', false],
  ] as const)
    assert.equal(isSecretPath(path, places, null), secret, path);
});

/** `WORKSPACE PATH PROTECTED`; without the last it is not protected. */
const IN_HOME = `
  /h /h/.foo/x ~/.foo|/h /h/bin/x ~/bin|/h /h/Library/x ~/Library|/h /h/notes/x|/h /h|/h /h/binary
  / /h/.foo ~/.foo|/ /etc/x|/ /.foo|/h/.config /h/.config/x ~/.config|/h/.config /h/.config
  /h/.local /h/.local/x ~/.local|/h/.local/share /h/.local/share/x ~/.local
  /h/.local/state /h/.local/state/x ~/.local|/h/.local/bin /h/.local/bin/x ~/.local
  /h/.cache /h/.cache/x ~/.cache|/h/.config/x /h/.config/x/y|/h/proj /h/.foo|/h/proj /h/proj/.foo
  /h/proj /h/pawl/a /h/pawl|/h/pawl /h/pawl/a|/h/proj /h/keys/a /h/keys|/h /H/PAWL/a /h/pawl|/h/pawl /h/pawl
  /w /w/a/HEAD HEAD|/w /w/HEAD HEAD|/w /x/head HEAD|/w /w/HEAD/x|/w /w/AHEAD|/w /x/.git/a .git
  /w /x/y
  /r/.github /r/.github/agents/x .github/agents|/r/.vscode /r/.vscode/x
  /r/.vscode /r/.vscode/.idea .idea
  /r/.vscode /r/.vscode|/ /.github/workflows .github/workflows`;

test('places of the user are protected in every workspace', () => {
  const places = { home: '/h', obeyed: ['/h/pawl'], credentials: ['/h/keys'] };
  const wrong = IN_HOME.trim()
    .split(/\||\n/)
    .flatMap((row) => {
      const [workspace = '', path = '', expected] = row.trim().split(' ');
      const actual = protectionInWorkspace(workspace, path, places)?.path;
      return actual === expected ? [] : [`${row}: ${actual}`];
    });
  assert.deepEqual(wrong, []);
});

test('a call is marked with its protected and secret paths, and those outside', () => {
  const places = { home: '/h', obeyed: [], credentials: ['/h/.ssh'] };
  const mark = (paths: string, more: Partial<CallFacts> = {}, workspace = '/w'): string => {
    const facts = { argv: [], hosts: [], shape: 'x', paths: paths.split(' '), ...more };
    const { needs, protected: marked, secret } = markSensitivePaths(facts, workspace, places);
    return [needs, marked, secret].map((marks) => String(marks ?? '-')).join(' ');
  };
  const reported = { protected: ['/w', '/w/hook'] };
  assert.equal(mark('/w /w/a'), '- - -');
  assert.equal(mark('/w/a /w/.git/x'), '- /w/.git/x -');
  assert.equal(mark('/w /w/a /w/hook /w/.git', reported), '- /w,/w/hook,/w/.git -');
  assert.equal(mark('/x'), 'outside - -');
  assert.equal(mark('/x', { needs: 'network' }), 'network - -');
  assert.equal(mark('/h/.ssh/a /w/b'), 'outside /h/.ssh/a /h/.ssh/a');
  assert.equal(mark('/h/.SSH', {}, '/h/.SSH'), '- - -', 'the workspace itself');
});

const GENERATED = `
  node_modules bower_components dist build out target coverage htmlcov storybook-static __pycache__
  venv .next .nuxt .svelte-kit .turbo .parcel-cache .cache .pytest_cache .mypy_cache .ruff_cache
  .tox .nox .venv .eggs .gradle .nyc_output .DS_Store .coverage .eslintcache x.egg-info x.pyc x.pyo
  x.o x.obj x.class x.tsbuildinfo`;
const MADE_BY_HAND = 'dists mydist .o x.oo next nuxt builds/a x.pycs src/a.ts .env out.txt';

test('what builds and tests make again is known by its name', () => {
  const names = listWords(GENERATED).flatMap((name) => [name, `a/${name}`, `${name}/a`]);
  assert.deepEqual(
    names.filter((name) => !isGenerated(name)),
    [],
  );
  assert.deepEqual(listWords(MADE_BY_HAND).filter(isGenerated), []);
});

/** Settings whose value git runs, by git-config(1); `X.y` in the middle is a name. */
const COMMANDS = `
  core.fsmonitor core.askPass core.sshCommand core.gitProxy core.editor core.pager
  core.alternateRefsCommand sequence.editor diff.external interactive.diffFilter
  uploadpack.packObjectsHook gc.recentObjectsHook web.browser instaweb.httpd imap.tunnel
  filter.X.y.clean filter.X.y.smudge filter.X.y.process lfs.customtransfer.X.y.path
  lfs.extension.X.clean lfs.extension.X.smudge diff.X.y.command diff.X.y.textconv merge.X.y.driver
  mergetool.X.cmd mergetool.X.path difftool.X.cmd difftool.X.path browser.X.cmd browser.X.path
  man.X.cmd man.X.path guitool.X.cmd guitool.X.path gpg.program gpg.ssh.program
  gpg.ssh.defaultKeyCommand credential.helper credential.https://X.y.helper pager.log
  remote.X.y.uploadpack remote.X.y.receivepack remote.X.y.vcs submodule.X.y.update
  trailer.X.command trailer.X.cmd tar.X.y.command hook.command hook.X.command sendemail.smtpServer
  sendemail.X.sendmailCmd`;
const NO_COMMANDS = `
  core.hooksPath core.bare user.name filter.clean diff.x diff.X.binary merge.driver merge.X.name
  mergetool.cmd man.viewer gpg.format remote.uploadpack remote.X.fetch submodule.X.path tar.umask
  trailer.X.key branch.X.merge xcore.editor core.editorx pager.a.b sendemail.a.b-c hook.X.event`;
/** `KEY=VALUE>COMMAND`. */
const RUN = `
  alias.x=!a b>a b|alias.X.y.command=!a>a|remote.X.url=ext::sh -c a>sh -c a|remote.X.pushUrl=ab::c>c
  core.fsmonitor=truex>truex|submodule.X.update=!rm>rm|core.pager=7z>7z|core.editor=a::!b>!b
  core.pager=a !b>a !b`;
const RUN_NOTHING = `
  alias.x=log -1|alias.X.y.command=a!|remote.X.url=https://a|remote.X.pushUrl=a:b
  core.fsmonitor=true
  core.fsmonitor=FALSE|pager.log=yes|pager.log=no|pager.log=on|pager.log=off|pager.log=10|pager.log=
  submodule.X.update=none|submodule.X.update=merge|submodule.X.update=rebase
  submodule.X.update=checkout`;

test('a setting of git whose value is a command is known', () => {
  const commandOf = (name: string, value: string) => settingCommand(settingKey(name), value);
  assert.deepEqual(
    listWords(COMMANDS).filter((name) => commandOf(name, 'a b') !== 'a b'),
    [],
  );
  assert.deepEqual(
    listWords(NO_COMMANDS).filter((name) => commandOf(name, '!a::b') !== null),
    [],
  );
  const rows = [RUN, RUN_NOTHING].flatMap((table) => table.trim().split(/\||\n/));
  const wrong = rows.filter((row) => {
    const [, name = '', value = '', expected = null] =
      /^([^=]*)=([^>]*)(?:>(.*))?$/.exec(row.trim()) ?? [];
    return commandOf(name, value) !== expected;
  });
  assert.deepEqual(wrong, []);
});
