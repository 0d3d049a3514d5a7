import type { Look } from '../print.js';
import type { Safe } from '../safe-text.js';
import { renderMarkdown } from './markdown.js';
import { clearPart, createBlocks } from './markdown-blocks.js';

/** Rows, at least one. */
export type Block = readonly Safe[];

/**
 * A streamed answer: finished blocks are given away as rows, once; the unfinished one can be looked at.
 *
 * A row that was given away is never wanted back: what follows can't change it.
 */
export type AnswerStream = {
  /** Adds text; the blocks that are finished by it, as rows. */
  add(text: string): readonly Block[];
  /** Rows of what is not finished. */
  live(columns: number): readonly Safe[];
  /** Takes the rest as it is. */
  finish(): readonly Block[];
  /** Drops the rest; `yes`: rows of this answer were given away. */
  drop(): 'yes' | 'no';
};

/** Characters of an unfinished block that are laid out; more than a screen holds. */
const LAID_OUT = 6_000;

/** The end of a long block; of a fence with the line that opens it. */
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
