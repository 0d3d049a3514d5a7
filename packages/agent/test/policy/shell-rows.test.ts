import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Words } from '../../src/policy/programs/program.js';
import { commandMeaning } from '../../src/policy/programs/program-table.js';
import { changesShell } from '../../src/policy/programs/shells.js';

// What commands run beside themselves. Each entry is `WHAT THEY RUN: COMMAND; COMMAND`.

/** `·` is a blank in a word, `""` an empty word, `$` a word that is known only when it runs. */
const readWords = (text: string): Words =>
  text
    .split(' ')
    .map((word) => (word === '$' ? null : word.replaceAll('·', ' ').replaceAll('""', '')));

/**
 * `?` unclear, `file` what no word shows, `evaluates`, `sh` another shell may read it, `@2` where
 * it begins, `+2` where it may begin, 'a text', a command.
 */
const describeMeaning = (words: Words): string => {
  const {
    unclear,
    indirect,
    evaluates,
    isPosix,
    startsAt,
    mayStartAt,
    texts = [],
    ...more
  } = commandMeaning(words);
  return [
    ...(unclear === undefined ? [] : ['?']),
    ...(indirect === undefined ? [] : ['file']),
    ...(evaluates === true ? ['evaluates'] : []),
    ...(isPosix === true ? ['sh'] : []),
    ...(startsAt === undefined ? [] : [`@${startsAt}`]),
    ...(mayStartAt === undefined ? [] : [`+${mayStartAt}`]),
    ...texts.map((text) => `'${text}'`),
    ...(more.commands ?? []).map((words) =>
      words.map((word) => (word === null ? '$' : word)).join(' '),
    ),
  ].join(' ');
};

/** The entries of a table: texts in front of each `|`, without line breaks. */
const entriesOf = (table: string, mark: string): readonly string[] =>
  table
    .replace(/\s+/g, ' ')
    .split(mark)
    .map((entry) => entry.trim());

/** The commands of a table that mean something else, with what they mean. */
const findWrong = (table: string): readonly string[] =>
  entriesOf(table, '|').flatMap((entry) => {
    const [expected = '', commands = ''] = entry.split(': ');
    return entriesOf(commands, ';').flatMap((command) => {
      const actual = describeMeaning(readWords(command)) || 'nothing';
      return actual === expected ? [] : [`${command}: ${actual} (not: ${expected})`];
    });
  });

const SHELLS = `
  ?: bash; bash -e; bash -; bash --; bash $; bash -e $; bash /dev/stdin; bash ../proc/self/fd/0;
  bash -- //dev/stdin; bash -c; bash -c $; bash -c +x ls; bash -c -e ls; bash --rcfile x -c ls;
  bash -xi -c ls; bash +O extglob -c ls; bash -o; bash -o posix -c ls; bash -o pipefails -c ls;
  bash -c·x ls; bash --noprofiles -c ls; zsh -c ls; ksh -c ls; mksh -c ls; ash -c ls; rbash -c ls;
  fish -c ls; csh -c ls; tcsh -c ls; yash -c ls | file: bash dev/x.sh; bash /devices/x.sh;
  bash x.sh -c ls; bash -- x.sh; bash -n x.sh; fish x.fish; bash -lo pipefail x.sh |
  nothing: bash --version; bash -e --help | @2 'ls -l': bash -c ls·-l a b |
  @2 'ls': bash -exuvc ls; bash -ceux ls | file @2 'ls': bash -cl ls |
  file @4 'ls': bash -lo pipefail -c ls |
  @6 'ls': bash --norc --noprofile -n -v -c ls |
  @10 'ls': bash -o pipefail -o errexit -o nounset -o xtrace -c ls |
  @4 'ls': bash -euxvo pipefail -c ls | sh @2 'ls': /bin/sh -c ls; dash -ec ls |
  ?: bash --noprofileo pipefail x.sh; bash --o pipefail x.sh; bash -oe pipefail x.sh;
  bash -o xpipefail x.sh; bash --c ls; bash --odd-e x.sh`;

