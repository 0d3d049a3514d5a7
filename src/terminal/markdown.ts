import { highlightCode } from './highlight.js';
import { harmless, type Look, paint } from './print.js';
import type { Style } from './theme.js';
import { wrapText } from './width.js';

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

const themeOf = (look: Look, finished: boolean) => {
  const style = (name: Style) => (text: string) => paint(look, name, text);
  return {
    heading: style('heading'),
    link: style('link'),
    linkUrl: style('dim'),
    code: style('code'),
    codeBlock: (text: string) => text,
    codeBlockBorder: style('dim'),
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
      ? { highlightCode: (code: string, language?: string) => [...highlightCode(look, code, language ?? '')] }
      : {}),
  };
};

/** Spaces that fill the row, before the codes that close a colour too. */
const trimmed = (row: string): string => row.replace(/[ ]+((?:\u001b\[[\d;]*m)*)$/, '$1');

/** A text as rows of at most `columns`; code is coloured only in one that is `finished`. */
export const renderMarkdown = (
  look: Look,
  text: string,
  columns: number,
  finished: boolean,
): readonly string[] => {
  const safe = harmless(text).replace(/^\n+|\s+$/g, '');
  if (safe === '') return [];
  if (component === null) return wrapText(safe, columns);
  const rows = new component.Markdown(safe, 0, 0, themeOf(look, finished)).render(columns).map(trimmed);
  // What it breaks nowhere (a table in a window that is too narrow for it) is broken here.
  return rows.flatMap((row) => wrapText(row, columns));
};
