/**
 * Options of programs: which further words of a command a rule that allows it covers.
 *
 * `npm test` as a rule also allows `npm test --silent`, but not `npm test --prefix /elsewhere`.
 * From top to bottom: `uncoveredWord`, the question; risky words, with which a program that seems
 * read-only runs other programs or writes files; harmless options, which do neither; and
 * `onlyReads`, which asks both lists, and losses.ts, whether a text only reads. An option in
 * neither list counts as harmless only inside the sandbox.
 */

import type { ParsedCommand, ShellFacts } from './judged-call.js';
import { fileLossesIn, gitCommand } from './losses.js';
import { listWords, programName, wordSet } from './paths.js';
import { gitAccess } from './repository-access.js';

/** The words of a command; null is a word that is known only when it runs. */
type Words = ParsedCommand['words'];

/**
 * The first word that an allowing rule with these words does not cover; null if it covers all.
 * `fenced`: the command stays in the sandbox, and only risky words count. `widened`: the rule lets
 * it reach more than the sandbox does, so an option must be known to be harmless.
 */
export const uncoveredWord = (
  words: Words,
  rule: readonly string[],
  reach: 'fenced' | 'widened',
): string | null =>
  riskyWord(words, rule.length) ?? (reach === 'widened' ? unknownOption(words, rule) : null);

// ---- Risky words: a rule that allows the program does not allow them unless it names them ----

/**
 * The first risky word after the words of the rule; null if there is none. A word that is known
 * only when it runs is judged elsewhere: no allowing rule covers it.
 */
const riskyWord = (words: Words, ruleLength: number): string | null => {
  const name = programName(words[0] ?? '');
  const risk = Object.hasOwn(risks, name) ? risks[name] : undefined;
  for (const [index, word] of words.entries()) {
    if (index < Math.max(ruleLength, 1) || word === null) continue;
    if (risk?.(word, words, index)) return word;
  }
  return KNOWN_WHOLE.has(name) ? writingWord(words, ruleLength) : null;
};

/** The first word after those of the rule with which the command writes a file (losses.ts). */
const writingWord = (words: Words, ruleLength: number): string | null => {
  const writes = (end: number): boolean =>
    fileLossesIn({ words: words.slice(0, end), assignments: [], writes: [], program: null })
      .length > 0;
  if (!writes(words.length) || writes(ruleLength)) return null;
  const at = words.findIndex((_, index) => index >= ruleLength && writes(index + 1));
  return words[at] ?? null;
};

/** Options of `sed` that neither run nor write anything. */
const OPTION =
  /^(-[nErsuz]+|-e|--(quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug|expression))$/;
/** The lines to which a command of `sed` applies. */
const ADDRESS = /^(\d+|\$|\/[^/\n\\]*\/)?(,(\d+|\$|\/[^/\n\\]*\/))?/;

/**
 * Whether a script can only print, delete, quit and replace. `s///e` runs its result, `w` writes
 * files.
 */
