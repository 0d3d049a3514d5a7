/** Gives the agent a tool of your own: what it declares, how its input is judged, what it does. */
import { messagesOf, openSession, type Tool } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const dice: Tool = {
  name: 'dice',
  description: 'Rolls dice that always show six.',
  inputSchema: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 1_000 },
  judge(input) {
    const { count } = input;
    if (typeof count !== 'number' || count < 1)
      return { kind: 'invalid', field: 'count', why: 'must be a number from 1' };
    return { kind: 'ok', input, facts: { argv: [], paths: [], hosts: [], shape: 'dice' } };
  },
  run: async ({ count }) => ({ status: 'ok', text: `rolled ${6 * Number(count)}` }),
};

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
});
await session.send({ type: 'UserInput', text: 'Roll two dice.', mode: 'steer' });
const state = await session.idle();
await session.close();

for (const { parts } of messagesOf(state.session.conversation)) {
  for (const part of parts)
    console.log(part.type === 'call' ? `call ${JSON.stringify(part.input)}` : `${part.type} ${part.text}`);
}
