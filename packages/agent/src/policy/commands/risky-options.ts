import type { ParsedCommand } from '../../machine/call.js';
import { programName } from './command-patterns.js';
import { isRiskyInSed } from './risky-sed-script.js';

/**
 * Words with which a program that seems read-only runs other programs or writes files. A rule that allows the program
 * does not allow these words unless it names them.
 */

type Words = ParsedCommand['words'];
type Risk = (word: string, words: Words, index: number) => boolean;

/** Matches also `--out` and `--out=x` for `--output`: GNU programs accept unambiguous abbreviations. */
const isLong = (word: string, option: string): boolean => {
  const name = word.split('=')[0] ?? word;
  return name === option || (name.length > 3 && option.startsWith(name));
};

/** Matches options by name; `-x` also as `-abx` and `-xVALUE`. */
const options = (...names: readonly string[]): Risk => {
  const long = names.filter((name) => name.startsWith('--'));
  const letters = names.filter((name) => /^-[^-]$/.test(name)).map((name) => name.slice(1));
  const whole = new Set(names.filter((name) => /^-[^-]{2,}$/.test(name)));
  return (word) => {
    if (word.startsWith('--')) return long.some((option) => isLong(word, option));
    if (!word.startsWith('-')) return false;
    return whole.has(word.split('=')[0] ?? word) || letters.some((letter) => word.slice(1).includes(letter));
  };
};

const texts =
  (pattern: RegExp, also: Risk = () => false): Risk =>
  (word, words, index) =>
    pattern.test(word) || also(word, words, index);

const any =
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
  'filter-branch': ['--tree-filter', '--index-filter', '--msg-filter', '--env-filter', '--commit-filter'],
};
const git: Risk = (word, words, index) =>
  gitOptions(word, words, index) ||
  Object.entries(GIT_RUNS).some(
    ([subcommand, runs]) =>
      words.indexOf(subcommand) > 0 &&
      runs.some((one) => (/^-[a-z]$/.test(one) ? word.startsWith(one) : word === one)),
  );
const compilers = texts(/^@/, options('-wrapper', '-specs', '-fplugin', '-B', '-Xclang', '-load'));
const jest = options(
  ...[
    '-c',
    '--config',
    '--globalSetup',
    '--globalTeardown',
    '--setupFiles',
    '--setupFilesAfterEnv',
    '--runner',
  ],
  ...[
    '--testRunner',
    '--reporters',
    '--reporter',
    '--transform',
    '--resolver',
    '--rootDir',
    '--root',
    '--dir',
  ],
  ...[
    '--testEnvironment',
    '--outputFile',
    '--coverageDirectory',
    '--cacheDirectory',
    '--prettierPath',
    '-u',
    '--update',
  ],
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
const runsOrWrites =
  (...words: readonly string[]): Risk =>
  (word) =>
    words.includes(word);
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

const risks: Readonly<Record<string, Risk>> = {
  find: options('-delete', '-exec', '-execdir', '-ok', '-okdir', '-fprint', '-fprint0', '-fprintf', '-fls'),
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
  sort: options('-o', '-T', '--output', '--compress-program', '--files0-from', '--temporary-directory'),
  uniq: (word, words, index) =>
    words.slice(1, index).some((one) => one !== null && !one.startsWith('-')) && !word.startsWith('-'),
  shuf: options('-o', '--output'),
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
  less: any(1),
  more: any(1),
  vi: editors,
  vim: editors,
  view: editors,
  nvim: editors,
  ex: any(0),
  ed: any(0),
  emacs: any(1),
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
    options('-f', '-C', '-I', '-E', '--file', '--makefile', '--directory', '--eval', '--include-dir'),
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
    runsOrWrites('eval', 'run', 'repl', 'task', 'install', 'compile', 'serve')(word, words, index) ||
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
  tree: options('-o'),
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
  crontab: any(1),
  xargs: any(1),
  env: any(1),
};

/** The first risky word after the words of the rule; null if there is none. */
export const riskyWord = (words: Words, named: number): string | null => {
  const name = programName(words[0] ?? '');
  const risk = Object.hasOwn(risks, name) ? risks[name] : undefined;
  if (risk === undefined) return null;
  for (const [index, word] of words.entries()) {
    if (index < Math.max(named, 1) || word === null) continue;
    if (risk(word, words, index)) return word;
  }
  return null;
};
