/**
 * What a command runs beside itself: shell texts (`bash -c TEXT`), other commands (`sudo COMMAND`),
 * or something that its words do not show.
 *
 * From top to bottom: `commandMeaning`, which looks a program up in the tables below; shells and
 * builtins; programs that run others among much else (git, tmux, docker); wrappers, whose last
 * words are the command; `xargs` and `find`; and the names of bash's builtins.
 */

import { programName } from '../paths.js';

/** The words of a command, the program first; null is a word that is known only when it runs. */
export type Words = readonly (string | null)[];

/** What a command means beside its own words. */
export type Meaning = {
  /** Shell texts that it runs. */
  readonly texts?: readonly string[];
  /** Commands that it runs, as words. */
  readonly commands?: readonly Words[];
  /** Index of the word at which the first of them begins. */
  readonly runs?: number;
  /** Index of the word from which a command may stand, for rules that ask or deny. */
  readonly mayRun?: number;
  /** Why nobody can tell what it runs. */
  readonly unclear?: string;
  /** What it runs that stands in no text, such as a file; rules for its words still apply. */
  readonly indirect?: string;
  /** It evaluates names or arithmetic, which runs substitutions in the values of variables. */
  readonly evaluates?: true;
};

/** The special meaning of a command; empty for an ordinary one. */
export const commandMeaning = (words: Words): Meaning => {
  const [first] = words;
  if (first === undefined) return {};
  if (first === null) return { unclear: 'the program is named when it runs' };
  const name = programName(first);
  // it only looks a command up
  if (name === 'command' && /^-[pvV]*[vV]/.test(words[1] ?? '')) return {};
  if (name === 'xargs') {
    const inner = xargsCommand(words);
    // a null at the end of `inner` stands for its input, and is none of `words`
    return {
      commands: [inner],
      runs: Math.max(1, words.length - inner.length + (inner.at(-1) === null ? 1 : 0)),
    };
  }
  if (name === 'find' || name === 'fd' || name === 'fdfind') {
    const commands = findCommands(words);
    const runs =
      words.findIndex((word) => word !== null && /^(-exec|-ok|-x$|-X$|--exec)/.test(word)) + 1;
    return commands.length === 0 ? {} : { commands, runs };
  }
  if (name === 'env' && words.some((word) => word !== null && /^(-\w*S|--split-string)/.test(word)))
    return { unclear: 'env splits a text into words' };
  if (name === 'flock' && words.includes('-c')) return passesText(words);
  const at = findWrapped(words);
  if (at !== null) return { commands: [words.slice(at)], runs: at };
  const runner = LINKER.test(name) ? 'ld.so' : name;
  if (Object.hasOwn(programRunners, runner)) return programRunners[runner]?.(words) ?? {};
  return Object.hasOwn(shellPrograms, name) ? (shellPrograms[name]?.(words) ?? {}) : {};
};

/** The words, if all of them are known. */
const literal = (words: Words): readonly string[] | null => {
  const known = words.filter((word) => word !== null);
  return known.length === words.length ? known : null;
};

/** The end of a sentence about something that no word shows. */
const NOT_KNOWN = 'made when it runs';

// ---- Shells, builtins and programs that take a shell text ----

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
const unclearWithOption =
  (letters: RegExp) =>
  (words: Words): Meaning =>
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

/** `su -c`, `script -c`, `flock FILE -c`: they pass a text to a shell. */
const passesText = (words: Words): Meaning => {
  const index = words.findIndex((word) => word === '-c' || word === '--command');
  const name = words[0] ?? '';
  if (index < 0) return { unclear: `${name} runs what it reads from its input` };
  const text = words[index + 1];
  return text == null
    ? { unclear: `what ${name} runs is ${NOT_KNOWN}` }
    : { texts: [text], runs: index + 1 };
};

const watch = (words: Words): Meaning => {
  let at = 1;
  while (words[at]?.startsWith('-')) at += /^(-n|-q|--interval)$/.test(words[at] ?? '') ? 2 : 1;
  const known = literal(words.slice(at));
  if (known === null) return { unclear: `what watch runs is ${NOT_KNOWN}` };
  return known.length === 0 ? {} : { texts: [known.join(' ')], runs: at };
};

const unclearAs = (why: string) => (): Meaning => ({ unclear: why });

const SHELLS = 'sh bash dash zsh ksh mksh ash rbash fish csh tcsh yash'.split(' ');

