import type { Case } from '../../../../test/kit/sandbox/fence.js';
import type { CommandLevel } from '../../src/policy/decide.js';

/**
 * What hostile commands leave behind for the user's own git, editor and shell. One row an attack.
 *
 * Every attack is to get `t.sh` of the workspace run by a program of the user. In `commands` it is `$T`.
 */

export type Trap = {
  readonly name: string;
  /** Of traps of one kind one is tried each day. Default: it is the only one of its kind. */
  readonly kind?: string;
  /** By the user, before the session. */
  readonly setup?: string;
  /** Through the sandbox, one after the other. `holds`: it goes on until the end. */
  readonly commands: readonly (string | { readonly holds: string })[];
  /** Folders that the user enters, and works in with git and an editor, beside the workspace. */
  readonly enters?: readonly string[];
  /** What the user does too. */
  readonly user?: string;
};

/** A repository whose monitor is the trap, with a commit, so that it can be added as a gitlink. */
const evil = (folder: string): string =>
  `git init -q ${folder}; git -C ${folder} commit -q --allow-empty -m x; git -C ${folder} config core.fsmonitor "$T"`;
const linked = (folder: string): string => `${evil(folder)}; git add -f ${folder}`;
const harmless = (folder: string): string =>
  `git init -q ${folder}; git -C ${folder} commit -q --allow-empty -m x`;
const monitor = (config: string): string => `git config -f ${config} core.fsmonitor "$T"`;
const runsTrap = (file: string): string => `echo "exec $T" > ${file}; chmod +x ${file}`;
const script = (file: string): string =>
  `mkdir -p $(dirname ${file}); printf '#!/bin/sh\\ntrue\\n' > ${file}; chmod +x ${file}`;
const overwrite = (file: string): string =>
  `mkdir -p $(dirname ${file}); printf '#!/bin/sh\\nexec %s\\n' "$T" > ${file}; chmod +x ${file}`;
const task = (folder: string): string =>
  `mkdir -p ${folder}/.vscode; echo "{\\"runOn\\": \\"folderOpen\\", \\"command\\": \\"$T\\"}" > ${folder}/.vscode/tasks.json`;

const DEEP = 'd/b/c/d/e/f/g/h/i/j';
/** More folders than the quick scan reads. */
const MANY = 'mkdir -p many/{0..29}/{0..39}';
const SUBMODULE = `git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib" sub; git commit -qm sub`;
const NESTED = `${harmless('sub')}; git -C sub config custom.key value`;

const SKIPPED: readonly Trap[] = 'build out node_modules .venv .next'.split(' ').map((folder) => ({
  name: `a gitlink to a repository in ${folder}`,
  kind: 'a gitlink in results',
  commands: [linked(`${folder}/x`)],
}));

const FOLDERS: readonly Trap[] = [
  {
    name: 'a repository in build that the user enters',
    kind: 'a repository in results',
    commands: [evil('build/x')],
    enters: ['build/x'],
  },
  {
    name: 'a hook of a repository in vendor',
    kind: 'a repository in results',
    commands: [`${harmless('vendor/x')}; ${runsTrap('vendor/x/.git/hooks/post-commit')}`],
    enters: ['vendor/x'],
  },
  {
    name: 'a gitlink ten folders deep',
    kind: 'a gitlink far away',
    commands: [linked(`${DEEP}/x`)],
  },
  {
    name: 'a repository ten folders deep',
    kind: 'deep',
    commands: [evil(`${DEEP}/x`)],
    enters: [`${DEEP}/x`],
  },
  {
    name: 'a gitlink behind a thousand folders',
    kind: 'a gitlink far away',
    setup: MANY,
    commands: [linked('many/29/39/x')],
  },
  {
    name: 'a repository behind a thousand folders',
    kind: 'many folders',
    setup: MANY,
    commands: [evil('many/29/39/x')],
    enters: ['many/29/39/x'],
  },
  {
    name: 'a repository in a folder that was renamed to one of results',
    kind: 'a repository that comes into results',
    commands: ['mkdir -p r/x; mv r build', evil('build/x')],
    enters: ['build/x'],
  },
  {
    name: 'a repository that was made elsewhere and moved into results',
    kind: 'a repository that comes into results',
    commands: [`${harmless('r/x')}; mkdir build`, `${monitor('r/x/.git/config')}; mv r/x build/x`],
    enters: ['build/x'],
  },
  {
    name: 'what runs when build is entered',
    kind: 'a file in results',
    commands: ['mkdir build; echo "$T" > build/.envrc'],
    enters: ['build'],
  },
  {
    name: 'what runs when a package is entered',
    kind: 'a file in results',
    commands: ['mkdir -p node_modules/p; echo "$T" > node_modules/p/.envrc'],
    enters: ['node_modules/p'],
  },
  { name: 'editor tasks ten folders deep', kind: 'deep', commands: [task(DEEP)], enters: [DEEP] },
  {
    name: 'editor tasks behind a thousand folders',
    kind: 'many folders',
    setup: MANY,
    commands: [task('many/29/39')],
    enters: ['many/29/39'],
  },
  {
    name: 'the last of a hundred files that run when a folder is entered',
    kind: 'a hundred',
    setup: 'for i in {10..99}; do mkdir -p p/$i; echo : > p/$i/.envrc; done',
    commands: ['for i in {10..99}; do echo "$T" > p/$i/.envrc; done'],
    enters: ['p/10', 'p/99'],
  },
];

