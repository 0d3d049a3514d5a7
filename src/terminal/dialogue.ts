import { diffRows } from './diff-rows.js';
import { harmless, type Look, paint } from './print.js';
import { cutLine, wrapWords } from './width.js';

/** What is shown of a call that needs an answer. */
export type Dialogue = {
  readonly tool: string;
  /** What the call is about: a command, a file. */
  readonly title: string;
  /** The rule that asks. */
  readonly why: string;
  /** What would change, as a unified diff; null of what can't be foreseen. */
  readonly diff: string | null;
  /** The ways to answer. */
  readonly choices: string;
  /** How many more questions wait. */
  readonly more: number;
};

const TITLE_ROWS = 6;

/** The whole question, as lines of at most `columns`; of a diff no more than `diffMax` rows. */
export const dialogueRows = (
  dialogue: Dialogue,
  look: Look,
  columns: number,
  diffMax: number,
): readonly string[] => {
  const { tool, title, why, diff, choices, more } = dialogue;
  const [first = '', ...rest] = harmless(title).split('\n');
  const waits = more === 0 ? '' : paint(look, 'dim', ` (${more} more ${more === 1 ? 'waits' : 'wait'})`);
  const head = cutLine(`${tool} ${first}`, columns - 3 - (more === 0 ? 0 : 16));
  const { rows, left } =
    diff === null ? { rows: [], left: 0 } : diffRows({ ...look, columns }, diff, diffMax);
  return [
    `${paint(look, 'yellow', '?')} ${paint(look, 'bold', head)}${waits}`,
    ...rest.slice(0, TITLE_ROWS).map((line) => cutLine(`    ${line}`, columns - 1)),
    ...(rest.length > TITLE_ROWS ? [paint(look, 'dim', `    … ${rest.length - TITLE_ROWS} more lines`)] : []),
    paint(look, 'dim', cutLine(`  ${harmless(why)}`, columns - 1)),
    ...rows,
    ...(left === 0 ? [] : [paint(look, 'dim', `    … ${left} more lines: d shows all`)]),
    ...wrapWords(`  ${choices}${left === 0 ? '' : ' · d all of it'}`, columns - 1),
  ];
};
