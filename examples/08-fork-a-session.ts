/** Forks a session at an entry of its journal: both share what was said until then, and go different ways from there. */
import { createAgent, messagesOf, type Session } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const agent = createAgent({
  model: scriptedModel({ replies: [{ text: 'A name for a boat?' }, { text: 'Then "Halcyon".' }] }),
  journals: memoryJournals(),
});

const say = async (session: Session, text: string): Promise<void> => {
  await session.send({ type: 'UserInput', text, mode: 'steer' });
  await session.idle();
};

const print = async (name: string, session: Session): Promise<void> => {
  console.log(name);
  for (const { role, parts } of messagesOf((await session.state()).session.conversation)) {
    for (const part of parts) if (part.type === 'text') console.log(`  ${role}: ${part.text}`);
  }
};

const first = await agent.open({ workspace: '.' });
await say(first, 'I need a name.');
const { seq } = await agent.runtime.state(first.id); // the reply is the last entry so far
await say(first, 'Yes, a slow one.');

const forkId = await agent.runtime.fork(first.id, seq);
const second = await agent.open({ workspace: '.', resume: forkId });
await say(second, 'Yes, a fast one.');

await print(`the first session, ${(await agent.runtime.state(first.id)).seq} entries`, first);
await print(`its fork at ${seq}`, second);
await Promise.all([first.close(), second.close()]);