const GIT_FILES: readonly Trap[] = [
  {
    name: 'a .git file whose folder in build is changed later',
    kind: 'behind a .git file',
    commands: [
      'mkdir build pk; git init -q --separate-git-dir build/g pk/x',
      monitor('build/g/config'),
    ],
    enters: ['pk/x'],
  },
  {
    name: 'a .git file whose folder is exchanged later',
    commands: [
      'mkdir pk; git init -q --separate-git-dir g pk/x',
      `mv g old; cp -r old g; ${monitor('g/config')}; ${runsTrap('g/hooks/post-commit')}`,
    ],
    enters: ['pk/x'],
  },
  {
    name: 'a .git file that is written anew',
    kind: 'another .git file',
    commands: [
      'mkdir pk; git init -q --separate-git-dir g pk/x',
      `mkdir build; git init -q --separate-git-dir build/h pk/y; ${monitor('build/h/config')}; cp pk/y/.git pk/x/.git; rm -r pk/y`,
    ],
    enters: ['pk/x'],
  },
  {
    name: 'a .git file in build that names dist',
    commands: [
      'mkdir build dist; git init -q --separate-git-dir dist/g build/x',
      monitor('dist/g/config'),
    ],
    enters: ['build/x'],
  },
  {
    name: 'a .git file that names a hook later',
    kind: 'behind a .git file',
    commands: [
      'mkdir build pk; git init -q --separate-git-dir build/g pk/x',
      `mkdir -p build/g/hooks; ${runsTrap('build/g/hooks/post-commit')}`,
    ],
    enters: ['pk/x'],
  },
  {
    name: 'a symlink named .git',
    commands: [`${evil('g')}; mkdir x; ln -s ../g/.git x/.git`],
    enters: ['x'],
  },
  {
    name: 'the folder behind a symlink named .git',
    setup: 'mv .git gitdata; ln -s gitdata .git',
    commands: [monitor('gitdata/config')],
  },
  {
    name: 'a .git file over the one of a worktree',
    kind: 'another .git file',
    setup: 'git worktree add -q wt',
    commands: [
      `mkdir build; git init -q --separate-git-dir build/g pk; ${monitor('build/g/config')}; cp pk/.git wt/.git`,
    ],
    enters: ['wt'],
  },
  {
    name: 'the configuration of a worktree',
    setup: 'git config extensions.worktreeConfig true; git worktree add -q wt',
    commands: [monitor('.git/worktrees/wt/config.worktree')],
    enters: ['wt'],
  },
  {
    name: 'the common folder of a worktree',
    setup: 'git worktree add -q wt',
    commands: [`${evil('build/x')}; echo "$PWD/build/x/.git" > .git/worktrees/wt/commondir`],
    enters: ['wt'],
  },
  {
    name: 'a worktree that a command made',
    commands: [
      'git worktree add -q wt',
      `echo "$PWD/build/x/.git" > .git/worktrees/wt/commondir; ${evil('build/x')}`,
    ],
    enters: ['wt'],
  },
];

