import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { listWords, namedRows } from '../../src/policy/paths.js';
import { SUBCOMMAND_ROWS } from '../../src/policy/programs/git.js';
import {
  isHarmlessOption,
  isWholeOption,
  matchesOption,
  type Program,
} from '../../src/policy/programs/program.js';
import {
  commandMeaning,
  findRow,
  isBuiltin,
  isGit,
  PROGRAM_ROWS,
} from '../../src/policy/programs/program-table.js';
import { pick, type Random, seeded } from '../shell/hostile/random.js';

const repeated = (names: readonly string[]): readonly string[] =>
  names.filter((name, index) => names.indexOf(name) !== index);

test('each program, and each command of git, has one row', () => {
  const programs = PROGRAM_ROWS.flatMap(namedRows).map(([name]) => name);
  const commands = SUBCOMMAND_ROWS.flatMap(([, rows]) => namedRows(rows)).map(([name]) => name);
  assert.deepEqual([repeated(programs), repeated(commands)], [[], []]);
  assert.deepEqual(repeated([...programs, 'git']), ['git'], 'control');
});

/** Harmless options of a row that are risky, too: the rule for risky ones wins, so they count for nothing. */
const contradictions = ({ risky = '', harmless = '' }: Program, name: string): readonly string[] =>
  typeof harmless === 'string' && harmless !== ''
    ? listWords(harmless).filter((option) =>
        typeof risky === 'string' ? matchesOption(option, risky) : risky(option, [name, option], 1),
      )
    : [];

test('no option of a program is both risky and harmless', () => {
  const found = PROGRAM_ROWS.flatMap(namedRows).flatMap(([name, row]) =>
    contradictions(row, name).map((option) => `${name} ${option}`),
  );
  assert.deepEqual(found, []);
  assert.deepEqual(contradictions({ risky: '-o', harmless: '-cov -v' }, 'x'), ['-cov'], 'control');
});

/** Names of one program, and a name that only looks like one. */
const SAME = [
  ['rm', '/bin/grm', 'grmdir'],
  ['sort', 'gsort', 'gsorted'],
  ['awk', 'mawk', 'awk2'],
  ['tar', 'bsdtar', 'tarsnap'],
  ['python', 'python3.11', 'pythonista'],
  ['ld.so', '/lib64/ld-linux-x86-64.so.2', 'ld'],
  ['lerna', 'git-lfs', 'gitfs'],
] as const;

test('a program has the same row under each of its names', () => {
  for (const [name, other, foreign] of SAME) {
    assert.notEqual(findRow(name), undefined, name);
    assert.equal(findRow(other), findRow(name), other);
    assert.notEqual(findRow(foreign), findRow(name), foreign);
  }
});

test('the program of a command is found by its name, or known only when it runs', () => {
  const isGits = [['git'], ['/usr/bin/git', 'x'], ['gh'], [null], []].map(isGit);
  assert.deepEqual(isGits, [true, true, false, false, false]);
  assert.match(commandMeaning([null, 'x']).unclear ?? '', /named when it runs/);
  assert.deepEqual([commandMeaning([]), commandMeaning(['ls'])], [{}, {}]);
});

test('the builtins are those that bash has', () => {
  const { stdout } = spawnSync('bash', ['-c', 'compgen -b'], { encoding: 'utf8' });
  const builtins = listWords(stdout);
  assert.deepEqual([builtins.length > 50, builtins.filter((name) => !isBuiltin(name))], [true, []]);
  assert.deepEqual(['ls', 'git', 'env', 'if'].filter(isBuiltin), []);
});

/** Words that are one of the options, and words that are not. */
const OPTIONS = [
  [
    matchesOption,
    '-o --output -exec',
    '-o -xo -ox --output --output=x --o -exec -exec=x',
    '-x -exe',
  ],
  [matchesOption, '-x --output', '-x', 'x -- --outputs -output=a --x'],
  [isWholeOption, '-o -exec', '-o -o=x --o -exec --exec=x\ny', '-oexec -ox exec o'],
  [
    isHarmlessOption,
    '-n -1 -a -b --long',
    '-n -n5 -n55 -1 -5 -55 -ab -1a --long --long=x',
    '-c -c5 -n5x -n-n5 -nx -ac -ca -x-5 -5x --lon +ab',
  ],
  [isHarmlessOption, '-n', '-n', '-1 -5'],
] as const;

