/**
 * Finds Markdown's fenced blocks in one pass over the lines of a text.
 *
 * 1. A fence is three or more backticks or tildes, indented or not. Only as many of the same, or more, and nothing else
 *    on the line, close it: so a block can show other blocks.
 * 2. An unclosed block extends to the end of the text.
 * 3. The indentation of the opening fence is removed from the lines of the block, as far as they have it.
 */

export type CodeBlock = {
  /** The text after the opening fence: `repl`, `js title=x`, or empty. */
  readonly info: string;
  readonly text: string;
  readonly closed: 'yes' | 'no';
  /** Start and end offsets of the block in the text, including its fences. */
  readonly from: number;
  readonly to: number;
};

type Opening = {
  readonly indent: number;
  readonly mark: string;
  readonly size: number;
  readonly info: string;
};

const isBlank = (code: number): boolean => code === 32 || code === 9;

const skip = (line: string, from: number, is: (code: number) => boolean): number => {
  let index = from;
  while (index < line.length && is(line.charCodeAt(index))) index += 1;
  return index;
};

const fenceSizeMin = 3;

/** The opening fence in a line, or null. A backtick after a fence of backticks makes it inline code. */
const openingOf = (line: string): Opening | null => {
  const indent = skip(line, 0, isBlank);
  const mark = line[indent];
  if (mark !== '`' && mark !== '~') return null;
  const end = skip(line, indent, (code) => code === mark.charCodeAt(0));
  if (end - indent < fenceSizeMin) return null;
  const info = line.slice(end).trim();
  return mark === '`' && info.includes('`') ? null : { indent, mark, size: end - indent, info };
};

const closes = (line: string, { mark, size }: Opening): boolean => {
  const start = skip(line, 0, isBlank);
  const end = skip(line, start, (code) => code === mark.charCodeAt(0));
  return end - start >= size && skip(line, end, isBlank) === line.length;
};

const unindent = (line: string, indent: number): string => {
  let count = 0;
  while (count < indent && isBlank(line.charCodeAt(count))) count += 1;
  return line.slice(count);
};

type Line = { readonly text: string; readonly from: number; readonly to: number };

/** Lines without their LF or CR LF; the offsets include it. */
export function* linesOf(text: string): Generator<Line> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    const to = end < 0 ? text.length : end + 1;
    const content = end < 0 ? text.length : end;
    const isWindows = content > from && text.charCodeAt(content - 1) === 13;
    yield { text: text.slice(from, isWindows ? content - 1 : content), from, to };
    from = to;
  }
}

/** All blocks in order. */
export const fencesOf = (text: string): readonly CodeBlock[] => {
  const fences: CodeBlock[] = [];
  let open: (Opening & { readonly from: number; readonly lines: string[] }) | null = null;
  const end = (closed: CodeBlock['closed'], to: number): void => {
    if (open === null) return;
    fences.push({ info: open.info, text: open.lines.join('\n'), closed, from: open.from, to });
    open = null;
  };
  for (const line of linesOf(text)) {
    if (open === null) {
      const opening = openingOf(line.text);
      if (opening !== null) open = { ...opening, from: line.from, lines: [] };
    } else if (closes(line.text, open)) end('yes', line.to);
    else open.lines.push(unindent(line.text, open.indent));
  }
  end('no', text.length);
  return fences;
};
