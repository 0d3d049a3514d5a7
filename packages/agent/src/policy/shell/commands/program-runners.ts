import { baseName, type Meaning, type Words } from './wrapper-commands.js';

/**
 * Programs that run other commands among much else: git, terminals, containers, timers. What their words show is added
 * to the commands of the text, so that rules which ask or deny see it.
 */

const hasUnknown = (words: Words): boolean => words.includes(null);

const literalText = (words: Words): string | null => (hasUnknown(words) ? null : words.join(' '));

const NOT_KNOWN = 'made when it runs';

/** The words as one shell text. */
const asText = (words: Words, runs: number, name: string): Meaning => {
  const rest = words.slice(runs);
  if (rest.length === 0) return {};
  const text = literalText(rest);
  return text === null ? { unclear: `what ${name} runs is ${NOT_KNOWN}` } : { texts: [text], runs };
};

const GIT_VALUED = ['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--exec-path', '--config-env'];
/** Settings of git whose value is a command. */
const GIT_PROGRAMS =
  /^(alias\.[^=]+|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|diff\.external|(diff|merge|filter|difftool|mergetool|browser|man|trailer|credential|gpg|pager|guitool|tar)\.[^=]*|remote\.[^=]*\.(uploadpack|receivepack|vcs)|uploadpack\.packobjectshook)=/i;

type GitWords = { readonly settings: readonly string[]; readonly at: number; readonly unclear?: string };

/** The values of `-c` before git's subcommand, and where that stands. */
const readGitOptions = (words: Words): GitWords => {
  const settings: string[] = [];
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) {
    const value = words[at + 1];
    if (/^--config-env\b/.test(word))
      return { settings, at, unclear: 'git takes a setting from the environment' };
    if (word === '-c' && value === null) return { settings, at, unclear: `a setting of git is ${NOT_KNOWN}` };
    if (word === '-c' && value !== undefined && value !== null) settings.push(value);
    at += GIT_VALUED.includes(word) ? 2 : 1;
  }
  return { settings, at };
};

/** The value of an option that takes a command: `-x TEXT`, `-xTEXT`, `--exec=TEXT`. */
const optionTexts = (words: Words, from: number, short: string, long: string): readonly (string | null)[] =>
  words.flatMap((word, index) => {
    if (index < from || word === null) return [];
    if (word === short || word === long) return [words[index + 1] ?? null];
    if (word.startsWith(`${long}=`)) return [word.slice(long.length + 1)];
    return word.startsWith(short) && !word.startsWith('--') ? [word.slice(short.length)] : [];
  });

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

const GIT_RUNNERS: Readonly<Record<string, (words: Words, at: number) => Meaning>> = {
  submodule: (words, at) => {
    const each = words.indexOf('foreach', at);
    if (each < 0) return {};
    let from = each + 1;
    while (words[from]?.startsWith('-')) from++;
    return asText(words, from, 'git submodule foreach');
  },
  bisect: (words, at) =>
    words[at + 1] === 'run' && words.length > at + 2 ? { commands: [words.slice(at + 2)], runs: at + 2 } : {},
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
    at += /^--(library-path|inhibit-rpath|audit|preload|argv0|glibc-hwcaps-\w+)$/.test(words[at] ?? '')
      ? 2
      : 1;
  return at < words.length ? { commands: [words.slice(at)], runs: at } : {};
};

/** `ip netns exec NAME COMMAND` */
const ip = (words: Words): Meaning => {
  const at = words.indexOf('exec') + 2;
  const runs = at > 2 && at < words.length && words.some((word) => word === 'netns' || word === 'vrf');
  return runs ? { commands: [words.slice(at)], runs: at } : {};
};

const SHELL = /^(.*\/)?(ba|da|z|k|mk|a)?sh$/;

/**
 * A command that stands somewhere behind `from`, with options of the runner in between. A shell there runs its text;
 * single words that hold several are shell texts, too.
 */
const somewhere = (words: Words, from: number): Meaning => {
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
  return at < 0 ? {} : { ...somewhere(words, at + 1), runs: at + 1 };
};

const CONTAINER_RUNS = /^(run|exec|create)$/;
const container = (words: Words): Meaning => {
  const at = words.findIndex((word, index) => index > 0 && word !== null && CONTAINER_RUNS.test(word));
  if (at < 0) return {};
  const { texts: _, ...meaning } = somewhere(words, at + 1);
  return meaning;
};

/** `--run TEXT`, `--command WORDS…` */
const nix = (words: Words): Meaning => {
  const text = optionTexts(words, 1, '--run', '--run');
  if (text.length > 0) return { ...textsMeaning(text, 'nix-shell'), runs: words.length - 1 };
  const at = words.findIndex((word) => word === '--command' || word === '-c') + 1;
  if (at === 0) return {};
  return baseName(words[0] ?? '') === 'nix-shell'
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
      word === null ? null : (/^--(?:prepare|cleanup|setup|conclude)=(.*)$/s.exec(word)?.[1] ?? null);
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
  const name = baseName(words[0] ?? '');
  if (words.some((word) => word === '-l' || word === '-V')) return {};
  return words.includes('-f')
    ? { indirect: `${name} runs a file` }
    : { unclear: `${name} runs what it reads from its input` };
};

const expect = (words: Words): Meaning =>
  words.slice(1).some((word) => word === null || /^-\w*[ci]/.test(word)) || words.length === 1
    ? { unclear: 'expect runs a script of another language' }
    : { indirect: 'expect runs a file' };

/** What programs run that run others among much else, by the program's name. */
export const programRunners: Readonly<Record<string, (words: Words) => Meaning>> = {
  git,
  'ld.so': linker,
  ip,
  tmux,
  screen: (words) => ({ ...somewhere(words, 1), runs: 1 }),
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

/** The name under which a program is looked up here: all dynamic linkers are `ld.so`. */
export const runnerName = (name: string): string => (LINKER.test(name) ? 'ld.so' : name);
