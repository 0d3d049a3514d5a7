/**
 * Rows about shells and builtins, wrappers (their last words are another command, as in
 * `nice make`), and runners (programs that can also run others, such as tmux and docker). A row
 * says what a call of its program would run: `runs` returns a `Meaning`.
 *
 * Of its fields: `runs` is where the command begins (a rule that allows must name all words up to
 * there), `mayRun` where it may begin (for rules that ask or deny). The user is always asked about
 * `unclear`; no rule that allows covers `indirect`.
 */

import { listWords, programName } from '../paths.js';
import { absolutePath } from '../patterns.js';
import { withPlaceholder } from './files.js';
import {
  asText,
  literal,
  NOT_KNOWN,
  optionLength,
  optionTexts,
  passesText,
  textsMeaning,
  wrapped,
} from './meanings.js';
import { anyWord, type Meaning, type Rows, type Words } from './program.js';

/** Whether a shell that runs this file reads its input, or that of another program. */
const isDevice = (file: string): boolean =>
  /^\/(dev|proc)\//.test(absolutePath(file, '/workspace'));

/**
 * `bash -c TEXT`. It is unclear what a shell runs from its input, or from a file named at run time.
 */
const shell = (words: Words): Meaning => {
  const name = programName(words[0] ?? '');
  let isLogin = false;
  let at = 1;
  for (; at < words.length; at++) {
    const word = words[at];
    if (word == null) return { unclear: `what ${name} runs is ${NOT_KNOWN}` };
    if (!/^[-+]/.test(word) || word === '-' || word === '--') break;
    if (/^-[euxlv]*o$/.test(word)) {
      if (!/^(pipefail|errexit|nounset|xtrace)$/.test(words[++at] ?? ''))
        return { unclear: `${name} has options that change how it reads` };
    } else if (/^-[euxlv]*c[euxl]*$/.test(word)) {
      const text = words[at + 1];
      if (text == null) return { unclear: `what ${name} runs is ${NOT_KNOWN}` };
      if (/^[-+]/.test(text)) return { unclear: `${name} has options before its text` };
      if (!listWords('bash sh dash').includes(name))
        return { unclear: `${name} reads its text differently from bash` };
      const login =
        isLogin || word.includes('l') ? { indirect: `${name} reads start files first` } : {};
      return {
        texts: [text],
        runs: at + 1,
        isPosix: listWords('sh dash').includes(name),
        ...login,
      };
    } else if (word === '--version' || word === '--help') return {};
    else if (!/^(-[euxvl]+|--login|--norc|--noprofile|-n)$/.test(word))
      return { unclear: `${name} has options that change how it reads` };
    else isLogin ||= word.includes('l') && word !== '--noprofile';
  }
  const script = words[at] === '--' ? words[at + 1] : words[at];
  if (script == null || script === '-' || isDevice(script))
    return { unclear: `${name} runs what it reads from its input` };
  return { indirect: `${name} runs a file` };
};

const evaluate = (words: Words): Meaning => {
  const at = words[1] === '--' ? 2 : 1;
  const texts = literal(words.slice(at));
  if (texts === null) return { unclear: `what eval runs is ${NOT_KNOWN}` };
  const text = texts.join(' ');
  return text.trim() === '' ? {} : { texts: [text], runs: at };
};

const source = (words: Words): Meaning => {
  const file = words[1] === '--' ? words[2] : words[1];
  if (file == null || isDevice(file)) return { unclear: `what ${words[0]} reads is ${NOT_KNOWN}` };
  return { indirect: `${words[0]} runs a file in this shell` };
};

const trap = (words: Words): Meaning => {
  const at = words[1] === '--' ? 2 : 1;
  const { [at]: text = '' } = words;
  if (text === '' || text === '-' || text === '-p' || text === '-l') return {};
  if (text === null) return { unclear: `what trap runs is ${NOT_KNOWN}` };
  return words.length <= at + 1 ? {} : { texts: [text], runs: at };
};

/** Options of `set -o` that change nothing in how a text is read. */
const SAFE_OPTIONS =
  /^(errexit|nounset|pipefail|xtrace|verbose|noglob|errtrace|functrace|noclobber|monitor)$/;

const set = (words: Words): Meaning => {
  const unclear = 'set changes how the shell reads';
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === '--' || word === '-') return {};
    if (word == null) return { unclear };
    if (!/^[-+]/.test(word)) return {}; // the rest are new arguments of the shell
    if (!/^[-+][abefhmuvxCET]*o?$/.test(word)) return { unclear };
    if (word.endsWith('o') && at + 1 < words.length && !SAFE_OPTIONS.test(words[++at] ?? ''))
      return { unclear };
  }
  return {};
};

