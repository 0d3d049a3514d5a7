/**
 * Divides streamed Markdown into finished blocks and an unfinished rest.
 *
 * 1. The pieces joined are the text: nothing is lost or changed.
 * 2. A block is finished when later text can't change its look. A blank line ends a paragraph, a quote or a table; the
 *    end of its line ends a heading; the closing fence ends a code block; a line outside of the list ends a list.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const INDENTED = /^(?: {2,}|\t)/;

type Inside =
  | { readonly kind: 'nothing' }
  /** `list`: the fence belongs to a list item. */
  | { readonly kind: 'fence'; readonly mark: string; readonly list: boolean }
  | { readonly kind: 'list'; readonly blank: boolean }
  | { readonly kind: 'text' };

const NOTHING: Inside = { kind: 'nothing' };
const LIST: Inside = { kind: 'list', blank: false };

/** The fence that begins in this line, possibly inside a list item. */
const fenceIn = (line: string, list: boolean): Inside | null => {
  const mark = FENCE.exec(list ? line.replace(/^(?:\s|[-*+]\s|\d{1,9}[.)]\s)+/, '') : line)?.[1];
  return mark === undefined ? null : { kind: 'fence', mark, list };
};

const closes = (line: string, mark: string): boolean => {
  const bare = line.trim();
  return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
};

/** State after a line, and whether a block ends before or after the line. */
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

/** Reads each character once: it remembers its position. */
export type Blocks = {
  /** Adds text. Returns the blocks that it finishes. */
  add(text: string): readonly string[];
  /** The unfinished block. */
  rest(): string;
  /** Returns the unfinished block and starts a new one. */
  take(): string;
};

export const createBlocks = (): Blocks => {
  let inside: Inside = NOTHING;
  /** Text of the unfinished block: its complete lines, then the line that is still streaming. */
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
    // A heading also ends itself at the end of its line.
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

/** The last line may still become a fence, a rule or a table. It is hidden until that is clear. */
const UNCLEAR = /(?:^|\n)[ \t]*(?:[`~]{1,2}|#{1,6}|[-*_=+]+|\d{1,9}[.)]?|\|[^\n]*|>)[ \t]*$/;

/** The unfinished block without an ambiguous last line. */
export const clearPart = (rest: string): string => {
  const unclear = UNCLEAR.exec(rest);
  return unclear === null ? rest : rest.slice(0, unclear.index);
};
