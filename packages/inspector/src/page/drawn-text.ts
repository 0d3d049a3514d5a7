/**
 * Long texts, diffs, commands and Markdown as elements, in this order. Whatever a text says, only
 * text nodes hold it: no link, no picture, no HTML.
 */

import { groupDigits } from '@pawl/agent/platform/text';
import { plural } from '../model/figure-text.js';
import { button, make, visibleText } from './elements.js';

const CHARACTERS_AT_ONCE = 4_000;
/** More at one press would stop the page for seconds. */
const CHARACTERS_MORE = 100_000;

/** A text of which more is shown on demand. */
export const longText = (text: string, kind: string): HTMLElement => {
  const pre = make(
    'pre',
    { class: kind, tabindex: kind.startsWith('code') ? 0 : null },
    text.slice(0, CHARACTERS_AT_ONCE),
  );
  if (text.length <= CHARACTERS_AT_ONCE) return pre;
  let shown = CHARACTERS_AT_ONCE;
  const label = (): string => {
    const rest = text.length - shown;
    const next = Math.min(rest, CHARACTERS_MORE);
    return `Show ${groupDigits(next)}${next < rest ? ` of ${groupDigits(rest)}` : ''} more characters`;
  };
  const more = button(label(), { class: 'more' }, () => {
    pre.append(visibleText(text.slice(shown, shown + CHARACTERS_MORE)));
    shown = Math.min(text.length, shown + CHARACTERS_MORE);
    if (shown === text.length) more.remove();
    else more.textContent = label();
  });
  return make('div', {}, pre, more);
};

const DIFF_ROWS_AT_ONCE = 300;
const DIFF_ROWS_MORE = 5_000;

/** Two lines are a head; a removed line can look like one of them. */
const isHead = (first = '', second = ''): boolean =>
  first.startsWith('--- ') && second.startsWith('+++ ');

const diffRow = (line: string, index: number, lines: readonly string[]): HTMLElement => {
  const kind =
    isHead(line, lines[index + 1]) || isHead(lines[index - 1], line)
      ? 'head'
      : line.startsWith('@@')
        ? 'hunk'
        : line.startsWith('+')
          ? 'added'
          : line.startsWith('-')
            ? 'removed'
            : 'same';
  return make('span', { class: `diff-row ${kind}` }, `${line}\n`);
};

/** A unified diff with coloured rows. */
export const drawDiff = (diff: string): HTMLElement => {
  const lines = diff.replace(/\n$/, '').split('\n');
  const pre = make(
    'pre',
    { class: 'code diff', tabindex: 0 },
    ...lines.slice(0, DIFF_ROWS_AT_ONCE).map(diffRow),
  );
  let shown = DIFF_ROWS_AT_ONCE;
  if (lines.length <= shown) return pre;
  const label = (): string => `Show more: ${plural(lines.length - shown, 'row')} left`;
  const more = button(label(), { class: 'more' }, () => {
    pre.append(...lines.slice(shown, shown + DIFF_ROWS_MORE).map(diffRow));
    shown += DIFF_ROWS_MORE;
    if (shown >= lines.length) more.remove();
    else more.textContent = label();
  });
  return make('div', {}, pre, more);
};

/** A command as a shell shows it. */
export const drawCommand = (command: string): HTMLElement => longText(command, 'code shell');

/**
 * Code, bold, italic and links of one line. A link shows its address. The bounds keep a hostile
 * text from being searched to its end from each of its characters.
 */
const INLINE =
  /(`{1,8})([^`]+)\1|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?!\w)|\[([^\]\n]{1,500})\]\(([^()\s]+)\)/g;

export const drawInline = (text: string): readonly (Node | string)[] => {
  const nodes: (Node | string)[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, , code, bold, italic, label, address] = match;
    nodes.push(text.slice(from, match.index));
    from = match.index + whole.length;
    if (code !== undefined) nodes.push(make('code', {}, code));
    else if (bold !== undefined) nodes.push(make('strong', {}, bold));
    else if (italic !== undefined) nodes.push(make('em', {}, italic));
    else nodes.push(`${label} (`, make('code', {}, address ?? ''), ')');
  }
  nodes.push(text.slice(from));
  return nodes;
};

const MARKDOWN_MAX = 60_000;

/** A reply as it was meant to be read. A very long one is shown as it is written. */
export const drawMarkdown = (text: string): HTMLElement =>
  text.length > MARKDOWN_MAX
    ? longText(text, 'prose')
    : make('div', { class: 'markdown' }, ...splitBlocks(text).map(drawBlock));

/** Consecutive lines of one kind. */
type Block = { readonly kind: 'text' | 'code' | 'list' | 'table'; readonly lines: string[] };

const ITEM = /^\s*(?:[-*+]|\d+[.)])\s+/;

/** Markdown as blocks. A blank line, or a line of another kind, ends a block. */
const splitBlocks = (text: string): readonly Block[] => {
  const blocks: Block[] = [];
  let fence: string | null = null;
  for (const line of text.split('\n')) {
    const [, mark] = /^\s{0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    if (fence !== null) {
      if (mark !== undefined && mark[0] === fence[0] && mark.length >= fence.length) fence = null;
      else blocks.at(-1)?.lines.push(line);
      continue;
    }
    if (mark !== undefined) {
      fence = mark;
      blocks.push({ kind: 'code', lines: [] });
      continue;
    }
    const kind = ITEM.test(line) ? 'list' : line.startsWith('|') ? 'table' : 'text';
    const last = blocks.at(-1);
    // A heading is a block of its own. A blank line begins an empty block, which is left out.
    const isBreak = line.trim() === '' || /^#{1,6} /.test(line);
    if (last === undefined || last.kind !== kind || isBreak || last.lines.length === 0)
      blocks.push({ kind, lines: line.trim() === '' ? [] : [line] });
    else if (/^#{1,6} /.test(last.lines[0] ?? '')) blocks.push({ kind, lines: [line] });
    else last.lines.push(line);
  }
  return blocks.filter(({ kind, lines }) => kind === 'code' || lines.length > 0);
};

const drawBlock = ({ kind, lines }: Block): HTMLElement => {
  const text = lines.join('\n');
  if (kind === 'code' || kind === 'table') return make('pre', { class: 'code', tabindex: 0 }, text);
  if (kind === 'text') {
    const [, heading] = /^#{1,6} (.*)$/.exec(text) ?? [];
    return heading === undefined
      ? make('p', {}, ...drawInline(text))
      : make('p', {}, make('strong', {}, ...drawInline(heading)));
  }
  const isOrdered = /^\s*\d/.test(lines[0] ?? '');
  return make(
    isOrdered ? 'ol' : 'ul',
    {},
    ...lines.map((line) => make('li', {}, ...drawInline(line.replace(ITEM, '')))),
  );
};
