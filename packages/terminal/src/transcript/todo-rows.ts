import { harmless, type Look, paint } from '../paint-text.js';
import { type Safe, safe } from '../safe-text.js';
import { cutLine } from '../width.js';

/** Rows of the model's to-do list above the input line. */

const ITEMS_MAX = 5;
const COLUMNS_MAX = 70;

const isDone = (line: string): boolean => line.startsWith('[x]');

/** Lines of a to-do list: a heading with counts, then one item per line with a mark in brackets. Empty if all are done. */
export const openTodos = (text: string): readonly Safe[] => {
  const lines = harmless(text).trimEnd().split('\n');
  return lines.slice(1).some((line) => !isDone(line)) ? lines : [];
};

/** Items in progress and the next ones. Finished items are only counted. */
export const todoRows = (
  look: Look,
  [head = safe``, ...items]: readonly Safe[],
  columns: number,
): readonly Safe[] => {
  if (items.length === 0) return [];
  const open = items.filter((line) => !isDone(line));
  const left = open.length - ITEMS_MAX;
  const rows = [head, ...open.slice(0, ITEMS_MAX), ...(left > 0 ? [safe`… ${left} more`] : [])];
  return rows.map((row, index) => {
    const text = cutLine(index === 0 ? row : safe`  ${row}`, Math.min(columns, COLUMNS_MAX));
    return row.startsWith('[>]') ? text : paint(look, 'dim', text);
  });
};
