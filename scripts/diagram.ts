/**
 * Puts generated content into documents, between markers such as `<!-- table:begin -->`. Below
 * that: the blocks of docs/design/machine.md.
 */

import { answersTo } from '../packages/agent/src/machine/action.js';

/** The names that markers have. */
type Part =
  | 'diagram'
  | 'table'
  | 'words'
  | 'deep'
  | 'settings'
  | 'providers'
  | 'answers'
  | 'example';

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
export const DRIVE_EXAMPLE = 'examples/16-drive-the-machine.ts';

export const exampleOf = (text: string): string => `\`\`\`ts\n${text.trim()}\n\`\`\``;

/** docs/design/machine.md as it starts, before anything is put into it. */
export const emptyMachineDocument = [
  '# The machine',
  '',
  'Drawn from `packages/agent/src/machine/table.ts` by `npm run update`; `pawl machine --mermaid` and `--table` print the same.',
  '',
  '## Diagram',
  '',
  '<!-- diagram:begin -->',
  '<!-- diagram:end -->',
  '',
  '## Table',
  '',
  'The branches of a cell are tried in order; the first whose guard holds is taken.',
  '',
  '<!-- table:begin -->',
  '<!-- table:end -->',
  '',
  '## Drive it yourself',
  '',
  '<!-- example:begin -->',
  '<!-- example:end -->',
  '',
  '<!-- answers:begin -->',
  '<!-- answers:end -->',
  '',
].join('\n');

const eventList = (events: readonly string[]): string =>
  events.map((event) => `\`${event}\``).join(', ') || '–';

/** One row for each action that has an answer. */
export const answersTable = (): string =>
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
