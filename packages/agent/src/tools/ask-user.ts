/**
 * The tools that ask the user: `ask_user`, and `propose_plan`, which ends the planning. A call
 * waits for the user in the state of the machine in which calls wait for approval.
 */

import * as v from 'valibot';
import { planText } from '../policy/approval-question.js';
import type { Tool } from '../ports/tool.js';
import { defineTool } from './define-tool.js';

const CHOICES_MAX = 4;
const CHARACTERS_MAX = 2_000;

const shortText = v.pipe(
  v.string(),
  v.regex(/\S/, 'must not be blank'),
  v.maxLength(CHARACTERS_MAX, `must be at most ${CHARACTERS_MAX} characters`),
);

/** `reply`: the words of the user, or of the choice that the user took. */
export const askUserTool: Tool = defineTool({
  name: 'ask_user',
  description: 'Asks the user what only the user can decide.',
  schema: v.strictObject({
    question: shortText,
    choices: v.exactOptional(
      v.pipe(v.array(shortText), v.maxLength(CHOICES_MAX, `must be at most ${CHOICES_MAX}`)),
    ),
  }),
  aliases: { choices: ['options'] },
  traits: {
    effect: 'pure',
    parallelSafe: true,
    mutating: false,
    deadlineMs: 5_000,
    asks: 'question',
  },
  judge: async ({ question }) => ({
    kind: 'ok',
    facts: { argv: [], paths: [], hosts: [], shape: question },
  }),
  title: ({ question }) => question,
  run: async (_, { reply = '' }) => {
    const words = reply.trim();
    return words === ''
      ? { status: 'ok', text: 'The user answered yes.', summary: 'yes' }
      : { status: 'ok', text: `The user answered: ${words}`, summary: words };
  },
});

const STEPS_MAX = 50;

/**
 * The numbered steps of a plan in the form of `planText`, which the user has edited. Beyond an
 * empty line only a higher number is a step, since the text of the plan may have numbers, too.
 */
const readSteps = (plan: string, title: string): readonly string[] => {
  const steps: string[] = [];
  let last = 0;
  let isBeyond = false;
  const [first, ...others] = plan.split('\n');
  for (const line of first === title ? others : [first ?? '', ...others]) {
    if (line.trim() === '') {
      isBeyond = steps.length > 0;
      continue;
    }
    const [, number, step] = /^\s*(\d+)[.)]\s+(\S.*)$/.exec(line) ?? [];
    if (isBeyond && !(Number(number) > last)) break;
    isBeyond = false;
    if (step === undefined) continue;
    steps.push(step.trim());
    last = Number(number);
  }
  return steps;
};

const inOneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

const heading = (steps: readonly string[]): string => `0 of ${steps.length} done`;

/**
 * `reply`: the plan in the words of the user; empty if it is accepted as it is. The result is the
 * to-do list up to the first empty line.
 */
export const proposePlanTool: Tool = defineTool({
  name: 'propose_plan',
  description:
    'Ends the planning: the user sees the plan and accepts it, changes it or sends it back. After ' +
    'a yes you carry it out.',
  schema: v.strictObject({
    title: shortText,
    steps: v.pipe(
      v.array(shortText),
      v.minLength(1, 'must not be empty'),
      v.maxLength(STEPS_MAX, `must be at most ${STEPS_MAX}`),
    ),
    text: v.exactOptional(v.pipe(v.string(), v.description('Markdown.'))),
  }),
  aliases: { text: ['plan', 'details'] },
  traits: {
    ...({ effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 5_000 } as const),
    ...({ shown: 'list', asks: 'plan' } as const),
  },
  judge: async ({ title }) => ({
    kind: 'ok',
    facts: { argv: [], paths: [], hosts: [], shape: title },
  }),
  title: ({ title }) => title,
  keep: (_, result) => {
    const [, ...items] = (result.split('\n\n')[0] ?? '').split('\n');
    return items.length === 0 ? '' : [heading(items), ...items].join('\n');
  },
  run: async (input, { reply = '' }) => {
    const changed = reply.trim() === planText(input).trim() ? '' : reply.trim();
    const steps =
      changed === '' ? input.steps.map(inOneLine) : readSteps(changed, inOneLine(input.title));
    const list = [heading(steps), ...steps.map((step) => `[ ] ${step}`)].join('\n');
    const accepted =
      'The user accepted this plan, and you may make its changes now: carry it out, and keep the list with todo.';
    const changes = changed === '' ? '' : `\n\nThe user changed the plan. It is:\n${changed}`;
    const text = `${list}\n\n${accepted}${changes}`;
    return { status: 'ok', text, summary: changed === '' ? 'accepted' : 'accepted with changes' };
  },
});

/** In the order in which the model sees them. */
export const askingTools: readonly Tool[] = [askUserTool, proposePlanTool];