test('an option is known alone, in a cluster, shortened and with a value', () => {
  for (const [matches, list, yes, no] of OPTIONS) {
    const words = [...yes.split(' '), ...no.split(' ')];
    assert.deepEqual(
      words.filter((word) => matches(word, list)),
      yes.split(' '),
    );
  }
});

/** Whether a wrapper's words show that it may run `name`. */
const shows = (words: readonly string[], name: string): boolean => {
  const { commands = [], texts = [], unclear } = commandMeaning(words);
  const starts = [
    ...commands.map(([program]) => program),
    ...texts.map((text) => text.split(' ')[0]),
  ];
  return unclear !== undefined || starts.includes(name);
};

/** They run rm behind an option in a cluster, a beginning of a long one, or one that is not known. */
const WRAPPED = `
  xargs -0I {} rm -rf {}|xargs -0n 1 rm -f|xargs -rn 5 rm|xargs -tI X rm X|xargs --max-chars 5 rm
  xargs -l rm x|xargs -e rm|sudo -nu root rm x|sudo -uroot rm x|env -iu A rm x|env - rm x
  env --split-s=rm|env -a b rm x|timeout --sig KILL 5 rm x|flock -xw 5 f rm x|nice --adj 5 rm x
  setpriv --reuid 5 rm x|unshare --root d rm x|fakeroot -i f rm x|numactl -m 0 rm x
  systemd-inhibit --what idle rm x|strace --output f rm x|setarch x86_64 rm x|setarch -R rm x
  fd -Hx rm|fd -HX rm|fd -xrm|fd --exec=rm|find . -execdir rm
  watch -tn 1 rm x|watch --interv 1 rm x|npx --call=rm|npm exec --call=rm|bash -c -e rm|sh -c -- rm
  su -c ls -c rm|su -c ls --command=rm|script -c ls -qc rm f|script -c ls --comm rm f|sg g rm
  flock f rm -c x|flock f -c rm|flock f --command rm|flock -n f rm --command x|script -q f rm -c x
  runuser -u me -- rm -c x|runuser -u me rm -c x|su -c ls -- rm|env -S rm|env A=1 -vS rm|fd -x ls ; -xrm
  git rebase -ix rm|git difftool -yx rm|git difftool --extc rm
  chrt -T 5 -d 0 rm x|rlwrap --what x rm y|npm --what exec exec rm x|stdbuf --out 0 rm x`;

test('a wrapper shows the command behind any of its options', () => {
  const texts = WRAPPED.split(/[|\n]/).map((text) => text.trim());
  const hidden = texts.filter((text) => text !== '' && !shows(text.split(' '), 'rm'));
  assert.deepEqual(hidden, []);
  assert.equal(shows(['timeout', '5', 'ls', 'rm'], 'rm'), false, 'control');
});

/** Everyday forms, whose command is known. */
const CLEAR = `
  timeout -k 5 10 npm test|timeout --signal=KILL 10 npm test|sudo -E -u root npm test|nice npm test
  sudo apt-get npm|env -i X=1 npm test|xargs -n1 npm|xargs -0 -r -n 1 npm|xargs -P4 -I% npm %
  xargs -I{} npm {}|nice -n 10 npm test|nice -10 npm test|stdbuf -oL npm test|npx --yes npm
  strace -ff -e trace=file -o out npm test|flock -n f npm test|npm exec --yes -- npm
  watch -n1 npm test|watch -d -n 2 npm test|script -qec npm f|su -c npm root|bash -ec npm
  uv run --frozen npm test|pnpm -r exec npm|time -v npm test|setsid -f npm|taskset -c 0,1 npm
  env A=1 npm i --save-dev x|env npm i -S x|flock f npm -c x|fd npm -x tar -xf|su -s /bin/sh me -c npm`;

