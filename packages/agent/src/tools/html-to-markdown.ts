/// <reference path="./turndown-plugin-gfm.d.ts" />

/**
 * Converts HTML into text for the model: cuts out what holds no text, then makes Markdown. The
 * converter is loaded with the first page.
 *
 * It is a full parser, and would block the program for seconds on pages that are very long or
 * deeply nested. For those only the plain text is taken.
 */

import type TurndownService from 'turndown';

const CONVERTED_CHARACTERS_MAX = 1_000_000;
const DEPTH_MAX = 400;

/** Elements without useful text. They make up most of a page. */
const WITHOUT_TEXT = ['script', 'style', 'noscript', 'template', 'svg', 'iframe'];

/** Lower case for A to Z only, so that the length stays the same. */
const lowerAscii = (html: string): string =>
  html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * Removes everything from each `open` to the next `close`, in linear time. An `open` without a
 * `close` stays.
 */
const cutOut = (html: string, open: string, close: string): string => {
  const lower = lowerAscii(html);
  const pieces: string[] = [];
  let from = 0;
  for (;;) {
    const start = lower.indexOf(open, from);
    const end = start < 0 ? -1 : lower.indexOf(close, start + open.length);
    if (end < 0) return [...pieces, html.slice(from)].join('');
    pieces.push(html.slice(from, start));
    from = end + close.length;
  }
};

/** Cuts out comments and elements without useful text. */
const withoutWaste = (html: string): string => {
  const waste = WITHOUT_TEXT.flatMap((name) => [
    [`<${name}>`, `</${name}>`] as const,
    [`<${name} `, `</${name}>`] as const,
  ]);
  return [['<!--', '-->'] as const, ...waste].reduce(
    (rest, [open, close]) => cutOut(rest, open, close),
    html,
  );
};

/** Elements that need no closing tag and therefore don't nest. */
const SELF_CLOSING =
  /^(area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|dt|dd|td|th|tr|option|tbody|thead)$/i;

/** Upper bound for the depth of nested elements. */
const measureDepth = (html: string): number => {
  let depth = 0;
  let deepest = 0;
  for (const [, closing, name = '', self] of html.matchAll(/<(\/?)([a-z][\w-]*)[^<>]*?(\/?)>/gi)) {
    if (self === '/' || SELF_CLOSING.test(name)) continue;
    depth = closing === '/' ? Math.max(0, depth - 1) : depth + 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
};

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['nbsp', ' '],
]);

/** The plain text, one line per block. */
const plainText = (html: string): string =>
  html
    .replace(/<\/?(p|div|br|li|tr|h[1-6]|section|article|pre|table|ul|ol)\b[^<>]*>/gi, '\n')
    .replace(/<[^<>]*>/g, '')
    .replace(/&(\w+);/g, (whole, name: string) => ENTITIES.get(name) ?? whole)
    .replace(/[ \t]+/g, ' ')
    .replace(/\s*\n\s*/g, '\n')
    .trim();

/** The page's main part, if it marks one. */
const extractMain = (html: string): string => {
  const lower = lowerAscii(html);
  const start = lower.indexOf('<main');
  const end = lower.lastIndexOf('</main');
  return start >= 0 && end > start ? html.slice(start, end) : cutOut(html, '<head>', '</head>');
};

const createConverter = async (): Promise<TurndownService> => {
  const [{ default: Turndown }, { strikethrough, tables }] = await Promise.all([
    import('turndown'),
    import('@joplin/turndown-plugin-gfm'),
  ]);
  const converter = new Turndown({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
  });
  converter.use([tables, strikethrough]);
  return converter;
};

let creating: Promise<TurndownService> | null = null;

/** Makes relative links absolute. */
const resolveLinks = (html: string, address: string): string =>
  html.replace(
    /(<a\b[^>]*?\shref=)("([^"]*)"|'([^']*)')/gi,
    (whole, before: string, _quoted, double, single) => {
      const link = String(double ?? single ?? '');
      if (link.startsWith('#') || !URL.canParse(link, address)) return whole;
      return `${before}"${new URL(link, address).href.replaceAll('"', '%22')}"`;
    },
  );

export type Readable = { readonly text: string; readonly form: 'Markdown' | 'its text alone' };

/** The page as Markdown, or as plain text. `address`: where it came from. */
export const readHtml = async (html: string, address: string): Promise<Readable> => {
  const title = /<title\b[^>]*>([^<]*)<\/title/i.exec(html)?.[1]?.trim() ?? '';
  const body = extractMain(withoutWaste(html));
  const heading = title === '' ? '' : `${plainText(title)}\n\n`;
  if (body.length > CONVERTED_CHARACTERS_MAX || measureDepth(body) > DEPTH_MAX)
    return { text: `${heading}${plainText(body)}`, form: 'its text alone' };
  creating ??= createConverter();
  const converter = await creating;
  return { text: `${heading}${converter.turndown(resolveLinks(body, address))}`, form: 'Markdown' };
};
