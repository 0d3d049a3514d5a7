import assert from 'node:assert/strict';
import { test } from 'node:test';
import { typesOf, watchedStore } from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { CHANGED, eventsOf, hooksOf, lastTexts, playWith, QUIET } from './hooks.js';

test('a phase that only looks is in the same append as the results, and is not run', async () => {
  const looked = { ...QUIET, note: 'seen at once' };
  const appends: string[] = [];
  const journals = watchedStore(
    memoryJournals(),
    (drafts) => void appends.push(typesOf(drafts).join(' ')),
  );
  const hooks = hooksOf();
  const asked: unknown[] = [];
  const on = await playWith(
    {
      ...hooks,
      runNow: (phase, { calls, workspace }) => {
        asked.push([phase, calls.map(({ callId }) => callId), workspace]);
        return looked;
      },
    },
    { journals, settings: { hooks: 'mutating' } },
  );
  await on.say('go');
  await on.rest();
  assert.deepEqual(asked, [
    ['CheckingGitCommits', ['1'], (await on.state()).session.settings.workspace],
  ]);
  assert.deepEqual(hooks.log, ['before 1']);
  assert.deepEqual(lastTexts(on), ['seen at once']);
  assert.equal(appends.at(-2), 'ToolCompleted HookCompleted');
  assert.deepEqual((await on.state()).session.unaccounted, []);
});

test('a phase that can not look at once, or fails at it, is run', async () => {
  for (const runNow of [
    () => null,
    () => {
      throw new Error('no disk');
    },
  ]) {
    const hooks = hooksOf({ CheckingGitCommits: () => ({ ...QUIET, note: 'run' }) });
    const on = await playWith({ ...hooks, runNow }, { settings: { hooks: 'mutating' } });
    await on.say('go');
    await on.rest();
    assert.deepEqual(hooks.log, ['before 1', 'CheckingGitCommits 1']);
    assert.deepEqual(lastTexts(on), ['run']);
    assert.equal((await eventsOf(on, 'HookCompleted')).length, 1);
  }
});

test('phases after one that only looked are given its report', async () => {
  const hooks = hooksOf({ RunningAutoformatters: () => CHANGED });
  const on = await playWith({ ...hooks, runNow: () => ({ ...CHANGED, note: 'seen at once' }) });
  await on.say('go');
  await on.rest();
  assert.deepEqual(hooks.log, [
    'before 1',
    'after 1',
    'RunningAutoformatters 1',
    'AutoCommitting 1',
  ]);
  const reports = hooks.contexts.get('AutoCommitting')?.reports.map(({ note }) => note);
  assert.deepEqual(reports, ['seen at once', '']);
});
