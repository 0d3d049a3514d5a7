/**
 * Rows of shells, of builtins, and of programs that hand a text to a shell (su, script). The shell
 * reads its own words differently from other programs: a text, names of variables, options that
 * change how it reads. wrappers.ts and runners.ts have other programs that start commands, among
 * them the builtins `command`, `builtin`, `exec` and `time`.
 *
 * The field `runs` of a row is a `Wrapper`, which `wrapped` (meanings.ts) reads, or a function that
 * returns a `Meaning`. The user is always asked about what is `unclear`. No rule that allows covers
 * what is `indirect`, or `evaluates` words: they may run something that stands in no text.
 *
 * From top to bottom: shells; builtins that run a text; builtins that set options or variables.
 */

import { listWords, programName } from '../paths.js';
import { absolutePath } from '../patterns.js';
import { hasWordLike, literal, NOT_KNOWN, passesText, wrapped } from './meanings.js';
import type { Meaning, Rows, Words } from './program.js';

/**
 * Whether this is a device or a file of /proc: run as a script it is an input, of the shell or of
 * another program.
 */
export const isDevice = (file: string): boolean =>
  /^\/(dev|proc)\//.test(absolutePath(file, '/workspace'));

/** Options of `set -o` that change nothing in how a text is read. */
const SAFE_OPTIONS =
  /^(errexit|nounset|pipefail|xtrace|verbose|noglob|errtrace|functrace|noclobber|monitor)$/;

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
      if (!SAFE_OPTIONS.test(words[++at] ?? ''))
        return { unclear: `${name} has options that change how it reads` };
      isLogin ||= word.includes('l');
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
        startsAt: at + 1,
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
  return text.trim() === '' ? {} : { texts: [text], startsAt: at };
};

const source = (words: Words): Meaning => {
  const file = words[1] === '--' ? words[2] : words[1];
  if (file == null || isDevice(file)) return { unclear: `what ${words[0]} reads is ${NOT_KNOWN}` };
  return { indirect: `${words[0]} runs a file in this shell` };
};

const trap = (words: Words): Meaning => {
  const at = words[1] === '--' ? 2 : 1;
  const text = words[at];
  if (text === undefined || text === '' || text === '-' || text === '-p' || text === '-l')
    return {};
  if (text === null) return { unclear: `what trap runs is ${NOT_KNOWN}` };
  return words.length <= at + 1 ? {} : { texts: [text], startsAt: at };
};

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

/** Options of `shopt` that change nothing in how a text is read. */
const SAFE_SHELL_OPTIONS =
  /^(-[suqp]+|globstar|nullglob|dotglob|failglob|nocasematch|inherit_errexit|huponexit|checkwinsize|histappend)$/;

const shopt = (words: Words): Meaning =>
  words.slice(1).every((word) => SAFE_SHELL_OPTIONS.test(word ?? ''))
    ? {}
    : { unclear: 'shopt changes how the shell reads' };

/** A builtin that is unclear only with a word like this. */
const unclearWith = (words: Words, pattern: RegExp): Meaning =>
  hasWordLike(words, pattern) ? { unclear: `${words[0]} can change what commands mean` } : {};

/** Variables whose values the shell runs, or that change how it reads. */
const SHELL_VARIABLE =
  /^(BASH_\w+|BASHOPTS|GLOBIGNORE|SHELLOPTS|PS0|PS4|ENV|PROMPT_COMMAND|POSIXLY_CORRECT)\b/;

export const changesShell = (name: string): boolean => SHELL_VARIABLE.test(name);

/**
 * Builtins that take names of variables. A name may be a list element, whose subscript is
 * evaluated. To set a variable whose value the shell runs counts as evaluation, too.
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

/** A word that is not known is no option here: `test "$x" = y` is everyday. */
const testsVariables = (words: Words): Meaning =>
  words.includes('-v') || words.includes('-R') ? { evaluates: true } : {};

/** `mapfile` and `readarray`. */
const linesToVariables = (words: Words): Meaning =>
  hasWordLike(words, /^-\w*C/)
    ? { unclear: `${words[0]} runs a command for each line` }
    : variableNames(words);

const RUNUSER = {
  valued: '-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment',
  flags: '-f -l -m -p -P -T --fast --login --preserve-environment --pty --no-pty',
};

/** `runuser -u USER COMMAND` runs words; without `-u`, or with `-c`, it is `su`. */
const runuser = (words: Words): Meaning => {
  const end = words.indexOf('--');
  const options = end < 1 ? words : words.slice(0, end);
  const meaning = passesText(words);
  return meaning.texts === undefined && hasWordLike(options, /^(-[flmpPT]*u|--u)/)
    ? wrapped(words, RUNUSER)
    : meaning;
};

export const SHELLS: Rows = {
  'sh bash dash zsh': { runs: shell, repository: 'script' },
  'ksh mksh ash rbash fish csh tcsh yash': { runs: shell },
  '. source': { runs: source, repository: 'script' },
  eval: { runs: evaluate },
  trap: { runs: trap },
  set: { runs: set },
  shopt: { runs: shopt },
  alias: { runs: (words) => unclearWith(words, /=/) },
  let: { runs: () => ({ evaluates: true }) },
  'enable bind': { runs: (words) => unclearWith(words, /./) },
  hash: { runs: (words) => unclearWith(words, /^-\w*p/) },
  complete: { runs: (words) => unclearWith(words, /^-\w*[CF]/) },
  compgen: { runs: (words) => unclearWith(words, /^-\w*[CFWP]/) },
  'mapfile readarray': { runs: linesToVariables },
  fc: { runs: () => ({ unclear: 'fc runs commands of the history' }) },
  'read unset declare typeset local export readonly getopts': { runs: variableNames },
  printf: {
    reads: 'always',
    // a word that is not known may be `-v`
    runs: (words) => (/^-v/.test(words[1] ?? '-v') ? variableNames(words) : {}),
  },
  jobs: {
    runs: (words) =>
      hasWordLike(words, /^-\w*x/) ? wrapped(words, { flags: '-l -n -p -r -s -x' }) : {},
  },
  wait: {
    runs: (words) => (words.some((word) => /^-\w*p/.test(word ?? '')) ? variableNames(words) : {}),
  },
  'test [': { reads: 'always', runs: testsVariables },
  'su script': { runs: passesText },
  runuser: { runs: runuser },
  'sg newgrp': {
    runs: ([name]) => ({ unclear: `${name} runs a text with the rights of a group` }),
  },
};
