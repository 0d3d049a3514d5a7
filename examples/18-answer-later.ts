/** Asks in one process, which is killed, and answers in another: meanwhile the session waits on disk. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { fileJournals, openSession } from 'pawl';
import { scriptedModel } from 'pawl/testing';

const [program = '', self = '', folder = mkdtempSync('/tmp/bot-'), part] = process.argv;
const call = { tool: 'write', input: { path: 'note.txt', content: 'Buy milk.' } };
const model = scriptedModel({ replies: [{ calls: [call] }, { text: 'I wrote it down.' }] });
const journals = fileJournals({ folder: `${folder}/.state` });
const options = { model, journals, workspace: folder };
if (part === 'ask') {
  const asking = await openSession({ ...options, preset: 'careful', settings: { onAsk: 'ask' } });
  asking.watch(({ actions }) => {
    if (actions.some(({ type }) => type === 'RequestApproval'))
      process.stdout.write(asking.id, () => process.kill(process.pid, 'SIGKILL'));
  });
  await asking.prompt('Note: buy milk.', { requestId: 'note' });
}
const resume = String(spawnSync(program, [...process.execArgv, self, folder, 'ask']).stdout);
const session = await openSession({ ...options, resume, onApproval: () => 'allow' });
console.log((await session.prompt('Note: buy milk.', { requestId: 'note' })).text);
await session.close();
rmSync(folder, { recursive: true });
