/**
 * Rows of runners: programs that can run other commands beside what they do, such as tmux and
 * docker. Each has its own way to take them: as words, as a shell text, or from a file.
 *
 * From top to bottom: runners in the order of the table, then the table.
 */

import { listWords, programName } from '../paths.js';
import { withPlaceholder } from './files.js';
import {
  asText,
  hasWordLike,
  NOT_KNOWN,
  optionLength,
  optionTexts,
  textsAmong,
  textsMeaning,
} from './meanings.js';
import type { Meaning, Rows, Words } from './program.js';
import { isDevice } from './shells.js';

const WATCH_VALUED = '-n -q --interval --equexit';

const WATCH_FLAGS = `
  -b -c -C -d -e -f -g -p -r -t -w -x --beep --color --no-color --differences --errexit --follow
  --chgexit --precise --no-rerun --no-title --no-wrap --exec`;

const watch = (words: Words): Meaning => {
  const valued = listWords(WATCH_VALUED);
  const flags = listWords(WATCH_FLAGS);
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) {
    if (word === '--') {
      at += 1;
      break;
    }
    const length = optionLength(word, valued, flags);
    if (length === null)
      return { unclear: `the option ${word} of watch is not known`, mayStartAt: at + 1 };
    at += length;
  }
  // with `-x` the words stay a command
  return hasWordLike(words.slice(0, at), /^(-\w*x|--exec$)/)
    ? { commands: [words.slice(at)], startsAt: at }
    : asText(words, at, 'watch');
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
  return at < words.length ? { commands: [words.slice(at)], startsAt: at } : {};
};

const SHELL_NAME = /^(.*\/)?(ba|rba|da|z|k|mk|a|c|tc|fi|ya)?sh$/;

/**
 * A command somewhere behind `from`, after options of the runner. It may begin at a shell that
 * stands there, or be the name of something else; each word with blanks in it counts as a text.
 */
const commandBehind = (words: Words, from: number): Meaning => {
  const rest = words.slice(from);
  const at = rest.findIndex((word) => SHELL_NAME.test(word ?? ''));
  const texts = rest.filter((word): word is string => /\s/.test((word ?? '').trim()));
  return {
    mayStartAt: from,
    ...(texts.length > 0 ? { texts, isPosix: true } : {}),
    ...(at === -1 ? {} : { commands: [rest.slice(at)] }),
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
  if (at !== -1) return { ...commandBehind(words, at + 1), startsAt: at + 1 };
  if (words.some((word) => /^so/.test(word ?? ''))) return { indirect: 'tmux runs a file' };
  const text = words.indexOf('-c') + 1; // without a command
  return text === 0 ? {} : { ...textsMeaning([words[text] ?? null], 'tmux'), startsAt: text };
};

const CONTAINER_RUNS = /^(run|exec|create)$/;

const container = (words: Words): Meaning => {
  const at = words.findIndex((word) => CONTAINER_RUNS.test(word ?? ''));
  if (at === -1) return {};
  // an argument with blanks reaches the program in the container as one word: it is no shell text
  const { commands = [] } = commandBehind(words, at + 1);
  return { mayStartAt: at + 1, ...(commands.length > 0 ? { commands } : {}) };
};

/** `nix-shell --run TEXT`, `nix shell --command WORDS…`. Without them a shell reads its input. */
const nix = (words: Words): Meaning => {
  const name = programName(words[0] ?? '');
  if (name === 'nix-shell') {
    // neither has a short form
    const texts = ['--run', '--command'].flatMap((option) => optionTexts(words, option, option));
    // it always starts bash
    if (texts.length > 0) return { ...textsAmong(words, texts, name), isPosix: false };
  }
  const at = words.findIndex((word) => word === '--command' || word === '-c') + 1;
  if (at > 0) return { commands: [words.slice(at)], startsAt: at };
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
    return { unclear: `what hyperfine runs is ${NOT_KNOWN}`, mayStartAt: 1 };
  const valued = listWords(HYPERFINE_VALUED);
  const texts = listWords(HYPERFINE_TEXTS).flatMap((option) => {
    const [short = '', long = ''] = option.split('|');
    return optionTexts(words, short, long);
  });
  const operands = words.filter(
    (word, at) => at > 0 && !word?.startsWith('-') && !valued.includes(words[at - 1] ?? ''),
  );
  return textsAmong(words, [...texts, ...operands], 'hyperfine');
};

const entr = (words: Words): Meaning => {
  let at = 1;
  while (words[at]?.startsWith('-')) at++;
  const takesText = words.slice(1, at).some((word) => (word ?? '').includes('s'));
  if (takesText) return { ...textsMeaning([words[at] ?? null], 'entr'), startsAt: at };
  // `/_` stands for the file that has changed
  const command = withPlaceholder(words.slice(at), '/_');
  return at < words.length ? { commands: [command], startsAt: at } : {};
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

/** Options with which a container reaches more of the host, or a host elsewhere is asked. */
const CONTAINER_RISKS = `
  -v --volume --volumes-from --mount --privileged --device --pid --ipc --uts --cgroupns --network
  --cap-add --security-opt --userns -H --host --context --url --connection --remote --config
  --entrypoint`;
const COMPOSE_HARMLESS = `
  -d -q --detach --build --no-deps --force-recreate --remove-orphans --wait --quiet-pull --follow
  --tail --all --quiet`;
/** Harmless options of the subcommands of docker, podman and nerdctl. */
const CONTAINER_HARMLESS = new Map([
  ['build', '-t -q --tag --quiet --no-cache --pull --progress --platform --target'],
  ['ps', '-a -q -n -l -s --all --quiet --no-trunc --filter --format --last --latest --size'],
  ['logs', '-f -t -n --follow --timestamps --tail --since --until --details'],
  ['images', '-a -q --all --quiet --no-trunc --filter --format --digests'],
  ['compose', COMPOSE_HARMLESS],
  ['pull', '-a -q --all-tags --quiet --platform'],
]);
const KUBECTL_HARMLESS = `
  -n -A -o -l -w --namespace --all-namespaces --output --selector --watch --context --tail --since
  --follow --previous`;

export const RUNNERS: Rows = {
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
  screen: { runs: (words) => ({ ...commandBehind(words, 1), startsAt: 1 }) },
  'docker podman nerdctl': {
    runs: container,
    risky: CONTAINER_RISKS,
    harmless: (subcommand) => CONTAINER_HARMLESS.get(subcommand),
  },
  'docker-compose': { runs: container, risky: CONTAINER_RISKS, harmless: COMPOSE_HARMLESS },
  kubectl: {
    runs: container,
    // `-f` follows a log; for other subcommands it names the file that they obey
    harmless: (subcommand) => `${KUBECTL_HARMLESS}${subcommand === 'logs' ? ' -f' : ''}`,
  },
  'nix nix-shell': { runs: nix },
  hyperfine: { runs: hyperfine },
  entr: { runs: entr },
  'at batch': { runs: readsInput },
  expect: { runs: expect },
};
