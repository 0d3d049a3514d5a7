import { harmless, type Look, paint } from '../paint-text.js';
import { joinSafe, keepStyles, type Safe, safe } from '../safe-text.js';
import type { Style } from '../theme.js';
import { wrapText } from '../width.js';
import { highlightCode } from './highlight.js';

/**
 * Renders Markdown as rows. Loading the renderer takes as long as everything else together, so it is loaded after the
 * first paint. Earlier text is shown as it is.
 */
type Component = typeof import('@earendil-works/pi-tui/dist/components/markdown.js');

let component: Component | null = null;

/** Resolves when `renderMarkdown` can render. The renderer is part of the program, so loading doesn't fail. */
export const loadMarkdown = async (): Promise<void> => {
  if (component !== null) return;
  const [loaded, { setCapabilities }] = await Promise.all([
    import('@earendil-works/pi-tui/dist/components/markdown.js'),
    import('@earendil-works/pi-tui/dist/terminal-image.js'),
  ]);
  // Show addresses in full: not every terminal can open links, and a hidden address can mislead.
  setCapabilities({ images: null, trueColor: false, hyperlinks: false });
  component = loaded;
};

/** Stands for a code fence in the renderer's output; such rows are dropped. A private character, so no text contains it. */
const FENCE_ROW = '\ue0f1';

const themeOf = (look: Look, finished: boolean) => {
  const style = (name: Style) => (text: string) => paint(look, name, keepStyles(text));
  return {
    heading: style('heading'),
    link: style('link'),
    linkUrl: style('dim'),
    code: style('code'),
    codeBlock: (text: string) => text,
    codeBlockBorder: () => FENCE_ROW,
    quote: (text: string) => text,
    quoteBorder: style('dim'),
    hr: style('dim'),
    listBullet: style('mark'),
    bold: style('bold'),
    italic: style('italic'),
    strikethrough: style('struck'),
    underline: style('underline'),
    codeBlockIndent: '  ',
    ...(finished
      ? {
          highlightCode: (code: string, language?: string) => [
            ...highlightCode(look, keepStyles(code), language ?? ''),
          ],
        }
      : {}),
  };
};

/** Removes spaces at the end of a row, also before codes that end a colour. */
const trimmed = (row: string): Safe => keepStyles(row.replace(/[ ]+((?:\u001b\[[\d;]*m)*)$/, '$1'));

/** A block that is a single fence, open or closed: its indent, mark, language and code. */
const FENCED = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)(?:\n|$)([\s\S]*)$/;

const CODE_INDENT = safe`  `;

/** The code before the closing fence; null if more text follows the fence. */
const withoutClosing = (body: string, mark: string): string | null => {
  const lines = body.split('\n');
  const end = lines.findIndex((line) => {
    const bare = line.trim();
    return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
  });
  if (end < 0) return body;
  return lines.slice(end + 1).some((line) => line.trim() !== '') ? null : lines.slice(0, end).join('\n');
};

/** Continues long lines in indented rows. */
const wrapCode = (line: Safe, columns: number): readonly Safe[] => {
  const [first = safe``, ...rest] = wrapText(line, columns);
  if (rest.length === 0) return [first];
  return [first, ...wrapText(joinSafe(rest), Math.max(2, columns - 2)).map((row) => safe`  ${row}`)];
};

/** Code without its fences, indented. Finished code is coloured. */
const codeRows = (look: Look, shown: string, columns: number, finished: boolean): readonly Safe[] | null => {
  const [, mark, language = '', body = ''] = FENCED.exec(shown) ?? [];
  if (mark === undefined) return null;
  const bare = withoutClosing(body, mark);
  if (bare === null) return null;
  const code = keepStyles(bare.replaceAll('\t', '    '));
  const lines = finished ? highlightCode(look, code, language) : code.split('\n');
  const room = Math.max(8, columns - CODE_INDENT.length);
  return lines.flatMap((line) => wrapCode(line, room)).map((row) => safe`${CODE_INDENT}${row}`.trimEnd());
};

/** A text as rows of at most `columns`. Code is coloured only if the text is `finished`. */
export const renderMarkdown = (
  look: Look,
  text: string,
  columns: number,
  finished: boolean,
): readonly Safe[] => {
  const shown = harmless(text.replace(/^[\r\n]+|\s+$/g, ''));
  if (shown === '') return [];
  const code = codeRows(look, shown, columns, finished);
  if (code !== null) return code;
  if (component === null) return wrapText(shown, columns);
  const rows = new component.Markdown(shown, 0, 0, themeOf(look, finished))
    .render(columns)
    .filter((row) => !row.includes(FENCE_ROW))
    .map(trimmed);
  // The renderer doesn't break tables that are wider than the window. They are broken here.
  return rows.flatMap((row) => wrapText(row, columns));
};
