/** Opens a session with a model that answers from a script, asks it one thing, and prints the answer and what it took. */
import { openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const session = await openSession({
  model: scriptedModel({ replies: [{ text: 'Hello! What shall we build?' }] }),
  journals: memoryJournals(),
  workspace: '.',
});

const { ok, text, usage } = await session.prompt('Hello.');
await session.close();

console.log(text);
console.log(ok ? 'answered' : 'not answered', `for $${usage.costUsd}`);
