/** Opens a session with a model that answers from a script, asks it one thing, and prints the answer. */
import { messagesOf, openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const session = await openSession({
  model: scriptedModel({ replies: [{ text: 'Hello! What shall we build?' }] }),
  journals: memoryJournals(),
  workspace: '.',
});

await session.send({ type: 'UserInput', text: 'Hello.', mode: 'steer' });
const state = await session.idle();
await session.close();

for (const { role, parts } of messagesOf(state.session.conversation)) {
  for (const part of parts) if (part.type === 'text') console.log(`${role}: ${part.text}`);
}
