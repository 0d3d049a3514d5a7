import { harmless, type Look, paint } from '../print.js';
import { joinSafe, keepStyles, type Safe, safe } from '../safe-text.js';
import type { Style } from '../theme.js';
import { wrapText } from '../width.js';
import { highlightCode } from './highlight.js';

/**
 * Markdown as rows. The component that lays it out takes as long to load as everything else together, so it is loaded
 * after the first paint; text that comes before it is there is shown as it was written.
 */
type Component = typeof import('@earendil-works/pi-tui/dist/components/markdown.js');

let component: Component | null = null;

/** Loads what lays Markdown out. Resolves when `renderMarkdown` uses it; it comes with the program, so it does not fail. */
export const loadMarkdown = async (): Promise<void> => {
  if (component !== null) return;
  const [loaded, { setCapabilities }] = await Promise.all([
    import('@earendil-works/pi-tui/dist/components/markdown.js'),
    import('@earendil-works/pi-tui/dist/terminal-image.js'),
  ]);
  // Addresses stay visible: a link that hides where it leads is no help, and not every terminal can open it.
  setCapabilities({ images: null, trueColor: false, hyperlinks: false });
  component = loaded;
};

/** What the component writes where a fence stood; the row is dropped. A private character: no text of a model needs it. */
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

/** Spaces that fill the row, before the codes that close a colour too. */
const trimmed = (row: string): Safe => keepStyles(row.replace(/[ ]+((?:\u001b\[[\d;]*m)*)$/, '$1'));

/** A block that is one fence, open or closed: how far it is set in, what marks it, its language, its code. */
const FENCED = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)(?:\n|$)([\s\S]*)$/;

const CODE_INDENT = safe`  `;

/** The code up to the fence that closes it; null where more than that one block stands there. */
const withoutClosing = (body: string, mark: string): string | null => {
  const lines = body.split('\n');
  const end = lines.findIndex((line) => {
    const bare = line.trim();
    return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
  });
  if (end < 0) return body;
  return lines.slice(end + 1).some((line) => line.trim() !== '') ? null : lines.slice(0, end).join('\n');
};

/** Lines that are too long go on below themselves, set in. */
const wrapCode = (line: Safe, columns: number): readonly Safe[] => {
  const [first = safe``, ...rest] = wrapText(line, columns);
  if (rest.length === 0) return [first];
  return [first, ...wrapText(joinSafe(rest), Math.max(2, columns - 2)).map((row) => safe`  ${row}`)];
};

/** Code without its fences: set in, each line as it is; coloured where it is finished. */
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

/** A text as rows of at most `columns`; code is coloured only in one that is `finished`. */
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
  // What it breaks nowhere (a table in a window that is too narrow for it) is broken here.
  return rows.flatMap((row) => wrapText(row, columns));
};
