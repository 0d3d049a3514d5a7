// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are words of shells

/**
 * `pawl completion`: completion scripts for shells, generated from the parser's commands and flags.
 *
 * From top to bottom: words that are suggested; the scripts for bash, zsh and fish;
 * `printCompletion`; and commands and flags as plain values, which documents are made from too.
 */

import { knownModels } from '@pawl/agent/models/catalogue';
import { modelForms } from '@pawl/agent/models/provider-table';
import { writeResult } from '@pawl/terminal/write';
import type { Command, Option } from 'commander';
import { exitCodes } from '../process/exit-codes.js';
import { usageStop } from '../settings/flags.js';
import { flagName, helpLine, settings } from '../settings/setting-table.js';

/** Shell command that prints the ids of sessions at completion time. */
const IDS = "pawl sessions 2>/dev/null | cut -d' ' -f1";

const flagNames = ({ flags }: DescribedCommand): readonly string[] =>
  flags.flatMap(({ long, short }) => (short === null ? [long] : [short, long]));

/** The words after commands that have subcommands. */
export const secondWords: Readonly<Record<string, string>> = {
  hooks: 'list',
  mcp: 'list test add remove login logout serve',
  policy: 'explain',
  sessions: 'list delete',
  skills: 'list',
  trust: 'list allow revoke',
};

/** Suggestions for a command's first argument, as a shell word list; empty if there are none. */
const argumentWords = ({ name, words }: DescribedCommand): string => {
  const second = secondWords[name];
  if (second !== undefined) return second;
  if (/^(?:<id>|\[id\])/.test(words)) return `$(${IDS})`;
  return words.includes('<shell>') ? Object.keys(scripts).join(' ') : '';
};

const alternatives = (names: readonly string[]): string => names.join('|');

const flagPattern = ({ long, short }: DescribedFlag): string =>
  short === null ? long : `${short}|${long}`;

// ---- bash ----

const bashValue = (flag: DescribedFlag): readonly string[] => {
  const reply = (words: string, before = '', after = ''): readonly string[] => [
    `    ${flagPattern(flag)}) ${before}COMPREPLY=($(compgen ${words} -- "$current")); ${after}return ;;`,
  ];
  // a name may hold blanks; `compopt`, which adds the slash of a folder, is not in bash 3
  const replyFiles = (words: string): readonly string[] =>
    reply(words, "local IFS=$'\\n'; ", 'compopt -o filenames 2> /dev/null; ');
  switch (flag.takes.kind) {
    case 'nothing':
      return [];
    case 'words':
      return reply(`-W "${flag.takes.words.join(' ')}"`);
    case 'file':
      return replyFiles('-f');
    case 'folder':
      return replyFiles('-d');
    case 'session':
      return reply(`-W "$(${IDS})"`);
    case 'anything':
      return [`    ${flagPattern(flag)}) COMPREPLY=(); return ;;`];
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
    '# bash completion of pawl: pawl completion bash > ' +
      '~/.local/share/bash-completion/completions/pawl',
    '_pawl() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" ' +
      'command="" index',
    '  for ((index = 1; index < COMP_CWORD; index++)); do',
    '    case "${COMP_WORDS[index]}" in',
    `      ${alternatives(valued.map(flagPattern))}) ((index++)) ;;`,
    `      ${alternatives(commands)}) command="\${COMP_WORDS[index]}"; break ;;`,
    '    esac',
    '  done',
    '  case "$previous" in',
    ...valued.flatMap(bashValue),
    '  esac',
    '  case "$command" in',
    ...program.commands.map(
      (one) => `    ${one.name}) ${offer([argumentWords(one), ...flagNames(one)])}`,
    ),
    `    *) ${offer([...commands, ...flagNames(program)])}`,
    '  esac',
    '}',
    'complete -F _pawl pawl',
    '',
  ].join('\n');
};

// ---- zsh ----

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const zshItems = (flags: readonly DescribedFlag[]): string =>
  flags.map(({ long, help }) => quoted(`${long}:${helpLine(help)}`)).join(' ');

const zshValue = (flag: DescribedFlag): readonly string[] => {
  const reply = (words: string): readonly string[] => [
    `    ${flagPattern(flag)}) ${words}; return ;;`,
  ];
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
  const commands = program.commands
    .map(({ name, help }) => quoted(`${name}:${helpLine(help)}`))
    .join(' ');
  return [
    '#compdef pawl',
    '# zsh completion of pawl: pawl completion zsh > a folder of $fpath/_pawl',
    '_pawl() {',
    '  local -a flags commands',
    '  local command="" index previous="${words[CURRENT-1]}"',
    '  for ((index = 2; index < CURRENT; index++)); do',
    '    case "${words[index]}" in',
    `      ${alternatives(valued.map(flagPattern))}) ((index++)) ;;`,
    `      ${alternatives(program.commands.map(({ name }) => name))}) ` +
      `command="\${words[index]}"; break ;;`,
    '    esac',
    '  done',
    '  case "$previous" in',
    ...valued.flatMap(zshValue),
    '  esac',
    '  case "$command" in',
    ...program.commands.map(
      (one) =>
        `    ${one.name}) ` +
        `flags=(${zshItems(one.flags)})${argumentWords(one) === '' ? '' : `; compadd -- ${argumentWords(one)}`} ;;`,
    ),
    `    *) commands=(${commands}); flags=(${zshItems(program.flags)}); _describe command ` +
      'commands ;;',
    '  esac',
    '  _describe -o flag flags',
    '}',
    'if [ "$funcstack[1]" = "_pawl" ]; then _pawl "$@"; else compdef _pawl pawl; fi',
    '',
  ].join('\n');
};

