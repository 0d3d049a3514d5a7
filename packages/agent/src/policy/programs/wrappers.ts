/**
 * Rows of wrappers: programs whose last words are another command, as in `nice make`. Most are a
 * list of their options (`Wrapper`), behind which the command begins.
 *
 * From top to bottom: wrappers that need more than a list, then the table.
 */

import { listWords } from '../paths.js';
import { withPlaceholder } from './files.js';
import { asText, optionLength, textsMeaning, wrapped } from './meanings.js';
import { anyWord, type Meaning, type Rows, type Words } from './program.js';

/** `xargs` of GNU, and `-J`, `-R` and `-S` of BSD. */
const XARGS = {
  valued: `
    -a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-args --max-chars --max-procs
    --process-slot-var`,
  flags: `
    -0 -e= -i= -l= -o -p -r -t -x --null --eof --replace --max-lines --open-tty --interactive
    --no-run-if-empty --verbose --show-limits --exit`,
};

/**
 * Words from the input of `xargs` are null: in place of the placeholder of `-I`, or at the end.
 * Without a command it prints them: a rule must name all its words but the last.
 */
const xargs = (words: Words): Meaning => {
  const meaning = wrapped(words, XARGS);
  const { startsAt = words.length } = meaning;
  if (startsAt === words.length)
    return { ...meaning, commands: [['echo', null]], startsAt: Math.max(1, words.length - 1) };
  const [valued, flags] = [listWords(XARGS.valued), listWords(XARGS.flags)];
  let command: Words = words.slice(startsAt);
  let end: Words = [null];
  let limitsWords = false; // with -n, -L or -l GNU ignores the placeholder
  for (let at = 1; at < startsAt; at += optionLength(words[at] ?? '', valued, flags) ?? 1) {
    const word = words[at] ?? '';
    limitsWords ||= /^(-[0oprtx]*[Lln]|--max-[al])/.test(word);
    const value = /^(?:-[0oprtx]*[IiJ]|--r[a-z]*=?)(.*)/s.exec(word)?.[1];
    if (value === undefined) continue;
    const placeholder = value || (/[IJ]/.test(word) ? words[at + 1] : '{}');
    command = placeholder == null ? command.map(() => null) : withPlaceholder(command, placeholder);
    end = [];
  }
  return { ...meaning, commands: [[...command, ...(limitsWords ? [null] : end)]] };
};

const env = (words: Words): Meaning => {
  const meaning = wrapped(words, {
    valued: '-u --unset -C --chdir -a --argv0 -P',
    flags: `
      - -i -0 -v --ignore-environment --null --debug --block-signal --default-signal --ignore-signal
      --list-signal-handling`,
  });
  return words.slice(0, meaning.startsAt).some((word) => /^(-\w*S|--s)/.test(word ?? ''))
    ? { unclear: 'env splits a text into words' }
    : meaning;
};

const FLOCK = {
  valued: '-w -E --wait --timeout --conflict-exit-code',
  flags: `
    -s -e -x -u -n -o -F --shared --exclusive --unlock --nonblock --nb --close --no-fork --verbose`,
};

/** `flock FILE -c TEXT`, or `flock FILE COMMAND`. */
const flock = (words: Words): Meaning => {
  const { startsAt: file = words.length, commands: _, ...others } = wrapped(words, FLOCK);
  return /^(-c|--command)$/.test(words[file + 1] ?? '')
    ? { ...others, ...textsMeaning([words[file + 2] ?? null], 'flock'), startsAt: file + 2 }
    : wrapped(words, { ...FLOCK, before: 1 });
};

/** It passes its words to a shell as one text. */
const crossEnvShell = (words: Words): Meaning => {
  const meaning = wrapped(words, {});
  const { startsAt = words.length, unclear } = meaning;
  return unclear === undefined ? asText(words, startsAt, 'cross-env-shell') : meaning;
};

