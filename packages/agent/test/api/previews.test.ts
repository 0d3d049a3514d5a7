import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  callTools,
  command,
  ok,
  rawCall,
  resultsOf,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import type { Tool } from '../../src/ports/tool.js';
import { editTool } from '../../src/tools/edit.js';
import { readTool } from '../../src/tools/read.js';
import { writeTool } from '../../src/tools/write.js';

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
  assert.match(
    results.e ?? '',
    /^failed: edits\[0\]\.oldText is not in the file.*Nothing was changed\.$/s,
  );
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
  const { asked, results, text } = await played(context, [
    edit('1', 'one', 'uno'),
    edit('2', 'one', 'eins'),
  ]);
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
    rawCall(callId, 'edit', {
      file_path: 'a.txt',
      old_string: old,
      new_string: 'eins',
      description: 'why',
    });
  const { asked, results, text } = await played(context, [
    shaped('yes', 'one'),
    shaped('no', 'three'),
  ]);
  assert.match(results.no ?? '', /^failed: edits\[0\]\.oldText is not in the file/);
  assert.match(results.yes ?? '', /^Edited/);
  const input = { description: 'why', path: 'a.txt', edits: [{ oldText: 'one', newText: 'eins' }] };
  assert.deepEqual(
    asked.map((one) => JSON.parse(one)),
    [input],
  );
  assert.equal(text, 'eins\ntwo\n');
});

test('the preview behind a command that may change the file waits for its end, and sees what it left', async (context) => {
  const place: { workspace?: string } = {};
  const steps: string[] = [];
  const watched: Tool = {
    ...editTool,
    preview: async (input, previewContext) => {
      steps.push('preview');
      return (await editTool.preview?.(input, previewContext)) ?? { kind: 'none' };
    },
  };
  const make = tool(
    'make',
    async () => {
      steps.push('command starts');
      await writeFile(path.join(place.workspace ?? '', 'a.txt'), 'made\ntwo\n');
      steps.push('command ends');
      return ok('done');
    },
    command,
  );
  const model = testModel(
    callTools(read),
    callTools(rawCall('m', 'make'), edit('e', 'two', 'zwei'), edit('x', 'one', 'eins')),
    say('done'),
  );
  const { session, workspace } = await openHere(context, model, {
    tools: [readTool, watched, make],
    preset: 'careful',
    onApproval: ({ tool: name }) => {
      steps.push(`asked about ${name}`);
      return 'allow';
    },
  });
  place.workspace = workspace;
  await writeFile(path.join(workspace, 'a.txt'), 'one\ntwo\n');
  await session.prompt('go');
  // The edits are looked at when the command has ended. The line of one has changed: it is refused unasked.
  assert.deepEqual(steps, [
    'asked about make',
    'command starts',
    'command ends',
    'preview',
    'asked about edit',
    'preview',
  ]);
  const results = resultsOf(model.requests.at(-1)?.messages ?? []);
  assert.match(results.e ?? '', /^Edited a\.txt[\s\S]*not at the place of this edit/);
  assert.match(results.x ?? '', /^failed: .*a\.txt/);
  assert.equal(await readFile(path.join(workspace, 'a.txt'), 'utf8'), 'made\nzwei\n');
});

test('control: with an earlier call that only reads, the edit is asked about with its diff before that ends', async (context) => {
  const asked: string[] = [];
  const look = tool('look', () => ok('seen'));
  const model = testModel(
    callTools(read),
    callTools(rawCall('l', 'look'), edit('e', 'two', 'zwei')),
    say('done'),
  );
  const { session, workspace } = await openHere(context, model, {
    tools: [readTool, editTool, look],
    preset: 'careful',
    onApproval: ({ subject }) => {
      asked.push(subject.text);
      return 'allow';
    },
  });
  await writeFile(path.join(workspace, 'a.txt'), 'one\ntwo\n');
  await session.prompt('go');
  assert.equal(asked.length, 1);
  assert.match(asked[0] ?? '', /-two\n\+zwei/);
});
