import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOpenPlace, onlyReads, uncoveredWord } from '../../src/policy/command-options.js';
import type { ParsedCommand } from '../../src/policy/judged-call.js';
import { commandMeaning } from '../../src/policy/programs/program-table.js';
import { grantablePrefix } from '../../src/policy/rules.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';

// Which words a rule covers, behind which options the command of a wrapper begins, which texts only
// read, and which words a lasting answer may cover.

const cellsOf = (table: string, mark = '|'): readonly string[] =>
  table
    .replace(/\s+/g, ' ')
    .split(mark)
    .map((cell) => cell.trim());
const wordsOf = (text: string): readonly (string | null)[] =>
  text.split(' ').flatMap((word) => (word === '' ? [] : [word === '$' ? null : word]));

/** `RULE: FURTHER WORDS`, with the word that is not covered in brackets. `$`: known only later. */
const FENCED = `
  nobody: x -y $ --z=1|ls: --odd $|sort: -r a [-o] out|sort -o: out|uniq: in [out]|uniq in out: -c
  uniq in: -c [out] x|uniq in: [out]|uniq: in $|env: [npm] test|env npm: [test]|xargs: [-0] rm
  make: test
  git: log [--output=x]|git log --output=x: -p|tar: xf a|find: . -name x [-exec] rm
  find: . $ [-delete]
  tee: [x]|nl: a b|docker: build -D .|docker: run [-v] a:b i|docker: run [--volume] a
  docker: run [--mount=x]
  docker: run [--privileged] x|docker: [--device] x|docker: [--pid=host]|docker: [--network] host
  docker: [--cap-add] x|docker: [--security-opt] x|docker: [--userns] x|docker: [-H] x
  docker: [--host] x
  docker: [--config] x ps|docker: run [--entrypoint] x|docker: run [--net] host|printf: x -v y|
  podman: run [-v] a:b i|nerdctl: run [--privileged] i|docker-compose: run [--volume] a:b i|
  docker: run [--ipc=host] i|docker: run [--volumes-from] x i|docker: [--context] x ps|podman: [--url] x ps`;
/** The same, for a rule that lets a command reach more than the sandbox does. */
const WIDENED = `
  nobody: x - +|nobody: x [-y]|nobody: [+y]|nobody: $ [-y]|nobody -y: x -y|nobody: x-y a+b [--z=1]
  ls: --odd|sort: -r [-o] x|npm install: -D x [--odd]|docker: [-D] ps|docker: push [-a]
  printf: -v x|test: -f a
  docker: build -t x -q --tag x --quiet --no-cache --pull --progress=x --platform x --target x
  [--odd]|docker: ps -a -q -n -l -s --all --quiet --no-trunc --filter x --format x --last --latest
  --size [-t]
  docker: logs -f -t -n --follow --timestamps --tail --since --until --details [-q]
  docker: images -a -q --all --quiet --no-trunc --filter --format --digests [-l]
  docker: compose up -d -q --detach --build --no-deps --force-recreate --remove-orphans --wait
  --quiet-pull --follow --tail --all --quiet [--odd]
  docker: pull -aq --all-tags --quiet --platform [-t]
  docker-compose: up -d -q --detach --build --no-deps --force-recreate --remove-orphans --wait
  --quiet-pull --follow --tail --all --quiet [-f] x|docker: $ [-t]
  kubectl: get -n -A -o -l -w --namespace --all-namespaces --output --selector --watch --context
  --tail --since --follow --previous [--odd]|kubectl: logs -f|kubectl: apply [-f] x|podman: [-q] ps|
  podman: ps -a`;

test('a rule covers further words up to the first that is risky or not known', () => {
  const wrong = (['fenced', 'widened'] as const).flatMap((reach) =>
    cellsOf((reach === 'fenced' ? FENCED : WIDENED).replace(/\n(?=[^|\n]*: )/g, '|')).flatMap(
      (cell) => {
        const [rule = '', further = ''] = cell.split(': ');
        const expected = /\[(.*)\]/.exec(further)?.[1] ?? null;
        const words = wordsOf(`${rule} ${further.replace(/[[\]]/g, '')}`);
        const actual = uncoveredWord(words, rule.split(' '), reach);
        return actual === expected ? [] : [`${cell} (actual: ${actual})`];
      },
    ),
  );
  assert.deepEqual(wrong, []);
});