/** The same for `shopt`. */
const SAFE_SHELL_OPTIONS =
  /^(-[suqp]+|globstar|nullglob|dotglob|failglob|nocasematch|inherit_errexit|huponexit|checkwinsize|histappend)$/;
const shopt = (words: Words): Meaning =>
  words.slice(1).every((word) => SAFE_SHELL_OPTIONS.test(word ?? ''))
    ? {}
    : { unclear: 'shopt changes how the shell reads' };

const hasOption = (words: Words, letters: RegExp): boolean =>
  words.slice(1).some((word) => word === null || letters.test(word));

/** A builtin that is unclear only with an option like this. */
const unclearWithOption = (words: Words, letters: RegExp): Meaning =>
  hasOption(words, letters) ? { unclear: `${words[0]} can change what commands mean` } : {};

/**
 * Builtins that take names of variables. A name may be a list element, whose subscript is
 * evaluated.
 */
const variableNames = (words: Words): Meaning => {
  const mayHoldSubscript = words.some(
    (word) => word === null || /\[/.test(word) || /^-[a-zA-Z]*[in]/.test(word),
  );
  const changesReading = words.some((word) => SHELL_VARIABLE.test(word ?? ''));
  return {
    ...(mayHoldSubscript || changesReading ? { evaluates: true as const } : {}),
    ...(words.includes(null)
      ? { indirect: `${words[0]} sets a variable that is named at run time` }
      : {}),
  };
};

/** Variables whose values the shell runs, or that change how it reads. */
const SHELL_VARIABLE =
  /^(BASH_\w+|BASHOPTS|GLOBIGNORE|SHELLOPTS|PS0|PS4|ENV|PROMPT_COMMAND|POSIXLY_CORRECT)\b/;
export const changesShell = (name: string): boolean => SHELL_VARIABLE.test(name);

const testsVariables = (words: Words): Meaning =>
  words.includes('-v') || words.includes('-R') ? { evaluates: true } : {};

const WATCH_VALUED = '-n -q --interval --equexit';
const WATCH_FLAGS = `
  -b -c -C -d -e -f -g -p -r -t -w -x --beep --color --no-color --differences --errexit --follow
  --chgexit --precise --no-rerun --no-title --no-wrap --exec`;

const watch = (words: Words): Meaning => {
  const valued = listWords(WATCH_VALUED);
  const flags = listWords(WATCH_FLAGS);
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) {
    if (word === '--') return { ...asText(words, at + 1, 'watch'), isPosix: true };
    const length = optionLength(word, valued, flags);
    if (length === null)
      return { unclear: `the option ${word} of watch is not known`, mayRun: at + 1 };
    at += length;
  }
  // with `-x` the words stay a command
  return hasOption(words.slice(0, at), /^(-\w*x|--exec$)/)
    ? { commands: [words.slice(at)], runs: at }
    : { ...asText(words, at, 'watch'), isPosix: true };
};

/** Whether a word is a name, or the beginning of one. */
const begins = (word: string | null | undefined, name: string): boolean =>
  /\w/.test(word ?? '') && name.startsWith(word ?? '');

/** `ip netns exec NAME COMMAND`; with `-all`, also written `--all`, there is no name. */
const ip = (words: Words): Meaning => {
  const exec = words.findIndex(
    (word, index) =>
      begins(word, 'exec') && ['netns', 'vrf'].some((object) => begins(words[index - 1], object)),
  );
  if (exec === -1) return {};
  const isForAll = words.slice(0, exec).some((word) => begins(word?.replace(/^--/, '-'), '-all'));
  const at = exec + (isForAll ? 1 : 2);
  return at < words.length ? { commands: [words.slice(at)], runs: at } : {};
};

const SHELL_NAME = /^(.*\/)?(ba|rba|da|z|k|mk|a|c|tc|fi|ya)?sh$/;

/**
 * A command somewhere behind `from`, after options of the runner. It begins at a shell that stands
 * there; without one each word with blanks in it counts as a shell text.
 */
const commandBehind = (words: Words, from: number): Meaning => {
  const rest = words.slice(from);
  const at = rest.findIndex((word) => SHELL_NAME.test(word ?? ''));
  const texts = rest.filter((word): word is string => /\s/.test((word ?? '').trim()));
  return {
    mayRun: from,
    ...(at === -1 ? { texts } : { commands: [rest.slice(at)] }),
  };
};

