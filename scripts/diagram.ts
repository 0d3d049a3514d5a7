/**
 * Puts generated content into documents, between markers such as `<!-- table:begin -->`. Below
 * that: the blocks of docs/design/machine.md.
 */

import { readFileSync } from 'node:fs';
import { answersTo } from '../packages/agent/src/machine/action.js';
import { agent } from '../packages/agent/src/machine/machine.js';
import { markdownTable, mermaid } from '../packages/machine/src/kernel/diagrams.js';
import { askedActions } from './asked-actions.js';

/** The names that markers have. */
type Part = 'diagram' | 'table' | 'words' | 'settings' | 'providers' | 'answers' | 'example';

const marks = (part: Part): { readonly begin: string; readonly end: string } => ({
  begin: `<!-- ${part}:begin -->`,
  end: `<!-- ${part}:end -->`,
});

/**
 * Where the part stands in `text`, without its markers; null when the markers are not there, in
 * this order.
 */
const findPlace = (
  text: string,
  part: Part,
): { readonly from: number; readonly to: number } | null => {
  const { begin, end } = marks(part);
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  return from < 0 || to < 0 ? null : { from: from + begin.length, to };
};

/** The content between the markers, without surrounding line breaks; null without markers. */
export const cutOut = (text: string, part: Part): string | null => {
  const place = findPlace(text, part);
  return place === null ? null : text.slice(place.from, place.to).trim();
};

/** `text` with `content` between the markers. Throws when the markers are not there. */
export const splice = (text: string, part: Part, content: string): string => {
  const place = findPlace(text, part);
  const { begin, end } = marks(part);
  if (place === null)
    throw new Error(`the document has no place for the ${part}: add ${begin} and ${end}`);
  return `${text.slice(0, place.from)}\n${content.trim()}\n${text.slice(place.to)}`;
};

/** A diagram as GitHub draws it. */
export const fenced = (mermaid: string): string => `\`\`\`mermaid\n${mermaid.trim()}\n\`\`\``;

/** The example that docs/design/machine.md shows. */
const DRIVE_EXAMPLE = new URL('../examples/16-drive-the-machine.ts', import.meta.url);

const exampleOf = (text: string): string => `\`\`\`ts\n${text.trim()}\n\`\`\``;

const eventList = (events: readonly string[]): string =>
  events.map((event) => `\`${event}\``).join(', ') || '–';

/** One row for each action that has an answer. */
const answersTable = (): string =>
  [
    '| action | may come before | ends it, one of | may come late |',
    '|---|---|---|---|',
    ...Object.entries(answersTo)
      .filter(([, { before, last, late }]) => [...before, ...last, ...late].length > 0)
      .map(
        ([action, { before, last, late }]) =>
          `| \`${action}\` | ${eventList(before)} | ${eventList(last)} | ${eventList(late)} |`,
      ),
  ].join('\n');

export const machinePage = 'docs/design/machine.md';

/** The page of the machine with what the sources say. */
export const fillMachinePage = (page: string): string => {
  const parts = [
    ['diagram', fenced(mermaid(agent))],
    ['table', markdownTable(agent, askedActions())],
    ['answers', answersTable()],
    ['example', exampleOf(readFileSync(DRIVE_EXAMPLE, 'utf8'))],
  ] as const;
  return parts.reduce((text, [part, content]) => splice(text, part, content), page);
};