/** Meanings by the name of the program. */
const shellPrograms: Readonly<Record<string, (words: Words) => Meaning>> = {
  '.': source,
  source,
  eval: evaluate,
  trap,
  set,
  shopt,
  let: () => ({ evaluates: true }),
  enable: unclearWithOption(/./),
  hash: unclearWithOption(/^-\w*p/),
  bind: unclearWithOption(/./),
  complete: unclearWithOption(/^-\w*[CF]/),
  compgen: unclearWithOption(/^-\w*[CFWP]/),
  mapfile: (words) =>
    hasOption(words, /^-\w*C/)
      ? { unclear: 'mapfile runs a command for each line' }
      : namesVariables(words),
  readarray: (words) =>
    hasOption(words, /^-\w*C/)
      ? { unclear: 'readarray runs a command for each line' }
      : namesVariables(words),
  fc: unclearAs('fc runs commands of the history'),
  parallel: unclearAs('parallel makes commands from its input'),
  read: namesVariables,
  printf: (words) => (words[1] === '-v' || words[1] === null ? namesVariables(words) : {}),
  unset: namesVariables,
  declare: namesVariables,
  typeset: namesVariables,
  local: namesVariables,
  export: namesVariables,
  readonly: namesVariables,
  getopts: namesVariables,
  test: testsVariables,
  '[': testsVariables,
  su: passesText,
  runuser: passesText,
  script: passesText,
  watch,
  ...Object.fromEntries(SHELLS.map((name) => [name, shell])),
};

// ---- Programs that run others among much else: rules that ask or deny see those, too ----

const literalText = (words: Words): string | null => literal(words)?.join(' ') ?? null;

/** The words from `runs` on as one shell text. */
const asText = (words: Words, runs: number, name: string): Meaning => {
  const rest = words.slice(runs);
  if (rest.length === 0) return {};
  const text = literalText(rest);
  return text === null ? { unclear: `what ${name} runs is ${NOT_KNOWN}` } : { texts: [text], runs };
};

/** Options of git itself whose value is the next word. */
const GIT_VALUED = [
  '-C',
  '-c',
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--exec-path',
  '--config-env',
];
/** Settings of git whose value is a command. */
const GIT_PROGRAMS =
  /^(alias\.[^=]+|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|diff\.external|(diff|merge|filter|difftool|mergetool|browser|man|trailer|credential|gpg|pager|guitool|tar)\.[^=]*|remote\.[^=]*\.(uploadpack|receivepack|vcs)|uploadpack\.packobjectshook)=/i;

type GitWords = {
  /** The values of `-c`. */
  readonly settings: readonly string[];
  /** Index of the subcommand. */
  readonly at: number;
  readonly unclear?: string;
};

/** Reads what stands between `git` and its subcommand. */
const readGitOptions = (words: Words): GitWords => {
  const settings: string[] = [];
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) {
    const value = words[at + 1];
    if (/^--config-env\b/.test(word))
      return { settings, at, unclear: 'git takes a setting from the environment' };
    if (word === '-c' && value === null)
      return { settings, at, unclear: `a setting of git is ${NOT_KNOWN}` };
    if (word === '-c' && value !== undefined && value !== null) settings.push(value);
    at += GIT_VALUED.includes(word) ? 2 : 1;
  }
  return { settings, at };
};

/**
 * The values of an option that takes a command: `-x TEXT`, `-xTEXT`, `--exec=TEXT`. `from`: index
 * of the first word that may be it.
 */
const optionTexts = (
  words: Words,
  from: number,
  short: string,
  long: string,
): readonly (string | null)[] =>
  words.flatMap((word, index) => {
    if (index < from || word === null) return [];
    if (word === short || word === long) return [words[index + 1] ?? null];
    if (word.startsWith(`${long}=`)) return [word.slice(long.length + 1)];
    return word.startsWith(short) && !word.startsWith('--') ? [word.slice(short.length)] : [];
  });

/** The meaning of texts; null among them is a text that is not known. */
const textsMeaning = (texts: readonly (string | null)[], name: string): Meaning => {
  const known = texts.filter((text) => text !== null);
  if (known.length < texts.length) return { unclear: `what ${name} runs is ${NOT_KNOWN}` };
  return known.length === 0 ? {} : { texts: known };
};

/** The command that an alias on the command line stands for: `git -c alias.p=push p`. */
const aliasMeaning = (words: Words, { settings, at }: GitWords): Meaning => {
  const name = words[at];
  const prefix = `alias.${name ?? ''}=`.toLowerCase();
  const value = settings
    .findLast((setting) => setting.toLowerCase().startsWith(prefix))
    ?.slice(prefix.length);
  if (value === undefined) return {};
  const rest = words.slice(at + 1);
  if (!value.startsWith('!')) return { commands: [['git', ...value.trim().split(/\s+/), ...rest]] };
  const more = literalText(rest);
  return more === null
    ? { unclear: `what git runs is ${NOT_KNOWN}` }
    : { texts: [`${value.slice(1)} ${more}`] };
};

