import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messagesOf } from '@pawl/agent/machine/conversation';
import * as v from 'valibot';
import { openHere } from '../../../../test/kit/api/stage.js';
import { command, ok, say, testModel, tool } from '../../../../test/kit/runtime/stage.js';
import { defineTool, type Input, type Tool } from '../../src/index.js';
import { bad, CALL, goesOn, odd, shown, uncaught } from './handed-in-stage.js';

/** What a program, a tool or a model hands in and should not: an error or a failed call, and a session that goes on. */

const REFUSED: readonly [string, unknown, string][] = [
  ['nothing', undefined, 'the event is missing'],
  ['a text', 'UserInput', 'the event is "UserInput"'],
  ['a list', [], 'the event is a list'],
  ['no type', { text: 'hi' }, 'type is missing'],
  [
    'a type that nobody knows',
    { type: 'toString' },
    'type is "toString"; it must be one of Start, UserInput',
  ],
  [
    'an event of the model',
    { type: 'TextDelta', requestId: 'req-1', text: 'x' },
    'type is "TextDelta"',
  ],
  ['no text', { type: 'UserInput', mode: 'steer' }, 'text is missing; it must be a text'],
  [
    'a number as text',
    { type: 'UserInput', text: 5, mode: 'steer' },
    'text is 5; it must be a text',
  ],
  [
    'an unknown mode',
    { type: 'UserInput', text: 'a', mode: 'steel' },
    'mode is "steel"; it must be one of',
  ],
  [
    'an unknown field',
    { type: 'UserInput', text: 'a', mode: 'steer', image: [] },
    'image is not known',
  ],
  ['a bigint', { type: 'UserInput', text: 1n, mode: 'steer' }, 'it holds a bigint'],
  ['NaN', { type: 'ApproveBudget', dimension: 'usd', limit: Number.NaN }, 'limit is NaN'],
  [
    'a limit that is no number',
    { type: 'SettingsChanged', patch: { limits: { usd: 'x' } } },
    'patch.limits.usd is "x"',
  ],
  [
    'a setting that stops all',
    { type: 'SettingsChanged', patch: { maxParallel: 0 } },
    'patch.maxParallel is 0',
  ],
  [
    'no prices',
    { type: 'SettingsChanged', patch: {}, prices: { input: -1 } },
    'prices.input is -1',
  ],
  [
    'a getter that throws',
    {
      get type(): string {
        throw new Error('no');
      },
    },
    "it can't be read",
  ],
];

for (const [what, input, why] of REFUSED) {
  test(`an event that is none (${what}) is refused with the reason, and leaves no trace`, async (context) => {
    const caught = uncaught(context);
    const { session } = await openHere(context, testModel(say('still here')));
    const before = await session.state();
    await assert.rejects(session.send(input as Input), (thrown: unknown) => {
      assert.ok(thrown instanceof TypeError);
      assert.match(thrown.message, shown(why));
      return true;
    });
    assert.equal(await session.state(), before);
    await goesOn(session, caught);
  });
}

test('an event is copied: what its program does to it later changes nothing', async (context) => {
  const { session } = await openHere(context, testModel(say('still here')));
  const patch: Record<string, unknown> = {
    limits: { ...(await session.state()).session.settings.limits },
  };
  const sent = session.send({
    type: 'SettingsChanged',
    patch: { ...patch, maxRetries: 7 },
  } as Input);
  (patch.limits as Record<string, unknown>).usd = Number.NaN;
  await sent;
  const { settings } = (await session.state()).session;
  assert.deepEqual([settings.maxRetries, settings.limits.usd], [7, 'unlimited']);
});

