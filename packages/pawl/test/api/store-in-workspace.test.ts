import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { openSession } from '@pawl/agent/session/create-agent';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { builtinTools, fileJournals, judgeCall } from '../../src/index.js';
import { scriptedModel } from '../../src/testing.js';

/** A library session that keeps its journal in its workspace, as the first example of docs/build/library.md does. */

test("the session's own store is left out of searches, finds and lists, and of git", async (context) => {
  const workspace = temporaryFolder(context, 'store');
  writeFileSync(path.join(workspace, 'a.txt'), 'a needle\n');
  const folder = path.join(workspace, '.pawl-state');
  const calls = [
    { tool: 'search', input: { pattern: 'needle' } },
    { tool: 'find', input: { glob: '**/*' } },
    { tool: 'list', input: {} },
  ];
  const model = scriptedModel({ replies: [{ calls }, { text: 'Found.' }] });
  const session = await openSession({ model, journals: fileJournals({ folder }), workspace });
  context.after(() => session.close().catch(() => undefined)); // closed already, unless the test has failed
  const results = new Map<string, string>();
  session.watch(({ actions }) => {
    for (const action of actions)
      if (action.type === 'DisplayToolResult') results.set(action.tool, action.text);
  });
  assert.equal((await session.prompt('Where is the needle?')).text, 'Found.');
  assert.match(results.get('search') ?? '', /^a\.txt/m);
  assert.match(results.get('find') ?? '', /^a\.txt$/m);
  assert.match(results.get('list') ?? '', /a\.txt/);
  for (const [tool, result] of results) assert.doesNotMatch(result, /jsonl|blobs|sessions/, tool);
  execFileSync('git', ['init', '-q'], { cwd: workspace });
  const status = execFileSync('git', ['status', '--porcelain'], {
    cwd: workspace,
    encoding: 'utf8',
  });
  assert.equal(status, '?? a.txt\n');
  assert.ok(readdirSync(folder).includes('sessions'), 'control: the store is there');
  await session.close();
});

test("a call is judged for a runtime of one's own", async (context) => {
  const workspace = temporaryFolder(context, 'judge');
  const tools = new Map(builtinTools().map((tool) => [tool.name, tool]));
  const judge = (tool: string, input: object) =>
    judgeCall(
      { type: 'call', callId: 'c1', tool, rawInput: JSON.stringify(input) },
      tools,
      workspace,
    );
  const read = await judge('read', { path: 'a.txt' });
  assert.deepEqual(
    [read.verdict, read.facts.paths],
    [{ kind: 'ok' }, [path.join(workspace, 'a.txt')]],
  );
  assert.equal((await judge('read', {})).verdict.kind, 'invalid');
  assert.equal((await judge('nothing', {})).verdict.kind, 'noSuchTool');
});
