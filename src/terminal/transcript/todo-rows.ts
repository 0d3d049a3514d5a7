import { harmless, type Look, paint } from '../print.js';
import { type Safe, safe } from '../safe-text.js';
import { cutLine } from '../width.js';

/** A list of what is to be done, in the few rows that can be spared for it. */

const ITEMS_MAX = 5;
const COLUMNS_MAX = 70;

const isDone = (line: string): boolean => line.startsWith('[x]');

/** The list of a result: how much is done, then an item a line, with a mark in brackets; empty of one with nothing left to do. */
export const openTodos = (text: string): readonly Safe[] => {
  const lines = harmless(text).trimEnd().split('\n');
  return lines.slice(1).some((line) => !isDone(line)) ? lines : [];
};

/** Items in progress and next ones; finished items are only counted. */
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
