import type { Action } from '../agent/action.js';
import type { JudgedCall } from '../agent/call.js';
import { diffRows } from './diff-rows.js';
import { formatSeconds, harmless, type Look, oneLine, paint } from './print.js';
import { cutLine } from './width.js';

/** A call that ended, as one line, with as much below it as one must see; `whole` is all of it. */
export type Folded = { readonly rows: readonly string[]; readonly whole: readonly string[] };

export type ToolResult = Extract<Action, { readonly type: 'DisplayToolResult' }>;

/** What is known of a call by the time its result comes; `tookMs` is null of one that was not seen to start. */
export type Known = {
  readonly call: JudgedCall | undefined;
  readonly title: string;
  readonly tookMs: number | null;
};

/** Lines of output below a call that did not end well. */
const FAILED_LINES = 6;
/** Output that is not longer is shown even where all went well. */
const SHORT_LINES = 3;
const DIFF_LINES = 24;
const INDENT = '    ';

const moreLines = (count: number): string => `… ${count} more ${count === 1 ? 'line' : 'lines'}`;

const linesOf = (text: string): readonly string[] => {
  const whole = harmless(text).trimEnd();
  return whole === '' ? [] : whole.split('\n');
};

/** What a tool says about its output, in brackets, is none of it. */
const isRemark = (line: string): boolean => /^\[.*\]$/.test(line);

const countText = (text: string): string => {
  const count = linesOf(text).filter((line) => !isRemark(line)).length;
  return count === 0 ? '' : `${count} ${count === 1 ? 'line' : 'lines'}`;
};

const dimmed = (look: Look, lines: readonly string[]): readonly string[] =>
  lines.map((line) => paint(look, 'dim', cutLine(`${INDENT}${line}`, look.columns)));

const lastLines = (look: Look, text: string, limit: number): readonly string[] => {
  const lines = linesOf(text);
  const left = lines.length - limit;
  return dimmed(look, left > 0 ? [moreLines(left), ...lines.slice(-limit)] : lines);
};

const headOf = (result: ToolResult, title: string, notes: string, look: Look): string => {
  const mark = result.status === 'ok' ? paint(look, 'green', '✓') : paint(look, 'red', '✗');
  const room = look.columns - result.tool.length - notes.length - 4;
  const head = `${mark} ${paint(look, 'bold', result.tool)} ${oneLine(title, Math.max(12, room))}`.trimEnd();
  return notes === '' ? head : `${head} ${paint(look, 'dim', notes)}`;
};

/** A call that never ran, or ran when nobody looked: its first line says why. */
const foldUnseen = (result: ToolResult, title: string, look: Look): Folded => {
  const [why = '', ...more] = linesOf(result.text);
  const room = look.columns - result.tool.length - why.length - 7;
  const head = headOf(result, oneLine(title, Math.max(20, room)), '', look);
  const rows = [`${head} · ${paint(look, 'dim', why)}`, ...lastLines(look, more.join('\n'), FAILED_LINES)];
  return { rows, whole: [`${head} · ${why}`, ...dimmed(look, more)] };
};

/** What came back, in a word or two: of a list its own first line. */
const amountOf = ({ status, diff, text }: ToolResult, call: JudgedCall | undefined): string => {
  if (status !== 'ok') return status;
  if (diff !== null) return '';
  return call?.traits.shown === 'list' ? (linesOf(text)[0] ?? '') : countText(text);
};

const belowOf = (result: ToolResult, call: JudgedCall | undefined, look: Look): readonly string[] => {
  if (result.diff !== null) {
    const { rows, left } = diffRows(look, result.diff, DIFF_LINES);
    return left > 0 ? [...rows, ...dimmed(look, [moreLines(left)])] : rows;
  }
  if (result.status !== 'ok') return lastLines(look, result.text, FAILED_LINES);
  const lines = linesOf(result.text).filter((line) => !isRemark(line));
  return (call?.traits.mutating ?? false) && lines.length <= SHORT_LINES ? dimmed(look, lines) : [];
};

export const foldCall = (result: ToolResult, known: Known, look: Look): Folded => {
  const { call, title, tookMs } = known;
  const good = result.status === 'ok';
  if (!good && tookMs === null) return foldUnseen(result, title, look);
  const notes = [amountOf(result, call), tookMs === null ? '' : formatSeconds(tookMs)];
  const head = headOf(result, title, notes.filter((note) => note !== '').join(' '), look);
  const all = linesOf(result.text).map((line) => `${INDENT}${line}`);
  const whole = result.diff === null ? all : diffRows(look, result.diff, Number.POSITIVE_INFINITY).rows;
  return { rows: [head, ...belowOf(result, call, look)], whole: [head, ...whole] };
};
