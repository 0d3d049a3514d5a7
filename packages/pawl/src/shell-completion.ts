// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are words of shells
import {
  allFlags,
  type DescribedCommand,
  type DescribedFlag,
  type DescribedProgram,
  takesValue,
} from './describe-commands.js';
import { usageStop } from './flags.js';

/** `pawl completion`: completion scripts for shells, generated from the parser's commands and flags. */

/** Shell command that prints the ids of sessions at completion time. */
const IDS = "pawl sessions 2>/dev/null | cut -d' ' -f1";

const namesOf = ({ flags }: DescribedCommand): readonly string[] =>
  flags.flatMap(({ long, short }) => (short === null ? [long] : [short, long]));

/** Suggestions for a command's first argument, as a shell word list; empty if there are none. */
const placeOf = ({ words }: DescribedCommand): string => {
  if (words.includes('<id>')) return `$(${IDS})`;
  return words.includes('<shell>') ? Object.keys(scripts).join(' ') : '';
};

const alternatives = (names: readonly string[]): string => names.join('|');

const patternOf = ({ long, short }: DescribedFlag): string => (short === null ? long : `${short}|${long}`);

// ---- bash ----

const bashValue = (flag: DescribedFlag): readonly string[] => {
  const reply = (words: string): readonly string[] => [
    `    ${patternOf(flag)}) COMPREPLY=($(compgen ${words} -- "$current")); return ;;`,
  ];
  switch (flag.takes.kind) {
    case 'nothing':
      return [];
    case 'words':
      return reply(`-W "${flag.takes.words.join(' ')}"`);
    case 'file':
      return reply('-f');
    case 'folder':
      return reply('-d');
    case 'session':
      return reply(`-W "$(${IDS})"`);
    case 'anything':
      return [`    ${patternOf(flag)}) COMPREPLY=(); return ;;`];
    default:
      return flag.takes satisfies never;
  }
};

const bashScript = (program: DescribedProgram): string => {
  const commands = program.commands.map(({ name }) => name);
  const valued = allFlags(program).filter(takesValue);
  const offer = (words: readonly string[]): string =>
    `COMPREPLY=($(compgen -W "${words.filter(Boolean).join(' ')}" -- "$current")) ;;`;
  return [
    '# bash completion of pawl: pawl completion bash > ~/.local/share/bash-completion/completions/pawl',
    '_pawl() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="" index',
    '  for ((index = 1; index < COMP_CWORD; index++)); do',
    '    case "${COMP_WORDS[index]}" in',
    `      ${alternatives(valued.map(patternOf))}) ((index++)) ;;`,
    `      ${alternatives(commands)}) command="\${COMP_WORDS[index]}"; break ;;`,
    '    esac',
    '  done',
    '  case "$previous" in',
    ...valued.flatMap(bashValue),
    '  esac',
    '  case "$command" in',
    ...program.commands.map((one) => `    ${one.name}) ${offer([placeOf(one), ...namesOf(one)])}`),
    `    *) ${offer([...commands, ...namesOf(program)])}`,
    '  esac',
    '}',
    'complete -F _pawl pawl',
    '',
  ].join('\n');
};

// ---- zsh ----

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const zshItems = (flags: readonly DescribedFlag[]): string =>
  flags.map(({ long, help }) => quoted(`${long}:${help}`)).join(' ');

const zshValue = (flag: DescribedFlag): readonly string[] => {
  const reply = (words: string): readonly string[] => [`    ${patternOf(flag)}) ${words}; return ;;`];
  switch (flag.takes.kind) {
    case 'nothing':
      return [];
    case 'words':
      return reply(`compadd -S '' -- ${flag.takes.words.join(' ')}`);
    case 'file':
      return reply('_files');
    case 'folder':
      return reply('_files -/');
    case 'session':
      return reply(`compadd -- $(${IDS})`);
    case 'anything':
      return reply('_message value');
    default:
      return flag.takes satisfies never;
  }
};

const zshScript = (program: DescribedProgram): string => {
  const valued = allFlags(program).filter(takesValue);
  const commands = program.commands.map(({ name, help }) => quoted(`${name}:${help}`)).join(' ');
  return [
    '#compdef pawl',
    '# zsh completion of pawl: pawl completion zsh > a folder of $fpath/_pawl',
    '_pawl() {',
    '  local -a flags commands',
    '  local command="" index previous="${words[CURRENT-1]}"',
    '  for ((index = 2; index < CURRENT; index++)); do',
    '    case "${words[index]}" in',
    `      ${alternatives(valued.map(patternOf))}) ((index++)) ;;`,
    `      ${alternatives(program.commands.map(({ name }) => name))}) command="\${words[index]}"; break ;;`,
    '    esac',
    '  done',
    '  case "$previous" in',
    ...valued.flatMap(zshValue),
    '  esac',
    '  case "$command" in',
    ...program.commands.map(
      (one) =>
        `    ${one.name}) flags=(${zshItems(one.flags)})${placeOf(one) === '' ? '' : `; compadd -- ${placeOf(one)}`} ;;`,
    ),
    `    *) commands=(${commands}); flags=(${zshItems(program.flags)}); _describe command commands ;;`,
    '  esac',
    '  _describe -o flag flags',
    '}',
    'if [ "$funcstack[1]" = "_pawl" ]; then _pawl "$@"; else compdef _pawl pawl; fi',
    '',
  ].join('\n');
};

// ---- fish ----

const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const fishValue = ({ takes }: DescribedFlag): string => {
  switch (takes.kind) {
    case 'nothing':
      return '';
    case 'words':
      return ` -x -a ${fishQuoted(takes.words.join(' '))}`;
    case 'file':
      return ' -r -F';
    case 'folder':
      return " -x -a '(__fish_complete_directories)'";
    case 'session':
      return ` -x -a ${fishQuoted(`(${IDS})`)}`;
    case 'anything':
      return ' -x';
    default:
      return takes satisfies never;
  }
};

const fishFlag = (condition: string, flag: DescribedFlag): string => {
  const short = flag.short === null ? '' : ` -s ${flag.short.slice(1)}`;
  const name = `${short} -l ${flag.long.slice(2)}`;
  return `complete -c pawl -n ${condition}${name}${fishValue(flag)} -d ${fishQuoted(flag.help)}`;
};

const fishScript = (program: DescribedProgram): string => {
  const first = '__fish_use_subcommand';
  const lines = program.commands.flatMap((one) => {
    const seen = `'__fish_seen_subcommand_from ${one.name}'`;
    return [
      `complete -c pawl -n ${first} -f -a ${one.name} -d ${fishQuoted(one.help)}`,
      ...one.flags.map((flag) => fishFlag(seen, flag)),
      ...(placeOf(one) === ''
        ? []
        : [`complete -c pawl -n ${seen} -f -a ${fishQuoted(placeOf(one).replace(/^\$/, ''))}`]),
    ];
  });
  return [
    '# fish completion of pawl: pawl completion fish > ~/.config/fish/completions/pawl.fish',
    ...program.flags.map((flag) => fishFlag(first, flag)),
    ...lines,
    '',
  ].join('\n');
};

const scripts: Readonly<Record<string, (program: DescribedProgram) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The script for a shell. Throws a usage error for an unknown shell. */
export const completionScript = (shell: string, program: DescribedProgram): string => {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined)
    throw usageStop(`There is completion for ${Object.keys(scripts).join(', ')}, not for '${shell}'.`);
  return script(program);
};
