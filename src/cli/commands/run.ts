import { harmless, paint } from '../../terminal/print.js';
import { indentWords, wrapWords } from '../../terminal/width.js';
import { endingOfError } from '../exit-codes.js';
import { type CommandName, keyHelp, slashHelp } from '../slash.js';
import { diff } from './diff.js';
import { exportTo } from './export.js';
import { jobs } from './jobs.js';
import { model } from './model.js';
import { budget, cost } from './money.js';
import { permissions } from './permissions.js';
import { type Command, NotNow, type Room } from './room.js';
import { clear, fork, resume } from './sessions.js';

/** The commands of the terminal, by name. */

const NAMES_COLUMNS = 31;

/** Names beside what they do; in a narrow window above it. */
const helpRows = (columns: number): readonly string[] =>
  [...slashHelp, ...keyHelp].flatMap(([name, what]) => {
    if (columns < 2 * NAMES_COLUMNS)
      return [`  ${name}`, ...wrapWords(what, columns - 5).map((row) => `    ${row}`)];
    const rows = wrapWords(what, columns - NAMES_COLUMNS - 1);
    return rows.map((row, index) => (index === 0 ? `  ${name}` : '').padEnd(NAMES_COLUMNS) + row);
  });

const help: Command = ({ desk, look }) => desk.print(helpRows(look.columns).join('\n'));

const compact: Command = async ({ session }, words) =>
  void (await session.send({ type: 'CompactRequested', ...(words === '' ? {} : { instructions: words }) }));

const retry: Command = async ({ session, desk }) =>
  void (await session.send({ type: desk.state.name === 'Error' ? 'RetryNow' : 'RetryLast' }));

const commands: Readonly<Record<CommandName, Command>> = {
  help,
  model,
  compact,
  cost,
  budget,
  resume,
  fork,
  clear,
  permissions,
  jobs,
  diff,
  export: exportTo,
  retry,
  paste: ({ paste }) => paste(),
  quit: ({ quit }) => quit(),
};

/** Runs what a command asks for; what goes wrong is said, and nothing else comes of it. */
export const attemptFor = async ({ desk, look }: Room, work: () => void | Promise<void>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    const message = error instanceof NotNow ? error.message : endingOfError(error).message;
    desk.print(paint(look, 'yellow', indentWords(harmless(message), look.columns)));
  }
  desk.redraw();
};

export const runCommand = (room: Room, name: CommandName, words: string): Promise<void> =>
  attemptFor(room, () => commands[name](room, words));