/** `WRAPPER | OPTIONS WITH A VALUE | OTHER OPTIONS | WORDS BEFORE THE COMMAND`, by the manuals. */
const OPTIONS = `
  builtin, busybox, cross-env, nohup, shx, toybox, tsocks; caffeinate|-t -w|-d -i -m -s -u;
  chronic||-v -e; chroot|--groups --userspec|--skip-chdir --groups=a|/x; chrt|-T -P -D
  --sched-runtime --sched-period --sched-deadline| -a -b -d -f -i -m -o -p -r -R -v --all-tasks
  --batch --deadline --fifo --idle --max --other --pid --rr --reset-on-fork --verbose|5;
  dbus-run-session|--config-file --dbus-daemon; doas|-u -C -a|-L -n -s; env|-u --unset -C --chdir -a
  --argv0 -P|- -i -0 -v --ignore-environment --null --debug --block-signal --default-signal
  --ignore-signal=HUP --list-signal-handling A=1;
  fakeroot|-l -s -i -b -f --lib --faked|-u --unknown-is-real;
  firejail||--quiet --noprofile --private; flock|-w -E --wait --timeout --conflict-exit-code|-s -e
  -x -u -n -o -F --shared --exclusive --unlock --nonblock --nb --close --no-fork --verbose|file;
  ionice|-c -n -p -P -u --class --classdata --pid --pgid --uid|-t --ignore; linux32||-B -F -I -L
  -R -S -T -X -Z -v -3 --32bit --fdpic-funcptrs --short-inode --addr-compat-layout
  --addr-no-randomize --whole-seconds --sticky-timeouts --read-implies-exec --mmap-page-zero --3gb
  --4gb --uname-2.6 --verbose;
  ltrace|-a -A -D -e -F -l -n -o -p -s -u -w -x|-b -c -C -f -i -L -r -S -t -T;
  mise -C d exec|-C --cd -E --env -j --jobs|-q -v -y --quiet --verbose --yes node@20|--;
  nice|-n --adjustment|-5 -n5; nsenter|-t --target -S --setuid -G --setgid -W --wdns|-a -m/f -u/f
  -i/f -n/f -p/f -C/f -U/f -T/f -r/f -w/f -F -Z -muinp --all --mount --uts --ipc --net --pid
  --cgroup --user --time --root --wd --preserve-credentials --no-fork --follow-context;
  numactl|-m -N -C -i -p -P -w --membind --cpunodebind --physcpubind --interleave --preferred
  --preferred-many --weighted-interleave|-a -b -l --all --balancing --localalloc;
  pkexec|--user|--disable-internal-agent; proxychains, proxychains4|-f|-q; rlwrap||-c -r; runuser
  -u me|-g -G -s -w --user --group --supp-group --shell --whitelist-environment| -f -l -m -p -P -T
  --fast --login --preserve-environment --pty --no-pty|--; setpriv|--ambient-caps --inh-caps
  --bounding-set --ruid --euid --reuid --rgid --egid --regid --groups --securebits --pdeathsig
  --selinux-label --apparmor-profile|--nnp --no-new-privs --clear-groups --keep-groups
  --init-groups --reset-env; setsid||-c -f -w --ctty --fork --wait;
  stdbuf|-i -o -e --input --output --error|-oL --out=0; strace|-e -o -s -u -E -P -a -O -S -b -I -p
  -U -X --output --trace --string-limit|-A -c -C -d -D -f -F -i -k -n -q -r -t -T -v -w -x -y -Y
  -z -Z --follow-forks --summary --summary-only; sudo|-a -c -u -g -h -p -C -r -t -T -U -D -R
  --auth-type --login-class --user --group --host --prompt --close-from --role --type
  --command-timeout --other-user --chdir --chroot|-A -b -B -e -E -H -i -k -K -l -n -N -P -s -S -v
  --askpass --background --bell --edit --list --login --no-update --non-interactive
  --preserve-env=A --preserve-groups --remove-timestamp --reset-timestamp --set-home --shell
  --stdin --validate; systemd-inhibit|--what --who --why --mode|--no-pager; systemd-run|-p -u -E
  -M -H --property --unit --setenv --machine --host --slice --description --uid --gid --nice
  --working-directory|-d -t -P -q -G -S -r --user --system --scope --pty --pipe --quiet --wait
  --collect --same-dir --no-block --remain-after-exit --no-ask-password --shell;
  taskset||-a -c -p --all-tasks --cpu-list --pid|0,1;
  time|-f -o --format --output|-a -p -q -v --append --portability --quiet --verbose;
  timeout|-s -k --signal --kill-after|-f -p -v --foreground --preserve-status --verbose|5;
  gtimeout|-s|-v|5; torsocks||-i -q --isolate --quiet; trickle|-d -u -w -t -l -n -L|-s -v;
  unbuffer||-p; unshare|-R -w -S -G --root --wd --setuid --setgid --map-user --map-group
  --map-users --map-groups --propagation --setgroups --monotonic --boottime|-m -u -i -n -p -U -C
  -T -f -r -c --mount --uts --ipc --net --pid --user --cgroup --time --fork --map-root-user
  --map-current-user --map-auto --kill-child --mount-proc --keep-caps;
  valgrind||-q -s -v --quiet --verbose; xargs|-a -d -E -L -n -P -R -S -s --arg-file --delimiter
  --max-args --max-chars --max-procs --process-slot-var|-0 -eX -l5 -o -p -r -t -x --null --eof
  --max-lines=2 --open-tty --interactive --no-run-if-empty --verbose --show-limits --exit;
  xvfb-run|-n -s -e -f -p -w --server-num --server-args --error-file --auth-file --xauth-protocol
  --wait|-a -l --auto-servernum --listen-tcp; ld-linux-x86-64.so.2|--library-path --inhibit-rpath
  --audit --preload --argv0 --glibc-hwcaps-mask --glibc-hwcaps-prepend|--list --verify
  --inhibit-cache --list-tunables --list-diagnostics --help --version; watch|-n -q --interval
  --equexit|-b -c -C -d -e -f -g -p -r -t -w -x --beep --color --no-color --differences --errexit
  --follow --chgexit --precise --no-rerun --no-title --no-wrap --exec; hyperfine|-w -r -m -M -n -u
  --warmup --runs --min-runs --max-runs --command-name --time-unit --style --sort --output --input
  --export-asciidoc --export-csv --export-json --export-markdown --export-orgmode
  --reference-name|-N -i --show-output`;