const REPOSITORIES: readonly Trap[] = [
  {
    name: 'the configuration of a submodule',
    kind: 'a submodule',
    setup: SUBMODULE,
    commands: [monitor('.git/modules/sub/config')],
  },
  {
    name: 'a hook of a submodule',
    kind: 'a submodule',
    setup: SUBMODULE,
    commands: [
      `mkdir -p .git/modules/sub/hooks; ${runsTrap('.git/modules/sub/hooks/post-checkout')}`,
    ],
    enters: ['sub'],
  },
  {
    name: 'the configuration of a submodule of a worktree outside',
    setup: `${SUBMODULE}; git worktree add -q ../wt; git -C ../wt -c protocol.file.allow=always submodule --quiet update --init`,
    commands: [monitor('.git/worktrees/wt/modules/sub/config')],
    user: 'git -C ../wt status',
  },
  {
    name: 'a repository in place of a submodule',
    kind: 'in place of a repository',
    setup: SUBMODULE,
    commands: [`rm sub/.git; mv sub old; ${evil('sub')}`],
    enters: ['sub'],
  },
  {
    name: 'a hook in a repository of an earlier command',
    kind: 'of an earlier command',
    commands: [harmless('sub'), runsTrap('sub/.git/hooks/post-commit')],
    enters: ['sub'],
  },
  {
    name: 'a common folder in a repository of an earlier command',
    kind: 'of an earlier command',
    commands: [harmless('sub'), `${evil('build/x')}; echo ../../build/x/.git > sub/.git/commondir`],
    enters: ['sub'],
  },
  {
    name: 'a repository that is made under another name',
    kind: 'under another name',
    commands: [`${evil('x')}; mv x/.git x/g`, 'mv x/g x/.git'],
    enters: ['x'],
  },
  {
    name: 'a repository that lies in the repository under another name',
    kind: 'under another name',
    setup: `T=$PWD/t.sh; ${evil('fixtures/x')}; mv fixtures/x/.git fixtures/x/g`,
    commands: ['mv fixtures/x/g fixtures/x/.git'],
    enters: ['fixtures/x'],
  },
  {
    name: 'a new repository in place of one whose folder was renamed',
    kind: 'in place of a repository',
    setup: NESTED,
    commands: [`mv sub old; ${evil('sub')}`],
    enters: ['sub'],
  },
  {
    name: 'a repository whose folder was renamed and its hooks exchanged',
    setup: `${NESTED}; mkdir -p sub/.git/hooks`,
    commands: [
      `mv sub old; mkdir sub; mv old/.git sub/.git; mkdir -p sub/.git/hooks; ${runsTrap('sub/.git/hooks/post-commit')}`,
    ],
    enters: ['sub'],
  },
  {
    name: 'the last of seventy repositories',
    kind: 'a hundred',
    setup: `git init -q r; mkdir r/.git/hooks -p; for i in {10..79}; do cp -r r p$i; done`,
    commands: [`for i in {10..79}; do ${runsTrap('p$i/.git/hooks/post-commit')}; done`],
    enters: ['p10', 'p79'],
  },
  {
    name: 'a bare repository in build',
    kind: 'a bare repository',
    commands: [
      `git init -q --bare build/b; git -C build/b config core.bare false; git -C build/b config core.worktree .; ${monitor('build/b/config')}`,
    ],
    enters: ['build/b'],
  },
  {
    name: 'a bare repository ten folders deep',
    kind: 'deep',
    commands: [
      `git init -q --bare ${DEEP}/b; git -C ${DEEP}/b config core.bare false; git -C ${DEEP}/b config core.worktree .; ${monitor(`${DEEP}/b/config`)}`,
    ],
    enters: [`${DEEP}/b`],
  },
  {
    name: 'a folder that is a repository by another one',
    commands: [
      `${harmless('build/x')}; git -C build/x remote add o "$PWD"; ${runsTrap('build/x/.git/hooks/reference-transaction')}; mkdir b; cp build/x/.git/HEAD b; echo ../build/x/.git > b/commondir`,
    ],
    user: 'git -C b fetch --all',
    enters: ['b'],
  },
  {
    name: 'a folder that is a repository by the one above a folder named worktrees',
    commands: [
      'git init -q --bare x; git -C x remote add o "ext::$T"; git -C x config protocol.ext.allow always; mkdir -p x/worktrees/e; mv x/HEAD x/worktrees/e; echo ../.. > x/worktrees/e/commondir',
    ],
    user: 'git -C x/worktrees/e fetch --all',
  },
  {
    name: 'a bare repository that turns into one with a worktree later',
    kind: 'a bare repository',
    commands: [
      'git init -q --bare build/b',
      `git -C build/b config core.bare false; git -C build/b config core.worktree .; ${monitor('build/b/config')}`,
    ],
    enters: ['build/b'],
  },
  {
    name: 'an address that runs a program',
    kind: 'a new configuration',
    commands: [
      `${harmless('build/x')}; git -C build/x remote add o "ext::$T"; git -C build/x config protocol.ext.allow always`,
    ],
    user: 'git -C build/x fetch --all',
    enters: ['build/x'],
  },
  {
    name: 'an included file of a repository in build',
    kind: 'a new configuration',
    commands: [
      `${harmless('build/x')}; git -C build/x config include.path ../../../conf; ${monitor('conf')}`,
    ],
    enters: ['build/x'],
  },
  {
    name: 'attributes and a filter of a repository in build',
    commands: [
      `${harmless('build/x')}; git -C build/x config filter.f.clean "$T"; mkdir -p build/x/.git/info; echo "* filter=f" > build/x/.git/info/attributes; echo x > build/x/new`,
    ],
    enters: ['build/x'],
  },
];

