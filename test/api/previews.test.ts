import '../starts-no-program.js';
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Tool } from '../../src/ports/tool.js';
import { editTool } from '../../src/tools/edit.js';
import { readTool } from '../../src/tools/read.js';
import { writeTool } from '../../src/tools/write.js';
import { callTools, rawCall, resultsOf, say, testModel } from '../runtime/stage.js';
import { openHere } from './stage.js';

/** An edit that can't apply is refused before anyone is asked. The real tools and files; the model is scripted. */

const read = rawCall('read', 'read', { path: 'a.txt' });
const edit = (callId: string, oldText: string, newText: string, file = 'a.txt') =>
  rawCall(callId, 'edit', { path: file, edits: [{ oldText, newText }] });

/** Reads a.txt, then makes these calls; who was asked about what, and how each call ended. */
const played = async (
  context: TestContext,
  calls: readonly ReturnType<typeof rawCall>[],
  tools: readonly Tool[] = [readTool, editTool, writeTool],
) => {
  const model = testModel(callTools(read), callTools(...calls), say('done'));
  const asked: string[] = [];
  const { session, workspace, journals } = await openHere(context, model, {
    tools,
    preset: 'careful',
    onApproval: ({ input }) => {
      asked.push(JSON.stringify(input));
      return 'allow';
    },
  });
  await writeFile(path.join(workspace, 'a.txt'), 'one\ntwo\n');
  await writeFile(path.join(workspace, 'unread.txt'), 'old\n');
  assert.equal((await session.prompt('go')).ok, true);
  const events: string[] = [];
  for await (const { event } of journals.read(session.id)) events.push(event.type);
  const results = resultsOf(model.requests.at(-1)?.messages ?? []);
  return { asked, results, events, text: await readFile(path.join(workspace, 'a.txt'), 'utf8') };
};

test('an edit that can’t apply ends with the tool’s own words, and nobody is asked', async (context) => {
  const { asked, results, text, events } = await played(context, [edit('e', 'three', 'drei')]);
  assert.deepEqual(asked, []);
  assert.match(results.e ?? '', /^failed: edits\[0\]\.oldText is not in the file.*Nothing was changed\.$/s);
  assert.equal(text, 'one\ntwo\n');
  assert.ok(events.includes('CallPreviewed') && !events.includes('ApprovalAnswered'));
});

test('control: with a tool that previews nothing somebody is asked about it', async (context) => {
  const { preview: _preview, ...blind } = editTool;
  const { asked, results } = await played(context, [edit('e', 'three', 'drei')], [readTool, blind]);
  assert.equal(asked.length, 1);
  assert.match(results.e ?? '', /^failed: edits\[0\]\.oldText is not in the file/);
});

test('a write over a file that was never read is refused unasked, a new file is asked for', async (context) => {
  const { asked, results } = await played(context, [
    rawCall('over', 'write', { path: 'unread.txt', content: 'x' }),
    edit('folder', 'a', 'b', '.'),
    rawCall('new', 'write', { path: 'new.txt', content: 'x\n' }),
  ]);
  assert.match(results.over ?? '', /^failed: unread\.txt has not been read in this session/);
  assert.match(results.folder ?? '', /^failed: \. is a folder/);
  assert.match(results.new ?? '', /^Created new\.txt/);
  assert.deepEqual(asked, [JSON.stringify({ path: 'new.txt', content: 'x\n' })]);
});

test('a preview waits for earlier calls: the second edit fits only after the first', async (context) => {
  const { asked, results, text } = await played(context, [
    edit('1', 'one', 'three'),
    edit('2', 'three', 'drei'),
  ]);
  assert.equal(asked.length, 2);
  assert.match(results['2'] ?? '', /^Edited/);
  assert.equal(text, 'drei\ntwo\n');
});

test('an edit that the first one takes the ground from is refused unasked', async (context) => {
  const { asked, results, text } = await played(context, [edit('1', 'one', 'uno'), edit('2', 'one', 'eins')]);
  assert.equal(asked.length, 1);
  assert.match(results['2'] ?? '', /^failed: edits\[0\]\.oldText is not in the file/);
  assert.equal(text, 'uno\ntwo\n');
});

test('a tool whose preview throws is asked about all the same', async (context) => {
  const broken: Tool = { ...editTool, preview: () => Promise.reject(new Error('broken')) };
  const { asked, text } = await played(context, [edit('1', 'one', 'uno')], [readTool, broken]);
  assert.equal(asked.length, 1);
  assert.equal(text, 'uno\ntwo\n');
});

test('an edit in the shape of another agent is asked about in ours, and one that can’t apply is not', async (context) => {
  const shaped = (callId: string, old: string) =>
    rawCall(callId, 'edit', { file_path: 'a.txt', old_string: old, new_string: 'eins', description: 'why' });
  const { asked, results, text } = await played(context, [shaped('yes', 'one'), shaped('no', 'three')]);
  assert.match(results.no ?? '', /^failed: edits\[0\]\.oldText is not in the file/);
  assert.match(results.yes ?? '', /^Edited/);
  const input = { description: 'why', path: 'a.txt', edits: [{ oldText: 'one', newText: 'eins' }] };
  assert.deepEqual(
    asked.map((one) => JSON.parse(one)),
    [input],
  );
  assert.equal(text, 'eins\ntwo\n');
});
