/**
 * `node --import tsx scripts/record-golden-journal.ts NAME`: plays real sessions, and adds their
 * exports to packages/agent/test/journal/golden, with what must be read from them: NAME (calls, a
 * denial, a retry, a cancel, a commit, a resume, a compaction), NAME-fork, NAME-crash-in-call and
 * NAME-crash-in-reply (forks of it in the middle of a turn, resumed), NAME-hooks (hooks, a job, a
 * to-do list), NAME-mcp (tools of a server, failures, an overflow, a limit) and NAME-files-in-git
 * (a command that removes a file, behind one of git, is refused). Replaces nothing: a new version
 * of the machine gets a new name. Prints the hashes for golden.test.ts.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileJournals } from '../packages/agent/src/journal/file-store.js';
import { createStateCheck } from '../packages/agent/src/journal/journaled-agent-machine.js';
import { exportSession } from '../packages/agent/src/journal/transfer.js';
import { scriptedModel } from '../packages/agent/src/models/scripted-model.js';
import { hashBytes } from '../packages/agent/src/platform/files.js';
import type { Tool } from '../packages/agent/src/ports/tool.js';
import { openSession } from '../packages/agent/src/session/create-agent.js';

const [name = ''] = process.argv.slice(2);
if (!/^[\w.-]+$/.test(name))
  throw new Error('Give the golden journal a name, for example: format-2');
const golden = fileURLToPath(new URL('../packages/agent/test/journal/golden', import.meta.url));

const place = mkdtempSync(join(tmpdir(), 'pawl-golden-'));
const [workspace, folder] = [join(place, 'project'), join(place, 'state')];
mkdirSync(workspace);
writeFileSync(join(workspace, 'a.txt'), 'one\ntwo\n');
const commit =
  'git init -q -b main; git config user.name Ada; git config user.email ada@example.org; ' +
  'git add .; git commit -qm first';
execFileSync('bash', ['-ec', commit], { cwd: workspace, stdio: 'pipe' });

const model = scriptedModel(
  {
    facts: { windowTokens: 60_000, prices: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1 } },
    replies: [
      {
        reasoning: 'I look first.',
        text: 'I read and search.',
        calls: [
          { tool: 'read', callId: 'read', input: { path: 'a.txt' } },
          { tool: 'search', callId: 'search', input: { pattern: 'two' } },
        ],
      },
      {
        calls: [
          {
            tool: 'edit',
            callId: 'edit',
            input: { path: 'a.txt', edits: [{ oldText: 'two', newText: 'zwei' }] },
          },
          { tool: 'bash', callId: 'fails', input: { command: 'echo "äöü €"; exit 3' } },
        ],
      },
      { calls: [{ tool: 'fetch', callId: 'denied', input: { url: 'https://example.org/' } }] },
      { fail: { kind: 'overloaded', retryAfterMs: 1 } },
      { text: 'Two is now "zwei".', usage: { inputTokens: 1_200, outputTokens: 30 } },
      { calls: [{ tool: 'bash', callId: 'slow', input: { command: 'echo begun; sleep 100' } }] },
      { text: 'You stopped me.', usage: { inputTokens: 59_000, outputTokens: 10 } },
      { text: 'A summary: a.txt says "zwei", and a slow command was cancelled.' },
      { text: 'I go on after the summary.' },
    ],
  },
  { id: 'scripted/golden' },
);
const journals = fileJournals({ folder });
const shared = { model, journals, workspace };
const settings = { autoCommit: 'on', hooks: 'mutating', formatter: 'off' } as const;

const first = await openSession({
  ...shared,
  preset: 'careful',
  settings,
  onApproval: ({ tool }) => (tool === 'fetch' ? { deny: 'no network, please' } : 'allow'),
});
const { id } = first;
await first.prompt('Translate the second line.');
const cancelling = first.watch(({ event }) => {
  if (event.type === 'ToolProgress' && event.callId === 'slow') void first.cancel();
});
await first.prompt('Now something slow.');
cancelling();
await first.close();

const resumed = await openSession({ ...shared, resume: id });
await resumed.prompt('What happened?');
await resumed.prompt('Go on.');
const { seq } = await resumed.send({ type: 'SettingsChanged', patch: { effort: 'low' } });
await resumed.close();

const forkId = `${id}-fork`;
await journals.fork(id, seq - 1, forkId, Date.now());

/** A session that was killed after its first event of this type, and resumed. */
const resumeAfter = async (type: string, suffix: string): Promise<string> => {
  const { records } = await journals.inspect(id);
  const at = records.find(({ entry }) => entry.event.type === type)?.entry.seq;
  if (at === undefined) throw new Error(`the session has no ${type}`);
  const killed = `${id}-${suffix}`;
  await journals.fork(id, at, killed, Date.now());
  const script = { replies: [{ text: 'I go on.' }, { text: 'And on.' }, { text: 'And on.' }] };
  const again = await openSession({ ...shared, model: scriptedModel(script), resume: killed });
  await again.idle();
  await again.prompt('What was interrupted?');
  await again.close();
  return killed;
};
const inCall = await resumeAfter('ToolStarted', 'in-call');
const inReply = await resumeAfter('UserInput', 'in-reply');