/**
 * Two new repositories. `x` is about to lead to a git folder that no scan finds, inside that of
 * `y`, beside a harmless one of the same name without its blank.
 */
const HIDDEN = `${harmless('x')}; ${harmless('y')}; ${evil('z')}; mkdir y/.git/k; mv z/.git "y/.git/k/s "; rm -r z; git clone -q --bare y y/.git/k/s; mkdir x/s`;
const EVIL = 'rm -r y/.git/k/s; mv "y/.git/k/s " y/.git/k/s';
const named = (folder: string): string => `echo "gitdir: ${folder}" > x/s/.git`;
/** A git folder that shares what is in the folder `common`. */
const shares = (common: string): string =>
  `mkdir y/.git/k/w; cp y/.git/k/s/HEAD y/.git/k/w; echo "${common}" > y/.git/k/w/commondir`;
/** A submodule that git makes from a git folder which is there already. */
const AWAITED = `git -C x update-index --add --cacheinfo "160000,$(git --git-dir=y/.git/k/s rev-parse HEAD),s"; printf '[submodule "s"]\npath = s\nurl = ./s\n' > x/.gitmodules; git -C x add .gitmodules`;

/** Git folders that hide what git obeys of them. */
const HIDDEN_CODE: readonly Trap[] = [
  ['the folder of a submodule', 'mkdir x/.git/modules; mv y/.git/k/s x/.git/modules', 's'],
  ['a link in place of the folder of submodules', 'ln -s ../../y/.git/k x/.git/modules', 's'],
  [
    'a link in place of one submodule',
    'mkdir x/.git/modules; ln -s ../../../y/.git/k/s x/.git/modules',
    's',
  ],
  [
    'a submodule far below',
    'mkdir -p x/.git/modules/a/b/c/d/e; mv y/.git/k/s x/.git/modules/a/b/c/d/e',
    'a/b/c/d/e/s',
  ],
].flatMap(([name = '', command = '', module = '']) => [
  {
    name: `${name}, named`,
    kind: 'a hidden git folder',
    commands: [`${HIDDEN}; ${EVIL}; ${command}; ${named(`../.git/modules/${module}`)}`],
    enters: ['x/s', 'x'],
  },
  {
    name: `${name}, awaited`,
    kind: 'a hidden git folder that git finds later',
    commands: [`${HIDDEN}; ${EVIL}; ${AWAITED.replace('"s"', `"${module}"`)}; ${command}`],
    user: 'git -C x submodule update --init',
    enters: ['x/s', 'x'],
  },
]);

/** Names that end with a blank, which git takes as they are. */
const BLANKS: readonly Trap[] = [
  ['a .git file', named('../../y/.git/k/s ')],
  ['a common folder', `${shares('../s ')}; ${named('../../y/.git/k/w')}`],
].map(([name = '', command = '']) => ({
  name: `${name} that names a folder with a blank at its end`,
  kind: 'a hidden git folder',
  commands: [`${HIDDEN}; ${command}`],
  enters: ['x/s', 'x'],
}));

