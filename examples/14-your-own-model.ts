/** Writes a model of your own in one function; models of the AI SDK need less: aiSdkModel(openai('gpt-5')). */
import { type Model, openSession } from 'pawl';
import { memoryJournals } from 'pawl/testing';

const noTokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Says backwards what it is told. */
const mirror: Model = {
  id: 'mine/mirror',
  facts: {
    windowTokens: 10_000,
    outputTokensMax: 1_000,
    thinking: 'no',
    tools: 'no',
    prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    source: 'this file',
  },
  canAbort: 'yes',
  async *stream({ messages }) {
    const said =
      messages.at(-1)?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) ?? [];
    const text = [...said.join(' ')].reverse().join('');
    for (const letters of text.match(/.{1,4}/g) ?? []) yield { type: 'text', text: letters };
    yield {
      type: 'completed',
      parts: [{ type: 'text', text }],
      stopReason: 'end',
      usage: noTokens,
    };
  },
};

const session = await openSession({ model: mirror, journals: memoryJournals(), workspace: '.' });
session.watch(({ event }) => {
  if (event.type === 'TextDelta') console.log('streams', JSON.stringify(event.text));
});
const { text, usage } = await session.prompt('desserts');
console.log(text, `for $${usage.costUsd}`);
await session.close();
