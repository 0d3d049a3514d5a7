import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect, type Play, say, settle, testModel } from '../../../../test/kit/runtime/stage.js';
import {
  CHANGED,
  eventsOf,
  hooksOf,
  make,
  type Phases,
  playWith,
  QUIET,
  reopenWith,
} from './hooks.js';

/** What a phase of the hooks is about to do is in the journal before it does it. */

const EFFECT = { kind: 'file', path: '/workspace/a.ts', before: 'rough', after: 'smooth' } as const;

test('what a phase prepares is durable before it goes on, and is given to the phase after a crash', async () => {
  const durable: (readonly string[])[] = [];
  const phases: Phases = {
    CheckingGitCommits: () => CHANGED,
    RunningAutoformatters: async ({ prepare }) => {
      await prepare(EFFECT);
      durable.push(
        (await collect(on.journals.read(on.id))).slice(-1).map(({ event }) => event.type),
      );
      return CHANGED;
    },
  };
  const on: Play = await playWith(hooksOf(phases));
  await on.say('go');
  await on.rest();
  assert.deepEqual(durable, [['HookPrepared']]);
  const entries = await collect(on.journals.read(on.id));
  const prepared = entries.find(({ event }) => event.type === 'HookPrepared')?.seq ?? 0;
  for (const { at, interrupted } of [
    { at: prepared, interrupted: [EFFECT] },
    { at: prepared - 1, interrupted: [] },
  ]) {
    const hooks = hooksOf();
    await (
      await reopenWith(on, at, { tools: [make], model: testModel(say('done')), hooks })
    ).rest();
    assert.deepEqual(hooks.contexts.get('RunningAutoformatters')?.interrupted, interrupted);
  }
});

test('a phase that was stopped may not prepare anything any more', async () => {
  const refused: string[] = [];
  const hooks = hooksOf({
    CheckingGitCommits: async ({ prepare, signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await prepare(EFFECT).catch((error: Error) => refused.push(error.message));
      return QUIET;
    },
  });
  const on = await playWith(hooks);
  await on.say('go');
  await on.until(({ state }) => state.name === 'PostToolsHook');
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  await on.rest();
  await settle();
  assert.deepEqual(refused, ['the phase was stopped']);
  assert.deepEqual(await eventsOf(on, 'HookPrepared'), []);
});