const hooked = await openSession({
  ...shared,
  model: scriptedModel({
    replies: [
      {
        calls: [
          {
            tool: 'bash',
            callId: 'job',
            input: { command: 'echo in the background', background: true },
          },
          { tool: 'todo', callId: 'todo', input: { items: [{ text: 'look', status: 'open' }] } },
          { tool: 'read', callId: 'hidden', input: { path: 'hidden.txt' } },
        ],
      },
      { calls: [{ tool: 'bash', callId: 'jobs', input: { jobAction: 'list' } }] },
      { text: 'The job has ended.' },
    ],
  }),
  hooks: [
    {
      name: 'guard',
      on: ['before-tool', 'after-tool', 'after-batch', 'before-request'],
      run: ({ input }) =>
        JSON.stringify(input ?? null).includes('hidden')
          ? { decision: 'deny', reason: 'this file is hidden' }
          : { note: 'the guard has seen it' },
    },
  ],
});
await hooked.prompt('Start a job.');
await hooked.close();

const serverTool: Tool = {
  name: 'mcp__tickets__search',
  description: 'Searches tickets.',
  inputSchema: { type: 'object' },
  traits: { effect: 'opaque', parallelSafe: true, mutating: false, deadlineMs: 60_000 },
  judge: (input) => ({
    kind: 'ok',
    input,
    facts: {
      argv: [],
      paths: [],
      hosts: [],
      shape: 'search',
      mcp: { server: 'tickets', tool: 'search' },
    },
  }),
  run: async () => ({ status: 'failed', text: 'the server is busy' }),
};
const served = await openSession({
  ...shared,
  tools: [serverTool],
  settings: { limits: { rounds: 2 }, retrySchedule: { kind: 'list', delaysMs: [1, 1, 1] } },
  onApproval: () => 'allow',
  model: scriptedModel({
    replies: [
      { fail: { kind: 'rateLimited', retryAfterMs: 1 } },
      { fail: { kind: 'malformed' } },
      { calls: [{ tool: 'mcp__tickets__search', callId: 'a', input: { text: 'crash' } }] },
      { fail: { kind: 'contextOverflow' } },
      { text: 'A summary: the server of the tickets is busy.' },
      { calls: [{ tool: 'mcp__tickets__search', callId: 'b', input: { text: 'crash' } }] },
      { fail: { kind: 'auth' } },
      { text: 'The server is busy.' },
    ],
  }),
});
await served.prompt('Find the ticket.');
await served.prompt('Again.');
await served.send({ type: 'RetryLast' });
await served.idle();
await served.close();

const removing = await openSession({
  ...shared,
  preset: 'careful',
  onApproval: () => ({ deny: 'keep the file, please' }),
  model: scriptedModel({
    replies: [
      {
        calls: [
          { tool: 'bash', callId: 'branch', input: { command: 'git checkout -q -b other' } },
          { tool: 'bash', callId: 'remove', input: { command: 'rm a.txt' } },
        ],
      },
      { text: 'The file stays.' },
    ],
  }),
});
await removing.prompt('Remove the file, on a branch of its own.');
await removing.close();

for (const [session, file] of [
  [id, join(golden, name)],
  [forkId, join(golden, `${name}-fork`)],
  [inCall, join(golden, `${name}-crash-in-call`)],
  [inReply, join(golden, `${name}-crash-in-reply`)],
  [hooked.id, join(golden, `${name}-hooks`)],
  [served.id, join(golden, `${name}-mcp`)],
  [removing.id, join(golden, `${name}-files-in-git`)],
] as const) {
  const { entries } = await exportSession(folder, session, `${file}.pawl`);
  const { state } = await journals.peek(session);
  // of the state only a hash
  const expected = { sessionId: session, entries, state: createStateCheck()(state) };
  writeFileSync(`${file}.json`, `${JSON.stringify(expected, null, 2)}\n`, { flag: 'wx' });
  console.log(`  '${basename(file)}': '${hashBytes(readFileSync(`${file}.pawl`))}',`);
}
rmSync(place, { recursive: true, force: true });
