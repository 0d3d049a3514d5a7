/** Lets code answer what the agent asks before it changes anything: writing is fine, running commands is not. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const workspace = mkdtempSync(join(tmpdir(), 'pawl-example-'));
const calls = [
  { tool: 'write', input: { path: 'note.txt', content: 'Buy milk.\n' } },
  { tool: 'bash', input: { command: 'rm note.txt' } },
];
const session = await openSession({
  model: scriptedModel({ replies: [{ calls }, { text: 'Written, and it stays.' }] }),
  journals: memoryJournals(),
  preset: 'careful',
  workspace,
});

session.watch(({ actions }) => {
  for (const action of actions) {
    if (action.type === 'DisplayToolResult') console.log(`${action.tool} ended: ${action.status}`);
    if (action.type === 'DisplayText') console.log(action.text);
    if (action.type !== 'RequestApproval') continue;
    const { batchId, call, why } = action;
    console.log(`may ${call.tool} run? (${why})`);
    const answer =
      call.tool === 'write'
        ? ({ kind: 'allow' } as const)
        : ({ kind: 'deny', reason: 'no commands, please' } as const);
    void session.send({ type: 'ApprovalAnswered', batchId, callId: call.callId, answer, scope: 'once' });
  }
});
await session.send({ type: 'UserInput', text: 'Note: buy milk.', mode: 'steer' });
await session.idle();
await session.close();
console.log('the note says:', readFileSync(join(workspace, 'note.txt'), 'utf8').trim());
rmSync(workspace, { recursive: true });