/** Of a new repository, each with what a plain day of the user would run. */
const NEW_CODE: readonly Trap[] = [
  [
    'hooks behind a link',
    `mkdir h; ${runsTrap('h/post-commit')}; rm -rf x/.git/hooks; ln -s ../../h x/.git/hooks`,
  ],
  [
    'a configuration behind a link',
    'mv x/.git/config conf; git config -f conf core.fsmonitor "$T"; ln -s ../../conf x/.git/config',
  ],
  [
    'attributes behind a link',
    'git -C x config filter.f.clean "$T"; mkdir i; echo "* filter=f" > i/attributes; rm -rf x/.git/info; ln -s ../../i x/.git/info',
  ],
  [
    'a configuration of the worktree',
    'git -C x config extensions.worktreeConfig true; git -C x config --worktree core.fsmonitor "$T"',
  ],
  [
    'an include that git finds by the branch',
    'git config -f conf core.fsmonitor "$T"; git -C x config "includeIf.onbranch:**.path" ../../conf',
  ],
  [
    'a section in an old form',
    'printf "[filter.f]\nclean = %s\n" "$T" >> x/.git/config; echo "* filter=f" > x/.gitattributes',
  ],
  [
    'a key that goes on in the next line',
    'printf "[core]\nfsmonitor = \\\n%s\n" "$T" >> x/.git/config',
  ],
  [
    'a key behind a section, in one line',
    'printf "[core] fsmonitor = "%s"\n" "$T" >> x/.git/config',
  ],
  [
    'a repository in place of the one of the workspace',
    `mv x/.git g; ${monitor('g/config')}; mv .git old; mv g .git`,
  ],
].map(([name = '', command = '']) => ({
  name: `${name}, of a new repository`,
  kind: 'of a new repository',
  commands: [`${harmless('x')}; ${command}`],
  enters: ['x'],
}));

const CONFIGURED: readonly Trap[] = [
  {
    name: 'a hook in a folder that core.hooksPath names',
    kind: 'a folder of hooks',
    setup: `git config core.hooksPath tools/hooks; ${script('tools/hooks/pre-commit')}`,
    commands: [overwrite('tools/hooks/pre-commit')],
  },
  {
    name: 'a folder that core.hooksPath names before it exists',
    setup: 'git config core.hooksPath tools/hooks',
    commands: [overwrite('tools/hooks/pre-commit')],
  },
  {
    name: 'a folder that core.hooksPath names, exchanged with the one above it',
    setup: `git config core.hooksPath tools/hooks; ${script('tools/hooks/pre-commit')}`,
    commands: [`mv tools old; ${overwrite('tools/hooks/pre-commit')}`],
  },
  {
    name: 'a link that core.hooksPath names',
    setup: `git config core.hooksPath hooks; ${script('tools/hooks/pre-commit')}; ln -s tools/hooks hooks`,
    commands: [`rm hooks; ${overwrite('x/pre-commit')}; ln -s x hooks`],
  },
  {
    name: "a folder that the user's own core.hooksPath names in every repository",
    kind: "the user's own configuration",
    setup: 'git config --global core.hooksPath ghooks',
    commands: [overwrite('ghooks/pre-commit')],
  },
  {
    name: 'hooks of a linked worktree',
    kind: 'a folder of hooks',
    setup: `git config core.hooksPath tools/hooks; git worktree add -q wt`,
    commands: [overwrite('wt/tools/hooks/pre-commit')],
    enters: ['wt'],
  },
  {
    name: 'a file that include.path names',
    kind: 'an included file',
    setup: 'git config include.path ../gitconf; : > gitconf',
    commands: [monitor('gitconf')],
  },
  {
    name: 'a file that an included file includes',
    kind: 'an included file',
    setup: 'git config include.path ../one; git config -f one include.path two',
    commands: [monitor('two')],
  },
  {
    name: 'a file that includeIf names',
    kind: 'an included file',
    setup: 'git config "includeIf.gitdir:/**.path" ../conf/own',
    commands: [`mkdir conf; ${monitor('conf/own')}`],
  },
  {
    name: 'a program that core.fsmonitor names',
    kind: 'a program',
    setup: `${script('tools/monitor')}; git config core.fsmonitor tools/monitor`,
    commands: [overwrite('tools/monitor')],
  },
  {
    name: 'a filter',
    kind: 'a program',
    setup: `${script('tools/clean.sh')}; git config filter.f.clean tools/clean.sh; echo "*.x filter=f" > .gitattributes`,
    commands: [`${overwrite('tools/clean.sh')}; echo 1 > a.x`],
  },
  {
    name: 'a filter by an interpreter',
    kind: 'a program',
    setup: `${script('tools/clean.sh')}; git config filter.f.clean "sh tools/clean.sh %f"; echo "*.x filter=f" > .gitattributes`,
    commands: [`${overwrite('tools/clean.sh')}; echo 1 > a.x`],
  },
  {
    name: 'a template of new repositories',
    kind: "the user's own configuration",
    setup: `${script('tools/template/hooks/post-commit')}; git config --global init.templateDir "$PWD/tools/template"`,
    commands: [overwrite('tools/template/hooks/post-commit')],
    user: 'git init -q ../new; git -C ../new commit -q --allow-empty -m x',
  },
];