const BUILTINS = `
  nothing: eval; eval -- ·; trap; trap "" INT; trap - INT; trap -p INT; trap -l INT;
  trap -- - INT; trap INT; set; set -abefhmuvxCET +abefhmuvxCET; set -e -- -k; set - -k; set x -k;
  set -o; set -o errexit -o nounset -o pipefail -o xtrace -o verbose -o noglob;
  set -o errtrace -o functrace -o noclobber -o monitor; shopt;
  shopt -s -uqp globstar nullglob dotglob failglob nocasematch inherit_errexit huponexit;
  shopt -s checkwinsize histappend; alias ls; enable; hash -r p; complete -p x-C; compgen -A x-C;
  mapfile -t a; read -r a b; local x-i; local --i; export x=y; printf %s a[x]; printf -v a x;
  printf %s -v a[x]; jobs -l rm; wait a[x]; wait -f x-p a[x]; test a; command -v rm;
  command -pV rm | @1 'a b c': eval a·b c | ?: eval a $; .; source --; . $; . /dev/fd/3;
  trap $ INT; set $; set -k; set +B; set -e·k; set -euo pipefail -k; set -o posix; set -o $;
  set -o errexits; shopt -s globstar extglob; shopt -s expand_aliases; shopt -o nullglob;
  shopt -s $; shopt -s nullglobs; alias ls=rm; alias $; enable -n test; bind x; hash -rp a b;
  hash -p a b; complete -C x y; complete -oF x y; compgen -C x; compgen -aF x; compgen -W x;
  compgen -P x; mapfile -C x a; readarray -tC x a; fc; sg g; newgrp | file: . x; source -- x |
  @1 'a b': trap a·b INT EXIT | evaluates: let x=1; local a[x]; readarray a[x]; read a[x];
  unset a[x]; declare -ai x; typeset -n x; readonly PS4=x; getopts ab a[x]; printf -v a[x] x;
  wait -np a[x]; test -v a[x]; test -R a; [ -v a[x] ] | file evaluates: export $; printf $ a[x] |
  @2 rm x: jobs -lx rm x; command -p rm x | @6 rm: jobs -n -p -r -s -x rm |
  @1 x-v rm: command x-v rm | @1 cd x: builtin cd x | @5 rm: exec -a x -c -l rm |
  nothing: set a-b -k; mapfile x-C; hash x-p; printf x-v a[x]; jobs x-x | ?: set -k-e |
  evaluates: export a PS4=x`;

const USERS = `
  ?: su; su - me; su --cx ls; su -- me; su me -- -c ls; runuser me; runuser me -- -u x |
  sh @2 'ls': su -c ls; su -c ls -- | sh @3 'ls': su me -lcls; su $ -c ls; runuser me -c ls |
  sh @2 'ls' 'id': su -c ls --comm id | sh @2 'a b': su --command=a·b me | ? @2: su -c $; su -c |
  sh @2 ' ls': su --c=·ls | sh @2 'ls' rm x: su -c ls -- rm x | sh @4 'ls' you -c ls: su me you -c ls |
  sh @4 'ls': su -s /bin/sh -c ls | sh @5 'ls': script f -q rm -c ls | nothing: runuser -l -u me |
  @4 rm -rf x: runuser -u me -- rm -rf x | @3 rm x: runuser -lu me rm x;
  runuser --user=me -- rm x | @1 me --us x: runuser me --us x | ?: su -- -c ls; su x--command=ls;
  runuser -- -u x; runuser x-u | sh @4 'ls': runuser -u me -c ls | sh @4 'ls' me -c ls: su $ me -c ls |
  sh @2 'ls': su -c ls me you | @1 me --user=x: runuser me --user=x`;