// ---- fish ----

const fishQuoted = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

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
  return `complete -c pawl -n ${condition}${name}${fishValue(flag)} -d ${fishQuoted(helpLine(flag.help))}`;
};

const fishScript = (program: DescribedProgram): string => {
  const first = '__fish_use_subcommand';
  const lines = program.commands.flatMap((one) => {
    const seen = `'__fish_seen_subcommand_from ${one.name}'`;
    return [
      `complete -c pawl -n ${first} -f -a ${one.name} -d ${fishQuoted(helpLine(one.help))}`,
      ...one.flags.map((flag) => fishFlag(seen, flag)),
      ...(argumentWords(one) === ''
        ? []
        : [
            `complete -c pawl -n ${seen} -f -a ` +
              `${fishQuoted(argumentWords(one).replace(/^\$/, ''))}`,
          ]),
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

/** `pawl completion`: prints the script for a shell. */
export const printCompletion = (shell: string, program: Command): number => {
  writeResult(completionScript(shell, describeProgram(program)));
  return exitCodes.done;
};

/** The script for a shell. Throws a usage error for an unknown shell. */
export const completionScript = (shell: string, program: DescribedProgram): string => {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined)
    throw usageStop(
      `There is completion for ${Object.keys(scripts).join(', ')}, not for '${shell}'.`,
    );
  return script(program);
};

// Commands and flags as plain values, from which completion, the man page and the documentation are
// made.

/** The kind of value that a flag takes. `anything`: completion can't suggest values. */
export type Takes =
  | { readonly kind: 'nothing' | 'file' | 'folder' | 'session' | 'anything' }
  | { readonly kind: 'words'; readonly words: readonly string[] };

export type DescribedFlag = {
  readonly long: string;
  readonly short: string | null;
  /** Form that help shows: `-p, --print [prompt]`. */
  readonly written: string;
  readonly help: string;
  readonly takes: Takes;
};

export type DescribedCommand = {
  readonly name: string;
  readonly help: string;
  /** Arguments in the form that help shows: `<id>`, `[prompt...]`. */
  readonly words: string;
  readonly flags: readonly DescribedFlag[];
};

export type DescribedProgram = DescribedCommand & {
  readonly commands: readonly DescribedCommand[];
};

/** `anthropic/`, … for models of any name, and the models that are known. */
const modelWords = [
  ...modelForms.map((form) => form.slice(0, form.indexOf('/') + 1)),
  ...knownModels(),
];

/** Values of flags that the table of settings does not describe. */
const TAKES_BY_FLAG: Readonly<Record<string, Takes>> = {
  '--workspace': { kind: 'folder' },
  '--worktree': { kind: 'folder' },
  '--context': { kind: 'file' },
  '--json-schema': { kind: 'file' },
  '--fail-on': { kind: 'words', words: ['denied'] },
  '--resume': { kind: 'session' },
  '--view': { kind: 'words', words: ['minimal', 'minimal-head', 'loom', 'sketch', 'tools'] },
};

/** `required` and `optional` are about the value of the flag. */
const flagTakes = ({ long, required, optional }: Option): Takes => {
  const known = TAKES_BY_FLAG[long ?? ''];
  if (known !== undefined) return known;
  if (!required && !optional) return { kind: 'nothing' };
  const kind = settings.find((setting) => flagName(setting) === long)?.kind;
  if (kind?.type === 'words') return { kind: 'words', words: kind.words };
  if (kind?.type === 'model') return { kind: 'words', words: modelWords };
  // After a flag with an optional value, completion still offers flags.
  return { kind: optional ? 'nothing' : 'anything' };
};

const describeFlag = (option: Option): DescribedFlag => ({
  long: option.long ?? option.flags,
  short: option.short ?? null,
  written: option.flags,
  help: option.description,
  takes: flagTakes(option),
});

const helpFlag: DescribedFlag = {
  long: '--help',
  short: '-h',
  written: '-h, --help',
  help: 'display help for command',
  takes: { kind: 'nothing' },
};

const describeCommand = (command: Command): DescribedCommand => ({
  name: command.name(),
  help: command.description(),
  words: command.registeredArguments
    .map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return argument.required ? `<${name}>` : `[${name}]`;
    })
    .join(' '),
  flags: [...command.options.map(describeFlag), helpFlag],
});

/** All commands and flags that the parser knows. */
export const describeProgram = (program: Command): DescribedProgram => ({
  ...describeCommand(program),
  commands: program.commands.map(describeCommand),
});

/** Whether the word after the flag is its value. */
const takesValue = ({ takes }: DescribedFlag): boolean => takes.kind !== 'nothing';

/** All flags of all commands, each once. */
export const allFlags = (program: DescribedProgram): readonly DescribedFlag[] => {
  const known = new Map<string, DescribedFlag>();
  for (const { flags } of [program, ...program.commands])
    for (const flag of flags) known.set(flag.long, flag);
  return [...known.values()];
};