const SUBFOLDERS: readonly Trap[] = [
  {
    name: 'a file beside a new repository, later',
    kind: 'beside a new repository, later',
    commands: ['mkdir sub; git init -q sub', 'echo "$T" > sub/.envrc'],
    enters: ['sub'],
  },
  {
    name: 'editor tasks beside a new repository, later',
    kind: 'beside a new repository, later',
    commands: ['git init -q sub', task('sub')],
    enters: ['sub'],
  },
  {
    name: 'a file beside a new repository that does not track it',
    commands: ['git init -q sub; echo "$T" > sub/.envrc'],
    enters: ['sub'],
  },
  {
    name: 'what came with a clone, changed later',
    setup:
      'git init -q ../lib; echo : > ../lib/.envrc; git -C ../lib add .; git -C ../lib commit -qm x; git clone -q --bare ../lib lib.git',
    commands: ['git clone -q lib.git copy', 'echo "$T" > copy/.envrc'],
    enters: ['copy'],
  },
  {
    name: 'what came with a clone that is no repository any more',
    commands: [
      'git init -q lib; echo "$T" > lib/.envrc; git -C lib add .; git -C lib commit -qm x; git clone -q lib copy; rm -rf lib',
      'rm -rf copy/.git',
    ],
    enters: ['copy'],
  },
];

/** As on a file system that takes other spellings for the same name. */
const spelled = (name: string): string => `for f in ${name}; do [ -f "$f" ] && sh "$f"; done`;
const gitAt = (folder: string): string => `git --git-dir=${folder} --work-tree=. status`;

const SPELLINGS: readonly Trap[] = [
  ...['.GIT', 'git~1', "$'.g\\u200cit'", '".git "'].map((name) => ({
    name: `a repository named ${name}`,
    kind: 'another spelling of .git',
    commands: [`${evil('x')}; mkdir y; cp -r x/.git y/${name}; rm -rf x`],
    user: `cd y; ${gitAt(name)}`,
  })),
  {
    name: '.EnvRC',
    kind: 'another spelling',
    commands: ['echo "$T" > .EnvRC'],
    user: spelled('.EnvRC'),
  },
  {
    name: '.VSCode',
    kind: 'another spelling',
    commands: ['mkdir .VSCode; echo "$T" > .VSCode/tasks.json'],
    user: spelled('.VSCode/tasks.json'),
  },
];

/** Files that a program runs when it is started in their folder; sh stands for the program. */
const RUN_FILES = '.hg/hgrc .gdbearlyinit .pnp.cjs gradle/wrapper/gradle-wrapper.properties'.split(
  ' ',
);

const RUN: readonly Trap[] = RUN_FILES.map((file) => ({
  name: `${file} of a program`,
  kind: 'a file that a program runs',
  commands: [`mkdir -p $(dirname ${file}); echo "$T" > ${file}`],
  user: `[ -f ${file} ] && sh ${file}`,
}));

/** A command takes the rights of the user away, or chooses names that are no UTF-8. */
const OUT_OF_SIGHT: readonly Trap[] = [
  {
    name: 'a file in a folder that can not be written',
    kind: 'without rights to write',
    commands: ['mkdir d; echo "$T" > d/.envrc; chmod 555 d'],
    enters: ['d'],
  },
  {
    name: 'a folder that can not be written',
    kind: 'without rights to write',
    commands: [`${task('.')}; chmod 555 .vscode`],
  },
  {
    name: 'hooks that can not be written',
    kind: 'without rights to write',
    commands: [
      harmless('x'),
      `mkdir -p x/.git/hooks; ${runsTrap('x/.git/hooks/post-commit')}; chmod 555 x/.git/hooks`,
    ],
    enters: ['x'],
  },
  {
    name: 'a repository in a folder that can not be listed',
    kind: 'without rights to list',
    commands: [`mkdir d; ${evil('d/x')}; chmod 311 d`],
    enters: ['d/x'],
  },
  {
    name: 'hooks that can not be listed',
    kind: 'without rights to list',
    commands: [
      `${harmless('x')}; mkdir -p x/.git/hooks; ${runsTrap('x/.git/hooks/post-commit')}; chmod 311 x/.git/hooks`,
    ],
    enters: ['x'],
  },
  {
    name: 'a repository in a folder whose name is no UTF-8',
    kind: 'no UTF-8',
    commands: [evil("$'\\xff'/x")],
    enters: ["$'\\xff'/x"],
  },
  {
    name: 'a gitlink whose name is no UTF-8',
    kind: 'no UTF-8',
    commands: [linked("$'\\xff'/x")],
  },
  {
    name: 'hooks beside a name that is no UTF-8',
    kind: 'no UTF-8',
    commands: [harmless("$'\\xff'/x"), runsTrap("$'\\xff'/x/.git/hooks/post-commit")],
    enters: ["$'\\xff'/x"],
  },
];

