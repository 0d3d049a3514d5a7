/** Watches a turn with a real tool call: text as it streams, and each transition as it happens. */
import { openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const session = await openSession({
  model: scriptedModel({
    replies: [
      {
        text: 'I look for the name.',
        calls: [{ tool: 'search', input: { pattern: '"name"', path: 'package.json' } }],
      },
      { text: 'It is called pawl.' },
    ],
  }),
  journals: memoryJournals(),
  workspace: '.',
  watcher({ seq, event, path, actions }) {
    for (const action of actions) {
      if (action.type === 'DisplayText') console.log(`    "${action.text}"`);
      if (action.type === 'DisplayToolResult')
        console.log(`    ${action.tool} ended ${action.status}`);
    }
    if (!path.some(({ from, to }) => from !== to)) return; // it stayed where it was: a delta, progress
    console.log(`${seq} ${event.type}: ${path.map(({ to }) => to).join(' → ')}`);
  },
});

await session.send({ type: 'UserInput', text: 'What is this package called?', mode: 'steer' });
await session.idle();
await session.close();
