/** The model's to-do list. Each call replaces it. It exists only in the conversation. */

import * as v from 'valibot';
import type { Tool } from '../ports/tool.js';
import { defineTool } from './define-tool.js';

const ITEMS_MAX = 50;
const CHARACTERS_MAX = 300;

const schema = v.strictObject({
  items: v.pipe(
    v.array(
      v.strictObject({
        text: v.pipe(
          v.string(),
          v.regex(/\S/, 'must not be blank'),
          v.maxLength(CHARACTERS_MAX, `must have at most ${CHARACTERS_MAX} characters`),
        ),
        status: v.picklist(['pending', 'inProgress', 'done']),
      }),
    ),
    v.maxLength(ITEMS_MAX, `must be at most ${ITEMS_MAX}`),
    v.description('The whole list, in order.'),
  ),
});
type Item = v.InferOutput<typeof schema>['items'][number];

const marks: Readonly<Record<Item['status'], string>> = {
  done: '[x]',
  inProgress: '[>]',
  pending: '[ ]',
};

const describeProgress = (items: readonly Item[]): string =>
  items.length === 0
    ? 'empty'
    : `${items.filter(({ status }) => status === 'done').length} of ${items.length} done`;

const listText = (items: readonly Item[]): string => {
  if (items.length === 0) return 'The list is empty.';
  // One line per item, so that an item can't imitate another one.
  const lines = items.map(({ status, text }) => `${marks[status]} ${text.replace(/\s+/g, ' ')}`);
  return [describeProgress(items), ...lines].join('\n');
};

/** A finished list is dropped. */
const keepList = ({ items }: v.InferOutput<typeof schema>): string =>
  items.some(({ status }) => status !== 'done') ? listText(items) : '';

export const todoTool: Tool = defineTool({
  name: 'todo',
  description:
    'Writes down what is to be done, for work of several steps; the user sees the list. Each ' +
    'call replaces it.',
  schema,
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 5_000, shown: 'list' },
  judge: async () => ({ kind: 'ok', facts: { argv: [], paths: [], hosts: [], shape: 'the list' } }),
  title: ({ items }) => items.find(({ status }) => status === 'inProgress')?.text ?? '',
  keep: keepList,
  run: async ({ items }) => ({
    status: 'ok',
    text: listText(items),
    summary: describeProgress(items),
  }),
});