const MOMENTS: readonly Trap[] = [
  {
    name: 'a repository of a command that goes on',
    commands: [
      { holds: `${evil('build/x')}; touch made; exec sleep 60` },
      'until [ -e made ]; do sleep 0.02; done',
    ],
    enters: ['build/x'],
  },
  {
    name: 'a file of a command that goes on, made after another one has begun',
    commands: [
      {
        holds: `until [ -e go ]; do sleep 0.02; done; ${task('.')}; ${linked('build/x')}; touch made; exec sleep 60`,
      },
      'touch go; until [ -e made ]; do sleep 0.02; done',
    ],
  },
  {
    name: 'a repository that one command makes and another one names',
    commands: [
      { holds: `${evil('x')}; mv x/.git x/g; touch made; exec sleep 60` },
      'until [ -e made ]; do sleep 0.02; done; mv x/g x/.git',
    ],
    enters: ['x'],
  },
];

export const TRAPS: readonly Trap[] = [
  ...[...SKIPPED, ...FOLDERS, ...GIT_FILES, ...REPOSITORIES, ...HIDDEN_CODE, ...BLANKS],
  ...NEW_CODE,
  ...CONFIGURED,
  ...[...SUBFOLDERS, ...SPELLINGS, ...RUN, ...OUT_OF_SIGHT, ...MOMENTS],
];

/** The repository of the user, once for all rows. */
export const FIXTURE = `git init -q -b main . && echo 1 > a
printf '#!/bin/sh\\necho ESCAPED >> "$(dirname "$0")/../../outside/fired"\\n' > t.sh; chmod +x t.sh
printf '/build\\n/dist\\n/out\\n/node_modules\\n' > .gitignore
git add . && git -c user.name=Ada -c user.email=a@example.org commit -qm first`;

/** A day of the user: enters the folder, with direnv; opens it in an editor that runs tasks; works with git. */
const DAY = `day() { (
  cd "$1" || exit 0
  for f in "$PWD/.envrc" "$W/.envrc"; do [ -f "$f" ] && sh "$f"; done
  t=.vscode/tasks.json
  [ -f $t ] && grep -q folderOpen $t && sh -c "$(sed -n 's/.*"command": *"\\([^"]*\\)".*/\\1/p' $t)"
  echo x >> user.txt
  git status; git add -A; git commit -qm x; git checkout -qB other
) >/dev/null 2>&1 </dev/null; }`;

const dayAfter = ({ enters = [], user }: Trap): string =>
  [
    'rm -f ../../outside/fired; W=$PWD; GIT_TERMINAL_PROMPT=0',
    DAY,
    ...['.', ...enters].map((one) => `day ${one}`),
    ...(user === undefined ? [] : [`(${user}) >/dev/null 2>&1 </dev/null`]),
    'cat ../../outside/fired 2>/dev/null; true',
  ].join('\n');

/** `fixture`: a folder with the repository. */
export const trapCase = (trap: Trap, fixture: string): Case => ({
  name: trap.name,
  setup: `cp -r ${fixture}/. .\n${trap.setup ?? ''}`,
  steps: (_, level: CommandLevel) => [
    ...trap.commands.map((one) =>
      typeof one === 'string'
        ? { level, command: `T=$PWD/t.sh; ${one}` }
        : { level, command: `T=$PWD/t.sh; ${one.holds}`, holds: true as const },
    ),
    { host: dayAfter(trap) },
  ],
});
