/** The tool `todo`: the model's list. Each call replaces it. It exists only in the conversation. */

import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import { isJsonObject } from '../platform/untrusted-input.js';
import type { Tool } from '../ports/tool.js';
import {
  defineTool,
  type InputFault,
  parseNested,
  readFields,
  type TranslatedInput,
  withoutFields,
} from './define-tool.js';

const ITEMS_MAX = 50;
const CHARACTERS_MAX = 300;

const itemSchema = v.strictObject({
  text: v.pipe(
    v.string(),
    v.regex(/\S/, 'must not be blank'),
    v.maxLength(CHARACTERS_MAX, `must have at most ${CHARACTERS_MAX} characters`),
  ),
  status: v.picklist(['pending', 'inProgress', 'done']),
});
const schema = v.strictObject({
  items: v.pipe(
    v.array(itemSchema),
    v.maxLength(ITEMS_MAX, `must be at most ${ITEMS_MAX}`),
    v.description('The whole list, in order.'),
  ),
});
type Item = v.InferOutput<typeof schema>['items'][number];

// ---- Input in the form of other agents ----

const ITEM_NAMES = { text: ['content', 'task', 'step', 'title', 'description'] };
/** Fields of items that say nothing which this list shows. */
const ITEM_IGNORED: readonly string[] = ['id', 'priority', 'activeForm'];
const STATUS_WORDS: ReadonlyMap<Json | undefined, Item['status']> = new Map([
  ['in_progress', 'inProgress'],
  ['in-progress', 'inProgress'],
  ['completed', 'done'],
  ['complete', 'done'],
  ['todo', 'pending'],
  ['not_started', 'pending'],
]);

/** Translates each item. A list in a text is parsed. */
const translate = (input: JsonObject): TranslatedInput => {
  const { items } = input;
  const list = typeof items === 'string' ? parseNested(items) : items;
  if (!Array.isArray(list)) return { input, faults: [] };
  const faults: InputFault[] = [];
  const read = list.map((item: Json, index): Json => {
    if (!isJsonObject(item)) return item;
    const named = readFields(
      withoutFields(item, ITEM_IGNORED),
      itemSchema,
      ITEM_NAMES,
      `items[${index}].`,
    );
    faults.push(...named.faults);
    const status = STATUS_WORDS.get(named.input.status);
    if (named.input.status === 'cancelled')
      faults.push({
        field: `items[${index}].status`,
        why: 'must be pending, inProgress or done: leave the item out',
      });
    return status === undefined ? named.input : { ...named.input, status };
  });
  return { input: { ...input, items: read }, faults };
};

const checkboxes: Readonly<Record<Item['status'], string>> = {
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
  // one line per item, so that an item can't imitate another one
  const lines = items.map(
    ({ status, text }) => `${checkboxes[status]} ${text.replace(/\s+/g, ' ')}`,
  );
  return [describeProgress(items), ...lines].join('\n');
};

/** What a summary of the conversation keeps of the list. A finished one is dropped. */
const keepList = ({ items }: v.InferOutput<typeof schema>): string =>
  items.some(({ status }) => status !== 'done') ? listText(items) : '';

export const todoTool: Tool = defineTool({
  name: 'todo',
  description:
    'A list of steps that the user sees, for work of three steps or more; mark each as you go. ' +
    'Each call replaces it.',
  schema,
  aliases: { items: ['todos', 'plan'] },
  // fields of other agents: `same` values are ignored, `instead` is the advice for others
  foreign: {
    merge: { same: [false], instead: 'give the whole list: each call replaces it' },
    action: { instead: 'give the whole list: each call replaces it' },
  },
  translate,
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
