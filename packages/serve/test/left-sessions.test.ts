import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { MODEL_ID, storySettings } from '../../../test/contract/play-story.js';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { NodeMetrics } from '../src/metrics.js';
import { OpenSessions } from '../src/open-sessions.js';
import { makeLocalNode } from './local-node-runtime.js';

/** A node lets go of sessions that go on without it: a session that rests costs it nothing. */

const input = (text: string) => ({ type: 'UserInput', text, mode: 'steer' }) as const;

test('a session that rests and that nobody reads is left, and followed again when it is used', async (context) => {
  const folder = temporaryFolder(context, 'left');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const rules = [
    { when: '^wait', text: 'Waiting', stall: true },
    { when: '', text: 'Fine.' },
  ];
  const model = scriptedModel({ replies: [], rules }, { id: MODEL_ID });
  const made = await makeLocalNode(
    { model, tools: [], hooks: null, settingsFor: storySettings },
    folder,
  );
  const watching = new Set<string>();
  const runtime: typeof made.runtime = {
    ...made.runtime,
    endsWithNode: false,
    open: async () => undefined, // none of them was closed
    watch(sessionId, watcher) {
      watching.add(sessionId);
      const unwatch = made.runtime.watch(sessionId, watcher);
      return () => {
        watching.delete(sessionId);
        unwatch();
      };
    },
  };
  const open = new OpenSessions(runtime, new NodeMetrics(), (fault) => assert.fail(fault));
  const [resting, running, read] = await Promise.all(
    Array.from({ length: 3 }, () => runtime.create({ workspace, preset: null, limits: {} })),
  );
  assert.ok(resting !== undefined && running !== undefined && read !== undefined);
  for (const id of [resting, running, read]) await open.attend(id);
  const leave = open.feed(read)?.join({ offer: () => undefined, end: () => undefined });
  await runtime.send(running, input('wait'));
  open.sweep();
  assert.deepEqual(open.ids().toSorted(), [resting, running, read].toSorted());
  open.sweep();
  assert.deepEqual(open.ids().toSorted(), [running, read].toSorted());
  assert.deepEqual(watching, new Set([running, read]));

  leave?.();
  open.sweep();
  await open.open(read); // it is used, so it is not left with the next sweep
  open.sweep();
  assert.ok(open.ids().includes(read));
  open.sweep();
  assert.deepEqual(open.ids(), [running]);

  const again = await open.open(resting);
  await runtime.send(resting, input('hi'));
  await again.rest();
  assert.equal(again.status.state, 'WaitingForUserInput');
  for (const id of [resting, running, read]) await runtime.close(id);
});
