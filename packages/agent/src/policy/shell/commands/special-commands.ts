import { programRunners, runnerName } from './program-runners.js';
import {
  baseName,
  findCommands,
  type Meaning,
  type Words,
  wrappedAt,
  xargsCommand,
} from './wrapper-commands.js';

/** Commands with a special meaning: those that run shell texts or other commands, or can't be judged. */

const literal = (words: Words): readonly string[] | null => {
  const known = words.filter((word) => word !== null);
  return known.length === words.length ? known : null;
};

const NOT_KNOWN = 'made when it runs';

/** `bash -c text`. A shell that reads its input, or a file named at run time, can't be judged. */
const shell = (words: Words): Meaning => {
  const name = baseName(words[0] ?? '');
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
      if (!/^(bash|sh|dash)$/.test(name)) return { unclear: `${name} reads its text differently from bash` };
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
  if (text === undefined || text === '' || text === '-' || text === '-p' || text === '-l') return {};
  if (text === null) return { unclear: `what trap runs is ${NOT_KNOWN}` };
  return words.length <= (words[1] === '--' ? 3 : 2) ? {} : { texts: [text], runs: 1 };
};

const SAFE_OPTIONS =
  /^(errexit|nounset|pipefail|xtrace|verbose|noglob|errtrace|functrace|noclobber|monitor)$/;

const set = (words: Words): Meaning => {
  const unclear = 'set changes how the shell reads';
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === '--' || word === '-') return {};
    if (word == null) return { unclear };
    if (!/^[-+]/.test(word)) return {};
    if (!/^[-+][abefhmuvxCET]*o?$/.test(word)) return { unclear };
    if (word.endsWith('o') && at + 1 < words.length && !SAFE_OPTIONS.test(words[++at] ?? ''))
      return { unclear };
  }
  return {};
};

const SAFE_SHELL_OPTIONS =
  /^(-[suqp]+|globstar|nullglob|dotglob|failglob|nocaseglob|nocasematch|inherit_errexit|lastpipe|huponexit|checkwinsize|histappend)$/;
const shopt = (words: Words): Meaning =>
  words.slice(1).every((word) => word !== null && SAFE_SHELL_OPTIONS.test(word))
    ? {}
    : { unclear: 'shopt changes how the shell reads' };

const hasOption = (words: Words, letters: RegExp): boolean =>
  words.slice(1).some((word) => word === null || letters.test(word));

const unlessPlain =
  (letters: RegExp) =>
  (words: Words): Meaning =>
    hasOption(words, letters) ? { unclear: `${words[0]} can change what commands mean` } : {};

/** Builtins that take names of variables. A name may be a list element, whose subscript is evaluated. */
const naming = (words: Words): Meaning => {
  const odd = words.slice(1).some((word) => word === null || /\[/.test(word) || /^-[a-zA-Z]*[in]/.test(word));
  const names = words.slice(1).some((word) => word !== null && SHELL_VARIABLE.test(word));
  return {
    ...(odd || names ? { evaluates: true as const } : {}),
    ...(words.slice(1).includes(null)
      ? { indirect: `${words[0]} sets a variable that is named at run time` }
      : {}),
  };
};

/** Variables whose values the shell runs, or that change how it reads. */
const SHELL_VARIABLE = /^(BASH_\w+|BASHOPTS|SHELLOPTS|PS0|PS4|ENV|PROMPT_COMMAND|POSIXLY_CORRECT)\b/;
export const changesShell = (name: string): boolean => SHELL_VARIABLE.test(name);

const testing = (words: Words): Meaning =>
  words.includes('-v') || words.includes('-R') ? { evaluates: true } : {};

const commandLookup = (words: Words): Meaning | null => (/^-[pvV]*[vV]/.test(words[1] ?? '') ? {} : null);

/** `su -c`, `script -c`, `flock FILE -c`: they pass a text to a shell. */
const textOption = (words: Words): Meaning => {
  const index = words.findIndex((word) => word === '-c' || word === '--command');
  const name = words[0] ?? '';
  if (index < 0) return { unclear: `${name} runs what it reads from its input` };
  const text = words[index + 1];
  return text == null ? { unclear: `what ${name} runs is ${NOT_KNOWN}` } : { texts: [text], runs: index + 1 };
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

const special: Readonly<Record<string, (words: Words) => Meaning>> = {
  '.': source,
  source,
  eval: evaluate,
  trap,
  set,
  shopt,
  let: () => ({ evaluates: true }),
  enable: unlessPlain(/./),
  hash: unlessPlain(/^-\w*p/),
  bind: unlessPlain(/./),
  complete: unlessPlain(/^-\w*[CF]/),
  compgen: unlessPlain(/^-\w*[CFWP]/),
  mapfile: (words) =>
    hasOption(words, /^-\w*C/) ? { unclear: 'mapfile runs a command for each line' } : naming(words),
  readarray: (words) =>
    hasOption(words, /^-\w*C/) ? { unclear: 'readarray runs a command for each line' } : naming(words),
  fc: unclearAs('fc runs commands of the history'),
  parallel: unclearAs('parallel makes commands from its input'),
  read: naming,
  printf: (words) => (words[1] === '-v' || words[1] === null ? naming(words) : {}),
  unset: naming,
  declare: naming,
  typeset: naming,
  local: naming,
  export: naming,
  readonly: naming,
  getopts: naming,
  test: testing,
  '[': testing,
  su: textOption,
  runuser: textOption,
  script: textOption,
  watch,
  ...Object.fromEntries(SHELLS.map((name) => [name, shell])),
};

/** The special meaning of a command; empty for an ordinary one. */
export const meaningOf = (words: Words): Meaning => {
  const [first] = words;
  if (first === undefined) return {};
  if (first === null) return { unclear: 'the program is named when it runs' };
  const name = baseName(first);
  if (name === 'command' && commandLookup(words) !== null) return {};
  if (name === 'xargs') {
    const inner = xargsCommand(words);
    return {
      commands: [inner],
      runs: Math.max(1, words.length - inner.length + (inner.at(-1) === null ? 1 : 0)),
    };
  }
  if (name === 'find' || name === 'fd' || name === 'fdfind') {
    const commands = findCommands(words);
    const runs = words.findIndex((word) => word !== null && /^(-exec|-ok|-x$|-X$|--exec)/.test(word)) + 1;
    return commands.length === 0 ? {} : { commands, runs };
  }
  if (name === 'env' && words.some((word) => word !== null && /^(-\w*S|--split-string)/.test(word)))
    return { unclear: 'env splits a text into words' };
  if (name === 'flock' && words.includes('-c')) return textOption(words);
  const at = wrappedAt(words);
  if (at !== null) return { commands: [words.slice(at)], runs: at };
  const runner = runnerName(name);
  if (Object.hasOwn(programRunners, runner)) return programRunners[runner]?.(words) ?? {};
  return Object.hasOwn(special, name) ? (special[name]?.(words) ?? {}) : {};
};
