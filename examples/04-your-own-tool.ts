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
console.log('the model reads', JSON.stringify(dice.inputSchema));

const session = await openSession({
  model: scriptedModel({
    replies: [
      { calls: [{ tool: 'dice', input: { count: 'two' } }] },
      { calls: [{ tool: 'dice', input: { count: 2 } }] },
      { text: 'You have twelve.' },
    ],
  }),
  journals: memoryJournals(),
  tools: [dice],
  workspace: '.',
  watcher({ actions }) {
    for (const action of actions)
      if (action.type === 'DisplayToolResult')
        console.log(`${action.tool} ${action.status}: ${action.text}`);
  },
});
console.log((await session.prompt('Roll two dice.')).text);
await session.close();
