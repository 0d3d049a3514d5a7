/** Gives the agent a tool of your own: a schema (zod here; valibot and arktype do as well) and a function. */
import { defineTool, openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';
import * as z from 'zod';

const dice = defineTool({
  name: 'dice',
  description: 'Rolls dice that always show six.',
  input: z.object({ count: z.number().int().min(1).describe('How many.') }),
  effect: 'reads',
  run: ({ count }) => `rolled ${6 * count}`,
});

const roll = (count: number | string) => ({ calls: [{ tool: 'dice', input: { count } }] });
const replies = [roll('two'), roll(2), { text: 'You have twelve.' }];
const model = scriptedModel({ replies });
const options = { model, journals: memoryJournals(), tools: [dice], workspace: '.' };
const session = await openSession(options);
session.watch(({ actions }) => {
  for (const action of actions)
    if (action.type === 'DisplayToolResult') console.log(`${action.status}: ${action.text}`);
});
console.log((await session.prompt('Roll two dice.')).text);
await session.close();