const RUNNERS = `
  nothing: watch; watch -n | sh @1 'ls': watch ls | sh @4 'ls': watch -n 1 -d ls |
  sh @2 'ls -l': watch -- ls -l | ? @1: watch ls -- $ | ? +2: watch -Z ls |
  @4 rm x: ip netns exec n rm x; ip n e n rm x; ip -all netns exec rm x; mise x node@20 -- rm x |
  @4 rm: ip v ex n rm; ip -a netns exec rm | nothing: ip vrf exec n; ip netns list exec n;
  ip addr exec n rm; tmux ls; docker ps; docker runs i sh; nix build x; entr; entr -r; at -l;
  at -V; mise run x; direnv allow x | @4 rm -all: ip netns exec n rm -all |
  @5 rm: ip - netns exec n rm | @2 +2: tmux new -d a b | sh @2 +2 'a b': tmux new -d a·b |
  @4 +4 sh -c x: tmux -L x new -d sh -c x | @3 +3: tmux $ new x | @1 +1: screen -dm rm x |
  sh @1 +1 'rm x' zsh: screen -dm rm·x zsh | sh @2 +2 'rm x' bash rm x: tmux new -s bash rm·x | +2: docker run -it i a·b; docker run i push |
  +4 /bin/mksh -c x: docker --context x exec c /bin/mksh -c x |
  +2 dash x: podman create i dash x | +2 zsh x: nerdctl run i zsh x |
  +2 ksh x: kubectl exec p -- ksh x | +2 ash x: docker-compose run i ash x | ?: nix-shell -p jq;
  nix shell x; nix develop; at now; batch; expect; expect $; expect -dc x; expect -i; parallel x |
  @2 'ls -l': nix-shell --run ls·-l | ? @2: nix-shell --command $; entr -rs |
  @5 'a' 'b': nix-shell -p jq --run a --command=b | @3 rm x: nix develop -c rm x;
  direnv exec d rm x | @3 rm: nix shell --command rm | sh @2 'ls' 'a b': hyperfine ls a·b |
  ? +1: hyperfine -L x y ls; hyperfine -NL x y ls; hyperfine -P x 1 2 ls;
  hyperfine --parameter-list x y ls; hyperfine -S ash ls |
  sh @4 'ls': hyperfine --shell=none --shell=sh --shell=bash ls |
  sh @2 'x-L' 'y': hyperfine x-L y |
  sh @6 'a' ' b' 'c' 'd' 'r' 'ls': hyperfine -sa -p·b -cc -Cd --reference=r ls |
  sh @4 'a' 'b' 'c' 'd': hyperfine --setup=a --prepare=b --cleanup=c --conclude=d |
  @2 rm x: entr -r rm x | sh @2 'a b': entr -s a·b | file: at -f x now; expect x; expect x-c |
  @6 rm x: mise exec -q -C d -- rm x | ? @4 +4 rm x: mise -y exec -c rm·x |
  ? @2 node@20: mise exec node@20 | sh @2 '-x ls': watch -- -x ls |
  +4: docker --context sh run i x | @2 +2: tmux new ·a | @1 +1 sh -c x: screen sh -c x |
  ? +1: hyperfine -NS ash ls; hyperfine --shell=shx ls | sh @2 'ls': hyperfine -Snone ls;
  hyperfine -- ls | @1 ls x: entr ls x | ? +2: mise --odd v exec -- rm; direnv --odd v exec d rm |
  nothing: mise -C exec --odd run; direnv --odd allow | @2 bash -c x: watch -x bash -c x |
  @4 bash -c x: watch -n 1 --exec bash -c x | @3 bash -c x: watch -x -- bash -c x |
  @1 rm $: entr rm /_ | @4 rm x: ip --all netns exec rm x |
  sh @2 'ls': tmux -c ls | file: tmux source-file f; tmux so f | ?: tmux display #(ls);
  nix -L develop; nix --offline shell x; expect -; expect -d; expect /dev/stdin; at -f /dev/stdin;
  at -f | ? @2 node@20 --: mise exec node@20 --`;