/** Commands of tmux that run others; each may be shortened down to what stands before `|`. */
const TMUX_RUNS = `
  new|-session new-w|indow neww| sp|lit-window splitw| respawn-p|ane respawnp| respawn-w|indow respawnw|
  ru|n-shell i|f-shell send|-keys display-po|pup popup| display-me|nu menu| pi|pe-pane pipep|
  bi|nd-key set-h|ook con|firm-before com|mand-prompt`;
const tmux = (words: Words): Meaning => {
  const names = listWords(TMUX_RUNS).map((name) => name.split('|'));
  const at = words.findIndex((word) =>
    names.some(
      ([short = '', rest]) => word?.startsWith(short) && `${short}${rest}`.startsWith(word),
    ),
  );
  if (words.some((word) => word?.includes('#('))) return { unclear: 'tmux runs what #(…) holds' };
  if (at !== -1) return { ...commandBehind(words, at + 1), runs: at + 1 };
  if (words.some((word) => /^so/.test(word ?? ''))) return { indirect: 'tmux runs a file' };
  const text = words.indexOf('-c') + 1; // without a command
  return text === 0 ? {} : { ...textsMeaning([words[text] ?? null], 'tmux'), runs: text };
};

const CONTAINER_RUNS = /^(run|exec|create)$/;
const container = (words: Words): Meaning => {
  const at = words.findIndex((word) => CONTAINER_RUNS.test(word ?? ''));
  if (at === -1) return {};
  // an argument with blanks reaches the program in the container as one word: it is no shell text
  const { texts: _, ...meaning } = commandBehind(words, at + 1);
  return meaning;
};

/** `nix-shell --run TEXT`, `nix shell --command WORDS…`. Without them a shell reads its input. */
const nix = (words: Words): Meaning => {
  const name = programName(words[0] ?? '');
  if (name === 'nix-shell') {
    // neither has a short form
    const texts = ['--run', '--command'].flatMap((option) => optionTexts(words, option, option));
    if (texts.length > 0) return { ...textsMeaning(texts, name), runs: words.length - 1 };
  }
  const at = words.findIndex((word) => word === '--command' || word === '-c') + 1;
  if (at > 0) return { commands: [words.slice(at)], runs: at };
  return name === 'nix-shell' || words.includes('shell') || words.includes('develop')
    ? { unclear: `${name} runs what it reads from its input` }
    : {};
};

/** Options with a value that is no shell text. */
const HYPERFINE_VALUED = `
  -w -r -m -M -n -u --warmup --runs --min-runs --max-runs --command-name --time-unit --style --sort
  --output --input --export-asciidoc --export-csv --export-json --export-markdown --export-orgmode
  --reference-name`;
const HYPERFINE_TEXTS =
  '-s|--setup -p|--prepare -c|--cleanup -C|--conclude --reference|--reference';
/** All of its operands are shell texts, and the values of `--prepare` and its like. */
const hyperfine = (words: Words): Meaning => {
  // parameters are put into the texts
  if (
    words.some((word) =>
      /^(-\w*[LP]|--parameter|(-\w*S|--shell)(?!=?(none|sh|bash)$))/.test(word ?? ''),
    )
  )
    return { unclear: `what hyperfine runs is ${NOT_KNOWN}`, mayRun: 1 };
  const valued = listWords(HYPERFINE_VALUED);
  const texts = listWords(HYPERFINE_TEXTS).flatMap((option) => {
    const [short = '', long = ''] = option.split('|');
    return optionTexts(words, short, long);
  });
  const operands = words.filter(
    (word, at) => at > 0 && !word?.startsWith('-') && !valued.includes(words[at - 1] ?? ''),
  );
  const meaning = textsMeaning([...texts, ...operands], 'hyperfine');
  return { ...meaning, runs: words.length - 1, isPosix: true };
};

const entr = (words: Words): Meaning => {
  let at = 1;
  while (words[at]?.startsWith('-')) at++;
  const takesText = words.slice(1, at).some((word) => (word ?? '').includes('s'));
  if (takesText) return { ...textsMeaning([words[at] ?? null], 'entr'), runs: at };
  return at < words.length ? { commands: [words.slice(at)], runs: at } : {};
};

