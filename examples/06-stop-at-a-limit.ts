/** Stops a turn after two rounds of tools, then raises the limit and goes on where it stopped. */
import { defaultSettings, openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const look = (path: string) => ({
  text: `I read ${path}.`,
  calls: [{ tool: 'read', input: { path } }],
});

const session = await openSession({
  model: scriptedModel({
    replies: [
      look('package.json'),
      look('tsconfig.json'),
      look('LICENSE'),
      { text: 'I have read them.' },
    ],
  }),
  journals: memoryJournals(),
  settings: { limits: { ...defaultSettings.limits, rounds: 2 } },
  workspace: '.',
  watcher({ actions }) {
    for (const action of actions) {
      if (action.type === 'DisplayText') console.log(action.text);
      if (action.type === 'DisplayNotice' || action.type === 'DisplayWarning')
        console.log(`(${action.text})`);
    }
  },
});

await session.send({ type: 'UserInput', text: 'Read the three files.', mode: 'steer' });
const stopped = await session.idle();
if (stopped.name === 'WaitingForUserInput') console.log('waits because of', stopped.reason);

await session.send({ type: 'ApproveBudget', dimension: 'rounds', limit: 5 });
await session.send({ type: 'RetryLast' });
const ended = await session.idle();
if (ended.name === 'WaitingForUserInput') console.log('waits because of', ended.reason);
await session.close();
