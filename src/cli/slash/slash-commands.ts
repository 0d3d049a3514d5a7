import type { InputMode } from '../../agent/event.js';
import { closestTo } from '../../base/nearest-word.js';

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
const commands = [
  ['help', '', 'this list'],
  ['model', '[NAME]', 'choose the model that answers from now on'],
  ['effort', '[LEVEL]', 'how much the model is to think from now on: auto, low, medium or high'],
  ['compact', '[WISH]', 'summarise the conversation to make room; the wish says what to keep'],
  ['cost', '', 'tokens and money of this session'],
  ['budget', '[LIMIT]', 'limits and what is spent; 5 or $5, 200k tokens, 30 rounds, 10 minutes set one'],
  ['resume', '[ID]', 'go on with another session of this folder'],
  ['fork', '[SEQ]', 'go on in a copy of this session, from here or from a line of its journal'],
  ['clear', '', 'begin a new session; this one stays'],
  ['preset', '[NAME]', 'what needs no question: plan, careful, auto or ci; for this session'],
  ['permissions', '[revoke N]', 'what is allowed, and what you allowed: take one back'],
  ['jobs', '[read N, kill N]', 'commands that the agent left running: what they say, an end to one'],
  ['diff', '[session]', 'what differs from HEAD, whoever changed it; session: what its edits wrote'],
  ['export', 'FILE', 'write the conversation as Markdown'],
  ['retry', '', 'send the last message again; while it waits to try again: now'],
  ['later', 'TEXT', 'say it after this turn (Alt+Enter does the same)'],
  ['paste', '', 'the picture in the clipboard, into your line (Ctrl-V does the same)'],
  ['quit', '', 'end; the session can be resumed'],
] as const;

export type CommandName = Exclude<(typeof commands)[number][0], 'later'>;

export const slashHelp: readonly (readonly [string, string])[] = commands.map(([name, words, about]) => [
  `/${name} ${words}`.trim(),
  about,
]);

/** Command names with descriptions, for completion. */
export const commandChoices: readonly { readonly text: string; readonly about: string }[] = commands.map(
  ([name, words, about]) => ({ text: name, about: words === '' ? about : `${words}  ${about}` }),
);

export const keyHelp: readonly (readonly [string, string])[] = [
  ['Enter', 'send; while it works: with the next results'],
  ['Alt+Enter', 'send for after this turn'],
  ['Enter on an empty line', 'while it waits to try again: now'],
  ['Ctrl-J, Shift+Enter, \\ Enter', 'a new line'],
  ['@', 'a file of this folder; Tab takes it'],
  ['Ctrl-V', 'the picture in the clipboard; a file that you drag here is named, too'],
  ['!COMMAND', 'run it here; the model reads the output with your next message'],
  ['Escape, Ctrl-C', 'stop the turn; what waits comes back to be edited'],
  ['Escape twice', 'at rest: edit your last input, in a copy of the session'],
  ['Up, Down, Ctrl-R', 'what you typed before; search in it'],
  ['Ctrl-_, Ctrl-Y', 'undo; put back what was cut'],
  ['Ctrl-C twice, Ctrl-D', 'end'],
  ['Ctrl-Z', 'back to the shell; fg goes on'],
];

const refused = (why: string): TypedInput => ({ kind: 'refused', why });

const noCommand = (name: string): TypedInput => {
  const close = closestTo(
    name,
    commands.map(([known]) => known),
  );
  if (close !== undefined)
    return refused(`There is no /${name}. Did you mean /${close}? /help lists them all.`);
  return refused(`There is no /${name}. There are ${slashHelp.map(([usage]) => usage).join(', ')}.`);
};

const readCommand = (written: string, words: string): TypedInput => {
  const lower = written.toLowerCase();
  const wanted = lower === 'exit' ? 'quit' : lower;
  const known = commands.find(([name]) => name === wanted);
  if (known === undefined) return noCommand(written);
  const [name, usage] = known;
  if (name === 'later') {
    return words === ''
      ? refused('What is to be said later? /later TEXT')
      : { kind: 'say', text: words, mode: 'followUp' };
  }
  if (usage === '' && words !== '') return refused(`/${name} takes no words: write it alone.`);
  if (words === '' && usage !== '' && !usage.startsWith('['))
    return refused(`/${name} needs more: /${name} ${usage}`);
  return { kind: 'command', name, words };
};

/** Words that run a command when they stand alone in a line: as a message they would only cost a reply. */
const ALONE: Readonly<Record<string, CommandName>> = {
  '?': 'help',
  help: 'help',
  exit: 'quit',
  quit: 'quit',
};

/** Parses a submitted line. `/word` is a command for the terminal; a path like /etc/hosts is text. */
export const readTypedInput = (typed: string, mode: InputMode): TypedInput => {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  const alone = Object.hasOwn(ALONE, text) ? ALONE[text] : undefined;
  if (alone !== undefined) return { kind: 'command', name: alone, words: '' };
  // Not a shell command: a text of several lines, or one that begins with a Markdown image (`![`).
  const shell = /^!(?!\[)\s*(.*)$/.exec(text);
  if (shell !== null) {
    const command = shell[1] ?? '';
    return command === '' ? refused('What is to be run? !COMMAND') : { kind: 'shell', command };
  }
  const found = /^\/([\w-]*)(?:\s+(.*))?$/s.exec(text);
  if (found === null) return { kind: 'say', text, mode };
  return readCommand(found[1] ?? '', (found[2] ?? '').trim());
};
