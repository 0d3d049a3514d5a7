import type { InputMode } from '@pawl/agent/machine/event';
import { closestTo } from '@pawl/agent/platform/base/nearest-word';

/** Meaning of a submitted line: a message, a slash command, or a shell command. */
export type TypedInput =
  | { readonly kind: 'say'; readonly text: string; readonly mode: InputMode }
  | { readonly kind: 'command'; readonly name: CommandName; readonly words: string }
  /** `!command`: runs at once; the model gets the output with the next message. */
  | { readonly kind: 'shell'; readonly command: string }
  | { readonly kind: 'nothing' }
  /** Looks like a command but is none: nothing is sent. */
  | { readonly kind: 'refused'; readonly why: string };

/** Name, arguments, description. Help, completion and documentation are made from this table. */
export const slashCommands = [
  ['help', '', 'show this list'],
  ['model', '[NAME]', 'choose the model for the next calls'],
  ['effort', '[LEVEL]', 'how much the model should think: auto, low, medium or high'],
  ['compact', '[WHAT]', 'summarise the conversation to free context; WHAT says what the summary must keep'],
  ['cost', '', 'tokens and cost of this session'],
  [
    'budget',
    '[LIMIT]',
    'show the limits and the amounts used; 5 or $5, 200k tokens, 30 rounds, 10 minutes set a limit',
  ],
  ['resume', '[ID]', 'continue another session of this folder'],
  ['fork', '[SEQ]', 'continue in a copy of this session, from now or from a line of its journal'],
  ['clear', '', 'start a new session; this one is kept'],
  ['preset', '[NAME]', 'what the agent may do without asking in this session: plan, careful, auto or ci'],
  ['permissions', '[revoke N]', 'show the rules and your permissions; revoke takes one back'],
  [
    'jobs',
    '[read N, kill N]',
    'background commands of the agent: list them, read the output of one, or kill one',
  ],
  ['mcp', '[NAME, connect]', 'the MCP servers and their state; the tools of one; connect again'],
  [
    'diff',
    '[session]',
    "all changes since HEAD, the agent's and others'; session: only the edits of this session",
  ],
  ['export', 'FILE', 'write the conversation as Markdown'],
  ['inspect', '', 'look into this session in a browser while it works'],
  ['retry', '', 'send the last message again; during the wait before a retry: retry now'],
  ['later', 'TEXT', 'send TEXT after this turn (Alt+Enter does the same)'],
  ['paste', '', "insert the clipboard's picture into the input line (Ctrl-V does the same)"],
  ['quit', '', 'leave; the session can be resumed'],
] as const;

export type CommandName = Exclude<(typeof slashCommands)[number][0], 'later'>;

/** Names that no skill or command of the user can have. */
export const builtInNames: readonly string[] = [...slashCommands.map(([name]) => name), 'exit'];

export const slashHelp: readonly (readonly [string, string])[] = slashCommands.map(([name, words, about]) => [
  `/${name} ${words}`.trim(),
  about,
]);

/** Command names with descriptions, for completion. */
export const commandChoices: readonly { readonly text: string; readonly about: string }[] = slashCommands.map(
  ([name, words, about]) => ({ text: name, about: words === '' ? about : `${words}  ${about}` }),
);

export const keyHelp: readonly (readonly [string, string])[] = [
  ['Enter', 'send; during a turn: with the next tool results'],
  ['Alt+Enter', 'send after this turn'],
  ['Enter on an empty line', 'during the wait before a retry: retry now'],
  ['Ctrl-J, Shift+Enter, \\ Enter', 'new line'],
  ['@', 'mention a file of this folder; Tab completes its name'],
  ['Ctrl-V', "insert the clipboard's picture; you can also drag a file here"],
  ['!COMMAND', 'run a shell command; the model gets its output with your next message'],
  ['Escape, Ctrl-C', 'stop the turn; queued messages return to the input line'],
  ['Escape twice', 'when nothing runs: edit your last message in a copy of the session'],
  ['Up, Down, Ctrl-R', 'earlier messages; search them'],
  ['Ctrl-_, Ctrl-Y', 'undo; paste the last cut text'],
  ['Ctrl-C twice, Ctrl-D', 'leave'],
  ['Ctrl-Z', 'back to the shell; fg returns'],
];

const refused = (why: string): TypedInput => ({ kind: 'refused', why });

const noCommand = (name: string, prompts: readonly string[]): TypedInput => {
  const close = closestTo(name, [...slashCommands.map(([known]) => known), ...prompts]);
  if (close !== undefined)
    return refused(`There is no /${name}. Did you mean /${close}? /help lists them all.`);
  return refused(`There is no /${name}. There are ${slashHelp.map(([usage]) => usage).join(', ')}.`);
};

const readCommand = (written: string, words: string, prompts: readonly string[]): TypedInput => {
  const lower = written.toLowerCase();
  const wanted = lower === 'exit' ? 'quit' : lower;
  const known = slashCommands.find(([name]) => name === wanted);
  if (known === undefined) return noCommand(written, prompts);
  const [name, usage] = known;
  if (name === 'later') {
    return words === ''
      ? refused('There is no text: /later TEXT')
      : { kind: 'say', text: words, mode: 'followUp' };
  }
  if (usage === '' && words !== '') return refused(`/${name} takes no arguments.`);
  if (words === '' && usage !== '' && !usage.startsWith('['))
    return refused(`/${name} needs an argument: /${name} ${usage}`);
  return { kind: 'command', name, words };
};

/** Words that run a command when they stand alone in a line: as a message they would only cost a reply. */
const ALONE: Readonly<Record<string, CommandName>> = {
  '?': 'help',
  help: 'help',
  exit: 'quit',
  quit: 'quit',
};

/**
 * Parses a submitted line. `/word` is a command for the terminal; a path like /etc/hosts is text. `prompts`: names of
 * skills and commands of the user, whose lines are messages that are expanded when they are sent.
 */
export const readTypedInput = (
  typed: string,
  mode: InputMode,
  prompts: readonly string[] = [],
): TypedInput => {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  const alone = Object.hasOwn(ALONE, text) ? ALONE[text] : undefined;
  if (alone !== undefined) return { kind: 'command', name: alone, words: '' };
  // Not a shell command: a text of several lines, or one that begins with a Markdown image (`![`).
  const shell = /^!(?!\[)\s*(.*)$/.exec(text);
  if (shell !== null) {
    const command = shell[1] ?? '';
    return command === '' ? refused('There is no command: !COMMAND') : { kind: 'shell', command };
  }
  const found = /^\/([\w:-]*)(?:\s+(.*))?$/s.exec(text);
  if (found === null) return { kind: 'say', text, mode };
  const name = found[1] ?? '';
  if (prompts.includes(name) && !builtInNames.includes(name)) return { kind: 'say', text, mode };
  return readCommand(name, (found[2] ?? '').trim(), prompts);
};