const ARCHITECTURE_FLAGS = `
  -B -F -I -L -R -S -T -X -Z -v --32bit --fdpic-funcptrs --short-inode --addr-compat-layout
  --addr-no-randomize --whole-seconds --sticky-timeouts --read-implies-exec --mmap-page-zero --3gb
  --4gb --uname-2.6 --verbose`;

/** `setarch [ARCHITECTURE] [OPTIONS] COMMAND` */
const setarch = (words: Words): Meaning =>
  words[1]?.startsWith('-') === true
    ? wrapped(words, { flags: ARCHITECTURE_FLAGS, shell: 'always' })
    : wrapped(words, { flags: ARCHITECTURE_FLAGS, shell: 'always', before: 1 });

/** `command -v NAME` only looks a command up. */
const command = (words: Words): Meaning =>
  /^-[pvV]*[vV]/.test(words[1] ?? '') ? {} : wrapped(words, { flags: '-p' });

const MISE = {
  after: 'exec x',
  valued: '-C --cd -E --env -j --jobs',
  flags: '-q -v -y --quiet --verbose --yes',
  shell: 'always',
};

/** `mise exec TOOLS… -- COMMAND`; without a command it starts a shell. */
const mise = (words: Words): Meaning => {
  const meaning = wrapped(words, MISE);
  if (meaning.startsAt === undefined) return meaning;
  const at = words.indexOf('--') + 1;
  return at === 0 || at === words.length
    ? { ...meaning, unclear: 'the shell of mise runs what it reads from its input' }
    : { ...meaning, commands: [words.slice(at)], startsAt: at };
};