const INPUTS = `
  @1 echo $: xargs; xargs -0 | @1 rm x $: xargs rm x | @2 rm $ y: xargs -I{} rm {}/x y |
  @3 rm $: xargs -rI X rm X | @3 mv $ d: xargs -J % mv % d | @2 rm $: xargs -i rm {};
  xargs --replace rm {}; xargs --rep=X rm X; xargs --re=X rm X; xargs --r rm {} | @2 rm $ {}: xargs -iX rm X {} |
  @3 $ $ $: xargs -I $ rm x y | @4 rm $ $: xargs -I{} -n 1 rm {}; xargs -I{} --max-args 1 rm {} |
  @3 rm $ $: xargs -0l -I{} rm {}; xargs -I{} --max-lines rm {} |
  @4 rm $: xargs -I{} --max-chars 9 rm {} | @2 x-n $: xargs -I{} x-n {} |
  @3 rm {} $: xargs -E -i rm {} | ? @2 +2 rm x $: xargs -Z rm x | nothing: env; flock f |
  @3 rm x: env A=1 _b=2 rm x; setarch i386 -3 rm x | ?: env -S rm·x; env -ivS rm·x;
  env --split-string=rm; setarch; setarch i386; linux32 | @1 rm -S --s: env rm -S --s |
  @1 x-S y: env x-S y | @2 rm -: env - rm - | sh @3 'a b': flock f -c a·b |
  ? @4: flock -x f --command | ? sh @4 +2 'a b': flock --odd f -c a·b | ? @3: flock f -c $ | @2 rm -c x: flock f rm -c x |
  @3 rm: flock f -x rm | sh @2 'a b c': cross-env-shell A=1 a·b c |
  ? @2 +2 a: cross-env-shell -x a | @2 rm x: setarch -v rm x | @2 rm: linux64 -R rm |
  ? @2 +2 rm x: nice --x-5 rm x | @2 rm x: nohup -- rm x | @1 - x: nice - x | @2 rm: env 1=1 rm |
  @1 /a=b rm: env /a=b rm | @2 rm: env A=x-S rm | @2 x-c y: flock f x-c y |
  ? @3 +3 y: flock f -cx y | ? @3 +3 rm $: xargs -I{} --x-n rm {} |
  ? @2 +2 rm {} $: xargs --x-I rm {}`;

const ALONE = `
  ?: chroot /x; fakeroot; firejail --quiet; linux64; nsenter -t 1; pkexec --user me; unshare -r;
  doas -s; sudo -s; sudo -i; sudo --shell; sudo -u me --login; systemd-run -qS;
  systemd-run --shell | nothing: doas -u me; sudo -u me; sudo -s --help; sudo -s --version;
  systemd-run -q; nohup | @1 $ -s: sudo $ -s | ?: sudo -u $ -s; mise exec`;

for (const [subject, table] of Object.entries({ SHELLS, BUILTINS, USERS, RUNNERS, INPUTS, ALONE }))
  test(`what commands run beside themselves is known: ${subject.toLowerCase()}`, () =>
    assert.deepEqual(findWrong(table), []));

test('a reason says which program runs what', () => {
  const reasons = [
    ['bash', 'bash runs what it reads from its input'],
    ['bash -', 'bash runs what it reads from its input'],
    ['bash -e $', 'what bash runs is made when it runs'],
    ['/bin/su me', '/bin/su runs what it reads from its input'],
    ['at now', 'at runs what it reads from its input'],
  ] as const;
  for (const [words, reason] of reasons)
    assert.equal(commandMeaning(readWords(words)).unclear, reason);
});

test('a table that is wrong is seen as wrong', () => {
  assert.equal(findWrong('@1 ls: nice rm').length, 1);
});

/** Variables whose value the shell runs, or that change how it reads. */
const RUN_VARIABLES =
  'BASH_ENV BASHOPTS GLOBIGNORE SHELLOPTS PS0 PS4 ENV PROMPT_COMMAND POSIXLY_CORRECT'.split(' ');

test('a variable that changes the shell is known where a builtin sets it', () => {
  for (const name of RUN_VARIABLES) {
    assert.ok(changesShell(name), name);
    assert.equal(describeMeaning(['export', `${name}=x`]), 'evaluates', name);
  }
  for (const name of ['PS1', 'ENVIRONMENT', 'MY_ENV', 'PATH']) assert.ok(!changesShell(name), name);
});

/** Commands of tmux that run others: whole, by another name, and as short as tmux knows them. */
const TMUX_RUNS = `
  new new-session new-w neww new-window sp split split-window splitw respawn-p respawnp respawn-pane
  respawn-w respawnw respawn-window ru run run-shell i if if-shell send send-k send-keys display-po
  popup display-popup display-me menu display-menu pi pipep pipe-pane bi bind bind-key set-h
  set-hook con confirm confirm-before com command-prompt`;
const TMUX_OTHERS = `ls ne next-window next respawn s send-prefix display display-message paste
  set set-option co copy-mode rename sessions`;

test('commands of tmux that run others are known by each of their names', () => {
  const finds = (name: string) => describeMeaning(['tmux', '-v', name, 'a b']) !== '';
  assert.deepEqual(
    TMUX_RUNS.trim()
      .split(/\s+/)
      .filter((name) => !finds(name)),
    [],
  );
  assert.deepEqual(TMUX_OTHERS.split(/\s+/).filter(finds), []);
});