/** Whether the words run the command `rm x` alone, or the text of it. */
const runsRm = (words: string): boolean => {
  const { commands = [], texts = [], unclear } = commandMeaning(wordsOf(words));
  const run = [...commands.map((command) => command.join(' ')), texts.join(' ')].join(';');
  return unclear === undefined && /^(rm x( |;|$)|;?rm x$)/.test(run);
};

test('the command of a wrapper begins behind each of its options, and behind their values', () => {
  const cases = cellsOf(OPTIONS, ';').flatMap((row) => {
    const [names = '', valued = '', flags = '', before = ''] = row.split('|');
    const list = (text: string) => text.split(' ').filter(Boolean);
    return names
      .split(', ')
      .flatMap((name) =>
        [
          `${name} ${before} rm x`,
          ...list(valued).map((option) => `${name} ${option} 1 ${before} rm x`),
          ...list(flags).map((option) => `${name} ${option} ${before} rm x`),
        ].map((words) => words.replace(/ +/g, ' ')),
      );
  });
  assert.ok(cases.length > 400, String(cases.length));
  assert.deepEqual(
    cases.filter((words) => !runsRm(words)),
    [],
  );
  assert.deepEqual(['nice -n rm x', 'nice 5 rm x'].filter(runsRm), [], 'control');
});

/** Texts that only read, by the manuals of their programs. */
const READING = `
  ls|ls -la $x|cat a; head -5 b|cat a 2>/dev/null >/dev/stdout|echo x >/dev/stderr|cd a && pwd
  true; false; :; test -f a; type ls; [ -f a ]; exit 1|printf %s x|printf x-v|wait; wait 5; wait x-p
  git status|git log -p|sed -n 1p a|sort a | uniq -c|find . -name x|date +%F|awk '{ print }' a`;
const NOT_READING = `
  |x=1|X=1 ls|ls > out|ls >> out|ls > $x|ls > /dev/tty|./ls|/usr/bin/ls|ls; make|make|nobody x
  rm x|printf -v x y|printf $x|printf|wait -np x|wait -p x|wait -fp x|uniq a $x|shuf -o $x a
  wait $x|read x|export x|find . $x|find . -delete
  sort -o a b|uniq a b|sort $x|date 0101|. ./x; ls|ls; eval "$x"|git commit|git log $x
  git log --output=x|f() { ls; }; f
  sed -i s/a/b/ a|tee a|kill 1|cd a; umask 0`;

test('a text only reads if each command does, with a program of the system', async () => {
  const reads = async (text: string): Promise<boolean> =>
    onlyReads(await shellFacts(text, (name) => `/usr/bin/${name}`), '/w');
  for (const text of READING.trim().split(/\||\n/)) assert.ok(await reads(text.trim()), text);
  for (const text of NOT_READING.trim().split(/\||\n/))
    assert.ok(!(await reads(text.trim())), text);
  const command = { words: ['ls'], assignments: [], writes: [], program: '/usr/bin/ls' } as const;
  const facts = { commands: [command], unclear: null };
  assert.equal(onlyReads(facts, '/w'), true);
  assert.equal(onlyReads({ ...facts, unclear: 'x' }, '/w'), false);
  assert.equal(onlyReads({ ...facts, indirect: 'x' }, '/w'), false);
  assert.equal(onlyReads(facts, '/usr'), false, 'a program of the workspace');
});

test('commands can put programs into the workspace and into folders for all', () => {
  for (const program of ['/w/ls', '/w/a/b', '/tmp/ls', '/var/tmp/ls', '/dev/shm/a/ls'])
    assert.ok(isOpenPlace(program, '/w'), program);
  for (const program of ['/usr/bin/ls', '/wx/ls', '/tmpx/ls', '/x/tmp/ls', '/w'])
    assert.ok(!isOpenPlace(program, '/w'), program);
});

