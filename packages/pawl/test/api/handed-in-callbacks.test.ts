import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryJournals } from '@pawl/agent/journal/memory-store';
import * as v from 'valibot';
import { openHere } from '../../../../test/kit/api/stage.js';
import { command, say, testModel } from '../../../../test/kit/runtime/stage.js';
import {
  createAgent,
  createAsker,
  defineTool,
  type OnApproval,
  openSession,
  type SessionOptions,
  type Watcher,
} from '../../src/index.js';
import { bad, CALL, goesOn, odd, uncaught } from './handed-in-stage.js';

/** What a program, a tool or a model hands in and should not: an error or a failed call, and a session that goes on. */

const ANSWERS: readonly [string, OnApproval][] = [
  ['nothing', () => bad(undefined)],
  ['a word that is none', () => bad('yes')],
  ['a name that every object has', () => bad('constructor')],
  ['a denial without a reason', () => bad({ deny: 5 })],
  ['null', () => bad(null)],
  [
    'an exception that can not be written',
    () => {
      throw bad(Object.create(null));
    },
  ],
];

for (const [what, onApproval] of ANSWERS) {
  test(`onApproval that answers ${what} denies the call, and is reported`, async (context) => {
    const caught = uncaught(context);
    const faults: string[] = [];
    const model = testModel(CALL, say('done'), say('still here'));
    const { session } = await openHere(context, model, {
      tools: [odd({})],
      preset: 'careful',
      onApproval,
      report: ({ message }) => {
        faults.push(message);
        throw new Error('nobody wants to know');
      },
    });
    const turn = await session.prompt('go');
    assert.equal(turn.text, 'done');
    assert.match(JSON.stringify(model.requests[1]?.messages), /nobody could be asked/);
    assert.equal(faults.length, 1, faults.join('\n'));
    await goesOn(session, caught);
  });
}

const WATCHERS: readonly [string, Watcher][] = [
  [
    'throws',
    () => {
      throw new Error('I can not look');
    },
  ],
  ['rejects', () => bad(Promise.reject(new Error('I can not look')))],
  [
    'throws undefined',
    () => {
      throw bad(undefined);
    },
  ],
];

for (const [what, watcher] of WATCHERS) {
  for (const onApproval of [undefined, (): 'allow' => 'allow']) {
    test(`a watcher that ${what}${onApproval ? ' beside onApproval' : ''} is reported once`, async (context) => {
      const caught = uncaught(context);
      const faults: string[] = [];
      const { session } = await openHere(context, testModel(say('still here')), {
        watcher,
        ...(onApproval === undefined ? {} : { onApproval }),
        report: ({ message }) => void faults.push(message),
      });
      const unwatch = session.watch(watcher);
      await goesOn(session, caught);
      unwatch();
      // it watches twice: as an option, and by `watch`
      const reports = faults.filter((text) => /I can not look|without saying why/.test(text));
      assert.equal(reports.length, 2);
    });
  }
}

test('a stopping policy that gives no answer holds the call back and says why', async (context) => {
  for (const answer of [undefined, 5, true, {}]) {
    const { session } = await openHere(context, testModel(say('no')), {
      stoppingPolicy: () => bad(answer),
    });
    const turn = await session.prompt('go');
    assert.deepEqual([turn.ok, turn.reason.kind], [false, 'cancelled']);
  }
});

const sound = testModel();
const MODELS: readonly [unknown, RegExp][] = [
  [undefined, /the model can't be used: it is missing; it must be an object/],
  [{ ...sound, id: 5 }, /the model can't be used: id is 5/],
  [{ ...sound, facts: { ...sound.facts, windowTokens: Number.NaN } }, /facts\.windowTokens is NaN/],
  [{ ...sound, facts: { ...sound.facts, prices: { input: -1 } } }, /facts\.prices\.input is -1/],
  [{ ...sound, stream: undefined }, /the model test\/one can't be used: it has no function stream/],
  ['openai/gpt-5', /it is a text\. chooseModel finds the model of a name/],
  [{ kind: 'ok', model: sound }, /it is what chooseModel returned\. Its field model is the model/],
  [{ kind: 'noKey', message: 'No key.' }, /it is what chooseModel returned: No key\./],
  [{ specificationVersion: 'v3', doStream: () => null }, /aiSdkModel makes a model of it/],
];

test('a model or a tool that is none is refused at once, with the field that is wrong', async (context) => {
  const { session, workspace } = await openHere(context, testModel(say('still here')));
  const journals = memoryJournals();
  for (const [model, why] of MODELS) {
    assert.throws(() => createAgent({ model: bad(model), journals }), why);
    assert.throws(() => createAsker({ model: bad(model), journals: bad(journals) }), why);
    await assert.rejects(openSession({ model: bad(model), journals, workspace }), why);
    // there a text is the name of a model
    const refused = typeof model === 'string' ? /Give the model itself/ : TypeError;
    await assert.rejects(session.useModel(bad(model)), refused);
  }
  const tools: readonly [unknown, RegExp][] = [
    [null, /a tool can't be used: it is null/],
    [odd({ traits: { ...command, deadlineMs: Number.NaN } }), /traits\.deadlineMs is NaN/],
    [odd({ run: bad('run') }), /the tool odd can't be used: it has no function run/],
  ];
  for (const [one, why] of tools)
    assert.throws(() => createAgent({ model: sound, journals, moreTools: [bad(one)] }), why);
  const definition = { name: 'x', description: 'x', input: v.object({}), run: () => 'x' };
  assert.throws(() => defineTool({ ...definition, effect: bad('maybe') }), /has the effect maybe/);
  assert.throws(
    () => defineTool({ ...definition, effect: 'reads', deadlineMs: Number.NaN }),
    /deadlineMs is NaN/,
  );
  await goesOn(session, []);
});

test('settings that can not be are refused when a session is opened, new or resumed', async (context) => {
  const { session, workspace, journals } = await openHere(context, testModel(say('still here')));
  const wrong: readonly [Partial<SessionOptions>, RegExp][] = [
    [{ settings: { maxParallel: 0 } }, /the settings can't be used: maxParallel is 0/],
    [{ settings: { limits: { usd: Number.NaN } } }, /limits\.usd is NaN/],
    [{ settings: bad({ maxRetry: 3 }) }, /maxRetry is not known/],
    [{ preset: bad('cautious') }, /preset is "cautious"/],
  ];
  await session.close();
  for (const [options, why] of wrong) {
    await assert.rejects(openSession({ model: sound, journals, workspace, ...options }), why);
    const resumed = openSession({
      model: sound,
      journals,
      workspace,
      resume: session.id,
      ...options,
    });
    await assert.rejects(resumed, why);
  }
  const again = await openSession({
    journals,
    workspace,
    model: testModel(say('still here')),
    resume: session.id,
  });
  await goesOn(again, []);
  await again.close();
});
