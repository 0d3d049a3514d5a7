/** man/pawl.1 of the package, from the parser's commands and flags, the settings, and exit codes. */

import { providers } from '../packages/agent/src/models/provider-table.js';
import { buildProgram } from '../packages/pawl/src/commands/command-line.js';
import {
  type DescribedFlag,
  describeProgram,
} from '../packages/pawl/src/commands/shell-completion.js';
import { exitCodes } from '../packages/pawl/src/process/exit-codes.js';
import { helpText, settings } from '../packages/pawl/src/settings/setting-table.js';

/**
 * A line that begins with a dot or a quote would be an order; a hyphen is one that can be copied.
 */
const escapeText = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('’', "'")
    .replace(/^([.'])/, '\\&$1');

const item = (term: string, text: string): readonly string[] => [
  '.TP',
  `.B ${escapeText(term)}`,
  escapeText(text),
];

const flagItems = (flags: readonly DescribedFlag[]): readonly string[] =>
  flags.flatMap(({ written, help }) => item(written, helpText(help)));

const meanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: 'done',
  taskFailed: 'the task failed, the model gave up, or doctor found a fault',
  usage: 'usage',
  badInput: 'bad input, or a damaged journal',
  unavailable: 'the provider is not available',
  internal: 'an internal fault',
  cannotWrite: 'the journal or the result can not be written',
  tryAgain: 'transient: try again',
  notPermitted: 'permission denied',
  configuration: 'configuration, or a bad key',
  timeLimit: 'the time limit',
  budget: 'a limit of money or tokens',
  roundLimit: 'the limit of rounds',
  interrupted: 'interrupted',
  closedPipe: 'closed pipe',
  terminated: 'terminated',
};

const environmentItems = (): readonly string[] => [
  ...providers.flatMap(({ name, keyVariables, urlVariable }) => [
    ...item(keyVariables.join(', '), `the key of ${name}`),
    ...item(urlVariable, `address of ${name}, if not its usual one`),
  ]),
  ...settings
    .filter(({ variable }) => variable.startsWith('PAWL_'))
    .flatMap(({ variable, help, key }) =>
      item(variable, `the same as ${key} in config.toml: ${helpText(help)}`),
    ),
  ...item(
    'XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME',
    'where settings, sessions and compiled code are kept',
  ),
  ...item('NO_COLOR', 'no colours'),
];

export const manualText = (): string => {
  const { help, flags, commands } = describeProgram(buildProgram(() => undefined)); // none is run
  const known = new Set(flags.map(({ written, help: text }) => `${written} ${text}`));
  return [
    '.\\" Made from the sources of Pawl; do not edit.',
    '.TH PAWL 1',
    '.SH NAME',
    `pawl \\- ${escapeText(help)}`,
    '.SH SYNOPSIS',
    '.B pawl',
    '[\\fIflags\\fR]',
    '.br',
    '.B pawl \\-p',
    '"\\fIprompt\\fR" [\\fIflags\\fR]',
    '.br',
    '.B pawl',
    '\\fIcommand\\fR [\\fIflags\\fR]',
    '.SH DESCRIPTION',
    'Without a command: a session in the terminal, in this folder. With \\-p: one turn, its result on stdout.',
    '.SH FLAGS',
    ...flagItems(flags),
    '.SH COMMANDS',
    ...commands.flatMap((command) => [
      `.SS ${escapeText([command.name, command.words].filter(Boolean).join(' '))}`,
      escapeText(helpText(command.help)),
      ...flagItems(
        command.flags.filter(({ written, help: text }) => !known.has(`${written} ${text}`)),
      ),
    ]),
    '.SH ENVIRONMENT',
    ...environmentItems(),
    '.SH FILES',
    ...item('~/.config/pawl/config.toml', 'your settings: pawl config lists them'),
    ...item(
      '.pawl/config.toml',
      'the settings of a project, which may only be stricter than yours',
    ),
    ...item('~/.local/state/pawl/sessions', 'the journals of sessions'),
    ...item('AGENTS.md', 'what the model is told about the project'),
    '.SH EXIT STATUS',
    ...Object.entries(exitCodes).flatMap(
      ([name, code]) => item(String(code), meanings[name as keyof typeof exitCodes]), // a name in `exitCodes`
    ),
    '.SH SEE ALSO',
    'The folder docs of the package, which begins with README.md.',
    '',
  ].join('\n');
};