/** They run, delete or send what their further words name: no lasting answer is offered. */
const NEVER = `
  bash sh dash zsh ksh fish csh tcsh ash busybox env sudo doas su pkexec runuser setsid nohup nice
  ionice time timeout stdbuf xargs parallel watch find fd exec eval command builtin source . trap
  script expect unshare chroot nsenter bwrap flock strace gdb ltrace python python2 python3 pypy
  pypy3
  node nodejs deno bun tsx ts-node ruby perl php lua luajit awk gawk mawk nawk sed ed ex vi vim nvim
  emacs R Rscript julia osascript java groovy scala kotlin ghc runghc swift tclsh wish npx pnpx bunx
  uvx pipx dlx corepack ssh scp sftp rsync nc ncat netcat socat telnet ftp curl wget http https
  aria2c
  openssl rm rmdir shred dd truncate mkfs mount umount chmod chown chgrp kill killall pkill mv cp ln
  tee install tar unzip docker podman nerdctl kubectl helm systemctl crontab at batch screen tmux
  make
  ninja cmake gradle python3.11 pypy3.10 ruby3 perl5.36 php8 node20 lua5.4 java17 /usr/bin/rm
  ./make`;
/** Programs of which the words must have a subcommand. */
const WITH_COMMANDS = `
  git npm pnpm yarn cargo go pip pip3 uv poetry gh glab dotnet mvn bundle gem composer mix rustup
  brew
  apt apt-get dnf yum apk conda terraform`;
/** The words that are offered, and in parentheses those that are not. */
const PREFIXES = `
  eslint src (-x)|eslint (./src)|eslint (-x src)|eslint ($)|./build.sh fast (x)|/bin/eslint src
  javac x
  npm run lint (x)|npm run-script a:b/c (x)|go tool vet|npm run ./x|npm run :x|pythonic x|mynode x
  xpython3.1 x
  git push origin (main)|git fetch or-igin (-p)|git log (origin)|git pull up (main)|yarn fetch (x)`;
const NO_PREFIX = `
  $|$ x|npm run|npm run -x|npm run $|npm run a=b|npm run lint,x|cargo run --bin|npm exec x|npm x y
  pnpm dlx x
  npm create x|npm init x|git filter-branch x|git bisect run|git difftool x|git mergetool x|git push
  git push -f|git push a:b|git push ../x|git push $|git -C x log|npm ./x|npm 1|npm $|npm in=x`;

test('a lasting answer is offered for the words that say what a command does', () => {
  const plain: ParsedCommand = { words: [], assignments: [], writes: [], program: null };
  const offered = (words: string, more: Partial<ParsedCommand> = {}): string | null => {
    const shell = { commands: [{ ...plain, words: wordsOf(words), ...more }], unclear: null };
    return grantablePrefix({ argv: [], paths: [], hosts: [], shape: '', shell })?.join(' ') ?? null;
  };
  for (const name of cellsOf(NEVER.trim(), ' ')) assert.equal(offered(`${name} x`), null, name);
  for (const name of cellsOf(WITH_COMMANDS.trim(), ' ')) {
    assert.equal(offered(`${name} list x`), `${name} list`);
    for (const words of ['', '-x', './x']) assert.equal(offered(`${name} ${words}`), null, name);
  }
  for (const cell of PREFIXES.trim().split(/\||\n/))
    assert.equal(offered(cell.replace(/[()]/g, '')), cell.replace(/\(.*/, '').trim());
  for (const cell of NO_PREFIX.trim().split(/\||\n/)) assert.equal(offered(cell), null, cell);
  assert.equal(offered('', { words: [''] }), null);
  assert.equal(offered('eslint x', { writes: ['/dev/null'] }), 'eslint x');
  assert.equal(offered('eslint x', { writes: ['/dev/null', 'out'] }), null);
  assert.equal(offered('eslint x', { assignments: ['A=1'] }), null);
  const shell = { commands: [{ ...plain, words: ['eslint'] }], unclear: null };
  const facts = { argv: [], paths: [], hosts: [], shape: '', shell };
  assert.deepEqual(grantablePrefix(facts), ['eslint']);
  for (const more of [
    { shell: { ...shell, unclear: 'x' } },
    { shell: { ...shell, indirect: 'x' } },
    { shell: { ...shell, commands: [] } },
    { shell: { ...shell, commands: [...shell.commands, ...shell.commands] } },
    { protected: ['/w/.git'] },
  ])
    assert.equal(grantablePrefix({ ...facts, ...more }), null, JSON.stringify(more));
  assert.equal(grantablePrefix({ argv: [], paths: [], hosts: [], shape: '' }), null);
});
