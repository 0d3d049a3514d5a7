/**
 * `node --import tsx scripts/record-golden-journal.ts NAME`: plays a real session and a fork of it, and adds their exports
 * to test/journal/golden as NAME.pawl and NAME-fork.pawl, with what must be read from them. Replaces nothing: a new format gets a new name.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openSession } from '../src/api/create-agent.js';
import { fileJournals } from '../src/journal/file-store.js';
import { createStateCheck } from '../src/journal/read/hash-state.js';
import { exportSession } from '../src/journal/transfer/export-session.js';
import { sha256Of } from '../src/journal/transfer/named-blobs.js';
import { scriptedModel } from '../src/models/scripted/scripted-model.js';

const [name = ''] = process.argv.slice(2);
if (!/^[\w.-]+$/.test(name)) throw new Error('Give the golden journal a name, for example: format-2');
const golden = fileURLToPath(new URL('../test/journal/golden', import.meta.url));

const place = mkdtempSync(join(tmpdir(), 'pawl-golden-'));
const [workspace, folder] = [join(place, 'project'), join(place, 'state')];
mkdirSync(workspace);
writeFileSync(join(workspace, 'a.txt'), 'one\ntwo\n');
const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];
const git = (...words: readonly string[]): void =>
  void execFileSync('git', [...identity, ...words], { cwd: workspace, stdio: 'pipe' });
git('init', '-q', '-b', 'main');
git('config', 'user.name', 'Ada');
git('config', 'user.email', 'ada@example.org');
git('add', '.');
git('commit', '-qm', 'first');

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
for (const [session, file] of [
  [id, join(golden, name)],
  [forkId, join(golden, `${name}-fork`)],
] as const) {
  const { entries } = await exportSession(folder, session, `${file}.pawl`);
  const { state } = await journals.peek(session);
  const expected = { sessionId: session, entries, state: createStateCheck()(state) };
  writeFileSync(`${file}.json`, `${JSON.stringify(expected, null, 2)}\n`, { flag: 'wx' });
  console.log(`${file}.pawl ${sha256Of(readFileSync(`${file}.pawl`))}`);
}
rmSync(place, { recursive: true, force: true });
