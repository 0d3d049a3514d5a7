/** Reads a session's events as an async iteration: what the journal holds, then what comes, until the session ends. */
import { type Entry, openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const session = await openSession({
  model: scriptedModel({ replies: [{ text: 'One.' }, { text: 'Two.' }] }),
  journals: memoryJournals(),
  workspace: '.',
});
await session.prompt('Count.');

const print = async (name: string, entries: AsyncIterable<Entry>): Promise<void> => {
  const seen: string[] = [];
  for await (const { seq, event } of entries) seen.push(`${seq} ${event.type}`);
  console.log(`${name}: ${seen.join(', ')}`);
};

// Both read at their own pace, and neither keeps the session from going on.
const readers = [print('all', session.events()), print('from 3', session.events(3))];
await session.prompt('Go on.');
await session.close();
await Promise.all(readers);
