/** Hooks of a program: one lists what ran, one denies what the team does by hand. */
import { openSession, type SessionHook } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const audit: SessionHook = {
  name: 'audit',
  on: 'after-tool',
  run: ({ tool_name, tool_input }) => void console.log(tool_name, JSON.stringify(tool_input)),
};
const guard: SessionHook = {
  name: 'guard',
  on: 'before-tool',
  tools: ['bash'],
  run({ tool_input }) {
    if (!JSON.stringify(tool_input).includes('push')) return;
    return { decision: 'deny', reason: 'people push here' };
  },
};
const run = (command: string) => ({ calls: [{ tool: 'bash', input: { command } }] });
const model = scriptedModel({ replies: [run('git push'), run('echo fine'), { text: 'Done.' }] });
const options = { model, journals: memoryJournals(), workspace: '.', hooks: [audit, guard] };
const session = await openSession(options);
console.log((await session.prompt('Push it.')).text);
await session.close();