const isHarmlessScript = (script: string): boolean => {
  const command = script.replace(ADDRESS, '');
  if (/^[pdq]$/.test(command)) return true;
  const delimiter = /^s([/|#,:@])/.exec(command)?.[1];
  if (delimiter === undefined || /[\n;{}]/.test(command)) return false;
  const parts = command.replace(/\\./gs, '').split(delimiter);
  return parts.length === 4 && /^[gpiI\d]*$/.test(parts[3] ?? '');
};

/** Whether a word of `sed` may run a program or write a file. */
const isRiskyInSed = (word: string, words: Words, index: number): boolean => {
  const isOption = (one: string | null | undefined): boolean => one?.startsWith('-') === true;
  if (isOption(word)) return !OPTION.test(word);
  const before = words[index - 1];
  if (before === '-e' || before === '--expression') return !isHarmlessScript(word);
  const hasScriptOption = words.some((one) => one === '-e' || one === '--expression');
  // without such an option the first operand is the script
  const isFirstOperand = words.findIndex((one, at) => at > 0 && !isOption(one)) === index;
  return !hasScriptOption && isFirstOperand && !isHarmlessScript(word);
};

/** Whether a word of a command is risky; `index`: its place among the words. */
type Risk = (word: string, words: Words, index: number) => boolean;

/**
 * Matches also `--out` and `--out=x` for `--output`: GNU programs accept unambiguous abbreviations.
 */
const isLong = (word: string, option: string): boolean => {
  const name = word.split('=')[0] ?? word;
  return name === option || (name.length > 2 && option.startsWith(name));
};

/** Matches options by name; `-x` also as `-abx` and `-xVALUE`. */
const options = (...names: readonly string[]): Risk => {
  const long = names.filter((name) => name.startsWith('--'));
  const letters = names.filter((name) => /^-[^-]$/.test(name)).map((name) => name.slice(1));
  const whole = new Set(names.filter((name) => /^-[^-]{2,}$/.test(name)));
  return (word) => {
    if (word.startsWith('--')) return long.some((option) => isLong(word, option));
    if (!word.startsWith('-')) return false;
    return (
      whole.has(word.split('=')[0] ?? word) ||
      letters.some((letter) => word.slice(1).includes(letter))
    );
  };
};

/** Matches words by a pattern, or by `also`. */
const texts =
  (pattern: RegExp, also: Risk = () => false): Risk =>
  (word, words, index) =>
    pattern.test(word) || also(word, words, index);

/** Every word from this place on is risky. */
const anyFrom =
  (from: number): Risk =>
  (_, __, index) =>
    index >= from;

const gitOptions = options(
  '-c',
  '-O',
  '-x',
  '--output',
  '--ext-diff',
  '--textconv',
  '--open-files-in-pager',
  '--exec',
  '--exec-path',
  '--config-env',
  '--upload-pack',
  '--receive-pack',
  '--no-index',
  '--template',
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--paginate',
  '--edit',
);
/** Words of git behind which any program may stand, by its subcommand. */
const GIT_RUNS: Readonly<Record<string, readonly string[]>> = {
  submodule: ['foreach'],
  bisect: ['run', 'visualize', 'view'],
  clone: ['-u'],
  difftool: ['-x', '-t', '--tool'],
  mergetool: ['-t', '--tool'],
  'filter-branch': [
    '--tree-filter',
    '--index-filter',
    '--msg-filter',
    '--env-filter',
    '--commit-filter',
  ],
};
const git: Risk = (word, words, index) =>
  gitOptions(word, words, index) ||
  Object.entries(GIT_RUNS).some(
    ([subcommand, runs]) =>
      words.indexOf(subcommand) > 0 &&
      runs.some((one) => (/^-[a-z]$/.test(one) ? word.startsWith(one) : word === one)),
  );
// The words of several programs are long, or alike: they have names here.
const compilers = texts(/^@/, options('-wrapper', '-specs', '-fplugin', '-B', '-Xclang', '-load'));
const jest = options(
  '-c',
  '--config',
  '--globalSetup',
  '--globalTeardown',
  '--setupFiles',
  '--setupFilesAfterEnv',
  '--runner',
  '--testRunner',
  '--reporters',
  '--reporter',
  '--transform',
  '--resolver',
  '--rootDir',
  '--root',
  '--dir',
  '--testEnvironment',
  '--outputFile',
  '--coverageDirectory',
  '--cacheDirectory',
  '--prettierPath',
  '-u',
  '--update',
);
const database = texts(
  /\\|\b(program|system|pager|tee|source|outfile|dumpfile|load_file)\b/i,
  options(
    '-f',
    '-o',
    '-L',
    '--file',
    '--output',
    '--log-file',
    '--pager',
    '--tee',
    '--init-command',
    '--plugin-dir',
    '--defaults-file',
    '--defaults-extra-file',
  ),
);
const node = options(
  '-e',
  '-p',
  '-r',
  '--eval',
  '--print',
  '--require',
  '--import',
  '--loader',
  '--experimental-loader',
  '--env-file',
  '--run',
  '--build-snapshot',
  '--openssl-config',
);
const packages = options(
  '-C',
  '--prefix',
  '--script-shell',
  '--shell',
  '--node-options',
  '--userconfig',
  '--globalconfig',
  '--cwd',
  '--dir',
  '--git',
  '--scripts-prepend-node-path',
  '--ignore-scripts',
);
const editors = texts(/^[+-]/);

/** What is risky, by the name of the program. */
const risks: Readonly<Record<string, Risk>> = {
  find: options(
    '-delete',
    '-exec',
    '-execdir',
    '-ok',
    '-okdir',
    '-fprint',
    '-fprint0',
    '-fprintf',
    '-fls',
  ),
  fd: options('-x', '-X', '--exec', '--exec-batch'),
  fdfind: options('-x', '-X', '--exec', '--exec-batch'),
  sed: isRiskyInSed,
  gsed: isRiskyInSed,
  awk: texts(/system|getline|[|>]|^-[fiEl]|^--(file|include|exec|load)|@/),
  gawk: texts(/system|getline|[|>]|^-[fiEl]|^--(file|include|exec|load)|@/),
  mawk: texts(/system|getline|[|>]|^-[fWE]/),
  rg: options('--pre', '--hostname-bin', '--search-zip', '-z'),
  ag: options('--pager', '-z'),
  ack: options('--pager', '--ackrc'),
  sort: options('-T', '--compress-program', '--files0-from', '--temporary-directory'),
  git,
  tar: texts(
    /^[a-zA-Z]*[IF]/,
    options(
      '-I',
      '-F',
      '--to-command',
      '--checkpoint-action',
      '--use-compress-program',
      '--rsh-command',
      '--rmt-command',
      '--info-script',
      '--new-volume-script',
      '--absolute-names',
      '-P',
      '-C',
      '--directory',
    ),
  ),
  bsdtar: options('--use-compress-program'),
  zip: options('-T', '--test', '--unzip-command', '-TT'),
  curl: options(
    '-o',
    '-O',
    '-K',
    '-T',
    '-F',
    '-D',
    '-c',
    '-J',
    '-d',
    '--output',
    '--remote-name',
    '--config',
    '--upload-file',
    '--form',
    '--data',
    '--data-binary',
    '--dump-header',
    '--cookie-jar',
    '--trace',
    '--trace-ascii',
    '--libcurl',
    '--stderr',
    '--engine',
    '--proxy',
    '--output-dir',
    '--remote-header-name',
    '--etag-save',
    '--hsts',
    '--alt-svc',
  ),
  wget: options(
    '-e',
    '-O',
    '-P',
    '-o',
    '-a',
    '-i',
    '--execute',
    '--output-document',
    '--directory-prefix',
    '--use-askpass',
    '--config',
    '--post-file',
    '--body-file',
    '--input-file',
  ),
  man: options('-P', '-H', '-C', '--pager', '--html', '--config-file'),
  less: anyFrom(1),
  more: anyFrom(1),
  vi: editors,
  vim: editors,
  view: editors,
  nvim: editors,
  ex: anyFrom(0),
  ed: anyFrom(0),
  emacs: anyFrom(1),
  nano: editors,
  ssh: options('-o', '-F', '-W', '-L', '-R', '-D', '-J', '-S', '-E', '-I', '-w'),
  scp: options('-o', '-F', '-S', '-J'),
  sftp: options('-o', '-F', '-S', '-b', '-J', '-D'),
  rsync: options('-e', '--rsh', '--rsync-path', '--files-from', '--log-file', '--write-batch'),
  tee: (word) => word !== '/dev/null' && !/^-[aip]+$/.test(word),
  date: options('-s', '-f', '--set', '--file'),
  npm: packages,
  pnpm: packages,
  yarn: packages,
  bun: packages,
  make: texts(
    /^[A-Za-z_.]\w*[:+?!]?=/,
    options(
      '-f',
      '-C',
      '-I',
      '-E',
      '--file',
      '--makefile',
      '--directory',
      '--eval',
      '--include-dir',
    ),
  ),
  cargo: options('--config', '--manifest-path', '-C', '-Z', '--target-dir'),
  go: options(
    '-exec',
    '-toolexec',
    '-overlay',
    '-modfile',
    '-o',
    '-C',
    '-vettool',
    '-ldflags',
    '-gcflags',
    '-asmflags',
    '-compiler',
    '-pkgdir',
  ),
  node,
  deno: (word, words, index) =>
    ['eval', 'run', 'repl', 'task', 'install', 'compile', 'serve'].includes(word) ||
    options(
      '-A',
      '--allow-all',
      '--allow-run',
      '--allow-write',
      '--allow-ffi',
      '--config',
      '--import-map',
    )(word, words, index),
  tsc: options(
    '--outDir',
    '--outFile',
    '-p',
    '--project',
    '--build',
    '-b',
    '--tsBuildInfoFile',
    '--declarationDir',
    '--generateTrace',
  ),
  eslint: options(
    '-c',
    '-o',
    '--config',
    '--fix',
    '--rulesdir',
    '--plugin',
    '--parser',
    '--resolve-plugins-relative-to',
    '--output-file',
    '--init',
    '--format',
    '-f',
  ),
  prettier: options('-w', '--write', '--plugin', '--config', '--plugin-search-dir'),
  pytest: options(
    '-p',
    '-c',
    '-o',
    '--rootdir',
    '--confcutdir',
    '--override-ini',
    '--basetemp',
    '--junitxml',
    '--junit-xml',
  ),
  gcc: compilers,
  'g++': compilers,
  cc: compilers,
  'c++': compilers,
  clang: compilers,
  'clang++': compilers,
  sqlite3: texts(/^\s*\.|\n\s*\.|writefile|load_extension|\bedit\s*\(/i, options('-cmd', '-init')),
  psql: database,
  mysql: database,
  mariadb: database,
  tcpdump: options('-z', '-w', '-Z', '-F'),
  bat: options('--pager', '--config-file'),
  batcat: options('--pager', '--config-file'),
  fzf: options('--preview', '--bind', '--listen', '--history'),
  jest,
  vitest: jest,
  mocha: options(
    '-r',
    '--require',
    '--config',
    '--opts',
    '--ui',
    '--reporter',
    '-R',
    '-u',
    '--import',
    '--loader',
  ),
  mypy: options(
    '--python-executable',
    '--config-file',
    '--cache-dir',
    '--custom-typeshed-dir',
    '--junit-xml',
    '--install-types',
  ),
  hg: options(
    '--config',
    '--cwd',
    '-R',
    '--repository',
    '--tool',
    '-t',
    '--ssh',
    '-e',
    '--remotecmd',
    '--output',
    '-o',
  ),
  apt: options('-o', '-c', '--option', '--config-file'),
  'apt-get': options('-o', '-c', '--option', '--config-file'),
  just: options(
    '--shell',
    '--shell-arg',
    '--justfile',
    '-f',
    '--working-directory',
    '-d',
    '--set',
    '--command',
    '-c',
    '--chooser',
    '--choose',
    '--edit',
    '-e',
  ),
  gradle: options(
    '-I',
    '--init-script',
    '-b',
    '--build-file',
    '-c',
    '--settings-file',
    '-p',
    '--project-dir',
    '-D',
    '-P',
    '-g',
    '--gradle-user-home',
    '--include-build',
  ),
  ninja: options('-f', '-C', '-t'),
  'ssh-keygen': options('-D', '-f', '-w', '-P'),
  unzip: options('-d', '-o'),
  gofmt: options('-w', '-cpuprofile'),
  tree: options('-o', '-R'),
  file: options('-C', '-m', '--compile', '--magic-file'),
  diff: options('-l', '--paginate'),
  split: options('--filter'),
  xxd: options('-r', '-revert'),
  yq: options('-i', '--inplace', '--in-place', '-s', '--split-exp'),
  jq: options('-f', '-L', '--from-file', '--library-path'),
  openssl: options('-engine', '-out', '-config'),
  gdb: options('-x', '-e', '-ex', '-iex', '-ix'),
  docker: options(
    '-v',
    '--volume',
    '--mount',
    '--privileged',
    '--device',
    '--pid',
    '--network',
    '--cap-add',
    '--security-opt',
    '--userns',
    '-H',
    '--host',
    '--config',
    '--entrypoint',
  ),
  crontab: anyFrom(1),
  xargs: anyFrom(1),
  env: anyFrom(1),
};

// ---- Harmless options ----

/** Programs of which `risks` knows every risky word: all their other options are harmless. */
const KNOWN_WHOLE = wordSet(`
  ls cat head tail wc grep egrep fgrep rg stat file du df pwd date basename dirname realpath readlink which uname
  whoami id ps pgrep diff cmp comm cut tr nl column sort uniq find fd fdfind sed jq md5sum sha1sum sha256sum cksum od
  hexdump strings tac rev seq shuf xxd sleep true false test printf echo nproc uptime free tree fold fmt paste join expand
  unexpand base64 b2sum sha224sum sha384sum sha512sum sum zcat`);

/** Options of git that show differences, or choose and order commits. */
const SHOWS_CHANGES =
  '-p -u -s -w -b -a -z -M -U -S -G -W --patch --no-patch --unified --stat --numstat --shortstat ' +
  '--dirstat --summary --compact-summary --name-only --name-status --raw --minimal --patience ' +
  '--histogram --diff-algorithm --word-diff --word-diff-regex --color-words --color --no-color ' +
  '--no-ext-diff --no-textconv --no-renames --find-renames --find-copies --ignore-space-change ' +
  '--ignore-all-space --ignore-blank-lines --ignore-space-at-eol --check --full-index --abbrev ' +
  '--text --function-context --inter-hunk-context --diff-filter --pickaxe-regex --relative ' +
  '--submodule --ignore-submodules --no-prefix';
const CHOOSES_COMMITS =
  '-n -i -E -F -1 -g --oneline --graph --all --decorate --no-decorate --max-count --skip --since ' +
  '--until --after --before --author --committer --grep --all-match --invert-grep --format ' +
  '--pretty --reverse --no-merges --merges --first-parent --abbrev-commit --follow --date ' +
  '--branches --tags --remotes --topo-order --date-order --left-right --cherry-pick --boundary ' +
  '--full-history --parents --children --count --no-walk --walk-reflogs --not';

/**
 * Harmless options by program, or by program and subcommand. `-x` also within a cluster of such
 * letters.
 */
const HARMLESS: Readonly<Record<string, ReadonlySet<string>>> = {
  'git status': wordSet(
    '-s -b -u -uno -uall --short --branch --porcelain --long --ignored --untracked-files',
  ),
  'git log': wordSet(`-L ${CHOOSES_COMMITS} ${SHOWS_CHANGES}`),
  'git diff': wordSet(`--cached --staged --merge-base --quiet --exit-code ${SHOWS_CHANGES}`),
  'git show': wordSet(`${CHOOSES_COMMITS} ${SHOWS_CHANGES}`),
  'git rev-list': wordSet(`--objects --disk-usage ${CHOOSES_COMMITS}`),
  'git shortlog': wordSet(`-s -e --summary --numbered --email ${CHOOSES_COMMITS}`),
  'git reflog': wordSet(`${CHOOSES_COMMITS} ${SHOWS_CHANGES}`),
  'git stash': wordSet(SHOWS_CHANGES),
  'git diff-tree': wordSet(`-r -t --root --no-commit-id ${SHOWS_CHANGES}`),
  'git blame': wordSet('-L -w -s -l -t -e -M -C -p --porcelain --line-porcelain --date --abbrev'),
  'git grep': wordSet(
    '-n -i -l -L -c -w -v -h -H -E -F -P -G -e -A -B -C -W -q -o -r -a -I --line-number ' +
      '--ignore-case --files-with-matches --count --cached --untracked --heading --break --and ' +
      '--or --not --all-match --column --no-color --color --max-depth --show-function',
  ),
  'git ls-files': wordSet(
    '-c -d -m -o -i -s -u -k -z -t -v -x -X --cached --deleted --modified --others --ignored ' +
      '--stage --unmerged --killed --exclude-standard --exclude --full-name --error-unmatch --eol',
  ),
  'git ls-tree': wordSet('-r -d -t -l -z --name-only --long --full-name --full-tree --abbrev'),
  'git rev-parse': wordSet(
    '-q --verify --quiet --short --abbrev-ref --symbolic --symbolic-full-name --show-toplevel ' +
      '--show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --all --branches ' +
      '--tags --remotes --is-inside-work-tree --is-inside-git-dir --is-bare-repository',
  ),
  'git cat-file': wordSet('-p -t -s -e'),
  'git describe': wordSet('--tags --all --always --long --abbrev --dirty --match --exact-match'),
  'git merge-base': wordSet('-a --all --is-ancestor --fork-point --octopus --independent'),
  'git for-each-ref': wordSet(
    '--format --sort --count --points-at --merged --no-merged --contains',
  ),
  'git show-ref': wordSet('-s -d -q --head --heads --tags --hash --verify --abbrev'),
  'git name-rev': wordSet('--tags --refs --name-only --always'),
  'git remote': wordSet('-v --verbose'),
  'git worktree': wordSet('--porcelain -v'),
  'git tag': wordSet('-l -n --list --contains --merged --no-merged --points-at --sort --format'),
  'git check-ignore': wordSet('-v -q -n --verbose --quiet --non-matching --no-index'),
  'git count-objects': wordSet('-v -H --verbose --human-readable'),
  'git branch': wordSet('-a -r -v -vv --list --all --remotes --show-current --merged --no-merged'),
  'git add': wordSet('-A -u -v --all --update --verbose'),
  'git commit': wordSet(
    '-m -a -s -v -q --message --all --signoff --quiet --verbose --amend --no-edit --allow-empty',
  ),
  'git fetch': wordSet(
    '-p -t -v -q -f --all --prune --tags --no-tags --depth --unshallow --verbose --quiet ' +
      '--force --dry-run --progress',
  ),
  'git pull': wordSet(
    '-r -v -q --rebase --ff-only --no-rebase --tags --prune --autostash --verbose --quiet --depth',
  ),
  'git push': wordSet(
    '-u -v -q -n --set-upstream --tags --follow-tags --dry-run --verbose --quiet --all',
  ),
  'git clone': wordSet(
    '-b -q -v --branch --depth --single-branch --no-single-branch --no-tags --no-checkout ' +
      '--quiet --verbose --progress --bare',
  ),
  'git ls-remote': wordSet('-h -t -q --heads --tags --refs --quiet --symref'),
  npm: wordSet(
    '-D -E -P -O -f --save --save-dev --save-exact --save-optional --save-peer --no-save ' +
      '--legacy-peer-deps --force --no-audit --no-fund --audit --fund --prefer-offline ' +
      '--prefer-online --offline --omit --include --silent --verbose --loglevel --json --long ' +
      '--depth --production --dry-run --package-lock-only --if-present --workspaces',
  ),
  pnpm: wordSet(
    '-D -E -P -O -r --save-dev --save-exact --save-prod --save-optional --frozen-lockfile ' +
      '--no-frozen-lockfile --prefer-offline --offline --prod --dev --silent --recursive ' +
      '--lockfile-only --json',
  ),
  yarn: wordSet(
    '-D -E -P -O --dev --exact --peer --optional --frozen-lockfile --immutable --production ' +
      '--silent --offline --check-cache --json',
  ),
  bun: wordSet(
    '-d -D -E --dev --exact --optional --frozen-lockfile --production --no-save --silent --verbose',
  ),
  pip: wordSet(
    '-U -q -v -r --upgrade --quiet --verbose --no-cache-dir --no-deps --pre --requirement ' +
      '--user --disable-pip-version-check --no-input --break-system-packages --format ' +
      '--outdated',
  ),
  uv: wordSet(
    '-q -v --upgrade --quiet --verbose --dev --frozen --locked --no-cache --offline --group ' +
      '--extra --all-extras',
  ),
  poetry: wordSet(
    '-q -v -n -D --quiet --verbose --no-interaction --dev --group --with --without --no-root ' +
      '--sync --dry-run --all-extras',
  ),
  cargo: wordSet(
    '-q -v -p -r -F --release --all --workspace --features --all-features ' +
      '--no-default-features --all-targets --locked --offline --frozen --quiet --verbose ' +
      '--package --bin --lib --tests --examples --benches --example --test --no-run --jobs -j',
  ),
  go: wordSet(
    '-v -u -t -x -n -race -short -count -run -bench -benchmem -timeout -cover -json ' +
      '-failfast -parallel -tags -mod -d',
  ),
  make: wordSet(
    '-j -k -s -B -n -i --jobs --keep-going --silent --always-make --dry-run --no-print-directory',
  ),
  pytest: wordSet(
    '-q -v -vv -x -s -k -m -l --quiet --verbose --exitfirst --lf --ff --tb --maxfail ' +
      '--durations --no-header --collect-only --co',
  ),
  'docker build': wordSet('-t -q --tag --quiet --no-cache --pull --progress --platform --target'),
  'docker ps': wordSet(
    '-a -q -n -l -s --all --quiet --no-trunc --filter --format --last --latest --size',
  ),
  'docker logs': wordSet('-f -t -n --follow --timestamps --tail --since --until --details'),
  'docker images': wordSet('-a -q --all --quiet --no-trunc --filter --format --digests'),
  'docker compose': wordSet(
    '-d -q --detach --build --no-deps --force-recreate --remove-orphans --wait --quiet-pull ' +
      '--follow --tail --all --quiet',
  ),
  'docker pull': wordSet('-a -q --all-tags --quiet --platform'),
  gh: wordSet(
    '-L -R -s -l -t -b -B -H -q -a --limit --repo --state --label --title --body --base ' +
      '--head --json --jq --author --assignee --draft --fill --comments --name-only --log ' +
      '--log-failed --search',
  ),
  curl: wordSet(
    '-s -S -L -f -I -i -v -H -A -X -m -4 -6 --silent --show-error --location --fail --head ' +
      '--include --verbose --header --user-agent --request --max-time --connect-timeout ' +
      '--retry --compressed --http1.1 --http2',
  ),
  wget: wordSet(
    '-q -nv -c -S --quiet --no-verbose --continue --spider --timeout --tries --server-response',
  ),
  apt: wordSet('-y -q --yes --quiet --no-install-recommends --only-upgrade'),
  'apt-get': wordSet('-y -q --yes --quiet --no-install-recommends --only-upgrade'),
  brew: wordSet('-q -v --quiet --verbose --cask --formula'),
  kubectl: wordSet(
    '-n -A -o -l -w -f --namespace --all-namespaces --output --selector --watch --context ' +
      '--tail --since --follow --previous',
  ),
  tsc: wordSet('--noEmit --pretty --strict --listFiles --version'),
  eslint: wordSet('--quiet --max-warnings --ext --no-color --color'),
  prettier: wordSet('--check -c -l --list-different'),
  ruff: wordSet('-q -v --quiet --verbose --select --ignore'),
  mypy: wordSet('-p -m --strict --pretty --no-color-output --show-error-codes --package --module'),
};
/** Programs that take the options of another one. */
const SAME: Readonly<Record<string, string>> = {
  pip3: 'pip',
  python3: 'python',
  'docker-compose': 'docker compose',
};

/** The harmless options of a command, if its program is in the table. */
const harmlessOptions = (words: Words): ReadonlySet<string> | undefined => {
  const plain = programName(words[0] ?? '');
  const name = Object.hasOwn(SAME, plain) ? (SAME[plain] ?? plain) : plain;
  const both = `${name} ${words[1] ?? ''}`;
  if (Object.hasOwn(HARMLESS, both)) return HARMLESS[both];
  return Object.hasOwn(HARMLESS, name) ? HARMLESS[name] : undefined;
};

const isHarmless = (word: string, harmless: ReadonlySet<string>): boolean =>
  harmless.has(word) ||
  harmless.has(word.split('=')[0] ?? word) ||
  (/^-[a-zA-Z]\d+$/.test(word) && harmless.has(word.slice(0, 2))) ||
  (/^-\d+$/.test(word) && harmless.has('-1')) ||
  (/^-[a-zA-Z]{2,}$/.test(word) &&
    [...word.slice(1)].every((letter) => harmless.has(`-${letter}`)));

/**
 * The first option that is not known to be harmless and that the rule does not name; null if there
 * is none.
 */
const unknownOption = (words: Words, rule: readonly string[]): string | null => {
  if (KNOWN_WHOLE.has(programName(words[0] ?? ''))) return null;
  const harmless = harmlessOptions(words) ?? new Set();
  const option = words
    .slice(rule.length)
    .find(
      (word) =>
        word !== null && /^[-+]./.test(word) && !rule.includes(word) && !isHarmless(word, harmless),
    );
  return option ?? null;
};

// ---- Commands that only read ----

/** Devices to which a command may write: nothing is lost there. */
export const DISCARDS = new Set(['/dev/null', '/dev/stdout', '/dev/stderr']);

/** Builtins of bash that change neither a file nor the meaning of a later word. */
const READING_BUILTINS = wordSet('cd echo printf pwd true false : test [ type exit');

/** Folders in which every command may put a program. */
const OPEN_FOLDERS = listWords('/tmp /var/tmp /dev/shm');

/** Whether a program lies in a folder to which commands can write. */
export const isOpenPlace = (program: string, workspace: string): boolean => {
  for (const folder of [workspace, ...OPEN_FOLDERS])
    if (program.startsWith(`${folder}/`)) return true;
  return false;
};

/** Options of git itself, before its command, with which it still reads. */
const GIT_ITSELF = wordSet('-C -P --no-pager --no-optional-locks --literal-pathspecs');

/** Whether git only reads: each of its options must be known to. */
const gitReads = (words: Words): boolean => {
  const rest = gitCommand(words);
  const end = rest.indexOf('--');
  const before = words.slice(1, words.length - rest.length);
  const known = before.filter((_, at) => before[at - 1] !== '-C');
  const ownWords = ['git', ...rest];
  return (
    known.every((word) => word !== null && GIT_ITSELF.has(word)) &&
    Object.hasOwn(HARMLESS, `git ${rest[0] ?? ''}`) &&
    gitAccess(ownWords) === 'read' &&
    !/^(ls-remote|clone)$/.test(rest[0] ?? '') &&
    unknownOption(end < 0 ? ownWords : ownWords.slice(0, end + 1), ['git']) === null &&
    // the two dashes may be the value of an option, which ends nothing
    (end < 0 || !rest.slice(end + 1).some((word) => word?.startsWith('-')))
  );
};

/** What `awk` is asked to do: only a separator, a variable and a program without an effect. */
const awkReads = (words: Words): boolean =>
  riskyWord(words, 1) === null && words.every((word) => !/^-[^Fv]/.test(word ?? ''));

/** Whether the words of a command, without its redirections, only read. */
const wordsRead = (words: Words): boolean => {
  const name = words[0] ?? '';
  if (name === 'git') return !words.includes(null) && gitReads(words);
  // a word that is known only when it runs may be an option
  const isPlain = !Object.hasOwn(risks, name) || !words.includes(null);
  if (/^[gm]?awk$/.test(name)) return isPlain && awkReads(words);
  return KNOWN_WHOLE.has(name) && isPlain && riskyWord(words, 1) === null;
};

/**
 * Whether a command only reads, by its words. The program must be a bare word that no folder to
 * which commands can write has: a file of the repository may have any name. `workspace`: its real
 * path.
 */
export const reads = (command: ParsedCommand, workspace: string): boolean => {
  const { words, assignments, writes, program } = command;
  const name = words[0] ?? '';
  if (assignments.length > 0 || writes.some((file) => file === null || !DISCARDS.has(file)))
    return false;
  // `printf -v NAME` sets a variable, such as PATH
  if (program === null)
    return READING_BUILTINS.has(name) && (name !== 'printf' || /^[^-]/.test(words[1] ?? '-'));
  return (
    !isOpenPlace(program, workspace) &&
    wordsRead(words) &&
    fileLossesIn({ ...command, writes: [] }).length === 0
  );
};

/**
 * Whether the commands of a text only read, by their words. In the sandbox the kernel keeps that:
 * such a command gets a workspace that is read-only (docs/decisions/0028).
 */
export const onlyReads = (
  { commands, unclear, indirect }: ShellFacts,
  workspace: string,
): boolean =>
  commands.length > 0 &&
  unclear === null &&
  indirect === undefined &&
  commands.every((command) => reads(command, workspace));
