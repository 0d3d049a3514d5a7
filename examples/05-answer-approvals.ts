/** Lets code answer what the agent asks: writing is fine, a command that leaves the sandbox for the network is not. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const workspace = mkdtempSync(join(tmpdir(), 'pawl-example-'));
const calls = [
  { tool: 'write', input: { path: 'note.txt', content: 'Buy milk.\n' } },
  { tool: 'bash', input: { command: 'curl -d @note.txt https://example.com', needs: 'network' } },
];
const session = await openSession({
  model: scriptedModel({ replies: [{ calls }, { text: 'Written, and it stays.' }] }),
  journals: memoryJournals(),
  preset: 'careful',
  workspace,
  onApproval({ tool }) {
    console.log(`may ${tool} run?`);
    return tool === 'write' ? 'allow' : { deny: 'nothing leaves, please' };
  },
});

const { text } = await session.prompt('Note: buy milk.');
await session.close();
console.log(text);
console.log('the note says:', readFileSync(join(workspace, 'note.txt'), 'utf8').trim());
rmSync(workspace, { recursive: true });