/** Subcommands that run commands; `at`: the index of the subcommand. */
const GIT_RUNNERS: Readonly<Record<string, (words: Words, at: number) => Meaning>> = {
  submodule: (words, at) => {
    const each = words.indexOf('foreach', at);
    if (each < 0) return {};
    let from = each + 1;
    while (words[from]?.startsWith('-')) from++;
    return asText(words, from, 'git submodule foreach');
  },
  bisect: (words, at) =>
    words[at + 1] === 'run' && words.length > at + 2
      ? { commands: [words.slice(at + 2)], runs: at + 2 }
      : {},
  rebase: (words, at) => textsMeaning(optionTexts(words, at, '-x', '--exec'), 'git rebase'),
  difftool: (words, at) => textsMeaning(optionTexts(words, at, '-x', '--extcmd'), 'git difftool'),
  'for-each-repo': (words, at) => ({
    commands: [['git', ...words.slice(at + 1).filter((word) => !word?.startsWith('--'))]],
  }),
};

const git = (words: Words): Meaning => {
  const read = readGitOptions(words);
  if (read.unclear !== undefined) return { unclear: read.unclear };
  const alias = aliasMeaning(words, read);
  const subcommand = words[read.at] ?? '';
  const runner = Object.hasOwn(GIT_RUNNERS, subcommand) ? GIT_RUNNERS[subcommand] : undefined;
  const run = runner?.(words, read.at) ?? {};
  const programs = read.settings.flatMap((setting) =>
    GIT_PROGRAMS.test(setting) && !/^alias\./i.test(setting)
      ? [setting.slice(setting.indexOf('=') + 1).replace(/^!/, '')]
      : [],
  );
  const texts = [
    ...(alias.texts ?? []),
    ...(run.texts ?? []),
    ...programs.filter((text) => text.trim() !== ''),
  ];
  const commands = [...(alias.commands ?? []), ...(run.commands ?? [])];
  const unclear = alias.unclear ?? run.unclear;
  return {
    ...(texts.length === 0 ? {} : { texts }),
    ...(commands.length === 0 ? {} : { commands }),
    ...(run.runs === undefined ? {} : { runs: run.runs }),
    ...(unclear === undefined ? {} : { unclear }),
  };
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

/** Meanings by the name of the program. */
const programRunners: Readonly<Record<string, (words: Words) => Meaning>> = {
  git,
  'ld.so': linker,
  ip,
  tmux,
  screen: (words) => ({ ...commandBehind(words, 1), runs: 1 }),
  docker: container,
  podman: container,
  nerdctl: container,
  'docker-compose': container,
  kubectl: container,
  nix,
  'nix-shell': nix,
  hyperfine,
  entr,
  at: readsInput,
  batch: readsInput,
  expect,
};

const LINKER = /^ld(-linux|-musl)?[\w.-]*\.so(\.\d+)*$/;

// ---- Wrappers: programs whose last words are another command ----

type Wrapper = {
  /** Options whose value is the next word. */
  readonly valued?: readonly string[];
  /** Words before the command, besides options. */
  readonly before?: number;
  /** The command must follow one of these words. */
  readonly after?: readonly string[];
};

/** Nothing but options without values stands before the command. */
const plain: Wrapper = {};
const wrappers: Readonly<Record<string, Wrapper>> = {
  builtin: plain,
  bundle: { after: ['exec'] },
  bunx: plain,
  busybox: plain,
  caffeinate: { valued: ['-t', '-w'] },
  chronic: plain,
  chroot: { before: 1 },
  chrt: { before: 1 },
  command: plain,
  'cross-env': plain,
  'cross-env-shell': plain,
  'dbus-run-session': plain,
  direnv: { after: ['exec'], before: 1 },
  doas: { valued: ['-u', '-C', '-a'] },
  env: { valued: ['-u', '--unset', '-C', '--chdir'] },
  exec: { valued: ['-a'] },
  fakeroot: plain,
  firejail: plain,
  flock: { valued: ['-w', '-E', '--timeout', '--conflict-exit-code'], before: 1 },
  gtimeout: { valued: ['-s', '-k', '--signal', '--kill-after'], before: 1 },
  ionice: { valued: ['-c', '-n', '--class', '--classdata'] },
  linux32: plain,
  linux64: plain,
  ltrace: { valued: ['-e', '-o', '-n', '-s', '-u'] },
  mise: { after: ['exec', 'x'] },
  nice: { valued: ['-n', '--adjustment'] },
  nohup: plain,
  npm: { after: ['exec', 'x'], valued: ['-p', '--package', '-w', '--workspace', '--prefix'] },
  npx: { valued: ['-p', '--package', '-w', '--workspace'] },
  numactl: plain,
  nsenter: { valued: ['-t', '-S', '-G'] },
  pipenv: { after: ['run'] },
  pipx: { after: ['run'] },
  pkexec: { valued: ['--user'] },
  pnpm: { after: ['exec', 'dlx'] },
  pnpx: plain,
  poetry: { after: ['run'] },
  proxychains: plain,
  proxychains4: plain,
  rlwrap: plain,
  setarch: plain,
  setpriv: plain,
  setsid: plain,
  stdbuf: { valued: ['-i', '-o', '-e'] },
  strace: { valued: ['-e', '-o', '-s', '-u', '-E', '-P', '-a', '-O', '-S'] },
  sudo: {
    valued: [
      '-u',
      '-g',
      '-h',
      '-p',
      '-C',
      '-r',
      '-t',
      '-T',
      '-U',
      '-D',
      '-R',
      '--user',
      '--group',
      '--chdir',
    ],
  },
  'systemd-run': { valued: ['-p', '-u', '-E', '--unit', '--property'] },
  'systemd-inhibit': plain,
  taskset: { before: 1 },
  time: { valued: ['-f', '-o', '--format', '--output'] },
  timeout: { valued: ['-s', '-k', '--signal', '--kill-after'], before: 1 },
  torsocks: plain,
  toybox: plain,
  trickle: { valued: ['-d', '-u'] },
  tsocks: plain,
  unbuffer: plain,
  unshare: plain,
  uv: { after: ['run'], valued: ['--with', '-p', '--python'] },
  uvx: { valued: ['--from', '--with', '-p', '--python'] },
  valgrind: plain,
  'xvfb-run': { valued: ['-n', '-s', '-e', '-f', '-p', '-w'] },
  yarn: { after: ['exec', 'dlx', 'run'] },
};

/** Index of the first word from `from` on that is neither an option nor `NAME=value`. */
const skipOptions = (words: Words, from: number, valued: readonly string[]): number => {
  let at = from;
  for (;;) {
    const word = words[at];
    if (word === '--') return at + 1;
    if (word == null) return at;
    if (word.startsWith('-') && word !== '-') at += valued.includes(word) ? 2 : 1;
    else if (/^[A-Za-z_]\w*=/.test(word)) at++;
    else return at;
  }
};

/**
 * Index of the word at which the wrapped command begins; null if the words run no other command.
 */
const findWrapped = (words: Words): number | null => {
  const name = programName(words[0] ?? '');
  const wrapper = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined;
  if (wrapper === undefined) return null;
  const { valued = [], before = 0, after } = wrapper;
  let at = skipOptions(words, 1, valued);
  if (after !== undefined) {
    const next = words[at];
    if (next == null || !after.includes(next)) return null;
    at = skipOptions(words, at + 1, valued);
  }
  at = skipOptions(words, at + before, valued);
  return at < words.length ? at : null;
};

// ---- xargs and find ----

/**
 * Replaces words that contain the placeholder by null, since their value is known only at run time.
 */
const withPlaceholder = (words: Words, placeholder: string): Words =>
  words.map((word) => (word?.includes(placeholder) ? null : word));

const XARGS_VALUED = [
  '-a',
  '-d',
  '-E',
  '-e',
  '-L',
  '-l',
  '-n',
  '-P',
  '-s',
  '--max-args',
  '--max-procs',
  '--delimiter',
  '--arg-file',
  '--max-lines',
];

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
    else if (XARGS_VALUED.includes(word)) at++;
  }
  if (words[at] === '--') at++;
  const command = words.slice(at);
  if (command.length === 0) return ['echo', null];
  return placeholder === null ? [...command, null] : withPlaceholder(command, placeholder);
};

/** The commands after `-exec` and similar options of `find` and `fd`. */
const findCommands = (words: Words): readonly Words[] => {
  const commands: Words[] = [];
  for (const [index, word] of words.entries()) {
    if (word === null || !/^(-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(word))
      continue;
    if (/^-[xX]$/.test(word) && programName(words[0] ?? '') === 'find') continue;
    const rest = words.slice(index + 1);
    const end = rest.findIndex((one) => one === ';' || one === '+');
    const command = end < 0 ? rest : rest.slice(0, end);
    commands.push([...withPlaceholder(command, '{}')]);
  }
  return commands;
};

// ---- Builtins ----

/** Builtins of bash: no program is searched for them. */
const BUILTINS = new Set(
  (
    '. : [ alias bg bind break builtin caller cd command compgen complete compopt continue ' +
    'declare dirs disown echo enable eval exec exit export false fc fg getopts hash help ' +
    'history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly ' +
    'return set shift shopt source suspend test times trap true type typeset ulimit umask ' +
    'unalias unset wait'
  ).split(' '),
);

export const isBuiltin = (name: string): boolean => BUILTINS.has(name);