test('the command of a wrapper is known in everyday forms', () => {
  const texts = CLEAR.split(/[|\n]/).map((text) => text.trim());
  const isClear = (text: string): boolean => commandMeaning(text.split(' ')).unclear === undefined;
  assert.deepEqual(
    texts.filter((text) => text !== '' && !(isClear(text) && /npm|sudo/.test(text))),
    [],
  );
});

test('a text of a wrapper is where the shell reads it', () => {
  const meaning = (...words: string[]) => {
    const { texts, startsAt, commands } = commandMeaning(words);
    return [texts, startsAt, commands];
  };
  assert.deepEqual(meaning('trap', '--', 'rm x', 'EXIT'), [['rm x'], 2, undefined]);
  assert.deepEqual(meaning('flock', 'f', '-c', 'A=1 rm x'), [['A=1 rm x'], 3, undefined]);
  assert.deepEqual(meaning('eval', '--', 'rm x'), [['rm x'], 2, undefined]);
  assert.deepEqual(meaning('cross-env-shell', 'A=1 2', 'rm x', '&& ls'), [
    ['rm x && ls'],
    2,
    undefined,
  ]);
  assert.notEqual(commandMeaning(['env', '-Srm x']).unclear, undefined);
});

test('a login shell reads start files, whatever form its option has', () => {
  for (const words of [['-lc'], ['-l', '-c'], ['--login', '-c'], ['-el', '-c']])
    assert.match(commandMeaning(['bash', ...words, 'rm x']).indirect ?? '', /start files/);
  assert.equal(commandMeaning(['bash', '-e', '-c', 'rm x']).indirect, undefined);
});

test('a shell is known in a container by each of its names', () => {
  for (const name of ['fish', 'csh', 'tcsh', 'yash', 'rbash', 'bash'])
    assert.deepEqual(commandMeaning(['docker', 'exec', 'c', name, '-c', 'x']).commands, [
      [name, '-c', 'x'],
    ]);
});

/** Wrappers that most systems have, letters of options, and the words before the command. */
const REAL: readonly (readonly [name: string, letters: string, ...before: readonly string[]])[] = [
  ['xargs', '0dEeiIlLnPrstx'],
  ['env', 'i0uv'],
  ['timeout', 'ksv', '9'],
  ['nice', 'n15'],
  ['setsid', 'cfw'],
  ['stdbuf', 'ioe0L'],
  ['flock', 'sxnowEF', 'f'],
  ['ionice', 'cnt3'],
];

const wrappedText = (random: Random, index: number): readonly string[] => {
  const [name, known, ...before] = pick(REAL, random);
  const options = Array.from({ length: 1 + Math.floor(random() * 2) }, () => {
    const letters = Array.from({ length: 1 + Math.floor(random() * 2) }, () =>
      pick([...known], random),
    );
    const value = pick(['', '', '1', '1', 'L', 'KILL'], random);
    return [`-${letters.join('')}`, ...(value === '' ? [] : [value])];
  }).flat();
  return [name, ...options, ...before, 'echo', `ran${index}.`];
};

test(`a real wrapper runs no command that its words do not show (seed ${SEED})`, () => {
  const random = seeded(SEED);
  const cases = Array.from({ length: countCases(400) }, (_, index) => wrappedText(random, index));
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-wrappers-'));
  const { stdout } = spawnSync('setsid', ['-w', 'sh'], {
    input: cases.map((words) => `${words.join(' ')} </dev/null 2>/dev/null\n`).join(''),
    encoding: 'utf8',
    cwd: folder,
  });
  removeFolderSync(folder);
  const ran = cases.filter((_, index) => stdout.includes(`ran${index}.`));
  assert.ok(ran.length > cases.length / 20, `only ${ran.length} ran`);
  assert.deepEqual(
    ran.filter((words) => !shows(words, 'echo')).map((words) => words.join(' ')),
    [],
  );
});
