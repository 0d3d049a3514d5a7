/**
 * Ways by which a repository makes git run something. `TRAP` stands for a program that leaves a mark and passes its
 * input on; the repository has a changed file `f.x` that is committed in two versions, and a branch `side`.
 */
export type Trap = {
  readonly name: string;
  /** Sets the trap, in the repository. */
  readonly set: string;
  /** What somebody does who walks into it. */
  readonly control: string;
  /** Set in the environment of both. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Not to be set together with the others: it takes away what they need. */
  readonly alone?: true;
};

const terminal = (command: string): string => `script -qec '${command}' /dev/null`;
const hook = (name: string): string => `cp TRAP .git/hooks/${name}`;

const filters: readonly Trap[] = [
  { name: 'a clean filter', set: 'git config filter.evil.clean TRAP', control: 'git add f.x' },
  {
    name: 'a smudge filter',
    set: 'git config filter.evil.smudge TRAP',
    control: 'git checkout -q -- f.x',
  },
  { name: 'a filter process', set: 'git config filter.evil.process TRAP', control: 'git add f.x' },
  {
    name: 'a filter that is required',
    set: 'git config filter.evil.required true; git config filter.evil.clean TRAP',
    control: 'git add f.x',
  },
  {
    name: 'a filter with dots and an equals sign in its name',
    set: "echo '*.x filter=od.d=name' > .gitattributes; git config 'filter.od.d=name.clean' TRAP",
    control: 'git add f.x',
    alone: true,
  },
  {
    name: 'a filter in an included file',
    set: 'git config include.path ../.included; printf \'[filter "evil"]\\nclean = TRAP\\n\' > .included',
    control: 'git add f.x',
  },
  {
    name: 'a filter in a file that is included on a condition',
    set: 'git config "includeIf.gitdir:$PWD/.path" ../.included; git config "includeIf.onbranch:main.path" ../.included; printf \'[filter "evil"]\\nclean = TRAP\\n\' > .included',
    control: 'git add f.x',
  },
  {
    name: 'a filter by info/attributes',
    alone: true,
    set: "rm .gitattributes; echo 'a filter=evil' > .git/info/attributes; git config filter.evil.clean TRAP",
    control: 'git add a',
  },
  {
    name: 'a filter by core.attributesFile',
    set: "echo 'a filter=evil' > .attributes; git config core.attributesFile .attributes; git config filter.evil.clean TRAP",
    control: 'git add a',
  },
  {
    name: "a filter in the user's configuration",
    set: 'git config --global filter.evil.clean TRAP',
    control: 'git add f.x',
  },
  {
    name: 'a filter in the configuration of a worktree',
    set: 'git config extensions.worktreeConfig true; git config --worktree filter.evil.clean TRAP',
    control: 'git add f.x',
  },
];

const differences: readonly Trap[] = [
  { name: 'an external diff', set: 'git config diff.external TRAP', control: 'git diff' },
  { name: 'a diff driver', set: 'git config diff.evil.command TRAP', control: 'git diff f.x' },
  { name: 'a textconv', set: 'git config diff.evil.textconv TRAP', control: 'git log -p -1 old' },
  {
    name: 'a merge driver',
    set: 'git config merge.evil.driver TRAP',
    control: 'git checkout -q f.x && git merge side',
  },
  {
    name: 'a difftool',
    set: 'git config diff.tool evil; git config difftool.evil.cmd TRAP',
    control: 'git difftool -y f.x',
  },
  {
    name: 'an interactive diff filter',
    set: 'git config interactive.diffFilter TRAP',
    control: `export TERM=xterm; ${terminal('git add -p f.x')}`,
  },
];

