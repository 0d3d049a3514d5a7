import assert from 'node:assert/strict';
import { test } from 'node:test';
import { play, settle, stage } from '../../../../test/kit/runtime/stage.js';
import { hooksOf } from './hooks.js';

test('what a commit left behind is looked for on resume, also with auto-commit off', async () => {
  for (const autoCommit of ['on', 'off'] as const) {
    const asked: string[] = [];
    const recover = async (workspace: string): Promise<string> => {
      asked.push(workspace);
      return '';
    };
    const on = await play({ settings: { autoCommit } });
    const id = await on.runtime.fork(on.id, (await on.runtime.state(on.id)).seq);
    const later = stage({ journals: on.journals, hooks: { ...hooksOf(), recover } });
    await later.runtime.open(id);
    await settle();
    assert.deepEqual(asked, ['/workspace']);
  }
});