/** A program that runs what it reads, unless it only lists or names a file. */
const readsInput = (words: Words): Meaning => {
  const name = programName(words[0] ?? '');
  if (words.some((word) => word === '-l' || word === '-V')) return {};
  const file = words.indexOf('-f') + 1;
  return file > 0 && !isDevice(words[file] ?? '/dev/stdin')
    ? { indirect: `${name} runs a file` }
    : { unclear: `${name} runs what it reads from its input` };
};

const expect = (words: Words): Meaning =>
  words.some((word) => word === null || /^-(\w*[ci]|$)/.test(word) || isDevice(word)) ||
  words.slice(1).every((word) => word?.startsWith('-'))
    ? { unclear: 'expect runs a script of another language' }
    : { indirect: 'expect runs a file' };

/** `xargs` of GNU, and `-J`, `-R` and `-S` of BSD. */
const XARGS = {
  valued: `
    -a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-args --max-chars --max-procs
    --process-slot-var`,
  flags: `
    -0 -e= -i= -l= -o -p -r -t -x --null --eof --replace --max-lines --open-tty --interactive
    --no-run-if-empty --verbose --show-limits --exit`,
};

/** Words from the input of `xargs` are null: in place of a text, or at the end. */
const xargs = (words: Words): Meaning => {
  const meaning = wrapped(words, XARGS);
  const { runs = words.length } = meaning;
  if (runs === words.length)
    return { ...meaning, commands: [['echo', null]], runs: Math.max(1, runs - 1) };
  const [valued, flags] = [listWords(XARGS.valued), listWords(XARGS.flags)];
  let command: Words = words.slice(runs);
  let end: Words = [null];
  let takesNumber = false; // with one, GNU forgets the text
  for (let at = 1; at < runs; at += optionLength(words[at] ?? '', valued, flags) ?? 1) {
    const word = words[at] ?? '';
    takesNumber ||= /^(-[0oprtx]*[Lln]|--max-[al])/.test(word);
    const value = /^(?:-[0oprtx]*[IiJ]|--rep[a-z]*=?)(.*)/s.exec(word)?.[1];
    if (value === undefined) continue;
    const text = value || (/[IJ]/.test(word) ? words[at + 1] : '{}');
    command = text == null ? command.map(() => null) : withPlaceholder(command, text);
    end = [];
  }
  return { ...meaning, commands: [[...command, ...(takesNumber ? [null] : end)]] };
};

const env = (words: Words): Meaning => {
  const meaning = wrapped(words, {
    valued: '-u --unset -C --chdir -a --argv0 -P',
    flags: `
      - -i -0 -v --ignore-environment --null --debug --block-signal --default-signal --ignore-signal
      --list-signal-handling`,
  });
  return words.slice(0, meaning.runs).some((word) => /^(-\w*S|--s)/.test(word ?? ''))
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
  const { runs: file = words.length } = wrapped(words, FLOCK);
  return /^(-c|--command)$/.test(words[file + 1] ?? '')
    ? { ...textsMeaning([words[file + 2] ?? null], 'flock'), runs: file + 2 }
    : wrapped(words, { ...FLOCK, before: 1 });
};

