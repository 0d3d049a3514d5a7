import type { Choice } from '@pawl/terminal/input/completion';
import { type Look, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { indentWords, wrapWords } from '@pawl/terminal/width';
import { endingOfError } from '../exit-codes.js';
import { clear, fork, resume } from './change-session.js';
import { type Command, type CommandContext, NotNow } from './command-context.js';
import { type CommandName, keyHelp, slashHelp } from './command-table-and-parser.js';
import { budget, cost } from './cost-and-budget.js';
import { diff } from './diff.js';
import { effort } from './effort.js';
import { exportTo } from './export.js';
import { inspect } from './inspect.js';
import { jobs } from './jobs.js';
import { mcp } from './mcp.js';
import { model } from './model.js';
import { permissions } from './permissions.js';
import { preset } from './preset.js';

/** Runs slash commands by name. */

/** Characters that /help shows of the description of a skill. */
const ABOUT_MAX = 100;

/** A heading, then names with their descriptions beside them, or below them in a narrow window. */
const groupRows = (
  look: Look,
  heading: Safe,
  group: readonly (readonly [string, string])[],
): readonly Safe[] => {
  const wide = 4 + Math.max(...group.map(([usage]) => usage.length));
  const rows = group.flatMap(([usage, about]) => {
    const name = safe`  ${makeSafe(usage)}`;
    if (look.columns < 2 * wide) {
      const below = wrapWords(makeSafe(about), look.columns - 5);
      return [paint(look, 'bold', name), ...below.map((row) => safe`    ${row}`)];
    }
    return wrapWords(makeSafe(about), look.columns - wide - 1).map((row, index) =>
      index === 0
        ? safe`${paint(look, 'bold', name.padEnd(wide))}${row}`
        : safe`${safe``.padEnd(wide)}${row}`,
    );
  });
  return [paint(look, 'heading', heading), ...rows];
};

const helpRows = (look: Look, own: readonly Choice[]): readonly Safe[] => [
  ...groupRows(look, safe`Commands`, slashHelp),
  safe``,
  ...(own.length === 0
    ? []
    : [
        ...groupRows(
          look,
          safe`Skills and commands of your own`,
          own.map(({ text, about }) => [`/${text}`, about.slice(0, ABOUT_MAX)] as const),
        ),
        safe``,
      ]),
  ...groupRows(look, safe`Keys`, keyHelp),
];

const help: Command = ({ view, look, prompts }) =>
  view.print(joinSafe(helpRows(look, prompts.choices), safe`\n`));

const compact: Command = async ({ session }, words) =>
  void (await session.send({ type: 'CompactRequested', ...(words === '' ? {} : { instructions: words }) }));

const retry: Command = async ({ session, view }) =>
  void (await session.send({ type: view.state.name === 'Error' ? 'RetryNow' : 'RetryLast' }));

const commands: Readonly<Record<CommandName, Command>> = {
  help,
  model,
  effort,
  compact,
  cost,
  budget,
  resume,
  fork,
  clear,
  permissions,
  preset,
  jobs,
  mcp,
  diff,
  export: exportTo,
  inspect,
  retry,
  paste: ({ paste }) => paste(),
  quit: ({ quit }) => quit(),
};

/** Runs `work`. A failure is printed, not thrown. */
export const attemptFor = async (
  { view, look }: CommandContext,
  work: () => void | Promise<void>,
): Promise<void> => {
  try {
    await work();
  } catch (error) {
    const message = error instanceof NotNow ? error.message : endingOfError(error).message;
    view.print(paint(look, 'yellow', indentWords(makeSafe(message), look.columns)));
  }
  view.redraw();
};

export const runCommand = (context: CommandContext, name: CommandName, words: string): Promise<void> =>
  attemptFor(context, () => commands[name](context, words));
