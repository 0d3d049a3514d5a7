/**
 * What `pawl --help` and `pawl help` print: first what a person needs on one screen, and on request
 * all commands and flags (`pawl help all`), or everything about one (`pawl help rewind`,
 * `pawl help max-usd`).
 */

import { defaultProvider, keylessProvider, providers } from '@pawl/agent/models/provider-table';
import { Help, type Option, type Command as Parser } from 'commander';
import { helpLine } from '../settings/setting-table.js';

const COLUMNS = 80;
/** So many providers are named in the first help: it must fit on a screen. */
const PROVIDERS_SHOWN = 3;
/** Width of the first column: a flag or a command. */
const TERM = 27;

type Rows = readonly (readonly [term: string, text: string])[];

const OPTIONS: Rows = [
  ['-p, --print [prompt]', 'run one turn and print the result; stdin is read, too'],
  [
    '-m, --model <name>',
    `the model, for example ${defaultProvider.name}/NAME or ${keylessProvider.name}/NAME`,
  ],
  ['-c, --continue', 'continue the last session of this folder'],
  ['-r, --resume [id]', 'choose a session of any folder, and continue it'],
  ['--preset <name>', 'what it may do unasked: plan, careful, auto, ci, full'],
  ['--max-usd <amount>', 'the most that the session may cost, in dollars'],
  ['--detach', 'with -p: leave it running; pawl attach comes back'],
  ['--json', 'with -p: print JSON lines; not with --detach'],
];

const GROUPS: readonly (readonly [title: string, rows: Rows])[] = [
  [
    'A session',
    [
      ['sessions', 'list the sessions (--live: that run), or delete one'],
      ['show [id]', 'print the conversation; with --time: time and cost'],
      ['inspect [id]', 'show a session in a browser, while it runs or later'],
      ['fork <id> --at <seq>', 'start a new session from a line that rewind lists'],
    ],
  ],
  [
    'Take back',
    [
      ['rewind [id]', 'list what can be taken back; with --at <seq> do it'],
      ['redo [id]', 'go forward again from the last rewind'],
    ],
  ],
  [
    'Detached',
    [
      ['attach [id]', 'take part in a detached session, or bring it back'],
      ['stop <id>', 'end a detached session'],
    ],
  ],
  [
    'Set up',
    [
      ['demo', 'watch the agent repair a small project; needs no key'],
      ['doctor', 'check that everything is set up'],
    ],
  ],
];

/** The variables of the first providers that need a key, the usual provider first. */
const keyVariables = (): readonly string[] =>
  [
    defaultProvider,
    ...providers.filter(({ key, name }) => key === 'required' && name !== defaultProvider.name),
  ]
    .slice(0, PROVIDERS_SHOWN)
    .map((provider) => provider.keyVariables[0]);

/** Breaks a text between words into lines of at most `width` characters. */
const wrap = (text: string, width: number): readonly string[] =>
  new Help().boxWrap(text, width).split('\n');

/** Lines with a term, and its text in the second column. */
const twoColumns = (rows: Rows): readonly string[] =>
  rows.flatMap(([term, text]) =>
    wrap(text, COLUMNS - TERM).map(
      (line, index) => `${(index === 0 ? `  ${term}` : '').padEnd(TERM)}${line}`,
    ),
  );

/** The first help: at most 40 lines of 80 columns. */
export const firstHelp = (): string =>
  [
    "Pawl, a coding agent that can't lose its place.",
    '',
    'Usage: pawl ["prompt"]     a session in this folder',
    '       pawl -p "prompt"    one turn, printed, for scripts',
    '       pawl COMMAND',
    '',
    'Options:',
    ...twoColumns(OPTIONS),
    ...GROUPS.flatMap(([title, rows]) => ['', `${title}:`, ...twoColumns(rows)]),
    '',
    ...wrap(
      `First: set ${keyVariables().join(' or ')} (pawl models: all providers); ${keylessProvider.name}/NAME needs no key. In a ` +
        'session: /help lists its commands, /model the models, /cost the cost; Escape stops, ' +
        '/rewind takes back; Ctrl-D ends the session, /detach leaves it running. Answer P when a ' +
        'command asks: commands that begin like it are allowed in this folder for ever.',
      COLUMNS,
    ),
    'More: pawl help all, or pawl help TOPIC, such as rewind or max-usd.',
    '',
  ].join('\n');

/** All commands and flags, as the parser lists them. */
export const fullHelp = (program: Parser): string => {
  const helper = program.createHelp();
  helper.prepareContext({ helpWidth: COLUMNS });
  return helper.formatHelp(program, helper);
};

/** A flag with all that is known of it, and the commands that have it. */
const flagHelp = (program: Parser, name: string): string | null => {
  const uses = [program, ...program.commands].flatMap((command) => {
    const option = command.options.find(({ long, short }) => long === name || short === name);
    return option === undefined ? [] : [{ command, option }];
  });
  // a flag of several commands may mean more in one of them
  const meanings = new Map<string, string[]>();
  for (const { command, option } of uses) {
    const key = `${option.flags}\n${option.description}`;
    meanings.set(key, [
      ...(meanings.get(key) ?? []),
      command === program ? 'pawl' : command.name(),
    ]);
  }
  return meanings.size === 0 ? null : [...meanings].map(meaningText).join('\n');
};

const meaningText = ([meaning, users]: readonly [string, readonly string[]]): string => {
  const [flags, ...lines] = meaning.split('\n');
  const others = users.filter((user) => user !== 'pawl');
  const places = [
    ...(users.includes('pawl') ? ['pawl'] : []),
    ...(others.length > 0 ? [`pawl ${others.join(', ')}`] : []),
  ];
  const texts = [...lines, `A flag of ${places.join(', and of ')}.`];
  return [
    flags,
    ...texts.flatMap((text) => wrap(text, COLUMNS - 4).map((line) => `    ${line}`)),
    '',
  ].join('\n');
};

/**
 * The help for a topic: `all`, a command, or a flag with or without its dashes; null if there is no
 * such topic.
 */
export const topicHelp = (program: Parser, topic: string): string | null => {
  if (topic === 'all') return fullHelp(program);
  const command = program.commands.find((one) => one.name() === topic);
  if (command !== undefined) return command.helpInformation();
  const dashed = topic.startsWith('-') ? topic : `${topic.length === 1 ? '-' : '--'}${topic}`;
  return flagHelp(program, dashed);
};

/** How the parser formats help: first lines in lists, whole texts in the help of one command. */
export const helpFormat = {
  helpWidth: COLUMNS,
  minWidthToWrap: 20,
  optionDescription: ({ description }: Option) => helpLine(description),
  subcommandDescription: (command: Parser) => helpLine(command.summary() || command.description()),
  subcommandTerm: (command: Parser) =>
    [command.name(), command.usage().replace(/^\[options\] ?/, '')].filter(Boolean).join(' '),
} as const;