/** It passes its words to a shell as one text. */
const crossEnvShell = (words: Words): Meaning => {
  const meaning = wrapped(words, {});
  const { runs = words.length, unclear } = meaning;
  return unclear === undefined
    ? { ...asText(words, runs, 'cross-env-shell'), isPosix: true }
    : meaning;
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

const RUNUSER = {
  valued: '-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment',
  flags: '-f -l -m -p -P -T --fast --login --preserve-environment --pty --no-pty',
};

/** `runuser -u USER COMMAND` runs words; without `-u` it is `su`. */
const runuser = (words: Words): Meaning => {
  const end = words.indexOf('--');
  const options = end < 1 ? words : words.slice(0, end);
  const meaning = passesText(words);
  return meaning.texts === undefined && hasOption(options, /^(-[flmpPT]*u|--u)/)
    ? wrapped(words, RUNUSER)
    : meaning;
};

const MISE = {
  after: 'exec x',
  valued: '-C --cd -E --env -j --jobs',
  flags: '-q -v -y --quiet --verbose --yes',
  shell: 'always',
};

/** `mise exec TOOLS… -- COMMAND`; without a command it starts a shell. */
const mise = (words: Words): Meaning => {
  const meaning = wrapped(words, MISE);
  if (meaning.runs === undefined) return meaning;
  const at = words.indexOf('--') + 1;
  return at === 0 || at === words.length
    ? { ...meaning, unclear: `the shell of mise runs what it reads from its input` }
    : { ...meaning, commands: [words.slice(at)], runs: at };
};

/** `mapfile` and `readarray`. */
const linesToVariables = (words: Words): Meaning =>
  hasOption(words, /^-\w*C/)
    ? { unclear: `${words[0]} runs a command for each line` }
    : variableNames(words);

const SHELLS: Rows = {
  'sh bash dash zsh': { runs: shell, repository: 'script' },
  'ksh mksh ash rbash fish csh tcsh yash': { runs: shell },
  '. source': { runs: source, repository: 'script' },
  eval: { runs: evaluate },
  trap: { runs: trap },
  set: { runs: set },
  shopt: { runs: shopt },
  alias: { runs: (words) => unclearWithOption(words, /=/) },
  let: { runs: () => ({ evaluates: true }) },
  'enable bind': { runs: (words) => unclearWithOption(words, /./) },
  hash: { runs: (words) => unclearWithOption(words, /^-\w*p/) },
  complete: { runs: (words) => unclearWithOption(words, /^-\w*[CF]/) },
  compgen: { runs: (words) => unclearWithOption(words, /^-\w*[CFWP]/) },
  'mapfile readarray': { runs: linesToVariables },
  fc: { runs: () => ({ unclear: 'fc runs commands of the history' }) },
  'read unset declare typeset local export readonly getopts': { runs: variableNames },
  printf: {
    reads: 'always',
    runs: (words) => (/^-v/.test(words[1] ?? '-v') ? variableNames(words) : {}),
  },
  jobs: {
    runs: (words) =>
      hasOption(words, /^-\w*x/) ? wrapped(words, { flags: '-l -n -p -r -s -x' }) : {},
  },
  wait: {
    runs: (words) => (words.some((word) => /^-\w*p/.test(word ?? '')) ? variableNames(words) : {}),
  },
  test: { reads: 'always', runs: testsVariables },
  '[': { runs: testsVariables },
  'su script': { runs: passesText },
  runuser: { runs: runuser },
  'sg newgrp': {
    runs: ([name]) => ({ unclear: `${name} runs a text with the rights of a group` }),
  },
};

const WRAPPERS: Rows = {
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

const DOCKER_COMPOSE = `
  -d -q --detach --build --no-deps --force-recreate --remove-orphans --wait --quiet-pull --follow
  --tail --all --quiet`;
/** Harmless options of docker's subcommands. */
const DOCKER = new Map([
  ['build', '-t -q --tag --quiet --no-cache --pull --progress --platform --target'],
  ['ps', '-a -q -n -l -s --all --quiet --no-trunc --filter --format --last --latest --size'],
  ['logs', '-f -t -n --follow --timestamps --tail --since --until --details'],
  ['images', '-a -q --all --quiet --no-trunc --filter --format --digests'],
  ['compose', DOCKER_COMPOSE],
  ['pull', '-a -q --all-tags --quiet --platform'],
]);

const RUNNERS: Rows = {
  parallel: { runs: () => ({ unclear: 'parallel makes commands from its input' }) },
  watch: { runs: watch },
  // the dynamic linker starts the program that its words name
  'ld.so': {
    alsoNamed: /^ld(-linux|-musl)?[\w.-]*\.so(\.\d+)*$/,
    runs: {
      valued: `
        --library-path --inhibit-rpath --audit --preload --argv0 --glibc-hwcaps-mask
        --glibc-hwcaps-prepend`,
      flags: '--list --verify --inhibit-cache --list-tunables --list-diagnostics --help --version',
    },
  },
  ip: { runs: ip },
  tmux: { runs: tmux },
  screen: { runs: (words) => ({ ...commandBehind(words, 1), runs: 1 }) },
  docker: {
    runs: container,
    risky: `
      -v --volume --mount --privileged --device --pid --network --cap-add --security-opt --userns
      -H --host --config --entrypoint`,
    harmless: (subcommand) => DOCKER.get(subcommand),
  },
  'docker-compose': { runs: container, harmless: DOCKER_COMPOSE },
  'podman nerdctl': { runs: container },
  kubectl: {
    runs: container,
    harmless: `
      -n -A -o -l -w -f --namespace --all-namespaces --output --selector --watch --context --tail
      --since --follow --previous`,
  },
  'nix nix-shell': { runs: nix },
  hyperfine: { runs: hyperfine },
  entr: { runs: entr },
  'at batch': { runs: readsInput },
  expect: { runs: expect },
};

export const SHELL_PROGRAMS = [SHELLS, WRAPPERS, RUNNERS];
