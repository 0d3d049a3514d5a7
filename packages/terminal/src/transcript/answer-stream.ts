import type { Look } from '../paint-text.js';
import type { Safe } from '../safe-text.js';
import { renderMarkdown } from './markdown.js';
import { clearPart, createBlocks } from './markdown-blocks.js';

/** Rows, at least one. */
export type Block = readonly Safe[];

/**
 * Lays out a streamed answer. Each finished block is returned once, as rows; `live` shows the unfinished block.
 *
 * Returned rows are final: later text can't change them.
 */
export type AnswerStream = {
  /** Adds text. Returns the rows of the blocks that it finishes. */
  add(text: string): readonly Block[];
  /** Rows of the unfinished block. */
  live(columns: number): readonly Safe[];
  /** Ends the answer. Returns the rows of the unfinished block. */
  finish(): readonly Block[];
  /** Drops the unfinished block. `yes`: earlier rows of this answer were already returned. */
  drop(): 'yes' | 'no';
};

/** Characters of an unfinished block to lay out; more than a screen holds. */
const LAID_OUT = 6_000;

/** The end of a long block. A code block keeps its opening line. */
const endOf = (text: string): string => {
  if (text.length <= LAID_OUT) return text;
  const from = text.indexOf('\n', text.length - LAID_OUT) + 1;
  const opening = /^ {0,3}(?:`{3,}|~{3,})[^\n]*\n/.exec(text)?.[0] ?? '';
  return opening + text.slice(from > 0 ? from : -LAID_OUT);
};

export const createAnswerStream = (look: Look): AnswerStream => {
  const blocks = createBlocks();
  let begun = false;
  const given = (texts: readonly string[]): readonly Block[] => {
    const rendered = texts
      .map((text) => renderMarkdown(look, text, look.columns, true))
      .filter((rows) => rows.length > 0);
    begun ||= rendered.length > 0;
    return rendered;
  };
  return {
    add: (text) => given(blocks.add(text)),
    live: (columns) => renderMarkdown(look, clearPart(endOf(blocks.rest())), columns, false),
    finish() {
      const rest = given([blocks.take()]);
      begun = false;
      return rest;
    },
    drop() {
      blocks.take();
      const shown = begun;
      begun = false;
      return shown ? 'yes' : 'no';
    },
  };
};
