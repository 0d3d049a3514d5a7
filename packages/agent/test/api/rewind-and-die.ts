import { existsSync } from 'node:fs';
import path from 'node:path';
import { callTools, rawCall, say, testModel } from '../../../../test/kit/runtime/stage.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { createAgent } from '../../src/session/create-agent.js';

/**
 * A session in a process of its own, to be killed: prints its id, and runs one command.
 *
 * WORKSPACE STATE COMMAND FILE    kills itself once it takes the command back and FILE is there
 */
const [workspace = '', state = '', command = '', file = ''] = process.argv.slice(2);

const agent = createAgent({
  model: testModel(callTools(rawCall('1', 'bash', { command })), say('done')),
  journals: fileJournals({ folder: state }),
});
const session = await agent.open({ workspace, sandbox: 'off' });
process.stdout.write(`${session.id}\n`);
await session.prompt('go');
await session.timeline(); // the checkpoint is in the journal

const dieOnceThere = (): void => {
  if (existsSync(path.join(workspace, file))) process.kill(process.pid, 'SIGKILL');
  setImmediate(dieOnceThere);
};
setImmediate(dieOnceThere);
await session.rewind({ at: 0 });
process.stdout.write('not killed\n');
