/**
 * Rows of shells and builtins, of wrappers, whose last words are another command, and of programs
 * that run others among much else (tmux, docker).
 */

import { programName, wordSet } from '../paths.js';
import { withPlaceholder } from './files.js';
import { literal, NOT_KNOWN, optionTexts, passesText, textsMeaning, wrapped } from './meanings.js';
import { anyWord, type Meaning, type Rows, type Words } from './program.js';

/**
 * `bash -c TEXT`. What a shell reads from its input, or from a file named at run time, is unclear.
 */
const shell = (words: Words): Meaning => {
  const name = programName(words[0] ?? '');
  let at = 1;
  for (; at < words.length; at++) {
    const word = words[at];
    if (word == null) return { unclear: `what ${name} runs is ${NOT_KNOWN}` };
    if (!/^[-+]/.test(word) || word === '-' || word === '--') break;
    if (/^-[euxlv]*o$/.test(word)) {
      if (!/^(pipefail|errexit|nounset|xtrace)$/.test(words[++at] ?? ''))
        return { unclear: `${name} is given options that change how it reads` };
    } else if (/^-[euxlv]*c[euxl]*$/.test(word)) {
      const text = words[at + 1];
      if (text == null) return { unclear: `what ${name} runs is ${NOT_KNOWN}` };
      if (!/^(bash|sh|dash)$/.test(name))
        return { unclear: `${name} reads its text differently from bash` };
      const login = word.includes('l') ? { indirect: `${name} reads start files first` } : {};
      return { texts: [text], runs: at + 1, ...login };
    } else if (/^(--version|--help)$/.test(word)) return {};
    else if (!/^(-[euxvl]+|--login|--norc|--noprofile|-n)$/.test(word))
      return { unclear: `${name} is given options that change how it reads` };
  }
  const script = words[at];
  if (script == null || script === '-' || /^\/(dev|proc)\//.test(script))
    return { unclear: `${name} runs what it reads from its input` };
  return { indirect: `${name} runs a file` };
};

const evaluate = (words: Words): Meaning => {
  const known = literal(words.slice(1));
  if (known === null) return { unclear: `what eval runs is ${NOT_KNOWN}` };
  const text = known.join(' ');
  return text.trim() === '' ? {} : { texts: [text], runs: 1 };
};

const source = (words: Words): Meaning => {
  const file = words[1];
  if (file == null || /^\/(dev|proc)\//.test(file))
    return { unclear: `what ${words[0]} reads is ${NOT_KNOWN}` };
  return { indirect: `${words[0]} runs a file in this shell` };
};

const trap = (words: Words): Meaning => {
  const text = words[1] === '--' ? words[2] : words[1];
  if (text === undefined || text === '' || text === '-' || text === '-p' || text === '-l')
    return {};
  if (text === null) return { unclear: `what trap runs is ${NOT_KNOWN}` };
  return words.length <= (words[1] === '--' ? 3 : 2) ? {} : { texts: [text], runs: 1 };
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
  /^(-[suqp]+|globstar|nullglob|dotglob|failglob|nocaseglob|nocasematch|inherit_errexit|lastpipe|huponexit|checkwinsize|histappend)$/;
const shopt = (words: Words): Meaning =>
  words.slice(1).every((word) => word !== null && SAFE_SHELL_OPTIONS.test(word))
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
const namesVariables = (words: Words): Meaning => {
  const mayHoldSubscript = words
    .slice(1)
    .some((word) => word === null || /\[/.test(word) || /^-[a-zA-Z]*[in]/.test(word));
  const names = words.slice(1).some((word) => word !== null && SHELL_VARIABLE.test(word));
  return {
    ...(mayHoldSubscript || names ? { evaluates: true as const } : {}),
    ...(words.slice(1).includes(null)
      ? { indirect: `${words[0]} sets a variable that is named at run time` }
      : {}),
  };
};

/** Variables whose values the shell runs, or that change how it reads. */
const SHELL_VARIABLE =
  /^(BASH_\w+|BASHOPTS|SHELLOPTS|PS0|PS4|ENV|PROMPT_COMMAND|POSIXLY_CORRECT)\b/;
export const changesShell = (name: string): boolean => SHELL_VARIABLE.test(name);

const testsVariables = (words: Words): Meaning =>
  words.includes('-v') || words.includes('-R') ? { evaluates: true } : {};

const watch = (words: Words): Meaning => {
  let at = 1;
  while (words[at]?.startsWith('-')) at += /^(-n|-q|--interval)$/.test(words[at] ?? '') ? 2 : 1;
  const known = literal(words.slice(at));
  if (known === null) return { unclear: `what watch runs is ${NOT_KNOWN}` };
  return known.length === 0 ? {} : { texts: [known.join(' ')], runs: at };
};

/** The dynamic linker starts the program that it is given. */
const linker = (words: Words): Meaning => {
  let at = 1;
  while (words[at]?.startsWith('-'))
    at += /^--(library-path|inhibit-rpath|audit|preload|argv0|glibc-hwcaps-\w+)$/.test(
      words[at] ?? '',
    )
      ? 2
      : 1;
  return at < words.length ? { commands: [words.slice(at)], runs: at } : {};
};

/** `ip netns exec NAME COMMAND` */
const ip = (words: Words): Meaning => {
  const at = words.indexOf('exec') + 2;
  const isRunner =
    at > 2 && at < words.length && words.some((word) => word === 'netns' || word === 'vrf');
  return isRunner ? { commands: [words.slice(at)], runs: at } : {};
};

const SHELL = /^(.*\/)?(ba|da|z|k|mk|a)?sh$/;

/**
 * A command that stands somewhere behind `from`, with options of the runner in between. A shell
 * there runs its text; single words that hold several are shell texts, too.
 */
const commandBehind = (words: Words, from: number): Meaning => {
  const rest = words.slice(from);
  const shell = rest.findIndex((word) => word !== null && SHELL.test(word));
  const texts = rest.filter((word): word is string => word !== null && /\S\s+\S/.test(word));
  return {
    mayRun: from,
    ...(shell < 0 ? { texts } : { commands: [rest.slice(shell)] }),
  };
};

const TMUX_RUNS =
  /^(new|new-session|neww|new-window|splitw|split-window|respawn\S*|run|run-shell|if|if-shell|send|send-keys|display-popup|popup|pipep|pipe-pane)$/;
const tmux = (words: Words): Meaning => {
  const at = words.findIndex((word) => word !== null && TMUX_RUNS.test(word));
  return at < 0 ? {} : { ...commandBehind(words, at + 1), runs: at + 1 };
};

const CONTAINER_RUNS = /^(run|exec|create)$/;
const container = (words: Words): Meaning => {
  const at = words.findIndex(
    (word, index) => index > 0 && word !== null && CONTAINER_RUNS.test(word),
  );
  if (at < 0) return {};
  // an argument with blanks reaches the program in the container as one word: it is no shell text
  const { texts: _, ...meaning } = commandBehind(words, at + 1);
  return meaning;
};

/** `--run TEXT`, `--command WORDS…` */
const nix = (words: Words): Meaning => {
  const text = optionTexts(words, 1, '--run', '--run'); // it has no short form
  if (text.length > 0) return { ...textsMeaning(text, 'nix-shell'), runs: words.length - 1 };
  const at = words.findIndex((word) => word === '--command' || word === '-c') + 1;
  if (at === 0) return {};
  return programName(words[0] ?? '') === 'nix-shell'
    ? { ...textsMeaning([words[at] ?? null], 'nix-shell'), runs: at }
    : { commands: [words.slice(at)], runs: at };
};

const HYPERFINE_VALUED =
  /^(-w|-r|-m|-M|-P|-D|-L|-n|-S|-u|-s|-N|--warmup|--runs|--min-runs|--max-runs|--parameter-scan|--parameter-list|--parameter-step-size|--command-name|--shell|--time-unit|--style|--sort|--output|--input|--export-\S+)$/;
/** All of its operands, and the values of `--prepare` and its like, are shell texts. */
const hyperfine = (words: Words): Meaning => {
  const texts: (string | null)[] = [];
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? null;
    const value =
      word === null
        ? null
        : (/^--(?:prepare|cleanup|setup|conclude)=(.*)$/s.exec(word)?.[1] ?? null);
    if (value !== null) texts.push(value);
    else if (word !== null && HYPERFINE_VALUED.test(word)) at++;
    else if (word === null || !word.startsWith('-')) texts.push(word);
  }
  return { ...textsMeaning(texts, 'hyperfine'), runs: words.length - 1 };
};

const entr = (words: Words): Meaning => {
  let at = 1;
  while (words[at]?.startsWith('-')) at++;
  const takesText = words.slice(1, at).some((word) => word?.includes('s'));
  if (takesText) return { ...textsMeaning([words[at] ?? null], 'entr'), runs: at };
  return at < words.length ? { commands: [words.slice(at)], runs: at } : {};
};

/** A program that runs what it reads, unless it only lists or is given a file. */
const readsInput = (words: Words): Meaning => {
  const name = programName(words[0] ?? '');
  if (words.some((word) => word === '-l' || word === '-V')) return {};
  return words.includes('-f')
    ? { indirect: `${name} runs a file` }
    : { unclear: `${name} runs what it reads from its input` };
};

const expect = (words: Words): Meaning =>
  words.slice(1).some((word) => word === null || /^-\w*[ci]/.test(word)) || words.length === 1
    ? { unclear: 'expect runs a script of another language' }
    : { indirect: 'expect runs a file' };

const XARGS_VALUED = wordSet(
  '-a -d -E -e -L -l -n -P -s --max-args --max-procs --delimiter --arg-file --max-lines',
);

/** The command that `xargs` runs. Words from its input are null. */
const xargsCommand = (words: Words): Words => {
  let placeholder: string | null = null;
  let at = 1;
  for (; at < words.length; at++) {
    const word = words[at];
    if (word == null || !word.startsWith('-') || word === '--') break;
    const replace = /^(?:-I|-i|--replace=?|-J)(.*)$/s.exec(word);
    if (replace !== null)
      placeholder = replace[1] || (/^-[IJ]$/.test(word) ? (words[++at] ?? '{}') : '{}');
    else if (XARGS_VALUED.has(word)) at++;
  }
  if (words[at] === '--') at++;
  const command = words.slice(at);
  if (command.length === 0) return ['echo', null];
  return placeholder === null ? [...command, null] : withPlaceholder(command, placeholder);
};

const xargs = (words: Words): Meaning => {
  const inner = xargsCommand(words);
  // a null at the end of `inner` stands for its input, and is none of `words`
  return {
    commands: [inner],
    runs: Math.max(1, words.length - inner.length + (inner.at(-1) === null ? 1 : 0)),
  };
};

const env = (words: Words): Meaning =>
  words.some((word) => word !== null && /^(-\w*S|--split-string)/.test(word))
    ? { unclear: 'env splits a text into words' }
    : wrapped(words, { valued: '-u --unset -C --chdir' });

const flock = (words: Words): Meaning =>
  words.includes('-c')
    ? passesText(words)
    : wrapped(words, { valued: '-w -E --timeout --conflict-exit-code', before: 1 });

/** `command -v NAME` only looks a command up. */
const command = (words: Words): Meaning =>
  /^-[pvV]*[vV]/.test(words[1] ?? '') ? {} : wrapped(words, {});

/** `mapfile` and `readarray`. */
const linesToVariables = (words: Words): Meaning =>
  hasOption(words, /^-\w*C/)
    ? { unclear: `${words[0]} runs a command for each line` }
    : namesVariables(words);

const SHELLS: Rows = {
  'sh bash dash zsh': { runs: shell, repository: 'script' },
  'ksh mksh ash rbash fish csh tcsh yash': { runs: shell },
  '. source': { runs: source, repository: 'script' },
  eval: { runs: evaluate },
  trap: { runs: trap },
  set: { runs: set },
  shopt: { runs: shopt },
  let: { runs: () => ({ evaluates: true }) },
  'enable bind': { runs: (words) => unclearWithOption(words, /./) },
  hash: { runs: (words) => unclearWithOption(words, /^-\w*p/) },
  complete: { runs: (words) => unclearWithOption(words, /^-\w*[CF]/) },
  compgen: { runs: (words) => unclearWithOption(words, /^-\w*[CFWP]/) },
  'mapfile readarray': { runs: linesToVariables },
  fc: { runs: () => ({ unclear: 'fc runs commands of the history' }) },
  'read unset declare typeset local export readonly getopts': { runs: namesVariables },
  printf: {
    reads: 'always',
    runs: (words) => (words[1] === '-v' || words[1] === null ? namesVariables(words) : {}),
  },
  test: { reads: 'always', runs: testsVariables },
  '[': { runs: testsVariables },
  'su runuser script': { runs: passesText },
};

const WRAPPERS: Rows = {
  [`
      builtin busybox chronic cross-env cross-env-shell dbus-run-session fakeroot firejail linux32
      linux64 nohup numactl proxychains proxychains4 rlwrap setarch setpriv setsid shx
      systemd-inhibit torsocks toybox tsocks unbuffer unshare valgrind`]: {
    runs: {},
  },
  caffeinate: { runs: { valued: '-t -w' } },
  'chroot chrt taskset': { runs: { before: 1 } },
  command: { runs: command },
  direnv: { runs: { after: 'exec', before: 1 } },
  doas: { runs: { valued: '-u -C -a' } },
  env: { runs: env, risky: anyWord },
  exec: { runs: { valued: '-a' } },
  flock: { runs: flock },
  ionice: { runs: { valued: '-c -n --class --classdata' } },
  ltrace: { runs: { valued: '-e -o -n -s -u' } },
  mise: { runs: { after: 'exec x' } },
  nice: { runs: { valued: '-n --adjustment' } },
  nsenter: { runs: { valued: '-t -S -G' } },
  pkexec: { runs: { valued: '--user' } },
  stdbuf: { runs: { valued: '-i -o -e' } },
  strace: { runs: { valued: '-e -o -s -u -E -P -a -O -S' } },
  sudo: { runs: { valued: '-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir' } },
  'systemd-run': { runs: { valued: '-p -u -E --unit --property' } },
  time: { runs: { valued: '-f -o --format --output' } },
  'timeout gtimeout': { runs: { valued: '-s -k --signal --kill-after', before: 1 } },
  trickle: { runs: { valued: '-d -u' } },
  xargs: { runs: xargs, risky: anyWord },
  'xvfb-run': { runs: { valued: '-n -s -e -f -p -w' } },
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
  'ld.so': { alsoNamed: /^ld(-linux|-musl)?[\w.-]*\.so(\.\d+)*$/, runs: linker },
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
