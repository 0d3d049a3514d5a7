import { hang, testModel } from '../../../../test/kit/runtime/stage.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { createAgent } from '../../src/session/create-agent.js';

/**
 * WORKSPACE STATE TEXT REQUEST_ID: sends a prompt in a new session. Its model never answers: once
 * it is asked, the id of the session is printed, and the process waits to be killed.
 */
const [workspace = '', state = '', text = '', requestId = ''] = process.argv.slice(2);

const model = testModel(hang({ type: 'text', text: 'I th' }));
const agent = createAgent({ model, journals: fileJournals({ folder: state }), checkpoints: false });
const session = await agent.open({ workspace, sandbox: 'off' });
session.watch(({ event }) => {
  if (event.type === 'TextDelta') process.stdout.write(`${session.id}\n`);
});
await session.prompt(text, { requestId });
