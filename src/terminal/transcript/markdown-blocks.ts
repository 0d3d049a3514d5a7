/**
 * Cuts Markdown that is still coming into blocks that are finished and a rest that is not.
 *
 * 1. The pieces put together are the text: nothing is lost or changed.
 * 2. A block is finished when no text that follows can change how it looks: a paragraph, quote or table by a blank line,
 *    a heading by its line's end, a fence by its closing fence, a list by a line that is no part of it.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const INDENTED = /^(?: {2,}|\t)/;

type Inside =
  | { readonly kind: 'nothing' }
  /** `list`: the fence is part of an item. */
  | { readonly kind: 'fence'; readonly mark: string; readonly list: boolean }
  | { readonly kind: 'list'; readonly blank: boolean }
  | { readonly kind: 'text' };

const NOTHING: Inside = { kind: 'nothing' };
const LIST: Inside = { kind: 'list', blank: false };

/** A fence that begins here, perhaps in the item of a list. */
const fenceIn = (line: string, list: boolean): Inside | null => {
  const mark = FENCE.exec(list ? line.replace(/^(?:\s|[-*+]\s|\d{1,9}[.)]\s)+/, '') : line)?.[1];
  return mark === undefined ? null : { kind: 'fence', mark, list };
};

const closes = (line: string, mark: string): boolean => {
  const bare = line.trim();
  return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
};

/** State after a line, and whether a block ends before or after it. */
type Step = { readonly inside: Inside; readonly ends: 'before' | 'after' | 'no' };

const fresh = (line: string): Step => {
  if (line.trim() === '') return { inside: NOTHING, ends: 'after' };
  const fence = fenceIn(line, false);
  if (fence !== null) return { inside: fence, ends: 'no' };
  if (HEADING.test(line) || RULE.test(line)) return { inside: NOTHING, ends: 'after' };
  if (ITEM.test(line)) return { inside: fenceIn(line, true) ?? LIST, ends: 'no' };
  return { inside: { kind: 'text' }, ends: 'no' };
};

const inList = (line: string, blank: boolean): Step => {
  if (line.trim() === '') return { inside: { kind: 'list', blank: true }, ends: 'no' };
  const fence = fenceIn(line, true);
  if (RULE.test(line) || HEADING.test(line)) return { ...fresh(line), ends: 'before' };
  if (ITEM.test(line) || INDENTED.test(line)) return { inside: fence ?? LIST, ends: 'no' };
  if (blank || FENCE.test(line)) return { ...fresh(line), ends: 'before' };
  return { inside: LIST, ends: 'no' };
};

const inText = (line: string): Step => {
  if (line.trim() === '') return { inside: NOTHING, ends: 'after' };
  return FENCE.test(line) || HEADING.test(line)
    ? { ...fresh(line), ends: 'before' }
    : { inside: { kind: 'text' }, ends: 'no' };
};

const stepOver = (inside: Inside, line: string): Step => {
  switch (inside.kind) {
    case 'nothing':
      return fresh(line);
    case 'text':
      return inText(line);
    case 'list':
      return inList(line, inside.blank);
    case 'fence':
      if (!closes(line, inside.mark)) return { inside, ends: 'no' };
      return inside.list ? { inside: LIST, ends: 'no' } : { inside: NOTHING, ends: 'after' };
    default:
      return inside satisfies never;
  }
};

/** Remembers where it is, so that text is looked at once. */
export type Blocks = {
  /** Adds text; gives the blocks that are finished now. */
  add(text: string): readonly string[];
  /** The unfinished block. */
  rest(): string;
  /** Takes the rest: it counts as finished, or is dropped by the caller. */
  take(): string;
};

export const createBlocks = (): Blocks => {
  let inside: Inside = NOTHING;
  /** Text of the unfinished block: whole lines, and the line that is still coming. */
  let lines = '';
  let line = '';
  const ended: string[] = [];

  const end = (): void => {
    if (lines !== '') ended.push(lines);
    lines = '';
  };

  const takeLine = (whole: string): void => {
    const next = stepOver(inside, whole.replace(/\r?\n$/, ''));
    if (next.ends === 'before') end();
    lines += whole;
    inside = next.inside;
    // A heading that ended a block ends itself with its line.
    if (next.ends === 'after' || (next.ends === 'before' && inside.kind === 'nothing')) end();
  };

  return {
    add(text) {
      const parts = (line + text).split(/(?<=\n)/);
      line = parts.at(-1)?.endsWith('\n') === false ? (parts.pop() ?? '') : '';
      for (const part of parts) takeLine(part);
      return ended.splice(0);
    },
    rest: () => lines + line,
    take() {
      const rest = lines + line;
      lines = '';
      line = '';
      inside = NOTHING;
      return rest;
    },
  };
};

/** The last line may be the beginning of something else (a fence, a rule, a table): it is not shown until it is clear. */
const UNCLEAR = /(?:^|\n)[ \t]*(?:[`~]{1,2}|#{1,6}|[-*_=+]+|\d{1,9}[.)]?|\|[^\n]*|>)[ \t]*$/;

/** The unfinished rest without an end that could still become anything. */
export const clearPart = (rest: string): string => {
  const unclear = UNCLEAR.exec(rest);
  return unclear === null ? rest : rest.slice(0, unclear.index);
};
