import type { ApprovalDescription } from '@pawl/agent/policy/approval-question';
import type { Frame } from '../frame-type.js';
import { editorFrame } from '../input/editor-rows.js';
import { type Look, oneLine, paint } from '../paint-text.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';
import { cutLine } from '../width.js';
import type { Questions } from './approval-questions.js';
import { letterOf } from './question-rows.js';
import type { WindowSize } from './reading-window.js';

/** The frame of a question: its head, the rows that fit, the other questions, the keys. */

/** The other questions are listed only in windows of at least this height, and at most this many. */
const LIST_ROWS_MIN = 16;
const LISTED_MAX = 5;
const REASON_ROWS = 3;

const nearest = ({ paths, folder }: ApprovalDescription): string =>
  paths.map((path) => (path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path)).join(' ');

/** A question in a few words, for the list of the other questions. */
const titleOf = (description: ApprovalDescription): string => {
  const { tool, subject } = description;
  return `${tool} ${subject.kind === 'change' ? nearest(description) : subject.text}`;
};

const listOf = (questions: Questions, look: Look, window: WindowSize): readonly Safe[] => {
  if (questions.all.length < 2 || window.rows < LIST_ROWS_MIN) return [];
  const rows = questions.all.slice(0, LISTED_MAX).map((description, index) => {
    const marker = index + 1 === questions.position ? safe`›` : safe` `;
    const title = oneLine(`${index + 1} ${titleOf(description)}`, window.columns - 5);
    return safe`  ${paint(look, 'dim', cutLine(safe`${marker} ${title}`, window.columns - 3))}`;
  });
  const left = questions.all.length - LISTED_MAX;
  return [...rows, ...(left > 0 ? [paint(look, 'dim', safe`    … ${left} more`)] : [])];
};

const WHAT = {
  command: safe`runs a command`,
  address: safe`reads an address`,
  input: safe`is to run`,
} as const;

const headOf = (questions: Questions, look: Look, { columns }: WindowSize): Safe => {
  const description = questions.description;
  if (description === null) return safe``;
  const count = questions.all.length;
  const place = count > 1 ? safe` · ${questions.position} of ${count}` : safe``;
  const { subject, tool } = description;
  const about = subject.kind === 'change' ? oneLine(nearest(description), columns) : WHAT[subject.kind];
  const head = safe`${makeSafe(tool)} ${about}${place}`;
  return safe`${paint(look, 'yellow', safe`?`)} ${paint(look, 'bold', cutLine(head, columns - 3))}`;
};

/** One row with the keys that work now. */
const keysOf = (questions: Questions, look: Look, window: WindowSize): Safe => {
  const { description, advice, left } = questions;
  if (description === null) return safe``;
  if (advice !== '') return paint(look, 'yellow', cutLine(safe`  ${makeSafe(advice)}`, window.columns - 1));
  const letters = makeSafe(description.choices.map(({ answer }) => letterOf(answer)).join(' '));
  const several = questions.all.length > 1;
  const all = several ? safe` · A yes to all ${questions.all.length} · tab next` : safe``;
  const more = left > 0 ? safe`↓ ${left} more ${left === 1 ? safe`row` : safe`rows`} · ` : safe``;
  return paint(look, 'dim', cutLine(safe`  ${more}${letters}${all} · Escape stops`, window.columns - 1));
};

/**
 * The whole frame. `above`: rows that are left out if there is no room. `below`: the input line, while keys still go to
 * it.
 */
export const questionFrame = (
  questions: Questions,
  look: Look,
  window: WindowSize,
  above: readonly Safe[],
  below: Frame | null,
): Frame => {
  const room = Math.max(1, window.rows - 1);
  const { reason } = questions;
  const typed = below ?? (reason === null ? null : editorFrame(reason, window.columns, REASON_ROWS, safe`n`));
  const footRows = Math.max(0, Math.min(typed?.rows.length ?? 1, room - 1));
  const head = room - footRows >= 2 ? [headOf(questions, look, window)] : [];
  const list = listOf(questions, look, window);
  const listed = room - footRows - head.length - list.length >= 3 ? list : [];
  const left = room - footRows - head.length - listed.length;
  const body = questions.rows(look, Math.min(left, questions.height(look, window.columns)), window);
  // The number of unread rows is known only now.
  const foot = (typed === null ? [keysOf(questions, look, window)] : typed.rows).slice(0, footRows);
  const spare = left - body.length;
  const upper = spare > 0 ? above.slice(-spare) : [];
  const rows = [...upper, ...head, ...body, ...listed, ...foot];
  const cursor = typed?.cursor ?? null;
  if (cursor === null || cursor.row >= foot.length) return { rows, cursor: null };
  return { rows, cursor: { ...cursor, row: cursor.row + rows.length - foot.length } };
};