const RETURNED: readonly [string, () => unknown, string][] = [
  ['undefined', () => undefined, 'the tool itself failed: what it returned is missing'],
  ['null', () => null, 'what it returned is null'],
  ['a number', () => 42, 'what it returned is 42; it must be an object'],
  ['no status', () => ({ text: 'done' }), 'status is missing'],
  ['a status that nobody knows', () => ({ status: 'fine', text: 'done' }), 'status is "fine"'],
  ['no text', () => ({ status: 'ok' }), 'text is missing'],
  ['a bigint', () => ({ status: 'ok', text: 5n }), 'it holds a bigint'],
  [
    'pictures that are none',
    () => ({ status: 'ok', text: 'x', images: [{}] }),
    'images[0].mediaType is missing',
  ],
  [
    'itself within itself',
    () => {
      const outcome: Record<string, unknown> = { status: 'ok' };
      outcome.text = outcome;
      return outcome;
    },
    'it is nested deeper than 120 levels',
  ],
  [
    'a getter that throws',
    () => ({
      status: 'ok',
      get text(): string {
        throw new Error('no');
      },
    }),
    "it can't be read",
  ],
  ['a promise of nothing', () => Promise.resolve(undefined), 'what it returned is missing'],
  [
    'a promise that rejects without a reason',
    () => Promise.reject(),
    'it threw without saying why',
  ],
  [
    'a promise that rejects with an odd object',
    () => Promise.reject(Object.create(null)),
    'can not be read',
  ],
];

for (const [what, run, why] of RETURNED) {
  test(`a tool that returns ${what} has failed, and the turn goes on`, async (context) => {
    const caught = uncaught(context);
    const odd = defineTool({
      name: 'odd',
      description: 'returns what it should not',
      input: v.object({}),
      effect: 'reads',
      run: run as () => string,
    });
    const model = testModel(CALL, say('done'), say('still here'));
    const { session } = await openHere(context, model, { tools: [odd] });
    const turn = await session.prompt('go');
    assert.deepEqual([turn.ok, turn.text], [true, 'done']);
    assert.match(
      JSON.stringify(model.requests[1]?.messages),
      shown(JSON.stringify(why).slice(1, -1)),
    );
    await goesOn(session, caught);
  });
}

test('a field of an outcome that nobody knows, or that is undefined, is left out', async (context) => {
  const odd = tool('odd', () => ({ ...ok('done'), diff: undefined, extra: 1n }) as never);
  const lenient = tool(
    'odd',
    () => ({ ...ok('done'), diff: undefined, extra: { deep: 1 } }) as never,
  );
  for (const [one, expected] of [
    [lenient, 'done'],
    [odd, 'it holds a bigint'],
  ] as const) {
    const model = testModel(CALL, say('end'));
    const { session } = await openHere(context, model, { tools: [one] });
    await session.prompt('go');
    assert.match(JSON.stringify(model.requests[1]?.messages), shown(expected));
  }
});

const HALVES: readonly [string, Partial<Tool>, RegExp][] = [
  [
    'a judge that says nothing',
    { judge: () => bad(undefined) },
    /the tool could not judge it: its judgement is missing/,
  ],
  [
    'a judge without facts',
    { judge: (input) => bad({ kind: 'ok', input }) },
    /could not judge it: facts is missing/,
  ],
  ['a preview that is none', { preview: () => bad(Promise.resolve(7)) }, /^ran$/],
  ['a preview that throws', { preview: () => bad(Promise.reject()) }, /^ran$/],
  [
    'hashes that are none',
    {
      traits: { ...command, effect: 'probeable' },
      before: () => bad(Promise.resolve({ before: 5 })),
    },
    /^ran$/,
  ],
  [
    'a memory of files that is none',
    {
      run: async (_input, context) => {
        context.progress(bad(5));
        context.files.set('a', bad(5));
        return ok('ran');
      },
    },
    /files\.set takes the real path/,
  ],
];

for (const [what, own, expected] of HALVES) {
  test(`a tool with ${what} stops no session`, async (context) => {
    const caught = uncaught(context);
    const model = testModel(CALL, say('done'), say('still here'));
    const { session } = await openHere(context, model, {
      tools: [odd(own)],
      preset: 'careful',
      onApproval: () => 'allow',
    });
    await session.prompt('go');
    const results = messagesOf((await session.state()).session.conversation).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'result' ? [part.text] : [])),
    );
    assert.match(results[0] ?? '', expected);
    await goesOn(session, caught);
  });
}
