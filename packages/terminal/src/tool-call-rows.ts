/**
 * The rows of an ended tool call, with its diff. `Safe` is text that can't control the terminal.
 */

import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import { diffRows, finishedDiff } from './diff-rows.js';
import {
  countColumns,
  cutLine,
  formatSeconds,
  harmless,
  type Look,
  lineSign,
  oneLine,
  paint,
  wrapWords,
} from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';
import { type KnownCall, showsOutput, type ToolResult } from './step-lines.js';

/**
 * An ended call: one line, and below it only the output that the user must see. `whole`: what
 * Ctrl-O prints, the whole diff or else all output; empty where the rows are whole already.
 */
type CallRows = { readonly rows: readonly Safe[]; readonly whole: readonly Safe[] };

/** The rows of an ended call. Lines that are left out are counted, and Ctrl-O shows `whole`. */
export const callRows = (result: ToolResult, known: KnownCall, look: Look): CallRows => {
  const { call, title, tookMs } = known;
  if (call?.traits.asks === 'question') return answeredRows(result, title, look);
  const good = result.status === 'ok';
  // no duration: its start was not seen
  if (!good && tookMs === null) return unseenCallRows(result, title, look);
  const duration = tookMs === null ? safe`` : formatSeconds(tookMs);
  const notes = joinSafe(
    [callSummary(result, call), duration].filter((note) => note !== ''),
    safe` `,
  );
  const head = callHead(result, title, notes, look);
  const all = indented(outputLines(result.text));
  const whole =
    result.diff === null
      ? all
      : diffRows(look, result.diff, finishedDiff(Number.POSITIVE_INFINITY)).rows;
  return { rows: [head, ...rowsBelow(result, call, look)], whole: [head, ...whole] };
};

/** Lines of output below a failed call. */
const FAILED_LINES = 6;
/** Rows of output below a successful call. A longer output shows its first and last lines. */
const SHORT_LINES = 6;
const FIRST_LINES = 3;
const LAST_LINES = 2;
const DIFF_LINES = 24;
const SUMMARY_COLUMNS = 40;
const INDENT = safe`    `;
/** The sign before a row, with its space. */
const SIGN_COLUMNS = 2;
/** The sign, and the spaces between tool, title and notes. */
const HEAD_GAPS = SIGN_COLUMNS + 2;
/** A shorter piece of a title, or of a text, tells nothing. */
const TEXT_COLUMNS_MIN = 8;
/** The same for the title of a call that never ran: why it did not may go to the next row. */
const UNSEEN_TITLE_COLUMNS_MIN = 20;
const SEPARATOR = safe` · `;

const moreLines = (count: number): Safe =>
  safe`… ${count} more ${count === 1 ? safe`line` : safe`lines`} (Ctrl-O)`;

const outputLines = (text: string): readonly Safe[] => {
  const whole = harmless(text).trimEnd();
  return whole === '' ? [] : whole.split('\n');
};

/** The line after the output of a command that ended well; remarks of the tool follow it. */
const COMMAND_END = /^\[exit code 0, \d+\.\d s\]$/;

/** The output without what the tool says of it to the model. */
const withoutRemarks = (text: string): readonly Safe[] => {
  const lines = outputLines(text);
  const end = lines.findLastIndex((line) => COMMAND_END.test(line));
  return end < 0 ? lines : lines.slice(0, end);
};

const countText = (text: string): Safe => {
  const count = withoutRemarks(text).length;
  if (count === 0) return safe``;
  return count === 1 ? safe`1 line` : safe`${count} lines`;
};

const indented = (lines: readonly Safe[]): readonly Safe[] =>
  lines.map((line) => safe`${INDENT}${line}`);

const dimmed = (look: Look, lines: readonly Safe[]): readonly Safe[] =>
  indented(lines).map((line) => paint(look, 'dim', cutLine(line, look.columns)));

const lastLines = (look: Look, lines: readonly Safe[], limit: number): readonly Safe[] => {
  const more = lines.length - limit;
  return dimmed(look, more > 0 ? [moreLines(more), ...lines.slice(-limit)] : lines);
};

