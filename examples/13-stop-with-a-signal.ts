/** Stops a turn with an AbortSignal: what was said until then is kept, and the session goes on. */
import { openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const controller = new AbortController();
const session = await openSession({
  model: scriptedModel({
    replies: [
      { calls: [{ tool: 'bash', input: { command: 'echo begun; sleep 60' } }] },
      { text: 'All right.' },
    ],
  }),
  journals: memoryJournals(),
  workspace: '.',
  watcher({ event }) {
    if (event.type === 'ToolProgress') controller.abort(); // as a user would, when it takes too long
  },
});

const first = await session.prompt('Take your time.', { signal: controller.signal });
console.log('the first turn:', first.ok, first.reason);
const second = await session.prompt('Never mind.');
console.log('the second turn:', second.ok, second.text);
await session.close();

const late = await session
  .prompt('Hello?')
  .catch((fault: Error) => fault.message.replace(/\d{8}-\S+/, 'ID'));
console.log('after the end:', late);
