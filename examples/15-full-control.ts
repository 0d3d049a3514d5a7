/** One agent for many sessions, with every part of your own: tools, limits, rules, answers, clock, an end from outside. */
import { createAgent, defineTool, presetRules } from 'pawl';
import { fakeClock, memoryJournals, scriptedModel } from 'pawl/testing';
import * as z from 'zod';

const shelves = new Map([['apples', 3]]);
const input = z.object({ item: z.string(), count: z.number().int() });
const order = defineTool({
  name: 'order',
  description: 'Puts more of an item on the shelf.',
  input,
  effect: 'changes',
  touches: ({ item }) => ({ shape: item }),
  run({ item, count }) {
    shelves.set(item, (shelves.get(item) ?? 0) + count);
    return `${shelves.get(item)} ${item}`;
  },
});

const calls = [{ tool: 'order', input: { item: 'apples', count: 2 } }];
const agent = createAgent({
  model: scriptedModel({ replies: [{ calls }, { text: 'Ordered.' }] }),
  journals: memoryJournals(),
  tools: [order],
  clock: fakeClock(),
});
const shutdown = new AbortController();
const run = async (customer: string): Promise<string> => {
  const session = await agent.open({
    workspace: '.',
    settings: { rules: presetRules.careful, limits: { rounds: 5, usd: 1 }, maxRetries: 0 },
    onApproval: ({ tool }) =>
      customer === 'Ann' ? 'allow' : { deny: `${customer} may not ${tool}` },
    signal: shutdown.signal,
  });
  return `${customer}: ${(await session.prompt('Two apples, please.')).text} ${shelves.get('apples')} apples`;
};
for (const customer of ['Ann', 'Bob']) console.log(await run(customer));
shutdown.abort();