const programs: readonly Trap[] = [
  { name: 'fsmonitor', set: 'git config core.fsmonitor TRAP', control: 'git status' },
  { name: 'a pager', set: 'git config core.pager TRAP', control: terminal('git log') },
  {
    name: 'a pager of one command',
    set: 'git config pager.status TRAP',
    control: terminal('git status'),
  },
  { name: 'an editor', set: 'git config core.editor TRAP', control: 'git commit --allow-empty' },
  {
    name: 'a sequence editor',
    set: 'git config sequence.editor TRAP',
    control: 'git reset -q --hard; git rebase -i HEAD~1',
  },
  { name: 'an alias', set: "git config alias.st '!TRAP'", control: 'git st' },
  {
    name: 'a credential helper',
    set: "git config credential.helper '!TRAP'",
    control: 'echo url=https://localhost | GIT_TERMINAL_PROMPT=0 git credential fill',
  },
  {
    name: 'a program that asks for passwords',
    set: 'git config core.askPass TRAP',
    control: 'echo url=https://localhost | git credential fill',
  },
  {
    name: 'an ssh command',
    set: 'git config core.sshCommand TRAP',
    control: 'git fetch ssh://localhost/x',
  },
  {
    name: 'a git proxy',
    set: 'git config core.gitProxy TRAP',
    control: 'git fetch git://localhost/x',
  },
  {
    name: 'a program that signs',
    set: 'git config commit.gpgSign true; git config gpg.program TRAP',
    control: 'git commit --allow-empty -m x',
  },
  {
    name: 'a program that checks signatures',
    set: "git config log.showSignature true; git config gpg.program TRAP; git update-ref HEAD $(git cat-file commit HEAD | sed '0,/^$/s//gpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----\\n\\n/' | git hash-object -t commit -w --stdin)",
    control: 'git log -2',
  },
  {
    name: 'a trailer',
    set: 'git config trailer.see.command TRAP',
    control: 'echo x | git interpret-trailers --trailer see=1',
  },
  {
    name: 'an archiver',
    set: 'git config tar.evil.command TRAP',
    control: 'git archive --format=evil HEAD',
  },
  {
    name: 'a browser',
    set: 'git config web.browser evil; git config browser.evil.cmd TRAP',
    control: 'git web--browse http://localhost',
  },
  {
    name: 'refs of alternates',
    set: 'git clone -q --bare . ../alternate; echo "$(realpath ../alternate)/objects" > .git/objects/info/alternates; git config core.alternateRefsCommand TRAP',
    control: 'git rev-list --alternate-refs --count',
  },
];

const hooks: readonly Trap[] = [
  { name: 'pre-commit', set: hook('pre-commit'), control: 'git commit --allow-empty -m x' },
  {
    name: 'prepare-commit-msg',
    set: hook('prepare-commit-msg'),
    control: 'git commit --allow-empty -m x',
  },
  { name: 'post-commit', set: hook('post-commit'), control: 'git commit --allow-empty -m x' },
  { name: 'reference-transaction', set: hook('reference-transaction'), control: 'git branch new' },
  { name: 'post-index-change', set: hook('post-index-change'), control: 'git add f.x' },
  { name: 'post-checkout', set: hook('post-checkout'), control: 'git checkout -q -b new' },
  {
    name: 'hooks in the tree',
    set: 'mkdir hooks; cp TRAP hooks/reference-transaction; git config core.hooksPath hooks',
    control: 'git branch new',
  },
];

const remotes: readonly Trap[] = [
  {
    name: 'an upload-pack',
    set: 'git config remote.origin.url .; git config remote.origin.uploadpack TRAP',
    control: 'git fetch origin',
  },
  {
    name: 'objects that are fetched when they are needed',
    set: "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url 'ext::TRAP'; git config protocol.ext.allow always; rm .git/objects/$(git rev-parse old:f.x | sed s,..,\\&/,)",
    alone: true,
    control: 'GIT_NO_LAZY_FETCH=0 git cat-file -p old:f.x',
  },
  {
    name: "a submodule's fsmonitor",
    set: 'git init -q sub; (cd sub; git commit -q --allow-empty -m x; git config core.fsmonitor TRAP; echo new > new); git config diff.ignoreSubmodules none; git add sub',
    control: 'git status',
  },
  {
    name: "a submodule's update",
    set: "git init -q sub; (cd sub; git commit -q --allow-empty -m x); printf '[submodule \"sub\"]\\npath = sub\\nurl = ./sub\\n' > .gitmodules; git add sub; (cd sub; git commit -q --allow-empty -m y); git config submodule.sub.url ./sub; git config submodule.sub.update '!TRAP'",
    control: 'git submodule update',
  },
];

const environments: readonly Trap[] = [
  {
    name: 'a diff in the environment',
    set: 'true',
    control: 'git diff',
    environment: { GIT_EXTERNAL_DIFF: 'TRAP' },
  },
  {
    name: 'settings in the environment',
    set: 'true',
    control: 'git status',
    environment: {
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: 'TRAP',
    },
  },
  {
    name: 'parts of git in the environment',
    set: 'mkdir -p ../parts; cp TRAP ../parts/git-trap',
    control: 'git trap',
    environment: { GIT_EXEC_PATH: 'ROOT/parts' },
  },
  {
    name: 'a git in the workspace',
    set: 'mkdir -p node_modules/.bin; cp TRAP node_modules/.bin/git',
    control: 'git status',
    environment: { PATH: `ROOT/work/node_modules/.bin:${process.env.PATH}` },
  },
  {
    name: 'a git in a relative folder',
    set: 'cp TRAP git',
    control: 'git status',
    environment: { PATH: `.:${process.env.PATH}` },
  },
];

/** By the part of git that walks into them. */
export const kindsOfTraps = { filters, differences, programs, hooks, remotes, environments };

export const traps: readonly Trap[] = Object.values(kindsOfTraps).flat();