/** With any word of their own, `env` and `xargs` may change what the command means. */
export const WRAPPERS: Rows = {
  'builtin busybox cross-env nohup shx toybox tsocks': { runs: {} },
  'cross-env-shell': { runs: crossEnvShell },
  caffeinate: { runs: { valued: '-t -w', flags: '-d -i -m -s -u' } },
  chronic: { runs: { flags: '-v -e' } },
  chroot: {
    runs: { valued: '--groups --userspec', flags: '--skip-chdir', shell: 'always', before: 1 },
  },
  chrt: {
    runs: {
      valued: '-T -P -D --sched-runtime --sched-period --sched-deadline',
      flags: `
        -a -b -d -f -i -m -o -p -r -R -v --all-tasks --batch --deadline --fifo --idle --max --other
        --pid --rr --reset-on-fork --verbose`,
      before: 1,
    },
  },
  command: { runs: command },
  'dbus-run-session': { runs: { valued: '--config-file --dbus-daemon' } },
  direnv: { runs: { after: 'exec', before: 1 } },
  doas: { runs: { valued: '-u -C -a', flags: '-L -n -s', shell: '-s' } },
  env: { runs: env, risky: anyWord },
  exec: { runs: { valued: '-a', flags: '-c -l' } },
  fakeroot: {
    runs: {
      valued: '-l -s -i -b -f --lib --faked',
      flags: '-u --unknown-is-real',
      shell: 'always',
    },
  },
  firejail: { runs: { flags: '--quiet --noprofile --private', shell: 'always' } },
  flock: { runs: flock },
  ionice: {
    runs: { valued: '-c -n -p -P -u --class --classdata --pid --pgid --uid', flags: '-t --ignore' },
  },
  'linux32 linux64': { runs: { flags: ARCHITECTURE_FLAGS, shell: 'always' } },
  ltrace: {
    runs: {
      valued: '-a -A -D -e -F -l -n -o -p -s -u -w -x',
      flags: '-b -c -C -f -i -L -r -S -t -T',
    },
  },
  mise: { runs: mise },
  nice: { runs: { valued: '-n --adjustment' } },
  nsenter: {
    runs: {
      valued: '-t --target -S --setuid -G --setgid -W --wdns',
      flags: `
        -a -m= -u= -i= -n= -p= -C= -U= -T= -r= -w= -F -Z --all --mount --uts --ipc --net --pid
        --cgroup --user --time --root --wd --preserve-credentials --no-fork --follow-context`,
      shell: 'always',
    },
  },
  numactl: {
    runs: {
      valued: `
        -m -N -C -i -p -P -w --membind --cpunodebind --physcpubind --interleave --preferred
        --preferred-many --weighted-interleave`,
      flags: '-a -b -l --all --balancing --localalloc',
    },
  },
  pkexec: { runs: { valued: '--user', flags: '--disable-internal-agent', shell: 'always' } },
  'proxychains proxychains4': { runs: { valued: '-f', flags: '-q' } },
  rlwrap: { runs: { flags: '-c -r' } },
  setarch: { runs: setarch },
  setpriv: {
    runs: {
      valued: `
        --ambient-caps --inh-caps --bounding-set --ruid --euid --reuid --rgid --egid --regid --groups
        --securebits --pdeathsig --selinux-label --apparmor-profile`,
      flags: '--nnp --no-new-privs --clear-groups --keep-groups --init-groups --reset-env',
    },
  },
  setsid: { runs: { flags: '-c -f -w --ctty --fork --wait' } },
  stdbuf: { runs: { valued: '-i -o -e --input --output --error' } },
  strace: {
    runs: {
      valued: '-e -o -s -u -E -P -a -O -S -b -I -p -U -X --output --trace --string-limit',
      flags: `
        -A -c -C -d -D -f -F -i -k -n -q -r -t -T -v -w -x -y -Y -z -Z --follow-forks --summary
        --summary-only`,
    },
  },
  sudo: {
    runs: {
      valued: `
        -a -c -u -g -h -p -C -r -t -T -U -D -R --auth-type --login-class --user --group --host
        --prompt --close-from --role --type --command-timeout --other-user --chdir --chroot`,
      flags: `
        -A -b -B -e -E -H -i -k -K -l -n -N -P -s -S -v --askpass --background --bell --edit --list
        --login --no-update --non-interactive --preserve-env --preserve-groups --remove-timestamp
        --reset-timestamp --set-home --shell --stdin --validate`,
      shell: '-s -i --shell --login',
    },
  },
  'systemd-inhibit': { runs: { valued: '--what --who --why --mode', flags: '--no-pager' } },
  'systemd-run': {
    runs: {
      valued: `
        -p -u -E -M -H --property --unit --setenv --machine --host --slice --description --uid --gid
        --nice --working-directory`,
      flags: `
        -d -t -P -q -G -S -r --user --system --scope --pty --pipe --quiet --wait --collect
        --same-dir --no-block --remain-after-exit --no-ask-password --shell`,
      shell: '-S --shell',
    },
  },
  taskset: { runs: { flags: '-a -c -p --all-tasks --cpu-list --pid', before: 1 } },
  time: {
    runs: {
      valued: '-f -o --format --output',
      flags: '-a -p -q -v --append --portability --quiet --verbose',
    },
  },
  'timeout gtimeout': {
    runs: {
      valued: '-s -k --signal --kill-after',
      flags: '-f -p -v --foreground --preserve-status --verbose',
      before: 1,
    },
  },
  torsocks: { runs: { flags: '-i -q --isolate --quiet' } },
  trickle: { runs: { valued: '-d -u -w -t -l -n -L', flags: '-s -v' } },
  unbuffer: { runs: { flags: '-p' } },
  unshare: {
    runs: {
      valued: `
        -R -w -S -G --root --wd --setuid --setgid --map-user --map-group --map-users --map-groups
        --propagation --setgroups --monotonic --boottime`,
      flags: `
        -m -u -i -n -p -U -C -T -f -r -c --mount --uts --ipc --net --pid --user --cgroup --time
        --fork --map-root-user --map-current-user --map-auto --kill-child --mount-proc --keep-caps`,
      shell: 'always',
    },
  },
  valgrind: { runs: { flags: '-q -s -v --quiet --verbose' } },
  xargs: { runs: xargs, risky: anyWord },
  'xvfb-run': {
    runs: {
      valued: `
        -n -s -e -f -p -w --server-num --server-args --error-file --auth-file --xauth-protocol
        --wait`,
      flags: '-a -l --auto-servernum --listen-tcp',
    },
  },
};