const firstAndLast = (lines: readonly Safe[]): readonly Safe[] => {
  if (lines.length <= SHORT_LINES) return lines;
  const more = moreLines(lines.length - FIRST_LINES - LAST_LINES);
  return [...lines.slice(0, FIRST_LINES), more, ...lines.slice(-LAST_LINES)];
};

const callHead = (result: ToolResult, title: string, notes: Safe, look: Look): Safe => {
  const mark =
    result.status === 'ok'
      ? paint(look, 'green', lineSign(look, '✓'))
      : paint(look, 'red', lineSign(look, '✗'));
  const tool = makeSafe(result.tool);
  const room = look.columns - countColumns(tool) - countColumns(notes) - HEAD_GAPS;
  const head =
    safe`${mark} ${paint(look, 'bold', tool)} ${oneLine(title, Math.max(TEXT_COLUMNS_MIN, room))}`.trimEnd();
  return notes === '' ? head : safe`${head} ${paint(look, 'dim', notes)}`;
};

/** A question of the model, and below it the answer of the user, or why there is none. */
const answeredRows = (result: ToolResult, title: string, look: Look): CallRows => {
  const good = result.status === 'ok';
  const answer = good ? (result.summary ?? result.text) : (result.text.split('\n')[0] ?? '');
  const hanging = (sign: Safe, text: string): readonly Safe[] =>
    wrapWords(
      harmless(text).trim(),
      Math.max(TEXT_COLUMNS_MIN, look.columns - SIGN_COLUMNS - 1),
    ).map((row, index) => (index === 0 ? safe`${sign} ${row}` : safe`  ${row}`));
  const rows = [
    ...hanging(paint(look, 'yellow', safe`?`), title),
    ...hanging(paint(look, good ? 'green' : 'red', lineSign(look, good ? '✓' : '✗')), answer),
  ];
  return { rows, whole: [] };
};

/** A call that never ran, or that ran unseen. The first line of its result says why. */
const unseenCallRows = (result: ToolResult, title: string, look: Look): CallRows => {
  const [why = safe``, ...more] = outputLines(result.text);
  const taken = countColumns(safe`${makeSafe(result.tool)}${SEPARATOR}${why}`) + HEAD_GAPS;
  const titleColumns = Math.max(UNSEEN_TITLE_COLUMNS_MIN, look.columns - taken);
  const head = callHead(result, oneLine(title, titleColumns), safe``, look);
  const whole = [safe`${head}${SEPARATOR}${why}`, ...indented(more)];
  const isShort = countColumns(whole[0] ?? safe``) < look.columns || look.plain === 'yes';
  const whyColumns = Math.max(TEXT_COLUMNS_MIN, look.columns - INDENT.length - 1);
  const headRows = isShort
    ? [safe`${head}${SEPARATOR}${paint(look, 'dim', why)}`]
    : [head, ...indented(wrapWords(why, whyColumns)).map((row) => paint(look, 'dim', row))];
  return { rows: [...headRows, ...lastLines(look, more, FAILED_LINES)], whole };
};

/**
 * The status of a call that did not end ok. Otherwise the tool's own summary, the heading of a
 * list, or a count of lines; empty for a diff, which is shown.
 */
const callSummary = (
  { status, summary, diff, text }: ToolResult,
  call: JudgedCall | undefined,
): Safe => {
  if (status !== 'ok') return makeSafe(status);
  if (summary !== undefined) return oneLine(summary, SUMMARY_COLUMNS);
  if (diff !== null) return safe``;
  return call?.traits.shown === 'list' ? (outputLines(text)[0] ?? safe``) : countText(text);
};

/** The output that the user must see: the diff, the end of a failure, the output of a change. */
const rowsBelow = (
  result: ToolResult,
  call: JudgedCall | undefined,
  look: Look,
): readonly Safe[] => {
  if (result.diff !== null) {
    const { rows, leftOut } = diffRows(look, result.diff, finishedDiff(DIFF_LINES));
    return leftOut > 0 ? [...rows, ...dimmed(look, [moreLines(leftOut)])] : rows;
  }
  if (result.status !== 'ok') return lastLines(look, outputLines(result.text), FAILED_LINES);
  // For a call that only reads, the summary is enough, unless it is a command.
  if (!showsOutput(call)) return [];
  return dimmed(look, firstAndLast(withoutRemarks(result.text)));
};
