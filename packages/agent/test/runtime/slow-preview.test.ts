import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callTools,
  command,
  ok,
  play,
  rawCall,
  settle,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { presetRules } from '../../src/policy/presets.js';

test('a preview that never comes is waited for ten seconds, then the user is asked without it', async () => {
  const push = {
    ...tool('push', () => ok('pushed'), command),
    preview: () => new Promise<never>(() => undefined),
  };
  const on = await play({
    model: testModel(callTools(rawCall('1', 'push'))),
    tools: [push],
    settings: { rules: presetRules.careful, onAsk: 'ask' },
  });
  const isAsked = (): boolean =>
    on.steps.some(({ actions }) => actions.some(({ type }) => type === 'RequestApproval'));
  await on.say('push');
  await on.until(({ actions }) => actions.some(({ type }) => type === 'PreviewCall'));
  await settle();
  on.clock.advance(9_999);
  await settle();
  assert.equal(isAsked(), false);
  on.clock.advance(1);
  await settle();
  assert.equal(isAsked(), true);
});
